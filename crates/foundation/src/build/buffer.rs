//! Typed handles of buffers. What a program may do with a buffer is in its type.

use super::Value;
use super::scalar::{AtomicElement, IntoValue, Scalar, Storable};
use super::state::{self, Action, Kind, Repr};
use super::value::hole;
use crate::{AtomicOp, BufferDecl, Expr, MemoryOrdering, Name, Scope};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// Who fills a buffer, what the program may do with it and who gets it back.
///
/// The types stand as the second parameter of [`Buffer`]; the traits say what they allow, for functions that work
/// on several kinds of buffers:
///
/// ```
/// use vyre_foundation::build::prelude::*;
/// fn first<A: access::Load>(buffer: Buffer<f32, A>) -> Value<f32> {
///     buffer.load(0)
/// }
/// ```
pub mod access {
    use crate::BufferAccess;

    mod sealed {
        pub trait Sealed {}
    }

    /// A kind of buffer.
    pub trait Access: sealed::Sealed + Copy + 'static {
        /// The access in the program.
        const ACCESS: BufferAccess;
    }

    /// The program may load.
    #[diagnostic::on_unimplemented(message = "a `{Self}` buffer cannot be loaded")]
    pub trait Load: Access {}

    /// The program may store.
    #[diagnostic::on_unimplemented(message = "a `{Self}` buffer cannot be stored to")]
    pub trait Store: Access {}

    /// The program may use atomics.
    #[diagnostic::on_unimplemented(message = "there are no atomics on a `{Self}` buffer")]
    pub trait Atomic: Load + Store {}

    /// The whole grid shares it: the number of elements may be left open.
    #[diagnostic::on_unimplemented(message = "the grid does not share a `{Self}` buffer")]
    pub trait Shared: Access {}

    /// Every invocation of a workgroup may load the same element.
    #[diagnostic::on_unimplemented(message = "a workgroup cannot load from a `{Self}` buffer together")]
    pub trait WorkgroupLoad: Load {}

    /// Every invocation of the grid may load the same element.
    #[diagnostic::on_unimplemented(message = "the grid cannot load from a `{Self}` buffer together")]
    pub trait GridLoad: WorkgroupLoad + Shared {}

    macro_rules! accesses {
        ($($(#[$doc:meta])* $name:ident $access:ident: $($can:ident)*;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}
            impl sealed::Sealed for $name {}
            impl Access for $name {
                const ACCESS: BufferAccess = BufferAccess::$access;
            }
            $(impl $can for $name {})*
        )*};
    }

    accesses! {
        /// The caller gives it; loads.
        Read ReadOnly: Load Shared WorkgroupLoad GridLoad;
        /// The caller gives it; loads; small data that every invocation reads alike.
        Uniform Uniform: Load Shared WorkgroupLoad GridLoad;
        /// The caller gives it and gets it back; loads, stores and atomics.
        ReadWrite ReadWrite: Load Store Atomic Shared WorkgroupLoad GridLoad;
        /// Starts as zeros and is returned; loads, stores and atomics.
        Output Output: Load Store Atomic Shared WorkgroupLoad GridLoad;
        /// Starts as zeros and is returned; stores.
        Write WriteOnly: Store Shared;
        /// Starts as zeros, shared by the grid, not returned; loads, stores and atomics.
        Scratch Scratch: Load Store Atomic Shared WorkgroupLoad GridLoad;
        /// Starts as zeros, shared by a workgroup; loads, stores and atomics.
        Workgroup Workgroup: Load Store Atomic WorkgroupLoad;
        /// Starts as zeros, private to one invocation; loads and stores.
        Local Local: Load Store;
    }
}

/// A buffer with elements of type `E` and the access `A`, one of the types in [`access`].
///
/// What its access does not allow does not compile:
///
/// ```compile_fail
/// # use vyre_foundation::build::prelude::*;
/// fn wrong(x: Buffer<f32, access::Read>) {
///     x.store(0, 1.0); // the caller's data is only read
/// }
/// ```
///
/// ```compile_fail
/// # use vyre_foundation::build::prelude::*;
/// fn wrong(x: Buffer<f32, access::ReadWrite>) {
///     x.atomic_add(0, 1.0); // there are no atomics on `f32`
/// }
/// ```
///
/// ```compile_fail
/// # use vyre_foundation::build::prelude::*;
/// fn wrong(x: Buffer<f32, access::Write>) -> Value<f32> {
///     x.load(0) // an `output` buffer can be loaded
/// }
/// ```
///
/// ```compile_fail
/// # use vyre_foundation::build::prelude::*;
/// fn wrong(x: Buffer<u32, access::Workgroup>) -> Value<u32> {
///     x.grid_uniform_load(0) // workgroups do not share it
/// }
/// ```
///
/// Narrow elements (`u8`, `i8`, `u16`, `i16`, `f16`, `bf16`) exist only in memory: a load widens them and a store
/// narrows the value.
pub struct Buffer<E: Storable, A: access::Access> {
    build: u64,
    number: usize,
    ordering: MemoryOrdering,
    types: PhantomData<(E, A, state::OneThread)>,
}

impl<E: Storable, A: access::Access> Clone for Buffer<E, A> {
    fn clone(&self) -> Buffer<E, A> {
        *self
    }
}

impl<E: Storable, A: access::Access> Copy for Buffer<E, A> {}

impl<E: Storable, A: access::Access> fmt::Debug for Buffer<E, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}[]#{}", A::ACCESS, E::ELEMENT, self.number)
    }
}

impl<E: Storable, A: access::Access> Buffer<E, A> {
    pub(super) fn new(build: u64, number: usize) -> Buffer<E, A> {
        Buffer { build, number, ordering: MemoryOrdering::Relaxed, types: PhantomData }
    }

    /// Runs `act` with the name of the buffer if it belongs to the open build.
    fn named<R>(self, at: state::At, act: impl FnOnce(&mut state::State, Name) -> R) -> Option<R> {
        state::with(|state| {
            state.owns(self.build, at).then(|| {
                let name = state.buffers[self.number].0.name().clone();
                act(state, name)
            })
        })?
    }

    fn value<T: Scalar>(
        self,
        kind: Kind,
        operands: &[Repr],
        at: state::At,
        template: impl FnOnce(Name) -> Expr,
    ) -> Value<T> {
        let made = self.named(at, |state, name| {
            let id = match kind {
                Kind::Leaf => state.leaf(template(name), at),
                _ => state.expr(template(name), kind, operands, at),
            };
            Repr::Item { build: state.build, id }
        });
        Value::new(made.unwrap_or(Repr::NOWHERE))
    }

    /// How many elements it has.
    #[must_use]
    #[track_caller]
    pub fn len(self) -> Value<u32> {
        self.value(Kind::Leaf, &[], Location::caller(), Expr::buf_len)
    }
}

impl<E: Storable, A: access::Shared> Buffer<E, A> {
    /// Fixes the number of elements, which is open otherwise.
    #[track_caller]
    pub fn with_count(self, count: u32) -> Buffer<E, A> {
        self.named(Location::caller(), |state, name| {
            let decl = &mut state.buffers[self.number].0;
            let open = std::mem::replace(decl, BufferDecl::read(name, E::ELEMENT));
            *decl = open.with_count(count);
        });
        self
    }
}

impl<E: Storable, A: access::Load> Buffer<E, A> {
    /// The element at `index`, as it is now; 0 outside the buffer.
    #[must_use]
    #[track_caller]
    pub fn load(self, index: impl IntoValue<u32>) -> Value<E::Value> {
        let operands = [index.into_value().repr()];
        self.value(Kind::Read, &operands, Location::caller(), |name| Expr::load(name, hole()))
    }
}

impl<E: Storable, A: access::Store> Buffer<E, A> {
    /// Stores `value` at `index`; outside the buffer nothing happens.
    #[track_caller]
    pub fn store(self, index: impl IntoValue<u32>, value: impl IntoValue<E::Value>) {
        let (index, value) = (index.into_value().repr(), value.into_value().repr());
        let at = Location::caller();
        self.named(at, |state, buffer| {
            let (index, value) = (state.operand(index, at), state.operand(value, at));
            state.act(Action::Store { buffer, index, value }, at);
        });
    }
}

impl<E: Storable, A: access::WorkgroupLoad> Buffer<E, A> {
    /// A barrier of the workgroup, one load whose value each of its invocations receives, and a barrier.
    #[track_caller]
    pub fn workgroup_uniform_load(self, index: impl IntoValue<u32>) -> Value<E::Value> {
        let operands = [index.into_value().repr()];
        self.value(Kind::Effect, &operands, Location::caller(), |name| {
            Expr::uniform_load(Scope::Workgroup, name, hole())
        })
    }
}

impl<E: Storable, A: access::GridLoad> Buffer<E, A> {
    /// A barrier of the grid, one load whose value every invocation receives, and a barrier.
    #[track_caller]
    pub fn grid_uniform_load(self, index: impl IntoValue<u32>) -> Value<E::Value> {
        let operands = [index.into_value().repr()];
        self.value(Kind::Effect, &operands, Location::caller(), |name| {
            Expr::uniform_load(Scope::Grid, name, hole())
        })
    }
}

/// Atomics with one value that give the old one.
macro_rules! atomics {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self, index: impl IntoValue<u32>, value: impl IntoValue<E>) -> Value<E> {
            self.atomic(AtomicOp::$op, index.into_value(), None, Some(value.into_value()), Location::caller())
        }
    )*};
}

/// Atomics. They are relaxed unless [`ordered`](Buffer::ordered) says otherwise. Outside the buffer they give 0
/// and change nothing.
impl<E: AtomicElement, A: access::Atomic> Buffer<E, A> {
    /// The same buffer, whose atomics through this handle have `ordering`.
    ///
    /// ```
    /// # use vyre_foundation::build::prelude::*;
    /// fn publish(flag: Buffer<u32, access::Scratch>) {
    ///     flag.ordered(MemoryOrdering::Release).atomic_store(0, 1);
    /// }
    /// ```
    #[must_use]
    pub fn ordered(self, ordering: MemoryOrdering) -> Buffer<E, A> {
        Buffer { ordering, ..self }
    }

    fn atomic(
        self,
        op: AtomicOp,
        index: Value<u32>,
        expected: Option<Value<E>>,
        value: Option<Value<E>>,
        at: state::At,
    ) -> Value<E> {
        let operands: Vec<Repr> = [Some(index.repr())]
            .into_iter()
            .chain([expected, value].map(|v| v.map(Value::repr)))
            .flatten()
            .collect();
        self.value(Kind::Effect, &operands, at, |buffer| Expr::Atomic {
            op,
            buffer,
            index: hole().into(),
            expected: expected.map(|_| hole().into()),
            value: value.map(|_| hole().into()),
            ordering: self.ordering,
        })
    }

    atomics! {
        /// Adds, wrapping; gives the old value.
        atomic_add => Add;
        /// Subtracts, wrapping; gives the old value.
        atomic_sub => Sub;
        /// Keeps the smaller value; gives the old one.
        atomic_min => Min;
        /// Keeps the larger value; gives the old one.
        atomic_max => Max;
        /// Bitwise and; gives the old value.
        atomic_and => And;
        /// Bitwise or; gives the old value.
        atomic_or => Or;
        /// Bitwise exclusive or; gives the old value.
        atomic_xor => Xor;
        /// Writes a new value; gives the old one.
        atomic_exchange => Exchange;
    }

    /// Writes `new` where the element equals `expected`; gives the old value. It never fails spuriously.
    #[track_caller]
    pub fn atomic_compare_exchange(
        self,
        index: impl IntoValue<u32>,
        expected: impl IntoValue<E>,
        new: impl IntoValue<E>,
    ) -> Value<E> {
        let (expected, new) = (expected.into_value(), new.into_value());
        let op = AtomicOp::CompareExchange;
        self.atomic(op, index.into_value(), Some(expected), Some(new), Location::caller())
    }

    /// Reads.
    #[track_caller]
    pub fn atomic_load(self, index: impl IntoValue<u32>) -> Value<E> {
        self.atomic(AtomicOp::Load, index.into_value(), None, None, Location::caller())
    }

    /// Writes.
    #[track_caller]
    pub fn atomic_store(self, index: impl IntoValue<u32>, value: impl IntoValue<E>) {
        let value = Some(value.into_value());
        self.atomic(AtomicOp::Store, index.into_value(), None, value, Location::caller());
    }
}
