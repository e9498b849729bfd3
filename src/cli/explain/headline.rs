//! The answer of an explanation in one line, and the page about a whole pool that it begins.

use crate::cli::page::{PoolFacts, StatusPage, circumstances, object, reason_and_message, remedy};
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
    let (plan, now) = (&facts.plan, facts.at());
    let name = plain(&plan.pool);
    let acts = plan.actions.iter().map(|action| format!("{} {}", action.verb, object(action)));
    let acts = acts.collect::<Vec<_>>().join(", ");
    let why = facts.foremost().map(|hold| {
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
            plan.resolved.available,
            count(plan.resolved.desired as usize, "machine"),
            plan.resolved.outdated
        ),
    };
    format!("{say}; next check {}", when(plan.next_check_at.0, now)).replace(TIE, " ")
}
