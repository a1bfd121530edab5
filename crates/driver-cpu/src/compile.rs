//! The compiler: from a kernel to machine code.

use crate::emit::{self, Emitted, Target};
use crate::faults;
use crate::shape::is_large;
use cranelift_codegen::isa::{self, OwnedTargetIsa, TargetIsa};
use cranelift_codegen::settings::{self, Configurable, Flags};
use cranelift_codegen::{CodegenError, Context};
use vyre_driver::{Error, Result};
use vyre_lower::Kernel;

/// Which instructions code may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Instructions {
    /// All that this machine has.
    #[default]
    Native,
    /// Those that every machine of its kind has.
    Baseline,
}

/// Whether code computes several lanes at once. The bytes are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Simd {
    /// Lane after lane.
    Off,
    /// Vectors of lanes where that is estimated to be faster.
    #[default]
    On,
    /// Vectors wherever there is a form for them, worth it or not.
    Always,
}

/// What machine code needs to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Compiled {
    /// The machine code.
    pub(crate) code: Vec<u8>,
    /// The size of a worker's frame.
    pub(crate) frame_bytes: u64,
    /// The size of what a workgroup keeps across grid barriers.
    pub(crate) kept_bytes: u64,
    /// Whether there are grid barriers.
    pub(crate) segmented: bool,
    /// About how many operations an invocation does.
    pub(crate) weight: u32,
    /// How much stack the code needs.
    pub(crate) stack_bytes: u64,
}

/// Text for people: what [`CpuBackend::listing`](crate::CpuBackend::listing) shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listing {
    /// The compiler's intermediate form, before it optimises.
    Clif,
    /// Machine code.
    Asm,
}

/// The most stack that code may use.
const MAX_STACK: u64 = 1 << 30;

/// Compiles kernels for this machine.
pub(crate) struct Compiler {
    best: OwnedTargetIsa,
    quick: OwnedTargetIsa,
    target: Target,
}

impl Compiler {
    /// A compiler for this machine.
    pub(crate) fn new(instructions: Instructions, simd: Simd) -> Result<Compiler> {
        let best = host(instructions, false)?;
        let quick = host(instructions, true)?;
        let has = |name: &str| {
            best.isa_flags().iter().any(|flag| flag.name == name && flag.as_bool() == Some(true))
        };
        // Only on x86-64 are these an extension.
        let x86 = cfg!(target_arch = "x86_64");
        let target = Target {
            pointer: best.pointer_type(),
            call_conv: best.default_call_conv(),
            fma: !x86 || has("has_fma"),
            round: !x86 || has("has_sse41"),
            simd: if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { simd } else { Simd::Off },
            unaligned: !x86 || has("has_avx"),
            blend: x86 && has("has_sse41"),
            fetch: x86 && (simd == Simd::Always || gains_by_fetching()),
            exchange_vectors: x86 && has("has_cmpxchg16b"),
        };
        Ok(Compiler { best, quick, target })
    }

    /// What decides the code besides the kernel, for cache keys.
    pub(crate) fn fingerprint(&self) -> String {
        let flags: Vec<String> = self.best.isa_flags().iter().map(|flag| flag.to_string()).collect();
        format!(
            "{} {:?} {} {} {} {}",
            env!("VYRE_CPU_SOURCE"),
            self.target,
            cranelift_codegen::VERSION,
            self.best.triple(),
            self.best.flags(),
            flags.join(" ")
        )
    }

    fn isa(&self, kernel: &Kernel) -> &dyn TargetIsa {
        if is_large(kernel) { &*self.quick } else { &*self.best }
    }

    fn emit(&self, kernel: &Kernel) -> Result<Emitted> {
        emit::emit(kernel, self.isa(kernel), self.target).ok_or_else(|| Error::Unsupported {
            feature: "so much workgroup and local memory in one workgroup".to_owned(),
            backend: crate::NAME,
            help: "use a smaller workgroup, or a `scratch` buffer".to_owned(),
        })
    }

    /// Compiles a kernel.
    pub(crate) fn compile(&self, kernel: &Kernel) -> Result<Compiled> {
        if faults::strikes() {
            return Err(too_large("on purpose"));
        }
        let Emitted { function, frame_bytes, kept_bytes, segmented, weight } = self.emit(kernel)?;
        let mut context = Context::for_function(function);
        let made = context.compile(self.isa(kernel), &mut Default::default());
        let made = made.map_err(|error| refusal(&error.inner))?;
        if !made.buffer.relocs().is_empty() {
            return Err(Error::Internal("generated code has relocations".to_owned()));
        }
        let stack_bytes = made.buffer.frame_layout().map_or(0, |frame| u64::from(frame.frame_to_fp_offset));
        if stack_bytes > MAX_STACK {
            return Err(too_large("it needs too much stack"));
        }
        let code = made.code_buffer().to_vec();
        Ok(Compiled { code, frame_bytes, kept_bytes, segmented, weight, stack_bytes })
    }

    /// The code of a kernel as text.
    pub(crate) fn listing(&self, kernel: &Kernel, listing: Listing) -> Result<String> {
        let Emitted { function, .. } = self.emit(kernel)?;
        if listing == Listing::Clif {
            return Ok(function.display().to_string());
        }
        let mut context = Context::for_function(function);
        context.set_disasm(true);
        let made = context.compile(self.isa(kernel), &mut Default::default());
        let made = made.map_err(|error| refusal(&error.inner))?;
        Ok(made.vcode.clone().unwrap_or_default())
    }
}

fn host(instructions: Instructions, quick: bool) -> Result<OwnedTargetIsa> {
    let internal =
        |error: &dyn std::fmt::Display| Error::Internal(format!("no compiler for this machine: {error}"));
    let mut flags = settings::builder();
    let common = [
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
        ("unwind_info", "false"),
        ("enable_probestack", "false"),
        ("opt_level", if quick { "none" } else { "speed" }),
        ("regalloc_algorithm", if quick { "single_pass" } else { "backtracking" }),
    ];
    for (name, value) in common {
        flags.set(name, value).map_err(|error| internal(&error))?;
    }
    let native = instructions == Instructions::Native;
    let builder: isa::Builder =
        cranelift_native::builder_with_options(native).map_err(|error| internal(&error))?;
    builder.finish(Flags::new(flags)).map_err(|error| internal(&error))
}

/// Whether asking for memory ahead makes large buffers faster here. Measured: on cores of Intel, where vectors of 128 bits
/// alone do not keep memory busy. Those of AMD look far enough ahead by themselves, and what asking costs is lost.
fn gains_by_fetching() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        let vendor = std::arch::x86_64::__cpuid(0);
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel"
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn refusal(error: &CodegenError) -> Error {
    match error {
        CodegenError::ImplLimitExceeded | CodegenError::CodeTooLarge => too_large("it makes too much code"),
        other => Error::Internal(format!("the code generator refuses the kernel: {other}")),
    }
}

fn too_large(why: &str) -> Error {
    Error::Unsupported {
        feature: format!("a program of this size ({why})"),
        backend: crate::NAME,
        help: "split the program into several".to_owned(),
    }
}
