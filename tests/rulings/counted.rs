//! Whether the number counts machines that are being deleted: how it is learnt, and what is raised meanwhile.

use poolkeeper::model::action::{Action, ActionKind, RemovalReason};
use poolkeeper::model::ids::{EntryId, Etag, Key};
use poolkeeper::model::inventory::{ModelFields, Orchestration};
use poolkeeper::model::journal::{EntryOutcome, Refusal, Refused};
use poolkeeper::model::machine::{Condition, Lifecycle};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::rollout::{
    BackOff, DeleteEffect, DeleteEffects, EtagVerdict, Probe, UndeliveredRaise,
};
use poolkeeper::model::time::{Span, Time};

use super::kit::{NOW, Pool};

#[test]
fn what_is_only_drained_takes_no_room_of_a_raise() {
    let pool = Pool::new(3, "2", "1").old_ready(3).nodes().capacity(3);
    let pool = pool.set(|set| set.orchestration = Orchestration::Flexible);
    let drained = pool.drain_open("o1", RemovalReason::Outdated);
    assert_eq!(drained.plan().raise(), Some((3, 5)));
}

#[test]
fn what_stays_listed_after_its_delete_may_be_made_up_for_too() {
    // The number may show the one that is going, and no longer count it: a raise brings one more then.
    let ghost = |surge: &str| {
        let pool = Pool::new(3, surge, "0").old_ready(3).new_ready(2).capacity(5);
        let pool = pool.gone_for("n2", Condition::Deleting, Span::minutes(15));
        let key = pool.machine("n2").key();
        let pool = pool.set(|set| set.orchestration = Orchestration::Flexible);
        pool.state(|s| {
            s.tombs.push((key, NOW.minus(Span::minutes(15))));
            (s.desired.explained, s.desired.shown) = (5, 5);
            s.desired.shown_since = Some(NOW.minus(Span::minutes(15)));
        })
    };
    let turn = ghost("3").plan();
    assert_eq!(turn.raise(), None);
    turn.says("capacityLags");
    assert_eq!(ghost("4").plan().raise(), Some((5, 6)));
    // Its delete goes on, and an old picture shows it as it was.
    let pool = Pool::new(3, "2", "0").old_ready(3).new_ready(1).capacity(4);
    let pool = pool.delete_open(&["n1"], Span::minutes(5));
    let pool = pool.lifecycle("n1", Lifecycle::Deleting, Span::minutes(5));
    let pool = pool.set(|set| set.orchestration = Orchestration::Flexible).state(|s| {
        (s.desired.explained, s.desired.shown) = (4, 4);
        s.desired.shown_since = Some(NOW.minus(Span::minutes(15)));
    });
    assert_eq!(pool.plan().raise(), None);
    // No list shows it any more, and its delete goes on.
    let one = Pool::new(1, "0", "1").old_ready(1).capacity(1);
    let one = one.set(|set| set.orchestration = Orchestration::Flexible);
    let one =
        one.gone_for("o1", Condition::Deleting, Span::minutes(8)).edit("o1", |m| m.missed = 2);
    let key = one.machine("o1").key();
    let one = one.state(|s| {
        s.tombs.push((key, NOW.minus(Span::minutes(7))));
        (s.desired.explained, s.desired.shown) = (1, 1);
        s.desired.shown_since = Some(NOW.minus(Span::minutes(15)));
    });
    let goes = one.clone().delete_open(&["o1"], Span::minutes(8)).plan();
    goes.does(None, &[]).says("capacityLags");
    assert_eq!(one.plan().raise(), Some((1, 2)), "its delete ended");
}

#[test]
fn a_number_that_counts_deletes_is_waited_for_no_longer_than_two_minutes() {
    let deleting = |ago: Span| {
        let pool = Pool::new(3, "2", "0").old_ready(3).new_ready(1).capacity(4);
        let pool = pool.gone_for("o1", Condition::Deleting, ago);
        pool.delete_open(&["o1"], ago).state(|s| {
            s.desired.explained = 4;
            (s.desired.shown, s.desired.shown_since) = (4, Some(NOW.minus(Span::minutes(5))));
        })
    };
    deleting(Span::seconds(100)).plan().does(None, &[]).says("capacityLags");
    // Then a machine that it counts lacks: the same number brings that one, at most.
    assert_eq!(deleting(Span::seconds(130)).plan().raise().map(|(from, _)| from), Some(4));
    // Without a version that moves it may be another writer's for as long as it lasts.
    let bare = deleting(Span::seconds(130)).set(|set| set.etag = None);
    bare.plan().does(None, &[]).says("capacityLags");
}

#[test]
fn where_the_number_falls_at_the_end_of_a_delete_none_is_waited_for() {
    let deleting = |verdict| {
        let pool = Pool::new(3, "2", "0").old_ready(3).new_ready(1).capacity(4);
        let pool = pool.gone_for("o1", Condition::Deleting, Span::seconds(20));
        let pool = pool.delete_open(&["o1"], Span::seconds(20));
        pool.state(|s| {
            (s.desired.explained, s.deletes.verdict) = (4, verdict);
            (s.desired.shown, s.desired.shown_since) = (4, Some(NOW.minus(Span::minutes(5))));
        })
    };
    let proven = |pool: Pool| pool.state(|s| s.deletes.proven = true);
    proven(deleting(DeleteEffect::AtEnd)).plan().does(Some(5), &[]);
    // Reads alone say so: there must be room for those that go, should they be made up for.
    deleting(DeleteEffect::AtEnd).plan().does(None, &[]).says("capacityLags");
    let roomy = deleting(DeleteEffect::AtEnd).policy(|d| d.rollout.max_surge = Quantity::of(3));
    let turn = roomy.plan();
    turn.does(Some(5), &[]);
    assert_eq!(turn.planned.state.deletes.probe.map(|probe| probe.births), Some(1));
    // A turn that writes the model sends no raise, so nothing is to be learnt from one.
    let tagged = roomy.clone().policy(|d| {
        d.model.fields.tags.insert("team".into(), "blue".into());
    });
    let turn = tagged.set(|set| set.model = Some(ModelFields::default())).plan();
    let sent: Vec<ActionKind> = turn.planned.actions.iter().map(Action::verb).collect();
    assert_eq!(
        (&sent[..], turn.planned.state.deletes.probe),
        (&[ActionKind::UpdateModel][..], None)
    );
    deleting(DeleteEffect::AtAccept).plan().does(None, &[]).says("capacityLags");
    deleting(DeleteEffect::Unknown).plan().does(None, &[]).says("capacityLags");
    // Who is gone from the list is no longer known to be counted.
    let gone = proven(deleting(DeleteEffect::AtEnd)).edit("o1", |m| m.missed = 1);
    assert_eq!(gone.plan().raise(), None);
}

#[test]
fn when_a_delete_lowers_the_number_is_learnt_from_reads() {
    let pool = |ago: i64, capacity: u32| {
        let ago = Span::seconds(ago);
        let pool = Pool::new(4, "1", "1").old_ready(4).capacity(capacity);
        pool.gone_for("o1", Condition::Deleting, ago).delete_open(&["o1"], ago)
    };
    let learnt = |pool: &Pool| pool.plan().planned.state.deletes.clone();
    assert_eq!(learnt(&pool(10, 3)).verdict, DeleteEffect::AtAccept);
    assert_eq!(learnt(&pool(30, 4)).late.len(), 0);
    let late = pool(70, 4);
    let once = learnt(&late);
    assert_eq!((once.verdict, once.late.len()), (DeleteEffect::Unknown, 1));
    // The same delete seen again is no second one.
    assert_eq!(learnt(&late.clone().state(|s| s.deletes = once.clone())), once);
    let mut second = late.state(|s| s.deletes = once);
    second.open[0].id = EntryId::new("another");
    assert_eq!(learnt(&second).verdict, DeleteEffect::AtEnd);
}

#[test]
fn a_raise_beside_deletes_tells_whether_they_are_in_the_number() {
    let (first, second) = (Some(EntryId::new("1")), Some(EntryId::new("2")));
    let heard_of = |born: usize, ago: Span, beside: &Option<EntryId>| {
        let at = NOW.minus(ago);
        let pool = Pool::new(4, "3", "0").settled().new_ready(4).new_young(born);
        let pool = pool.each(|m| {
            if !m.ever_available {
                (m.created, m.first_seen) = (at.plus(Span::seconds(2)), at.plus(Span::seconds(9)));
            }
        });
        let pool = pool.state(|s| {
            s.deletes.verdict = DeleteEffect::AtEnd;
            s.deletes.agreed.clone_from(&first);
            s.deletes.probe = Some(Probe { at, births: 1, beside: beside.clone() });
        });
        pool.plan().planned.state.deletes
    };
    let heard = |born: usize, ago: Span| heard_of(born, ago, &second);
    let early = heard(1, Span::seconds(30));
    assert!(early.probe.is_some() && !early.proven);
    let told = heard(1, Span::seconds(70));
    assert_eq!((told.verdict, told.proven, told.probe), (DeleteEffect::AtEnd, true, None));
    let more = heard(2, Span::seconds(30));
    assert_eq!((more.verdict, more.proven, more.probe), (DeleteEffect::AtAccept, true, None));
    let none = heard(0, Span::seconds(70));
    assert_eq!((none.proven, none.probe), (false, None));
    let ended = heard_of(1, Span::seconds(70), &None);
    assert_eq!((ended.proven, ended.probe), (false, None), "a delete that had ended tells nothing");
    assert_eq!((ended.agreed, none.agreed), (first.clone(), None));
}

#[test]
fn a_delete_goes_on_beside_a_raise_where_a_later_look_shows_it() {
    let seconds = Span::seconds;
    let beside = |raised: Span, deleted: Option<Span>, agreed: bool| {
        let mut pool = Pool::new(4, "3", "0").settled().new_ready(5);
        if let Some(ago) = deleted {
            pool = pool.gone_for("n1", Condition::Deleting, ago).delete_open(&["n1"], ago);
        }
        let known = pool.open.first().map(|entry| entry.id.clone());
        let pool = pool.state(|s| {
            s.deletes.verdict = DeleteEffect::AtEnd;
            s.deletes.agreed = known.filter(|_| agreed);
            s.deletes.probe = Some(Probe { at: NOW.minus(raised), births: 1, beside: None });
        });
        pool.plan().planned.state.deletes.probe.unwrap().beside.is_some()
    };
    let before = Some(seconds(50));
    assert!(beside(seconds(30), before, false));
    assert!(!beside(seconds(30), None, false));
    assert!(!beside(seconds(30), Some(seconds(20)), false), "it was begun after the raise");
    assert!(!beside(seconds(5), before, false), "a list shows it for some seconds more");
    assert!(!beside(seconds(30), before, true), "the same delete tells nothing new");
}

#[test]
fn what_fell_between_a_read_and_its_raise_is_no_other_writer() {
    // The set tells no version of a capacity that falls at the end of a delete: the raise from 4 to 5 was written over 3.
    let read = |verdict: DeleteEffect| {
        let ended = Span::seconds(100);
        let pool = Pool::new(3, "3", "0").settled().new_ready(5).gone_for(
            "n5",
            Condition::Deleting,
            ended,
        );
        let pool = pool.delete_ended(&["n5"], ended, EntryOutcome::Done);
        let pool = pool.raise_ended(4, 5, Span::seconds(80), EntryOutcome::Done).capacity(5);
        let pool = pool.edit("n5", |m| m.missed = 1);
        pool.state(|s| {
            (s.desired.explained, s.desired.shown, s.deletes.verdict) = (4, 5, verdict);
            s.desired.shown_since = Some(NOW.minus(Span::minutes(3)));
        })
    };
    let told = |pool: &Pool| pool.plan().planned.state.desired;
    let known = told(&read(DeleteEffect::AtEnd));
    assert_eq!((known.explained, known.others.len()), (5, 0));
    let others = |pool: &Pool| {
        let told = told(pool);
        told.others.len() + usize::from(told.above.is_some())
    };
    assert_eq!(others(&read(DeleteEffect::AtAccept)), 1);
    // Sent in the turn of the delete, the raise went before it and undid nothing.
    let mut together = read(DeleteEffect::AtEnd);
    let begun = together.open[0].written;
    together.open[1].written = begun;
    assert_eq!(others(&together), 1);
}

#[test]
fn a_number_that_outlasts_the_end_of_deletes_does_not_fall_then() {
    let pool = |ended: Span, capacity: u32| {
        let pool = Pool::new(2, "2", "2").settled().new_ready(2).capacity(capacity);
        pool.state(|s| {
            s.tombs.push((Key::new("gone"), NOW.minus(ended)));
            (s.deletes.verdict, s.deletes.proven) = (DeleteEffect::AtEnd, true);
        })
    };
    let seen = |ended: Span, capacity: u32| pool(ended, capacity).plan().planned.state.deletes;
    assert_eq!(seen(Span::minutes(3), 3), DeleteEffects::default());
    assert!(seen(Span::minutes(1), 3).proven, "this read may be behind");
    assert!(seen(Span::minutes(3), 2).proven);
    let others = pool(Span::minutes(3), 3).state(|s| s.desired.explained = 2);
    assert!(others.plan().planned.state.deletes.proven, "another client wrote it");
}

#[test]
fn a_machine_that_was_just_born_may_have_siblings_even_if_it_serves() {
    // The number of a Flexible set: one of the last raise is not listed yet, or it counts one that was deleted.
    let born = |ago: Span| {
        let pool = Pool::new(3, "2", "0").old_ready(3).new_ready(1).capacity(5);
        let pool = pool.edit("n1", |m| {
            let at = NOW.minus(ago);
            (m.created, m.imaged, m.first_seen, m.since) = (at, at, at, at);
        });
        let pool = pool.set(|set| set.orchestration = Orchestration::Flexible).state(|s| {
            (s.desired.explained, s.desired.shown) = (5, 5);
            s.desired.shown_since = Some(NOW.minus(Span::minutes(15)));
        });
        pool.plan().raise()
    };
    assert_eq!(born(Span::seconds(100)), None);
    assert_eq!(born(Span::seconds(130)), Some((5, 6)));
}

#[test]
fn a_raise_that_came_in_part_proves_nothing() {
    let at = NOW.minus(Span::seconds(70));
    let pool = Pool::new(4, "3", "0").settled().new_ready(4).new_young(1);
    let pool = pool.each(|m| {
        if !m.ever_available {
            (m.created, m.first_seen) = (at.plus(Span::seconds(2)), at.plus(Span::seconds(9)));
        }
    });
    let probed = pool.state(|s| {
        s.deletes.verdict = DeleteEffect::AtEnd;
        s.deletes.probe = Some(Probe { at, births: 1, beside: Some(EntryId::new("2")) });
    });
    let probed = probed.state(|s| s.deletes.agreed = Some(EntryId::new("1")));
    let told = |capacity| probed.clone().capacity(capacity).plan().planned.state.deletes;
    assert!(told(5).proven);
    // One that a list had lacked is no child of this raise.
    let late = probed.clone().edit("n1", |m| m.first_seen = at.plus(Span::seconds(5)));
    let late = late.capacity(5).plan().planned.state.deletes;
    assert_eq!((late.verdict, late.proven), (DeleteEffect::AtEnd, true));
    // Where one came up failed, another may not have come at all.
    let failed = probed.clone().gone_for("n5", Condition::Failed, Span::seconds(30));
    assert!(!failed.capacity(5).plan().planned.state.deletes.proven);
    // One lacks: the raise may have been for two, the deleted one among them.
    assert!(!told(6).proven);
    // One was asked for before and never came: the number that counts it looks like one that counts a delete.
    let lacking = probed.clone().gone_for("n2", Condition::Deleting, Span::minutes(2));
    let lacking = lacking.capacity(5).state(|s| {
        s.deletes.probe = Some(Probe { at, births: 1, beside: Some(EntryId::new("2")) });
    });
    let before = UndeliveredRaise { times: 1, at: at.minus(Span::minutes(9)), until: at };
    let known = |lacks: Option<UndeliveredRaise>| {
        lacking.clone().state(|s| s.undelivered = lacks).plan().planned.state.deletes.proven
    };
    assert!(known(None));
    assert!(!known(Some(before)));
}

#[test]
fn a_raise_from_a_number_without_deletes_is_no_probe() {
    let pool = Pool::new(3, "3", "0").old_ready(3).new_ready(1);
    let pool = pool.gone_for("o1", Condition::Deleting, Span::seconds(20));
    let pool = pool.delete_open(&["o1"], Span::seconds(20)).state(|s| {
        (s.desired.explained, s.deletes.verdict) = (4, DeleteEffect::AtEnd);
        (s.desired.shown, s.desired.shown_since) = (4, Some(NOW.minus(Span::minutes(5))));
    });
    let probe = |capacity| {
        let pool = pool.clone().state(|s| {
            (s.desired.explained, s.desired.shown) = (capacity, capacity);
        });
        let turn = pool.capacity(capacity).plan();
        assert!(turn.raise().is_some());
        turn.planned.state.deletes.probe
    };
    assert!(probe(4).is_some());
    assert_eq!(probe(3), None);
}

#[test]
fn above_the_ceiling_is_written_only_where_the_version_tells_of_ended_deletes() {
    // One of four goes and is not counted as live; the number counts it until its delete ends.
    let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).capacity(4);
    let pool = pool.gone_for("o1", Condition::Deleting, Span::seconds(20));
    let pool = pool.delete_open(&["o1"], Span::seconds(20));
    let pool = pool.policy(|d| d.rollout.count_deleting = false).state(|s| {
        (s.deletes.verdict, s.deletes.proven) = (DeleteEffect::AtEnd, true);
        (s.desired.explained, s.desired.shown) = (4, 4);
        s.desired.shown_since = Some(NOW.minus(Span::minutes(5)));
    });
    let known = |verdict, ends| {
        let pool = pool.clone().state(|s| (s.etag.verdict, s.etag.ends) = (verdict, ends));
        pool.plan().raise()
    };
    assert_eq!(known(EtagVerdict::Moves, 2), Some((4, 5)));
    assert_eq!(known(EtagVerdict::Moves, 1), None, "it moved once, perhaps for another client");
    assert_eq!(known(EtagVerdict::Stays, 2), None);
    let bare = pool.clone().set(|set| set.etag = None);
    let bare = bare.state(|s| (s.etag.verdict, s.etag.ends) = (EtagVerdict::Moves, 2));
    assert_eq!(bare.plan().raise(), None, "no version in this read");
    let stays = pool.clone().state(|s| s.etag.verdict = EtagVerdict::Stays).plan();
    stays.says("ceiling");
    // A number at the ceiling brings too many in no case.
    let roomy = pool.policy(|d| d.rollout.max_surge = Quantity::of(2)).plan();
    assert_eq!(roomy.raise(), Some((4, 5)));
}

#[test]
fn whether_the_version_moves_as_deletes_end_is_learnt_from_reads() {
    let before = NOW.minus(Span::seconds(30));
    let gone = |deleted: Span| {
        let pool = Pool::new(3, "1", "0").settled().new_ready(4).capacity(3);
        let pool = pool.gone_for("n4", Condition::Deleting, deleted);
        let pool = pool.delete_open(&["n4"], deleted).edit("n4", |m| m.missed = 1);
        pool.state(|s| {
            (s.etag.last, s.etag.since) = (Some((Etag::new("0"), 4)), Some(before));
            s.desired.explained = 4;
        })
    };
    let learnt = |pool: Pool| pool.plan().planned.state.etag;
    let minute = || gone(Span::minutes(1));
    let once = learnt(minute());
    assert_eq!(
        (once.verdict, once.ends, once.since),
        (EtagVerdict::Moves, 1, Some(NOW.minus(Span::seconds(1))))
    );
    let many = learnt(minute().state(|s| s.etag.ends = 2));
    assert_eq!(many.ends, 2, "no further is counted");
    let none = |why: &str, pool: Pool| assert_eq!(learnt(pool).ends, 0, "{why}");
    none("the delete was accepted since the last read", gone(Span::seconds(20)));
    none("a raise was", minute().raise_open(3, 4, Span::seconds(20)));
    none("two fell, and one went", minute().state(|s| s.etag.last = Some((Etag::new("0"), 5))));
    none("it had gone before", minute().edit("n4", |m| m.missed = 2));
    none("no read before", minute().state(|s| s.etag.since = None));
    none("others write", minute().state(|s| s.desired.others = vec![before]));
    none("it did not move", minute().state(|s| s.etag.last = Some((Etag::new("1"), 4))));
    let same = learnt(minute().state(|s| s.etag.last = Some((Etag::new("1"), 3))));
    assert_eq!(same.since, Some(before), "what is read again is memory at rest");
}

#[test]
fn a_raise_that_met_the_end_of_a_delete_is_no_other_clients_doing() {
    let seen =
        Refused { code: Some("ChangedSinceRead".into()), ..Refused::plain(Refusal::Conflict) };
    let told =
        Refused { code: Some("PreconditionFailed".into()), ..Refused::plain(Refusal::Conflict) };
    // Refused before; `answered`: the cloud took a raise since then; refused again ten seconds ago.
    let waits = |refused: &Refused, times: u32, answered: bool, effect: DeleteEffect| {
        let pool = Pool::new(3, "1", "0").old_ready(3).new_ready(1).capacity(4);
        let pool = pool.gone_for("o1", Condition::Deleting, Span::minutes(1));
        let pool = pool.delete_open(&["o1"], Span::minutes(1));
        let ago = Span::seconds(10);
        let pool = pool.raise_ended(3, 4, ago, EntryOutcome::Refused(refused.clone())).capacity(4);
        let pool = pool.state(|s| {
            s.deletes.verdict = effect;
            let at = NOW.minus(Span::minutes(5));
            s.backoff.push(BackOff { times, answered, at, until: at, ..conflict(refused, at) });
        });
        let known = &pool.plan().planned.state.backoff[0];
        (known.times, known.until.since(known.at))
    };
    use DeleteEffect::{AtAccept, AtEnd};
    assert_eq!(waits(&seen, 4, true, AtEnd), (1, Span::ZERO));
    assert_eq!(waits(&told, 4, true, AtEnd), (1, Span::minutes(1)));
    assert_eq!(waits(&seen, 2, false, AtEnd), (3, Span::ZERO), "the third in a row");
    assert_eq!(waits(&seen, 3, false, AtEnd), (4, Span::minutes(8)), "the fourth");
    assert_eq!(waits(&seen, 1, true, AtAccept), (2, Span::minutes(2)));
    let busy = Refused { code: Some("Conflict".into()), ..seen };
    assert_eq!(waits(&busy, 4, true, AtEnd), (4, Span::minutes(8)), "the set is busy");
}

fn conflict(refused: &Refused, at: Time) -> BackOff {
    BackOff {
        refusal: Refusal::Conflict,
        zone: None,
        size: Pool::new(1, "1", "0").set.vm_size,
        code: refused.code.clone(),
        message: None,
        times: 1,
        at,
        until: at,
        retry_at: None,
        granted: None,
        answered: false,
    }
}

#[test]
fn a_number_that_brought_nothing_waits_for_what_is_being_deleted() {
    let deleting = |capacity: u32, tried: bool| {
        let pool = Pool::new(3, "1", "0").policy(|d| d.rollout.count_deleting = false);
        let pool = pool.old_ready(3).new_ready(1).capacity(capacity);
        let pool = pool.gone_for("o1", Condition::Deleting, Span::minutes(5));
        let pool = pool.delete_open(&["o1"], Span::minutes(5)).state(|s| {
            s.desired.explained = capacity;
            s.desired.shown = capacity;
            s.desired.shown_since = Some(NOW.minus(Span::minutes(5)));
            let (times, at) = (1, NOW.minus(Span::minutes(4)));
            let known = UndeliveredRaise { times, at, until: at.plus(Span::minutes(2)) };
            s.undelivered = tried.then_some(known);
        });
        pool.plan()
    };
    deleting(4, false).does(Some(4), &[]);
    deleting(4, true).does(None, &[]).says("capacityLags");
    let lacks = deleting(5, true);
    assert!(lacks.hold("capacityLags").is_none(), "one lacks that is not being deleted");
}

#[test]
fn a_raise_that_may_have_brought_one_more_than_it_asked_for_leaves_room_for_that_one() {
    // The number counted a delete when it was raised to five. Four are listed, and a fifth may come.
    let young = |age| {
        let pool = Pool::new(3, "3", "0").old_ready(3).new_young(1).capacity(5);
        let pool = pool.set(|set| set.orchestration = Orchestration::Flexible);
        pool.edit("n1", |m| (m.created, m.imaged) = (NOW.minus(age), NOW.minus(age))).state(|s| {
            (s.desired.explained, s.desired.shown) = (5, 5);
            s.desired.shown_since = Some(NOW.minus(Span::minutes(15)));
        })
    };
    assert_eq!(young(Span::seconds(40)).plan().raise(), Some((5, 6)));
    assert_eq!(young(Span::minutes(3)).plan().raise(), Some((5, 7)), "it would be listed");
}
