//! The scalars of a pool file: how each is read and printed.

use serde_json::json;

use super::form::{OrderedJson, Scalar, text};
use super::section::{SectionResult, SectionValue};
use super::value_form::ValueForm;
use crate::api::v1::diagnostic::{Diagnostic, quote};
use crate::api::v1::node::NodeKind;
use crate::api::v1::wire::WordTable;
use crate::model::calendar::{Cron, ScheduleZone, ZoneError};
use crate::model::ids::PoolName;
use crate::model::quantity::{MOST_MACHINES, Quantity};
use crate::model::time::Span;

/// Resource ids have about 200 characters; this is the longest address that ARM accepts.
pub(super) const LONGEST_ID: usize = 2_048;

/// The limit of a DNS name, because it becomes part of other names.
pub(super) const LONGEST_NAME: usize = 63;
/// `90s`, `1h30m`: whole numbers with their units, largest first.
const SPAN: &str = "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";
const PERCENTS: &str = "^(0|[1-9][0-9]?|100)%$";
const SOME_PERCENTS: &str = "^([1-9][0-9]?|100)%$";
/// A percent that may have zeros before it.
const PADDED_PERCENTS: &str = "^0*([0-9]|[1-9][0-9]|100)%$";
const SOME_PADDED_PERCENTS: &str = "^0*([1-9]|[1-9][0-9]|100)%$";
/// Text that is not blank.
const NOT_BLANK: &str = "\\S";

pub(super) const FLAG: Scalar<bool> = Scalar::new(
    flag,
    |is| OrderedJson::Flag(*is),
    || ValueForm::new("true or false", json!({ "type": "boolean" })),
);
pub(super) const DURATION: Scalar<Span> = Scalar::new(duration, text, a_duration);
pub(super) const PERCENT: Scalar<u32> = Scalar::new(
    percent,
    |of| text(&format!("{of}%")),
    || {
        let schema = json!({ "type": "string", "pattern": PADDED_PERCENTS });
        ValueForm::new("a percent from 0% to 100%", schema)
    },
);
/// The same, but not 0%.
pub(super) const STEP_PERCENT: Scalar<u32> = Scalar::new(
    |value| {
        let fault = || value.bad("a step of 0% would move no machine");
        Some(percent(value)?).filter(|of| *of > 0).ok_or_else(fault)
    },
    PERCENT.print,
    || {
        let schema = json!({ "type": "string", "pattern": SOME_PADDED_PERCENTS });
        ValueForm::new("a percent from 1% to 100%", schema)
    },
);
pub(super) const CRON: Scalar<Cron> = Scalar::new(cron, text, || {
    let words = "a cron pattern: minute, hour, day of month, month, day of week";
    ValueForm::new(words, json!({ "type": "string" }))
});
pub(super) const ZONE: Scalar<ScheduleZone> = Scalar::new(
    zone,
    |zone| text(zone.name()),
    || {
        let words = "a name of the IANA time zone database";
        ValueForm::new(words, json!({ "type": "string", "minLength": 1 }))
    },
);

pub(super) const NAME: Scalar<PoolName> = Scalar::new(
    pool_name,
    |name| text(name.as_str()),
    || {
        let words = "a letter or digit, then letters, digits, -, _ and .";
        let pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
        let schema = json!({ "type": "string", "pattern": pattern, "maxLength": LONGEST_NAME });
        ValueForm::new(words, schema)
    },
);
pub(super) const DURATION_OR_OFF: Scalar<Option<Span>> = Scalar::new(
    duration_or_off,
    |of| of.as_ref().map_or_else(|| text("off"), text),
    || {
        // One form: generated clients tell two forms of text apart by their order alone.
        let mut form = a_duration().or(off());
        let span = SPAN.trim_start_matches('^').trim_end_matches('$');
        let pattern = format!("^(off|{span})$");
        form.schema = json!({ "type": "string", "pattern": pattern, "minLength": 2 });
        form
    },
);

/// A whole number, or a percent as text.
pub(super) const AMOUNT: Scalar<Quantity> =
    Scalar::new(quantity, |of| an_amount(*of), || amounts(0, PERCENTS));
/// The same, but not 0.
pub(super) const SOME: Scalar<Quantity> = Scalar::new(
    |value| {
        let found = quantity(value)?;
        let fault = || value.bad("must be at least 1, or 1%");
        Some(found).filter(|found| !found.is_zero_literal()).ok_or_else(fault)
    },
    |of| an_amount(*of),
    || amounts(1, SOME_PERCENTS),
);

fn an_amount(of: Quantity) -> OrderedJson {
    let text = of.to_string();
    text.parse().map_or(OrderedJson::Text(text), OrderedJson::Number)
}

fn amounts(least: u32, percents: &str) -> ValueForm {
    let number = json!({ "type": "integer", "minimum": least, "maximum": MOST_MACHINES });
    let percent = json!({ "type": "string", "pattern": percents });
    let number = ValueForm::new(range(least, u32::from(MOST_MACHINES)), number);
    number.or(ValueForm::new(format!("a percent from {least}% to 100%"), percent))
}

pub(super) fn off() -> ValueForm {
    ValueForm::new("off", json!({ "type": "string", "const": "off" }))
}

fn a_duration() -> ValueForm {
    let schema = json!({ "type": "string", "pattern": SPAN, "minLength": 2 });
    ValueForm::new("a duration, such as 90s, 20m, 1h30m or 30d", schema)
}

pub(super) fn a_line(words: &str, longest: usize) -> ValueForm {
    let schema = json!({ "type": "string", "pattern": NOT_BLANK, "maxLength": longest });
    ValueForm::new(words, schema)
}

pub(super) const fn whole<const LEAST: u32, const MOST: u32>() -> Scalar<u32> {
    Scalar::new(
        |value| integer(value, LEAST, MOST),
        |of| OrderedJson::Number(*of),
        || {
            let schema = json!({ "type": "integer", "minimum": LEAST, "maximum": MOST });
            ValueForm::new(range(LEAST, MOST), schema)
        },
    )
}

fn range(least: u32, most: u32) -> String {
    format!("a whole number from {least} to {most}")
}

pub(super) const fn line<const LONGEST: usize>() -> Scalar<Box<str>> {
    let form = || a_line("text of one line", LONGEST);
    Scalar::new(|value| value.text(LONGEST).map(Into::into), text, form)
}

/// A list of names. A pool file may not fill it yet: only a snapshot may.
pub(super) const fn lines<const LONGEST: usize>() -> Scalar<Vec<Box<str>>> {
    let list = |of: &Vec<Box<str>>| OrderedJson::List(of.iter().map(text).collect());
    Scalar::new(
        |value| texts(value, LONGEST),
        list,
        || a_line("text of one line", LONGEST).list("a list of texts", None),
    )
}

pub(super) const fn word<T: WordTable>() -> Scalar<T> {
    Scalar::new(one_of, |of: &T| text(of.word()), || one_word(&words::<T>()))
}

pub(super) fn one_word(words: &[&str]) -> ValueForm {
    ValueForm::new(words.join(" | "), json!({ "type": "string", "enum": words }))
}

fn flag(value: &SectionValue<'_>) -> SectionResult<bool> {
    match &value.node.kind {
        NodeKind::Bool(is) => Ok(*is),
        NodeKind::Text(text) => {
            let near = if ["on", "yes", "y"].contains(&&*text.text) { "true" } else { "" };
            let fault = value.wrong_type("true or false");
            Err(Box::new(fault.allowed(&["true", "false"], near)))
        }
        _ => Err(value.wrong_type("true or false")),
    }
}

pub(super) fn one_of<T: WordTable>(value: &SectionValue<'_>) -> SectionResult<T> {
    let wanted = "one of a few words";
    let word = value.word(wanted).map_err(|fault| Box::new(fault.allowed(&words::<T>(), "")))?;
    let found = T::WORDS.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let fault = value.bad(format!("{} is not one of its values", quote(word)));
        Box::new(fault.allowed(&words::<T>(), word))
    })
}

fn duration(value: &SectionValue<'_>) -> SectionResult<Span> {
    const HELP: &str = "write it like 90s, 20m, 1h30m or 30d";
    match &value.node.kind {
        NodeKind::Text(text) => Span::parse(&text.text).map_err(|_| {
            let fault = value.bad(format!("{} is not a duration", quote(&text.text)));
            Box::new(fault.help(HELP))
        }),
        NodeKind::Number(text) => {
            let fault = value.bad(format!("{} has no unit", quote(text)));
            Err(Box::new(fault.help(HELP)))
        }
        _ => Err(Box::new(value.wrong_type("a duration").help(HELP))),
    }
}

fn duration_or_off(value: &SectionValue<'_>) -> SectionResult<Option<Span>> {
    if value.is_off() {
        return Ok(None);
    }
    let help = "write it like 30d, or off";
    duration(value).map(Some).map_err(|fault| Box::new(fault.help(help)))
}

fn integer(value: &SectionValue<'_>, least: u32, most: u32) -> SectionResult<u32> {
    let NodeKind::Number(text) = &value.node.kind else {
        let fault = value.wrong_type("a whole number");
        let digits = matches!(&value.node.kind, NodeKind::Text(t) if t.text.parse::<u32>().is_ok());
        let help = digits.then(|| "leave out the quotes".to_owned());
        return Err(Box::new(Diagnostic { help, ..*fault }));
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|n| is_plain && (least..=most).contains(n));
    let say = || format!("{} is not {}", quote(text), range(least, most));
    number.ok_or_else(|| value.bad(say()))
}

/// A whole number, or a percent of D as text.
fn quantity(value: &SectionValue<'_>) -> SectionResult<Quantity> {
    let text = match &value.node.kind {
        NodeKind::Number(text) => text,
        NodeKind::Text(text) if text.text.ends_with('%') => &text.text,
        NodeKind::Text(text) => {
            let say = format!("{} is neither a whole number nor a percent", quote(&text.text));
            let digits = text.text.bytes().all(|byte| byte.is_ascii_digit());
            let help = if digits { "leave out the quotes" } else { "write it like 3 or 10%" };
            return Err(Box::new(value.bad(say).help(help)));
        }
        _ => {
            let fault = value.wrong_type("a whole number or a percent");
            return Err(Box::new(fault.help("write it like 3 or 10%")));
        }
    };
    Quantity::parse(text).map_err(|error| value.bad(format!("{}: {error}", quote(text))))
}

/// A percent from 0 to 100, written with its sign.
fn percent(value: &SectionValue<'_>) -> SectionResult<u32> {
    const HELP: &str = "write it like 40%";
    let text = value.word("a percent").map_err(|fault| Box::new(fault.help(HELP)))?;
    let digits = text.strip_suffix('%').filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok()).filter(|n| *n <= 100);
    number.ok_or_else(|| {
        let fault = value.bad(format!("{} is not a percent from 0% to 100%", quote(text)));
        Box::new(fault.help(HELP))
    })
}

fn cron(value: &SectionValue<'_>) -> SectionResult<Cron> {
    Cron::parse(value.word("a cron pattern")?).map_err(|error| value.bad(error.to_string()))
}

fn zone(value: &SectionValue<'_>) -> SectionResult<ScheduleZone> {
    let name = value.word("a time zone")?;
    ScheduleZone::get(name).map_err(|error| match error {
        // The nearest name stands beside the message, not in it.
        ZoneError::Unknown { nearest, .. } => {
            let fault = value.bad(format!("there is no time zone {}", quote(name)));
            Box::new(Diagnostic { nearest, ..*fault })
        }
        ZoneError::NotAName => value.bad(error.to_string()),
    })
}

fn pool_name(value: &SectionValue<'_>) -> SectionResult<PoolName> {
    let text = value.text(LONGEST_NAME)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(is_plain) {
        let fault =
            value.bad("a name begins with a letter or digit and goes on with those, -, _ and .");
        return Err(Box::new(fault.help("write it like web or node-pool-1")));
    }
    Ok(PoolName::new(text))
}

fn texts(value: &SectionValue<'_>, longest: usize) -> SectionResult<Vec<Box<str>>> {
    let NodeKind::List(items) = &value.node.kind else {
        return Err(value.wrong_type("a list of texts"));
    };
    let each = items.iter().enumerate();
    each.map(|(n, node)| value.item(n, node).text(longest).map(Into::into)).collect()
}

pub(super) fn words<T: WordTable>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(word, _)| *word).collect()
}
