//! Less around the body: fewer buffers and functions, a smaller grid, shorter and plainer inputs.

use super::Reducer;
use crate::Case;
use vyre_foundation::{BufferDecl, Name, Program};

impl Reducer<'_> {
    /// Drops buffers and functions that the program does not need to fail.
    pub(super) fn drop_declarations(&mut self) {
        for i in (0..self.best.program.functions().len()).rev() {
            let mut functions = self.best.program.functions().to_vec();
            functions.remove(i);
            let variant = self.best.program.clone().with_functions(functions);
            self.attempt_program(variant);
        }
        for i in (0..self.best.program.buffers().len()).rev() {
            self.attempt(without_buffer(&self.best, i));
        }
    }

    /// Fewer invocations, fewer passes.
    pub(super) fn shrink_dispatch(&mut self) {
        if let Some(passes) = self.best.fixpoint {
            for fixpoint in [None, Some(1), Some(passes / 2)] {
                if fixpoint != Some(0) && self.attempt(Case { fixpoint, ..self.best.clone() }) {
                    break;
                }
            }
        }
        let subgroup = self.best.program.subgroup_size();
        for size in [Program::DEFAULT_SUBGROUP_SIZE, 1] {
            if subgroup != size && subgroup != Program::DEFAULT_SUBGROUP_SIZE {
                self.attempt_program(self.best.program.clone().with_subgroup_size(size));
            }
        }
        self.shrink_grid();
        self.shrink_workgroup();
    }

    fn shrink_grid(&mut self) {
        for axis in (0..3).rev() {
            while let Some(counts) = self.best.grid
                && counts[axis] > 1
            {
                let smaller = [1, counts[axis] / 2, counts[axis] - 1].into_iter().any(|count| {
                    let mut counts = counts;
                    counts[axis] = count;
                    self.attempt(Case { grid: Some(counts), ..self.best.clone() })
                });
                if !smaller {
                    break;
                }
            }
        }
    }

    fn shrink_workgroup(&mut self) {
        let named = self.best.program.workgroup_size();
        if named.axes() > 1 {
            self.attempt_program(self.best.program.clone().with_workgroup_size(named.size()[0]));
        }
        for axis in (0..3).rev() {
            loop {
                let named = self.best.program.workgroup_size();
                let now = named.size()[axis];
                let smaller = now > 1
                    && [1, now / 2, now - 1].into_iter().any(|count| {
                        let mut size = named.size();
                        size[axis] = count;
                        let program = self.best.program.clone();
                        self.attempt_program(match named.axes() {
                            1 => program.with_workgroup_size(size[0]),
                            2 => program.with_workgroup_size([size[0], size[1]]),
                            _ => program.with_workgroup_size(size),
                        })
                    });
                if !smaller {
                    break;
                }
            }
        }
    }

    /// Shorter buffers, and zeros instead of what they hold.
    pub(super) fn shrink_inputs(&mut self) {
        for i in 0..self.best.program.buffers().len() {
            while let Some(count) = count(&self.best, i).filter(|count| *count > 0) {
                let shorter = [0, count / 2, count - 1].into_iter();
                let mut shorter = shorter.filter(|n| *n < count);
                if !shorter.any(|n| self.attempt(with_count(&self.best, i, n))) {
                    break;
                }
            }
        }
        for i in 0..self.best.inputs.len() {
            self.zero_input(i);
        }
    }

    /// Zeros runs of bytes, long runs first.
    fn zero_input(&mut self, input: usize) {
        let mut run = self.best.inputs[input].len();
        while run > 0 {
            for start in (0..self.best.inputs[input].len()).step_by(run) {
                let mut variant = self.best.clone();
                let bytes = &mut variant.inputs[input];
                let end = (start + run).min(bytes.len());
                if bytes[start..end].iter().any(|byte| *byte != 0) {
                    bytes[start..end].fill(0);
                    self.attempt(variant);
                }
            }
            run /= 2;
        }
    }
}

/// The position of a buffer among the inputs.
fn input_number(program: &Program, buffer: usize) -> Option<usize> {
    let inputs = program.buffers()[..buffer].iter().filter(|b| b.consumes_input()).count();
    program.buffers()[buffer].consumes_input().then_some(inputs)
}

fn without_buffer(case: &Case, buffer: usize) -> Case {
    let mut smaller = case.clone();
    if let Some(input) = input_number(&case.program, buffer) {
        smaller.inputs.remove(input);
    }
    let mut buffers = case.program.buffers().to_vec();
    let gone = buffers.remove(buffer);
    smaller.lengths.retain(|(name, _)| name != gone.name());
    smaller.program = case.program.clone().with_rewritten_buffers(buffers);
    smaller
}

/// The element count of a buffer of the case.
fn count(case: &Case, buffer: usize) -> Option<u32> {
    let decl = &case.program.buffers()[buffer];
    if let Some(input) = input_number(&case.program, buffer) {
        return Some((case.inputs[input].len() / decl.element().size()) as u32);
    }
    let given = |name: &Name| case.lengths.iter().find(|(n, _)| n == name).map(|(_, count)| *count);
    decl.count().or_else(|| given(decl.name()))
}

fn with_count(case: &Case, buffer: usize, count: u32) -> Case {
    let mut smaller = case.clone();
    let mut buffers: Vec<BufferDecl> = case.program.buffers().to_vec();
    let decl = &mut buffers[buffer];
    if decl.count().is_some() {
        *decl = decl.clone().with_count(count);
    }
    for (name, length) in &mut smaller.lengths {
        if name == decl.name() {
            *length = count;
        }
    }
    if let Some(input) = input_number(&case.program, buffer) {
        smaller.inputs[input].truncate(count as usize * decl.element().size());
    }
    smaller.program = case.program.clone().with_rewritten_buffers(buffers);
    smaller
}
