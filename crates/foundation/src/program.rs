//! The program: declarations, functions and one entry body.

use crate::source::SourceMap;
use crate::stats::Stats;
use crate::{Body, BufferDecl, Expr, Name, Node, Type, wire};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// How many invocations a workgroup has, and on how many axes the program says so.
///
/// `workgroup_size 64;` and `workgroup_size 64, 1, 1;` run alike, but only a program that names one number gets
/// a grid from the sizes of its buffers ([`crate::grid`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WorkgroupSize {
    size: [u32; 3],
    axes: u8,
}

impl WorkgroupSize {
    /// The invocations on each axis; 1 on an axis that the program does not name.
    pub const fn size(self) -> [u32; 3] {
        self.size
    }

    /// How many axes the program names: 1, 2 or 3.
    pub const fn axes(self) -> usize {
        self.axes as usize
    }

    /// The numbers that the program names.
    pub fn named(&self) -> &[u32] {
        &self.size[..self.axes()]
    }

    /// How many invocations a workgroup has.
    pub const fn invocations(self) -> u64 {
        // Saturating: three arbitrary axes can exceed 64 bits before validation has bounded them.
        (self.size[0] as u64 * self.size[1] as u64).saturating_mul(self.size[2] as u64)
    }
}

impl Default for WorkgroupSize {
    fn default() -> WorkgroupSize {
        1.into()
    }
}

impl From<u32> for WorkgroupSize {
    fn from(x: u32) -> WorkgroupSize {
        WorkgroupSize { size: [x, 1, 1], axes: 1 }
    }
}

impl From<[u32; 1]> for WorkgroupSize {
    fn from([x]: [u32; 1]) -> WorkgroupSize {
        x.into()
    }
}

impl From<[u32; 2]> for WorkgroupSize {
    fn from([x, y]: [u32; 2]) -> WorkgroupSize {
        WorkgroupSize { size: [x, y, 1], axes: 2 }
    }
}

impl From<[u32; 3]> for WorkgroupSize {
    fn from(size: [u32; 3]) -> WorkgroupSize {
        WorkgroupSize { size, axes: 3 }
    }
}

/// A pure function of a program: parameters, `let`s, one result. It sees its arguments alone.
#[derive(Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<(Name, Type)>,
    /// The type of its result.
    pub result_type: Type,
    /// The values it names, in order.
    pub lets: Vec<(Name, Expr)>,
    /// Its result.
    pub result: Expr,
}

impl Function {
    /// The expressions of the function in source order: the `let`s, then the result.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.lets.iter().map(|(_, value)| value).chain([&self.result])
    }
}

/// A stable 256-bit hash of a program's content: equal on every run, thread and machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramHash([u8; 32]);

impl ProgramHash {
    /// The bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash of something that was made of the program, and that `how` says how.
    #[must_use]
    pub fn derived(&self, how: &str) -> ProgramHash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(how.as_bytes());
        ProgramHash(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ProgramHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A compute program. Cloning it is cheap: all clones share one body.
///
/// ```
/// use vyre_foundation::{Axis, BufferDecl, Element, Expr, Node, Program};
///
/// let gid = || Expr::invocation_id(Axis::X);
/// let program = Program::new(
///     [BufferDecl::read("a", Element::U32), BufferDecl::output("o", Element::U32)],
///     64,
///     [Node::store("o", gid(), Expr::add(Expr::load("a", gid()), Expr::u32(1)))],
/// );
/// assert!(program.validate().is_ok());
/// assert_eq!(Program::parse(&program.to_string()).unwrap(), program);
/// ```
#[derive(Clone)]
pub struct Program(Arc<Parts>);

struct Parts {
    name: Name,
    workgroup_size: WorkgroupSize,
    subgroup_size: u32,
    buffers: Arc<[BufferDecl]>,
    functions: Arc<[Function]>,
    entry: Body,
    source: Option<Arc<SourceMap>>,
    hash: OnceLock<ProgramHash>,
}

impl Program {
    /// The subgroup size of a program that names none.
    pub const DEFAULT_SUBGROUP_SIZE: u32 = 32;

    /// The name of a program that was given none.
    pub const DEFAULT_NAME: &'static str = "main";

    /// A program with this entry body.
    pub fn new(
        buffers: impl Into<Arc<[BufferDecl]>>,
        workgroup_size: impl Into<WorkgroupSize>,
        entry: impl Into<Body>,
    ) -> Program {
        Program(Arc::new(Parts {
            name: Program::DEFAULT_NAME.into(),
            workgroup_size: workgroup_size.into(),
            subgroup_size: Program::DEFAULT_SUBGROUP_SIZE,
            buffers: buffers.into(),
            functions: Arc::new([]),
            entry: entry.into(),
            source: None,
            hash: OnceLock::new(),
        }))
    }

    /// A program whose entry is one [`Node::Region`] around these statements.
    pub fn wrapped(
        buffers: impl Into<Arc<[BufferDecl]>>,
        workgroup_size: impl Into<WorkgroupSize>,
        entry: impl Into<Body>,
    ) -> Program {
        Program::new(buffers, workgroup_size, [Node::region("entry", entry)])
    }

    /// A program without buffers and statements.
    pub fn empty() -> Program {
        Program::new([], 1, [])
    }

    /// A copy of the parts to change. Whatever changes, the source positions no longer hold.
    fn edit(self, change: impl FnOnce(&mut Parts)) -> Program {
        let mut parts = Arc::unwrap_or_clone(self.0);
        parts.source = None;
        parts.hash = OnceLock::new();
        change(&mut parts);
        Program(Arc::new(parts))
    }

    /// The same program under another name.
    pub fn with_name(self, name: impl Into<Name>) -> Program {
        self.edit(|parts| parts.name = name.into())
    }

    /// The same program with another workgroup size.
    pub fn with_workgroup_size(self, size: impl Into<WorkgroupSize>) -> Program {
        self.edit(|parts| parts.workgroup_size = size.into())
    }

    /// The same program with another subgroup size.
    pub fn with_subgroup_size(self, size: u32) -> Program {
        self.edit(|parts| parts.subgroup_size = size)
    }

    /// The same program with these functions.
    pub fn with_functions(self, functions: impl Into<Arc<[Function]>>) -> Program {
        self.edit(|parts| parts.functions = functions.into())
    }

    /// The same program with another entry body.
    pub fn with_rewritten_entry(self, entry: impl Into<Body>) -> Program {
        self.edit(|parts| parts.entry = entry.into())
    }

    /// The same program with other buffers.
    pub fn with_rewritten_buffers(self, buffers: impl Into<Arc<[BufferDecl]>>) -> Program {
        self.edit(|parts| parts.buffers = buffers.into())
    }

    pub(crate) fn with_source(self, source: SourceMap) -> Program {
        self.edit(|parts| parts.source = Some(Arc::new(source)))
    }

    /// The program's name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// The workgroup size.
    pub fn workgroup_size(&self) -> WorkgroupSize {
        self.0.workgroup_size
    }

    /// The subgroup size that the program sees on every backend.
    pub fn subgroup_size(&self) -> u32 {
        self.0.subgroup_size
    }

    /// The buffers, in the order of inputs and outputs.
    pub fn buffers(&self) -> &[BufferDecl] {
        &self.0.buffers
    }

    /// The buffer with this name.
    pub fn buffer(&self, name: &str) -> Option<&BufferDecl> {
        self.buffers().iter().find(|b| b.name() == name)
    }

    /// The buffers whose contents the caller gives, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &BufferDecl> {
        self.buffers().iter().filter(|b| b.consumes_input())
    }

    /// The buffers whose contents are returned, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &BufferDecl> {
        self.buffers().iter().filter(|b| b.produces_output())
    }

    /// The functions.
    pub fn functions(&self) -> &[Function] {
        &self.0.functions
    }

    /// The entry body.
    pub fn entry(&self) -> &Body {
        &self.0.entry
    }

    /// Where the parts stand in the text they were parsed from; `None` for a program built or rewritten in Rust.
    pub fn source(&self) -> Option<&SourceMap> {
        self.0.source.as_deref()
    }

    /// Counts of what the program holds, from one pass over it.
    pub fn stats(&self) -> Stats {
        Stats::of(self)
    }

    /// The stable hash of the content: of the wire form, so source positions do not count.
    pub fn content_hash(&self) -> ProgramHash {
        *self.0.hash.get_or_init(|| ProgramHash(*blake3::hash(&wire::payload(self)).as_bytes()))
    }
}

impl Clone for Parts {
    fn clone(&self) -> Parts {
        Parts {
            name: self.name.clone(),
            workgroup_size: self.workgroup_size,
            subgroup_size: self.subgroup_size,
            buffers: self.buffers.clone(),
            functions: self.functions.clone(),
            entry: self.entry.clone(),
            source: self.source.clone(),
            hash: self.hash.clone(),
        }
    }
}

impl PartialEq for Program {
    /// Equal content. Where the text came from does not count.
    fn eq(&self, other: &Program) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || wire::payload(self) == wire::payload(other)
    }
}

impl Eq for Program {}
