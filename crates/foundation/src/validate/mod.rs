//! Validation: names, types, limits and uniform control, all errors at once.
//!
//! [`validate`] says whether a program may run; [`check`] also gives warnings. After validation every
//! backend may rely on what it proves: names resolve, types fit, barriers stand in uniform control, and trees
//! are no deeper than the [`limits`], so that recursion over them is safe.

mod assignments;
mod expressions;
mod functions;
pub mod limits;
mod path;
mod races;
mod statements;
mod uniformity;

pub(crate) use assignments::Assignments;

use crate::diagnostic::{Cause, Diagnostic, Diagnostics, Note, Place, Problem, Severity};
use crate::{Name, Program, Span, Type, is_identifier, is_reserved, nearest};
use path::{Path, Step};
use rustc_hash::FxHashMap;
use uniformity::{Flows, Graph, Uniform};

/// Checks a program and reports every error in it.
///
/// ```
/// use vyre_foundation::Program;
/// let program = Program::parse("program p { barrier(grid); if local_id.x == 0 { barrier(workgroup); } }").unwrap();
/// let errors = program.validate().unwrap_err();
/// assert_eq!(errors.iter().next().unwrap().code(), "V018");
/// ```
pub fn validate(program: &Program) -> Result<(), Diagnostics> {
    let found = run(program, false);
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Every error and warning of a program.
pub fn check(program: &Program) -> Diagnostics {
    run(program, true)
}

impl Program {
    /// Checks the program; see [`validate`](crate::validate()).
    pub fn validate(&self) -> Result<(), Diagnostics> {
        validate(self)
    }

    /// Every error and warning; see [`check`](crate::validate::check).
    pub fn check(&self) -> Diagnostics {
        check(self)
    }
}

fn run(program: &Program, warnings: bool) -> Diagnostics {
    let found = limits::check(program);
    if !found.is_empty() {
        // The checks below recur over the tree and count on the limits.
        return found;
    }
    let mut checker = Checker::new(program);
    checker.declarations();
    checker.functions();
    checker.function_variables = checker.variables.len();
    checker.entry();
    let mut found = checker.finish();
    if warnings && !found.has_errors() {
        for warning in races::find(program) {
            found.push(warning);
        }
    }
    let keep = |d: &Diagnostic| warnings || d.severity() == Severity::Error;
    found.iter().filter(|d| keep(d)).cloned().collect::<Diagnostics>().sorted()
}

/// What a visible name stands for.
#[derive(Clone, Copy)]
enum Binding {
    Buffer(usize),
    Function(usize),
    Variable(usize),
}

impl Binding {
    fn describe(self) -> &'static str {
        match self {
            Binding::Buffer(_) => "a buffer",
            Binding::Function(_) => "a function",
            Binding::Variable(_) => "a variable",
        }
    }
}

/// What a variable was opened by.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Let,
    Loop,
    Param,
}

struct Variable {
    name: Name,
    /// `None` after an error in its value, so that one mistake is reported once.
    ty: Option<Type>,
    kind: Kind,
    /// The number of the `let`, for [`Assignments`].
    node: usize,
    place: Place,
    /// Which value it holds at this point of the walk.
    uniform: Uniform,
}

/// The type and uniformity of an expression.
#[derive(Clone, Copy)]
struct Value {
    ty: Option<Type>,
    uniform: Uniform,
}

struct Checker<'p> {
    program: &'p Program,
    found: Diagnostics,
    path: Path,
    names: FxHashMap<&'p Name, Vec<(Binding, Place)>>,
    opened: Vec<&'p Name>,
    variables: Vec<Variable>,
    /// How many of the variables belong to functions; those of the entry body follow.
    function_variables: usize,
    assignments: Assignments,
    graph: Graph,
    flows: Flows,
    /// How many statements and expressions the walk has met: their numbers in the source map.
    node: usize,
    expr: usize,
    /// The function being checked; `None` in the entry body.
    function: Option<usize>,
    /// What has happened in this statement that a uniform load must not follow.
    effect: Option<&'static str>,
}

impl<'p> Checker<'p> {
    fn new(program: &'p Program) -> Checker<'p> {
        Checker {
            program,
            found: Diagnostics::default(),
            path: Path::default(),
            names: FxHashMap::default(),
            opened: Vec::new(),
            variables: Vec::new(),
            function_variables: 0,
            assignments: Assignments::of(program.entry()),
            graph: Graph::default(),
            flows: Flows::default(),
            node: 0,
            expr: 0,
            function: None,
            effect: None,
        }
    }

    fn finish(mut self) -> Diagnostics {
        for (problem, place, causes) in self.graph.solve() {
            let notes = causes.into_iter().map(|(at, cause)| Note { place: self.place_at(at), cause });
            let notes = notes.collect();
            self.found.push(Diagnostic { problem, place, notes });
        }
        self.found
    }

    fn report(&mut self, problem: Problem, place: Place) {
        self.found.push(Diagnostic::new(problem, place));
    }

    fn place(&self, span: Option<Span>) -> Place {
        Place { span, path: self.path.to_string() }
    }

    /// The place of the statement that is being checked.
    fn statement_place(&self, node: usize) -> Place {
        self.place(self.program.source().map(|s| s.nodes[node].whole))
    }

    /// The place of the name in that statement.
    fn name_place(&self, node: usize) -> Place {
        self.place(self.program.source().map(|s| s.nodes[node].name))
    }

    /// The place of an expression by its number, with the path that leads to it now.
    fn expr_place(&self, expr: usize) -> Place {
        self.place(self.program.source().map(|s| s.exprs[expr]))
    }

    /// The place of something met earlier in the walk.
    fn place_at(&self, at: uniformity::At) -> Place {
        let span = self.program.source().map(|s| match at {
            uniformity::At::Expr { expr, .. } => s.exprs[expr as usize],
            uniformity::At::Name { node } => s.nodes[node as usize].name,
            uniformity::At::Statement { node } => s.nodes[node as usize].whole,
        });
        Place { span, path: path::of_statement(self.program.entry(), at.node()) }
    }

    /// Opens a name. A name that is visible already is reported and stays what it was.
    fn open(&mut self, name: &'p Name, binding: Binding, place: Place) {
        if !is_identifier(name) {
            self.report(Problem::NotAName(name.clone()), place.clone());
        } else if is_reserved(name) {
            self.report(Problem::ReservedName(name.clone()), place.clone());
        }
        let earlier = self.names.get(name).and_then(|b| b.last()).map(|(_, place)| place.clone());
        if let Some(earlier) = earlier {
            let note = Note { place: earlier, cause: Cause::Declared(name.clone()) };
            let problem = Problem::Shadowed(name.clone());
            self.found.push(Diagnostic { problem, place: place.clone(), notes: vec![note] });
        }
        self.names.entry(name).or_default().push((binding, place));
        self.opened.push(name);
    }

    fn open_variable(
        &mut self,
        name: &'p Name,
        kind: Kind,
        value: Value,
        node: usize,
        place: Place,
    ) -> usize {
        let id = self.variables.len();
        self.variables.push(Variable {
            name: name.clone(),
            ty: value.ty,
            kind,
            node,
            place: place.clone(),
            uniform: value.uniform,
        });
        self.open(name, Binding::Variable(id), place);
        id
    }

    /// Runs `body` in a scope of its own.
    fn scope<R>(&mut self, body: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.opened.len();
        let result = body(self);
        for name in self.opened.drain(mark..) {
            if let Some(bindings) = self.names.get_mut(name) {
                bindings.pop();
            }
        }
        result
    }

    fn lookup(&self, name: &Name) -> Option<Binding> {
        self.names.get(name).and_then(|b| b.last()).map(|(binding, _)| *binding)
    }

    /// What else the name could have meant: what it is, and the nearest visible name of the right sort.
    fn suggestion(&self, name: &Name, wanted: fn(Binding) -> bool) -> (Option<&'static str>, Option<Name>) {
        // A long program with a mistake in every line must not compare each with every name.
        let few = self.names.len() <= 1000;
        let visible = self.names.iter().filter(|_| few).filter_map(|(name, bindings)| {
            let (binding, _) = bindings.last()?;
            wanted(*binding).then_some(name.as_str())
        });
        let mut visible: Vec<_> = visible.collect();
        visible.sort_unstable();
        (self.lookup(name).map(Binding::describe), nearest(name, visible).map(Name::from))
    }

    fn declarations(&mut self) {
        let program = self.program;
        let source = program.source();
        self.path.push(Step::Field("name"));
        let place = self.place(source.map(|s| s.name));
        if !is_identifier(program.name()) {
            self.report(Problem::NotAName(program.name().clone()), place);
        } else if is_reserved(program.name()) {
            self.report(Problem::ReservedName(program.name().clone()), place);
        }
        self.path.pop();
        let size = program.workgroup_size();
        if size.size().contains(&0) || size.invocations() > limits::WORKGROUP {
            self.path.push(Step::Field("workgroup_size"));
            let place = self.place(source.map(|s| s.workgroup_size));
            self.report(Problem::BadWorkgroupSize { size: size.size() }, place);
            self.path.pop();
        }
        let subgroup = program.subgroup_size();
        if !subgroup.is_power_of_two() || subgroup > 64 {
            self.path.push(Step::Field("subgroup_size"));
            let place = self.place(source.map(|s| s.subgroup_size));
            self.report(Problem::BadSubgroupSize(subgroup), place);
            self.path.pop();
        }
        for (i, buffer) in program.buffers().iter().enumerate() {
            self.path.push(Step::Buffer(i));
            let place = self.place(source.map(|s| s.buffers[i].name));
            if buffer.count().is_none() && !buffer.access().allows_open_count() {
                let (name, access) = (buffer.name().clone(), buffer.access());
                let whole = self.place(source.map(|s| s.buffers[i].whole));
                self.report(Problem::CountNeeded { name, access }, whole);
            }
            self.open(buffer.name(), Binding::Buffer(i), place);
            self.path.pop();
        }
    }
}
