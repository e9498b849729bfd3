//! Why a machine counts as outdated, in words.

use std::fmt::{self, Display, Formatter};

use crate::api::v1::wire::Rfc3339;
use crate::model::machine::Machine;
use crate::model::plan::{Decision, Input};
use crate::model::time::Time;

/// Why a machine counts as outdated.
pub(super) struct OutdatedReason<'a> {
    pub input: &'a Input<'a>,
    pub planned: &'a Decision,
    pub seen: &'a Machine,
}

impl Display for OutdatedReason<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let OutdatedReason { input, planned, seen } = self;
        let reference = planned.report.rollout.reference.as_ref();
        let older = |than: Time| seen.imaged < than;
        match (&seen.revision, reference) {
            (Some(has), Some(wanted)) if has != wanted => {
                let (has, wanted) = (planned.state.name(has), planned.state.name(wanted));
                let (short, other) = (Short(&has).to_string(), Short(&wanted).to_string());
                if short == other {
                    return write!(f, "on {has}, the target is {wanted}");
                }
                write!(f, "on {short}, the target is {other}")
            }
            _ => match (planned.state.refresh_before, input.policy.rollout.max_age) {
                (Some(asked), _) if older(asked) => write!(
                    f,
                    "its disk is from {}, before the refresh of {}",
                    Rfc3339(seen.imaged),
                    Rfc3339(asked)
                ),
                (_, Some(age)) => {
                    write!(f, "its disk is from {} and may be {age} old", Rfc3339(seen.imaged))
                }
                _ => write!(f, "its disk is from {}", Rfc3339(seen.imaged)),
            },
        }
    }
}

/// Characters of a fingerprint that tell models apart at a glance.
const SHORT: usize = 16;

/// A name, shortened if it is a fingerprint.
pub(super) struct Short<'a>(pub &'a str);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0;
        match text.char_indices().nth(SHORT).filter(|_| text.starts_with('v') && text.contains(':'))
        {
            Some((end, _)) if text.len() > SHORT + 4 => {
                write!(f, "{}…", text.get(..end).unwrap_or(text))
            }
            _ => f.write_str(text),
        }
    }
}
