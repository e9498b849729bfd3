//! Operators' commands in this very plan, and their scope: a verb excuses only the move that it names.

use super::facts::View;
use crate::model::plan::{Command, CommandVerb, WaitKind};
use crate::model::rollout::Wait;

/// Commands that this plan records as carried out.
pub(super) fn said<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Command> {
    let before = view.case.before.map_or(&[][..], |before| &before.honoured);
    let now = &view.case.planned.state.honoured;
    let new = |ask: &&Command| now.contains(&ask.id) && !before.contains(&ask.id);
    view.case.commands.iter().filter(new)
}

/// Operators used one of these verbs.
pub(super) fn heard(view: &View, verbs: &[CommandVerb]) -> bool {
    said(view).any(|ask| verbs.contains(&ask.verb))
}

/// An operator skips every wait of the rollout.
pub(super) fn heard_fully(view: &View) -> bool {
    said(view).any(|ask| ask.verb == CommandVerb::Promote && ask.about.full)
}

/// A wait of this kind that the given memory had, and that an operator who could see it approved.
pub(super) fn approved<'a>(view: &View<'a>, what: WaitKind) -> Option<&'a Wait> {
    let shown = &view.case.before?.waiting;
    let now = view.case.planned.report.at;
    let mut approvals =
        said(view).filter(|ask| ask.verb == CommandVerb::Approve && ask.about.gate.is_none());
    approvals.find_map(|ask| {
        let about = &ask.about;
        // Without a name the command is about the only wait.
        let named = match about.what {
            Some(named) => named == what,
            None => shown.len() == 1,
        };
        let seen = |wait: &&Wait| {
            let number = about.number.is_none() || about.number == wait.number;
            let revision = about.revision.is_none() || about.revision == wait.revision;
            wait.what == what && number && revision && wait.since <= ask.at.min(now)
        };
        shown.iter().filter(|_| named).find(seen)
    })
}
