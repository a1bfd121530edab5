//! A schedule for people: as text, and as a graph in the language of Graphviz.

use super::formula::Formula;
use super::schedule::{Binding, Extent, Given, Hidden, Node, Purpose, Schedule, Segment, Storage};
use std::fmt::{self, Write};
use vyre_foundation::Program;
use vyre_lower::{Id, Value, ValueId};

/// What a segment moves to and from hidden storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Bytes of each invocation.
    pub per_invocation: u64,
    /// Bytes of each workgroup.
    pub per_workgroup: u64,
    /// Bytes once.
    pub per_grid: u64,
}

impl Traffic {
    /// All bytes on a grid of so many workgroups and invocations.
    pub fn total(self, workgroups: u64, invocations: u64) -> u64 {
        let invocations = self.per_invocation.saturating_mul(invocations);
        let workgroups = self.per_workgroup.saturating_mul(workgroups);
        self.per_grid.saturating_add(invocations).saturating_add(workgroups)
    }

    fn add(&mut self, hidden: Hidden) {
        *match hidden.extent {
            Extent::Invocation => &mut self.per_invocation,
            Extent::Workgroup => &mut self.per_workgroup,
            Extent::Grid => &mut self.per_grid,
        } += hidden.bytes;
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.per_invocation, "per invocation"),
            (self.per_workgroup, "per workgroup"),
            (self.per_grid, "for the grid"),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(bytes, of)| format!("{bytes} bytes {of}"))
            .collect();
        if parts.is_empty() { f.write_str("nothing") } else { f.write_str(&parts.join(", ")) }
    }
}

impl Schedule {
    /// What a segment loads from hidden storage and what it stores there, by its number. What it may store it may also
    /// load, except values, which are loaded at its beginning or stored at its end.
    pub fn traffic(&self, segment: usize) -> [Traffic; 2] {
        let mut traffic = [Traffic::default(); 2];
        let Some(segment) = self.segments.get(segment) else { return traffic };
        for binding in &segment.bindings {
            let Storage::Hidden(number) = binding.storage else { continue };
            let Some(hidden) = self.hidden.get(number as usize).copied() else { continue };
            // Traps are noted when they happen, which is rarely.
            if !matches!(hidden.purpose, Purpose::Trapped | Purpose::Traps) {
                let is_value = matches!(hidden.purpose, Purpose::Values | Purpose::Found);
                if !binding.is_stored || !is_value {
                    traffic[0].add(hidden);
                }
                if binding.is_stored {
                    traffic[1].add(hidden);
                }
            }
        }
        traffic
    }

    /// The name of a storage, for people.
    pub fn storage_name(&self, storage: Storage) -> String {
        match storage {
            Storage::Buffer(number) => match self.program.buffers().get(number as usize) {
                Some(buffer) => buffer.name().to_string(),
                None => format!("buffer {number}"),
            },
            Storage::Hidden(number) => format!("{}{number}", self.prefix),
        }
    }

    /// The graph of the schedule, in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        let mut dot = Dot { schedule: self, text: String::new(), nodes: 0 };
        let _ = writeln!(dot.text, "digraph \"{}\" {{", self.program.name());
        dot.text += "  rankdir=TB; node [shape=box, fontname=\"monospace\", fontsize=10];\n";
        let start = dot.node("start", "ellipse");
        let last = dot.block(0, start, "");
        let end = dot.node("end", "ellipse");
        dot.edge(last, end, "");
        dot.text += "}\n";
        dot.text
    }

    fn write_block(&self, f: &mut fmt::Formatter<'_>, block: usize, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        for node in &self.blocks[block] {
            writeln!(f, "{pad}{}", self.headline(node))?;
            let inner: &[(&str, usize)] = match node {
                Node::While { body, .. } => &[("", *body)],
                Node::Branch { then, otherwise, .. } => &[("", *then), ("otherwise", *otherwise)],
                _ => &[],
            };
            for (title, inner) in inner {
                if !title.is_empty() && !self.blocks[*inner].is_empty() {
                    writeln!(f, "{pad}{title}")?;
                }
                stacker::maybe_grow(64 << 10, 1 << 20, || self.write_block(f, *inner, depth + 1))?;
            }
            if let Node::While { again, .. } = node {
                writeln!(f, "{pad}again while {}", self.formula(again))?;
            }
        }
        Ok(())
    }

    fn headline(&self, node: &Node) -> String {
        match node {
            Node::Launch(segment) => {
                let by = if self.segments[*segment].is_once { " by one invocation" } else { "" };
                format!("launch {}{by}", segment + 1)
            }
            Node::Barrier => "barrier".to_owned(),
            Node::Let { row, from: Given::Word(word) } => format!("let {row:?} = found[{word}]"),
            Node::Let { row, from: Given::Element { buffer, index } } => {
                let name = self.storage_name(Storage::Buffer(*buffer));
                format!("let {row:?} = {name}[{}]", self.formula(index))
            }
            Node::While { guard, .. } => format!("if {} repeat", self.formula(guard)),
            Node::Branch { cond, .. } => format!("if {}", self.formula(cond)),
        }
    }

    fn formula(&self, formula: &Formula) -> String {
        let mut text = String::new();
        write_row(&mut text, formula, formula.root, &self.program, 0);
        text
    }

    fn write_segment(&self, f: &mut fmt::Formatter<'_>, number: usize, segment: &Segment) -> fmt::Result {
        let who = if segment.is_once { "by one invocation" } else { "by the whole grid" };
        let origin = segment.origin.as_ref().map(|origin| format!(", from {origin}")).unwrap_or_default();
        writeln!(f, "segment {} of {}, {who}{origin}", number + 1, self.segments.len())?;
        let names = |which: fn(&Binding) -> bool| -> String {
            let names = segment.bindings.iter().filter(|binding| which(binding));
            let names: Vec<String> = names.map(|binding| self.storage_name(binding.storage)).collect();
            if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
        };
        writeln!(f, "  reads   {}", names(|binding| binding.is_touched && !binding.is_stored))?;
        writeln!(f, "  writes  {}", names(|binding| binding.is_stored))?;
        let [recalled, kept] = self.traffic(number);
        writeln!(f, "  hidden  reads {recalled}, writes {kept}")
    }
}

/// The most nested operators of a formula that are written out.
const DEPTH: u32 = 6;

fn write_row(text: &mut String, formula: &Formula, row: ValueId, program: &Program, depth: u32) {
    let value = formula.steps.iter().find(|(other, _)| *other == row).map(|(_, value)| *value);
    let name = |buffer: u32| program.buffers().get(buffer as usize).map_or("?", |buffer| buffer.name());
    let operands = |text: &mut String, rows: &[ValueId], between: &str| {
        for (i, operand) in rows.iter().enumerate() {
            text.push_str(if i > 0 { between } else { "" });
            write_row(text, formula, *operand, program, depth + 1);
        }
    };
    let _ = match value {
        _ if depth > DEPTH => write!(text, "…"),
        Some(Value::Const(literal)) => write!(text, "{literal}"),
        Some(Value::Id(Id::NumWorkgroups, axis)) => write!(text, "num_workgroups.{}", axis.name()),
        Some(Value::Len(buffer)) => write!(text, "len({})", name(buffer)),
        Some(Value::Load { buffer, index, .. }) => {
            let _ = write!(text, "{}[", name(buffer));
            operands(text, &[index], "");
            write!(text, "]")
        }
        Some(Value::Binary { op, a, b, .. }) if !op.spelling().starts_with(char::is_alphabetic) => {
            text.push('(');
            operands(text, &[a, b], &format!(" {} ", op.spelling()));
            write!(text, ")")
        }
        Some(Value::Unary { op, a, .. }) if !op.spelling().starts_with(char::is_alphabetic) => {
            text.push_str(op.spelling());
            operands(text, &[a], "");
            Ok(())
        }
        Some(value) if value.operands().next().is_some() => {
            let function = match value {
                Value::Binary { op, .. } => op.spelling(),
                Value::Unary { op, .. } => op.spelling(),
                Value::Select { .. } => "select",
                Value::Cast { to, .. } | Value::Bitcast { to, .. } => to.name(),
                _ => "fma",
            };
            let _ = write!(text, "{function}(");
            operands(text, &value.operands().collect::<Vec<_>>(), ", ");
            write!(text, ")")
        }
        _ => write!(text, "{row:?}"),
    };
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schedule of {}", self.program.name())?;
        self.write_block(f, 0, 1)?;
        for (number, segment) in self.segments.iter().enumerate() {
            writeln!(f)?;
            self.write_segment(f, number, segment)?;
        }
        if self.hidden.is_empty() {
            return writeln!(f, "\nno hidden storage");
        }
        writeln!(f, "\nhidden storage")?;
        for (number, hidden) in (0..).zip(&self.hidden) {
            let name = self.storage_name(Storage::Hidden(number));
            let extent = match hidden.extent {
                Extent::Invocation => "per invocation",
                Extent::Workgroup => "per workgroup",
                Extent::Grid => "for the grid",
            };
            let purpose = match hidden.purpose {
                Purpose::Values => "values held across barriers".to_owned(),
                Purpose::Buffer(buffer) => format!("`{}`", self.storage_name(Storage::Buffer(buffer))),
                Purpose::Uniforms => "values that the grid shares".to_owned(),
                Purpose::Found => "such values as launches find them".to_owned(),
                Purpose::Trapped => "whether an invocation has trapped".to_owned(),
                Purpose::Traps => "which invocations have".to_owned(),
            };
            writeln!(f, "  {name:<9} {:>6} bytes {extent:<14} {purpose}", hidden.bytes)?;
        }
        Ok(())
    }
}

struct Dot<'s> {
    schedule: &'s Schedule,
    text: String,
    nodes: usize,
}

impl Dot<'_> {
    fn node(&mut self, label: &str, shape: &str) -> usize {
        let id = self.nodes;
        self.nodes += 1;
        let label = label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\l");
        let _ = writeln!(self.text, "  n{id} [label=\"{label}\", shape={shape}];");
        id
    }

    fn edge(&mut self, from: usize, to: usize, label: &str) {
        let label = if label.is_empty() { String::new() } else { format!(" [label=\"{label}\"]") };
        let _ = writeln!(self.text, "  n{from} -> n{to}{label};");
    }

    /// Draws a block behind a node. Gives the last node.
    fn block(&mut self, block: usize, after: usize, label: &str) -> usize {
        let schedule = self.schedule;
        let (mut last, mut label) = (after, label);
        for node in &schedule.blocks[block] {
            let mut title = schedule.headline(node);
            let shape = match node {
                Node::Launch(number) => {
                    for binding in &schedule.segments[*number].bindings {
                        let way = if binding.is_stored { "writes" } else { "reads" };
                        let _ = write!(title, "\n{way} {}", schedule.storage_name(binding.storage));
                    }
                    title.push('\n');
                    "box"
                }
                Node::Barrier => "hexagon",
                Node::Let { .. } => "note",
                Node::While { .. } | Node::Branch { .. } => "diamond",
            };
            let id = self.node(&title, shape);
            self.edge(last, id, label);
            label = "";
            last = id;
            match node {
                Node::While { body, again, .. } => {
                    let end = self.inner(*body, id, "yes");
                    let again = format!("while {}", schedule.formula(again));
                    self.edge(end, id, &again.replace('"', "'"));
                    label = "no";
                }
                Node::Branch { then, otherwise, .. } => {
                    let ends = [(*then, "yes"), (*otherwise, "no")];
                    let ends = ends.map(|(block, label)| self.inner(block, id, label));
                    last = self.node("", "point");
                    ends.into_iter().for_each(|end| self.edge(end, last, ""));
                }
                _ => {}
            }
        }
        last
    }

    fn inner(&mut self, block: usize, after: usize, label: &str) -> usize {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.block(block, after, label))
    }
}
