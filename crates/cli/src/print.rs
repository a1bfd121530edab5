//! Printing that survives a closed pipe: `vyre run … | head` ends quietly.

use std::io::Write;

/// Prints to standard output. Who closed it does not want to read, so a failure is no error.
pub(crate) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Prints to standard error.
pub(crate) fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
