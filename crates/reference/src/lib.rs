//! The reference interpreter: what a vyre program means.
//!
//! Every backend gives, byte for byte, what [`run`] gives. It interprets the [`Program`] tree as a person
//! reads it: one instruction per expression, in evaluation order, nothing merged or moved. Invocations are
//! truly concurrent: a [`Schedule`] interleaves them at every access to shared memory, so that a program whose
//! result depends on the order shows it.
//!
//! ```
//! use vyre_foundation::Program;
//! use vyre_reference::{run, Options};
//!
//! let program = Program::parse("program double { buffer a: read_write u32[]; a[global_id.x] = a[global_id.x] * 2; }").unwrap();
//! let outcome = run(&program, &[&[1, 0, 0, 0, 2, 0, 0, 0]], &Options::default()).unwrap();
//! assert_eq!(outcome.outputs[0], [2, 0, 0, 0, 4, 0, 0, 0]);
//! ```

mod code;
mod compile;
mod machine;
mod memory;
mod schedule;

pub use schedule::Schedule;

use std::time::Instant;
use thiserror::Error as ThisError;
use vyre_foundation::grid::{self, Grid, GridError};
use vyre_foundation::{Diagnostics, InputError, Layout, Name, Program, float_env};

/// How a program is run. The default is right for a first run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The number of workgroups on each axis; by default what the returned buffers ask for.
    pub grid: Option<[u32; 3]>,
    /// The lengths of `output`, `write` and `scratch` buffers whose count is open.
    pub lengths: Vec<(Name, u32)>,
    /// At most this many passes, ending after the first one that changes nothing. `None` is one pass.
    pub fixpoint: Option<u32>,
    /// The order in which invocations advance.
    pub schedule: Schedule,
    /// When to give up.
    pub deadline: Option<Instant>,
}

/// What a run gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The returned buffers, in declaration order.
    pub outputs: Vec<Vec<u8>>,
    /// The grid that ran.
    pub grid: Grid,
    /// How many passes ran.
    pub passes: u32,
    /// How many operations all invocations of all passes executed.
    ///
    /// One operation is an operator, a cast, a `select` or another function of the language, a load, a store, an
    /// atomic or subgroup operation, a barrier, the decision of an `if`, and each round of a loop. A call of a
    /// function counts as what the function does. Literals, variables, ids, lengths, assignments, `return`, `break` and
    /// `continue` count nothing: they only say where a value is or where to go on. The schedule does not change the
    /// count where it does not change the result.
    pub operations: u64,
    /// Whether the last pass changed nothing; `None` without a fixpoint.
    pub converged: Option<bool>,
}

/// A `trap` that ended a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trap {
    /// What happened.
    pub tag: Name,
    /// The value given.
    pub value: u32,
    /// The linear index of the invocation.
    pub invocation: u64,
}

/// Why a run has no outcome.
#[derive(Clone, PartialEq, Debug, ThisError)]
pub enum Error {
    /// The program is not valid.
    #[error("the program is not valid: {0}")]
    Invalid(#[from] Diagnostics),
    /// The inputs or lengths do not fit it.
    #[error(transparent)]
    Input(#[from] InputError),
    /// There is no grid.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A fixpoint of no passes.
    #[error("a fixpoint of 0 passes runs nothing. help: ask for at least 1 pass")]
    NoPasses,
    /// There is not so much memory.
    #[error(
        "there is no memory for {what}: {bytes} bytes were asked for. help: use a smaller grid or shorter buffers"
    )]
    OutOfMemory {
        /// What it was for.
        what: String,
        /// How much was asked for.
        bytes: u64,
    },
    /// The deadline has passed.
    #[error("the program did not end in time. help: allow more time, or look for a loop that does not end")]
    Timeout,
    /// The program trapped.
    #[error("the program trapped: {:?} (value {}) in invocation {}. help: the program itself says so; see its `trap` statements", .0.tag, .0.value, .0.invocation)]
    Trap(Trap),
    /// The interpreter contradicts the validator: a defect of vyre.
    #[error("internal error: {0}. help: please report the program that shows it")]
    Internal(String),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Invalid(found) => found.iter().next().map_or("E001", |d| d.code()),
            Error::Input(error) => error.code(),
            Error::Grid(error) => error.code(),
            Error::NoPasses => "E002",
            Error::OutOfMemory { .. } => "E003",
            Error::Timeout => "E004",
            Error::Trap(_) => "E005",
            Error::Internal(_) => "E006",
        }
    }
}

/// Validates a program and runs it. Inputs are the bytes of the `read`, `uniform` and `read_write` buffers, in
/// declaration order.
pub fn run(program: &Program, inputs: &[&[u8]], options: &Options) -> Result<Outcome, Error> {
    let prepared = Prepared::new(program)?;
    let lengths: Vec<usize> = inputs.iter().map(|bytes| bytes.len()).collect();
    let layout = Layout::new(program, &lengths, &options.lengths)?;
    let grid = grid::resolve(program, &layout, options.grid)?;
    if options.fixpoint == Some(0) {
        return Err(Error::NoPasses);
    }
    let storage = memory::initial(program, &layout, inputs)?;
    let mut memory = memory::Memory::new(program, storage);
    let stop = || options.deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let limit = options.fixpoint.unwrap_or(1);
    let (mut passes, mut converged, mut operations) = (0, false, 0);
    while passes < limit && !converged {
        let before: Option<Vec<Vec<u8>>> =
            options.fixpoint.map(|_| memory.carried().map(<[u8]>::to_vec).collect());
        memory.start_pass();
        operations += prepared.pass(&mut memory, grid, options.schedule, &stop)?;
        passes += 1;
        converged = before.is_some_and(|before| memory.carried().eq(before.iter().map(Vec::as_slice)));
    }
    Ok(Outcome {
        outputs: memory.into_outputs(),
        grid,
        passes,
        operations,
        converged: options.fixpoint.map(|_| converged),
    })
}

/// A program made ready to be launched many times, over memory that the caller keeps.
///
/// ```
/// use vyre_foundation::{Layout, Program, grid};
/// use vyre_reference::{Prepared, Schedule};
///
/// let program = Program::parse("program count { buffer n: output u32[1]; n[0] = n[0] + 1; }").unwrap();
/// let layout = Layout::new(&program, &[], &[]).unwrap();
/// let grid = grid::resolve(&program, &layout, None).unwrap();
/// let prepared = Prepared::new(&program).unwrap();
/// let mut memory = vec![vec![5, 0, 0, 0]];
/// for _ in 0..3 {
///     prepared.launch(&mut memory, grid, Schedule::InOrder, &|| false).unwrap();
/// }
/// assert_eq!(memory, [[8, 0, 0, 0]]);
/// ```
pub struct Prepared {
    program: Program,
    code: code::Code,
}

impl Prepared {
    /// Validates a program.
    pub fn new(program: &Program) -> Result<Prepared, Error> {
        program.validate()?;
        Ok(Prepared { program: program.clone(), code: compile::compile(program) })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Runs the grid once. `memory` holds the bytes of each buffer that the grid shares, in declaration order,
    /// and nothing is zeroed first, whatever the buffer is. `stop` is asked every now and then; where it says
    /// yes the launch ends as [`Error::Timeout`]. After an error the contents are unspecified.
    pub fn launch(
        &self,
        memory: &mut Vec<Vec<u8>>,
        grid: Grid,
        schedule: Schedule,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        memory::check(&self.program, memory)?;
        let mut work = memory::Memory::new(&self.program, std::mem::take(memory));
        let result = self.pass(&mut work, grid, schedule, stop);
        *memory = work.into_storage();
        result.map(|_| ())
    }

    fn pass(
        &self,
        memory: &mut memory::Memory,
        grid: Grid,
        schedule: Schedule,
        stop: &dyn Fn() -> bool,
    ) -> Result<u64, Error> {
        let subgroup_size = self.program.subgroup_size();
        float_env::with_default(|| {
            schedule::Dispatch::run(&self.code, grid, subgroup_size, memory, schedule, stop)
        })
    }
}
