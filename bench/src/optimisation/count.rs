//! How many instructions a launch executes, as valgrind counts them.
//!
//! Valgrind runs this tool on one kernel, with few launches and with more of them, and counts what the process executes.
//! Starting, compiling and inputs are in both and cancel, but for a little: tables are hashed with other seeds each time.

use super::{KERNELS, LARGE, contender};
use crate::contender::Platform as _;
use anyhow::{Context as _, Result, bail, ensure};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use vyre_driver::Optimization;

/// The launches of both runs.
const LAUNCHES: [usize; 2] = [1, 5];

/// How many times more instructions are no more: what does not cancel.
pub(crate) const TOLERANCE: f64 = 1.002;

/// Launches a kernel of the set so often, on one thread. This is what valgrind looks at.
pub(crate) fn launch(name: &str, optimization: Optimization, launches: usize) -> Result<()> {
    let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
    let kernel = kernel.with_context(|| format!("there is no kernel `{name}` in the set"))?;
    let case = kernel.case(LARGE);
    let vyre = contender(optimization)?;
    let mut prepared = vyre.prepare(&case)?;
    for _ in 0..launches {
        prepared.run(1)?;
    }
    Ok(())
}

/// Valgrind, and this tool.
pub(crate) struct Counter {
    tool: PathBuf,
}

impl Counter {
    /// Finds out whether valgrind is installed and can run this tool.
    pub(crate) fn find() -> Result<Counter> {
        let tool = std::env::current_exe()?;
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("--tool=none").arg(&tool).arg("--list").stdin(Stdio::null());
        let ran = valgrind.output().context("valgrind is not installed")?.status.success();
        ensure!(ran, "valgrind cannot run this tool: build it with RUSTFLAGS=\"-C target-cpu=x86-64-v3\"");
        Ok(Counter { tool })
    }

    /// The instructions of a launch of a kernel, as it is and optimised.
    pub(crate) fn count(&self, name: &str) -> Result<[u64; 2]> {
        let mut counts = [0; 2];
        for (count, optimization) in counts.iter_mut().zip(["off", "on"]) {
            let [few, many] = LAUNCHES;
            let least = self.instructions(name, optimization, few)?;
            let most = self.instructions(name, optimization, many)?;
            *count = most.saturating_sub(least) / (many - few) as u64;
        }
        Ok(counts)
    }

    /// The instructions of a whole process.
    fn instructions(&self, name: &str, optimization: &str, launches: usize) -> Result<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(&self.tool)
            .args(["--count", name, "--optimize", optimization, "--launches", &launches.to_string()])
            .stdin(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("valgrind cannot run {name}: {}", text.trim());
        }
        total(&text).with_context(|| format!("valgrind says nothing about {name}: {}", text.trim()))
    }
}

/// The total that valgrind prints: `==1== I   refs:      1,234`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("refs:"))?;
    let digits: String = line.split("refs:").nth(1)?.chars().filter(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found() {
        assert_eq!(total("==7== Cachegrind\n==7== \n==7== I   refs:      11,565,215\n"), Some(11_565_215));
        assert_eq!(total("==7== I refs: 12"), Some(12));
        assert_eq!(total("nothing"), None);
    }
}
