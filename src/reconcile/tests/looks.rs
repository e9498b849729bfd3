//! Looks at drains between turns.

use super::*;
use crate::model::action::ActionKind;
use crate::model::machine::Lifecycle;

fn in_cluster() -> Rig {
    let mut rig = Rig::new(&["r1", "r1", "r1"], "r2");
    rig.set_cluster(Some("main"));
    rig.cloud.sky().vms.iter_mut().for_each(|vm| vm.node = true);
    rig
}

impl Rig {
    fn look(&mut self) -> DrainLook {
        let mut turns = std::mem::replace(&mut self.turns, PoolTurn::new(PoolName::new("-"), 0));
        let (policy, lease) = (self.policy.clone(), self.lease.clone().unwrap());
        let ended = now_or_never(turns.look_at_drains(&*self, &policy, &lease));
        self.turns = turns;
        ended
    }

    fn drains_nodes(&self) -> bool {
        self.turns.drains_nodes(&self.policy, self.lease.as_ref().unwrap())
    }
}

/// Turns, until one begins a drain.
fn drain_begins(rig: &mut Rig) -> TurnReport {
    for _ in 0..20 {
        let report = rig.turn().unwrap();
        let mut actions = report.planned.iter().flat_map(|planned| &planned.actions);
        if actions.any(|action| action.verb() == ActionKind::Drain) {
            return report;
        }
        assert!(!rig.drains_nodes());
        rig.wait_until(report.again);
    }
    panic!("no drain began");
}

#[test]
fn a_look_says_once_that_a_drain_ended_and_reads_and_stores_nothing() {
    let mut rig = in_cluster();
    let _ = drain_begins(&mut rig);
    assert!(rig.drains_nodes());
    let (lists, commits) = (rig.cloud.sky().lists, *rig.disk.commits.lock().unwrap());
    assert_eq!(rig.look(), DrainLook::Same, "its pods are still there");
    rig.cloud.sky().waits_for = Some("a budget");
    assert_eq!([rig.look(), rig.look()], [DrainLook::Changed, DrainLook::Same]);
    rig.wait_until(rig.now().plus(Span::seconds(15)));
    assert_eq!(rig.look(), DrainLook::Ended);
    assert!(rig.look() == DrainLook::Same && !rig.drains_nodes(), "that was said");
    assert_eq!((rig.cloud.sky().lists, *rig.disk.commits.lock().unwrap()), (lists, commits));
    let report = rig.turn().unwrap();
    let mut actions = report.planned.iter().flat_map(|planned| &planned.actions);
    assert!(actions.any(|action| action.verb() == ActionKind::Delete), "the turn goes on");
}

#[test]
fn a_turn_follows_an_end_at_once_and_a_change_within_half_a_minute() {
    let (last, coalesce) = (Time::from_millis(0), Span::seconds(5));
    let at = |look: DrainLook, coalesce| look.turn_at(last, coalesce).map(|at| at.since(last));
    assert_eq!(at(DrainLook::Same, coalesce), None);
    assert_eq!(at(DrainLook::Changed, coalesce), Some(Span::seconds(30)));
    assert_eq!(at(DrainLook::Ended, coalesce), Some(coalesce));
    assert_eq!(at(DrainLook::Changed, Span::minutes(1)), Some(Span::minutes(1)));
}

#[test]
fn a_drain_that_is_given_up_is_an_end_too() {
    let mut rig = in_cluster();
    rig.cloud.sky().blocked.insert("vm-001".into());
    let _ = drain_begins(&mut rig);
    rig.wait_until(rig.now().plus(Span::seconds(15)));
    assert_eq!(rig.look(), DrainLook::Ended);
    let _ = rig.turn().unwrap();
    assert_eq!(rig.cloud.sky().released, ["vm-001"]);
}

#[test]
fn a_drained_machine_that_may_not_go_is_released_by_its_request_alone() {
    let mut rig = in_cluster();
    let _ = drain_begins(&mut rig);
    rig.wait_until(rig.now().plus(Span::seconds(15)));
    rig.cloud.sky().incomplete = true;
    let _ = rig.turn().unwrap();
    let lifecycle = |rig: &Rig| rig.turns.remembered().unwrap().machines[0].lifecycle;
    assert_eq!(lifecycle(&rig), Lifecycle::Drained);
    (rig.cloud.sky().incomplete, rig.cloud.sky().protected) = (false, true);
    rig.wait_until(rig.now().plus(Span::seconds(15)));
    let _ = rig.turn().unwrap();
    assert_eq!((lifecycle(&rig), rig.cloud.sky().deleted.len()), (Lifecycle::InService, 0));
    assert_eq!(rig.cloud.sky().released, ["vm-001"]);
}
