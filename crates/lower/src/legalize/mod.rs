//! Makes a program one that a device can run exactly.
//!
//! Devices differ in which operations on `f32` they do as the language says: some round a division twice, most flush
//! subnormal numbers, few have all conversions. What a device cannot do is replaced by a call of a function that is
//! written in the language itself, in integer arithmetic (`soft.vyre`), so that every backend shares one version and
//! the reference can check it. [`lower`](crate::lower()) inlines the calls.

mod rewrite;
mod soft;

use rewrite::Rewriting;
use vyre_foundation::{BufferDecl, Element, Program};

/// Which operations may stay as they are, because the device does them exactly.
///
/// Everything that is not named here always stays: comparisons, `-x`, `abs`, `min`, `max`, `is_nan`, `is_inf`,
/// `select`, bitcasts, casts between `f32` and `bool`, and loads and stores of `f32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Legal {
    /// `a + b` and `a - b` on `f32`.
    pub add: bool,
    /// `a * b` on `f32`.
    pub mul: bool,
    /// `a / b` on `f32`; `inverse_sqrt` stays where `sqrt` is legal too.
    pub div: bool,
    /// `sqrt`.
    pub sqrt: bool,
    /// `fma`.
    pub fma: bool,
    /// `floor`, `ceil`, `trunc` and `round`.
    pub rounding: bool,
    /// Casts from `f32` to the four integer types.
    pub to_integer: bool,
    /// Casts from the four integer types to `f32`.
    pub from_integer: bool,
    /// Buffers of `f16` and `bf16`.
    pub halves: bool,
}

impl Legal {
    /// Everything may stay.
    pub const ALL: Legal = Legal::same(true);

    /// Nothing may stay.
    pub const NONE: Legal = Legal::same(false);

    const fn same(legal: bool) -> Legal {
        Legal {
            add: legal,
            mul: legal,
            div: legal,
            sqrt: legal,
            fma: legal,
            rounding: legal,
            to_integer: legal,
            from_integer: legal,
            halves: legal,
        }
    }
}

/// A program with the same meaning, byte for byte, in which only legal operations are left.
///
/// Buffers of halves that are not legal become buffers of `u16` with the same name, access and count, so bindings fit
/// as they are. A program in which everything is legal comes back as it is, with its source positions. The program
/// must be valid. So is the result, up to two limits: a load of a half in the index of another one makes an expression
/// deeper by one, and the functions count towards the number of expressions wherever they are called.
///
/// ```
/// use vyre_foundation::Program;
/// use vyre_lower::{Legal, legalize};
///
/// let text = "program p { buffer o: output f32[1]; o[0] = o[0] / 3.0; }";
/// let program = Program::parse(text).unwrap();
/// let legal = legalize(&program, &Legal { div: false, ..Legal::ALL });
/// assert!(legal.to_string().contains("soft_div_f32(o[0], 3.0)"));
/// assert!(legal.validate().is_ok());
/// ```
pub fn legalize(program: &Program, legal: &Legal) -> Program {
    if *legal == Legal::ALL {
        return program.clone();
    }
    let mut rewriting = Rewriting::new(program, *legal);
    let entry = rewriting.body(program.entry());
    let functions: Vec<_> = program.functions().iter().map(|f| rewriting.function(f)).collect();
    let added = rewriting.added();
    let buffers: Vec<BufferDecl> = program.buffers().iter().map(|b| buffer(b, legal)).collect();
    if added.is_empty() && buffers == program.buffers() {
        return program.clone();
    }
    program
        .clone()
        .with_rewritten_buffers(buffers)
        .with_rewritten_entry(entry)
        .with_functions(functions.into_iter().chain(added).collect::<Vec<_>>())
}

/// Whether loads and stores of such elements are calls.
fn is_replaced(element: Element, legal: &Legal) -> bool {
    !legal.halves && matches!(element, Element::F16 | Element::BF16)
}

fn buffer(decl: &BufferDecl, legal: &Legal) -> BufferDecl {
    if !is_replaced(decl.element(), legal) {
        return decl.clone();
    }
    let bits = BufferDecl::storage(decl.name(), decl.access(), Element::U16);
    match decl.count() {
        Some(count) => bits.with_count(count),
        None => bits,
    }
}
