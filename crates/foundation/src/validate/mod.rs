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
pub use uniformity::Level;

use crate::diagnostic::{Cause, Diagnostic, Diagnostics, Note, Place, Problem, Severity};
use crate::{Body, Name, Program, Span, Type, is_identifier, is_reserved, nearest};
use path::{Path, Step};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
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

/// How uniform the control inside each `if` and `for` of a valid program is, by the number of the statement in
/// the order in which statements begin. `Return` and `Trap` do not count: invocations that have ended would
/// decide as the others do.
pub fn control_levels(program: &Program) -> FxHashMap<usize, Level> {
    Checker::walked(program).graph.control_levels()
}

fn run(program: &Program, warnings: bool) -> Diagnostics {
    let found = limits::check(program);
    if !found.is_empty() {
        // The checks below recur over the tree and count on the limits.
        return found;
    }
    let mut found = Checker::walked(program).finish();
    if warnings && !found.has_errors() {
        for warning in races::find(program) {
            found.push(warning);
        }
    }
    // Doubts about a program that is wrong would only hide what is wrong.
    let warnings = warnings && !found.has_errors();
    let keep = |d: &Diagnostic| warnings || d.severity() == Severity::Error;
    found.iter().filter(|d| keep(d)).cloned().collect::<Diagnostics>().sorted()
}

impl Diagnostics {
    /// Writes the paths of statements that were met earlier in the walk: all of them in one more walk.
    fn name_statements(&mut self, entry: &Body) {
        let places = |d: &mut Diagnostics, visit: &mut dyn FnMut(&mut Place)| {
            for diagnostic in d.iter_mut() {
                visit(&mut diagnostic.place);
                diagnostic.notes.iter_mut().for_each(|note| visit(&mut note.place));
            }
        };
        let mut wanted = BTreeSet::new();
        places(self, &mut |place| wanted.extend(path::is_pending(&place.path)));
        let paths = path::of_statements(entry, &wanted);
        places(self, &mut |place| {
            if let Some(number) = path::is_pending(&place.path) {
                place.path = paths.get(&number).cloned().unwrap_or_default();
            }
        });
    }
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

/// What a variable was opened by. Statements are known by their number.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    Let(usize),
    Loop(usize),
    /// The parameter of a function.
    Param(usize, usize),
    /// The `let` of a function.
    FunctionLet(usize, usize),
}

struct Variable {
    name: Name,
    /// `None` after an error in its value, so that one mistake is reported once.
    ty: Option<Type>,
    origin: Origin,
    /// Which value it holds at this point of the walk.
    uniform: Uniform,
    /// The loop that was last found to assign it.
    seen_in: usize,
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
    names: FxHashMap<&'p Name, Vec<Binding>>,
    opened: Vec<&'p Name>,
    variables: Vec<Variable>,
    /// The variables of `let` statements, by the number of the statement.
    variable_of_let: Vec<u32>,
    /// How many of the variables belong to functions; those of the entry body follow.
    function_variables: usize,
    assignments: Assignments,
    graph: Graph,
    flows: Flows,
    /// How many statements and expressions the walk has met: their numbers in the source map.
    node: usize,
    expr: usize,
    /// The number of the first statement that some invocations may not reach because they have ended.
    first_end: usize,
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
            variable_of_let: Vec::new(),
            function_variables: 0,
            assignments: Assignments::of(program.entry()),
            graph: Graph::default(),
            flows: Flows::default(),
            node: 0,
            expr: 0,
            first_end: Checker::first_end(program.entry()),
            function: None,
            effect: None,
        }
    }

    /// The checker after its walk over the whole program.
    fn walked(program: &'p Program) -> Checker<'p> {
        let mut checker = Checker::new(program);
        checker.declarations();
        checker.functions();
        checker.function_variables = checker.variables.len();
        checker.entry();
        checker
    }

    fn finish(mut self) -> Diagnostics {
        for (problem, place, causes) in self.graph.solve() {
            let notes = causes.into_iter().map(|(at, cause)| Note { place: self.place_at(at), cause });
            let notes = notes.collect();
            self.found.push(Diagnostic { problem, place, notes });
        }
        self.found.name_statements(self.program.entry());
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
        Place { span, path: path::pending(at.node()) }
    }

    /// Where something was declared.
    fn declared_at(&self, binding: Binding) -> Place {
        let source = self.program.source();
        let (span, path) = match binding {
            Binding::Buffer(i) => (source.map(|s| s.buffers[i].name), format!("buffers[{i}]")),
            Binding::Function(i) => (source.map(|s| s.functions[i].name), format!("functions[{i}]")),
            Binding::Variable(i) => match self.variables[i].origin {
                Origin::Let(node) | Origin::Loop(node) => {
                    return self.place_at(uniformity::At::Name { node: node as u32 });
                }
                Origin::Param(f, i) => {
                    (source.map(|s| s.functions[f].params[i]), format!("functions[{f}].params[{i}]"))
                }
                Origin::FunctionLet(f, i) => {
                    (source.map(|s| s.functions[f].lets[i]), format!("functions[{f}].lets[{i}]"))
                }
            },
        };
        Place { span, path }
    }

    /// Opens a name. A name that is visible already is reported.
    fn open(&mut self, name: &'p Name, binding: Binding) {
        let problem = if !is_identifier(name) {
            Some(Problem::NotAName(name.clone()))
        } else if is_reserved(name) {
            Some(Problem::ReservedName(name.clone()))
        } else {
            None
        };
        if let Some(problem) = problem {
            let place = self.declared_at(binding);
            self.report(problem, place);
        }
        if let Some(earlier) = self.lookup(name) {
            let note = Note { place: self.declared_at(earlier), cause: Cause::Declared(name.clone()) };
            let (problem, place) = (Problem::Shadowed(name.clone()), self.declared_at(binding));
            self.found.push(Diagnostic { problem, place, notes: vec![note] });
        }
        self.names.entry(name).or_default().push(binding);
        self.opened.push(name);
    }

    fn open_variable(&mut self, name: &'p Name, origin: Origin, value: Value) {
        let id = self.variables.len();
        let Value { ty, uniform } = value;
        self.variables.push(Variable { name: name.clone(), ty, origin, uniform, seen_in: usize::MAX });
        if let Origin::Let(node) = origin {
            self.variable_of_let.resize(node + 1, u32::MAX);
            self.variable_of_let[node] = id as u32;
        }
        self.open(name, Binding::Variable(id));
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
        self.names.get(name).and_then(|bindings| bindings.last()).copied()
    }

    /// What else the name could have meant: what it is, and the nearest visible name of the right sort.
    fn suggestion(&self, name: &Name, wanted: fn(Binding) -> bool) -> (Option<&'static str>, Option<Name>) {
        // A long program with a mistake in every line must not compare each with every name.
        let few = self.names.len() <= 1000 && self.found.len() <= 100;
        let visible = self
            .names
            .iter()
            .filter(|_| few)
            .filter_map(|(name, bindings)| wanted(*bindings.last()?).then_some(name.as_str()));
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
            if buffer.count().is_none() && !buffer.access().allows_open_count() {
                let (name, access) = (buffer.name().clone(), buffer.access());
                let whole = self.place(source.map(|s| s.buffers[i].whole));
                self.report(Problem::CountNeeded { name, access }, whole);
            }
            self.open(buffer.name(), Binding::Buffer(i));
            self.path.pop();
        }
    }
}
