//! A line on the terminal for runs that take a while: what is happening, and for how long.
//!
//! A thread of its own draws it, and looks at counters that are kept anyway, so that nothing waits for it. Where
//! standard error is no terminal, or the answer goes to a script, there is neither.

use crate::args::RunArgs;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vyre_driver::process_telemetry;

/// Runs that end before this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line changes.
const FRAME: Duration = Duration::from_millis(100);
/// What turns.
const WHEEL: [char; 8] = ['⣾', '⣽', '⣻', '⢿', '⡿', '⣟', '⣯', '⣷'];
/// Clears the line and stays on it.
const CLEAR: &str = "\r\x1b[K";

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    Compiling,
    Reading,
    Running,
}

/// The line. Dropping it takes it away.
pub(crate) struct Progress(Option<(Sender<Stage>, JoinHandle<()>)>);

impl Progress {
    /// A line that appears when the run takes longer than people wait.
    pub(crate) fn start(args: &RunArgs) -> Progress {
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        if args.json || is_dumb || !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let (sender, stages) = channel();
        let (begun, limit) = (Instant::now(), args.fixpoint);
        let draw = move || {
            // A terminal that cannot be written to shows nothing.
            let _ = show(&stages, begun, PATIENCE, limit, &mut std::io::stderr());
        };
        let thread = std::thread::Builder::new().name("vyre-progress".to_owned()).spawn(draw);
        Progress(thread.ok().map(|thread| (sender, thread)))
    }

    /// Says what is happening from now on.
    pub(crate) fn stage(&self, stage: Stage) {
        if let Some((sender, _)) = &self.0 {
            let _ = sender.send(stage);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// Draws until the sender is gone.
fn show(
    stages: &Receiver<Stage>,
    begun: Instant,
    patience: Duration,
    limit: Option<u32>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let mut stage = Stage::Compiling;
    let mut frame = 0;
    loop {
        let wait = patience.saturating_sub(begun.elapsed()).max(FRAME);
        match stages.recv_timeout(wait) {
            Ok(next) => stage = next,
            Err(RecvTimeoutError::Timeout) => {
                let wheel = WHEEL[frame % WHEEL.len()];
                let line = line(stage, begun.elapsed(), process_telemetry().passes, limit);
                write!(out, "{CLEAR}{wheel} {line}")?;
                out.flush()?;
                frame += 1;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if frame > 0 {
        write!(out, "{CLEAR}")?;
        out.flush()?;
    }
    Ok(())
}

/// The line without its wheel: `running, pass 12 of at most 100, 3.4 s`.
fn line(stage: Stage, elapsed: Duration, passes: u64, limit: Option<u32>) -> String {
    let seconds = elapsed.as_secs_f64();
    match (stage, limit) {
        (Stage::Compiling, _) => format!("compiling, {seconds:.1} s"),
        (Stage::Reading, _) => format!("reading inputs, {seconds:.1} s"),
        (Stage::Running, None) => format!("running, {seconds:.1} s"),
        (Stage::Running, Some(limit)) => {
            let pass = (passes + 1).min(u64::from(limit));
            format!("running, pass {pass} of at most {limit}, {seconds:.1} s")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_comes_late_and_goes() {
        let drawn = |patience, life| {
            let (sender, stages) = channel();
            sender.send(Stage::Running).unwrap();
            let end = std::thread::spawn(move || {
                std::thread::sleep(life);
                drop(sender);
            });
            let mut out = Vec::new();
            show(&stages, Instant::now(), patience, None, &mut out).unwrap();
            end.join().unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(drawn(Duration::from_secs(60), Duration::from_millis(10)), "");
        let text = drawn(Duration::ZERO, Duration::from_millis(350));
        assert!(text.contains(" running, 0."), "{text:?}");
        assert!(text.ends_with(CLEAR) && !text.contains('\n'), "{text:?}");
    }

    #[test]
    fn the_line_says_which_pass_runs() {
        let of = |passes, limit| line(Stage::Running, Duration::from_millis(3400), passes, limit);
        assert_eq!(of(0, Some(100)), "running, pass 1 of at most 100, 3.4 s");
        assert_eq!(of(100, Some(100)), "running, pass 100 of at most 100, 3.4 s");
        assert_eq!(of(1, None), "running, 3.4 s");
    }
}
