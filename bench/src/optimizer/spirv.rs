//! All passes on the host beside `spirv-opt`, over the same rows as a kernel and as a SPIR-V module.

use super::rows::{Far, NUMBERS, Row, Rows};
use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vyre_foundation::BinOp;
use vyre_self_substrate::{Options, optimize};

/// Passes that do what vyre's do: folding and rules, value numbering, decided branches, and what nothing needs.
pub(crate) const PASSES: [&str; 4] = [
    "--simplify-instructions",
    "--redundancy-elimination",
    "--eliminate-dead-branches",
    "--eliminate-dead-code-aggressive",
];

/// How long one run may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// How often a run that takes long is repeated no more.
const LONG: Duration = Duration::from_secs(5);

/// How many rows there are.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

/// How many layers they are in.
const LAYERS: usize = 200;

/// What both take over the same rows.
pub(crate) struct Beside {
    /// The rows of the kernel before it is optimised, and after.
    pub(crate) rows: [usize; 2],
    /// All passes of vyre, from kernel to kernel.
    pub(crate) ours: Vec<Duration>,
    /// None where `spirv-opt` is not installed.
    pub(crate) theirs: Option<Taken>,
}

/// How long `spirv-opt` took over a module: with no passes, which is reading and writing it, and with them.
pub(crate) struct Taken {
    pub(crate) nothing: Duration,
    /// None where it took longer than the limit.
    pub(crate) passes: Option<Duration>,
}

impl Taken {
    /// The time of the passes alone.
    pub(crate) fn alone(&self) -> Option<Duration> {
        self.passes.map(|passes| passes.saturating_sub(self.nothing))
    }
}

/// Measures both.
pub(crate) fn measure(turns: usize) -> Result<Vec<Beside>> {
    let skipped = |error: &anyhow::Error| eprintln!("  spirv-opt is skipped: {error:#}");
    let is_there = find().inspect_err(skipped).is_ok();
    let mut all = Vec::new();
    for size in SIZES {
        let rows = Rows::new(size, LAYERS);
        let kernel = rows.kernel();
        let mut beside = Beside { rows: [kernel.values.len(), 0], ours: Vec::new(), theirs: None };
        for _ in 0..turns {
            let begun = Instant::now();
            let optimized = optimize(&kernel, &Options::default());
            beside.ours.push(begun.elapsed());
            beside.rows[1] = optimized.kernel.values.len();
        }
        if is_there {
            beside.theirs = Some(taken(&rows, turns)?);
        }
        all.push(beside);
    }
    Ok(all)
}

/// Whether `spirv-opt` is installed.
fn find() -> Result<()> {
    let mut tool = Command::new("spirv-opt");
    let status = tool.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(status.context("it is not installed")?.success(), "it does not run");
    Ok(())
}

/// The best of some runs over the module of these rows.
fn taken(rows: &Rows, turns: usize) -> Result<Taken> {
    let folder = Folder::new()?;
    let (from, to) = (folder.0.join("rows.spv"), folder.0.join("optimised.spv"));
    let bytes: Vec<u8> = module(rows).iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(&from, bytes).with_context(|| format!("cannot write {}", from.display()))?;
    let nothing = best(&from, &to, &[], turns)?.context("reading a module takes longer than a minute")?;
    let passes = best(&from, &to, &PASSES, turns)?;
    Ok(Taken { nothing, passes })
}

/// A folder that goes when this does.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("vyre-bench-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind is in the folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn best(from: &Path, to: &Path, passes: &[&str], turns: usize) -> Result<Option<Duration>> {
    let mut best: Option<Duration> = None;
    for _ in 0..turns {
        let Some(time) = once(from, to, passes)? else { return Ok(None) };
        best = Some(best.map_or(time, |best| best.min(time)));
        if time > LONG {
            break;
        }
    }
    Ok(best)
}

/// One run; none where it took longer than the limit.
fn once(from: &Path, to: &Path, passes: &[&str]) -> Result<Option<Duration>> {
    let begun = Instant::now();
    let mut child = Command::new("spirv-opt")
        .args(passes)
        .args([from, Path::new("-o"), to])
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start spirv-opt")?;
    loop {
        if let Some(status) = child.try_wait()? {
            let time = begun.elapsed();
            if !status.success() {
                bail!("spirv-opt fails on {}", from.display());
            }
            return Ok(Some(time));
        }
        if begun.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Names of SPIR-V's instructions.
mod code {
    pub(super) const MEMORY_MODEL: u32 = 14;
    pub(super) const ENTRY_POINT: u32 = 15;
    pub(super) const EXECUTION_MODE: u32 = 16;
    pub(super) const CAPABILITY: u32 = 17;
    pub(super) const TYPE_VOID: u32 = 19;
    pub(super) const TYPE_INT: u32 = 21;
    pub(super) const TYPE_VECTOR: u32 = 23;
    pub(super) const TYPE_RUNTIME_ARRAY: u32 = 29;
    pub(super) const TYPE_STRUCT: u32 = 30;
    pub(super) const TYPE_POINTER: u32 = 32;
    pub(super) const TYPE_FUNCTION: u32 = 33;
    pub(super) const CONSTANT: u32 = 43;
    pub(super) const FUNCTION: u32 = 54;
    pub(super) const FUNCTION_END: u32 = 56;
    pub(super) const VARIABLE: u32 = 59;
    pub(super) const LOAD: u32 = 61;
    pub(super) const STORE: u32 = 62;
    pub(super) const ACCESS_CHAIN: u32 = 65;
    pub(super) const DECORATE: u32 = 71;
    pub(super) const MEMBER_DECORATE: u32 = 72;
    pub(super) const COMPOSITE_EXTRACT: u32 = 81;
    pub(super) const IADD: u32 = 128;
    pub(super) const ISUB: u32 = 130;
    pub(super) const IMUL: u32 = 132;
    pub(super) const BITWISE_XOR: u32 = 198;
    pub(super) const LABEL: u32 = 248;
    pub(super) const RETURN: u32 = 253;
}

// The numbers of what every module declares.
const VOID: u32 = 1;
const FUNCTION_TYPE: u32 = 2;
const U32: u32 = 3;
const U32X3: u32 = 4;
const IDS_POINTER: u32 = 5;
const IDS: u32 = 6;
const ARRAY: u32 = 7;
const BLOCK: u32 = 8;
const BLOCK_POINTER: u32 = 9;
const X: u32 = 10;
const O: u32 = 11;
const WORD_POINTER: u32 = 12;
const ZERO: u32 = 13;
const MAIN: u32 = 14;
const ENTRY: u32 = 15;
const ALL_IDS: u32 = 16;
const INDEX: u32 = 17;
const RESULT: u32 = 18;
const FIRST: u32 = 19;

/// A compute shader of the rows, whose last layer is stored, as [`Rows::kernel`] is.
fn module(rows: &Rows) -> Vec<u32> {
    let (width, count) = (rows.width as u32, rows.rows.len() as u32);
    let constants = width.max(NUMBERS + 1);
    // Constants, the addresses of what is loaded, what is loaded, and then the rows.
    let constant = |k: u32| FIRST + k;
    let address = |k: u32| FIRST + constants + k;
    let row = |k: u32| FIRST + constants + width + k;
    let mut words = vec![0x0723_0203, 0x0001_0300, 0, FIRST + constants + 2 * width + count, 0];
    let mut put = |code: u32, operands: &[u32]| {
        words.push((operands.len() as u32 + 1) << 16 | code);
        words.extend(operands);
    };
    declare(&mut put);
    for k in 0..constants {
        put(code::CONSTANT, &[U32, constant(k), k]);
    }
    put(code::FUNCTION, &[VOID, MAIN, 0, FUNCTION_TYPE]);
    put(code::LABEL, &[ENTRY]);
    put(code::LOAD, &[U32X3, ALL_IDS, IDS]);
    put(code::COMPOSITE_EXTRACT, &[U32, INDEX, ALL_IDS, 0]);
    put(code::ACCESS_CHAIN, &[WORD_POINTER, RESULT, O, ZERO, INDEX]);
    for k in 0..width {
        put(code::ACCESS_CHAIN, &[WORD_POINTER, address(k), X, ZERO, constant(k)]);
        put(code::LOAD, &[U32, row(k), address(k)]);
    }
    for (k, Row { op, near, far }) in (width..).zip(&rows.rows) {
        let operator = match op {
            BinOp::Add => code::IADD,
            BinOp::Sub => code::ISUB,
            BinOp::Mul => code::IMUL,
            _ => code::BITWISE_XOR,
        };
        let far = match far {
            Far::Row(far) => row(*far as u32),
            Far::Number(number) => constant(*number),
        };
        put(operator, &[U32, row(k), row(*near as u32), far]);
    }
    for k in count..count + width {
        put(code::STORE, &[RESULT, row(k)]);
    }
    put(code::RETURN, &[]);
    put(code::FUNCTION_END, &[]);
    words
}

/// What stands before the constants: a buffer `x` that is read, a buffer `o`, and the ids.
fn declare(put: &mut dyn FnMut(u32, &[u32])) {
    const SHADER: u32 = 1;
    const GLSL_450: u32 = 1;
    const GL_COMPUTE: u32 = 5;
    const LOCAL_SIZE: u32 = 17;
    const INPUT: u32 = 1;
    const STORAGE_BUFFER: u32 = 12;
    const IS_BLOCK: u32 = 2;
    const ARRAY_STRIDE: u32 = 6;
    const BUILT_IN: u32 = 11;
    const NON_WRITABLE: u32 = 24;
    const GLOBAL_ID: u32 = 28;
    const BINDING: u32 = 33;
    const DESCRIPTOR_SET: u32 = 34;
    const OFFSET: u32 = 35;
    put(code::CAPABILITY, &[SHADER]);
    put(code::MEMORY_MODEL, &[0, GLSL_450]);
    put(code::ENTRY_POINT, &[GL_COMPUTE, MAIN, u32::from_le_bytes(*b"main"), 0, IDS]);
    put(code::EXECUTION_MODE, &[MAIN, LOCAL_SIZE, 1, 1, 1]);
    put(code::DECORATE, &[IDS, BUILT_IN, GLOBAL_ID]);
    put(code::DECORATE, &[ARRAY, ARRAY_STRIDE, 4]);
    put(code::DECORATE, &[BLOCK, IS_BLOCK]);
    put(code::MEMBER_DECORATE, &[BLOCK, 0, OFFSET, 0]);
    for (buffer, binding) in [(X, 0), (O, 1)] {
        put(code::DECORATE, &[buffer, DESCRIPTOR_SET, 0]);
        put(code::DECORATE, &[buffer, BINDING, binding]);
    }
    put(code::DECORATE, &[X, NON_WRITABLE]);
    put(code::TYPE_VOID, &[VOID]);
    put(code::TYPE_FUNCTION, &[FUNCTION_TYPE, VOID]);
    put(code::TYPE_INT, &[U32, 32, 0]);
    put(code::TYPE_VECTOR, &[U32X3, U32, 3]);
    put(code::TYPE_POINTER, &[IDS_POINTER, INPUT, U32X3]);
    put(code::VARIABLE, &[IDS_POINTER, IDS, INPUT]);
    put(code::TYPE_RUNTIME_ARRAY, &[ARRAY, U32]);
    put(code::TYPE_STRUCT, &[BLOCK, ARRAY]);
    put(code::TYPE_POINTER, &[BLOCK_POINTER, STORAGE_BUFFER, BLOCK]);
    put(code::VARIABLE, &[BLOCK_POINTER, X, STORAGE_BUFFER]);
    put(code::VARIABLE, &[BLOCK_POINTER, O, STORAGE_BUFFER]);
    put(code::TYPE_POINTER, &[WORD_POINTER, STORAGE_BUFFER, U32]);
    put(code::CONSTANT, &[U32, ZERO, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The module is one, where there is a validator to say so.
    #[test]
    fn modules_are_valid() {
        let mut validator = Command::new("spirv-val");
        if validator.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            return;
        }
        let path = std::env::temp_dir().join(format!("vyre-bench-test-{}.spv", std::process::id()));
        let words = module(&Rows::new(1000, 20));
        fs::write(&path, words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
        let output = Command::new("spirv-val").arg(&path).output().unwrap();
        fs::remove_file(&path).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
