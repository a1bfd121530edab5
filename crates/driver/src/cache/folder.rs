//! Which folder holds the cache, and whether it may.

use super::access;
use super::error::CacheError;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whose habits decide where caches live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Habit {
    Xdg,
    MacOs,
    Windows,
}

impl Habit {
    pub(super) const HERE: Habit = if cfg!(windows) {
        Habit::Windows
    } else if cfg!(target_vendor = "apple") {
        Habit::MacOs
    } else {
        Habit::Xdg
    };
}

/// The folder for the cache, from environment variables as `lookup` gives them.
pub(super) fn default_folder(
    habit: Habit,
    lookup: impl Fn(&'static str) -> Option<OsString>,
) -> Option<PathBuf> {
    if let Some(chosen) = lookup("VYRE_CACHE_DIR") {
        return (!chosen.is_empty()).then(|| PathBuf::from(chosen));
    }
    // A relative folder would make the cache depend on where the process was started.
    let absolute = |variable| lookup(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match habit {
        Habit::Xdg => absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache"))),
        Habit::MacOs => absolute("HOME").map(|home| home.join("Library").join("Caches")),
        Habit::Windows => absolute("LOCALAPPDATA"),
    };
    Some(base?.join("vyre"))
}

/// The real place of the folder, which is made if it is missing, if it is safe to execute code from.
pub(super) fn prepare(folder: &Path) -> Result<PathBuf, CacheError> {
    let named = || folder.to_path_buf();
    let examine = |error: io::Error| CacheError::Examine { folder: named(), why: error.to_string() };
    let real = match fs::canonicalize(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let create = |error: io::Error| CacheError::Create { folder: named(), why: error.to_string() };
            access::create_private_folder(folder).map_err(create)?;
            fs::canonicalize(folder).map_err(examine)?
        }
        found => found.map_err(examine)?,
    };
    // Links were resolved once and for all: whatever stands here now is examined itself.
    let metadata = fs::symlink_metadata(&real).map_err(examine)?;
    if !metadata.is_dir() {
        return Err(CacheError::NotAFolder { folder: named() });
    }
    match access::distrust(&metadata) {
        None => Ok(real),
        #[cfg(unix)]
        Some(access::Distrust::Owner { owner, user }) => {
            Err(CacheError::ForeignOwner { folder: named(), owner, user })
        }
        #[cfg(unix)]
        Some(access::Distrust::Writable { mode }) => {
            Err(CacheError::WritableByOthers { folder: named(), mode })
        }
    }
}
