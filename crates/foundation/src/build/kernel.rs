//! The builder: declarations and statements.

use super::branch::{Branch, Placed};
use super::scalar::{Integer, IntoValue, Scalar, Storable};
use super::state::{self, Action, At, Kind, Op, Repr, State};
use super::value::hole;
use super::{Buffer, Value, access};
use crate::{Axis, BufferDecl, Expr, MemoryOrdering, Name, Scope, SubgroupOp, WorkgroupSize};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// The program that is being built. [`program`](super::program) gives one to its closure.
///
/// Statements stand where their methods are called. Bodies are closures; `k` can be used inside them:
///
/// ```
/// use vyre_foundation::build::prelude::*;
/// let program = vyre_foundation::build::program("sums", |k| {
///     let data = k.read::<u32>("data");
///     let sums = k.output::<u32>("sums").with_count(8);
///     let row = k.global_id().x;
///     let sum = k.var("sum", 0u32);
///     k.for_(0, 16, |column| {
///         let x = data.load(row * 16 + column);
///         k.if_(x.eq(0), || k.continue_());
///         sum.set(sum.get() + x);
///     });
///     sums.store(row, sum.get());
/// })?;
/// assert_eq!(program.buffers().len(), 2);
/// # Ok::<(), BuildError>(())
/// ```
pub struct Kernel {
    build: u64,
    thread: state::OneThread,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel#{}", self.build)
    }
}

/// An id on each axis of the grid.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// On the fastest axis.
    pub x: Value<u32>,
    /// On the middle axis.
    pub y: Value<u32>,
    /// On the slowest axis.
    pub z: Value<u32>,
}

impl Kernel {
    pub(super) fn new(build: u64) -> Kernel {
        Kernel { build, thread: PhantomData }
    }

    /// Runs `act` on the build if it is the open one.
    pub(super) fn with<R>(&self, at: At, act: impl FnOnce(&mut State) -> R) -> Option<R> {
        state::with(|state| state.owns(self.build, at).then(|| act(state)))?
    }

    pub(super) fn is_of(&self, state: &State) -> bool {
        self.build == state.build
    }

    fn make<T: Scalar>(&self, at: At, make: impl FnOnce(&mut State) -> state::ItemId) -> Value<T> {
        let made = self.with(at, |state| Repr::Item { build: state.build, id: make(state) });
        Value::new(made.unwrap_or(Repr::NOWHERE))
    }

    fn act(&self, at: At, action: impl FnOnce(&mut State) -> Action) {
        self.with(at, |state| {
            let action = action(state);
            state.act(action, at);
        });
    }
}

/// Declarations.
impl Kernel {
    /// How many invocations a workgroup has: one to three numbers, such as `64` or `[8, 8]`.
    #[track_caller]
    pub fn workgroup_size(&self, size: impl Into<WorkgroupSize>) {
        let size = size.into();
        self.with(Location::caller(), |state| state.workgroup_size = size);
    }

    /// How many lanes a subgroup has: a power of two up to 64; 32 if nothing is said.
    #[track_caller]
    pub fn subgroup_size(&self, lanes: u32) {
        self.with(Location::caller(), |state| state.subgroup_size = lanes);
    }

    fn declare<E: Storable, A: access::Access>(
        &self,
        at: At,
        declare: impl FnOnce(Name, crate::Element) -> BufferDecl,
        name: impl Into<Name>,
    ) -> Buffer<E, A> {
        let number = self.with(at, |state| {
            state.buffers.push((declare(name.into(), E::ELEMENT), at));
            state.buffers.len() - 1
        });
        // A buffer of no build is refused where it is used.
        number.map_or(Buffer::new(0, 0), |number| Buffer::new(self.build, number))
    }

    /// A buffer that the caller gives and the program loads from.
    #[track_caller]
    pub fn read<E: Storable>(&self, name: impl Into<Name>) -> Buffer<E, access::Read> {
        self.declare(Location::caller(), BufferDecl::read, name)
    }

    /// A small buffer that the caller gives and every invocation reads alike.
    #[track_caller]
    pub fn uniform<E: Storable>(&self, name: impl Into<Name>) -> Buffer<E, access::Uniform> {
        self.declare(Location::caller(), BufferDecl::uniform, name)
    }

    /// A buffer that the caller gives and gets back.
    #[track_caller]
    pub fn read_write<E: Storable>(&self, name: impl Into<Name>) -> Buffer<E, access::ReadWrite> {
        self.declare(Location::caller(), BufferDecl::read_write, name)
    }

    /// A buffer that starts as zeros and is returned.
    #[track_caller]
    pub fn output<E: Storable>(&self, name: impl Into<Name>) -> Buffer<E, access::Output> {
        self.declare(Location::caller(), BufferDecl::output, name)
    }

    /// A buffer that starts as zeros, is only stored to, and is returned.
    #[track_caller]
    pub fn write<E: Storable>(&self, name: impl Into<Name>) -> Buffer<E, access::Write> {
        self.declare(Location::caller(), BufferDecl::write, name)
    }

    /// A buffer that starts as zeros, is shared by the grid and is not returned.
    #[track_caller]
    pub fn scratch<E: Storable>(&self, name: impl Into<Name>) -> Buffer<E, access::Scratch> {
        self.declare(Location::caller(), BufferDecl::scratch, name)
    }

    /// Memory of `count` elements that a workgroup shares.
    #[track_caller]
    pub fn workgroup<E: Storable>(&self, name: impl Into<Name>, count: u32) -> Buffer<E, access::Workgroup> {
        self.declare(Location::caller(), |name, element| BufferDecl::workgroup(name, element, count), name)
    }

    /// An array of `count` elements that is private to one invocation.
    #[track_caller]
    pub fn local<E: Storable>(&self, name: impl Into<Name>, count: u32) -> Buffer<E, access::Local> {
        self.declare(Location::caller(), |name, element| BufferDecl::local(name, element, count), name)
    }
}

/// Ids.
impl Kernel {
    fn axes(&self, at: At, id: fn(Axis) -> Expr) -> Axes {
        let [x, y, z] = Axis::ALL.map(|axis| self.make(at, |state| state.leaf(id(axis), at)));
        Axes { x, y, z }
    }

    /// Where the invocation is in the grid.
    #[must_use]
    #[track_caller]
    pub fn global_id(&self) -> Axes {
        self.axes(Location::caller(), Expr::invocation_id)
    }

    /// Where the invocation is in its workgroup.
    #[must_use]
    #[track_caller]
    pub fn local_id(&self) -> Axes {
        self.axes(Location::caller(), Expr::local_id)
    }

    /// Where the workgroup is among the workgroups.
    #[must_use]
    #[track_caller]
    pub fn workgroup_id(&self) -> Axes {
        self.axes(Location::caller(), Expr::workgroup_id)
    }

    /// How many workgroups there are.
    #[must_use]
    #[track_caller]
    pub fn num_workgroups(&self) -> Axes {
        self.axes(Location::caller(), Expr::num_workgroups)
    }

    /// Where the invocation is in its subgroup.
    #[must_use]
    #[track_caller]
    pub fn subgroup_lane(&self) -> Value<u32> {
        let at = Location::caller();
        self.make(at, |state| state.leaf(Expr::SubgroupLocalId, at))
    }

    /// How many lanes a subgroup has, as a value.
    #[must_use]
    #[track_caller]
    pub fn subgroup_lanes(&self) -> Value<u32> {
        let at = Location::caller();
        self.make(at, |state| state.leaf(Expr::SubgroupSize, at))
    }
}

/// Variables.
impl Kernel {
    /// Names a value. A name that is taken gets a number.
    #[track_caller]
    pub fn let_<T: Scalar>(&self, name: impl Into<Name>, value: impl IntoValue<T>) -> Value<T> {
        let (at, value) = (Location::caller(), value.into_value());
        self.make(at, |state| {
            let (name, value) = (name.into(), state.operand(value.repr(), at));
            if state.name_effect(value, &name) {
                return value;
            }
            let var = state.var(Some(name), at);
            state.act(Action::Let { var, value }, at);
            state.item(Op::Variable(var), Kind::Leaf, at)
        })
    }

    /// A variable that can be changed. A name that is taken gets a number.
    #[track_caller]
    pub fn var<T: Scalar>(&self, name: impl Into<Name>, first: impl IntoValue<T>) -> Var<T> {
        let (at, first) = (Location::caller(), first.into_value());
        let var = self.with(at, |state| {
            let value = state.operand(first.repr(), at);
            let var = state.var(Some(name.into()), at);
            state.act(Action::Let { var, value }, at);
            var
        });
        let build = if var.is_some() { self.build } else { 0 };
        Var { build, var: var.unwrap_or(0), types: PhantomData }
    }
}

/// Control.
impl Kernel {
    /// Opens a block, lets the user fill it, and closes it.
    pub(super) fn block(&self, at: At, is_loop: bool, body: impl FnOnce()) -> Option<state::BlockId> {
        let entered = self.with(at, |state| state.enter(is_loop))?;
        state::inside(entered, body);
        self.with(at, |state| state.close(entered.block));
        Some(entered.block)
    }

    /// Runs `then` where `cond` holds. The result takes `else_` and `else_if`.
    ///
    /// ```
    /// # use vyre_foundation::build::prelude::*;
    /// # vyre_foundation::build::program("p", |k| {
    /// # let (x, y) = (k.read::<f32>("x"), k.output::<f32>("y").with_count(4));
    /// # let i = k.global_id().x;
    /// k.if_(x.load(i).lt(0.0), || y.store(i, -1.0))
    ///     .else_if(|| x.load(i).gt(0.0), || y.store(i, 1.0))
    ///     .else_(|| y.store(i, 0.0));
    /// # }).unwrap();
    /// ```
    #[track_caller]
    pub fn if_(&self, cond: impl IntoValue<bool>, then: impl FnOnce()) -> Branch<'_> {
        Branch::new(self, self.conditional(cond.into_value(), then, Location::caller()))
    }

    /// Builds an `if`.
    pub(super) fn conditional(&self, cond: Value<bool>, then: impl FnOnce(), at: At) -> Option<Placed> {
        // The condition is evaluated before the branch, so it is an operand of the block outside.
        let cond = self.with(at, |state| state.operand(cond.repr(), at))?;
        let then = self.block(at, false, then)?;
        self.with(at, |state| {
            let index = state.act(Action::If { cond, then, otherwise: None }, at);
            Placed { block: state.current(), index, items: state.items.len() }
        })
    }

    /// Runs `body` for `from`, `from + 1`, … `to - 1`. The bounds are evaluated once.
    #[track_caller]
    pub fn for_(&self, from: impl IntoValue<u32>, to: impl IntoValue<u32>, body: impl FnOnce(Value<u32>)) {
        self.loop_over(None, from.into_value(), to.into_value(), body, Location::caller());
    }

    /// Like [`for_`](Kernel::for_), with a name for the loop variable. A name that is taken gets a number.
    #[track_caller]
    pub fn for_named(
        &self,
        name: impl Into<Name>,
        from: impl IntoValue<u32>,
        to: impl IntoValue<u32>,
        body: impl FnOnce(Value<u32>),
    ) {
        self.loop_over(Some(name.into()), from.into_value(), to.into_value(), body, Location::caller());
    }

    fn loop_over(
        &self,
        name: Option<Name>,
        from: Value<u32>,
        to: Value<u32>,
        body: impl FnOnce(Value<u32>),
        at: At,
    ) {
        let entered = self.with(at, |state| {
            let (from, to) = (state.operand(from.repr(), at), state.operand(to.repr(), at));
            let entered = state.enter(true);
            let var = state.var(name, at);
            let id = state.item(Op::Variable(var), Kind::Leaf, at);
            (from, to, entered, var, id)
        });
        let Some((from, to, entered, var, id)) = entered else { return };
        state::inside(entered, || body(Value::new(Repr::Item { build: self.build, id })));
        self.with(at, |state| {
            state.close(entered.block);
            state.act(Action::Loop { var, from, to, body: entered.block }, at);
        });
    }

    /// A scope.
    #[track_caller]
    pub fn scope(&self, body: impl FnOnce()) {
        let at = Location::caller();
        if let Some(body) = self.block(at, false, body) {
            self.act(at, |_| Action::Block { body });
        }
    }

    /// A scope that says what made its statements.
    #[track_caller]
    pub fn region(&self, generator: impl Into<Name>, body: impl FnOnce()) {
        let at = Location::caller();
        if let Some(body) = self.block(at, false, body) {
            self.act(at, |_| Action::Region { generator: generator.into(), source: None, body });
        }
    }

    /// Like [`region`](Kernel::region), with the part of the generator's source that they came from.
    #[track_caller]
    pub fn region_from(&self, generator: impl Into<Name>, source: impl Into<Name>, body: impl FnOnce()) {
        let at = Location::caller();
        if let Some(body) = self.block(at, false, body) {
            let source = Some(source.into());
            self.act(at, |_| Action::Region { generator: generator.into(), source, body });
        }
    }

    /// Leaves the innermost loop.
    #[track_caller]
    pub fn break_(&self) {
        self.act(Location::caller(), |_| Action::Break);
    }

    /// Goes on with the next iteration of the innermost loop.
    #[track_caller]
    pub fn continue_(&self) {
        self.act(Location::caller(), |_| Action::Continue);
    }

    /// Ends the invocation.
    #[track_caller]
    pub fn return_(&self) {
        self.act(Location::caller(), |_| Action::Return);
    }

    /// Ends the invocation and makes the dispatch fail with `tag` and `value`.
    #[track_caller]
    pub fn trap(&self, tag: impl Into<Name>, value: impl IntoValue<u32>) {
        let (at, value) = (Location::caller(), value.into_value());
        self.act(at, |state| Action::Trap { tag: tag.into(), value: state.operand(value.repr(), at) });
    }

    /// Waits for the invocations of the workgroup or of the grid, and makes their earlier writes visible.
    #[track_caller]
    pub fn barrier(&self, scope: Scope) {
        let ordering = match scope {
            Scope::Workgroup => MemoryOrdering::SeqCst,
            Scope::Grid => MemoryOrdering::GridSync,
        };
        self.act(Location::caller(), |_| Action::Barrier { ordering });
    }
}

/// Reductions over the subgroup.
macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<T: Integer>(&self, value: Value<T>) -> Value<T> {
            self.subgroup(Expr::subgroup_reduce(SubgroupOp::$op, hole()), &[value.repr()], Location::caller())
        }
    )*};
}

/// Subgroup operations. They stand where control is uniform for the workgroup.
impl Kernel {
    fn subgroup<T: Scalar>(&self, template: Expr, operands: &[Repr], at: At) -> Value<T> {
        self.make(at, |state| state.expr(template, Kind::Effect, operands, at))
    }

    reductions! {
        /// The wrapping sum over the subgroup.
        subgroup_add => Add;
        /// The wrapping product over the subgroup.
        subgroup_mul => Mul;
        /// The smallest value of the subgroup.
        subgroup_min => Min;
        /// The largest value of the subgroup.
        subgroup_max => Max;
        /// Bitwise and over the subgroup.
        subgroup_and => And;
        /// Bitwise or over the subgroup.
        subgroup_or => Or;
        /// Bitwise exclusive or over the subgroup.
        subgroup_xor => Xor;
    }

    /// The value that lane number `lane` has; zero where there is no such lane.
    #[track_caller]
    pub fn subgroup_shuffle<T: Scalar>(&self, value: Value<T>, lane: impl IntoValue<u32>) -> Value<T> {
        let operands = [value.repr(), lane.into_value().repr()];
        self.subgroup(Expr::subgroup_shuffle(hole(), hole()), &operands, Location::caller())
    }

    /// One bit per lane where `cond` holds, in a subgroup of up to 32 lanes.
    #[track_caller]
    pub fn subgroup_ballot(&self, cond: impl IntoValue<bool>) -> Value<u32> {
        self.ballot(cond.into_value(), false, Location::caller())
    }

    /// One bit per lane where `cond` holds, in a subgroup of 64 lanes.
    #[track_caller]
    pub fn subgroup_ballot64(&self, cond: impl IntoValue<bool>) -> Value<u64> {
        self.ballot(cond.into_value(), true, Location::caller())
    }

    fn ballot<T: Scalar>(&self, cond: Value<bool>, wide: bool, at: At) -> Value<T> {
        self.with(at, |state| state.ballots.push((wide, at)));
        self.subgroup(Expr::subgroup_ballot(hole()), &[cond.repr()], at)
    }
}

/// A variable that can be changed; [`Kernel::var`] makes one.
pub struct Var<T: Scalar> {
    build: u64,
    var: state::VarId,
    types: PhantomData<(T, state::OneThread)>,
}

impl<T: Scalar> Clone for Var<T> {
    fn clone(&self) -> Var<T> {
        *self
    }
}

impl<T: Scalar> Copy for Var<T> {}

impl<T: Scalar> fmt::Debug for Var<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "var {}#{}", T::TYPE, self.var)
    }
}

impl<T: Scalar> Var<T> {
    /// The value that it has now.
    #[must_use]
    #[track_caller]
    pub fn get(self) -> Value<T> {
        let at = Location::caller();
        let made = state::with(|state| {
            let usable = state.owns(self.build, at) && state.variable_in_scope(self.var, at);
            usable.then(|| {
                let id = state.item(Op::Variable(self.var), Kind::Read, at);
                Repr::Item { build: state.build, id }
            })
        });
        Value::new(made.flatten().unwrap_or(Repr::NOWHERE))
    }

    /// Gives it a new value.
    #[track_caller]
    pub fn set(self, value: impl IntoValue<T>) {
        let (at, value) = (Location::caller(), value.into_value());
        state::with(|state| {
            if state.owns(self.build, at) && state.variable_in_scope(self.var, at) {
                let value = state.operand(value.repr(), at);
                state.act(Action::Assign { var: self.var, value }, at);
            }
        });
    }
}
