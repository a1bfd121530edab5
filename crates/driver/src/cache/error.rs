//! Why a folder cannot hold the cache.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a folder cannot hold the cache.
///
/// `Display` prints what is wrong and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CacheError {
    /// There is something else under that name.
    #[error("the cache folder `{}` is not a folder. help: {}", .folder.display(), self.help())]
    NotAFolder {
        /// The name.
        folder: PathBuf,
    },
    /// Group or world may write into it, and code is executed from it.
    #[error("others may write into the cache folder `{}` (mode {mode:04o}). help: {}", .folder.display(), self.help())]
    WritableByOthers {
        /// The folder.
        folder: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Someone else owns it.
    #[error("the cache folder `{}` belongs to user {owner}, not to the current user {user}. help: {}", .folder.display(), self.help())]
    ForeignOwner {
        /// The folder.
        folder: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The user id of this process.
        user: u32,
    },
    /// It is missing and cannot be made.
    #[error("the cache folder `{}` cannot be made: {why}. help: {}", .folder.display(), self.help())]
    Create {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        why: String,
    },
    /// Its owner and rights cannot be found out.
    #[error("the cache folder `{}` cannot be examined: {why}. help: {}", .folder.display(), self.help())]
    Examine {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        why: String,
    },
}

impl CacheError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            CacheError::NotAFolder { .. } => "D040",
            CacheError::WritableByOthers { .. } => "D041",
            CacheError::ForeignOwner { .. } => "D042",
            CacheError::Create { .. } => "D043",
            CacheError::Examine { .. } => "D044",
        }
    }

    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            CacheError::WritableByOthers { folder, .. } => {
                format!("`chmod go-w '{}'`, after a look at what is in it", folder.display())
            }
            CacheError::NotAFolder { .. } | CacheError::ForeignOwner { .. } => {
                "set `VYRE_CACHE_DIR` to a folder of your own, or to nothing to go without".to_owned()
            }
            CacheError::Create { .. } | CacheError::Examine { .. } => {
                "set `VYRE_CACHE_DIR` to a folder that you may use, or to nothing to go without".to_owned()
            }
        }
    }

    /// The folder it is about.
    pub fn folder(&self) -> &Path {
        match self {
            CacheError::NotAFolder { folder }
            | CacheError::WritableByOthers { folder, .. }
            | CacheError::ForeignOwner { folder, .. }
            | CacheError::Create { folder, .. }
            | CacheError::Examine { folder, .. } => folder,
        }
    }
}
