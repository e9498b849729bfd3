//! Numbers of machines as people write them, an integer or a percentage of D, and their values for a given D.

use std::fmt;

/// The highest number of machines, and the most ever requested of a scale set.
// 1000: a set holds no more, Uniform or Flexible. Sets that hold fewer report that themselves.
pub const MOST_MACHINES: u16 = 1000;
const WHOLE: u8 = 100;
const ALLOWED: &str = "allowed are whole numbers from 0 to 1000 and percentages from 0% to 100%";

/// A count of machines, or a percentage. It prints as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Count(u16),
    Percent(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("it is empty: {ALLOWED}")]
    Empty,
    #[error("there must be no spaces in it: {ALLOWED}")]
    Spaces,
    #[error("it must not be negative: {ALLOWED}")]
    Negative,
    #[error("it is written without a plus sign: {ALLOWED}")]
    Plus,
    #[error("it must be a whole number: {ALLOWED}")]
    Fraction,
    #[error("it has no number before the %: {ALLOWED}")]
    NoNumber,
    #[error("it is written without leading zeros: {ALLOWED}")]
    LeadingZero,
    #[error("it is written with the digits 0 to 9 only: {ALLOWED}")]
    ForeignDigits,
    #[error("it must be at most 1000: {ALLOWED}")]
    CountTooLarge,
    #[error("it must be at most 100%: {ALLOWED}")]
    PercentTooLarge,
    #[error("it is neither a number nor a percentage: {ALLOWED}")]
    NotANumber,
}

/// Surge and unavailable for D machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    pub surge: u32,
    pub unavailable: u32,
    /// We never reduce available machines below this.
    pub floor: u32,
    /// We never raise the total above this.
    pub ceiling: u32,
    /// Both were zero, so no machine could be replaced: one may be unavailable.
    pub forced: bool,
}

impl Quantity {
    /// A number of machines, for the program's own values.
    pub const fn of(machines: u8) -> Quantity {
        Quantity(Kind::Count(machines as u16))
    }

    /// A percentage, for the program's own values; above 100 counts as 100.
    pub const fn percent(percent: u8) -> Quantity {
        Quantity(Kind::Percent(if percent > WHOLE { WHOLE } else { percent }))
    }

    pub fn count(machines: i64) -> Result<Quantity, QuantityError> {
        if machines < 0 {
            return Err(QuantityError::Negative);
        }
        let machines = u16::try_from(machines).ok().filter(|machines| *machines <= MOST_MACHINES);
        machines.map(|machines| Quantity(Kind::Count(machines))).ok_or(QuantityError::CountTooLarge)
    }

    /// Parses `3` or `25%`, and nothing that only resembles them.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        let (digits, is_percent) = match text.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        check_spelling(text, digits)?;
        let number = digits.parse::<u16>().ok();
        if is_percent {
            let percent = number.and_then(|number| u8::try_from(number).ok());
            let percent = percent.filter(|percent| *percent <= WHOLE);
            return percent.map(Quantity::percent).ok_or(QuantityError::PercentTooLarge);
        }
        number.map_or(Err(QuantityError::CountTooLarge), |number| Quantity::count(number.into()))
    }

    /// Whether it is zero for every D.
    pub const fn is_zero_literal(self) -> bool {
        matches!(self.0, Kind::Count(0) | Kind::Percent(0))
    }

    /// The number for `of` machines; a fraction counts as one machine.
    pub fn round_up(self, of: u32) -> u32 {
        self.rounded(of, u64::from(WHOLE) - 1)
    }

    /// The number for `of` machines; a fraction counts as none.
    pub fn round_down(self, of: u32) -> u32 {
        self.rounded(of, 0)
    }

    fn rounded(self, of: u32, add: u64) -> u32 {
        match self.0 {
            Kind::Count(machines) => machines.into(),
            // At most 100 % of a u32, so it fits into a u32.
            Kind::Percent(percent) => {
                ((u64::from(percent) * u64::from(of) + add) / u64::from(WHOLE)) as u32
            }
        }
    }
}

/// Rejects text that is not a row of plain digits, with a separate error for each mistake.
fn check_spelling(text: &str, digits: &str) -> Result<(), QuantityError> {
    let numeric = |text: &str| !text.is_empty() && text.chars().all(char::is_numeric);
    let decimal = |text: &str| {
        let parts = text.split_once(['.', ',']);
        parts.is_some_and(|(whole, part)| numeric(&format!("{whole}{part}")))
    };
    let unsigned = digits.strip_prefix(['-', '+', '−']).unwrap_or(digits);
    Err(match digits.chars().next() {
        None if text.is_empty() => QuantityError::Empty,
        None => QuantityError::NoNumber,
        _ if text.contains(char::is_whitespace) => QuantityError::Spaces,
        _ if !numeric(unsigned) && !decimal(unsigned) => QuantityError::NotANumber,
        Some('-' | '−') => QuantityError::Negative,
        Some('+') => QuantityError::Plus,
        _ if !numeric(digits) => QuantityError::Fraction,
        _ if !digits.is_ascii() => QuantityError::ForeignDigits,
        Some('0') if digits.len() > 1 => QuantityError::LeadingZero,
        _ => return Ok(()),
    })
}

/// Surge rounds up and unavailable rounds down; unavailable is at most all machines.
pub fn resolve(surge: Quantity, unavailable: Quantity, desired: u32) -> Resolved {
    let surge = surge.round_up(desired);
    let unavailable = unavailable.round_down(desired).min(desired);
    let forced = surge == 0 && unavailable == 0 && desired > 0;
    let unavailable = if forced { 1 } else { unavailable };
    Resolved {
        surge,
        unavailable,
        floor: desired.saturating_sub(unavailable),
        ceiling: desired.saturating_add(surge),
        forced,
    }
}

/// A number with its noun: `1 machine`, `3 machines`.
pub fn counted(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Count(machines) => write!(f, "{machines}"),
            Kind::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn numbers_and_percentages_print_as_spelled() {
        for text in ["0", "1", "30", "1000", "0%", "1%", "33%", "100%"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(Quantity::count(1000), Ok(read("1000")));
        assert_eq!((Quantity::of(255), Quantity::percent(40)), (read("255"), read("40%")));
        assert_eq!(Quantity::percent(101), read("100%"));
        assert!(read("0").is_zero_literal() && read("0%").is_zero_literal());
        assert!(!read("1").is_zero_literal() && !read("1%").is_zero_literal());
    }

    #[test]
    fn each_mistake_has_its_reason() {
        use QuantityError::*;
        let cases = [
            ("", Empty),
            ("%", NoNumber),
            (" ", Spaces),
            (" 5", Spaces),
            ("5 %", Spaces),
            ("5%\n", Spaces),
            ("5\u{a0}%", Spaces),
            ("-1", Negative),
            ("-5%", Negative),
            ("-0", Negative),
            ("−5%", Negative),
            ("-1.5%", Negative),
            ("+5", Plus),
            ("+5%", Plus),
            ("1.5%", Fraction),
            ("0.5", Fraction),
            (".5", Fraction),
            ("5.", Fraction),
            ("2,5%", Fraction),
            ("５%", ForeignDigits),
            ("٣", ForeignDigits),
            ("½", ForeignDigits),
            ("007", LeadingZero),
            ("00%", LeadingZero),
            ("1001", CountTooLarge),
            ("65536", CountTooLarge),
            ("99999999999999999999", CountTooLarge),
            ("101%", PercentTooLarge),
            ("256%", PercentTooLarge),
            ("99999999999999999999%", PercentTooLarge),
            ("half", NotANumber),
            ("-", NotANumber),
            ("-x", NotANumber),
            ("--5", NotANumber),
            (".", NotANumber),
            ("5%%", NotANumber),
            ("%5", NotANumber),
            ("1e2", NotANumber),
            ("0x10", NotANumber),
            ("1.2.3", NotANumber),
            ("5pc", NotANumber),
        ];
        for (text, reason) in cases {
            assert_eq!(Quantity::parse(text), Err(reason), "{text:?}");
            assert!(reason.to_string().ends_with(ALLOWED));
        }
        assert_eq!(Quantity::count(-1), Err(Negative));
        assert_eq!(Quantity::count(i64::MIN), Err(Negative));
        for machines in [1001, 65_536, i64::MAX] {
            assert_eq!(Quantity::count(machines), Err(CountTooLarge));
        }
    }

    #[test]
    fn percentages_round_exactly() {
        let cases = [
            ("1%", 1, 1, 0),
            ("33%", 3, 1, 0),
            ("34%", 3, 2, 1),
            ("10%", 30, 3, 3),
            ("29%", 100, 29, 29),
            ("7%", 100, 7, 7),
            ("99%", 101, 100, 99),
            ("100%", u32::MAX, u32::MAX, u32::MAX),
            ("99%", u32::MAX, 4_252_017_623, 4_252_017_622),
            ("0%", 1000, 0, 0),
            ("50%", 0, 0, 0),
            ("7", 3, 7, 7),
        ];
        for (text, of, up, down) in cases {
            let quantity = read(text);
            assert_eq!((quantity.round_up(of), quantity.round_down(of)), (up, down), "{text} {of}");
        }
    }

    #[test]
    fn budgets_resolve() {
        // surge, unavailable, D -> S, U, floor, ceiling, forced
        let cases = [
            ("1", "0", 30, (1, 0, 30, 31, false)),
            ("25%", "25%", 3, (1, 0, 3, 4, false)),
            ("0", "25%", 3, (0, 1, 2, 3, true)),
            ("0%", "0", 3, (0, 1, 2, 3, true)),
            ("0", "5", 3, (0, 3, 0, 3, false)),
            ("0", "100%", 1, (0, 1, 0, 1, false)),
            ("0", "1%", 1, (0, 1, 0, 1, true)),
            ("0", "1", 0, (0, 0, 0, 0, false)),
            ("0", "1%", 0, (0, 0, 0, 0, false)),
            ("2", "1", 0, (2, 0, 0, 2, false)),
            ("100%", "50%", 5, (5, 2, 3, 10, false)),
            ("1000", "0", u32::MAX, (1000, 0, u32::MAX, u32::MAX, false)),
        ];
        for (surge, unavailable, desired, expected) in cases {
            let r = resolve(read(surge), read(unavailable), desired);
            let told = (r.surge, r.unavailable, r.floor, r.ceiling, r.forced);
            assert_eq!(told, expected, "{surge} {unavailable} {desired}");
        }
    }

    fn any_quantity() -> impl Strategy<Value = Quantity> {
        prop_oneof![
            (0_i64..=1000).prop_map(|n| Quantity::count(n).unwrap()),
            (0_u8..=100).prop_map(Quantity::percent)
        ]
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_printing_gives_it_back(text in "[-+0-9.% ]{0,6}|\\PC{0,8}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                prop_assert_eq!(quantity.to_string(), text);
            }
        }

        #[test]
        fn printed_ones_read_the_same(quantity in any_quantity()) {
            prop_assert_eq!(Quantity::parse(&quantity.to_string()), Ok(quantity));
        }

        #[test]
        fn budgets_always_let_something_move(
            surge in any_quantity(), unavailable in any_quantity(), desired in prop_oneof![0_u32..2000, any::<u32>()]
        ) {
            let r = resolve(surge, unavailable, desired);
            prop_assert!(r.floor <= desired && desired <= r.ceiling);
            prop_assert!(desired == 0 || r.surge > 0 || r.unavailable > 0);
            prop_assert!(r.unavailable <= desired);
            prop_assert_eq!(r.floor, desired - r.unavailable);
            prop_assert_eq!(r.forced, desired > 0 && surge.round_up(desired) == 0 && unavailable.round_down(desired) == 0);
            prop_assert!(!r.forced || (r.surge, r.unavailable) == (0, 1));
        }

        #[test]
        fn rounding_is_the_nearest_on_its_side(percent in 0_u8..=100, of in any::<u32>()) {
            let (quantity, exact) = (Quantity::percent(percent), u64::from(percent) * u64::from(of));
            let (up, down) = (u64::from(quantity.round_up(of)), u64::from(quantity.round_down(of)));
            prop_assert!(down * 100 <= exact && exact < (down + 1) * 100);
            prop_assert!(exact <= up * 100 && up * 100 < exact + 100);
        }
    }
}
