//! What people said to this very plan, and what each word is about: a verb excuses the move that it names, and no other.

use super::facts::Scene;
use crate::model::plan::{Ask, AskVerb, WaitKind};
use crate::model::rollout::Wait;

/// Asks that this plan writes down as carried out.
fn said<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a Ask> {
    let before = scene.case.before.map_or(&[][..], |before| &before.honoured);
    let now = &scene.case.planned.state.honoured;
    let new = |ask: &&Ask| now.contains(&ask.id) && !before.contains(&ask.id);
    scene.case.asks.iter().filter(new)
}

/// One of these verbs was said.
pub(super) fn heard(scene: &Scene, verbs: &[AskVerb]) -> bool {
    said(scene).any(|ask| verbs.contains(&ask.verb))
}

/// A wait of this kind that stood in the memory the plan was given, and that an operator who could see it approved.
pub(super) fn approved<'a>(scene: &Scene<'a>, what: WaitKind) -> Option<&'a Wait> {
    let shown = &scene.case.before?.waiting;
    let now = scene.case.planned.report.at;
    said(scene).filter(|ask| ask.verb == AskVerb::Approve).find_map(|ask| {
        let about = &ask.about;
        // Without a name it is about the only thing there is.
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
