//! Reads the wire form. The input may be hostile: every number is checked before it is used, nothing is
//! allocated ahead of the bytes that fill it, and recursion ends at the depth that programs may have.

use super::{WireError, expr_tag, node_tag};
use crate::ops::{AtomicOp, Axis, BinOp, MemoryOrdering, Scope, SubgroupOp, UnOp};
use crate::validate::limits;
use crate::{
    Body, BufferAccess, BufferDecl, Element, Expr, Function, Literal, Name, Node, Operand, Program, Type,
    WorkgroupSize,
};

type Result<T> = std::result::Result<T, WireError>;

/// The program in a payload.
pub(super) fn program(payload: &[u8]) -> Result<Program> {
    let mut decoder = Decoder { bytes: payload, at: 0, names: Vec::new(), statements: 0 };
    let count = decoder.number()?;
    for _ in 0..count {
        let name = decoder.text()?;
        decoder.names.push(name);
    }
    let name = decoder.name()?;
    let workgroup_size = decoder.workgroup_size()?;
    let subgroup_size = decoder.u32("a subgroup size")?;
    let buffers = decoder.list(Decoder::buffer)?;
    let functions = decoder.list(Decoder::function)?;
    let entry = decoder.body()?;
    if decoder.at != payload.len() {
        return Err(decoder.malformed("the end of the program"));
    }
    Ok(Program::new(buffers, workgroup_size, entry)
        .with_name(name)
        .with_subgroup_size(subgroup_size)
        .with_functions(functions))
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    names: Vec<Name>,
    statements: u64,
}

/// A statement whose body is being read.
enum Open {
    Then { cond: Expr },
    Else { cond: Expr, then: Body },
    Loop { var: Name, from: Expr, to: Expr },
    Block,
    Region { generator: Name, source_region: Option<Name> },
}

// Parts.
impl Decoder<'_> {
    fn malformed(&self, expected: &'static str) -> WireError {
        WireError::Malformed { at: self.at, expected }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).copied().ok_or(WireError::Truncated { at: self.at })?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed("a number"))
    }

    fn u32(&mut self, expected: &'static str) -> Result<u32> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.malformed(expected))
    }

    fn text(&mut self) -> Result<Name> {
        let length = self.number()?;
        let rest = &self.bytes[self.at..];
        if length > rest.len() as u64 {
            return Err(WireError::Truncated { at: self.bytes.len() });
        }
        let bytes = &rest[..length as usize];
        let text = std::str::from_utf8(bytes).map_err(|_| self.malformed("UTF-8 text"))?;
        let name = Name::from(text);
        self.at += bytes.len();
        Ok(name)
    }

    fn name(&mut self) -> Result<Name> {
        let number = self.number()?;
        let name = usize::try_from(number).ok().and_then(|n| self.names.get(n)).cloned();
        name.ok_or_else(|| self.malformed("the number of a name"))
    }

    /// One of the variants of an enum, by number.
    fn one_of<T: Copy>(&mut self, all: &[T], expected: &'static str) -> Result<T> {
        let byte = self.byte()?;
        all.get(usize::from(byte)).copied().ok_or_else(|| self.malformed(expected))
    }

    fn ty(&mut self) -> Result<Type> {
        self.one_of(&Type::ALL, "a type")
    }

    fn axis(&mut self) -> Result<Axis> {
        self.one_of(&Axis::ALL, "an axis")
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.number()?;
        let mut items = Vec::new();
        // No capacity is reserved: a wrong count ends with the input.
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn workgroup_size(&mut self) -> Result<WorkgroupSize> {
        const WHAT: &str = "a workgroup size";
        Ok(match self.byte()? {
            1 => self.u32(WHAT)?.into(),
            2 => [self.u32(WHAT)?, self.u32(WHAT)?].into(),
            3 => [self.u32(WHAT)?, self.u32(WHAT)?, self.u32(WHAT)?].into(),
            _ => return Err(self.malformed("a number of axes")),
        })
    }

    fn buffer(&mut self) -> Result<BufferDecl> {
        let name = self.name()?;
        let access = self.one_of(&BufferAccess::ALL, "an access")?;
        let element = self.one_of(&Element::ALL, "an element type")?;
        let decl = BufferDecl::storage(name, access, element);
        match self.number()? {
            0 => Ok(decl),
            count => match u32::try_from(count - 1) {
                Ok(count) => Ok(decl.with_count(count)),
                Err(_) => Err(self.malformed("a number of elements")),
            },
        }
    }

    fn function(&mut self) -> Result<Function> {
        Ok(Function {
            name: self.name()?,
            params: self.list(|d| Ok((d.name()?, d.ty()?)))?,
            result_type: self.ty()?,
            lets: self.list(|d| Ok((d.name()?, d.expr(1)?)))?,
            result: self.expr(1)?,
        })
    }
}

// Statements and expressions.
impl Decoder<'_> {
    fn body(&mut self) -> Result<Body> {
        let mut open: Vec<(Vec<Node>, Open)> = Vec::new();
        let mut nodes = Vec::new();
        loop {
            let tag = self.byte()?;
            if tag == node_tag::END || tag == node_tag::ELSE {
                let body = Body::from(std::mem::take(&mut nodes));
                let Some((outer, opened)) = open.pop() else {
                    return if tag == node_tag::END { Ok(body) } else { Err(self.malformed("an end")) };
                };
                nodes = outer;
                match (opened, tag) {
                    (Open::Then { cond }, node_tag::ELSE) => {
                        open.push((std::mem::take(&mut nodes), Open::Else { cond, then: body }));
                    }
                    (Open::Else { cond, then }, node_tag::END) => {
                        nodes.push(Node::If { cond, then, otherwise: body });
                    }
                    (Open::Loop { var, from, to }, node_tag::END) => {
                        nodes.push(Node::Loop { var, from, to, body });
                    }
                    (Open::Block, node_tag::END) => nodes.push(Node::Block { body }),
                    (Open::Region { generator, source_region }, node_tag::END) => {
                        nodes.push(Node::Region { generator, source_region, body });
                    }
                    _ => return Err(self.malformed("the right mark between bodies")),
                }
                continue;
            }
            self.statements += 1;
            if self.statements > limits::STATEMENTS {
                return Err(WireError::TooLarge { what: "statements", limit: limits::STATEMENTS });
            }
            match self.opening(tag)? {
                Some(opened) => open.push((std::mem::take(&mut nodes), opened)),
                None => nodes.push(self.simple(tag)?),
            }
        }
    }

    /// A statement with bodies, up to its first body; `None` if the tag is of another statement.
    fn opening(&mut self, tag: u8) -> Result<Option<Open>> {
        Ok(Some(match tag {
            node_tag::IF => Open::Then { cond: self.expr(1)? },
            node_tag::LOOP => Open::Loop { var: self.name()?, from: self.expr(1)?, to: self.expr(1)? },
            node_tag::BLOCK => Open::Block,
            node_tag::REGION => {
                let sourced = self.one_of(&[false, true], "0 or 1")?;
                let generator = self.name()?;
                Open::Region { generator, source_region: if sourced { Some(self.name()?) } else { None } }
            }
            _ => return Ok(None),
        }))
    }

    fn simple(&mut self, tag: u8) -> Result<Node> {
        Ok(match tag {
            node_tag::LET => Node::Let { name: self.name()?, value: self.expr(1)? },
            node_tag::ASSIGN => Node::Assign { name: self.name()?, value: self.expr(1)? },
            node_tag::STORE => {
                Node::Store { buffer: self.name()?, index: self.expr(1)?, value: self.expr(1)? }
            }
            node_tag::EVAL => Node::Eval { expr: self.expr(1)? },
            node_tag::BREAK => Node::Break,
            node_tag::CONTINUE => Node::Continue,
            node_tag::BARRIER => Node::Barrier { ordering: self.ordering()? },
            node_tag::RETURN => Node::Return,
            node_tag::TRAP => Node::Trap { tag: self.name()?, value: self.expr(1)? },
            _ => return Err(self.malformed("a statement")),
        })
    }

    fn ordering(&mut self) -> Result<MemoryOrdering> {
        self.one_of(&MemoryOrdering::ALL, "an ordering")
    }

    fn expr(&mut self, depth: u32) -> Result<Expr> {
        if depth > limits::DEPTH {
            let limit = u64::from(limits::DEPTH);
            return Err(WireError::TooLarge { what: "levels in an expression", limit });
        }
        let tag = self.byte()?;
        let next = depth + 1;
        Ok(match tag {
            expr_tag::LITERAL => self.literal()?,
            expr_tag::VAR => Expr::Var(self.name()?),
            expr_tag::LOAD => Expr::Load { buffer: self.name()?, index: self.operand(next)? },
            expr_tag::BUF_LEN => Expr::BufLen { buffer: self.name()? },
            expr_tag::INVOCATION_ID => Expr::InvocationId { axis: self.axis()? },
            expr_tag::WORKGROUP_ID => Expr::WorkgroupId { axis: self.axis()? },
            expr_tag::LOCAL_ID => Expr::LocalId { axis: self.axis()? },
            expr_tag::NUM_WORKGROUPS => Expr::NumWorkgroups { axis: self.axis()? },
            expr_tag::SUBGROUP_LOCAL_ID => Expr::SubgroupLocalId,
            expr_tag::SUBGROUP_SIZE => Expr::SubgroupSize,
            expr_tag::BIN_OP => Expr::BinOp {
                op: self.one_of(&BinOp::ALL, "a binary operator")?,
                left: self.operand(next)?,
                right: self.operand(next)?,
            },
            expr_tag::UN_OP => {
                Expr::UnOp { op: self.one_of(&UnOp::ALL, "a unary operator")?, operand: self.operand(next)? }
            }
            expr_tag::SELECT => Expr::Select {
                cond: self.operand(next)?,
                if_true: self.operand(next)?,
                if_false: self.operand(next)?,
            },
            expr_tag::CAST => Expr::Cast { to: self.ty()?, value: self.operand(next)? },
            expr_tag::BITCAST => Expr::Bitcast { to: self.ty()?, value: self.operand(next)? },
            expr_tag::FMA => {
                Expr::Fma { a: self.operand(next)?, b: self.operand(next)?, c: self.operand(next)? }
            }
            expr_tag::ATOMIC => self.atomic(next)?,
            expr_tag::UNIFORM_LOAD => Expr::UniformLoad {
                scope: self.one_of(&[Scope::Workgroup, Scope::Grid], "a scope")?,
                buffer: self.name()?,
                index: self.operand(next)?,
            },
            expr_tag::SUBGROUP_BALLOT => Expr::SubgroupBallot { cond: self.operand(next)? },
            expr_tag::SUBGROUP_SHUFFLE => {
                Expr::SubgroupShuffle { value: self.operand(next)?, lane: self.operand(next)? }
            }
            expr_tag::SUBGROUP_REDUCE => Expr::SubgroupReduce {
                op: self.one_of(&SubgroupOp::ALL, "a reduction")?,
                value: self.operand(next)?,
            },
            expr_tag::CALL => Expr::Call { function: self.name()?, args: self.list(|d| d.operand(next))? },
            _ => return Err(self.malformed("an expression")),
        })
    }

    fn operand(&mut self, depth: u32) -> Result<Operand> {
        self.expr(depth).map(Operand::from)
    }

    fn literal(&mut self) -> Result<Expr> {
        let ty = self.ty()?;
        let bits = self.number()?;
        let literal = Literal::from_bits(ty, bits);
        // Only one spelling of each constant is accepted, so that equal programs have equal bytes.
        if literal.bits() == bits {
            Ok(Expr::Literal(literal))
        } else {
            Err(self.malformed("a constant of its type"))
        }
    }

    fn atomic(&mut self, next: u32) -> Result<Expr> {
        let op = self.one_of(&AtomicOp::ALL, "an atomic")?;
        let ordering = self.ordering()?;
        let present = self.one_of(&[0u8, 1, 2, 3], "the operands of an atomic")?;
        let buffer = self.name()?;
        let index = self.operand(next)?;
        let expected = if present & 1 != 0 { Some(self.operand(next)?) } else { None };
        let value = if present & 2 != 0 { Some(self.operand(next)?) } else { None };
        Ok(Expr::Atomic { op, buffer, index, expected, value, ordering })
    }
}
