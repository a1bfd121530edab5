//! Fills, writes, copies, comparisons and reads of any range, with and without predicates: byte for byte what the
//! reference does, and counted alike.

mod common;

use common::{Numbers, start, words};
use std::borrow::Cow;
use vyre_driver::{
    Action, BackendExt, Batch, Deadline, Memory, Predicate, RawHandle, ReferenceBackend, Span, Step,
    Temporary, VyreBackend,
};

/// Memory of a batch that two backends run.
#[derive(Clone, Copy)]
enum Which {
    Temporary(usize),
    Resident(usize),
}

/// A range, whoever's memory it is.
#[derive(Clone, Copy)]
struct Place {
    which: Which,
    offset: u64,
    bytes: u64,
}

/// A step, whoever runs it.
enum Move {
    Fill(Place, u8),
    Write(Place, Vec<u8>),
    Copy(Place, Place),
    Compare(Place, Place, Place),
    Read(Place),
}

struct Script {
    temporaries: Vec<Temporary<'static>>,
    residents: Vec<u64>,
    steps: Vec<(Move, Option<(Place, bool)>)>,
}

const SIZES: [u64; 7] = [4, 8, 13, 64, 301, 4097, 40_000];

impl Script {
    fn random(numbers: &mut Numbers) -> Script {
        let mut script = Script { temporaries: vec![], residents: vec![], steps: vec![] };
        for _ in 0..numbers.below(4) + 2 {
            let size = SIZES[numbers.below(SIZES.len() as u64) as usize];
            // Few different bytes: comparisons then find equal ranges too.
            let bytes: Vec<u8> = (0..size).map(|_| u8::from(numbers.chance(3))).collect();
            script.temporaries.push(match numbers.below(3) {
                0 => Temporary::Zeroed { bytes: size },
                1 => Temporary::Borrowed(Cow::Owned(bytes)),
                _ => Temporary::Initial(Cow::Owned(bytes)),
            });
        }
        for _ in 0..2 {
            script.temporaries.push(Temporary::Zeroed { bytes: 4 * (1 + numbers.below(8)) });
            script.residents.push(SIZES[numbers.below(SIZES.len() as u64) as usize]);
        }
        let most = if numbers.chance(5) { 400 } else { 40 };
        for _ in 0..numbers.below(most) + 1 {
            let step = script.step(numbers);
            let when = numbers.chance(50).then(|| (script.word(numbers, false), numbers.chance(50)));
            script.steps.push((step, when));
        }
        for which in script.all() {
            let bytes = script.size(which);
            script.steps.push((Move::Read(Place { which, offset: 0, bytes }), None));
        }
        script
    }

    fn all(&self) -> Vec<Which> {
        let temporaries = (0..self.temporaries.len()).map(Which::Temporary);
        temporaries.chain((0..self.residents.len()).map(Which::Resident)).collect()
    }

    fn size(&self, which: Which) -> u64 {
        match which {
            Which::Temporary(number) => self.temporaries[number].bytes(),
            Which::Resident(number) => self.residents[number],
        }
    }

    fn memory(&self, numbers: &mut Numbers, is_written: bool) -> Which {
        let all = self.all();
        loop {
            let which = all[numbers.below(all.len() as u64) as usize];
            let is_borrowed =
                matches!(which, Which::Temporary(i) if matches!(self.temporaries[i], Temporary::Borrowed(_)));
            if !(is_written && is_borrowed) {
                return which;
            }
        }
    }

    fn place(&self, numbers: &mut Numbers, is_written: bool, most: u64) -> Place {
        let which = self.memory(numbers, is_written);
        let size = self.size(which);
        let unit = if numbers.chance(50) { 4 } else { 1 };
        let offset = numbers.below(size + 1) / unit * unit;
        let left = (size - offset).min(most);
        let bytes = if numbers.chance(30) { left } else { numbers.below(left + 1) / unit * unit };
        Place { which, offset, bytes }
    }

    fn word(&self, numbers: &mut Numbers, is_written: bool) -> Place {
        let which = self.memory(numbers, is_written);
        let unit = if numbers.chance(70) { 4 } else { 1 };
        let offset = numbers.below(self.size(which) - 3) / unit * unit;
        Place { which, offset, bytes: 4 }
    }

    fn step(&self, numbers: &mut Numbers) -> Move {
        loop {
            let made = match numbers.below(6) {
                0 => Move::Fill(self.place(numbers, true, u64::MAX), numbers.below(3) as u8),
                1 => Move::Fill(self.word(numbers, true), numbers.below(3) as u8),
                2 => {
                    let place = self.place(numbers, true, u64::MAX);
                    Move::Write(place, (0..place.bytes).map(|_| numbers.below(2) as u8).collect())
                }
                3 => {
                    let to = self.place(numbers, true, u64::MAX);
                    let from = self.place(numbers, false, to.bytes);
                    Move::Copy(from, Place { bytes: from.bytes, ..to })
                }
                4 => {
                    let a = self.place(numbers, false, u64::MAX);
                    let b = self.place(numbers, false, a.bytes);
                    Move::Compare(Place { bytes: b.bytes, ..a }, b, self.word(numbers, true))
                }
                _ => Move::Read(self.place(numbers, false, u64::MAX)),
            };
            if self.is_legal(&made) {
                return made;
            }
        }
    }

    fn is_legal(&self, step: &Move) -> bool {
        let key = |place: &Place| match place.which {
            Which::Temporary(number) => (0, number),
            Which::Resident(number) => (1, number),
        };
        let apart = |a: &Place, b: &Place| {
            key(a) != key(b) || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset
        };
        match step {
            Move::Copy(from, to) => apart(from, to),
            Move::Compare(a, b, differs) => apart(a, differs) && apart(b, differs),
            _ => true,
        }
    }

    fn batch(&self, residents: &[RawHandle]) -> Batch<'static> {
        let span = |place: &Place| Span {
            memory: match place.which {
                Which::Temporary(number) => Memory::Temporary(number),
                Which::Resident(number) => Memory::Resident(residents[number]),
            },
            offset: place.offset,
            bytes: place.bytes,
        };
        let steps = self.steps.iter().map(|(step, when)| {
            let action = match step {
                Move::Fill(target, byte) => Action::Fill { target: span(target), byte: *byte },
                Move::Write(target, bytes) => {
                    Action::Write { target: span(target), bytes: Cow::Owned(bytes.clone()) }
                }
                Move::Copy(from, to) => Action::Copy { from: span(from), to: span(to) },
                Move::Compare(a, b, differs) => {
                    Action::Compare { a: span(a), b: span(b), differs: span(differs) }
                }
                Move::Read(from) => Action::Read { from: span(from) },
            };
            let when = when.as_ref().map(|(word, holds)| Predicate { word: span(word), holds: *holds });
            Step { action, when }
        });
        Batch { temporaries: self.temporaries.clone(), steps: steps.collect(), ..Batch::default() }
    }

    /// What it gives on a backend, and how much travelled.
    fn run(&self, backend: &dyn VyreBackend) -> (Vec<Option<Vec<u8>>>, u64) {
        let residents: Vec<RawHandle> =
            self.residents.iter().map(|bytes| backend.allocate(*bytes).expect("memory")).collect();
        let before = backend.snapshot_dispatch_telemetry();
        let outcome = backend.run(self.batch(&residents), Deadline::NEVER).expect("a result");
        let now = backend.snapshot_dispatch_telemetry();
        residents.into_iter().for_each(|handle| backend.free(handle).expect("memory that is there"));
        (outcome.reads, now.bytes_downloaded - before.bytes_downloaded)
    }
}

/// `VYRE_CASES=20000 cargo test --release -p vyre-driver-wgpu --test transfers` is the long run.
#[test]
fn any_ranges_move_as_in_the_reference() {
    let Some(backend) = start() else { return };
    let reference = ReferenceBackend::new();
    let cases = std::env::var("VYRE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    for seed in 0..cases {
        let script = Script::random(&mut Numbers(seed));
        let (expected, expected_bytes) = script.run(&reference);
        let (found, bytes) = script.run(&*backend);
        for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!(found == expected, "seed {seed}: read {number} differs");
        }
        assert_eq!((found.len(), bytes), (expected.len(), expected_bytes), "seed {seed}");
    }
}

#[test]
fn uploads_are_counted_where_they_happen() {
    let Some(backend) = start() else { return };
    let mut batch = Batch::default();
    let flag = batch.temporary(Temporary::Initial(words(&[1]).into()));
    let target = batch.temporary(Temporary::Zeroed { bytes: 400 });
    for (holds, byte) in [(false, 7), (true, 9)] {
        let action = Action::Write { target, bytes: vec![byte; 400].into() };
        batch.steps.push(Step { action, when: Some(Predicate { word: flag, holds }) });
    }
    batch.push(Action::Read { from: target });
    let outcome = backend.run(batch, Deadline::NEVER).expect("a result");
    assert_eq!(outcome.reads, [Some(vec![9; 400])]);
    assert_eq!(backend.snapshot_dispatch_telemetry().bytes_uploaded, 4 + 400);
}

#[test]
fn long_reads_at_the_end_travel_only_if_they_are_wanted() {
    let Some(backend) = start() else { return };
    let mut batch = Batch::default();
    let flag = batch.temporary(Temporary::Zeroed { bytes: 4 });
    let data = batch.temporary(Temporary::Initial(vec![3; 300_001].into()));
    let wanted = |holds| Some(Predicate { word: flag, holds });
    let odd = Span { offset: 3, bytes: 200_001, ..data };
    batch.steps.push(Step { action: Action::Read { from: odd }, when: wanted(true) });
    batch.steps.push(Step { action: Action::Read { from: odd }, when: wanted(false) });
    batch.push(Action::Read { from: flag });
    let outcome = backend.run(batch, Deadline::NEVER).expect("a result");
    assert_eq!(outcome.reads, [None, Some(vec![3; 200_001]), Some(vec![0; 4])]);
    assert_eq!(backend.snapshot_dispatch_telemetry().bytes_downloaded, 200_001 + 4);
}
