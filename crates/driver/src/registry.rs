//! Which backends there are, and how one is chosen.
//!
//! A backend registers itself, so a program that links its crate has it:
//!
//! ```
//! # use std::sync::Arc;
//! # use vyre_driver::ReferenceBackend;
//! vyre_driver::registry::submit! {
//!     vyre_driver::Registration {
//!         name: "mine",
//!         rank: 10,
//!         summary: "a device of mine",
//!         start: || Ok(Arc::new(ReferenceBackend::new())),
//!     }
//! }
//! # fn main() {
//! assert!(vyre_driver::registry::registrations().iter().any(|r| r.name == "mine"));
//! # }
//! ```

use crate::backend::VyreBackend;
use crate::error::{Error, Result};
use crate::profile::{DeviceProfile, Features};
use crate::reference;
use std::fmt;
use std::sync::Arc;
use vyre_lower::Kernel;

pub use inventory::submit;

/// A backend that can be acquired.
pub struct Registration {
    /// Its name.
    pub name: &'static str,
    /// Higher ones are preferred.
    pub rank: i32,
    /// What it is, for people.
    pub summary: &'static str,
    /// Starts a new instance, or says why there is none.
    pub start: fn() -> Result<Arc<dyn VyreBackend>>,
}

inventory::collect!(Registration);

/// What improves kernels. The crate that has it registers it, so a program that links that crate has it.
#[derive(Debug)]
pub struct Optimizer {
    /// Its name, which is a part of the hash of what it improves.
    pub name: &'static str,
    /// Makes a kernel that gives the same bytes.
    pub optimize: fn(&Kernel) -> Kernel,
}

inventory::collect!(Optimizer);

/// The optimizer, if one is linked in.
pub fn optimizer() -> Option<&'static Optimizer> {
    inventory::iter::<Optimizer>.into_iter().next()
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).field("rank", &self.rank).finish()
    }
}

/// Every backend, the preferred ones first.
pub fn registrations() -> Vec<&'static Registration> {
    let mut all: Vec<_> = inventory::iter::<Registration>.into_iter().collect();
    all.sort_by_key(|registration| (std::cmp::Reverse(registration.rank), registration.name));
    all
}

/// What a backend must have. The default asks for nothing and leaves the reference out.
///
/// ```
/// use vyre_driver::{Feature, Requirements, acquire_preferred};
/// let needs = Requirements::new().feature(Feature::Atomics64).allow_reference();
/// let acquired = acquire_preferred(&needs)?;
/// assert_eq!(acquired.backend.profile().backend, "reference");
/// # Ok::<(), vyre_driver::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// Features it must have.
    pub features: Features,
    /// The size of the largest buffer that it must take.
    pub buffer_bytes: u64,
    /// How many invocations of a workgroup it must take.
    pub workgroup_invocations: u32,
    /// How much memory of a workgroup it must take.
    pub workgroup_bytes: u64,
    /// Whether it may be the reference, which is slow.
    pub allow_reference: bool,
}

impl Requirements {
    /// Nothing in particular.
    pub fn new() -> Requirements {
        Requirements::default()
    }

    /// With a feature.
    #[must_use]
    pub fn feature(mut self, feature: crate::Feature) -> Requirements {
        self.features = self.features.with(feature);
        self
    }

    /// With buffers of at least this size.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: u64) -> Requirements {
        self.buffer_bytes = bytes;
        self
    }

    /// With workgroups of at least so many invocations.
    #[must_use]
    pub fn workgroup_invocations(mut self, invocations: u32) -> Requirements {
        self.workgroup_invocations = invocations;
        self
    }

    /// With at least so much memory of a workgroup.
    #[must_use]
    pub fn workgroup_bytes(mut self, bytes: u64) -> Requirements {
        self.workgroup_bytes = bytes;
        self
    }

    /// The reference will do.
    #[must_use]
    pub fn allow_reference(mut self) -> Requirements {
        self.allow_reference = true;
        self
    }

    /// What a device lacks, if anything.
    pub fn lacking(&self, profile: &DeviceProfile) -> Option<String> {
        let limits = &profile.limits;
        if let Some(feature) = self.features.iter().find(|feature| !profile.features.has(*feature)) {
            return Some(format!("it has no `{feature}`"));
        }
        let asked = [
            ("buffers of", self.buffer_bytes, limits.max_buffer_bytes, "bytes"),
            (
                "workgroups of",
                u64::from(self.workgroup_invocations),
                u64::from(limits.max_workgroup_invocations),
                "invocations",
            ),
            ("workgroup memory of", self.workgroup_bytes, limits.max_workgroup_bytes, "bytes"),
        ];
        let over = asked.into_iter().find(|(_, asked, most, _)| asked > most);
        over.map(|(what, _, most, unit)| format!("it takes {what} at most {most} {unit}"))
    }
}

/// A backend that was chosen.
pub struct Acquired {
    /// The backend.
    pub backend: Arc<dyn VyreBackend>,
    /// The others, each with why it was passed over.
    pub passed_over: Vec<(&'static str, String)>,
}

/// Starts the backend with this name.
///
/// ```
/// let backend = vyre_driver::acquire("reference")?;
/// assert!(vyre_driver::acquire("abacus").is_err());
/// # Ok::<(), vyre_driver::Error>(())
/// ```
pub fn acquire(name: &str) -> Result<Arc<dyn VyreBackend>> {
    let all = registrations();
    match all.iter().find(|registration| registration.name == name) {
        Some(found) => start(found),
        None => {
            let known: Vec<String> = all.iter().map(|known| format!("`{}`", known.name)).collect();
            Err(Error::UnknownBackend { name: name.to_owned(), known: known.join(", ") })
        }
    }
}

/// Starts the most preferred backend that meets the requirements. Those that rank below it are not started.
pub fn acquire_preferred(requirements: &Requirements) -> Result<Acquired> {
    let mut passed_over = Vec::new();
    let mut chosen: Option<Arc<dyn VyreBackend>> = None;
    for registration in registrations() {
        let name = registration.name;
        if let Some(chosen) = &chosen {
            passed_over.push((name, format!("`{}` comes first", chosen.profile().backend)));
        } else if name == reference::NAME && !requirements.allow_reference {
            passed_over.push((name, "it is slow, and taken only where that is asked for".to_owned()));
        } else {
            match start(registration) {
                Ok(backend) => match requirements.lacking(backend.profile()) {
                    None => chosen = Some(backend),
                    Some(what) => passed_over.push((name, what)),
                },
                Err(error) => passed_over.push((name, error.to_string())),
            }
        }
    }
    let reasons = || {
        let reasons = passed_over.iter().map(|(name, why)| format!("`{name}`: {why}"));
        reasons.collect::<Vec<_>>().join("; ")
    };
    match chosen {
        Some(backend) => Ok(Acquired { backend, passed_over }),
        None => Err(Error::NoBackend { reasons: reasons() }),
    }
}

fn start(registration: &Registration) -> Result<Arc<dyn VyreBackend>> {
    let _span = tracing::debug_span!("start", backend = registration.name).entered();
    (registration.start)()
}
