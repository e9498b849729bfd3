//! What refused requests hold up: the next try of the whole pool, and the delete that runs alone.

use crate::model::action::ActionKind;
use crate::model::command::CommandName;
use crate::model::hold::HoldReason;
use crate::model::journal::refusal_reason;
use crate::model::rollout::RequestBackOff;
use crate::plan::basis::Basis;
use crate::plan::holds::Holds;
use crate::plan::setbacks::waited_until;

pub(super) fn tell(basis: &Basis, holds: &mut Holds) {
    if let Some(delete) = basis.why_not.lone_delete {
        let say = "a delete that newer requests interrupted before now runs alone: nothing else is written to the scale set until it ends";
        let (targets, until) = (delete.action.targets(), waited_until(basis.input, delete));
        let hold = holds.add(HoldReason::RemovalRefused, say).again(until);
        hold.number("machines", targets.len() as i64);
        hold.blockers.extend(targets.iter().map(|target| target.id.as_str().into()));
    }
    for back_off in &basis.memory.request_backoff {
        if back_off.until <= basis.input.now {
            continue;
        }
        let RequestBackOff { refusal, code, message, .. } = back_off;
        let why = refusal_reason(*refusal, code.as_deref(), message.as_deref());
        let until = back_off.until;
        let refused = |what| {
            format!(
                "Azure refused {what} ({why}); no other machine is taken out of service for it before {until}"
            )
        };
        let say = match back_off.verb {
            ActionKind::Reimage => refused("an update in place"),
            ActionKind::Standby => format!(
                "Azure refused to switch machines off ({why}); surplus is watched while it runs, and none is switched off before {until}"
            ),
            _ => refused("a delete"),
        };
        let hold = holds.add(HoldReason::RemovalRefused, say);
        hold.number("times", i64::from(back_off.times))
            .again(back_off.until)
            .ask(CommandName::Retry);
    }
}
