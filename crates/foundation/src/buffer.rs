//! Buffer declarations: what memory a program has, who fills it and who gets it back.

use crate::{Element, Name};
use std::fmt;

/// Who fills a buffer, what the program may do with it and who gets it back.
///
/// One enum says it all, so a declaration cannot contradict itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum BufferAccess {
    /// `read`: the caller gives bytes, the program loads.
    ReadOnly,
    /// `uniform`: the caller gives bytes, the program loads; small data that every invocation reads alike.
    Uniform,
    /// `read_write`: the caller gives bytes and gets them back; loads, stores and atomics.
    ReadWrite,
    /// `output`: starts as zeros and is returned; loads, stores and atomics.
    Output,
    /// `write`: starts as zeros and is returned; stores only.
    WriteOnly,
    /// `scratch`: zeros at the start of each pass, shared by the grid, not returned.
    Scratch,
    /// `workgroup`: zeros at the start of a workgroup, shared by it.
    Workgroup,
    /// `local`: zeros at the start of an invocation, private to it.
    Local,
}

impl BufferAccess {
    /// Every access, in declaration order.
    pub const ALL: [BufferAccess; 8] = [
        BufferAccess::ReadOnly,
        BufferAccess::Uniform,
        BufferAccess::ReadWrite,
        BufferAccess::Output,
        BufferAccess::WriteOnly,
        BufferAccess::Scratch,
        BufferAccess::Workgroup,
        BufferAccess::Local,
    ];

    /// The word in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            BufferAccess::ReadOnly => "read",
            BufferAccess::Uniform => "uniform",
            BufferAccess::ReadWrite => "read_write",
            BufferAccess::Output => "output",
            BufferAccess::WriteOnly => "write",
            BufferAccess::Scratch => "scratch",
            BufferAccess::Workgroup => "workgroup",
            BufferAccess::Local => "local",
        }
    }

    /// Whether the caller gives the contents.
    pub const fn consumes_input(self) -> bool {
        matches!(self, BufferAccess::ReadOnly | BufferAccess::Uniform | BufferAccess::ReadWrite)
    }

    /// Whether the contents are returned to the caller.
    pub const fn produces_output(self) -> bool {
        matches!(self, BufferAccess::ReadWrite | BufferAccess::Output | BufferAccess::WriteOnly)
    }

    /// Whether the program may load from it.
    pub const fn allows_load(self) -> bool {
        !matches!(self, BufferAccess::WriteOnly)
    }

    /// Whether the program may store to it.
    pub const fn allows_store(self) -> bool {
        !matches!(self, BufferAccess::ReadOnly | BufferAccess::Uniform)
    }

    /// Whether the program may use atomics on it.
    pub const fn allows_atomics(self) -> bool {
        matches!(
            self,
            BufferAccess::ReadWrite | BufferAccess::Output | BufferAccess::Scratch | BufferAccess::Workgroup
        )
    }

    /// Whether the whole grid shares it. Workgroup and local memory are not shared by the grid.
    pub const fn is_shared_by_grid(self) -> bool {
        !matches!(self, BufferAccess::Workgroup | BufferAccess::Local)
    }

    /// Whether the element count may be left open.
    pub const fn allows_open_count(self) -> bool {
        self.is_shared_by_grid()
    }
}

impl fmt::Display for BufferAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The declaration of a buffer.
///
/// ```
/// use vyre_foundation::{BufferDecl, Element};
/// let open = BufferDecl::read("a", Element::F32);
/// assert!(open.consumes_input() && !open.produces_output());
/// assert_eq!(BufferDecl::output("o", Element::U32).with_count(4).count(), Some(4));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BufferDecl {
    name: Name,
    access: BufferAccess,
    element: Element,
    count: Option<u32>,
}

impl BufferDecl {
    /// A buffer of any access, its count left open.
    pub fn storage(name: impl Into<Name>, access: BufferAccess, element: Element) -> BufferDecl {
        BufferDecl { name: name.into(), access, element, count: None }
    }

    /// A `read` buffer, its count left open.
    pub fn read(name: impl Into<Name>, element: Element) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::ReadOnly, element)
    }

    /// A `read_write` buffer, its count left open.
    pub fn read_write(name: impl Into<Name>, element: Element) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::ReadWrite, element)
    }

    /// An `output` buffer, its count left open.
    pub fn output(name: impl Into<Name>, element: Element) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::Output, element)
    }

    /// A `write` buffer, its count left open.
    pub fn write(name: impl Into<Name>, element: Element) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::WriteOnly, element)
    }

    /// A `uniform` buffer, its count left open.
    pub fn uniform(name: impl Into<Name>, element: Element) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::Uniform, element)
    }

    /// A `scratch` buffer, its count left open.
    pub fn scratch(name: impl Into<Name>, element: Element) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::Scratch, element)
    }

    /// Memory of `count` elements that a workgroup shares.
    pub fn workgroup(name: impl Into<Name>, element: Element, count: u32) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::Workgroup, element).with_count(count)
    }

    /// An array of `count` elements that is private to one invocation.
    pub fn local(name: impl Into<Name>, element: Element, count: u32) -> BufferDecl {
        BufferDecl::storage(name, BufferAccess::Local, element).with_count(count)
    }

    /// The same buffer with a static element count.
    pub fn with_count(mut self, count: u32) -> BufferDecl {
        self.count = Some(count);
        self
    }

    /// The buffer's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Who fills it, what the program may do and who gets it back.
    pub fn access(&self) -> BufferAccess {
        self.access
    }

    /// The element type.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The static element count, or `None` where it is left open.
    pub fn count(&self) -> Option<u32> {
        self.count
    }

    /// Whether the caller gives the contents. Nothing else decides this.
    pub fn consumes_input(&self) -> bool {
        self.access.consumes_input()
    }

    /// Whether the contents are returned to the caller. Nothing else decides this.
    pub fn produces_output(&self) -> bool {
        self.access.produces_output()
    }
}
