//! Interruptions and lost answers do not change the final state, and nothing happens twice.

use super::fake::{Cut, Mishap};
use super::*;
use crate::model::journal::Refusal;

fn check_the_end(rig: &Rig, what: &str) {
    let sky = rig.cloud.sky();
    assert_eq!(sky.capacity, 3, "{what}");
    assert!(sky.most <= 4, "{what}: {} machines lived at once", sky.most);
    assert!(sky.least_serving >= 3, "{what}: {} served at a time", sky.least_serving);
    let mut deleted = sky.deleted.clone();
    deleted.sort();
    deleted.dedup();
    assert_eq!(deleted.len(), sky.deleted.len(), "{what}: a machine was deleted twice");
    assert_eq!(deleted, ["vm-001", "vm-002", "vm-003"], "{what}: only the old ones leave");
}

#[test]
fn a_rollout_ends_with_one_raise_and_one_delete_for_each_machine() {
    let mut rig = Rig::known(3);
    rig.run();
    check_the_end(&rig, "uncut");
    assert_eq!(
        rig.cloud.sky().calls,
        ["raise 3 to 4", "delete 1", "raise 3 to 4", "delete 2", "raise 3 to 4", "delete 3"]
    );
}

#[test]
fn the_power_may_be_cut_before_and_after_every_commit() {
    let mut uncut = Rig::known(3);
    uncut.run();
    let commits = *uncut.disk.commits.lock().unwrap();
    assert!(commits > 20, "{commits} commits");
    for n in 1..=commits {
        for cut in [Cut::Before(n), Cut::After(n)] {
            let mut rig = Rig::known(3);
            rig.disk.cut = Some(cut);
            rig.run();
            assert_eq!(rig.starts, 2, "{cut:?} was reached");
            check_the_end(&rig, &format!("{cut:?}"));
        }
    }
}

#[test]
fn the_power_may_be_cut_again_while_recovering() {
    for n in 1..=24 {
        for again in 1..=4 {
            let mut rig = Rig::known(3);
            rig.disk.cut = Some(Cut::After(n));
            while rig.starts == 1 {
                if rig.turn().is_err() {
                    rig.restart();
                }
                rig.wait_until(rig.now().plus(Span::seconds(10)));
            }
            rig.disk.cut = Some(Cut::Before(n + again));
            rig.run();
            check_the_end(&rig, &format!("after {n}, then before {}", n + again));
        }
    }
}

#[test]
fn any_answer_may_be_lost_or_refused() {
    let mishaps = [
        Mishap::LostAfterEffect,
        Mishap::LostBeforeEffect,
        Mishap::OperationForgotten,
        Mishap::Refused(Refusal::Throttled),
        Mishap::Refused(Refusal::Conflict),
        Mishap::Refused(Refusal::NoCapacity),
        Mishap::Refused(Refusal::Unclear),
        Mishap::Refused(Refusal::Preempted),
    ];
    for mishap in mishaps {
        for n in 1..=6 {
            let mut rig = Rig::known(3);
            rig.cloud.sky().mishaps.insert(n, mishap);
            rig.run();
            check_the_end(&rig, &format!("{mishap:?} at write {n}"));
        }
    }
}

#[test]
fn a_lost_answer_and_a_cut_together() {
    for n in 1..=6 {
        for cut in 1..=30 {
            for mishap in [Mishap::LostAfterEffect, Mishap::LostBeforeEffect] {
                let mut rig = Rig::known(3);
                rig.cloud.sky().mishaps.insert(n, mishap);
                rig.disk.cut = Some(Cut::After(cut));
                rig.run();
                check_the_end(&rig, &format!("{mishap:?} at write {n}, cut after {cut}"));
            }
        }
    }
}
