//! Buffers: where they are, and loads, stores and atomics that stay inside them.
//!
//! Memory is made of words. Narrow elements share words: a store clears its bits and sets them, atomically, so that
//! neighbours do not race. A buffer that has atomics in a kernel is accessed by atomics only.

use super::{Emitter, FIRST_SLOT, Value};
use naga::{
    AddressSpace, AtomicFunction, Block, Expression, GlobalVariable, Handle, LocalVariable,
    MemoryDecorations, PredeclaredType, ResourceBinding, Scalar, ScalarKind, Statement, StorageAccess,
    SwitchCase, SwitchValue,
};
use vyre_driver::{Error, Result};
use vyre_foundation::{AtomicOp, BufferAccess, BufferDecl, Element, Type};
use vyre_lower::{Item, ValueId};

/// Where a buffer is.
pub(super) struct Place {
    home: Home,
    element: Element,
    /// Where it begins in what is bound; none at the beginning.
    offset: Option<Value>,
    length: Value,
    /// Its length, where the program says so.
    count: Option<u32>,
}

enum Home {
    /// The windows of a slot.
    Storage(Vec<Handle<GlobalVariable>>),
    Workgroup(Handle<GlobalVariable>),
    Local(Handle<LocalVariable>),
}

/// Whether an element is inside its buffer.
#[derive(Clone, Copy)]
pub(super) enum Inside {
    Always,
    Never,
    /// Where a condition holds.
    Where(Value),
}

/// What an access does with the pointer of a word; it may give a value.
type WithPointer<'a> = &'a mut dyn FnMut(&mut Emitter<'_>, Value) -> Option<Value>;

/// The scalar of which the memory of a buffer is made.
fn word(element: Element) -> Scalar {
    match element {
        Element::I32 => Scalar::I32,
        Element::U64 => Scalar::U64,
        Element::I64 => Scalar::I64,
        _ => Scalar::U32,
    }
}

impl Emitter<'_> {
    /// Declares the memory of all buffers. Gives the first binding that is left.
    pub(super) fn place_buffers(&mut self) -> u32 {
        let mut atomic = vec![false; self.kernel.buffers.len()];
        let items = self.kernel.region_ids().flat_map(|region| self.kernel.region(region));
        for item in items {
            match self.kernel.item(item) {
                Item::Atomic { buffer, .. } => atomic[buffer as usize] = true,
                Item::Store { buffer, .. } if self.kernel.buffers[buffer as usize].element().size() < 4 => {
                    atomic[buffer as usize] = true;
                }
                _ => {}
            }
        }
        let (mut slot, mut binding) = (0, 1);
        let kernel = self.kernel;
        for (buffer, is_atomic) in kernel.buffers.iter().zip(atomic) {
            let place = match buffer.access() {
                BufferAccess::Workgroup => self.place_in_workgroup(buffer, is_atomic),
                BufferAccess::Local => self.place_locally(buffer),
                _ => {
                    let windows = self.form.windows.get(slot).copied().unwrap_or(1);
                    let place = self.place_in_storage(buffer, is_atomic, slot as u32, (binding, windows));
                    (slot, binding) = (slot + 1, binding + windows);
                    place
                }
            };
            self.places.push(place);
        }
        binding
    }

    fn place_in_storage(
        &mut self,
        buffer: &BufferDecl,
        is_atomic: bool,
        slot: u32,
        (binding, windows): (u32, u32),
    ) -> Place {
        let element = buffer.element();
        let ty = match self.grouped[self.places.len()] {
            true => self.b.vector_array_type(word(element)),
            false => self.b.array_type(word(element), is_atomic, None),
        };
        let access = match buffer.access().allows_store() {
            true => StorageAccess::LOAD | StorageAccess::STORE,
            false => StorageAccess::LOAD,
        };
        let window = |emitter: &mut Self, binding: u32| {
            emitter.b.global(GlobalVariable {
                name: Some(buffer.name().to_string()),
                space: AddressSpace::Storage { access },
                binding: Some(ResourceBinding { group: 0, binding }),
                ty,
                init: None,
                memory_decorations: MemoryDecorations::empty(),
            })
        };
        let windows = (binding..binding + windows).map(|binding| window(self, binding)).collect();
        let is_shifted = self.form.shifted.get(slot as usize).copied().unwrap_or(true);
        let offset = is_shifted.then(|| self.parameter(FIRST_SLOT + 2 * slot));
        let length = match buffer.count() {
            Some(count) => self.b.u32(count),
            None => self.parameter(FIRST_SLOT + 1 + 2 * slot),
        };
        let home = Home::Storage(windows);
        Place { home, element, offset, length, count: buffer.count() }
    }

    fn place_in_workgroup(&mut self, buffer: &BufferDecl, is_atomic: bool) -> Place {
        let (element, count) = (buffer.element(), buffer.count().unwrap_or(0));
        let per_word = 4u32.checked_div(element.size() as u32).unwrap_or(1).max(1);
        let ty = self.b.array_type(word(element), is_atomic, Some(count.div_ceil(per_word).max(1)));
        let home = Home::Workgroup(self.b.workgroup(buffer.name(), ty));
        Place { home, element, offset: None, length: self.b.u32(count), count: Some(count) }
    }

    /// An array of the invocation. Nobody sees its bytes, so each element has a word of its own.
    fn place_locally(&mut self, buffer: &BufferDecl) -> Place {
        let (element, count) = (buffer.element(), buffer.count().unwrap_or(0));
        let ty = self.b.array_type(word(element), false, Some(count.max(1)));
        let home = Home::Local(self.b.local(ty));
        Place { home, element, offset: None, length: self.b.u32(count), count: Some(count) }
    }

    /// How many elements a buffer has.
    pub(super) fn length(&self, buffer: u32) -> Value {
        self.places[buffer as usize].length
    }

    /// The one window of a slot that has one.
    pub(super) fn only_window(&self, buffer: u32) -> Option<Handle<GlobalVariable>> {
        match &self.places[buffer as usize].home {
            Home::Storage(windows) => windows.first().copied(),
            _ => None,
        }
    }

    /// Whether an index is inside a buffer.
    pub(super) fn inside(&mut self, buffer: u32, index: ValueId) -> Result<Inside> {
        let Place { count, length, .. } = self.places[buffer as usize];
        // naga refuses an index that it sees is outside.
        let constant = self.constants[index.index()].map(|literal| literal.bits() as u32);
        if let (Some(index), Some(count)) = (constant, count) {
            return Ok(if index < count { Inside::Always } else { Inside::Never });
        }
        if self.kernel.walks_inside(buffer, index) {
            return Ok(Inside::Always);
        }
        let index = self.get(index)?;
        Ok(Inside::Where(self.b.less(index, length)))
    }

    /// Does something with the word of an element. With several windows the element decides which it is in.
    fn with_word(
        &mut self,
        buffer: u32,
        element: Value,
        give: Option<Scalar>,
        act: WithPointer<'_>,
    ) -> Option<Value> {
        let place = &self.places[buffer as usize];
        let size = place.element.size() as u32;
        let offset = place.offset;
        let is_local = matches!(place.home, Home::Local(_));
        let windows = match &place.home {
            Home::Local(variable) => {
                let base = *variable;
                let base = self.b.local_value(base);
                let pointer = self.b.access(base, element);
                return act(self, pointer);
            }
            Home::Workgroup(variable) => vec![*variable],
            Home::Storage(windows) => windows.clone(),
        };
        let mut index = offset.map_or(element, |offset| self.b.add(element, offset));
        if size < 4 && !is_local {
            index = self.b.shr_by(index, if size == 1 { 2 } else { 1 });
        }
        if let [window] = windows[..] {
            let base = self.b.global_value(window);
            let pointer = self.b.access(base, index);
            return act(self, pointer);
        }
        let bits = self.form.window_bits - if size == 8 { 3 } else { 2 };
        let which = self.b.shr_by(index, bits);
        let mask = self.b.u32((1 << bits) - 1);
        let within = self.b.and(index, mask);
        let result = give.map(|scalar| {
            let ty = self.b.scalar_type(scalar);
            self.b.local(ty)
        });
        let last = windows.len() - 1;
        let case = |(number, window): (usize, Handle<GlobalVariable>)| {
            self.b.open();
            let base = self.b.global_value(window);
            let pointer = self.b.access(base, within);
            if let (Some(value), Some(result)) = (act(self, pointer), result) {
                self.b.store_local(result, value);
            }
            let value = if number == last { SwitchValue::Default } else { SwitchValue::U32(number as u32) };
            SwitchCase { value, body: self.b.close(), fall_through: false }
        };
        let cases = windows.into_iter().enumerate().map(case).collect();
        self.b.push(Statement::Switch { selector: which, cases });
        result.map(|result| self.b.load_local(result))
    }

    /// The element at an index, or zero outside.
    pub(super) fn load(&mut self, buffer: u32, index: ValueId) -> Result<Value> {
        if self.grouped[buffer as usize]
            && let Some(value) = self.load_of_group(buffer, index)?
        {
            return Ok(value);
        }
        let element = self.places[buffer as usize].element;
        let nothing = self.zero_of(element.value_type());
        let inside = self.inside(buffer, index)?;
        let mut index = self.get(index)?;
        match inside {
            Inside::Always => {}
            Inside::Never => return Ok(nothing),
            Inside::Where(inside) => {
                let zero = self.b.u32(0);
                index = self.b.select(inside, index, zero);
            }
        }
        let scalar = word(element);
        let loaded = self
            .with_word(buffer, index, Some(scalar), &mut |emitter, pointer| Some(emitter.b.load(pointer)));
        let loaded = loaded.ok_or_else(|| Error::Internal("a load without a value".to_owned()))?;
        let value = self.widen(buffer, index, loaded);
        Ok(match inside {
            Inside::Where(inside) => self.b.select(inside, value, nothing),
            _ => value,
        })
    }

    /// Where the bits of a narrow element begin in its word.
    fn first_bit(&mut self, buffer: u32, index: Value) -> Value {
        let place = &self.places[buffer as usize];
        let is_byte = place.element.size() == 1;
        let offset = place.offset;
        let index = offset.map_or(index, |offset| self.b.add(index, offset));
        let mask = self.b.u32(if is_byte { 3 } else { 1 });
        let part = self.b.and(index, mask);
        self.b.shl_by(part, if is_byte { 3 } else { 4 })
    }

    /// A narrow element as a value, from its word.
    fn widen(&mut self, buffer: u32, index: Value, loaded: Value) -> Value {
        let place = &self.places[buffer as usize];
        let element = place.element;
        if element.size() >= 4 {
            return loaded;
        }
        let is_local = matches!(place.home, Home::Local(_));
        let shifted = if is_local {
            loaded
        } else {
            let first = self.first_bit(buffer, index);
            self.b.shr(loaded, first)
        };
        let bits = 8 * element.size() as u32;
        if element.value_type() == Type::I32 {
            let top = self.b.shl_by(shifted, 32 - bits);
            let top = self.b.bits_as(top, ScalarKind::Sint);
            return self.b.shr_by(top, 32 - bits);
        }
        let mask = self.b.u32((1 << bits) - 1);
        self.b.and(shifted, mask)
    }

    /// Stores an element, unless it is outside.
    pub(super) fn store(&mut self, buffer: u32, index: ValueId, value: ValueId) -> Result<()> {
        let inside = self.inside(buffer, index)?;
        if let Inside::Never = inside {
            return Ok(());
        }
        let (index, mut value) = (self.get(index)?, self.get(value)?);
        let place = &self.places[buffer as usize];
        let (element, is_local) = (place.element, matches!(place.home, Home::Local(_)));
        if element == Element::F32 {
            value = self.canonical(value);
        }
        if element.size() < 4 && element.value_type() == Type::I32 {
            value = self.b.bits_as(value, ScalarKind::Uint);
        }
        self.b.open();
        if element.size() < 4 && !is_local {
            self.store_narrow(buffer, index, value);
        } else {
            self.with_word(buffer, index, None, &mut |emitter, pointer| {
                emitter.b.store(pointer, value);
                None
            });
        }
        let accept = self.b.close();
        self.guarded(inside, accept);
        Ok(())
    }

    /// Does what a block does, inside, and where the predicate holds.
    fn guarded(&mut self, inside: Inside, accept: Block) {
        let condition = match (inside, self.predicate) {
            (Inside::Never, _) => return,
            (Inside::Always, None) => return self.b.push(Statement::Block(accept)),
            (Inside::Always, Some(predicate)) => predicate,
            (Inside::Where(inside), _) => self.predicated(inside),
        };
        self.b.push(Statement::If { condition, accept, reject: Block::new() });
    }

    /// Clears the bits of a narrow element in its word, then sets them.
    fn store_narrow(&mut self, buffer: u32, index: Value, value: Value) {
        let first = self.first_bit(buffer, index);
        let bits = 8 * self.places[buffer as usize].element.size() as u32;
        let mask = self.b.u32((1 << bits) - 1);
        let value = self.b.and(value, mask);
        let set = self.b.shl(value, first);
        let cleared = self.b.shl(mask, first);
        let kept = self.b.unary(naga::UnaryOperator::BitwiseNot, cleared);
        self.with_word(buffer, index, None, &mut |emitter, pointer| {
            let (fun, or) = (AtomicFunction::And, AtomicFunction::InclusiveOr);
            emitter.b.push(Statement::Atomic { pointer, fun, value: kept, result: None });
            emitter.b.push(Statement::Atomic { pointer, fun: or, value: set, result: None });
            None
        });
    }

    /// An atomic, which gives the old value, or zero outside; nothing where nobody asks.
    pub(super) fn atomic(
        &mut self,
        op: AtomicOp,
        buffer: u32,
        index: ValueId,
        expected: Option<ValueId>,
        value: Option<ValueId>,
    ) -> Result<Option<Value>> {
        let inside = self.inside(buffer, index)?;
        let element = self.places[buffer as usize].element;
        let zero = self.zero_of(element.value_type());
        if let Inside::Never = inside {
            return Ok((op != AtomicOp::Store).then_some(zero));
        }
        let index = self.get(index)?;
        let expected = expected.map(|row| self.get(row)).transpose()?;
        let value = value.map(|row| self.get(row)).transpose()?;
        let scalar = word(element);
        let ty = self.b.scalar_type(scalar);
        let result = self.b.local(ty);
        self.b.store_local(result, zero);
        self.b.open();
        let old = self.with_word(buffer, index, Some(scalar), &mut |emitter, pointer| {
            emitter.atomic_at(pointer, op, scalar, expected, value)
        });
        if let Some(old) = old.filter(|_| op != AtomicOp::Store) {
            self.b.store_local(result, old);
        }
        let accept = self.b.close();
        self.guarded(inside, accept);
        Ok((op != AtomicOp::Store).then(|| self.b.load_local(result)))
    }

    fn atomic_at(
        &mut self,
        pointer: Value,
        op: AtomicOp,
        scalar: Scalar,
        compare: Option<Value>,
        value: Option<Value>,
    ) -> Option<Value> {
        let fun = match op {
            AtomicOp::Load => return Some(self.b.load(pointer)),
            AtomicOp::Store => {
                self.b.store(pointer, value?);
                return None;
            }
            AtomicOp::Add => AtomicFunction::Add,
            AtomicOp::Sub => AtomicFunction::Subtract,
            AtomicOp::Min => AtomicFunction::Min,
            AtomicOp::Max => AtomicFunction::Max,
            AtomicOp::And => AtomicFunction::And,
            AtomicOp::Or => AtomicFunction::InclusiveOr,
            AtomicOp::Xor => AtomicFunction::ExclusiveOr,
            AtomicOp::Exchange => AtomicFunction::Exchange { compare: None },
            AtomicOp::CompareExchange => AtomicFunction::Exchange { compare },
        };
        if let (AtomicOp::CompareExchange, Some(expected)) = (op, compare) {
            return Some(self.compare_exchange(pointer, fun, scalar, expected, value?));
        }
        let ty = self.b.scalar_type(scalar);
        let old = self.b.known(Expression::AtomicResult { ty, comparison: false });
        self.b.push(Statement::Atomic { pointer, fun, value: value?, result: Some(old) });
        Some(old)
    }

    /// A compare-exchange. Where one may leave the expected value alone it is repeated until it does not.
    fn compare_exchange(
        &mut self,
        pointer: Value,
        fun: AtomicFunction,
        scalar: Scalar,
        expected: Value,
        value: Value,
    ) -> Value {
        let result = PredeclaredType::AtomicCompareExchangeWeakResult(scalar);
        let ty = self.b.module.generate_predeclared_type(result);
        let outcome = self.b.known(Expression::AtomicResult { ty, comparison: true });
        let exchange = Statement::Atomic { pointer, fun, value, result: Some(outcome) };
        if !self.form.manner.quirks.weak_exchange {
            self.b.push(exchange);
            return self.b.access_index(outcome, 0);
        }
        let ty = self.b.scalar_type(scalar);
        let found = self.b.local(ty);
        self.b.open();
        self.b.push(exchange);
        let old = self.b.access_index(outcome, 0);
        self.b.store_local(found, old);
        let is_made = self.b.access_index(outcome, 1);
        let is_expected = self.b.equal(old, expected);
        let is_other = self.b.not(is_expected);
        let break_if = Some(self.b.either(is_made, is_other));
        let body = self.b.close();
        self.b.push(Statement::Loop { body, continuing: Block::new(), break_if });
        self.b.load_local(found)
    }
}
