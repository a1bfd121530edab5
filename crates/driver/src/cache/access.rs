//! Owners and rights, and opening files so that nobody else can have a hand in them.
//!
//! On systems without Unix rights the cache relies on the folder being the user's own.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Why a file or folder is not trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Distrust {
    /// Someone else owns it.
    #[cfg(unix)]
    Owner { owner: u32, user: u32 },
    /// Group or world may write it.
    #[cfg(unix)]
    Writable { mode: u32 },
}

/// Why code must not be taken from here, if so.
#[cfg(unix)]
pub(super) fn distrust(metadata: &Metadata) -> Option<Distrust> {
    use std::os::unix::fs::MetadataExt;
    judge(metadata.uid(), metadata.mode(), rustix::process::geteuid().as_raw())
}

/// Why code must not be taken from here, if so.
#[cfg(not(unix))]
pub(super) fn distrust(_: &Metadata) -> Option<Distrust> {
    None
}

#[cfg(unix)]
pub(super) fn judge(owner: u32, mode: u32, user: u32) -> Option<Distrust> {
    if owner != user {
        return Some(Distrust::Owner { owner, user });
    }
    (mode & 0o022 != 0).then_some(Distrust::Writable { mode: mode & 0o7777 })
}

/// Makes a folder, and those above it that are missing, for the current user alone.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Makes a file that did not exist, for the current user alone.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Opens a file for reading and for setting its times. A link is not followed, a pipe does not block.
pub(super) fn open_entry(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const GENERIC_READ: u32 = 0x8000_0000;
        const FILE_WRITE_ATTRIBUTES: u32 = 0x0100;
        const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
        options.access_mode(GENERIC_READ | FILE_WRITE_ATTRIBUTES).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    }
    options.open(path)
}
