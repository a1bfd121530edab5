//! A program with inputs and what it must give.

use std::sync::{Arc, OnceLock};
use vyre_driver::{BackendExt, DispatchConfig, Route, VyreBackend};
use vyre_driver_cpu as _;
use vyre_foundation::Program;
use vyre_foundation::rng::SplitMix64;
use vyre_primitives::{Lanes, Word};
use vyre_reference::{Options, Schedule};

/// A word as bytes.
pub(crate) trait Plain: Word {
    fn bytes(self) -> Vec<u8>;
    fn of(bits: u64) -> Self;
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($ty:ty)*) => {$(
        impl Plain for $ty {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
            fn of(bits: u64) -> $ty {
                bits as $ty
            }
            fn read(bytes: &[u8]) -> $ty {
                <$ty>::from_le_bytes(bytes.try_into().unwrap())
            }
        }
    )*};
}

plain!(u32 i32 u64 i64);

pub(crate) fn bytes<T: Plain>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| value.bytes()).collect()
}

pub(crate) fn words<T: Plain>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks(T::ELEMENT.size()).map(T::read).collect()
}

pub(crate) fn lanes(count: u32) -> Lanes {
    Lanes::new(count).unwrap()
}

/// So many random words.
pub(crate) fn random<T: Plain>(rng: &mut SplitMix64, count: usize) -> Vec<T> {
    (0..count).map(|_| T::of(rng.next_u64())).collect()
}

fn cpu() -> &'static Arc<dyn VyreBackend> {
    static CPU: OnceLock<Arc<dyn VyreBackend>> = OnceLock::new();
    CPU.get_or_init(|| vyre_driver::acquire("cpu").unwrap())
}

pub(crate) const GRIDS: [[u32; 3]; 4] = [[1, 1, 1], [2, 1, 1], [3, 1, 1], [7, 1, 1]];

/// A program with inputs and what it must give.
#[derive(Clone)]
pub(crate) struct Case<'p> {
    program: &'p Program,
    inputs: Vec<Vec<u8>>,
    lengths: Vec<(&'static str, u32)>,
    expected: Vec<Vec<u8>>,
}

impl<'p> Case<'p> {
    pub(crate) fn new(program: &'p Program) -> Case<'p> {
        let text = program.to_string();
        assert_eq!(Program::parse(&text).as_ref(), Ok(program), "{text}");
        // No warnings, of races for instance.
        assert_eq!(program.check().iter().count(), 0, "{}", program.check());
        Case { program, inputs: Vec::new(), lengths: Vec::new(), expected: Vec::new() }
    }

    pub(crate) fn input<T: Plain>(mut self, values: &[T]) -> Case<'p> {
        self.inputs.push(bytes(values));
        self
    }

    pub(crate) fn len(mut self, buffer: &'static str, count: usize) -> Case<'p> {
        self.lengths.push((buffer, count as u32));
        self
    }

    pub(crate) fn expect<T: Plain>(mut self, values: &[T]) -> Case<'p> {
        self.expected.push(bytes(values));
        self
    }

    fn slices(&self) -> Vec<&[u8]> {
        self.inputs.iter().map(Vec::as_slice).collect()
    }

    /// What the CPU backend gives.
    pub(crate) fn cpu_outputs(
        &self,
        grid: [u32; 3],
        threads: usize,
        route: Route,
    ) -> Result<Vec<Vec<u8>>, String> {
        let config = DispatchConfig::new().grid(grid).threads(threads).route(route);
        let config =
            self.lengths.iter().fold(config, |config, (name, count)| config.output_len(*name, *count));
        let output = cpu().dispatch_borrowed(self.program, &self.slices(), &config);
        output.map(|output| output.outputs).map_err(|error| error.to_string())
    }

    /// What the reference gives.
    pub(crate) fn reference_outputs(
        &self,
        grid: [u32; 3],
        schedule: Schedule,
    ) -> Result<Vec<Vec<u8>>, String> {
        let lengths = self.lengths.iter().map(|(name, count)| ((*name).into(), *count)).collect();
        let options = Options { grid: Some(grid), lengths, schedule, ..Options::default() };
        let outcome = vyre_reference::run(self.program, &self.slices(), &options);
        outcome.map(|outcome| outcome.outputs).map_err(|error| error.to_string())
    }

    fn compare(&self, found: &[Vec<u8>], how: &dyn std::fmt::Debug) {
        assert_eq!(found.len(), self.expected.len(), "{}", self.program);
        for (output, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            let differs = found.chunks(4).zip(expected.chunks(4)).position(|(a, b)| a != b);
            assert!(
                found == expected,
                "`{}`, {how:?}, output {output}: {} bytes, not {}, word {differs:?} differs",
                self.program.name(),
                found.len(),
                expected.len(),
            );
        }
    }

    /// On this grid of the CPU backend, with one thread and with two.
    pub(crate) fn cpu_on(&self, grid: [u32; 3]) -> &Self {
        for threads in [1, 2] {
            self.compare(&self.cpu_outputs(grid, threads, Route::Auto).unwrap(), &(grid, threads));
        }
        self
    }

    /// On the CPU backend.
    pub(crate) fn cpu(&self) -> &Self {
        GRIDS.into_iter().for_each(|grid| _ = self.cpu_on(grid));
        self
    }

    /// On the CPU backend, segment by segment.
    pub(crate) fn split(&self) -> &Self {
        for route in [Route::Resident, Route::Host] {
            self.compare(&self.cpu_outputs([3, 1, 1], 2, route).unwrap(), &route);
        }
        self
    }

    /// On this grid of the reference, under this schedule.
    pub(crate) fn reference_on(&self, grid: [u32; 3], schedule: Schedule) -> &Self {
        self.compare(&self.reference_outputs(grid, schedule).unwrap(), &(grid, schedule));
        self
    }

    /// On the reference.
    pub(crate) fn reference(&self) -> &Self {
        self.reference_on([1, 1, 1], Schedule::InOrder);
        self.reference_on([2, 1, 1], Schedule::RoundRobin);
        self.reference_on([3, 1, 1], Schedule::Random(7));
        self.reference_on([7, 1, 1], Schedule::Reversed)
    }
}
