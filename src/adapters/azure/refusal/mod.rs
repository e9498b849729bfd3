//! What a "no" of ARM means. Decided once, here: nobody further in reads a status, a code or a text.
//!
//! Read in this order: throttling (by status or by a code inside), what texts tell where a code is shared, the code that
//! lies deepest, the status. What may have had its effect is `Unclear`: it is settled by a look, never by asking again.
//! Begin with [`of_answer`] and [`of_operation`]; the codes are a table in `codes`.

mod codes;
#[cfg(test)]
mod tests;

use crate::adapters::azure::http::Reply;
use crate::adapters::azure::wire::{Fault, Faults};
use crate::model::ids::{InstanceId, Zone};
use crate::model::journal::{Refusal, Refused};
use crate::model::time::Span;

pub(super) use codes::NOT_BY_FORCE;
use codes::{Meaning, by_code, by_text, is_wrapper};

/// A wait for who was refused for asking too often, and not told how long.
// 1 min: the window of every documented policy.
const THROTTLED_FOR: Span = Span::minutes(1);

/// What an answer of status 429 may mean besides "too often".
const NO_RATE: [Refusal; 4] =
    [Refusal::Conflict, Refusal::Preempted, Refusal::Quota, Refusal::NoCapacity];

/// As much of a message as is kept.
const LONGEST_SAYING: usize = 400;

/// As much of it as a hold shows and a record keeps.
// 300: the cause stands in the first sentence or two.
const LONGEST_MESSAGE: usize = 300;

/// As much of a code and of a request's id.
const LONGEST_CODE: usize = 100;

/// A refusal, with what people and support need to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub refused: Refused,
    pub message: Box<str>,
    /// What it is about: a field, an instance id, a throttling policy.
    pub target: Option<Box<str>>,
    /// Machines that alone stand against the request, where it says so.
    pub machines: Vec<InstanceId>,
    pub request_id: Option<Box<str>>,
}

impl Told {
    /// One line: the code, what was said, and what support asks for.
    pub fn say(&self) -> Box<str> {
        let code = self.refused.code.as_deref().unwrap_or(self.refused.refusal.name());
        let id = self.request_id.as_deref().map(|id| format!(" (request {id})"));
        format!("{code}: {}{}", self.message, id.unwrap_or_default()).into()
    }
}

/// An answer that is no success.
pub(super) fn of_answer(reply: &Reply) -> Told {
    let faults = Faults::read(&reply.body);
    let (meaning, code) = meaning(reply.status, &faults);
    let code = code.as_deref().map(short);
    let refusal = match meaning {
        Meaning::Is(Refusal::Gone) if !is_of_arm(reply, &faults) => Refusal::Unclear,
        Meaning::Is(refusal) => refusal,
        // As an answer to a request it says nothing about what the request did.
        Meaning::BadMachine => Refusal::Unclear,
    };
    let told_wait = reply.retry_at().or_else(|| wait_in(&faults).map(|w| reply.at.plus(w)));
    let retry_at = match refusal {
        Refusal::Throttled => Some(told_wait.unwrap_or(reply.at.plus(THROTTLED_FOR))),
        _ => told_wait,
    };
    let message = faults.told(|f| f.message.as_deref().filter(|m| !m.starts_with('{')));
    let said = message.map(kept);
    let message = message.map_or_else(|| format!("ARM answered {}", reply.status), shorten);
    Told {
        refused: Refused { refusal, code, message: said, zone: zone(&faults), retry_at },
        message: message.into(),
        target: faults.told(|f| f.target.as_deref()).map(Into::into),
        machines: if refusal == Refusal::Forbidden { machines(&faults) } else { Vec::new() },
        request_id: reply.request_id().map(short),
    }
}

/// The error of an operation that failed. `None`: the request was carried out, and some machine it made is bad.
pub(super) fn of_operation(
    fault: Option<Fault>,
    zone_of: impl Fn(&str) -> Option<Zone>,
) -> Option<Told> {
    let faults = fault.map(Faults::of).unwrap_or_default();
    let (meaning, code) = meaning(200, &faults);
    let code = code.as_deref().map(short);
    let Meaning::Is(refusal) = meaning else { return None };
    let target = faults.told(|f| f.target.as_deref());
    let zonal = code.as_deref().is_some_and(|code| code.to_ascii_lowercase().contains("zonal"));
    let zone = zone(&faults).or_else(|| target.and_then(zone_of).filter(|_| zonal));
    let message = faults.told(|f| f.message.as_deref().filter(|m| !m.starts_with('{')));
    let said = message.map(kept);
    let message = message.map_or_else(String::new, shorten);
    Some(Told {
        refused: Refused { refusal, code, message: said, zone, retry_at: None },
        message: message.into(),
        target: target.map(Into::into),
        machines: Vec::new(),
        request_id: None,
    })
}

/// The wait that an answer tells in words alone.
pub(super) fn told_wait(reply: &Reply) -> Option<Span> {
    wait_in(&Faults::read(&reply.body))
}

/// A "not found" that only a proxy or a strange server gave is no word of ARM's about what exists.
fn is_of_arm(reply: &Reply, faults: &Faults) -> bool {
    let signed = ["x-ms-request-id", "x-ms-correlation-request-id", "x-ms-failure-cause"];
    !faults.is_empty() || signed.iter().any(|name| reply.header(name).is_some())
}

/// `status` 200 stands for "in an operation".
fn meaning(status: u16, faults: &Faults) -> (Meaning, Option<Box<str>>) {
    let outer = faults.outermost().and_then(|fault| fault.code.as_deref());
    let code_of = |fault: &Fault| fault.code.as_deref().map(Box::<str>::from);
    let known = || {
        let mut telling = faults
            .deepest_first()
            .filter(|fault| fault.code.as_deref().is_some_and(|code| !is_wrapper(code)));
        telling.find_map(|fault| Some((by_code(fault.code.as_deref()?)?, code_of(fault))))
    };
    if let Some((meaning, code)) = by_text(faults) {
        return (meaning, code.map(Into::into).or_else(|| outer.map(Into::into)));
    }
    let found = known();
    let is = |wanted: Refusal| matches!(&found, Some((Meaning::Is(r), _)) if *r == wanted);
    let code = || found.as_ref().and_then(|(_, code)| code.clone()).or(outer.map(Into::into));
    match status {
        // Some providers say with the status of "too often" that they are busy or full: nobody asked too often there.
        429 if !NO_RATE.into_iter().any(is) => (Meaning::Is(Refusal::Throttled), code()),
        _ if is(Refusal::Throttled) => (Meaning::Is(Refusal::Throttled), code()),
        408 | 500.. => (Meaning::Is(Refusal::Unclear), code()),
        _ => match found {
            Some((meaning, code)) => (meaning, code),
            None => (Meaning::Is(by_status(status, outer)), outer.map(Into::into)),
        },
    }
}

fn by_status(status: u16, code: Option<&str>) -> Refusal {
    let is = |name: &str| code.is_some_and(|code| code.eq_ignore_ascii_case(name));
    match status {
        // `OperationNotAllowed` and `Conflict` without a text we know: something stands in the way now.
        _ if is("OperationNotAllowed") || is("Conflict") => Refusal::Conflict,
        401 | 403 => Refusal::Forbidden,
        404 | 410 => Refusal::Gone,
        409 | 412 | 423 => Refusal::Conflict,
        400..500 => Refusal::Invalid,
        _ => Refusal::Unclear,
    }
}

/// Some answers tell the wait only in words: "after '6' seconds", "in 30 seconds", "for 180 seconds".
fn wait_in(faults: &Faults) -> Option<Span> {
    faults.deepest_first().filter_map(|fault| fault.message.as_deref()).find_map(|message| {
        let before = message.split("second").next().filter(|b| b.len() < message.len())?;
        let number = before.trim_end().trim_end_matches('\'');
        let digits = number.len() - number.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let seconds: i64 = number.get(number.len() - digits..)?.parse().ok()?;
        Some(Span::seconds(seconds.min(3_600)))
    })
}

/// Locks that stand on machines, and machines that are protected. A lock on the set, or above it, names none.
fn machines(faults: &Faults) -> Vec<InstanceId> {
    const PROTECTED: &str = "instance ids are protected from scale set action:";
    const LOCKED: &str = "scope(s) are locked:";
    let messages = faults.deepest_first().filter_map(|fault| fault.message.as_deref());
    let found = messages.map(|message| {
        let plain = |text: &str| text.trim_matches(|c: char| " '\"`.".contains(c)).to_owned();
        if let Some((_, ids)) = message.split_once(PROTECTED) {
            return ids.split(',').map(plain).collect();
        }
        let Some((_, scopes)) = message.split_once(LOCKED) else { return Vec::new() };
        let scopes = scopes.split("Please remove").next().unwrap_or(scopes);
        let locked = scopes.split(',').map(plain).map(|scope| {
            let (before, name) = scope.rsplit_once('/').unwrap_or_default();
            let is_machine = before.to_ascii_lowercase().ends_with("/virtualmachines");
            is_machine.then(|| name.to_owned())
        });
        // Where something else is locked as well, no batch is taken.
        locked.collect::<Option<Vec<String>>>().unwrap_or_default()
    });
    let first: Option<Vec<String>> = found.into_iter().find(|ids| !ids.is_empty());
    first.into_iter().flatten().filter(|id| !id.is_empty()).map(InstanceId::new).collect()
}

/// "…in zone 2."
fn zone(faults: &Faults) -> Option<Zone> {
    faults.deepest_first().filter_map(|fault| fault.message.as_deref()).find_map(|message| {
        let (_, rest) = message.split_once("in zone ")?;
        let rest = rest.trim_start_matches(['\'', '"']);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        // Azure numbers them from 1 to 3.
        (1..=3).contains(&digits.len()).then(|| Zone::new(digits))
    })
}

pub(super) fn shorten(message: &str) -> String {
    cut(&message.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_SAYING)
}

/// For holds, records and history. Addresses in it lose what follows their path, where signatures stand.
fn kept(message: &str) -> Box<str> {
    let without_query = |word: &str| match word.split_once('?') {
        Some((address, _)) if address.contains("://") => format!("{address}?…"),
        _ => word.to_owned(),
    };
    let words: Vec<String> = message.split_whitespace().map(without_query).collect();
    cut(&words.join(" "), LONGEST_MESSAGE).into()
}

fn short(code: &str) -> Box<str> {
    cut(code, LONGEST_CODE).into()
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
