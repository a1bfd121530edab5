//! A program that has passed validation, with its flat form.

use crate::binding::BindingPlan;
use crate::error::Result;
use crate::grid_sync::{self, Schedule};
use crate::registry::{Optimizer, optimizer};
use indexmap::IndexMap;
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};
use vyre_foundation::{Event, Expr, Literal, MemoryOrdering, Node, Program, ProgramHash, Stats, Type, Walk};
use vyre_lower::{Kernel, lower, raise};

/// What a backend compiles: a valid program and its [`Kernel`]. Emitters read the kernel, the reference reads
/// the program. That a unit exists is the proof that its program is valid.
///
/// The kernel is made when somebody first asks: a backend that finds the program in its cache never does.
#[derive(Clone)]
pub struct Unit(Arc<Parts>);

struct Parts {
    program: Program,
    /// What improves its kernel, if something is to.
    optimizer: Option<&'static Optimizer>,
    /// The program of the improved kernel.
    raised: OnceLock<Program>,
    /// The same program with an improved kernel.
    optimized: OnceLock<Unit>,
    needs: Needs,
    /// Statements and expressions.
    size: u64,
    bindings: BindingPlan,
    kernel: OnceLock<Kernel>,
    schedule: OnceLock<Result<Arc<Schedule>>>,
}

/// What a program uses that not every device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Floating-point values.
    pub floats: bool,
    /// Atomics on 64-bit elements.
    pub atomics64: bool,
    /// Atomics with other orderings than relaxed.
    pub orderings: bool,
    /// Grid barriers, also those of grid `uniform_load`s.
    pub grid_sync: bool,
    /// Traps.
    pub traps: bool,
}

/// Units that were made lately, the oldest first.
#[derive(Default)]
struct Remembered {
    units: IndexMap<ProgramHash, Unit>,
    /// How large their programs are.
    size: u64,
}

/// How many units are remembered.
const MOST_UNITS: usize = 256;
/// How many statements and expressions they may have together.
const MOST_SIZE: u64 = 1 << 20;

static REMEMBERED: LazyLock<RwLock<Remembered>> = LazyLock::new(RwLock::default);

impl Remembered {
    /// Keeps a unit, unless an equal one came first.
    fn keep(&mut self, unit: Unit) -> Unit {
        if let Some(first) = self.units.get(&unit.hash()) {
            return first.clone();
        }
        self.size += unit.0.size;
        self.units.insert(unit.hash(), unit.clone());
        while self.units.len() > MOST_UNITS || self.size > MOST_SIZE {
            let Some((_, oldest)) = self.units.shift_remove_index(0) else { break };
            self.size -= oldest.0.size;
        }
        unit
    }
}

impl Unit {
    /// Validates a program.
    pub fn new(program: Program) -> Result<Unit> {
        program.validate()?;
        Ok(Unit::proven(program))
    }

    /// The unit of a kernel. The program that it stands for is valid because the kernel's was.
    pub(crate) fn of_kernel(kernel: &Kernel) -> Unit {
        Unit::proven(raise(kernel))
    }

    fn proven(program: Program) -> Unit {
        let stats = program.stats();
        let needs = Needs::of(&program, &stats);
        let size = stats.statements + stats.expressions;
        let bindings = BindingPlan::of(&program);
        Unit::with(program, None, needs, size, bindings)
    }

    fn with(
        program: Program,
        optimizer: Option<&'static Optimizer>,
        needs: Needs,
        size: u64,
        bindings: BindingPlan,
    ) -> Unit {
        let (raised, optimized) = (OnceLock::new(), OnceLock::new());
        let (kernel, schedule) = (OnceLock::new(), OnceLock::new());
        Unit(Arc::new(Parts {
            program,
            optimizer,
            raised,
            optimized,
            needs,
            size,
            bindings,
            kernel,
            schedule,
        }))
    }

    /// The same program, whose kernel the optimizer improves when somebody first asks for it. It is the unit itself
    /// where no optimizer is linked in.
    #[must_use]
    pub fn optimized(&self) -> Unit {
        match (self.0.optimizer, optimizer()) {
            (None, Some(optimizer)) => self
                .0
                .optimized
                .get_or_init(|| {
                    let Parts { program, needs, size, bindings, .. } = &*self.0;
                    Unit::with(program.clone(), Some(optimizer), *needs, *size, bindings.clone())
                })
                .clone(),
            _ => self.clone(),
        }
    }

    /// Whether an optimizer improves the kernel.
    pub fn is_optimized(&self) -> bool {
        self.0.optimizer.is_some()
    }

    /// The unit of a program, validated now unless an equal program was validated lately.
    pub fn of(program: &Program) -> Result<Unit> {
        let remembered = REMEMBERED.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = remembered.units.get(&program.content_hash()) {
            return Ok(known.clone());
        }
        drop(remembered);
        let _span = tracing::debug_span!("validate", program = %program.name()).entered();
        let unit = Unit::new(program.clone())?;
        Ok(REMEMBERED.write().unwrap_or_else(PoisonError::into_inner).keep(unit))
    }

    /// The program, as it was given: its buffers and sizes are those of the kernel.
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// A program that does what the kernel does: the one that was given, or the improved one.
    pub fn code(&self) -> &Program {
        match self.0.optimizer {
            None => self.program(),
            Some(_) => self.0.raised.get_or_init(|| raise(self.kernel())),
        }
    }

    /// What it uses that not every device has.
    pub fn needs(&self) -> Needs {
        self.0.needs
    }

    /// The memory that it needs.
    pub fn bindings(&self) -> &BindingPlan {
        &self.0.bindings
    }

    /// Its flat form.
    pub fn kernel(&self) -> &Kernel {
        self.0.kernel.get_or_init(|| {
            let _span = tracing::debug_span!("lower", program = %self.program().name()).entered();
            let kernel = lower(self.program());
            match self.0.optimizer {
                None => kernel,
                Some(optimizer) => {
                    let _span = tracing::debug_span!("optimize", rows = kernel.values.len()).entered();
                    (optimizer.optimize)(&kernel)
                }
            }
        })
    }

    /// What the engine does for its grid barriers where the device cannot keep them inside one launch.
    pub fn schedule(&self) -> Result<Arc<Schedule>> {
        let schedule = self.0.schedule.get_or_init(|| {
            let _span = tracing::debug_span!("split", program = %self.program().name()).entered();
            grid_sync::plan(self).map(Arc::new)
        });
        schedule.clone()
    }

    /// The hash of the program, and of how its kernel is improved.
    pub fn hash(&self) -> ProgramHash {
        let hash = self.program().content_hash();
        self.0.optimizer.map_or(hash, |optimizer| hash.derived(optimizer.name))
    }
}

impl Needs {
    fn of(program: &Program, stats: &Stats) -> Needs {
        let floats = program.buffers().iter().any(|buffer| buffer.element().value_type() == Type::F32);
        let grid_sync = stats.grid_barriers > 0;
        let mut needs = Needs { floats, grid_sync, ..Needs::default() };
        let mut look = |expr: &Expr| match expr {
            Expr::Atomic { buffer, ordering, .. } => {
                let element = program.buffer(buffer).map(|buffer| buffer.element());
                needs.atomics64 |= element.is_some_and(|element| element.size() == 8);
                needs.orderings |= *ordering != MemoryOrdering::Relaxed;
            }
            Expr::Cast { to: Type::F32, .. }
            | Expr::Bitcast { to: Type::F32, .. }
            | Expr::Literal(Literal::F32(_)) => needs.floats = true,
            _ => {}
        };
        for function in program.functions() {
            function.exprs().for_each(|expr| expr.visit(&mut look));
        }
        let mut traps = false;
        for event in Walk::new(program.entry()) {
            if let Event::Node(node) = event {
                traps |= matches!(node, Node::Trap { .. });
                node.for_each_expr(&mut |expr| expr.visit(&mut look));
            }
        }
        Needs { traps, ..needs }
    }
}
