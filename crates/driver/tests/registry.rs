//! Which backend is chosen, why the others are not, and which are started at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use vyre_driver::{
    BackendExt, DispatchConfig, Error, Feature, ReferenceBackend, Registration, Requirements, Unit, acquire,
    acquire_preferred, registry,
};
use vyre_foundation::Program;

static STARTED: AtomicUsize = AtomicUsize::new(0);

registry::submit! {
    Registration {
        name: "absent",
        rank: 20,
        summary: "a device that is not there",
        start: || Err(Error::DeviceLost { backend: "absent" }),
    }
}

registry::submit! {
    Registration {
        name: "best",
        rank: 10,
        summary: "the reference by another name",
        start: || {
            STARTED.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(ReferenceBackend::new()))
        },
    }
}

registry::submit! {
    Registration {
        name: "lower",
        rank: 5,
        summary: "never started",
        start: || panic!("nobody asked for this one"),
    }
}

#[test]
fn the_highest_rank_that_starts_is_taken() {
    let before = STARTED.load(Ordering::SeqCst);
    let acquired = acquire_preferred(&Requirements::new()).unwrap();
    assert!(STARTED.load(Ordering::SeqCst) > before);
    let names: Vec<_> = acquired.passed_over.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["absent", "lower", "reference"]);
    assert!(acquired.passed_over[0].1.contains("lost"));
    assert!(acquired.passed_over[1].1.contains("comes first"));
}

#[test]
fn the_reference_is_taken_by_name_only() {
    assert_eq!(acquire("reference").unwrap().profile().backend, "reference");
    match acquire("abacus").map(|_| ()) {
        Err(Error::UnknownBackend { known, .. }) => {
            assert_eq!(known, "`absent`, `best`, `lower`, `reference`");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(acquire("absent").map(|_| ()), Err(Error::DeviceLost { backend: "absent" }));
}

#[test]
fn what_a_device_lacks_is_said() {
    let backend = ReferenceBackend::new();
    use vyre_driver::VyreBackend;
    let lacking = |requirements: Requirements| requirements.lacking(backend.profile());
    assert_eq!(lacking(Requirements::new().feature(Feature::Resident)), None);
    assert_eq!(
        lacking(Requirements::new().feature(Feature::Timestamps)).as_deref(),
        Some("it has no `timestamps`")
    );
    let lacks = lacking(Requirements::new().buffer_bytes(u64::MAX)).unwrap();
    assert!(lacks.starts_with("it takes buffers of at most"), "{lacks}");
    assert_eq!(lacking(Requirements::new().workgroup_invocations(1024).workgroup_bytes(1024)), None);
}

#[test]
fn equal_programs_share_one_unit_whoever_made_them() {
    let text = "program shared { buffer o: output u32[1]; o[0] = 7; }";
    let (a, b) = (Program::parse(text).unwrap(), Program::parse(text).unwrap());
    let (a, b) = (Unit::of(&a).unwrap(), Unit::of(&b).unwrap());
    assert!(std::ptr::eq(a.kernel(), b.kernel()));
    let backend = ReferenceBackend::new();
    let pipeline = backend.compile_native(b.program(), &DispatchConfig::new()).unwrap();
    assert!(std::ptr::eq(pipeline.unit().kernel(), a.kernel()));
}
