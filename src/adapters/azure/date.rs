//! Dates in the format of HTTP headers.

use crate::model::time::Time;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `Sat, 21 Nov 2026 18:34:48 GMT`. No server sends the two older HTTP formats any more.
pub(super) fn http_date(text: &str) -> Option<Time> {
    let (_, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split_whitespace().collect();
    let [day, month, year, clock, "GMT"] = parts[..] else { return None };
    let month = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(month))? + 1;
    Time::parse(&format!("{year}-{month:02}-{day:0>2}T{clock}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_nothing_else_is() {
        let read = http_date("Sat, 21 Nov 2026 18:34:48 GMT");
        assert_eq!(read, Time::parse("2026-11-21T18:34:48Z").ok());
        assert_eq!(
            http_date("Sun, 1 Mar 2026 00:00:00 GMT").map(Time::millis),
            Some(1_772_323_200_000)
        );
        for odd in
            ["", "120", "now", "Sat, 21 Nov 2026 18:34:48 CET", "Sat, 99 Nov 2026 18:34:48 GMT"]
        {
            assert_eq!(http_date(odd), None, "{odd}");
        }
    }
}
