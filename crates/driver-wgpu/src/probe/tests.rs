//! Devices against the reference, on many expression graphs.
//!
//! `VYRE_CASES=1000000 cargo test --release -p vyre-driver-wgpu --lib graphs -- --nocapture` is the long run, with
//! `VYRE_SEED` as where it starts.

#![expect(clippy::print_stderr, reason = "long runs tell how far they are")]

use super::*;
use crate::WgpuBackend;
use vyre_driver::FloatMode;

/// A backend, or nothing where there is no device and none is required.
fn backend() -> Option<WgpuBackend> {
    match WgpuBackend::new() {
        Ok(backend) => Some(backend),
        Err(error) => {
            assert!(std::env::var_os("VYRE_REQUIRE_WGPU").is_none(), "{error}");
            eprintln!("WARNING: the wgpu backend is NOT tested: {error}");
            None
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The kinds of operations without which a device would be right.
fn blamed(core: &Core, reference: &ReferenceBackend, graphs: &Graphs<'_>, manner: Manner) -> Vec<Kind> {
    let floats = manner.floats;
    let without = |kind: Kind| {
        let others = Kind::ALL.into_iter().filter(|other| *other != kind && floats.has(*other));
        Manner { floats: others.fold(Floats::SOFTWARE, Floats::with), ..manner }
    };
    let is_to_blame = |kind: &Kind| agrees(core, reference, graphs, without(*kind)).expect("a result");
    Kind::ALL.into_iter().filter(|kind| floats.has(*kind)).filter(is_to_blame).collect()
}

#[test]
fn graphs_give_the_bytes_of_the_reference() {
    let Some(backend) = backend() else { return };
    let core = backend.core();
    let reference = ReferenceBackend::new();
    let (cases, seed) = (number("VYRE_CASES", 2000), number("VYRE_SEED", 0));
    // Software operations take drivers long to compile, so not every program has them: by turns `fma` is among the kinds,
    // and now and then nothing is left to the device.
    let without_fma: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Fma).collect();
    let (count, mut done, mut wrong) = (250, 0, Vec::new());
    while done < cases {
        let turn = done / count as u64;
        let kinds: &[Kind] = if turn % 4 == 3 { &Kind::ALL } else { &without_fma };
        let graphs = Graphs { seed: seed + 1000 + done, count, rows: 64, kinds };
        let mut manner = core.manner(FloatMode::Exact);
        if turn % 32 == 6 {
            manner.floats = Floats::SOFTWARE;
        }
        if !agrees(core, &reference, &graphs, manner).expect("a result") {
            wrong.push((graphs.seed, blamed(core, &reference, &graphs, manner)));
        }
        done += count as u64;
        if done % 10_000 == 0 {
            eprintln!("{done} graphs, {} programs differ", wrong.len());
        }
    }
    assert!(wrong.is_empty(), "programs of these seeds differ: {wrong:?}");
}

#[test]
fn what_was_found_is_kept() {
    for kinds in [&[][..], &[Kind::Add, Kind::Fma], &Kind::ALL] {
        let floats = kinds.iter().fold(Floats::SOFTWARE, |floats, kind| floats.with(*kind));
        for quirks in [Quirks::default(), Quirks { cuts_loops: true, ..Quirks::default() }] {
            let manner = Manner { floats, quirks };
            assert_eq!(decode(&encode(manner)), Some(manner));
        }
    }
    assert_eq!(decode(&[1, 0]), None);
    assert_eq!(decode(&vec![2; Kind::ALL.len() + 4]), None);
}

/// The form for devices whose exchanges may leave a value alone for no reason is right on others, too.
#[test]
fn exchanges_that_may_fail_are_repeated() {
    let Some(backend) = backend() else { return };
    let text = "program exchanges { workgroup_size 32; buffer x: read u32[32]; buffer o: output u32[34];
        let l = local_id.x;
        for k in 0..64 { if atomic_compare_exchange(o[32], x[l] + 32 * k, l + 1 + 32 * k) == l + 32 * k { o[l] = o[l] + 1; } }
        atomic_compare_exchange(o[33], 0, 7);
    }";
    let mut manner = backend.core().manner(FloatMode::Exact);
    manner.quirks.weak_exchange = true;
    let program = Program::parse(text).expect("a program");
    let input: Vec<u8> = (0..32u32).flat_map(u32::to_le_bytes).collect();
    let given = run(backend.core(), program, &input, manner).expect("a result");
    let words: Vec<u32> =
        given.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    // Every exchange that was made is counted once.
    assert_eq!(words[32], words[..32].iter().sum::<u32>());
    assert_eq!(words[33], 7);
}
