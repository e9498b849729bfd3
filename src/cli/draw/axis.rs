//! Marks along time.

/// Milliseconds.
pub type Ms = i64;

const SECOND: Ms = 1_000;
const MINUTE: Ms = 60 * SECOND;
const HOUR: Ms = 60 * MINUTE;
const DAY: Ms = 24 * HOUR;

/// Distances between marks that people count in.
const STEPS: [Ms; 17] = [
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

/// Marks from 0 up to `span`, at most so many and one.
pub fn marks(span: Ms, most: usize) -> Vec<Ms> {
    let most = most.max(1) as Ms;
    let fits = STEPS.into_iter().find(|step| span / step <= most);
    let step = fits.unwrap_or_else(|| (span / most).max(1));
    (0..=span / step).map(|n| n * step).collect()
}

/// `0`, `30s`, `1m30`, `5m`, `1h30`, `2d`.
pub fn name(at: Ms) -> String {
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

/// `3:20` and, from an hour on, `1:03:20`.
pub fn clock(at: Ms) -> String {
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
