//! Pure functions: parameters and results of every type, calls among them.

use super::Generator;
use super::feature::Feature;
use super::scope::{Level, Variable, Variables};
use vyre_foundation::{Function, Name, Type};

impl Generator {
    /// Makes the functions of the program. Later ones may call earlier ones.
    pub(super) fn functions(&mut self) {
        let mut results: Vec<Type> = Vec::new();
        for feature in &self.features {
            if let Feature::Function(ty) = feature {
                results.push(*ty);
            }
        }
        for _ in 0..self.rng.below(4) {
            results.push(*self.rng.pick(&Type::ALL));
        }
        for (i, result) in results.into_iter().enumerate() {
            let function = self.function(Name::from(format!("f{i}")), result);
            self.functions.push(function);
        }
    }

    fn function(&mut self, name: Name, result_type: Type) -> Function {
        self.pure = true;
        let outer = std::mem::take(&mut self.variables);
        let mut params = Vec::new();
        for i in 0..self.rng.below(4) {
            let ty = *self.rng.pick(&Type::ALL);
            let name = Name::from(format!("p{i}"));
            params.push((name.clone(), ty));
            self.variables.open(Variable { name, ty, level: Level::Grid, mutable: false });
        }
        let mut lets = Vec::new();
        for _ in 0..self.rng.below(3) {
            let ty = *self.rng.pick(&Type::ALL);
            let value = self.expr(ty, Level::Grid, 2);
            let pick = self.rng.below(16);
            let name = self.variables.fresh_name(pick);
            self.variables.open(Variable { name: name.clone(), ty, level: Level::Grid, mutable: false });
            lets.push((name, value));
        }
        // Half of the functions call another one where the types allow it.
        let called = if self.rng.chance(1, 2) { self.call(result_type, Level::Grid, 1) } else { None };
        let result = match called {
            Some(call) => call,
            None => self.expr(result_type, Level::Grid, 3),
        };
        self.variables = outer;
        self.pure = false;
        debug_assert!(self.variables.mark() == Variables::default().mark(), "functions come first");
        Function { name, params, result_type, lets, result }
    }
}
