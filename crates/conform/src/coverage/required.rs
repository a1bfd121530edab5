//! Everything that the language has, enumerated from the tables that define it.

use vyre_foundation::{
    AtomicOp, BinOp, BufferAccess, Element, MemoryOrdering, Scope, SubgroupOp, Type, UnOp,
};

/// Takes the group and the name of an item.
pub(super) type Sink<'a> = dyn FnMut(&'static str, String) + 'a;

/// Where a barrier or uniform load can stand.
pub(super) const PLACES: [&str; 7] = [
    "straight",
    "in a loop",
    "in a branch",
    "in a loop in a loop",
    "in a branch in a loop",
    "in a loop in a branch",
    "after a return",
];

/// Statements, with the forms that backends treat apart.
pub(super) const STATEMENTS: [&str; 20] = [
    "let",
    "assign",
    "store",
    "eval atomic",
    "eval value",
    "if",
    "if else",
    "else if",
    "loop",
    "break",
    "continue",
    "block",
    "region",
    "region from",
    "barrier workgroup",
    "barrier grid",
    "return",
    "trap",
    "uniform load workgroup",
    "uniform load grid",
];

/// Shapes of programs.
pub(super) const SHAPES: [&str; 21] = [
    "statement after return",
    "statement after break",
    "statement after continue",
    "statement after trap",
    "loop in loop",
    "branch in loop",
    "loop in branch",
    "return in loop",
    "empty loop",
    "loop bound from memory",
    "variable assigned in branch",
    "variable assigned in loop",
    "function calls function",
    "loop counter live across barrier",
    "assigned variable live across barrier",
    "local array live across barrier",
    "local array live across grid barrier",
    "workgroup memory live across grid barrier",
    "grid control from a plain loop",
    "grid control from a uniform load",
    "loop left on a uniform load",
];

/// Gives every item of the language to the sink.
pub(super) fn language(sink: &mut Sink<'_>) {
    operators(sink);
    constants(sink);
    buffers(sink);
    memory(sink);
    for name in STATEMENTS {
        sink("statement", name.to_owned());
    }
    for name in SHAPES {
        sink("shape", name.to_owned());
    }
    for scope in [Scope::Workgroup, Scope::Grid] {
        for place in PLACES {
            sink("barrier", format!("{} {place}", scope.name()));
            sink("uniform load place", format!("{} {place}", scope.name()));
        }
    }
    for ty in Type::ALL {
        sink("live across barrier", ty.to_string());
        sink("live across grid barrier", ty.to_string());
        sink("function", format!("parameter {ty}"));
        sink("function", format!("result {ty}"));
    }
    for size in [1, 2, 4, 8, 16, 32, 64] {
        sink("subgroup size", size.to_string());
    }
    for axes in 1..=3 {
        sink("workgroup size", format!("{axes} axes"));
    }
    for id in ["global_id", "workgroup_id", "local_id", "num_workgroups"] {
        for axis in ["x", "y", "z"] {
            sink("builtin", format!("{id}.{axis}"));
        }
    }
    sink("builtin", "subgroup_lane".to_owned());
    sink("builtin", "subgroup_size".to_owned());
}

fn operators(sink: &mut Sink<'_>) {
    for ty in Type::ALL {
        for op in BinOp::ALL.into_iter().filter(|op| op.result(ty).is_some()) {
            sink("binary", format!("{} on {ty}", op.spelling()));
        }
        for op in UnOp::ALL.into_iter().filter(|op| op.result(ty).is_some()) {
            sink("unary", format!("{} on {ty}", op.spelling()));
        }
        sink("select", ty.to_string());
        sink("shuffle", ty.to_string());
        if ty != Type::Bool {
            sink("clamp", ty.to_string());
        }
        for to in Type::ALL {
            sink("cast", format!("{ty} to {to}"));
            if ty != Type::Bool && to != Type::Bool && ty.bits() == to.bits() {
                sink("bitcast", format!("{ty} to {to}"));
            }
        }
        for op in SubgroupOp::ALL.into_iter().filter(|_| ty.is_integer()) {
            sink("reduce", format!("{} on {ty}", op.spelling()));
        }
    }
    sink("fma", "f32".to_owned());
    sink("ballot", "u32".to_owned());
    sink("ballot", "u64".to_owned());
}

fn constants(sink: &mut Sink<'_>) {
    sink("constant", "bool true".to_owned());
    sink("constant", "bool false".to_owned());
    for ty in [Type::U32, Type::I32, Type::U64, Type::I64] {
        for class in ["zero", "one", "largest", "top bit", "other"] {
            sink("constant", format!("{ty} {class}"));
        }
        if ty.is_signed() {
            sink("constant", format!("{ty} minus one"));
        }
    }
    for class in FLOATS {
        sink("constant", format!("f32 {class}"));
    }
}

/// Classes of float constants.
const FLOATS: [&str; 13] = [
    "+0",
    "-0",
    "+inf",
    "-inf",
    "nan",
    "subnormal",
    "smallest normal",
    "largest",
    "tie",
    "beyond integers",
    "integer",
    "fraction",
    "negative",
];

fn buffers(sink: &mut Sink<'_>) {
    for access in BufferAccess::ALL {
        sink("buffer", format!("{access} without elements"));
        sink("length of", access.to_string());
        for element in Element::ALL {
            sink("buffer", format!("{access} {element} static"));
            if access.allows_open_count() {
                sink("buffer", format!("{access} {element} open"));
            }
        }
    }
}

fn memory(sink: &mut Sink<'_>) {
    for access in BufferAccess::ALL {
        for element in Element::ALL {
            if access.allows_load() {
                sink("load", format!("{access} {element}"));
            }
            if access.allows_store() {
                sink("store", format!("{access} {element}"));
            }
            let uniform = access.allows_load() && access != BufferAccess::Local;
            if uniform {
                sink("uniform load", format!("workgroup {access} {element}"));
            }
            if uniform && access != BufferAccess::Workgroup {
                sink("uniform load", format!("grid {access} {element}"));
            }
            if access.allows_atomics() && element.is_atomic() {
                for op in AtomicOp::ALL {
                    sink("atomic", format!("{} on {access} {element}", op.spelling()));
                }
            }
        }
    }
    for op in AtomicOp::ALL {
        for ordering in MemoryOrdering::ALL.into_iter().filter(|ordering| ordering.is_legal_for(op)) {
            sink("ordering", format!("{} {}", op.spelling(), ordering.name()));
        }
    }
}
