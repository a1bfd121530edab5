//! Every rule: its code, its message and its help. The codes are stable; a retired one is not used again.

use crate::ops::{AtomicOp, BinOp, MemoryOrdering, Scope, UnOp};
use crate::validate::limits;
use crate::{BufferAccess, Element, Name, Type};
use thiserror::Error;

/// What a value is used as, where its type is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Role {
    /// The index of an access.
    #[error("an index")]
    Index,
    /// The condition of an `if`.
    #[error("the condition of `if`")]
    Condition,
    /// The first argument of `select`.
    #[error("the first argument of `select`")]
    SelectCondition,
    /// A bound of a `for`.
    #[error("a bound of `for`")]
    LoopBound,
    /// The value of a `trap`.
    #[error("the value of `trap`")]
    TrapValue,
    /// The new value of a variable.
    #[error("the new value of `{0}`")]
    Assigned(Name),
    /// The value stored to a buffer.
    #[error("a value for `{0}`")]
    Stored(Name),
    /// An argument of a function.
    #[error("parameter `{1}` of `{0}`")]
    Argument(Name, Name),
    /// The result of a function.
    #[error("the result of `{0}`")]
    Result(Name),
    /// An operand of `fma`.
    #[error("an argument of `fma`")]
    Fma,
    /// The lane of a shuffle.
    #[error("the lane of `subgroup_shuffle`")]
    Lane,
    /// The condition of a ballot.
    #[error("the argument of `subgroup_ballot`")]
    Ballot,
}

/// A step of an explanation: what is to be seen at a further place.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Cause {
    /// The earlier declaration of a name.
    #[error("`{0}` is already declared here")]
    Declared(Name),
    /// The declaration of a variable that cannot be assigned.
    #[error("`{0}` is declared here without `mut`")]
    NotMutable(Name),
    /// A value that differs between invocations by its nature.
    #[error("{0}")]
    Differs(&'static str),
    /// A variable that holds a value that differs.
    #[error("`{0}` takes a value here that differs between invocations")]
    Assigned(Name),
    /// A variable that is assigned by some invocations only.
    #[error("`{0}` is assigned here by some invocations only")]
    AssignedUnderControl(Name),
    /// A branch on a value that differs.
    #[error("this condition sends invocations different ways")]
    Branch,
    /// A loop whose bounds differ.
    #[error("the bounds of this loop differ between invocations")]
    LoopBounds,
    /// A `break` that some invocations take.
    #[error("some invocations leave the loop here")]
    Break,
    /// A `continue` that some invocations take.
    #[error("some invocations skip the rest of the loop body here")]
    Continue,
    /// An access that a race is with.
    #[error("the other access is here")]
    OtherAccess,
}

/// What is wrong. The message is the `Display` text.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum Problem {
    // --- Syntax ---------------------------------------------------------------------------------------------
    /// A character that no token begins with.
    #[error("unexpected character {0:?}")]
    UnexpectedCharacter(char),
    /// Another token than the grammar allows here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What could stand here.
        expected: &'static str,
        /// What stands here.
        found: String,
    },
    /// A number that is spelled wrong.
    #[error("`{0}` is not a number")]
    MalformedNumber(String),
    /// A constant outside its type.
    #[error("`{text}` does not fit `{ty}`")]
    LiteralRange {
        /// The number as written.
        text: String,
        /// The type it should have.
        ty: Type,
    },
    /// A negative constant of an unsigned type.
    #[error("`-{text}` is negative, but `{ty}` has no negative values")]
    NegativeUnsigned {
        /// The number as written, without the sign.
        text: String,
        /// Its type.
        ty: Type,
    },
    /// A string that does not end on its line.
    #[error("this string does not end")]
    UnterminatedString,
    /// A backslash with something unknown after it.
    #[error("unknown escape in a string")]
    BadEscape,
    /// `a < b < c`.
    #[error("comparisons do not chain")]
    ChainedComparison,
    /// Too much text.
    #[error("the text is {0} bytes long; positions are 32-bit")]
    TextTooLong(u64),
    /// A bracket without its partner.
    #[error("this `{0}` is never closed")]
    Unclosed(char),
    /// A declaration after a statement.
    #[error("declarations come before statements")]
    LateItem,
    /// A second `workgroup_size` or `subgroup_size`.
    #[error("`{0}` is given twice")]
    RepeatedItem(&'static str),
    /// A builtin with the wrong number of arguments.
    #[error("`{function}` takes {expected} argument{}, found {found}", if *.expected == 1 { "" } else { "s" })]
    BuiltinArguments {
        /// The builtin.
        function: &'static str,
        /// How many it takes.
        expected: usize,
        /// How many it got.
        found: usize,
    },
    /// Something that other languages have and this one has not.
    #[error("there is no {what}")]
    Foreign {
        /// What it is.
        what: &'static str,
        /// What to write instead.
        instead: &'static str,
    },
    /// Something after the closing brace of the program.
    #[error("there is more text after the program")]
    TrailingText,

    // --- Limits ---------------------------------------------------------------------------------------------
    /// Too many statements.
    #[error("the program has more than {} statements", limits::STATEMENTS)]
    TooManyStatements,
    /// An expression that is too deep.
    #[error("this expression is more than {} levels deep", limits::DEPTH)]
    TooDeep,
    /// Too much nesting.
    #[error("statements are nested more than {} levels deep", limits::NESTING)]
    TooNested,
    /// Too many expressions.
    #[error("the program has more than {} expressions", limits::EXPRESSIONS)]
    TooManyExpressions,

    // --- Names ----------------------------------------------------------------------------------------------
    /// A name that is no identifier.
    #[error("{0:?} is not a name")]
    NotAName(Name),
    /// A reserved word as a name.
    #[error("`{0}` is a reserved word")]
    ReservedName(Name),
    /// A name that is visible already.
    #[error("`{0}` is declared twice")]
    Shadowed(Name),
    /// A variable that does not exist.
    #[error("there is no variable `{name}` here")]
    UnknownVariable {
        /// The name.
        name: Name,
        /// What is visible and nearly spelled so.
        nearest: Option<Name>,
        /// What the name is instead.
        is: Option<&'static str>,
    },
    /// A buffer that does not exist.
    #[error("there is no buffer `{name}`")]
    UnknownBuffer {
        /// The name.
        name: Name,
        /// A buffer that is nearly spelled so.
        nearest: Option<Name>,
        /// What the name is instead.
        is: Option<&'static str>,
    },
    /// A function that does not exist.
    #[error("there is no function `{name}`")]
    UnknownFunction {
        /// The name.
        name: Name,
        /// A function that is nearly spelled so.
        nearest: Option<Name>,
        /// What the name is instead.
        is: Option<&'static str>,
    },

    // --- Types ----------------------------------------------------------------------------------------------
    /// Two operands of different types.
    #[error("`{operator}` needs operands of one type, found `{left}` and `{right}`")]
    OperandTypes {
        /// The operator.
        operator: &'static str,
        /// The type of the first.
        left: Type,
        /// The type of the second.
        right: Type,
    },
    /// An operator on a type that it does not take.
    #[error("`{operator}` does not take `{ty}`")]
    OperatorType {
        /// The operator.
        operator: &'static str,
        /// The type it got.
        ty: Type,
        /// The types it takes.
        takes: &'static str,
    },
    /// A value of the wrong type.
    #[error("{role} must be `{expected}`, found `{found}`")]
    WrongType {
        /// What it is used as.
        role: Role,
        /// The type it must have.
        expected: Type,
        /// The type it has.
        found: Type,
    },
    /// A bitcast between widths or of a `bool`.
    #[error("`bitcast<{to}>` does not take `{from}`")]
    BitcastTypes {
        /// The type of the operand.
        from: Type,
        /// The type asked for.
        to: Type,
    },

    // --- Statements -----------------------------------------------------------------------------------------
    /// An assignment to a loop variable.
    #[error("the loop variable `{0}` cannot be assigned")]
    AssignedLoopVariable(Name),
    /// An assignment to a `let` without `mut`.
    #[error("`{0}` is assigned, but not declared `mut`")]
    AssignedImmutable(Name),
    /// `break` or `continue` outside a loop.
    #[error("`{0}` outside a loop")]
    OutsideLoop(&'static str),
    /// A barrier where control differs.
    #[error("`barrier({})` stands where invocations of the {} may differ in control", .0.name(), .0.name())]
    DivergentBarrier(Scope),
    /// A uniform load where control differs.
    #[error("`uniform_load({}, …)` stands where invocations of the {} may differ in control", .0.name(), .0.name())]
    DivergentUniformLoad(Scope),
    /// A uniform load of an index that differs.
    #[error("the index of `uniform_load({}, …)` may differ between invocations of the {}", .0.name(), .0.name())]
    DivergentUniformIndex(Scope),
    /// A subgroup operation where control differs.
    #[error("a subgroup operation stands where invocations of the workgroup may differ in control")]
    DivergentSubgroup,
    /// A uniform load after something that must not move behind it.
    #[error("`uniform_load` comes after {0} in the same statement")]
    LateUniformLoad(&'static str),
    /// A uniform load of memory that it cannot read.
    #[error("`uniform_load({}, …)` cannot read `{}` memory", .scope.name(), .access.name())]
    UniformLoadAccess {
        /// The scope.
        scope: Scope,
        /// The access of the buffer.
        access: BufferAccess,
    },
    /// A barrier with an ordering that is none of barriers.
    #[error("a barrier cannot be `{}`", .0.name())]
    BarrierOrdering(MemoryOrdering),
    /// An atomic with an ordering that it cannot have.
    #[error("`{}` cannot be `{}`", .op.spelling(), .ordering.name())]
    AtomicOrdering {
        /// The operation.
        op: AtomicOp,
        /// The ordering.
        ordering: MemoryOrdering,
    },

    // --- Memory ---------------------------------------------------------------------------------------------
    /// A load from a `write` buffer.
    #[error("`{0}` is a `write` buffer: it cannot be loaded")]
    NotLoadable(Name),
    /// A store to a buffer that is only read.
    #[error("`{buffer}` is a `{}` buffer: it cannot be stored to", .access.name())]
    NotStorable {
        /// The buffer.
        buffer: Name,
        /// Its access.
        access: BufferAccess,
    },
    /// An atomic on memory that has none.
    #[error("`{buffer}` is a `{}` buffer: it takes no atomics", .access.name())]
    NotAtomicAccess {
        /// The buffer.
        buffer: Name,
        /// Its access.
        access: BufferAccess,
    },
    /// An atomic on an element type that has none.
    #[error("`{buffer}` holds `{element}`: atomics work on `u32`, `i32`, `u64` and `i64`")]
    NotAtomicElement {
        /// The buffer.
        buffer: Name,
        /// Its element type.
        element: Element,
    },
    /// An atomic that lacks an operand or has one too many.
    #[error("`{}` has the wrong operands", .0.spelling())]
    AtomicOperands(AtomicOp),
    /// An atomic store where a value is needed.
    #[error("`atomic_store` gives no value")]
    StoreAsValue,

    // --- Functions ------------------------------------------------------------------------------------------
    /// A function that does more than compute.
    #[error("a function sees its arguments alone, but `{function}` uses {what}")]
    ImpureFunction {
        /// The function.
        function: Name,
        /// What it uses.
        what: &'static str,
    },
    /// A function that calls itself, with the functions it does so through.
    #[error("`{}` calls itself{}", .0.first().map_or("", |name| name.as_str()), match .0.get(1..) {
        Some(through @ [_, ..]) => format!(" through {}", through.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")),
        _ => String::new(),
    })]
    Recursion(Vec<Name>),
    /// A call with the wrong number of arguments.
    #[error("`{function}` takes {expected} argument{}, found {found}", if *.expected == 1 { "" } else { "s" })]
    CallArguments {
        /// The function.
        function: Name,
        /// How many it takes.
        expected: usize,
        /// How many it got.
        found: usize,
    },

    // --- Declarations ---------------------------------------------------------------------------------------
    /// A workgroup size that is zero or too large.
    #[error("a workgroup of {} invocations is {}", size.map(|n| n.to_string()).join(" x "),
            if size.contains(&0) { "empty".to_string() } else { format!("larger than {}", limits::WORKGROUP) })]
    BadWorkgroupSize {
        /// The size on each axis.
        size: [u32; 3],
    },
    /// A subgroup size that is not allowed.
    #[error("the subgroup size {0} is not a power of two from 1 to 64")]
    BadSubgroupSize(u32),
    /// Workgroup or local memory without a count.
    #[error("`{name}` is `{}` memory and needs a number of elements", .access.name())]
    CountNeeded {
        /// The buffer.
        name: Name,
        /// Its access.
        access: BufferAccess,
    },

    // --- Warnings -------------------------------------------------------------------------------------------
    /// All invocations of a workgroup store to one element.
    #[error("race: all invocations of a workgroup store to one element of `{0}`")]
    StoreRace(Name),
    /// A plain access and an atomic one to the same element.
    #[error("race: `{0}` is accessed both with and without an atomic, with no barrier between")]
    MixedRace(Name),
    /// An element that another invocation stores to.
    #[error(
        "race: `{0}` is accessed here at an element to which another invocation stores, with no barrier between"
    )]
    NeighbourRace(Name),
    /// A `let mut` that is never assigned.
    #[error("`{0}` is declared `mut` and never assigned")]
    UnusedMut(Name),
}

/// The types that a binary operator takes, for a help line.
pub(crate) fn binary_takes(op: BinOp) -> &'static str {
    takes(|ty| op.result(ty).is_some())
}

/// The types that a unary operator takes, for a help line.
pub(crate) fn unary_takes(op: UnOp) -> &'static str {
    takes(|ty| op.result(ty).is_some())
}

fn takes(accepts: impl Fn(Type) -> bool) -> &'static str {
    match Type::ALL.map(accepts) {
        [true, false, ..] => "`bool`",
        [true, .., false] => "`bool`, `u32`, `i32`, `u64` and `i64`",
        [false, true, .., true] => "`u32`, `i32`, `u64`, `i64` and `f32`",
        [false, true, ..] => "`u32`, `i32`, `u64` and `i64`",
        [false, false, true, ..] => "`i32`, `i64` and `f32`",
        _ => "`f32`",
    }
}

impl Problem {
    /// The stable code of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            Problem::UnexpectedCharacter(_) => "P001",
            Problem::Expected { .. } => "P002",
            Problem::MalformedNumber(_) => "P003",
            Problem::LiteralRange { .. } => "P004",
            Problem::NegativeUnsigned { .. } => "P005",
            Problem::UnterminatedString => "P006",
            Problem::BadEscape => "P007",
            Problem::ChainedComparison => "P008",
            Problem::TextTooLong(_) => "P009",
            Problem::Unclosed(_) => "P010",
            Problem::LateItem => "P011",
            Problem::RepeatedItem(_) => "P012",
            Problem::BuiltinArguments { .. } => "P013",
            Problem::TrailingText => "P014",
            Problem::Foreign { .. } => "P015",
            Problem::TooManyStatements => "V001",
            Problem::TooDeep => "V002",
            Problem::TooNested => "V003",
            Problem::TooManyExpressions => "V004",
            Problem::NotAName(_) => "V005",
            Problem::ReservedName(_) => "V006",
            Problem::Shadowed(_) => "V007",
            Problem::UnknownVariable { .. } => "V008",
            Problem::UnknownBuffer { .. } => "V009",
            Problem::UnknownFunction { .. } => "V010",
            Problem::OperandTypes { .. } => "V011",
            Problem::OperatorType { .. } => "V012",
            Problem::WrongType { .. } => "V013",
            Problem::BitcastTypes { .. } => "V014",
            Problem::AssignedLoopVariable(_) => "V015",
            Problem::AssignedImmutable(_) => "V016",
            Problem::OutsideLoop(_) => "V017",
            Problem::DivergentBarrier(_) => "V018",
            Problem::DivergentUniformLoad(_) => "V019",
            Problem::DivergentUniformIndex(_) => "V020",
            Problem::DivergentSubgroup => "V021",
            Problem::LateUniformLoad(_) => "V022",
            Problem::UniformLoadAccess { .. } => "V023",
            Problem::BarrierOrdering(_) => "V024",
            Problem::AtomicOrdering { .. } => "V025",
            Problem::NotLoadable(_) => "V026",
            Problem::NotStorable { .. } => "V027",
            Problem::NotAtomicAccess { .. } => "V028",
            Problem::NotAtomicElement { .. } => "V029",
            Problem::AtomicOperands(_) => "V030",
            Problem::StoreAsValue => "V031",
            Problem::ImpureFunction { .. } => "V032",
            Problem::Recursion(_) => "V033",
            Problem::CallArguments { .. } => "V034",
            Problem::BadWorkgroupSize { .. } => "V035",
            Problem::BadSubgroupSize(_) => "V036",
            Problem::CountNeeded { .. } => "V037",
            Problem::StoreRace(_) => "W001",
            Problem::MixedRace(_) => "W002",
            Problem::NeighbourRace(_) => "W003",
            Problem::UnusedMut(_) => "W004",
        }
    }

    /// How to fix it.
    pub fn help(&self) -> String {
        match self {
            Problem::UnexpectedCharacter(_) => "remove it; names are [A-Za-z_][A-Za-z0-9_]*".into(),
            Problem::Expected { expected, .. } => format!("write {expected} here"),
            Problem::MalformedNumber(_) => {
                "numbers look like 12, 12u32, -3i32, 0xffu64, 1.5, 1e-3f32; the suffixes are u32 i32 u64 i64 f32".into()
            }
            Problem::LiteralRange { ty, .. } => range_help(*ty).into(),
            Problem::NegativeUnsigned { text, .. } => {
                let digits = text.trim_end_matches("u32").trim_end_matches("u64");
                format!("a bare integer is `u32`; for a negative one write `-{digits}i32` or `-{digits}i64`")
            }
            Problem::UnterminatedString => "close it with `\"` on the same line".into(),
            Problem::BadEscape => r#"the escapes are \" \\ \n \r \t and \u{…}"#.into(),
            Problem::ChainedComparison => "join two comparisons with `&&`: `a < b && b < c`".into(),
            Problem::TextTooLong(_) => "split the program; at most 4294967295 bytes are read".into(),
            Problem::Unclosed(open) => {
                format!("add the missing `{}`", match open { '{' => '}', '(' => ')', _ => ']' })
            }
            Problem::LateItem => "move it above the first statement".into(),
            Problem::RepeatedItem(_) => "keep one of them".into(),
            Problem::BuiltinArguments { expected, .. } => format!("give {expected}"),
            Problem::TrailingText => "a file holds one program; remove what follows or give it a file of its own".into(),
            Problem::Foreign { instead, .. } => (*instead).into(),
            Problem::TooManyStatements => "put repeated work into a `for`".into(),
            Problem::TooDeep => "name parts of it with `let`".into(),
            Problem::TooNested => "merge conditions with `&&`, or leave early with `return`, `break` or `continue`".into(),
            Problem::TooManyExpressions => "name shared parts with `let` instead of repeating them".into(),
            Problem::NotAName(_) => "names are [A-Za-z_][A-Za-z0-9_]*".into(),
            Problem::ReservedName(name) => format!("choose another name, such as `{name}_` or `my_{name}`"),
            Problem::Shadowed(_) => "choose another name: buffers, functions and variables share one namespace, and a name is visible once".into(),
            Problem::UnknownVariable { name, nearest, is } => match (is, nearest) {
                (Some("a buffer"), _) => format!("`{name}` is a buffer: write `{name}[i]` or `len({name})`"),
                (Some("a function"), _) => format!("`{name}` is a function: call it, `{name}(…)`"),
                (_, Some(nearest)) => format!("did you mean `{nearest}`?"),
                _ => format!("declare it first: `let {name} = …;`"),
            },
            Problem::UnknownBuffer { name, nearest, is } => match (is, nearest) {
                (Some("a variable"), _) => format!("`{name}` is a variable: it has one value and is not indexed"),
                (Some("a function"), _) => format!("`{name}` is a function: call it, `{name}(…)`"),
                (_, Some(nearest)) => format!("did you mean `{nearest}`?"),
                _ => format!("declare it at the top: `buffer {name}: read u32[];`"),
            },
            Problem::UnknownFunction { name, nearest, is } => match (is, nearest) {
                (Some(is), _) => format!("`{name}` is {is}, not a function"),
                (_, Some(nearest)) => format!("did you mean `{nearest}`?"),
                _ => format!("declare it at the top: `fn {name}(…) -> u32 {{ … }}`"),
            },
            Problem::OperandTypes { left, .. } => format!("nothing converts by itself: cast one side, for example `{left}(…)`"),
            Problem::OperatorType { takes, .. } => format!("it takes {takes}; convert with a cast such as `u32(…)`"),
            Problem::WrongType { expected, found, .. } => match (expected, found) {
                (Type::Bool, _) => "compare it, for example `… != 0`, or cast it with `bool(…)`".into(),
                _ => format!("convert it: `{expected}(…)`"),
            },
            Problem::BitcastTypes { .. } => "a bitcast keeps the bits: both types need one width, and `bool` has no bits; use a cast such as `u32(…)`".into(),
            Problem::AssignedLoopVariable(_) => "copy it to a variable of your own: `let mut i = …;`".into(),
            Problem::AssignedImmutable(name) => format!("declare it as `let mut {name} = …;`"),
            Problem::OutsideLoop(_) => "use `return` to end the invocation".into(),
            Problem::DivergentBarrier(scope) => barrier_help(*scope, "the barrier"),
            Problem::DivergentUniformLoad(scope) => barrier_help(*scope, "it"),
            Problem::DivergentUniformIndex(_) => "compute the index from constants, lengths, `uniform` data or earlier uniform loads".into(),
            Problem::DivergentSubgroup => barrier_help(Scope::Workgroup, "it"),
            Problem::LateUniformLoad(_) => "give it a statement of its own: `let x = uniform_load(…);`".into(),
            Problem::UniformLoadAccess { scope: Scope::Grid, access: BufferAccess::Workgroup } => {
                "workgroups do not share it: use `uniform_load(workgroup, …)` or a `scratch` buffer".into()
            }
            Problem::UniformLoadAccess { .. } => "read from a buffer that the invocations share and may load".into(),
            Problem::BarrierOrdering(_) => "use `SeqCst` for the workgroup or `GridSync` for the grid".into(),
            Problem::AtomicOrdering { op, .. } => match op {
                AtomicOp::Load => "a load can be relaxed, acquire or seq_cst".into(),
                AtomicOp::Store => "a store can be relaxed, release or seq_cst".into(),
                _ => "an atomic can be relaxed, acquire, release, acq_rel or seq_cst".into(),
            },
            Problem::NotLoadable(_) => "declare it `output` to read what was written".into(),
            Problem::NotStorable { .. } => "declare it `read_write` to change it and get it back".into(),
            Problem::NotAtomicAccess { .. } => "atomics work on `read_write`, `output`, `scratch` and `workgroup` memory".into(),
            Problem::NotAtomicElement { .. } => "declare the buffer with one of these element types".into(),
            Problem::AtomicOperands(op) => match op {
                AtomicOp::Load => "it takes an index alone".into(),
                AtomicOp::CompareExchange => "it takes an index, an expected value and a new value".into(),
                _ => "it takes an index and a value".into(),
            },
            Problem::StoreAsValue => "write it as a statement of its own".into(),
            Problem::ImpureFunction { .. } => "pass what it needs as an argument".into(),
            Problem::Recursion(_) => "functions cannot recur; use a `for` in the program's body".into(),
            Problem::CallArguments { expected, .. } => format!("give {expected}"),
            Problem::BadWorkgroupSize { .. } => format!("each axis is at least 1, and their product at most {}", limits::WORKGROUP),
            Problem::BadSubgroupSize(_) => "use 1, 2, 4, 8, 16, 32 or 64".into(),
            Problem::CountNeeded { .. } => "write it between the brackets: `[64]`".into(),
            Problem::StoreRace(_) => "let one invocation store (`if local_id.x == 0`), index by `global_id.x`, or use an atomic".into(),
            Problem::MixedRace(name) => format!("use `atomic_load({name}[…])` or `atomic_store({name}[…], …)`, or put a barrier between"),
            Problem::NeighbourRace(_) => "put a barrier between the two accesses, or read from one buffer and write to another".into(),
            Problem::UnusedMut(name) => format!("write `let {name} = …;`"),
        }
    }
}

fn range_help(ty: Type) -> &'static str {
    match ty {
        Type::U32 => "`u32` holds 0 to 4294967295; for larger numbers write the suffix u64",
        Type::I32 => "`i32` holds -2147483648 to 2147483647; for larger numbers write the suffix i64",
        Type::U64 => "`u64` holds 0 to 18446744073709551615",
        Type::I64 => "`i64` holds -9223372036854775808 to 9223372036854775807",
        Type::F32 => "the largest `f32` is 3.4028235e38; infinity is written `inf`",
        Type::Bool => "a `bool` is `true` or `false`",
    }
}

fn barrier_help(scope: Scope, what: &str) -> String {
    match scope {
        Scope::Workgroup => format!(
            "move {what} out of the branch or loop, or make the condition the same for the whole workgroup \
             (constants, lengths, `workgroup_id`, `uniform_load(workgroup, …)`)"
        ),
        Scope::Grid => format!(
            "move {what} out of the branch or loop, or make the condition the same for the whole grid \
             (constants, lengths, `read` data at such an index, `uniform_load(grid, …)`)"
        ),
    }
}
