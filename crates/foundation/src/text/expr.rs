//! The expression parser. It keeps its own stack, so parentheses may nest as deep as the text is long.

use super::lex::Kind;
use super::number;
use super::parse::{Parsed, Parser};
use crate::diagnostic::Problem;
use crate::ops::{AtomicOp, Axis, BinOp, MemoryOrdering, Scope, SubgroupOp, UnOp};
use crate::validate::limits;
use crate::{Expr, Literal, Name, Operand, Span, Type, is_reserved};

/// A finished operand.
struct Built {
    expr: Expr,
    depth: u32,
    span: Span,
}

/// What a list of arguments belongs to.
enum Callee {
    Unary(UnOp),
    Binary(BinOp),
    Select,
    Fma,
    /// With the number that the inner `max` takes: it ends before the third argument begins.
    Clamp(usize),
    Cast(Type),
    Bitcast(Type),
    Ballot,
    Shuffle,
    Reduce(SubgroupOp),
    Atomic {
        op: AtomicOp,
        buffer: Name,
        ordering: MemoryOrdering,
    },
    UniformLoad {
        scope: Scope,
        buffer: Name,
    },
    Function(Name),
}

/// Something that waits for an operand. `start` is where it begins, the other spans are open brackets.
enum Frame {
    Group(Span),
    Index {
        buffer: Name,
        start: Span,
        open: Span,
    },
    /// The index of the element that an atomic or a uniform load names: its first argument.
    Place {
        callee: Callee,
        start: Span,
        open: Span,
        bracket: Span,
    },
    Call {
        callee: Callee,
        args: Vec<Built>,
        start: Span,
        open: Span,
    },
    Unary(UnOp, Span),
    Binary(BinOp, Built),
}

/// What the parser does next.
enum Step {
    /// An operand must follow.
    Operand,
    /// This operand is complete.
    Value(Built),
}

impl<'a> Parser<'a> {
    /// An expression, as far as it reaches.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let mut frames = Vec::new();
        let mut too_deep = false;
        let mut step = Step::Operand;
        loop {
            step = match step {
                Step::Operand => self.operand(&mut frames)?,
                Step::Value(value) => match self.after_operand(value, &mut frames, &mut too_deep)? {
                    Ok(step) => step,
                    Err(done) => return Ok(done.expr),
                },
            };
        }
    }

    /// Records a finished expression. One that is too deep is reported once and replaced by a leaf.
    fn built(&mut self, expr: Expr, depth: u32, span: Span, too_deep: &mut bool) -> Built {
        self.source.exprs.push(span);
        if depth > limits::DEPTH {
            if !*too_deep {
                self.report(Problem::TooDeep, span);
                *too_deep = true;
            }
            return Built { expr: Expr::u32(0), depth: 1, span };
        }
        Built { expr, depth, span }
    }

    fn leaf(&mut self, expr: Expr, span: Span) -> Parsed<Step> {
        self.source.exprs.push(span);
        Ok(Step::Value(Built { expr, depth: 1, span }))
    }

    /// Reads a leaf, or opens whatever begins here.
    fn operand(&mut self, frames: &mut Vec<Frame>) -> Parsed<Step> {
        let token = self.token();
        let text = self.text_of(token);
        match token.kind {
            Kind::Number => {
                self.advance();
                self.number(text, false, token.span)
            }
            Kind::Word => self.word_operand(text, token.span, frames),
            Kind::Sign => match text {
                "(" => {
                    self.advance();
                    frames.push(Frame::Group(token.span));
                    Ok(Step::Operand)
                }
                "-" => {
                    self.advance();
                    let literal = self.token();
                    let span = token.span.to(literal.span);
                    match (literal.kind, self.text_of(literal)) {
                        (Kind::Number, digits) => {
                            self.advance();
                            self.number(digits, true, span)
                        }
                        (Kind::Word, "inf") => {
                            self.advance();
                            self.leaf(Expr::f32(f32::NEG_INFINITY), span)
                        }
                        (Kind::Word, "nan") => {
                            self.advance();
                            self.leaf(Expr::f32(f32::NAN), span)
                        }
                        _ => {
                            frames.push(Frame::Unary(UnOp::Neg, token.span));
                            Ok(Step::Operand)
                        }
                    }
                }
                "!" | "~" => {
                    self.advance();
                    let op = if text == "!" { UnOp::Not } else { UnOp::BitNot };
                    frames.push(Frame::Unary(op, token.span));
                    Ok(Step::Operand)
                }
                _ => Err(self.unexpected("an expression")),
            },
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn number(&mut self, text: &str, negative: bool, span: Span) -> Parsed<Step> {
        match number::parse(text, negative) {
            Ok(literal) => self.leaf(Expr::Literal(literal), span),
            Err(problem) => {
                // The place of the number is clear, so the rest of the expression can still be read.
                self.report(problem, span);
                self.leaf(Expr::Literal(Literal::U32(0)), span)
            }
        }
    }

    fn word_operand(&mut self, word: &'a str, span: Span, frames: &mut Vec<Frame>) -> Parsed<Step> {
        if !is_reserved(word) {
            return self.name_operand(word, span, frames);
        }
        let leaf = match word {
            "true" => Some(Expr::bool(true)),
            "false" => Some(Expr::bool(false)),
            "inf" => Some(Expr::f32(f32::INFINITY)),
            "nan" => Some(Expr::f32(f32::NAN)),
            "subgroup_lane" => Some(Expr::SubgroupLocalId),
            "subgroup_size" => Some(Expr::SubgroupSize),
            _ => None,
        };
        if let Some(expr) = leaf {
            self.advance();
            return self.leaf(expr, span);
        }
        match word {
            "global_id" => return self.id(|axis| Expr::InvocationId { axis }),
            "workgroup_id" => return self.id(|axis| Expr::WorkgroupId { axis }),
            "local_id" => return self.id(|axis| Expr::LocalId { axis }),
            "num_workgroups" => return self.id(|axis| Expr::NumWorkgroups { axis }),
            "len" => return self.len(),
            _ => {}
        }
        match self.builtin(word)? {
            Some(callee) => self.open_call(callee, span, frames),
            None => Err(self.unexpected("an expression")),
        }
    }

    /// A variable, an element of a buffer or a call of a function.
    fn name_operand(&mut self, word: &'a str, span: Span, frames: &mut Vec<Frame>) -> Parsed<Step> {
        self.advance();
        let name = self.intern(word);
        if self.is_sign("(") {
            return self.open_call(Callee::Function(name), span, frames);
        }
        if self.is_sign("[") {
            let open = self.advance().span;
            frames.push(Frame::Index { buffer: name, start: span, open });
            return Ok(Step::Operand);
        }
        self.leaf(Expr::Var(name), span)
    }

    fn id(&mut self, build: impl FnOnce(Axis) -> Expr) -> Parsed<Step> {
        let start = self.advance().span;
        self.expect(".", "`.x`, `.y` or `.z`")?;
        let axis = match self.word() {
            "x" => Axis::X,
            "y" => Axis::Y,
            "z" => Axis::Z,
            _ => return Err(self.unexpected("`x`, `y` or `z`")),
        };
        let span = start.to(self.advance().span);
        self.leaf(build(axis), span)
    }

    fn len(&mut self) -> Parsed<Step> {
        let start = self.advance().span;
        self.expect("(", "`(`")?;
        let buffer = self.buffer_name()?;
        let end = self.expect(")", "`)`")?;
        self.leaf(Expr::BufLen { buffer }, start.to(end))
    }

    fn buffer_name(&mut self) -> Parsed<Name> {
        let word = self.word();
        if word.is_empty() || is_reserved(word) {
            return Err(self.unexpected("the name of a buffer"));
        }
        self.advance();
        Ok(self.intern(word))
    }

    /// The builtin function with this name; the word is passed over if it is one.
    fn builtin(&mut self, word: &str) -> Parsed<Option<Callee>> {
        let unary = UnOp::ALL.into_iter().find(|op| !op.is_prefix() && op.spelling() == word);
        let binary = BinOp::ALL.into_iter().find(|op| op.precedence().is_none() && op.spelling() == word);
        let reduce = SubgroupOp::ALL.into_iter().find(|op| op.spelling() == word);
        let atomic = AtomicOp::ALL.into_iter().find(|op| op.spelling() == word);
        let callee = match word {
            "select" => Callee::Select,
            "fma" => Callee::Fma,
            "clamp" => Callee::Clamp(0),
            "subgroup_ballot" => Callee::Ballot,
            "subgroup_shuffle" => Callee::Shuffle,
            "bitcast" => {
                self.advance();
                self.expect("<", "`<`")?;
                let to = self.value_type()?;
                self.expect(">", "`>`")?;
                return Ok(Some(Callee::Bitcast(to)));
            }
            // The buffer is known once the call has been opened.
            "uniform_load" => Callee::UniformLoad { scope: Scope::Grid, buffer: "".into() },
            _ => match (unary, binary, reduce, atomic, Type::from_name(word)) {
                (Some(op), ..) => Callee::Unary(op),
                (_, Some(op), ..) => Callee::Binary(op),
                (_, _, Some(op), ..) => Callee::Reduce(op),
                (_, _, _, Some(op), _) => {
                    Callee::Atomic { op, buffer: "".into(), ordering: MemoryOrdering::Relaxed }
                }
                (.., Some(ty)) => Callee::Cast(ty),
                _ => return Ok(None),
            },
        };
        self.advance();
        Ok(Some(callee))
    }

    fn open_call(&mut self, callee: Callee, start: Span, frames: &mut Vec<Frame>) -> Parsed<Step> {
        let open = self.expect("(", "`(`")?;
        match callee {
            Callee::Atomic { op, ordering, .. } => {
                let (buffer, bracket) = self.place()?;
                let callee = Callee::Atomic { op, buffer, ordering };
                frames.push(Frame::Place { callee, start, open, bracket });
            }
            Callee::UniformLoad { .. } => {
                let scope = match self.word() {
                    "grid" => Scope::Grid,
                    "workgroup" => Scope::Workgroup,
                    _ => return Err(self.unexpected("`grid` or `workgroup`")),
                };
                self.advance();
                self.expect(",", "`,`")?;
                let (buffer, bracket) = self.place()?;
                frames.push(Frame::Place {
                    callee: Callee::UniformLoad { scope, buffer },
                    start,
                    open,
                    bracket,
                });
            }
            callee if self.is_sign(")") => {
                // No arguments: only a function of the program can take none.
                let end = self.advance().span;
                let mut too_deep = false;
                let built = self.finish_call(callee, Vec::new(), start.to(end), &mut too_deep)?;
                return Ok(Step::Value(built));
            }
            callee => frames.push(Frame::Call { callee, args: Vec::new(), start, open }),
        }
        Ok(Step::Operand)
    }

    /// `name [`, the beginning of an element.
    fn place(&mut self) -> Parsed<(Name, Span)> {
        let buffer = self.buffer_name()?;
        let bracket = self.expect("[", "`[`")?;
        Ok((buffer, bracket))
    }

    fn infix(&self) -> Option<BinOp> {
        let token = self.token();
        if token.kind != Kind::Sign {
            return None;
        }
        let op = match self.text_of(token) {
            "+" => BinOp::Add,
            "-" => BinOp::Sub,
            "*" => BinOp::Mul,
            "/" => BinOp::Div,
            "%" => BinOp::Rem,
            "&" => BinOp::BitAnd,
            "|" => BinOp::BitOr,
            "^" => BinOp::BitXor,
            "<<" => BinOp::Shl,
            ">>" => BinOp::Shr,
            "==" => BinOp::Eq,
            "!=" => BinOp::Ne,
            "<" => BinOp::Lt,
            "<=" => BinOp::Le,
            ">" => BinOp::Gt,
            ">=" => BinOp::Ge,
            "&&" => BinOp::And,
            "||" => BinOp::Or,
            _ => return None,
        };
        Some(op)
    }

    /// Decides what a complete operand belongs to. The inner `Err` is the complete expression.
    fn after_operand(
        &mut self,
        mut value: Built,
        frames: &mut Vec<Frame>,
        too_deep: &mut bool,
    ) -> Parsed<Result<Step, Built>> {
        let infix = self.infix();
        let binding = infix.and_then(BinOp::precedence).unwrap_or(0);
        // Everything on the stack that binds at least as tightly takes the operand.
        loop {
            value = match frames.pop() {
                Some(Frame::Unary(op, start)) => {
                    let span = start.to(value.span);
                    let depth = value.depth + 1;
                    self.built(Expr::unary(op, value.expr), depth, span, too_deep)
                }
                Some(Frame::Binary(op, left)) if op.precedence() >= Some(binding) => {
                    if op.is_comparison() && infix.is_some_and(BinOp::is_comparison) {
                        let span = self.token().span;
                        return Err(self.report(Problem::ChainedComparison, span));
                    }
                    let span = left.span.to(value.span);
                    let depth = left.depth.max(value.depth) + 1;
                    self.built(Expr::binary(op, left.expr, value.expr), depth, span, too_deep)
                }
                Some(frame) => {
                    frames.push(frame);
                    break;
                }
                None => break,
            };
        }
        if let Some(op) = infix {
            self.advance();
            frames.push(Frame::Binary(op, value));
            return Ok(Ok(Step::Operand));
        }
        match frames.pop() {
            None => Ok(Err(value)),
            Some(Frame::Group(open)) => {
                let end = self.expect_closing(open, ")", "`)` or an operator")?;
                Ok(Ok(Step::Value(Built { span: open.to(end), ..value })))
            }
            Some(Frame::Index { buffer, start, open }) => {
                let end = self.expect_closing(open, "]", "`]` or an operator")?;
                let load = Expr::Load { buffer, index: value.expr.into() };
                Ok(Ok(Step::Value(self.built(load, value.depth + 1, start.to(end), too_deep))))
            }
            Some(Frame::Place { callee, start, open, bracket }) => {
                self.expect_closing(bracket, "]", "`]` or an operator")?;
                self.next_argument(callee, vec![value], [start, open], frames, too_deep).map(Ok)
            }
            Some(Frame::Call { callee, mut args, start, open }) => {
                args.push(value);
                self.next_argument(callee, args, [start, open], frames, too_deep).map(Ok)
            }
            Some(Frame::Unary(..) | Frame::Binary(..)) => unreachable!("taken by the loop above"),
        }
    }

    /// After an argument: another one, an ordering, or the end of the call.
    fn next_argument(
        &mut self,
        mut callee: Callee,
        args: Vec<Built>,
        [start, open]: [Span; 2],
        frames: &mut Vec<Frame>,
        too_deep: &mut bool,
    ) -> Parsed<Step> {
        if let (Callee::Clamp(slot), 2) = (&mut callee, args.len()) {
            *slot = self.source.exprs.len();
            self.source.exprs.push(start);
        }
        if self.accept(",") {
            let named = MemoryOrdering::from_atomic_name(self.word());
            match (&mut callee, named) {
                (Callee::Atomic { ordering, .. }, Some(named)) => {
                    self.advance();
                    *ordering = named;
                }
                _ => {
                    frames.push(Frame::Call { callee, args, start, open });
                    return Ok(Step::Operand);
                }
            }
        }
        let end = self.expect_closing(open, ")", "`,`, `)` or an operator")?;
        Ok(Step::Value(self.finish_call(callee, args, start.to(end), too_deep)?))
    }

    fn finish_call(
        &mut self,
        callee: Callee,
        args: Vec<Built>,
        span: Span,
        too_deep: &mut bool,
    ) -> Parsed<Built> {
        let arity = match &callee {
            Callee::Function(_) => args.len(),
            Callee::Unary(_) | Callee::Cast(_) | Callee::Bitcast(_) | Callee::Ballot | Callee::Reduce(_) => 1,
            Callee::UniformLoad { .. } => 1,
            Callee::Binary(_) | Callee::Shuffle => 2,
            Callee::Select | Callee::Fma | Callee::Clamp(_) => 3,
            Callee::Atomic { op, .. } => 1 + usize::from(op.takes_expected()) + usize::from(op.takes_value()),
        };
        if args.len() != arity {
            let function = callee.name();
            let problem = Problem::BuiltinArguments { function, expected: arity, found: args.len() };
            self.report(problem, span);
            self.source.exprs.push(span);
            return Ok(Built { expr: Expr::u32(0), depth: 1, span });
        }
        let mut depth = 1 + args.iter().map(|arg| arg.depth).max().unwrap_or(0);
        let outer = args.iter().take(2).map(|arg| arg.depth).max().unwrap_or(0);
        let mut args = args.into_iter().map(|arg| Operand::from(arg.expr));
        let mut next = || args.next().unwrap_or_else(|| Expr::u32(0).into());
        let expr = match callee {
            Callee::Unary(op) => Expr::UnOp { op, operand: next() },
            Callee::Binary(op) => Expr::BinOp { op, left: next(), right: next() },
            Callee::Select => Expr::Select { cond: next(), if_true: next(), if_false: next() },
            Callee::Fma => Expr::Fma { a: next(), b: next(), c: next() },
            Callee::Clamp(slot) => {
                let max = Expr::BinOp { op: BinOp::Max, left: next(), right: next() };
                self.source.exprs[slot] = span;
                // The arguments of `max` stand one level deeper than the third one.
                depth = depth.max(outer + 2);
                Expr::BinOp { op: BinOp::Min, left: max.into(), right: next() }
            }
            Callee::Cast(to) => Expr::Cast { to, value: next() },
            Callee::Bitcast(to) => Expr::Bitcast { to, value: next() },
            Callee::Ballot => Expr::SubgroupBallot { cond: next() },
            Callee::Shuffle => Expr::SubgroupShuffle { value: next(), lane: next() },
            Callee::Reduce(op) => Expr::SubgroupReduce { op, value: next() },
            Callee::Atomic { op, buffer, ordering } => Expr::Atomic {
                op,
                buffer,
                index: next(),
                expected: op.takes_expected().then(&mut next),
                value: op.takes_value().then(&mut next),
                ordering,
            },
            Callee::UniformLoad { scope, buffer } => Expr::UniformLoad { scope, buffer, index: next() },
            Callee::Function(function) => Expr::Call { function, args: args.collect() },
        };
        Ok(self.built(expr, depth, span, too_deep))
    }
}

impl Callee {
    fn name(&self) -> &'static str {
        match self {
            Callee::Unary(op) => op.spelling(),
            Callee::Binary(op) => op.spelling(),
            Callee::Select => "select",
            Callee::Fma => "fma",
            Callee::Clamp(_) => "clamp",
            Callee::Cast(to) => to.name(),
            Callee::Bitcast(_) => "bitcast",
            Callee::Ballot => "subgroup_ballot",
            Callee::Shuffle => "subgroup_shuffle",
            Callee::Reduce(op) => op.spelling(),
            Callee::Atomic { op, .. } => op.spelling(),
            Callee::UniformLoad { .. } => "uniform_load",
            Callee::Function(_) => "function",
        }
    }
}
