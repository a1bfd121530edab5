//! Pure functions of the program.

use super::scalar::{IntoValue, Scalar};
use super::state::{Kind, Op, Repr, Routine, VarId};
use super::value::hole;
use super::{Kernel, Value, state};
use crate::{Expr, Name, Type};
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

/// A pure function of the program; [`Kernel::function`] makes one. `Args` is a tuple of one to four types.
pub struct Function<Args, R: Scalar> {
    build: u64,
    number: usize,
    types: PhantomData<(Args, R, state::OneThread)>,
}

impl<Args, R: Scalar> Clone for Function<Args, R> {
    fn clone(&self) -> Function<Args, R> {
        *self
    }
}

impl<Args, R: Scalar> Copy for Function<Args, R> {}

impl<Args, R: Scalar> fmt::Debug for Function<Args, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fn -> {}#{}", R::TYPE, self.number)
    }
}

/// A closure that can be the body of a [`Function`]: it takes one to four values and gives one.
pub trait FunctionBody<Args, R: Scalar> {
    /// The types of the parameters.
    #[doc(hidden)]
    fn types() -> Vec<Type>;

    /// The result for these parameters.
    #[doc(hidden)]
    fn result(self, params: Params<'_>) -> Value<R>;
}

/// The parameters of a function whose body is being built.
#[doc(hidden)]
pub struct Params<'a> {
    build: u64,
    items: std::slice::Iter<'a, state::ItemId>,
}

impl Params<'_> {
    fn next<T: Scalar>(&mut self) -> Value<T> {
        Value::new(self.items.next().map_or(Repr::NOWHERE, |id| Repr::Item { build: self.build, id: *id }))
    }
}

impl Kernel {
    /// A pure function: what `body` computes from its parameters, whose types are written out.
    ///
    /// ```
    /// # use vyre_foundation::build::prelude::*;
    /// # let program = vyre_foundation::build::program("p", |k| {
    /// # let y = k.output::<f32>("y").with_count(1);
    /// let mix = k.function("mix", |a: Value<f32>, b: Value<f32>, t: Value<f32>| a + (b - a) * t);
    /// y.store(0, mix.call(1.0, 3.0, 0.5));
    /// # }).unwrap();
    /// # assert!(program.to_string().contains("return a + (b - a) * c;"), "{program}");
    /// ```
    #[track_caller]
    pub fn function<Args, R, F>(&self, name: impl Into<Name>, body: F) -> Function<Args, R>
    where
        R: Scalar,
        F: FunctionBody<Args, R>,
    {
        let at = Location::caller();
        let entered = self.with(at, |state| {
            let number = state.routines.len();
            let entered = state.enter_function(number);
            let params: Vec<(VarId, Type)> = F::types()
                .into_iter()
                .zip(["a", "b", "c", "d"])
                .map(|(ty, hint)| (state.var(Some(hint.into()), at), ty))
                .collect();
            let items: Vec<_> =
                params.iter().map(|(var, _)| state.item(Op::Variable(*var), Kind::Leaf, at)).collect();
            let (name, result_type) = (name.into(), R::TYPE);
            // The result is not known yet; a function that is called inside the body comes after this one.
            let result = state.leaf(Expr::bool(false), at);
            state.routines.push(Routine { name, params, result_type, block: entered.block, result, at });
            (number, entered, items, state.build)
        });
        let Some((number, entered, items, build)) = entered else {
            return Function { build: 0, number: 0, types: PhantomData };
        };
        let params = Params { build, items: items.iter() };
        state::inside(entered, || {
            let result = body.result(params).repr();
            self.with(at, |state| {
                state.routines[number].result = state.operand(result, at);
                state.close(entered.block);
            });
        });
        Function { build, number, types: PhantomData }
    }
}

impl<Args, R: Scalar> Function<Args, R> {
    fn apply(self, args: &[Repr], at: state::At) -> Value<R> {
        let made = state::with(|state| {
            state.owns(self.build, at).then(|| {
                let name = state.routines[self.number].name.clone();
                let template = Expr::call(name, args.iter().map(|_| hole()));
                let id = state.expr(template, Kind::Pure, args, at);
                Repr::Item { build: state.build, id }
            })
        });
        Value::new(made.flatten().unwrap_or(Repr::NOWHERE))
    }
}

macro_rules! arity {
    ($($arg:ident $value:ident),*) => {
        impl<F, R: Scalar, $($arg: Scalar),*> FunctionBody<($($arg,)*), R> for F
        where
            F: FnOnce($(Value<$arg>),*) -> Value<R>,
        {
            fn types() -> Vec<Type> {
                vec![$($arg::TYPE),*]
            }

            fn result(self, mut params: Params<'_>) -> Value<R> {
                // Arguments are evaluated in order.
                self($(params.next::<$arg>()),*)
            }
        }

        impl<R: Scalar, $($arg: Scalar),*> Function<($($arg,)*), R> {
            /// The result for these arguments.
            #[must_use]
            #[track_caller]
            pub fn call(self, $($value: impl IntoValue<$arg>),*) -> Value<R> {
                self.apply(&[$($value.into_value().repr()),*], Location::caller())
            }
        }
    };
}

arity!(A a);
arity!(A a, B b);
arity!(A a, B b, C c);
arity!(A a, B b, C c, D d);
