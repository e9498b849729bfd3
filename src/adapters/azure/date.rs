//! Dates in the format of HTTP headers.

use std::time::UNIX_EPOCH;

use crate::model::time::Time;

pub(super) fn http_date(text: &str) -> Option<Time> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time::from_millis(i64::try_from(since.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_nothing_else_is() {
        let read = http_date("Sat, 21 Nov 2026 18:34:48 GMT");
        assert_eq!(read, Time::parse("2026-11-21T18:34:48Z").ok());
        assert_eq!(
            http_date("Sun, 01 Mar 2026 00:00:00 GMT").map(Time::millis),
            Some(1_772_323_200_000)
        );
        for odd in
            ["", "120", "now", "Sat, 21 Nov 2026 18:34:48 CET", "Sat, 99 Nov 2026 18:34:48 GMT"]
        {
            assert_eq!(http_date(odd), None, "{odd}");
        }
    }
}
