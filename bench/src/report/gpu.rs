//! vyre on wgpu against wgpu by hand: who is compared, and how.

use crate::measure::{Row, quotient};

/// vyre with the floats of the reference: what integer kernels have anyway.
pub(crate) const EXACT: &str = "vyre exact";
/// vyre with the floats of the device, as shaders written by hand have them.
pub(crate) const NATIVE: &str = "vyre native";
/// Shaders written by hand.
pub(crate) const BY_HAND: &str = "wgpu";
/// The same without the checks that wgpu adds to shaders.
pub(crate) const UNCHECKED: &str = "unchecked";

/// Times of vyre by times of the same kernel by hand.
#[derive(Clone, Copy)]
pub(crate) struct Ratios {
    pub(crate) best: f64,
    pub(crate) median: f64,
    /// Of the best, where the checks that wgpu adds are left out of what is written by hand.
    pub(crate) to_unchecked: Option<f64>,
}

/// Who is compared with what is written by hand: like with like.
pub(crate) fn counted(row: &Row) -> &'static str {
    if row.of(NATIVE).is_some() { NATIVE } else { EXACT }
}

/// How a platform compares with what is written by hand.
pub(crate) fn ratios(row: &Row, platform: &str) -> Option<Ratios> {
    let (vyre, by_hand) = (row.of(platform)?, row.of(BY_HAND)?);
    let unchecked = row.of(UNCHECKED);
    Some(Ratios {
        best: quotient(vyre.best(), by_hand.best())?,
        median: quotient(vyre.median(), by_hand.median())?,
        to_unchecked: unchecked.and_then(|unchecked| quotient(vyre.best(), unchecked.best())),
    })
}

/// Whether vyre keeps to a limit, where there is one and both could run. On a busy machine one lucky turn makes a best
/// time that nobody else has, so a limit is missed where both the best times and the medians miss it.
pub(crate) fn is_within(row: &Row, limit: Option<f64>) -> Option<bool> {
    let ratios = ratios(row, counted(row))?;
    Some(ratios.best.min(ratios.median) <= limit?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::Work;
    use crate::measure::Timing;
    use std::time::Duration;

    fn row(times: &[(&'static str, u64)]) -> Row {
        let timing = |(platform, time): &(&'static str, u64)| {
            let times = vec![Duration::from_nanos(*time)];
            Timing { platform, threads: 1, times, differs: None }
        };
        let timings = times.iter().map(timing).collect();
        Row { name: "row", size: String::new(), work: Work::default(), timings, skipped: Vec::new() }
    }

    #[test]
    fn floats_of_the_device_are_compared_with_those_by_hand() {
        let row = row(&[(BY_HAND, 100), (UNCHECKED, 50), (EXACT, 400), (NATIVE, 105)]);
        let ratios = ratios(&row, counted(&row)).unwrap();
        assert_eq!((ratios.best, ratios.to_unchecked), (1.05, Some(2.1)));
        assert_eq!(is_within(&row, Some(1.1)), Some(true));
        assert_eq!(is_within(&row, Some(1.0)), Some(false));
        assert_eq!(is_within(&row, None), None);
    }

    #[test]
    fn one_lucky_turn_misses_no_limit() {
        let mut row = row(&[(BY_HAND, 100), (EXACT, 105)]);
        row.timings[0].times.extend([70, 101].map(Duration::from_nanos));
        row.timings[1].times.extend([104, 106].map(Duration::from_nanos));
        assert_eq!(is_within(&row, Some(1.1)), Some(true));
    }

    #[test]
    fn integers_have_one_kind_of_arithmetic() {
        let row = row(&[(BY_HAND, 100), (EXACT, 120)]);
        assert_eq!(counted(&row), EXACT);
        assert_eq!(is_within(&row, Some(1.1)), Some(false));
    }
}
