//! Interprets ARM's refusals. This is decided only here: no inner module reads a status, a code or a message text.
//!
//! The order is: throttling (by status or by a nested code), message texts if a code is ambiguous, the innermost code,
//! the status. A request that may have taken effect is `Unclear`: a new listing resolves that, never a retry.
//! Begin with [`of_answer`] and [`of_operation`]; `codes` is the table of codes.

mod codes;
#[cfg(test)]
mod tests;

use crate::adapters::azure::http::ArmReply;
use crate::adapters::azure::wire::{ArmFault, ArmFaults};
use crate::model::ids::{InstanceId, Zone};
use crate::model::journal::{Refusal, Refused};
use crate::model::time::Span;

pub(super) use codes::NOT_BY_FORCE;
use codes::{CodeMeaning, by_code, by_text, is_wrapper};

/// How long to wait after throttling without Retry-After.
// 1 min: the window of every documented policy.
const THROTTLED_FOR: Span = Span::minutes(1);

/// What a 429 may mean other than throttling.
const NO_RATE: [Refusal; 4] =
    [Refusal::Conflict, Refusal::Preempted, Refusal::Quota, Refusal::NoCapacity];

/// Maximum length of a message in errors and logs.
const LONGEST_SAYING: usize = 400;

/// Maximum length of a message that a hold shows and a record stores.
// 300: the cause is in the first sentence or two.
const LONGEST_MESSAGE: usize = 300;

/// Maximum length of a code and of a request id.
const LONGEST_CODE: usize = 100;

/// A refusal with the details that people and Azure support need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalDetail {
    pub refused: Refused,
    pub message: Box<str>,
    /// The subject of the refusal: a field, an instance id, a throttling policy.
    pub target: Option<Box<str>>,
    /// The machines that alone prevent the request, if the response names them.
    pub machines: Vec<InstanceId>,
    pub request_id: Option<Box<str>>,
}

impl RefusalDetail {
    /// One line: the code, the message, and the request id for Azure support.
    pub fn say(&self) -> Box<str> {
        let code = self.refused.code.as_deref().unwrap_or(self.refused.refusal.name());
        let id = self.request_id.as_deref().map(|id| format!(" (request {id})"));
        format!("{code}: {}{}", self.message, id.unwrap_or_default()).into()
    }
}

/// Interprets a response without success.
pub(super) fn of_answer(reply: &ArmReply) -> RefusalDetail {
    let faults = ArmFaults::read(&reply.body);
    let (meaning, code) = meaning(reply.status, &faults);
    let code = code.as_deref().map(short);
    let refusal = match meaning {
        CodeMeaning::Is(Refusal::Gone) if !is_of_arm(reply, &faults) => Refusal::Unclear,
        CodeMeaning::Is(refusal) => refusal,
        // In a response to a request, this does not tell what the request did.
        CodeMeaning::BadMachine => Refusal::Unclear,
    };
    let until = reply.retry_at().or_else(|| wait_in(&faults).map(|w| reply.at.plus(w)));
    let retry_at = match refusal {
        Refusal::Throttled => Some(until.unwrap_or(reply.at.plus(THROTTLED_FOR))),
        _ => until,
    };
    let message = faults.told(|f| f.message.as_deref().filter(|m| !m.starts_with('{')));
    let said = message.map(kept);
    let message = message.map_or_else(|| format!("ARM answered {}", reply.status), shorten);
    RefusalDetail {
        refused: Refused { refusal, code, message: said, zone: zone(&faults), retry_at },
        message: message.into(),
        target: faults.told(|f| f.target.as_deref()).map(Into::into),
        machines: if refusal == Refusal::Forbidden { machines(&faults) } else { Vec::new() },
        request_id: reply.request_id().map(short),
    }
}

/// Interprets the error of a failed operation. `None`: the operation completed, but a machine that it created is bad.
pub(super) fn of_operation(
    fault: Option<ArmFault>,
    zone_of: impl Fn(&str) -> Option<Zone>,
) -> Option<RefusalDetail> {
    let faults = fault.map(ArmFaults::of).unwrap_or_default();
    let (meaning, code) = meaning(200, &faults);
    let code = code.as_deref().map(short);
    let CodeMeaning::Is(refusal) = meaning else { return None };
    let target = faults.told(|f| f.target.as_deref());
    let zonal = code.as_deref().is_some_and(|code| code.to_ascii_lowercase().contains("zonal"));
    let zone = zone(&faults).or_else(|| target.and_then(zone_of).filter(|_| zonal));
    let message = faults.told(|f| f.message.as_deref().filter(|m| !m.starts_with('{')));
    let said = message.map(kept);
    let message = message.map_or_else(String::new, shorten);
    Some(RefusalDetail {
        refused: Refused { refusal, code, message: said, zone, retry_at: None },
        message: message.into(),
        target: target.map(Into::into),
        machines: Vec::new(),
        request_id: None,
    })
}

/// A wait that is given only in the message text.
pub(super) fn wait_in_message(reply: &ArmReply) -> Option<Span> {
    wait_in(&ArmFaults::read(&reply.body))
}

/// Whether ARM sent it: a "not found" from a proxy or another server does not prove that a resource is gone.
fn is_of_arm(reply: &ArmReply, faults: &ArmFaults) -> bool {
    let signed = ["x-ms-request-id", "x-ms-correlation-request-id", "x-ms-failure-cause"];
    !faults.is_empty() || signed.iter().any(|name| reply.header(name).is_some())
}

/// `status` 200 means the error of an operation.
fn meaning(status: u16, faults: &ArmFaults) -> (CodeMeaning, Option<Box<str>>) {
    let outer = faults.outermost().and_then(|fault| fault.code.as_deref());
    let code_of = |fault: &ArmFault| fault.code.as_deref().map(Box::<str>::from);
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
    let is = |wanted: Refusal| matches!(&found, Some((CodeMeaning::Is(r), _)) if *r == wanted);
    let code = || found.as_ref().and_then(|(_, code)| code.clone()).or(outer.map(Into::into));
    match status {
        // Some providers return 429 when they are busy or full, although no rate limit was exceeded.
        429 if !NO_RATE.into_iter().any(is) => (CodeMeaning::Is(Refusal::Throttled), code()),
        _ if is(Refusal::Throttled) => (CodeMeaning::Is(Refusal::Throttled), code()),
        408 | 500.. => (CodeMeaning::Is(Refusal::Unclear), code()),
        _ => match found {
            Some((meaning, code)) => (meaning, code),
            None => (CodeMeaning::Is(by_status(status, outer)), outer.map(Into::into)),
        },
    }
}

fn by_status(status: u16, code: Option<&str>) -> Refusal {
    let is = |name: &str| code.is_some_and(|code| code.eq_ignore_ascii_case(name));
    match status {
        // `OperationNotAllowed` or `Conflict` with an unknown text: a temporary obstacle.
        _ if is("OperationNotAllowed") || is("Conflict") => Refusal::Conflict,
        401 | 403 => Refusal::Forbidden,
        404 | 410 => Refusal::Gone,
        409 | 412 | 423 => Refusal::Conflict,
        400..500 => Refusal::Invalid,
        _ => Refusal::Unclear,
    }
}

/// Some responses give the wait only in the text: "after '6' seconds", "in 30 seconds", "for 180 seconds".
fn wait_in(faults: &ArmFaults) -> Option<Span> {
    faults.deepest_first().filter_map(|fault| fault.message.as_deref()).find_map(|message| {
        let before = message.split("second").next().filter(|b| b.len() < message.len())?;
        let number = before.trim_end().trim_end_matches('\'');
        let digits = number.len() - number.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let seconds: i64 = number.get(number.len() - digits..)?.parse().ok()?;
        Some(Span::seconds(seconds.min(3_600)))
    })
}

/// Machines with locks, and protected machines. A lock on the set or above it names no machine.
fn machines(faults: &ArmFaults) -> Vec<InstanceId> {
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
        // If anything besides machines is locked, ARM rejects every batch.
        locked.collect::<Option<Vec<String>>>().unwrap_or_default()
    });
    let first: Option<Vec<String>> = found.into_iter().find(|ids| !ids.is_empty());
    first.into_iter().flatten().filter(|id| !id.is_empty()).map(InstanceId::new).collect()
}

/// "…in zone 2."
fn zone(faults: &ArmFaults) -> Option<Zone> {
    faults.deepest_first().filter_map(|fault| fault.message.as_deref()).find_map(|message| {
        let (_, rest) = message.split_once("in zone ")?;
        let rest = rest.trim_start_matches(['\'', '"']);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        // Azure numbers zones from 1 to 3.
        (1..=3).contains(&digits.len()).then(|| Zone::new(digits))
    })
}

pub(super) fn shorten(message: &str) -> String {
    cut(&message.split_whitespace().collect::<Vec<_>>().join(" "), LONGEST_SAYING)
}

/// Shortens a message for holds, records and history. Removes the query strings of URLs, which may contain signatures.
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
