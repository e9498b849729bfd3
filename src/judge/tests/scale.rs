//! An order about the size: what it says, for how long, and who leaves by it.

use super::{NEW, NOW, Pool, ago};
use crate::model::action::RemovalReason::{DeleteRequested, Surplus};
use crate::model::ids::{CommandId, InstanceId, Key};
use crate::model::plan::{Command, CommandArgs, CommandVerb};
use crate::model::scale::ScaleOrder;
use crate::model::time::{Span, Time};

fn order(until: Time, named: &str) -> ScaleOrder {
    let key = |name: char| Key::new(format!("vm-{name}"));
    ScaleOrder {
        to: 3,
        until: Some(until),
        over: 5,
        remove: named.chars().map(key).collect(),
        earlier: Vec::new(),
        by: "ann".into(),
        why: "test".into(),
        at: ago(Span::minutes(1)),
    }
}

/// The document says five, and an order in force says three.
fn pool(machines: &str, order: &ScaleOrder) -> Pool {
    let pool = Pool::of(3, 1, 0).no_rollout().serving(machines, NEW);
    pool.recall(|state| state.scale = Some(order.clone())).set(|pool| {
        pool.draft.count = 5;
        pool.desired = Some(3);
    })
}

#[track_caller]
fn judged(name: &str, pool: &Pool, law: u8, is_broken: bool) {
    assert_eq!(pool.broken().contains(&law), is_broken, "{name}: {:?}", pool.notes());
}

#[test]
fn no_other_leaves_in_place_of_a_named_one() {
    let order = order(NOW.plus(Span::hours(1)), "ab");
    let named = pool("abcde", &order).delete("ab", DeleteRequested);
    assert!(named.broken().is_empty(), "{:?}", named.notes());
    let other = pool("abcde", &order).delete("a", DeleteRequested).delete("c", Surplus);
    judged("one of each", &other, 3, true);
    let both = pool("abcde", &order).delete("c", Surplus);
    judged("another first", &both, 3, true);
    let more = pool("abcdef", &order).delete("f", Surplus);
    judged("more exist than the names explain", &more, 3, false);
    let gone = pool("cdef", &order).delete("f", Surplus);
    judged("the named are gone", &gone, 3, false);
    let unnamed = pool("abcde", &order).delete("c", DeleteRequested);
    judged("one that no person named", &unnamed, 11, true);
    // The plan forgets the names, and the memory that it was given still has them.
    let forgets = pool("abcde", &order).delete("c", Surplus);
    let forgets = forgets.set(|pool| pool.state.scale.as_mut().unwrap().remove.clear());
    judged("forgotten names", &forgets, 3, true);
}

#[test]
fn the_named_of_a_fall_that_came_leave_while_the_next_one_waits() {
    let until = NOW.plus(Span::hours(1));
    let order = ScaleOrder { to: 2, earlier: order(until, "ab").remove, ..order(until, "c") };
    let named = pool("abcde", &order).delete("ab", DeleteRequested);
    judged("those before", &named, 3, false);
    judged("those before", &named, 11, false);
    let other = pool("abcde", &order).delete("d", Surplus);
    judged("another", &other, 3, true);
    let waits = pool("abcde", &order).delete("c", DeleteRequested);
    judged("one that waits", &waits, 11, true);
    let early = pool("abcde", &order).set(|pool| {
        let order = pool.state.scale.as_mut().unwrap();
        order.earlier.append(&mut order.remove);
    });
    judged("before its fall", &early, 12, true);
}

#[test]
fn the_size_is_what_the_order_says_until_its_very_end() {
    let goes_by = |until: Time, desired: u32| {
        let pool = pool("abcde", &order(until, "ab")).delete("a", DeleteRequested);
        pool.set(|pool| pool.desired = Some(desired))
    };
    judged("by the order", &goes_by(NOW.plus(Span::seconds(1)), 3), 2, false);
    judged("by the document, too early", &goes_by(NOW.plus(Span::seconds(1)), 5), 2, true);
    judged("by the order, too late", &goes_by(NOW, 3), 2, true);
    judged("by the document", &goes_by(NOW, 5), 2, false);
    let follows = |at: Time, count: u32, desired: u32| {
        let order = ScaleOrder { until: None, at, ..order(NOW, "ab") };
        pool("abcde", &order).delete("a", DeleteRequested).set(|pool| {
            pool.draft.count = count;
            pool.desired = Some(desired);
        })
    };
    let lately = ago(Span::minutes(9));
    judged("before the document follows", &follows(lately, 5, 3), 2, false);
    judged("after it says another number", &follows(lately, 4, 3), 2, true);
    judged("a document that never followed", &follows(ago(Span::minutes(10)), 5, 3), 2, true);
}

#[test]
fn an_order_is_one_that_a_person_gave() {
    let until = NOW.plus(Span::hours(1));
    let written = |named: &str| {
        let order = order(until, named);
        let pool = pool("abcde", &order).delete("a", DeleteRequested);
        pool.set(|pool| pool.before.as_mut().unwrap().scale = None)
    };
    let given = |pool: Pool, number: u32, accepted: bool| {
        let machines = vec![InstanceId::new("a")];
        let about = CommandArgs {
            number: Some(number),
            until: Some(until),
            machines,
            ..CommandArgs::default()
        };
        let id = CommandId::new("a");
        let (verb, by, why) = (CommandVerb::Scale, "ann".into(), "test".into());
        let command = Command { id: id.clone(), verb, by, why, at: NOW, about };
        let pool = pool.set(|pool| {
            pool.commands.push(command);
            pool.state.honoured.push(id);
        });
        if accepted { pool.asked() } else { pool }
    };
    judged("by no person", &written("a"), 12, true);
    judged("by a person", &given(written("a"), 3, true), 12, false);
    judged("of another number", &given(written("a"), 4, true), 12, true);
    judged("that was refused", &given(written("a"), 3, false), 12, true);
    judged("with another name", &given(written("ab"), 3, true), 12, true);
    let waited = ScaleOrder { to: 2, ..order(until, "b") };
    let beside = written("ab").set(|pool| pool.before.as_mut().unwrap().scale = Some(waited));
    judged("with a name that waited", &given(beside, 3, true), 12, true);
}
