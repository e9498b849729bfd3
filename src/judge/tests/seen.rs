//! Law 5.

use super::*;
use RemovalReason::Outdated;

fn four() -> Pool {
    Pool::of(3, 1, 1).serving("abc", OLD).serving("n", NEW)
}

fn cut(pool: Pool) -> Pool {
    pool.set(|pool| pool.set.complete = false)
}

fn stale(pool: Pool) -> Pool {
    pool.set(|pool| pool.now = NOW.plus(Span::seconds(59)))
}

#[test]
fn the_picture() {
    lawful("seen", &four().delete("a", Outdated));
    breaks(&[5], "cut short", &cut(four()).delete("a", Outdated));
    breaks(&[5], "too old", &stale(four()).delete("a", Outdated));
    breaks(
        &[5],
        "from a time to come",
        &four().set(|pool| pool.now = ago(Span::hours(1))).delete("a", Outdated),
    );
    let gray = four().edit("a", |m| m.lifecycle = Lifecycle::CutOff);
    lawful("taking back is free", &stale(cut(gray)).restore("a"));
    let late = four().set(|pool| pool.set.read_at = NOW).delete("a", Outdated);
    let late = late.set(|pool| pool.set.read_at = ago(Span::seconds(30)));
    breaks(&[5], "may be sent too late", &late);
    let brief = |before: Time| {
        four().delete("a", Outdated).set(|pool| {
            if let Action::Delete { before: until, .. } = &mut pool.actions[0] {
                *until = before;
            }
        })
    };
    breaks(&[5], "sent after its own last moment", &brief(ago(Span::seconds(1))));
    lawful("sent at its own last moment", &brief(NOW));
    let other = Pool::of(3, 1, 0).serving("abc", OLD).raise(1);
    let other = other.set(|pool| pool.set.etag = Some(Etag::new("8")));
    breaks(&[5], "expects another version of the set", &other);
}

#[test]
fn our_own_answers() {
    let after = |events: &[(Span, EntryEvent)]| {
        let pool = four().delete("b", Outdated).earlier(Span::seconds(9), events);
        pool.delete("a", Outdated)
    };
    let answer = |at: i64| accepted(Span::seconds(at));
    lawful("read since", &after(&answer(5)));
    breaks(&[5], "newer than the read", &after(&answer(1)));
    let withdrawn = [(Span::seconds(1), EntryEvent::Ended(EntryOutcome::Withdrawn))];
    lawful("withdrawn: it changed nothing", &after(&withdrawn));
    let drain = four().drain("b", Outdated).earlier(Span::seconds(9), &answer(1));
    lawful("a drain does not change the set", &drain.delete("a", Outdated));
}

#[test]
fn the_machines() {
    breaks(&[5], "not in the listing", &four().edit("a", |m| m.missed = 1).delete("a", Outdated));
    let gone = four().delete("a", Outdated).set(|pool| {
        pool.machines.retain(|m| m.id.as_str() != "a");
    });
    breaks(&[5], "not known at all", &gone);
    let unknown = four().edit("a", |m| m.condition = Condition::Unknown);
    breaks(&[5], "condition not known", &unknown.delete("a", Outdated));
    let revision = four().edit("a", |m| m.revision = None);
    breaks(&[5, 6], "revision not known", &revision.delete("a", Outdated));
}
