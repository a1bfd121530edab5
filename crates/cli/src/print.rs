//! Printing that survives a closed pipe: `vyre run … | head` ends quietly. Any other failure is an error.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};

/// Prints to standard output. Who closed it does not want to read; that is no failure, but a full disk is.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Prints bytes, in the same way.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Unwritable { path: "standard output".into(), error })
        }
        _ => Ok(()),
    }
}

/// Prints to standard error. There is nowhere left to report a failure to.
pub(crate) fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
