//! The functions that stand for operations, and their names in a program.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;
use vyre_foundation::{Event, Expr, Function, Name, Node, Program, Type, Walk};

/// The functions, as they are written.
static LIBRARY: LazyLock<FxHashMap<Name, Function>> = LazyLock::new(|| {
    let library = Program::parse(include_str!("soft.vyre")).expect("a test parses the same text");
    library.functions().iter().map(|function| (function.name.clone(), function.clone())).collect()
});

/// The functions that a program calls, under names that it does not have.
pub(super) struct Soft {
    prefix: String,
    /// The functions that are called and not yet added.
    pending: Vec<&'static Function>,
    /// The type of each function that is called.
    results: FxHashMap<Name, Type>,
}

impl Soft {
    pub(super) fn new(program: &Program) -> Soft {
        Soft { prefix: prefix(program), pending: Vec::new(), results: FxHashMap::default() }
    }

    /// The name by which the program calls a function, and the type of its result.
    pub(super) fn call(&mut self, name: &str) -> (Name, Type) {
        let function = &LIBRARY[name];
        let name = self.name(name);
        if self.results.insert(name.clone(), function.result_type).is_none() {
            self.pending.push(function);
        }
        (name, function.result_type)
    }

    /// The type of a function that is called.
    pub(super) fn result(&self, name: &str) -> Option<Type> {
        self.results.get(name).copied()
    }

    /// A function that is called and was not given yet, in the names of the program.
    pub(super) fn next(&mut self) -> Option<Function> {
        let function = self.pending.pop()?;
        Some(Function {
            name: self.name(&function.name),
            params: function.params.iter().map(|(name, ty)| (self.name(name), *ty)).collect(),
            result_type: function.result_type,
            lets: function.lets.iter().map(|(name, value)| (self.name(name), self.renamed(value))).collect(),
            result: self.renamed(&function.result),
        })
    }

    fn name(&self, name: &str) -> Name {
        format!("{}{name}", self.prefix).into()
    }

    /// The expression in the names of the program. The functions are not deep.
    fn renamed(&mut self, expr: &Expr) -> Expr {
        let expr = expr.clone().map_operands(&mut |operand| self.renamed(&operand));
        match expr {
            Expr::Var(name) => Expr::Var(self.name(&name)),
            Expr::Call { function, args } => Expr::Call { function: self.call(&function).0, args },
            expr => expr,
        }
    }
}

/// A beginning of names that nothing in the program has.
fn prefix(program: &Program) -> String {
    let mut prefix = "soft_".to_owned();
    let mut taken = Vec::new();
    taken.extend(program.buffers().iter().map(|buffer| buffer.name()));
    for function in program.functions() {
        taken.push(&function.name);
        taken.extend(function.params.iter().map(|(name, _)| name));
        taken.extend(function.lets.iter().map(|(name, _)| name));
    }
    for event in Walk::new(program.entry()) {
        if let Event::Node(Node::Let { name, .. } | Node::Loop { var: name, .. }) = event {
            taken.push(name);
        }
    }
    while taken.iter().any(|name| name.starts_with(&prefix)) {
        prefix.insert(0, '_');
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_parse_and_are_valid() {
        let library = Program::parse(include_str!("soft.vyre")).expect("it parses");
        library.validate().expect("it is valid");
        assert_eq!(library.functions().len(), LIBRARY.len());
    }

    #[test]
    fn the_names_of_a_program_stay_free() {
        let text = "program p {
            buffer o: output f32[1];
            fn _soft_x(a: f32) -> f32 { let __soft_ = a; return __soft_ * a; }
            for soft_i in 0..1 { o[soft_i] = _soft_x(o[0]); }
        }";
        let program = Program::parse(text).expect("it parses");
        assert_eq!(prefix(&program), "___soft_");
        let legal = crate::legalize(&program, &crate::Legal::NONE);
        legal.validate().expect("it is valid");
    }
}
