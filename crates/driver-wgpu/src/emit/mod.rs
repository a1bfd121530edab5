//! From a kernel to a naga module.
//!
//! Group 0 is all that a shader binds. Binding 0 is a uniform buffer, the *parameters* of a launch, an array of
//! `vec4<u32>`:
//!
//! | words | what |
//! |---|---|
//! | 0, 1, 2 | the workgroups of the whole grid on each axis |
//! | 4, 5, 6 | the first workgroup of this launch on each axis |
//! | 8, 9, 10 | zeros, which the driver cannot know |
//! | 12 + 2k | where slot k begins in what is bound for it, in elements |
//! | 13 + 2k | how many elements slot k has |
//!
//! From binding 1 on the slots follow, in the order of the binding plan, each with as many storage bindings as it has
//! windows. A slot larger than a binding may be is bound in windows of one size; the element decides which is used. A
//! kernel whose loops are watched has one more binding, the word that says that a loop was cut off.
//!
//! An `f32` is a `u32` in the shader, its bits: selections, loads and stores then move bits whatever the driver does.
//! It becomes a float only as the operand of an operation (`floats`). Lengths come from the parameters and every bound
//! is checked here, because what is bound is padded.

mod build;
mod control;
mod floats;
mod integers;
mod memory;
mod quads;
mod subgroups;

pub(crate) use control::{Quirks, is_watched};
pub(crate) use floats::Floats;
pub(crate) use subgroups::exchange_bytes;

use build::{Builder, Value};
use memory::Place;
use naga::{
    AddressSpace, Barrier, Binding, BuiltIn, EntryPoint, FunctionArgument, GlobalVariable, Handle,
    LocalVariable, MemoryDecorations, ResourceBinding, Scalar, ShaderStage, Statement, TypeInner, VectorSize,
};
use rustc_hash::FxHashMap;
use vyre_driver::{Error, Result};
use vyre_foundation::{Literal, Scope, Type};
use vyre_lower::{Homes, Id, Item, ItemId, Kernel, RegionId, Value as Row, ValueId};

/// The entry point of every module.
pub(crate) const ENTRY: &str = "main";

/// What decides how a kernel is emitted, beside the kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    /// How many bindings each slot takes, at least one.
    pub(crate) windows: Vec<u32>,
    /// Whether each slot begins behind the beginning of what is bound.
    pub(crate) shifted: Vec<bool>,
    /// The size of a window of a slot that has several, as a power of two of bytes.
    pub(crate) window_bits: u32,
    /// How the device is used.
    pub(crate) manner: Manner,
}

/// How a device is used: what it does itself, and what it cannot be trusted with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Manner {
    /// How floats are computed.
    pub(crate) floats: Floats,
    /// What the driver cannot be trusted with.
    pub(crate) quirks: Quirks,
}

impl Manner {
    /// Nothing but integers is left to the device, and all of them.
    pub(crate) const PLAIN: Manner = Manner {
        floats: Floats::SOFTWARE,
        quirks: Quirks {
            cuts_loops: false,
            forgets_nesting: false,
            weak_exchange: false,
            follows_parameters: false,
        },
    };
}

/// The first word of the parameters that is about a slot.
const FIRST_SLOT: u32 = 12;

/// How many words the parameters of a launch with so many slots take, a multiple of four.
pub(crate) fn parameter_words(slots: usize) -> usize {
    FIRST_SLOT as usize + (2 * slots).next_multiple_of(4)
}

/// The module of a kernel that has no traps and no grid barriers.
pub(crate) fn emit(kernel: &Kernel, form: &Form) -> Result<naga::Module> {
    emit_into(naga::Module::default(), ENTRY, kernel, form)
}

/// A module with one more entry point.
pub(crate) fn emit_into(
    module: naga::Module,
    entry: &str,
    kernel: &Kernel,
    form: &Form,
) -> Result<naga::Module> {
    roomy(|| {
        let mut emitter = Emitter::new(module, kernel, form);
        emitter.region(Kernel::ENTRY)?;
        Ok(emitter.finish(entry))
    })
}

/// Runs `body` with room on the stack.
fn roomy<R>(body: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(256 << 10, 4 << 20, body)
}

/// The arguments of the entry point.
#[derive(Clone, Copy)]
struct Arguments {
    /// `vec3<u32>`.
    local: Value,
    /// `vec3<u32>`, in this launch.
    workgroup: Value,
    /// The linear local index.
    index: Value,
    /// `vec3<u32>`, how many there are in this launch, where parameters are hidden behind it.
    workgroups: Option<Value>,
}

/// Zeros that exist only at run time.
#[derive(Clone, Copy)]
struct Zeros {
    /// For the operands of float operations.
    operands: [Value; 2],
    /// For everything else. What was combined with one zero twice would be known again.
    others: Value,
}

struct Emitter<'k> {
    kernel: &'k Kernel,
    form: &'k Form,
    homes: Homes,
    /// The rows of each region, by the position before which they are computed.
    by_home: Vec<Vec<ValueId>>,
    b: Builder,
    arguments: Arguments,
    parameters: Handle<GlobalVariable>,
    /// The memory of each buffer.
    places: Vec<Place>,
    /// Which buffers are arrays of vectors, and what is loaded of them.
    grouped: Vec<bool>,
    groups: quads::Groups,
    /// The rows that are computed so far.
    values: Vec<Option<Value>>,
    /// The variables of results and parameters.
    variables: FxHashMap<(ItemId, u32), Handle<LocalVariable>>,
    /// The parameters and results that rows name.
    named: FxHashMap<(ItemId, u32), Vec<ValueId>>,
    /// The rows that are made of constants alone.
    constants: Vec<Option<Literal>>,
    /// The zeros that the driver cannot know.
    zeros: Option<Zeros>,
    /// Whether the invocation does what is emitted, where that is not said by the block.
    predicate: Option<Value>,
    /// Whether the lane exists, where a driver may have others.
    exists: Option<Value>,
    /// Whether a loop was cut off, and the word that says so to the host.
    watch: Option<(Handle<LocalVariable>, Handle<GlobalVariable>)>,
    /// Workgroup memory through which subgroups talk, for words and for double words.
    exchange: [Option<Handle<GlobalVariable>>; 2],
}

/// The scalar of a value in the shader.
fn scalar(ty: Type) -> Scalar {
    match ty {
        Type::Bool => Scalar::BOOL,
        Type::U32 | Type::F32 => Scalar::U32,
        Type::I32 => Scalar::I32,
        Type::U64 => Scalar::U64,
        Type::I64 => Scalar::I64,
    }
}

impl<'k> Emitter<'k> {
    fn new(module: naga::Module, kernel: &'k Kernel, form: &'k Form) -> Emitter<'k> {
        let homes = Homes::of(kernel);
        let mut by_home: Vec<Vec<ValueId>> = vec![Vec::new(); kernel.regions.start.len()];
        let mut named: FxHashMap<(ItemId, u32), Vec<ValueId>> = FxHashMap::default();
        for row in kernel.rows().filter(|row| homes.uses[row.index()] > 0) {
            match kernel.value(row) {
                vyre_lower::Value::Param { item, index, .. } | vyre_lower::Value::Out { item, index, .. } => {
                    named.entry((item, index)).or_default().push(row);
                }
                _ => by_home[homes.region[row.index()].index()].push(row),
            }
        }
        for rows in &mut by_home {
            rows.sort_by_key(|row| (homes.before[row.index()], *row));
        }
        let constants = vyre_foundation::float_env::with_default(|| constants(kernel));
        let mut b = Builder::new(module);
        let arguments = arguments(&mut b, form.manner.quirks);
        let parameters = parameters(&mut b, form.windows.len());
        let mut emitter = Emitter {
            kernel,
            form,
            homes,
            by_home,
            b,
            arguments,
            parameters,
            places: Vec::new(),
            grouped: quads::grouped(kernel, form),
            groups: quads::Groups::default(),
            values: vec![None; kernel.values.len()],
            variables: FxHashMap::default(),
            named,
            constants,
            zeros: None,
            predicate: None,
            exists: None,
            watch: None,
            exchange: [None; 2],
        };
        let next = emitter.place_buffers();
        if is_watched(kernel, form.manner.quirks) {
            emitter.watch = Some(control::watch(&mut emitter.b, next));
        }
        let has_gaps = control::has_gaps(kernel);
        let hides_constants =
            emitter.constants.iter().flatten().any(|literal| floats::is_hidden(*literal, form));
        let hides = hides_constants || floats::needs_zeros(kernel, form);
        if hides || emitter.watch.is_some() || has_gaps {
            emitter.zeros = Some(Zeros {
                operands: [emitter.parameter(8), emitter.parameter(9)],
                others: emitter.parameter(10),
            });
        }
        emitter.note_existence();
        emitter
    }

    fn finish(mut self, entry: &str) -> naga::Module {
        self.report_cut();
        self.b.finish();
        let size = self.kernel.workgroup_size;
        self.b.module.entry_points.push(EntryPoint {
            name: entry.to_owned(),
            stage: ShaderStage::Compute,
            early_depth_test: None,
            workgroup_size: size.size(),
            workgroup_size_overrides: None,
            function: self.b.function,
            mesh_info: None,
            task_payload: None,
            incoming_ray_payload: None,
        });
        self.b.module
    }

    /// A word of the parameters.
    fn parameter(&mut self, word: u32) -> Value {
        let base = self.b.global_value(self.parameters);
        let row = self.b.access_index(base, word / 4);
        let pointer = self.b.access_index(row, word % 4);
        let value = self.b.load(pointer);
        let Some(workgroups) = self.arguments.workgroups else { return value };
        // There always is a workgroup, but that is nothing a driver knows, and it is no parameter.
        let count = self.b.access_index(workgroups, 0);
        let none = self.b.u32(0);
        let is_none = self.b.equal(count, none);
        self.b.select(is_none, none, value)
    }

    /// The value of a row, which is computed where it is first needed if it costs nothing.
    fn get(&mut self, row: ValueId) -> Result<Value> {
        if let Some(known) = self.values[row.index()] {
            return Ok(known);
        }
        if let vyre_lower::Value::Const(literal) = self.kernel.value(row) {
            return Ok(self.constant(literal));
        }
        Err(Error::Internal(format!("{row:?} is used before it is computed")))
    }

    fn constant(&mut self, literal: Literal) -> Value {
        let bits = literal.bits();
        if let (true, Some(zeros)) = (floats::is_hidden(literal, self.form), self.zeros) {
            return self.shielded_constant(literal, zeros.others);
        }
        match literal.ty() {
            Type::Bool => self.b.bool(bits != 0),
            Type::U32 | Type::F32 => self.b.u32(bits as u32),
            Type::I32 => self.b.i32(bits as i32),
            Type::U64 => self.b.u64(bits),
            Type::I64 => self.b.i64(bits as i64),
        }
    }

    fn zero_of(&mut self, ty: Type) -> Value {
        self.constant(Literal::from_bits(ty, 0))
    }

    /// Computes the rows that stand before an item.
    fn rows(&mut self, region: RegionId, position: u32, next: &mut usize) -> Result<()> {
        while let Some(&row) = self.by_home[region.index()].get(*next) {
            if self.homes.before[row.index()] > position {
                break;
            }
            *next += 1;
            let value = match self.constants[row.index()] {
                Some(literal) => self.constant(literal),
                None => self.row(row)?,
            };
            self.values[row.index()] = Some(value);
        }
        Ok(())
    }

    fn row(&mut self, row: ValueId) -> Result<Value> {
        Ok(match self.kernel.value(row) {
            Row::Const(literal) => self.constant(literal),
            Row::Id(id, axis) => self.id(id, axis as u32),
            Row::SubgroupLane => {
                let last = self.b.u32(self.kernel.subgroup_size - 1);
                self.b.and(self.arguments.index, last)
            }
            Row::Len(buffer) => self.length(buffer),
            Row::Load { buffer, index, .. } => self.load(buffer, index)?,
            Row::Binary { op, ty, a, b } => {
                let (left, right) = (self.get(a)?, self.get(b)?);
                match ty {
                    Type::F32 => self.float_binary(op, left, right)?,
                    Type::Bool => self.logic(op, left, right),
                    _ => self.integer_binary(op, ty, left, right, self.kernel.value(b)),
                }
            }
            Row::Unary { op, ty, a } => {
                let a = self.get(a)?;
                if ty == Type::F32 { self.float_unary(op, a)? } else { self.integer_unary(op, ty, a) }
            }
            Row::Select { cond, a, b, .. } => {
                let (cond, a, b) = (self.get(cond)?, self.get(a)?, self.get(b)?);
                self.b.select(cond, a, b)
            }
            Row::Cast { from, to, a } => {
                let a = self.get(a)?;
                self.cast(from, to, a)?
            }
            Row::Bitcast { from, to, a } => {
                let a = self.get(a)?;
                self.bitcast(from, to, a)
            }
            Row::Fma { a, b, c } => {
                let operands = [self.get(a)?, self.get(b)?, self.get(c)?];
                self.fused(operands)
            }
            Row::Param { .. } | Row::Out { .. } => {
                return Err(Error::Internal(format!("{row:?} belongs to its item")));
            }
        })
    }

    fn id(&mut self, id: Id, axis: u32) -> Value {
        match id {
            Id::Local => self.b.access_index(self.arguments.local, axis),
            Id::NumWorkgroups => self.parameter(axis),
            Id::Workgroup => {
                let first = self.parameter(4 + axis);
                let here = self.b.access_index(self.arguments.workgroup, axis);
                self.b.add(first, here)
            }
            Id::Invocation => {
                let workgroup = self.id(Id::Workgroup, axis);
                let size = self.b.u32(self.kernel.workgroup_size.size()[axis as usize]);
                let before = self.b.mul(workgroup, size);
                let local = self.id(Id::Local, axis);
                self.b.add(before, local)
            }
        }
    }

    /// The items of a region, with the rows that are computed in it.
    fn region(&mut self, region: RegionId) -> Result<()> {
        let mut next = 0;
        let groups = self.groups();
        for position in 0..self.kernel.item_count(region) {
            self.rows(region, position, &mut next)?;
            let item = self.kernel.item_at(region, position);
            roomy(|| self.item(item))?;
        }
        let ended = self.rows(region, self.kernel.item_count(region), &mut next);
        self.forget_groups(groups);
        ended
    }

    fn item(&mut self, id: ItemId) -> Result<()> {
        let result = match self.kernel.item(id) {
            Item::Store { buffer, index, value } => return self.store(buffer, index, value),
            Item::Load { buffer, index, .. } => self.load(buffer, index)?,
            Item::Atomic { op, buffer, index, expected, value, .. } => {
                match self.atomic(op, buffer, index, expected, value)? {
                    Some(old) => old,
                    None => return Ok(()),
                }
            }
            Item::Barrier { scope } => return self.barrier(scope),
            Item::UniformLoad { scope, buffer, index } => {
                self.barrier(scope)?;
                let value = self.load(buffer, index)?;
                self.barrier(scope)?;
                value
            }
            Item::Trap { .. } => return Err(Error::Internal("a trap that nobody noted".to_owned())),
            Item::Ballot { cond } => self.ballot(cond)?,
            Item::Shuffle { value, lane } => self.shuffle(value, lane)?,
            Item::Reduce { op, value } => self.reduce(op, value)?,
            Item::If { cond, then, otherwise, yields } => {
                return self.branch(id, cond, [then, otherwise], &yields);
            }
            Item::Loop { guard, first, body, next, again } => {
                return self.repeat(id, guard, &first, body, (&next, again));
            }
        };
        self.name(id, 0, result);
        Ok(())
    }

    /// Makes a result or parameter known to the rows that name it.
    fn name(&mut self, item: ItemId, index: u32, value: Value) {
        let rows = self.named.get(&(item, index)).into_iter().flatten();
        rows.for_each(|row| self.values[row.index()] = Some(value));
    }

    /// The variable of a result or parameter, if a row names it.
    fn variable(&mut self, item: ItemId, index: u32) -> Option<Handle<LocalVariable>> {
        let row = *self.named.get(&(item, index))?.first()?;
        if let Some(known) = self.variables.get(&(item, index)) {
            return Some(*known);
        }
        let ty = self.b.scalar_type(scalar(self.kernel.value(row).ty()));
        let variable = self.b.local(ty);
        self.variables.insert((item, index), variable);
        Some(variable)
    }

    pub(crate) fn barrier(&mut self, scope: Scope) -> Result<()> {
        if scope == Scope::Grid {
            return Err(Error::Internal("a grid barrier inside a launch".to_owned()));
        }
        self.b.push(Statement::ControlBarrier(Barrier::STORAGE | Barrier::WORK_GROUP));
        Ok(())
    }
}

/// What the rows are that are made of constants alone, lengths that the program says among them. A driver would compute
/// them too, and then rewrite wrongly what it finds them in: see [`floats::is_hidden`].
fn constants(kernel: &Kernel) -> Vec<Option<Literal>> {
    let mut known: Vec<Option<Literal>> = Vec::with_capacity(kernel.values.len());
    for row in kernel.rows() {
        let value = kernel.value(row);
        let bits = match value {
            Row::Len(buffer) => kernel.buffers[buffer as usize].count().map(u64::from),
            _ => {
                let bits = value.computed(|operand| known[operand.index()].map(Literal::bits).ok_or(()));
                bits.ok().flatten()
            }
        };
        known.push(bits.map(|bits| Literal::from_bits(value.ty(), bits)));
    }
    known
}

fn arguments(b: &mut Builder, quirks: Quirks) -> Arguments {
    let vector = b.vector_type(VectorSize::Tri);
    let word = b.scalar_type(Scalar::U32);
    let mut argument = |name: &str, ty, built_in| {
        let number = b.function.arguments.len() as u32;
        b.function.arguments.push(FunctionArgument {
            name: Some(name.to_owned()),
            ty,
            binding: Some(Binding::BuiltIn(built_in)),
        });
        b.known(naga::Expression::FunctionArgument(number))
    };
    Arguments {
        local: argument("local_id", vector, BuiltIn::LocalInvocationId),
        workgroup: argument("workgroup_id", vector, BuiltIn::WorkGroupId),
        index: argument("local_index", word, BuiltIn::LocalInvocationIndex),
        workgroups: quirks
            .follows_parameters
            .then(|| argument("num_workgroups", vector, BuiltIn::NumWorkGroups)),
    }
}

/// The variable of the parameters.
fn parameters(b: &mut Builder, slots: usize) -> Handle<GlobalVariable> {
    let base = b.vector_type(VectorSize::Quad);
    let count = std::num::NonZeroU32::new(parameter_words(slots) as u32 / 4);
    let size = naga::ArraySize::Constant(count.unwrap_or(std::num::NonZeroU32::MIN));
    let ty = b.ty(TypeInner::Array { base, size, stride: 16 });
    b.global(GlobalVariable {
        name: Some("parameters".to_owned()),
        space: AddressSpace::Uniform,
        binding: Some(ResourceBinding { group: 0, binding: 0 }),
        ty,
        init: None,
        memory_decorations: MemoryDecorations::empty(),
    })
}
