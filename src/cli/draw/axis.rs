//! Marks on the time axis.

/// Milliseconds.
pub type AxisTime = i64;

const SECOND: AxisTime = 1_000;
const MINUTE: AxisTime = 60 * SECOND;
const HOUR: AxisTime = 60 * MINUTE;
const DAY: AxisTime = 24 * HOUR;

/// Distances between marks, in units that people use.
const STEPS: [AxisTime; 17] = [
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
];

/// Marks from 0 up to `span`, at most `most` plus one.
pub fn marks(span: AxisTime, most: usize) -> Vec<AxisTime> {
    let most = most.max(1) as AxisTime;
    let fits = STEPS.into_iter().find(|step| span / step <= most);
    let step = fits.unwrap_or_else(|| (span / most).max(1));
    (0..=span / step).map(|n| n * step).collect()
}

/// The label of a mark: `0`, `30s`, `1m30`, `5m`, `1h30`, `2d`.
pub fn name(at: AxisTime) -> String {
    match at {
        0 => "0".to_owned(),
        at if at < MINUTE => format!("{}s", at / SECOND),
        at if at % MINUTE != 0 => format!("{}m{:02}", at / MINUTE, at % MINUTE / SECOND),
        at if at < HOUR => format!("{}m", at / MINUTE),
        at if at % DAY == 0 => format!("{}d", at / DAY),
        at if at % HOUR == 0 => format!("{}h", at / HOUR),
        at => format!("{}h{:02}", at / HOUR, at % HOUR / MINUTE),
    }
}

/// An elapsed time: `3:20`, or `1:03:20` from one hour on.
pub fn clock(at: AxisTime) -> String {
    let (h, m, s) = (at / HOUR, at % HOUR / MINUTE, at % MINUTE / SECOND);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        assert_eq!(marks(0, 5), [0]);
        assert_eq!(marks(25 * MINUTE, 5), [0, 5, 10, 15, 20, 25].map(|m| m * MINUTE));
        for span in [1, 61 * SECOND, 3 * HOUR, 13 * DAY, 90 * DAY] {
            assert!(marks(span, 6).len() <= 7, "{span}");
        }
    }

    #[test]
    fn times_are_named_shortly() {
        let named = [0, 30 * SECOND, 90 * SECOND, 5 * MINUTE, HOUR, 90 * MINUTE, 2 * DAY].map(name);
        assert_eq!(named, ["0", "30s", "1m30", "5m", "1h", "1h30", "2d"]);
        assert_eq!([clock(200 * SECOND), clock(3_800 * SECOND)], ["3:20", "1:03:20"]);
    }
}
