//! `vyre devices`: every backend with what it has, or why it is missing.

use crate::args::{Backend, DevicesArgs};
use crate::failure::{ErrorJson, Failure};
use crate::print;
use serde::Serialize;
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;
use vyre_driver::{DeviceProfile, Feature, VyreBackend, registry};

/// A backend, whether it is there or not.
struct Entry {
    name: &'static str,
    summary: &'static str,
    started: Result<Arc<dyn VyreBackend>, Failure>,
}

pub(crate) fn command(args: &DevicesArgs) -> ExitCode {
    let entries = entries();
    let text = if args.json { json(&entries) } else { text(&entries) };
    match print::out(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(args.json);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// All that are registered, the preferred ones first, then those that this build could have.
fn entries() -> Vec<Entry> {
    let registered = registry::registrations();
    let missing = Backend::NAMED.into_iter().filter_map(Backend::name);
    let missing = missing.filter(|name| registered.iter().all(|known| known.name != *name));
    let missing: Vec<Entry> =
        missing.map(|name| Entry { name, summary: "", started: Err(Failure::NoBackend(name)) }).collect();
    let start = |known: &&registry::Registration| Entry {
        name: known.name,
        summary: known.summary,
        started: vyre_driver::acquire(known.name).map_err(Failure::Run),
    };
    registered.iter().map(start).chain(missing).collect()
}

fn text(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let more = if entry.summary.is_empty() { String::new() } else { format!(": {}", entry.summary) };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}{more}", entry.name);
        let mut line = |label: &str, value: String| {
            let _ = writeln!(text, "  {label:<9} {value}");
        };
        match &entry.started {
            Ok(backend) => describe(backend.profile(), &mut line),
            Err(failure) => {
                let (message, help) = failure.texts();
                line("missing", format!("[{}] {message}", failure.code()));
                line("help", help);
            }
        }
    }
    text
}

fn describe(profile: &DeviceProfile, line: &mut impl FnMut(&str, String)) {
    let limits = &profile.limits;
    line("device", profile.device.clone());
    line("version", profile.version.clone());
    line("features", profile.features.iter().map(Feature::name).collect::<Vec<_>>().join(", "));
    line("buffer", format!("up to {} bytes", limits.max_buffer_bytes));
    let workgroup = format!(
        "up to {} invocations and {} bytes of memory",
        limits.max_workgroup_invocations, limits.max_workgroup_bytes
    );
    line("workgroup", workgroup);
    line("grid", format!("up to {} workgroups", limits.max_workgroups.map(|n| n.to_string()).join(" x ")));
    if let Some(bytes) = limits.memory_bytes {
        line("memory", format!("{bytes} bytes"));
    }
    line("parallel", format!("{} at once", limits.parallelism));
    let names = |by_device: bool| {
        let told = profile.verdicts.iter().filter(|verdict| verdict.by_device == by_device);
        told.map(|verdict| verdict.what).collect::<Vec<_>>().join(", ")
    };
    for (label, by_device) in [("trusted", true), ("replaced", false)] {
        let names = names(by_device);
        if !names.is_empty() {
            line(label, names);
        }
    }
    if let Some(doubt) = profile.verdicts.iter().find_map(|verdict| verdict.doubt) {
        line("doubt", doubt.to_owned());
    }
}

#[derive(Serialize)]
struct Device<'a> {
    name: &'a str,
    summary: &'a str,
    available: bool,
    device: Option<&'a str>,
    version: Option<&'a str>,
    features: Vec<&'static str>,
    limits: Option<Limits>,
    verdicts: Vec<Verdict<'a>>,
    error: Option<ErrorJson>,
}

/// What a device was tried with: whether it does that itself or something takes its place.
#[derive(Serialize)]
struct Verdict<'a> {
    what: &'a str,
    by_device: bool,
    doubt: Option<&'a str>,
}

#[derive(Serialize)]
struct Limits {
    max_buffer_bytes: u64,
    max_workgroups: [u32; 3],
    max_workgroup_invocations: u32,
    max_workgroup_bytes: u64,
    memory_bytes: Option<u64>,
    parallelism: u32,
}

impl<'a> Device<'a> {
    fn new(entry: &'a Entry) -> Device<'a> {
        let profile = entry.started.as_ref().ok().map(|backend| backend.profile());
        Device {
            name: entry.name,
            summary: entry.summary,
            available: profile.is_some(),
            device: profile.map(|profile| profile.device.as_str()),
            version: profile.map(|profile| profile.version.as_str()),
            features: profile
                .map_or(Vec::new(), |profile| profile.features.iter().map(Feature::name).collect()),
            limits: profile.map(|profile| Limits {
                max_buffer_bytes: profile.limits.max_buffer_bytes,
                max_workgroups: profile.limits.max_workgroups,
                max_workgroup_invocations: profile.limits.max_workgroup_invocations,
                max_workgroup_bytes: profile.limits.max_workgroup_bytes,
                memory_bytes: profile.limits.memory_bytes,
                parallelism: profile.limits.parallelism,
            }),
            verdicts: profile.map_or(Vec::new(), |profile| {
                let told = profile.verdicts.iter();
                told.map(|v| Verdict { what: v.what, by_device: v.by_device, doubt: v.doubt }).collect()
            }),
            error: entry.started.as_ref().err().and_then(|failure| failure.errors().into_iter().next()),
        }
    }
}

fn json(entries: &[Entry]) -> String {
    let backends: Vec<Device<'_>> = entries.iter().map(Device::new).collect();
    format!("{}\n", serde_json::json!({ "backends": backends }))
}
