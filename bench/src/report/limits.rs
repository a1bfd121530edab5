//! How near vyre comes to what the machine can do: a table and a chart.
//!
//! Every kernel has to move some bytes and to do some operations, whoever runs it. The machine needs a time for each of
//! these; the longer one is the limit. The bars show what part of vyre's time they are. What is missing to the whole is
//! spent otherwise: on waiting for memory, on operations that do not go in vectors, on lanes that wait for others.

use super::svg::{line, text};
use crate::limits::Machine;
use crate::measure::Row;
use std::fmt::Write as _;
use std::time::Duration;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 100.0;
const BAR: f64 = 13.0;
const GAP: f64 = 12.0;

const MEMORY: &str = "#2563a8";
const ARITHMETIC: &str = "#c98a2b";

/// A kernel against its limits, in seconds.
pub(crate) struct Limit<'a> {
    row: &'a Row,
    time: Duration,
    memory: f64,
    arithmetic: f64,
}

impl Limit<'_> {
    fn share(&self, limit: f64) -> f64 {
        limit / self.time.as_secs_f64()
    }

    fn largest(&self) -> (&'static str, f64) {
        if self.memory >= self.arithmetic { ("memory", self.memory) } else { ("arithmetic", self.arithmetic) }
    }
}

/// The kernels of which it is known what they must do.
pub(crate) fn limits<'a>(rows: &'a [Row], machine: &Machine) -> Vec<Limit<'a>> {
    let of = |row: &'a Row| {
        let time = row.best("vyre", machine.threads)?;
        let (bytes, operations) = (row.work.bytes as f64, row.work.operations as f64);
        (bytes > 0.0).then(|| Limit {
            row,
            time,
            memory: bytes / machine.bandwidth(row.work.bytes),
            arithmetic: operations / machine.operations(),
        })
    };
    rows.iter().filter_map(of).collect()
}

/// Cells for a table.
pub(crate) fn lines(limits: &[Limit<'_>]) -> Vec<Vec<String>> {
    let head = ["kernel", "size", "vyre", "memory", "arithmetic", "bound by", "of its time"];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    let milliseconds = |seconds: f64| format!("{:.3}", seconds * 1e3);
    for limit in limits {
        let (what, largest) = limit.largest();
        lines.push(vec![
            limit.row.name.to_owned(),
            limit.row.size.clone(),
            milliseconds(limit.time.as_secs_f64()),
            milliseconds(limit.memory),
            milliseconds(limit.arithmetic),
            what.to_owned(),
            format!("{:.0} %", limit.share(largest) * 100.0),
        ]);
    }
    lines
}

/// What the machine was found to do.
pub(crate) fn about(machine: &Machine) -> String {
    format!(
        "{} threads, {:.1} GB/s from memory, {:.2} GHz, {:.0} G operations/s in vectors of 128 bits",
        machine.threads,
        machine.memory() / 1e9,
        machine.frequency / 1e9,
        machine.operations() / 1e9
    )
}

/// The chart.
pub(crate) fn chart(limits: &[Limit<'_>], machine: &Machine) -> String {
    let bottom = TOP + limits.len() as f64 * (2.0 * BAR + GAP);
    let height = bottom + 46.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let title = "What the machine needs at least, as part of the time that vyre takes";
    text(&mut svg, LEFT, 28.0, "start", "font-size=\"16\" font-weight=\"600\" fill=\"#1b1f24\"", title);
    text(&mut svg, LEFT, 46.0, "start", "fill=\"#59636e\"", &about(machine));
    for (number, (name, colour)) in
        [("to move the bytes", MEMORY), ("to do the arithmetic", ARITHMETIC)].iter().enumerate()
    {
        let x = LEFT + number as f64 * 150.0;
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"60\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        text(&mut svg, x + 18.0, 70.5, "start", "fill=\"#1b1f24\"", name);
    }
    for quarter in 0..=4 {
        let x = LEFT + f64::from(quarter) / 4.0 * (WIDTH - LEFT - RIGHT);
        line(&mut svg, x, TOP - 8.0, bottom - GAP / 2.0, "stroke=\"#e3e7eb\"");
        text(&mut svg, x, bottom + 12.0, "middle", "fill=\"#59636e\"", &format!("{} %", quarter * 25));
    }
    let mut y = TOP;
    for limit in limits {
        text(
            &mut svg,
            LEFT - 10.0,
            y + BAR + 4.0,
            "end",
            "font-size=\"13\" fill=\"#1b1f24\"",
            limit.row.name,
        );
        for (number, (seconds, colour)) in
            [(limit.memory, MEMORY), (limit.arithmetic, ARITHMETIC)].into_iter().enumerate()
        {
            let width = limit.share(seconds).min(1.0) * (WIDTH - LEFT - RIGHT);
            let top = y + number as f64 * BAR;
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                BAR - 2.0
            );
        }
        let time = format!(
            "{:.2} ms, {:.0} % {}",
            limit.time.as_secs_f64() * 1e3,
            limit.share(limit.largest().1) * 100.0,
            limit.largest().0
        );
        text(&mut svg, WIDTH - RIGHT + 12.0, y + BAR + 4.0, "start", "fill=\"#1b1f24\"", &time);
        y += 2.0 * BAR + GAP;
    }
    svg.push_str("</svg>\n");
    svg
}
