//! A naga function under construction: expressions, and the blocks in which they are computed.

use naga::{
    AddressSpace, ArraySize, BinaryOperator, Block, Expression, Function, GlobalVariable, Handle, Literal,
    LocalVariable, MathFunction, Module, Range, Scalar, ScalarKind, Span, Statement, Type, TypeInner,
    UnaryOperator, VectorSize,
};
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// A value of the function.
pub(super) type Value = Handle<Expression>;

/// The function, its module, and the blocks that are open.
pub(super) struct Builder {
    pub(super) module: Module,
    pub(super) function: Function,
    /// The blocks that are open, the innermost last.
    blocks: Vec<Block>,
    /// Expressions that are known everywhere, by what they are.
    literals: FxHashMap<(u8, u64), Value>,
    globals: FxHashMap<Handle<GlobalVariable>, Value>,
    locals: FxHashMap<Handle<LocalVariable>, Value>,
}

impl Builder {
    pub(super) fn new(module: Module) -> Builder {
        Builder {
            module,
            function: Function::default(),
            blocks: vec![Block::new()],
            literals: FxHashMap::default(),
            globals: FxHashMap::default(),
            locals: FxHashMap::default(),
        }
    }

    /// The body, when everything is written.
    pub(super) fn finish(&mut self) {
        self.function.body = self.blocks.pop().unwrap_or_default();
    }

    pub(super) fn ty(&mut self, inner: TypeInner) -> Handle<Type> {
        self.module.types.insert(Type { name: None, inner }, Span::UNDEFINED)
    }

    pub(super) fn scalar_type(&mut self, scalar: Scalar) -> Handle<Type> {
        self.ty(TypeInner::Scalar(scalar))
    }

    pub(super) fn vector_type(&mut self, size: VectorSize) -> Handle<Type> {
        self.ty(TypeInner::Vector { size, scalar: Scalar::U32 })
    }

    /// An array of scalars, or of atomics; without a count it is as long as what is bound.
    pub(super) fn array_type(&mut self, scalar: Scalar, is_atomic: bool, count: Option<u32>) -> Handle<Type> {
        let base = self.ty(if is_atomic { TypeInner::Atomic(scalar) } else { TypeInner::Scalar(scalar) });
        let size = match count {
            Some(count) => ArraySize::Constant(NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)),
            None => ArraySize::Dynamic,
        };
        self.ty(TypeInner::Array { base, size, stride: u32::from(scalar.width) })
    }

    /// An array of vectors of four, as long as what is bound.
    pub(super) fn vector_array_type(&mut self, scalar: Scalar) -> Handle<Type> {
        let base = self.ty(TypeInner::Vector { size: VectorSize::Quad, scalar });
        self.ty(TypeInner::Array { base, size: ArraySize::Dynamic, stride: 16 })
    }

    pub(super) fn global(&mut self, variable: GlobalVariable) -> Handle<GlobalVariable> {
        self.module.global_variables.append(variable, Span::UNDEFINED)
    }

    /// Memory of a workgroup.
    pub(super) fn workgroup(&mut self, name: &str, ty: Handle<Type>) -> Handle<GlobalVariable> {
        self.global(GlobalVariable {
            name: Some(name.to_owned()),
            space: AddressSpace::WorkGroup,
            binding: None,
            ty,
            init: None,
            memory_decorations: naga::MemoryDecorations::empty(),
        })
    }

    /// A variable of the invocation. It starts as zero.
    pub(super) fn local(&mut self, ty: Handle<Type>) -> Handle<LocalVariable> {
        self.function.local_variables.append(LocalVariable { name: None, ty, init: None }, Span::UNDEFINED)
    }

    /// An expression that is known without being computed.
    pub(super) fn known(&mut self, expression: Expression) -> Value {
        self.function.expressions.append(expression, Span::UNDEFINED)
    }

    /// An expression, computed here.
    pub(super) fn compute(&mut self, expression: Expression) -> Value {
        let value = self.known(expression);
        let block = self.blocks.last_mut();
        let Some(block) = block else { return value };
        if let Some(Statement::Emit(range)) = block.last_mut()
            && let Some((first, last)) = range.first_and_last()
            && last.index() + 1 == value.index()
        {
            *range = Range::new_from_bounds(first, value);
        } else {
            block.push(Statement::Emit(Range::new_from_bounds(value, value)), Span::UNDEFINED);
        }
        value
    }

    pub(super) fn push(&mut self, statement: Statement) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(statement, Span::UNDEFINED);
        }
    }

    /// How many blocks are open in each other.
    pub(super) fn depth(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn open(&mut self) {
        self.blocks.push(Block::new());
    }

    pub(super) fn close(&mut self) -> Block {
        self.blocks.pop().unwrap_or_default()
    }

    fn literal(&mut self, key: (u8, u64), literal: Literal) -> Value {
        if let Some(known) = self.literals.get(&key) {
            return *known;
        }
        let value = self.known(Expression::Literal(literal));
        self.literals.insert(key, value);
        value
    }

    pub(super) fn u32(&mut self, number: u32) -> Value {
        self.literal((0, u64::from(number)), Literal::U32(number))
    }

    pub(super) fn i32(&mut self, number: i32) -> Value {
        self.literal((1, number as u64), Literal::I32(number))
    }

    pub(super) fn bool(&mut self, truth: bool) -> Value {
        self.literal((2, u64::from(truth)), Literal::Bool(truth))
    }

    pub(super) fn u64(&mut self, number: u64) -> Value {
        self.literal((3, number), Literal::U64(number))
    }

    pub(super) fn i64(&mut self, number: i64) -> Value {
        self.literal((4, number as u64), Literal::I64(number))
    }

    pub(super) fn global_value(&mut self, global: Handle<GlobalVariable>) -> Value {
        if let Some(known) = self.globals.get(&global) {
            return *known;
        }
        let value = self.known(Expression::GlobalVariable(global));
        self.globals.insert(global, value);
        value
    }

    pub(super) fn local_value(&mut self, local: Handle<LocalVariable>) -> Value {
        if let Some(known) = self.locals.get(&local) {
            return *known;
        }
        let value = self.known(Expression::LocalVariable(local));
        self.locals.insert(local, value);
        value
    }

    pub(super) fn load(&mut self, pointer: Value) -> Value {
        self.compute(Expression::Load { pointer })
    }

    pub(super) fn load_local(&mut self, local: Handle<LocalVariable>) -> Value {
        let pointer = self.local_value(local);
        self.load(pointer)
    }

    pub(super) fn store(&mut self, pointer: Value, value: Value) {
        self.push(Statement::Store { pointer, value });
    }

    pub(super) fn store_local(&mut self, local: Handle<LocalVariable>, value: Value) {
        let pointer = self.local_value(local);
        self.store(pointer, value);
    }

    pub(super) fn access(&mut self, base: Value, index: Value) -> Value {
        self.compute(Expression::Access { base, index })
    }

    pub(super) fn access_index(&mut self, base: Value, index: u32) -> Value {
        self.compute(Expression::AccessIndex { base, index })
    }

    pub(super) fn binary(&mut self, op: BinaryOperator, left: Value, right: Value) -> Value {
        self.compute(Expression::Binary { op, left, right })
    }

    pub(super) fn unary(&mut self, op: UnaryOperator, expr: Value) -> Value {
        self.compute(Expression::Unary { op, expr })
    }

    pub(super) fn select(&mut self, condition: Value, accept: Value, reject: Value) -> Value {
        self.compute(Expression::Select { condition, accept, reject })
    }

    pub(super) fn math(&mut self, fun: MathFunction, arg: Value, arg1: Option<Value>) -> Value {
        self.compute(Expression::Math { fun, arg, arg1, arg2: None, arg3: None })
    }

    /// The same bits as another kind of number of the same width.
    pub(super) fn bits_as(&mut self, expr: Value, kind: ScalarKind) -> Value {
        self.compute(Expression::As { expr, kind, convert: None })
    }

    /// A conversion to a number.
    pub(super) fn convert(&mut self, expr: Value, to: Scalar) -> Value {
        self.compute(Expression::As { expr, kind: to.kind, convert: Some(to.width) })
    }

    pub(super) fn not(&mut self, truth: Value) -> Value {
        self.unary(UnaryOperator::LogicalNot, truth)
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::Add, a, b)
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::Subtract, a, b)
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::Multiply, a, b)
    }

    pub(super) fn and(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::And, a, b)
    }

    pub(super) fn or(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::InclusiveOr, a, b)
    }

    pub(super) fn xor(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::ExclusiveOr, a, b)
    }

    pub(super) fn less(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::Less, a, b)
    }

    pub(super) fn equal(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::Equal, a, b)
    }

    /// Both hold. They are computed in any case.
    pub(super) fn both(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::And, a, b)
    }

    pub(super) fn either(&mut self, a: Value, b: Value) -> Value {
        self.binary(BinaryOperator::InclusiveOr, a, b)
    }

    /// Shifts by a `u32` that is less than the width.
    pub(super) fn shl(&mut self, a: Value, by: Value) -> Value {
        self.binary(BinaryOperator::ShiftLeft, a, by)
    }

    pub(super) fn shr(&mut self, a: Value, by: Value) -> Value {
        self.binary(BinaryOperator::ShiftRight, a, by)
    }

    pub(super) fn shl_by(&mut self, a: Value, by: u32) -> Value {
        let by = self.u32(by);
        self.shl(a, by)
    }

    pub(super) fn shr_by(&mut self, a: Value, by: u32) -> Value {
        let by = self.u32(by);
        self.shr(a, by)
    }
}
