//! Failed, unready, unseen: what is repaired, what is waited for, and when repair stops itself.

use poolkeeper::model::command::CommandName;
use poolkeeper::model::journal::{EntryOutcome, Refusal};
use poolkeeper::model::machine::{Condition, Lifecycle, Machine};
use poolkeeper::model::plan::{CommandVerb, MachineReason};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, refused};

fn pool(desired: u32, surge: &str, unavailable: &str) -> Pool {
    Pool::new(desired, surge, unavailable).settled()
}

#[test]
fn who_is_failed() {
    let after = |condition, minutes| {
        pool(3, "1", "0").new_ready(3).gone_for("n1", condition, Span::minutes(minutes)).plan()
    };
    for condition in [Condition::Failed, Condition::Unready, Condition::Stopped] {
        after(condition, 9).does(None, &[]).says("grace");
        assert_eq!(after(condition, 10).deleted(), ["n1"], "{condition:?}");
        assert_eq!(after(condition, 10).class("n1"), "failed");
    }
    // A machine that serves is no failure, whatever else is said of it; one we cannot see is none either.
    assert_eq!(after(Condition::Ready, 600).class("n1"), "current");
    after(Condition::Unknown, 600).does(None, &[]);
}

#[test]
fn a_flash_of_illness_buys_no_machine() {
    let ill = pool(3, "1", "0").new_ready(3).gone_for("n1", Condition::Failed, Span::seconds(5));
    ill.plan().does(None, &[]);
}

#[test]
fn a_new_machine_has_until_its_deadline() {
    let born = |minutes: i64| {
        let born = NOW.minus(Span::minutes(minutes));
        let young = pool(3, "1", "0").new_ready(2).new_young(1);
        young
            .edit("n3", |m| {
                (m.created, m.imaged, m.first_seen, m.since) = (born, born, born, born);
            })
            .plan()
    };
    born(19).does(None, &[]);
    assert_eq!(born(19).class("n3"), "notYetAvailable");
    assert_eq!(born(20).deleted(), ["n3"]);
    // Ready, but not for long enough: no longer booting, not yet available.
    let settling = pool(3, "1", "0").new_ready(2).new_young(1).edit("n3", |m| {
        (m.condition, m.since) = (Condition::Ready, NOW.minus(Span::seconds(59)));
    });
    assert_eq!(settling.plan().planned.report.numbers.available, 2);
}

/// Two of four may look failed before repair stops itself.
fn tolerant() -> Pool {
    pool(4, "0", "1").policy(|d| d.repair.breaker_percent = 50)
}

#[test]
fn failed_machines_are_free_of_the_floor_and_go_one_at_a_time() {
    let turn = tolerant().new_ready(2).new_failed(2).plan();
    assert_eq!(turn.deleted().len(), 1);
    turn.says("repairInTurn");
    // While one is leaving and nothing replaced it yet, the next waits.
    let leaving = tolerant().new_ready(2).new_failed(2).lifecycle(
        "n3",
        Lifecycle::Deleting,
        Span::seconds(20),
    );
    let at = NOW.minus(Span::seconds(20));
    let leaving = leaving.delete_entry(
        &["n3"],
        poolkeeper::model::action::RemovalReason::Failed,
        Span::seconds(20),
        poolkeeper::model::journal::Phase::Accepted { at, operation: None },
    );
    leaving.plan().does(None, &[]);
}

#[test]
fn the_breaker_trips_on_many_that_had_served_and_small_pools_are_repaired() {
    for desired in [1, 2] {
        let turn = pool(desired, "1", "0").new_ready(desired as usize - 1).new_failed(1).plan();
        assert_eq!(turn.deleted(), [format!("n{desired}")]);
    }
    let many = |failed: usize| {
        let pool = pool(10, "1", "0").new_ready(10 - failed).new_failed(failed);
        pool.each(|m: &mut Machine| {
            if m.condition == Condition::Failed {
                m.since = NOW.minus(Span::minutes(11));
            }
        })
    };
    assert_eq!(many(4).plan().deleted().len(), 1);
    let open = many(5);
    let turn = open.plan();
    // What is missing is made all the same.
    turn.does(Some(11), &[]).says("breaker");
    assert_eq!(turn.report("n6").why, MachineReason::FailedBreaker);
    // A person closes it; time does not.
    assert_eq!(open.clone().ask(CommandVerb::ResetBreaker).plan().deleted().len(), 1);
    let later = open.after(&turn, Span::hours(3));
    later.plan().does(Some(11), &[]).says("breaker");
}

#[test]
fn an_image_that_fails_does_not_trip_the_breaker() {
    // Replacements that never served are the rollout's business: they leave, and the way back stays open.
    let bad = Pool::new(10, "5", "0").old_ready(10).new_failed(5).each(|m| {
        m.ever_available = m.condition == Condition::Ready;
    });
    let turn = bad.plan();
    turn.is_silent_on("breaker");
    assert_eq!(turn.deleted().len(), 1);
}

#[test]
fn the_breaker_holds_repair_and_not_the_fix() {
    let pool = Pool::new(10, "1", "0").old_ready(6).old_failed(5).each(|m| {
        if m.condition == Condition::Failed {
            m.since = NOW.minus(Span::minutes(11));
        }
    });
    let turn = pool.policy(|d| d.rollout.max_unavailable = five()).plan();
    turn.says("breaker");
    assert_eq!(turn.deleted(), ["o1"]);
}

#[test]
fn a_replacement_is_no_leave_for_those_that_only_look_failed() {
    // Five of ten look failed at once, and three replacements are there: eight exist, and thirteen live.
    let look_failed = |served: bool| {
        pool(10, "3", "0").new_ready(5).new_failed(5).new_young(3).each(|m: &mut Machine| {
            if m.condition == Condition::Failed {
                m.since = NOW.minus(Span::minutes(11));
                m.ever_available = served || m.id.as_str() != "n6";
            }
        })
    };
    let open = look_failed(true);
    let turn = open.plan();
    turn.does(None, &[]).says("breaker");
    assert_eq!(turn.hold("breaker").unwrap().verb(), Some(CommandName::ResetBreaker));
    // One that never served is no evidence of anything: it goes. The others were four, and trip nothing.
    let never = look_failed(false).policy(|d| d.repair.breaker_percent = 30);
    never.plan().does(None, &["n6"]).says("breaker");
    // Who is named goes, and all go on when a person says so.
    assert_eq!(open.clone().named("n7", false).plan().deleted(), ["n7"]);
    assert!(!open.ask(CommandVerb::ResetBreaker).plan().deleted().is_empty());
}

#[test]
fn the_breaker_stops_no_small_pool_for_good() {
    let both = pool(2, "1", "0").new_failed(2).new_young(1).each(|m: &mut Machine| {
        if m.condition == Condition::Failed {
            m.since = NOW.minus(Span::minutes(11));
        }
    });
    let turn = both.plan();
    turn.does(None, &[]).says("breaker");
    assert_eq!(both.clone().ask(CommandVerb::ResetBreaker).plan().deleted().len(), 1);
    // The third serves: the cloud makes good ones.
    let mut later = both.after(&turn, Span::minutes(10));
    later.machine_mut("n3").first_seen = NOW.plus(Span::minutes(1));
    let later = later.gone_for("n3", Condition::Ready, Span::minutes(5));
    let later = later.edit("n3", |m| m.ever_available = true);
    assert_eq!(later.plan().deleted().len(), 1);
}

fn five() -> poolkeeper::model::quantity::Quantity {
    poolkeeper::model::quantity::Quantity::of(5)
}

#[test]
fn what_the_autoscaler_removes_is_neither_counted_as_serving_nor_touched() {
    let pool = |removes: bool| {
        let mut pool = Pool::new(10, "1", "0").old_ready(10).new_ready(1);
        pool.machine_mut("o1").condition = Condition::Unknown;
        if removes {
            let id = pool.machine("o1").id.clone();
            pool.facts.autoscaler_removes.push(id);
        }
        pool.plan()
    };
    let (removed, unseen) = (pool(true), pool(false));
    assert_eq!(removed.report("o1").why, MachineReason::AutoscalerRemoves);
    assert!(
        removed.hold("listingIncomplete").is_none() && unseen.hold("listingIncomplete").is_some()
    );
    assert_eq!((removed.raise(), removed.deleted()), (unseen.raise(), unseen.deleted()));
    assert!(!removed.deleted().contains(&"o1"));
}

#[test]
fn what_we_cannot_see_is_no_reason_to_remove() {
    let unseen = |n: usize| {
        let mut pool = Pool::new(10, "1", "0").old_ready(10).new_ready(1);
        for machine in pool.machines.iter_mut().take(n) {
            machine.condition = Condition::Unknown;
        }
        pool.plan()
    };
    unseen(10).does(None, &[]).says("healthBlind");
    for many in [3, 1] {
        let mut away = Pool::new(many, "1", "0").old_ready(many as usize);
        away.facts.nodes_unseen = Some("the cluster did not answer".into());
        let turn = away.each(|machine| machine.condition = Condition::Unknown).plan();
        let hold = &turn.hold("healthBlind").unwrap().message;
        assert!(hold.ends_with("; no machine is removed: the cluster did not answer"), "{hold}");
    }
    unseen(5).does(None, &[]).says("healthBlind");
    // Some are waited for, and the floor counts them as not serving.
    unseen(2).does(None, &[]).says("listingIncomplete");
    // An unseen machine still fills its place.
    assert_eq!(unseen(2).raise(), None);
}

#[test]
fn the_hold_says_that_a_new_node_has_the_id_of_a_machine_that_is_not_seen() {
    let anew = |n: usize| {
        let mut pool = Pool::new(10, "1", "0").old_ready(10).new_ready(1);
        for machine in pool.machines.iter_mut().take(n) {
            machine.condition = Condition::Unknown;
            pool.facts.nodes_anew.push(machine.id.clone());
        }
        let turn = pool.plan();
        let hold = turn.hold("listingIncomplete").or_else(|| turn.hold("healthBlind"));
        hold.unwrap().message.to_string()
    };
    let until = "may be of another machine until it is a quarter of an hour old";
    assert_eq!(
        anew(1),
        format!(
            "1 machine is not visible; Poolkeeper waits; a new node has the id of 1, and {until}"
        )
    );
    assert!(anew(2).contains("; new nodes have the ids of 2, and may be"), "{}", anew(2));
    assert!(
        anew(10).contains("no machine is removed; new nodes have the ids of 10"),
        "{}",
        anew(10)
    );
}

#[test]
fn half_a_pool_that_turns_at_once_is_our_own_blindness() {
    let turned = |apart: i64, ago: i64| {
        let mut pool = pool(10, "1", "0").new_ready(10);
        for (n, machine) in pool.machines.iter_mut().take(6).enumerate() {
            machine.condition = Condition::Unready;
            machine.since = NOW.minus(Span::seconds(ago + apart * n as i64));
        }
        pool
    };
    turned(5, 60).plan().does(None, &[]).says("healthBlind");
    turned(30, 60).plan().is_silent_on("healthBlind").says("grace");
    turned(5, 700).plan().does(None, &[]).says("healthBlind");
    // An hour after the first of them they are what they are shown to be, and then it is for the breaker.
    turned(5, 3_574).plan().does(None, &[]).says("healthBlind");
    turned(5, 3_575).plan().does(Some(11), &[]).is_silent_on("healthBlind").says("breaker");
    // All that turned in that minute are hidden by it, and not only so many as make more than half.
    let mut nine = turned(5, 700);
    for (n, machine) in nine.machines.iter_mut().skip(6).take(3).enumerate() {
        machine.condition = Condition::Unready;
        machine.since = NOW.minus(Span::seconds(690 - n as i64));
    }
    let turn = nine.plan();
    turn.does(None, &[]).is_silent_on("grace");
    assert_eq!(turn.class("n9"), "unknown");
    // A node that is silent alone is ill.
    let alone =
        pool(3, "1", "0").new_ready(3).gone_for("n1", Condition::Unready, Span::minutes(11));
    assert_eq!(alone.plan().deleted(), ["n1"]);
}

#[test]
fn a_cut_or_old_listing_does_nothing_and_remembers_nothing() {
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).new_failed(1);
    assert!(!pool.plan().is_idle());
    let cut = pool.clone().set(|set| set.complete = false);
    let old = pool.clone().set(|set| set.read_at = NOW.minus(Span::seconds(61)));
    let asked = pool.clone().ask(CommandVerb::Refresh).set(|set| set.complete = false);
    for (pool, hold) in
        [(cut, "listingIncomplete"), (old, "listingStale"), (asked, "listingIncomplete")]
    {
        let turn = pool.plan();
        turn.does(None, &[]).says(hold);
        assert!(turn.is_idle() && turn.accepted().iter().all(|yes| !yes));
        assert_eq!(Some(&turn.planned.state), turn.before.as_ref());
    }
    let old = pool.clone().set(|set| set.read_at = NOW.minus(Span::seconds(61))).plan();
    assert_eq!(old.hold("listingStale").unwrap().numbers, [("ageSeconds", 61)]);
    // So is one that began before our last write was answered.
    let answered = pool.delete_open(&["o1"], Span::ZERO).plan();
    assert_eq!(answered.hold("listingStale").unwrap().numbers, [("ageSeconds", 1)]);
}

#[test]
fn nothing_rests_on_a_read_older_than_our_own_last_answer() {
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1);
    let pool = pool.raise_open(3, 4, Span::ZERO).capacity(4);
    pool.plan().does(None, &[]);
}

#[test]
fn a_doubt_is_settled_by_a_later_look_and_never_by_asking_again() {
    use poolkeeper::model::action::RemovalReason;
    use poolkeeper::model::journal::Phase;
    let doubt = |ago: Span| {
        let at = NOW.minus(ago);
        let pool = Pool::new(2, "1", "0").settled().new_ready(1).new_failed(1);
        pool.lifecycle("n2", Lifecycle::Deleting, ago).delete_entry(
            &["n2"],
            RemovalReason::Failed,
            ago,
            Phase::Doubtful { at },
        )
    };
    doubt(Span::ZERO).plan().does(None, &[]).says("deleteInDoubt");
    // A later look shows it: it was not deleted, and is planned anew after a moment.
    doubt(Span::seconds(20)).plan().does(None, &[]).is_silent_on("leaving");
    assert_eq!(doubt(Span::minutes(1)).plan().deleted(), ["n2"]);
}

#[test]
fn an_id_that_is_used_again_is_another_machine() {
    // A delete of the first n2 is open; n2 is young now, and another.
    let mut pool =
        Pool::new(2, "1", "0").settled().new_ready(2).delete_open(&["n2"], Span::minutes(9));
    let vm = poolkeeper::model::ids::VmId::new("vm-later");
    pool = pool.edit("n2", |m| m.vm = Some(vm));
    assert_eq!(pool.plan().class("n2"), "current");
    // Without an identity its birth tells.
    let without = |pool: Pool| pool.each(|m| m.vm = None);
    let mut pool = without(Pool::new(2, "1", "0").settled().new_ready(2))
        .delete_open(&["n2"], Span::minutes(9));
    assert_eq!(pool.plan().class("n2"), "deleting");
    pool = pool.edit("n2", |m| m.created = NOW.minus(Span::minutes(5)));
    assert_eq!(pool.plan().class("n2"), "current");
}

#[test]
fn rows_of_a_machine_that_is_gone_are_ghosts() {
    // o1 was deleted, and the list still shows it as ready: counting it would take the pool below its floor.
    let pool = Pool::new(2, "1", "0").old_ready(2).new_ready(1);
    let ghost = pool.delete_ended(&["o1"], Span::seconds(30), EntryOutcome::Done).capacity(2);
    let turn = ghost.plan();
    turn.does(None, &[]);
    assert_eq!(turn.planned.report.numbers.available, 2);
    assert_eq!(turn.report("o1").why, MachineReason::Ghost);
    // The entry is dropped, the row stays, and so does the memory of it.
    let mut later = ghost.after(&turn, Span::minutes(5));
    later.open.clear();
    assert_eq!(later.plan().planned.report.numbers.available, 2);
    // A ghost that does not go is told at last, and a person may abandon it.
    let late = later.clone().after(&later.plan(), Span::minutes(40));
    late.plan().says("stuckDelete");
    let off = late.ask(CommandVerb::Abandon(poolkeeper::model::ids::InstanceId::new("o1")));
    off.plan().does(Some(3), &[]).is_silent_on("stuckDelete");
}

#[test]
fn gone_is_success_on_a_delete() {
    let pool = Pool::new(2, "1", "0").old_ready(2).new_ready(1);
    let gone = pool.delete_ended(&["o1"], Span::seconds(30), refused(Refusal::Gone));
    assert_eq!(gone.plan().report("o1").why, MachineReason::Ghost);
}

#[test]
fn spot_machines_that_were_taken_are_replaced() {
    // Taken away with its place: the size is ours, so it comes back.
    pool(5, "1", "0").new_ready(4).state(|s| s.desired.explained = 5).plan().does(Some(5), &[]);
    // Stopped in place: it counts until it has been so for long.
    let stopped = pool(5, "1", "0").new_ready(5).gone_for("n1", Condition::Stopped, Span::hours(1));
    assert_eq!(stopped.plan().deleted(), ["n1"]);
}

#[test]
fn machines_the_cloud_deletes_by_itself_are_on_their_way_out() {
    let pool = pool(3, "1", "0").new_ready(3).gone_for("n1", Condition::Deleting, Span::minutes(1));
    let turn = pool.clone().capacity(2).plan();
    turn.does(Some(3), &[]);
    assert_eq!(
        (turn.class("n1"), turn.report("n1").why),
        ("deleting", MachineReason::CloudDeletes)
    );
    // While the capacity counts it, a raise might bring it back; one that does not end keeps nothing waiting.
    pool.clone().plan().does(None, &[]).says("leaving");
    let stuck = pool.policy(|d| d.rollout.max_surge = Quantity::count(2).unwrap());
    stuck.gone_for("n1", Condition::Deleting, Span::hours(1)).plan().does(Some(3), &[]);
}

#[test]
fn in_a_pool_of_one_or_two_all_must_be_gone_and_something_else_must_say_so() {
    use poolkeeper::model::plan::{Witness, WitnessKind};
    let gone = |desired: u32, gone: i64, witness: Option<i64>| {
        let mut pool = pool(desired, "1", "0").new_ready(desired as usize);
        for (n, machine) in (0..gone).zip(&mut pool.machines) {
            machine.condition = Condition::Unready;
            machine.since = NOW.minus(Span::seconds(700 + 20 * n));
        }
        let at = |ago: i64| NOW.minus(Span::seconds(ago));
        let witness = witness.map(|ago| Witness { what: WitnessKind::Pool, at: at(ago) });
        pool.facts.witnesses.extend(witness);
        pool.plan()
    };
    for (desired, lost, witness, class) in [
        (2, 2, None, "failed"),
        (2, 2, Some(720), "unknown"),
        (2, 2, Some(779), "unknown"),
        (2, 2, Some(660), "unknown"),
        (2, 2, Some(781), "failed"),
        (2, 2, Some(659), "failed"),
        (2, 1, Some(700), "failed"),
        (1, 1, None, "failed"),
        (1, 1, Some(700), "unknown"),
        (3, 2, None, "unknown"),
        (3, 1, Some(700), "failed"),
    ] {
        let turn = gone(desired, lost, witness);
        assert_eq!(turn.class("n1"), class, "{lost} of {desired}, witness {witness:?}");
        assert!(class == "failed" || turn.deleted().is_empty());
    }
}

#[test]
fn one_that_may_be_gone_is_counted_on_only_where_it_served() {
    let pool = |served| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(3);
        let doubt = (pool.machine("n3").key(), NOW.minus(Span::minutes(2)));
        let pool = pool.edit("n3", |m| m.ever_available = served);
        pool.state(|s| s.doubted.push(doubt))
    };
    let numbers = |served| pool(served).plan().planned.report.numbers;
    assert_eq!((numbers(true).committed, numbers(true).not_yet_available), (3, 0));
    assert_eq!((numbers(false).committed, numbers(false).not_yet_available), (2, 1));
}
