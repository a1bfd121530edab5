//! A chart of ratios to natural Rust: bars from the line at 1.0, to the left where a contender is faster.
//!
//! The axis is logarithmic, so that half and twice the time are equally far from 1.0.

use super::Report;
use crate::measure::Row;
use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 92.0;
const BAR: f64 = 16.0;
const GAP: f64 = 14.0;

/// A colour for each platform that is compared with Rust.
const COLOURS: [(&str, &str); 3] = [("vyre", "#2563a8"), ("opencl", "#c98a2b"), ("wgpu", "#7a8594")];

/// The chart.
pub(crate) fn render(report: &Report) -> String {
    let threads = report.setting.threads;
    let present = |name: &str| report.setting.platforms.iter().any(|(platform, _)| *platform == name);
    let platforms: Vec<(&str, &str)> = COLOURS.into_iter().filter(|(name, _)| present(name)).collect();
    let bars_of = |row: &Row| -> Vec<(&str, f64)> {
        platforms.iter().filter_map(|(name, colour)| Some((*colour, row.ratio(name, threads)?))).collect()
    };
    let bars: Vec<(&Row, Vec<(&str, f64)>)> = report.rows.iter().map(|row| (row, bars_of(row))).collect();
    let axis = Axis::around(bars.iter().flat_map(|(_, bars)| bars.iter().map(|(_, ratio)| *ratio)));
    let height_of = |bars: &[(&str, f64)]| bars.len().max(1) as f64 * BAR + GAP;
    let bottom = TOP + bars.iter().map(|(_, bars)| height_of(bars)).sum::<f64>();
    let height = bottom + 46.0;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let title = format!("Time relative to natural Rust with rayon, {threads} threads");
    text(&mut svg, LEFT, 28.0, "start", "font-size=\"16\" font-weight=\"600\" fill=\"#1b1f24\"", &title);
    let subtitle = format!(
        "best of {} interleaved runs; logarithmic; left of 1.0 is faster",
        report.setting.repetitions
    );
    text(&mut svg, LEFT, 46.0, "start", "fill=\"#59636e\"", &subtitle);
    legend(&mut svg, &platforms);
    axis.draw(&mut svg, bottom);

    let mut y = TOP;
    for (row, bars) in &bars {
        let middle = y + bars.len().max(1) as f64 * BAR / 2.0 + 4.0;
        text(&mut svg, LEFT - 10.0, middle, "end", "font-size=\"13\" fill=\"#1b1f24\"", row.name);
        for (number, (colour, ratio)) in bars.iter().enumerate() {
            bar(&mut svg, &axis, y + number as f64 * BAR, colour, *ratio);
        }
        y += height_of(bars);
    }
    // Above the bars.
    let one = axis.place(1.0);
    line(&mut svg, one, TOP - 8.0, bottom - GAP / 2.0, "stroke=\"#1b1f24\" stroke-width=\"1.5\"");
    svg.push_str("</svg>\n");
    svg
}

/// Where a ratio stands.
struct Axis {
    /// The powers of two at both ends.
    low: i32,
    high: i32,
}

impl Axis {
    /// An axis with room for these ratios, and for 1.0 with something around it.
    fn around(ratios: impl Iterator<Item = f64>) -> Axis {
        let (mut low, mut high) = (-1, 1);
        for ratio in ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0) {
            low = low.min(ratio.log2().floor() as i32);
            high = high.max(ratio.log2().ceil() as i32);
        }
        Axis { low, high }
    }

    fn place(&self, ratio: f64) -> f64 {
        let part = (ratio.log2() - f64::from(self.low)) / f64::from(self.high - self.low);
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn draw(&self, svg: &mut String, bottom: f64) {
        // No more than about ten labels.
        let step = ((self.high - self.low) as usize).div_ceil(10).max(1);
        let first = -(-self.low / step as i32) * step as i32;
        for power in (first..=self.high).step_by(step) {
            let x = self.place(f64::from(power).exp2());
            line(svg, x, TOP - 8.0, bottom - GAP / 2.0, "stroke=\"#e3e7eb\"");
            let label = match power {
                ..0 => format!("1/{}", 1_u64 << -power),
                0 => "1.0".to_owned(),
                _ => (1_u64 << power).to_string(),
            };
            text(svg, x, bottom + 12.0, "middle", "fill=\"#59636e\"", &label);
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        text(svg, middle, bottom + 32.0, "middle", "fill=\"#59636e\"", "time / time of natural Rust");
    }
}

fn bar(svg: &mut String, axis: &Axis, y: f64, colour: &str, ratio: f64) {
    let (one, end) = (axis.place(1.0), axis.place(ratio));
    let (from, to) = (one.min(end), one.max(end));
    let (width, height) = ((to - from).max(1.0), BAR - 3.0);
    let _ = writeln!(
        svg,
        "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
    );
    let (x, anchor) = if ratio < 1.0 { (from - 5.0, "end") } else { (to + 5.0, "start") };
    text(svg, x, y + 11.0, anchor, "fill=\"#1b1f24\"", &format!("{ratio:.2}"));
}

fn legend(svg: &mut String, platforms: &[(&str, &str)]) {
    let mut x = LEFT;
    for (name, colour) in platforms {
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"58\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        text(svg, x + 18.0, 68.5, "start", "fill=\"#1b1f24\"", name);
        x += 90.0;
    }
}

pub(super) fn line(svg: &mut String, x: f64, from: f64, to: f64, style: &str) {
    let _ = writeln!(svg, "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{from:.1}\" y2=\"{to:.1}\" {style}/>");
}

pub(super) fn text(svg: &mut String, x: f64, y: f64, anchor: &str, style: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equally_far_from_one() {
        let axis = Axis::around([0.3, 3.9].into_iter());
        assert_eq!((axis.low, axis.high), (-2, 2));
        let one = axis.place(1.0);
        assert!((axis.place(2.0) - one - (one - axis.place(0.5))).abs() < 1e-9);
        assert!((axis.place(4.0) - (WIDTH - RIGHT)).abs() < 1e-9);
    }
}
