//! What a device is and can do. Every question about a backend is answered from here.

use crate::error::Error;
use std::fmt;

/// Something that not every device can do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Feature {
    /// Floats that equal the reference bit for bit.
    ExactFloats,
    /// The device's own floats, outside the promise of equal bytes.
    NativeFloats,
    /// Atomics on 64-bit elements.
    Atomics64,
    /// Atomics with other orderings than relaxed.
    Orderings,
    /// A launch tells which invocation has trapped. Where it does not, traps are notes in memory.
    Traps,
    /// A launch that runs can be stopped. Where it cannot, timeouts and cancellation are honoured between launches.
    Interrupts,
    /// A grid barrier inside one launch.
    NativeGridSync,
    /// Memory that stays on the device between calls.
    Resident,
    /// The host may run a program with grid barriers segment by segment.
    HostGridSync,
    /// Compiled programs are kept on disk.
    DiskCache,
    /// The device tells how long a launch took.
    Timestamps,
    /// The device works in the memory of the host: borrowed inputs cost nothing.
    HostMemory,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Feature; 12] = [
        Feature::ExactFloats,
        Feature::NativeFloats,
        Feature::Atomics64,
        Feature::Orderings,
        Feature::Traps,
        Feature::Interrupts,
        Feature::NativeGridSync,
        Feature::Resident,
        Feature::HostGridSync,
        Feature::DiskCache,
        Feature::Timestamps,
        Feature::HostMemory,
    ];

    /// The stable name, for people and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::ExactFloats => "exact_floats",
            Feature::NativeFloats => "native_floats",
            Feature::Atomics64 => "atomics64",
            Feature::Orderings => "orderings",
            Feature::Traps => "traps",
            Feature::Interrupts => "interrupts",
            Feature::NativeGridSync => "native_grid_sync",
            Feature::Resident => "resident",
            Feature::HostGridSync => "host_grid_sync",
            Feature::DiskCache => "disk_cache",
            Feature::Timestamps => "timestamps",
            Feature::HostMemory => "host_memory",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Features(u32);

impl Features {
    /// No features.
    pub const NONE: Features = Features(0);

    /// Whether a feature is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u32) != 0
    }

    /// The set with one more feature.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Features {
        Features(self.0 | (1 << feature as u32))
    }

    /// The features of the set.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.into_iter().filter(move |feature| self.has(*feature))
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Features {
        features.into_iter().fold(Features::NONE, Features::with)
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// How much a device takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// The most workgroups on each axis.
    pub max_workgroups: [u32; 3],
    /// The most invocations of a workgroup.
    pub max_workgroup_invocations: u32,
    /// The most memory of a workgroup, in bytes.
    pub max_workgroup_bytes: u64,
    /// The memory of the device, where that is known.
    pub memory_bytes: Option<u64>,
    /// How many invocations really run at once: threads of a CPU, lanes of a GPU where it tells.
    pub parallelism: u32,
}

/// How a device does something that devices differ in, as it was found out by trying.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// What was tried: `f32 add`.
    pub what: &'static str,
    /// Whether the device does it itself. Otherwise it is made of what the device surely does.
    pub by_device: bool,
    /// Why the trial may not be the last word, if so.
    pub doubt: Option<&'static str>,
}

/// What a backend is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceProfile {
    /// The name of the backend: `cpu`, `reference`.
    pub backend: &'static str,
    /// The device, for people.
    pub device: String,
    /// The version of the compiler and of the driver: part of every cache key.
    pub version: String,
    /// What it can do.
    pub features: Features,
    /// How much it takes.
    pub limits: Limits,
    /// What it was tried with, and how that went.
    pub verdicts: Vec<Verdict>,
}

impl DeviceProfile {
    /// The error for something that needs a feature which this device does not have.
    pub fn unsupported(&self, what: impl Into<String>, feature: Feature) -> Error {
        let help = format!("it needs the feature `{feature}`: choose a backend that has it");
        Error::Unsupported { feature: what.into(), backend: self.backend, help }
    }
}
