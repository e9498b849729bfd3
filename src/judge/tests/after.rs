//! What really happened: laws 1 to 5 and 9 against the true world.

use super::history::{real, sent};
use super::*;
use crate::judge::history::History;
use crate::judge::{EndedPod, MachineBirth, PodEffects, Real, SentCall, Truth, after};
use crate::model::action::ActionKind;
use crate::model::cluster::NodeMark;
use crate::model::ids::Key;
use RemovalReason::{DeleteRequestedNow, Outdated};

/// A turn that went well: one of four machines is deleted.
struct Turn {
    pool: Pool,
    world: Vec<Real>,
    sent: Vec<SentCall>,
    pods: PodEffects,
    births: Vec<MachineBirth>,
    coming: u32,
    /// The call was sent before its doubt was written.
    hasty: bool,
    stop: Option<GlobalStop>,
}

fn key(name: &str) -> Key {
    Key::new(format!("vm-{name}"))
}

/// The last action of the plan is written now, and sent.
fn written(mut pool: Pool) -> Pool {
    let action = pool.actions.last().unwrap().clone();
    let id = EntryId::new(format!("e{}", pool.journal.len()));
    let mut entry = entry(&id, action, NOW);
    entry.read_at = pool.set.read_at;
    pool.journal.push(entry);
    pool
}

fn deletes(names: &str, because: RemovalReason) -> Turn {
    let pool = Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW).delete(names, because);
    let hit = names.chars().map(|name| key(&name.to_string())).collect();
    Turn {
        pool: written(pool),
        world: ["a", "b", "c", "n"].map(|name| real(name, false)).into(),
        sent: vec![SentCall { hit, ..sent(ActionKind::Delete) }],
        pods: PodEffects::default(),
        births: Vec::new(),
        coming: 0,
        hasty: false,
        stop: None,
    }
}

fn raises(more: u32) -> Turn {
    let pool = Pool::of(3, 1, 0).serving("abc", OLD).raise(more);
    Turn {
        pool: written(pool),
        world: ["a", "b", "c"].map(|name| real(name, false)).into(),
        sent: vec![SentCall { to: Some(3 + more), ..sent(ActionKind::Raise) }],
        pods: PodEffects::default(),
        births: Vec::new(),
        coming: more,
        hasty: false,
        stop: None,
    }
}

impl Turn {
    fn with(mut self, how: impl FnOnce(&mut Turn)) -> Turn {
        how(&mut self);
        self
    }

    fn broken(&self, past: &mut History) -> Vec<u8> {
        let mut journal = self.pool.journal.clone();
        for entry in journal.iter_mut().filter(|entry| entry.phase == Phase::Intended) {
            if !self.hasty {
                entry.phase = Phase::Asking { at: NOW };
            }
        }
        self.pool.check(|case| {
            let truth = Truth {
                case,
                world: &self.world,
                coming: self.coming,
                sent: &self.sent,
                pods: &self.pods,
                births: &self.births,
                journal: &journal,
                stored: 0,
                calm: false,
                stop: self.stop.as_ref(),
            };
            after(&truth, past).iter().map(|note| note.law).collect()
        })
    }

    fn alone(&self) -> Vec<u8> {
        self.broken(&mut History::default())
    }
}

#[test]
fn law_1_what_really_serves() {
    assert!(deletes("a", Outdated).alone().is_empty());
    assert_eq!(deletes("ab", Outdated).alone(), [1]);
    let touched = deletes("a", Outdated).with(|turn| turn.world[3].touched = true);
    assert_eq!(touched.alone(), [1], "one was drained by us before");
    let young = deletes("a", Outdated).with(|turn| turn.world[3].serves = Some(NOW));
    assert_eq!(young.alone(), [1], "one serves since a moment only");
    let accepted = deletes("ab", Outdated).with(|turn| {
        turn.pool = written(
            Pool::of(3, 1, 0)
                .serving("abc", OLD)
                .serving("n", NEW)
                .delete("ab", DeleteRequestedNow),
        );
    });
    assert!(accepted.alone().is_empty(), "the loss was accepted");
}

#[test]
fn law_2_what_really_lives() {
    assert!(raises(1).alone().is_empty());
    assert_eq!(raises(2).alone(), [2]);
    let ghost = |unheard: bool| {
        raises(1).with(|turn| turn.world.push(Real { unheard, ..real("x", false) }))
    };
    assert_eq!(ghost(false).alone(), [2], "one that the listing lacked is ours");
    assert!(ghost(true).alone().is_empty(), "others made it meanwhile");
    let refused = raises(2).with(|turn| turn.sent[0].took = false);
    assert!(refused.alone().is_empty(), "it had no effect");
    let deleting = |count: bool| {
        raises(1).with(|turn| {
            turn.world.push(Real { deleting: true, ..real("x", false) });
            turn.pool.draft.rollout.count_deleting = count;
        })
    };
    assert_eq!(deleting(true).alone(), [2]);
    assert!(deleting(false).alone().is_empty());
}

#[test]
fn law_3_calls_do_what_entries_say() {
    let other = deletes("a", Outdated).with(|turn| turn.sent[0].hit = vec![key("b")]);
    assert_eq!(other.alone(), [3], "another machine was hit");
    let number = raises(1).with(|turn| turn.sent[0].to = Some(5));
    assert_eq!(number.alone(), [3], "another number was written");
    let none = raises(1).with(|turn| turn.sent[0].entry = EntryId::new("none"));
    assert!(none.alone().contains(&3), "nothing was written before");
    let ended = |at: Time, events: &[EntryEvent]| {
        raises(1).with(|turn| {
            for event in events {
                turn.pool.journal[0].apply(event.clone(), at).unwrap();
            }
        })
    };
    let well = [EntryEvent::Asking, EntryEvent::Ended(EntryOutcome::Done)];
    assert!(ended(NOW, &well).alone().is_empty(), "it ended by the call");
    let late = ended(ago(Span::seconds(1)), &well);
    assert_eq!(late.alone(), [3], "it had ended before the call");
    let withdrawn = ended(NOW, &[EntryEvent::Ended(EntryOutcome::Withdrawn)]);
    assert_eq!(withdrawn.alone(), [3], "it was withdrawn");
}

/// A drain of `a` began half an hour ago, and a pod of its node was ended now.
fn ends_pod(how: impl FnOnce(&mut EndedPod), pool: impl FnOnce(&mut Pool)) -> Turn {
    raises(1).with(|turn| {
        let drained = [(Span::ZERO, EntryEvent::Asking)];
        turn.pool = written(
            Pool::of(3, 1, 0)
                .serving("abc", OLD)
                .edit("a", node)
                .drain("a", Outdated)
                .earlier(Span::minutes(30), &drained)
                .raise(1),
        );
        pool(&mut turn.pool);
        turn.sent[0].entry = turn.pool.journal.last().unwrap().id.clone();
        let mark = NodeMark {
            pool: turn.pool.draft.name.clone(),
            entry: turn.pool.journal[0].id.clone(),
            at: ago(Span::minutes(30)),
            cordoned: true,
            again: 0,
            excluded: true,
        };
        let mut pod = EndedPod {
            at: NOW,
            machine: key("a"),
            mark: Some(mark),
            past_budgets: false,
            left_alone: false,
        };
        how(&mut pod);
        turn.pods.ended.push(pod);
    })
}

#[test]
fn law_3_pods_end_by_the_drain_of_their_node_alone() {
    let evicted = |how: fn(&mut EndedPod)| ends_pod(how, |_| {}).alone();
    assert!(evicted(|_| {}).is_empty());
    assert_eq!(evicted(|pod| pod.mark = None), [3], "its node has no mark of ours");
    assert_eq!(evicted(|pod| pod.machine = key("b")), [3], "the drain is of another");
    let strange = |pod: &mut EndedPod| pod.mark.as_mut().unwrap().entry = EntryId::new("none");
    assert_eq!(evicted(strange), [3], "no entry of ours drains it");
    let deleted = |minutes: i64, delete: Option<Span>| {
        let at = |pod: &mut EndedPod| {
            pod.past_budgets = true;
            pod.mark.as_mut().unwrap().at = ago(Span::minutes(minutes));
        };
        ends_pod(at, |pool| pool.draft.drain.nodes.ladder.delete = delete).alone()
    };
    let allowed = Some(Span::minutes(5));
    assert_eq!(deleted(30, None), [3], "the pool file lets no pod be deleted");
    assert_eq!(deleted(19, allowed), [3], "the steps before take 20 minutes");
    assert!(deleted(20, allowed).is_empty());
}

#[test]
fn law_3_no_pod_runs_when_its_machine_goes() {
    let with_pods = |because: RemovalReason| {
        deletes("a", because).with(|turn| {
            turn.pool = std::mem::replace(&mut turn.pool, Pool::of(1, 1, 0)).edit("a", node);
            turn.sent[0].with_pods = vec![key("a")];
        })
    };
    assert_eq!(with_pods(Outdated).alone(), [3]);
    assert!(with_pods(RemovalReason::Failed).alone().is_empty(), "what failed does not wait");
    assert!(with_pods(Outdated).with(|turn| turn.sent[0].with_pods.clear()).alone().is_empty());
}

#[test]
fn law_10_the_cordons_of_others_stay() {
    assert_eq!(raises(1).with(|turn| turn.pods.lifted = vec![key("a")]).alone(), [10]);
}

#[test]
fn law_4_the_doubt_is_written_before_the_call() {
    for turn in [raises(1), deletes("a", Outdated)] {
        assert!(turn.alone().is_empty());
        assert_eq!(turn.with(|turn| turn.hasty = true).alone(), [4]);
    }
}

#[test]
fn law_4_once_over_a_history() {
    let minutes = Span::minutes;
    let repeated = |events: &[(Span, EntryEvent)], hits: bool| {
        let first = deletes("a", Outdated);
        let mut past = History::default();
        assert!(first.broken(&mut past).is_empty());
        let pool = Pool::of(3, 1, 0).serving("abc", OLD).serving("n", NEW).delete("a", Outdated);
        let pool = pool.earlier(minutes(40), events).delete("a", Outdated);
        let second = deletes("a", Outdated).with(|turn| {
            turn.pool = written(pool);
            turn.sent[0].entry = EntryId::new("e1");
            turn.sent[0].hit.truncate(usize::from(hits));
        });
        second.broken(&mut past)
    };
    let again = |events: &[(Span, EntryEvent)]| repeated(events, true);
    assert_eq!(again(&done(minutes(5))), [4], "it was done");
    assert_eq!(again(&accepted(minutes(20))), [4], "it goes on");
    assert!(again(&accepted(minutes(35))).is_empty(), "it passed its deadline");
    assert!(again(&refused(Refusal::Conflict, minutes(5))).is_empty(), "it was refused");
    assert_eq!(again(&refused(Refusal::Gone, minutes(5))), [4], "it was gone");
    assert_eq!(repeated(&done(minutes(5)), false), [4], "it was done, and took nothing again");
    assert_eq!(repeated(&accepted(minutes(20)), false), [4], "it goes on, and takes nothing again");
}

#[test]
fn law_4_a_raise_bears_what_it_asked_for() {
    let born = |names: &[&str], of: Option<&str>| {
        raises(1).with(|turn| {
            let birth = |name: &&str| MachineBirth { key: key(name), of: of.map(EntryId::new) };
            turn.births = names.iter().map(birth).collect();
        })
    };
    assert!(born(&["x"], Some("e0")).alone().is_empty());
    assert_eq!(born(&["x", "y"], Some("e0")).alone(), [4]);
    assert!(born(&["x", "y"], None).alone().is_empty(), "others made them");
    let lacking = born(&["x", "y"], Some("e0")).with(|turn| turn.sent[0].lacking = 1);
    assert!(lacking.alone().is_empty(), "one that lacked came as well");
}

#[test]
fn law_5_when_it_is_sent() {
    let late = raises(1).with(|turn| {
        turn.sent[0].at = NOW.plus(Span::seconds(59));
        turn.sent[0].not_after = NOW.plus(Span::hours(1));
    });
    assert_eq!(late.alone(), [5], "61 s after its read");
    let answered = |read_at: Span| {
        raises(1).with(|turn| {
            let pool = std::mem::replace(&mut turn.pool, Pool::of(3, 1, 0));
            let pool = pool.delete("a", Outdated).earlier(Span::ZERO, &accepted(Span::seconds(1)));
            turn.pool = pool;
            turn.pool.journal[1].read_at = ago(read_at);
        })
    };
    assert_eq!(answered(Span::seconds(9)).alone(), [5], "another answer came since");
    assert!(answered(Span::seconds(2)).alone().is_empty(), "of the same plan");
}

#[test]
fn law_9_fenced() {
    let call = |epoch: u64, at: i64, lease: i64| {
        raises(1).with(|turn| {
            turn.sent[0].epoch = Epoch(epoch);
            turn.sent[0].at = NOW.plus(Span::seconds(at));
            turn.sent[0].not_after = NOW.plus(Span::seconds(lease));
        })
    };
    let then = |second: &Turn| {
        let mut past = History::default();
        assert!(call(2, 0, 20).broken(&mut past).is_empty());
        second.broken(&mut past)
    };
    assert!(then(&call(2, 5, 20)).is_empty(), "the same leader");
    assert!(then(&call(1, 5, 20)).contains(&9), "one that was replaced");
    assert!(then(&call(3, 5, 50)).contains(&9), "a new one, too early");
    assert!(!then(&call(3, 20, 50)).contains(&9), "a new one, after the old lease");
    assert!(call(2, 5, 5).alone().contains(&9), "after its own lease");
    let theirs = call(1, 0, 20).with(|turn| turn.pool.journal[0].epoch = Epoch(2));
    assert!(theirs.alone().contains(&9), "an entry of a later leader");
    let back = raises(1).with(|turn| {
        let mut later = turn.pool.journal[0].clone();
        later.id = EntryId::new("e1");
        turn.pool.journal[0].epoch = Epoch(1);
        later.epoch = Epoch(0);
        turn.pool.journal.push(later);
    });
    assert_eq!(back.alone(), [9], "epochs go back in the journal");
}

#[test]
fn law_13_what_is_sent_while_the_stop_really_stands() {
    let stopped = |turn: Turn, since: Time, except_repair: bool| {
        let (by, why) = ("kim".into(), "quota incident".into());
        let stop = GlobalStop { since, by, why, except_repair };
        turn.with(|turn| turn.stop = Some(stop)).alone()
    };
    let before = ago(Span::minutes(1));
    assert_eq!(stopped(deletes("a", Outdated), before, false), [13], "the turn had read none");
    assert_eq!(stopped(raises(1), before, false), [13]);
    assert!(stopped(raises(1), before, true).is_empty(), "repair raises");
    assert!(stopped(raises(1), NOW.plus(Span::minutes(1)), false).is_empty(), "sent before");
}
