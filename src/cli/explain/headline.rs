//! The answer of an explanation in one line, and the page about a whole pool that it begins.

use crate::cli::page::{PoolFacts, StatusPage, circumstances, reason_and_message, remedy};
use crate::cli::text::{TIE, count, plain, when};

pub(super) fn pool(page: &mut StatusPage<'_>) {
    let line = headline(&page.facts);
    page.paragraph(&line);
    page.line("");
    page.numbers();
    page.actions();
    page.holds(true);
    page.asks();
    page.classes();
}

/// One line: what the plan does, and why it does no more.
pub(super) fn headline(facts: &PoolFacts<'_>) -> String {
    let now = facts.at;
    let name = plain(&facts.pool);
    let acts = facts.actions.iter().map(|action| format!("{} {}", action.verb, action.object));
    let acts = acts.collect::<Vec<_>>().join(", ");
    let why = facts.foremost.and_then(|at| facts.holds.get(at)).map(|hold| {
        let mut parts = vec![reason_and_message(hold, now)];
        parts.extend(circumstances(hold));
        parts.extend(remedy(hold));
        parts.join("; ")
    });
    let say = match (why, acts.is_empty()) {
        (Some(why), true) => format!("{name} waits: {why}"),
        (Some(why), false) => format!("{name} does now: {acts}; no more, because of {why}"),
        (None, false) => format!("{name} does now: {acts}; nothing stands against it"),
        (None, true) => format!(
            "{name} has nothing to do: {} of {} available, {} outdated",
            facts.available,
            count(facts.desired as usize, "machine"),
            facts.outdated
        ),
    };
    format!("{say}; next check {}", when(facts.next_check_at, now)).replace(TIE, " ")
}
