use super::*;
use crate::model::ids::{NodeName, Revision, VmId};
use crate::model::inventory::{AUTOSCALE_SETTINGS, Gap, SetReading};
use crate::model::machine::Protection;
use proptest::prelude::*;

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1_000)
}

fn row(n: u32, condition: Condition) -> Instance {
    Instance {
        id: InstanceId::new(format!("{n}")),
        vm: Some(VmId::new(format!("AB-{n:04}-cdef"))),
        zone: None,
        created: at(i64::from(n)),
        imaged: None,
        revision: Some(Revision::new("r1")),
        evidence: Evidence::Model,
        condition,
        since: None,
        protection: Protection::None,
        workloads: 0,
        node: None,
        joined: None,
        unreachable_since: None,
        marked: false,
        autoscaler_removes: false,
    }
}

fn listing(read: i64, instances: Vec<Instance>) -> Inventory {
    let set = SetReading::new(Revision::new("r1"), 3, at(read));
    Inventory { set, instances, gaps: Vec::new() }
}

fn look(inventory: &Inventory) -> Observation<'_> {
    let now = inventory.set.read_at.plus(Span::seconds(1));
    let min_ready = Span::seconds(60);
    Observation { inventory, tombs: &[], vanished: &[], min_ready, now, before: None, fresh: true }
}

fn three(condition: Condition) -> Vec<Machine> {
    let rows = (1..=3).map(|n| row(n, condition)).collect();
    fold(Vec::new(), &look(&listing(1_000, rows))).machines
}

#[test]
fn a_first_sight_counts_from_births_and_a_later_one_from_now() {
    let machines = three(Condition::Ready);
    assert!(machines.iter().all(|m| m.ever_available && m.since == m.created));
    assert!(machines.iter().all(|m| m.first_seen == at(1_001)));

    let mut rows: Vec<_> = (1..=3).map(|n| row(n, Condition::Ready)).collect();
    rows.push(row(1_050, Condition::Ready));
    rows.push(row(1_051, Condition::Provisioning));
    let folded = fold(machines, &look(&listing(1_060, rows)));
    assert_eq!(folded.touched, [false, false, false, true, true]);
    assert_eq!(folded.machines[3].since, at(1_061), "no read saw since when it is ready");
    assert!(!folded.machines[3].ever_available);
    assert_eq!(folded.machines[4].since, at(1_051));
}

#[test]
fn ever_available_comes_after_min_ready_and_stays() {
    let mut machines = three(Condition::Provisioning);
    for (read, condition, served) in [
        (1_010, Condition::Ready, false),
        (1_069, Condition::Ready, false),
        (1_071, Condition::Ready, true),
        (1_080, Condition::Unready, true),
    ] {
        let rows = (1..=3).map(|n| row(n, condition)).collect();
        let folded = fold(machines, &look(&listing(read, rows)));
        machines = folded.machines;
        assert!(machines.iter().all(|m| m.ever_available == served), "at {read}");
    }
}

fn three_rows() -> Vec<Instance> {
    (1..=3).map(|n| row(n, Condition::Ready)).collect()
}

#[test]
fn absence_is_unknown_until_two_minutes_of_listings_insist() {
    let rows = || vec![row(1, Condition::Ready), row(3, Condition::Ready)];
    let first = fold(three(Condition::Ready), &look(&listing(1_010, rows())));
    assert_eq!(first.machines[1].condition, Condition::Unknown);
    assert_eq!(first.machines[1].missed, 1);
    assert_eq!(first.touched, [false, true, false]);

    let same_listing = listing(1_010, rows());
    let again = fold(first.machines.clone(), &Observation { fresh: false, ..look(&same_listing) });
    assert_eq!(again.machines[1].missed, 1, "the same listing counts once");

    let second = fold(first.machines, &look(&listing(1_020, rows()))).machines;
    assert_eq!((second.len(), second[1].missed), (3, 2), "two old pictures in a row are no proof");
    let shown = fold(second.clone(), &look(&listing(1_030, three_rows())));
    let back = &shown.machines[1];
    assert_eq!((back.condition, back.missed), (Condition::Ready, 0));
    assert_eq!(back.since, three(Condition::Ready)[1].since, "our blindness is no news of it");
    let third = fold(second, &look(&listing(1_131, rows()))).machines;
    assert_eq!(third.len(), 3, "two minutes, and three listings");
    let second = fold(third, &look(&listing(1_140, rows())));
    assert_eq!(second.machines.len(), 2);
    assert_eq!(second.closed, [Key::new("AB-0002-cdef")]);
    assert_eq!(second.changes[0].what, RecordChange::Closed(CloseReason::Vanished));
}

#[test]
fn a_cut_listing_never_closes_anything() {
    let mut cut = listing(1_010, vec![row(1, Condition::Ready)]);
    cut.set.complete = false;
    let mut machines = three(Condition::Ready);
    for _ in 0..5 {
        machines = fold(machines, &look(&cut)).machines;
    }
    assert_eq!(machines.len(), 3);
    assert!(machines[1..].iter().all(|m| m.condition == Condition::Unknown && m.missed == 0));
}

#[test]
fn the_second_complete_listing_after_its_delete_closes_a_record() {
    let mut machines = three(Condition::Ready);
    machines[1].lifecycle = Lifecycle::Deleting;
    let tombs = [(machines[1].key(), at(1_010))];
    let others = |read| listing(read, vec![row(1, Condition::Ready), row(3, Condition::Ready)]);
    let look_at = |machines: Vec<Machine>, read| {
        fold(machines, &Observation { tombs: &tombs, ..look(&others(read)) })
    };
    let (early, again) = (1_009, 1_010);
    let twice = look_at(look_at(machines.clone(), early).machines, again);
    assert_eq!(twice.machines.len(), 3, "these listings may have begun before the delete ended");
    let first = look_at(machines, 1_011).machines;
    assert_eq!(first.len(), 3, "the capacity that was read before it may count the machine");
    let folded = look_at(first, 1_012);
    assert_eq!(folded.closed, [Key::new("AB-0002-cdef")]);
    assert_eq!(folded.changes[0].what, RecordChange::Closed(CloseReason::Deleted));
}

#[test]
fn a_lagging_list_raises_no_dead() {
    let mut machines = three(Condition::Ready);
    machines[1].lifecycle = Lifecycle::Deleting;
    let tombs = [(machines[1].key(), at(1_010))];
    let all = listing(1_100, (1..=3).map(|n| row(n, Condition::Ready)).collect());
    let folded = fold(machines.clone(), &Observation { tombs: &tombs, ..look(&all) });
    assert_eq!(folded.machines[1].condition, Condition::Deleting);
    // Its record was already closed, and the row comes back.
    machines.remove(1);
    let folded = fold(machines, &Observation { tombs: &tombs, ..look(&all) });
    assert_eq!(folded.machines[1].condition, Condition::Deleting);
    assert_eq!(folded.machines[1].lifecycle, Lifecycle::Deleting);
}

#[test]
fn a_machine_that_we_took_out_of_service_and_that_was_long_unlisted_is_still_out() {
    let vanished = [(Key::new("AB-0002-cdef"), at(1_010))];
    let mut machines = three(Condition::Ready);
    machines.remove(1);
    let all = listing(1_100, (1..=3).map(|n| row(n, Condition::Ready)).collect());
    let folded = fold(machines, &Observation { vanished: &vanished, ..look(&all) });
    let lifecycles: Vec<Lifecycle> = folded.machines.iter().map(|m| m.lifecycle).collect();
    assert_eq!(lifecycles, [Lifecycle::InService, Lifecycle::Draining, Lifecycle::InService]);
}

#[test]
fn an_id_used_again_is_another_machine() {
    let mut again = row(1, Condition::Provisioning);
    again.vm = Some(VmId::new("other"));
    again.created = at(1_005);
    let rows = vec![again, row(2, Condition::Ready), row(3, Condition::Ready)];
    let folded = fold(three(Condition::Ready), &look(&listing(1_010, rows)));
    assert_eq!(folded.machines.len(), 4);
    assert_eq!(folded.machines[0].condition, Condition::Unknown);
    assert_eq!(folded.machines[3].vm, Some(VmId::new("other")));
}

#[test]
fn identity_is_read_without_case_and_without_vm_id_by_birth() {
    let mut rows: Vec<_> = (1..=3).map(|n| row(n, Condition::Ready)).collect();
    rows[0].vm = Some(VmId::new("ab-0001-CDEF"));
    rows[1].vm = None;
    rows.push(rows[2].clone());
    let folded = fold(three(Condition::Ready), &look(&listing(1_010, rows)));
    assert_eq!(folded.machines.len(), 3);
    assert_eq!(folded.touched, [false; 3]);
}

#[test]
fn a_flag_of_the_cloud_does_not_overrule_our_stamp() {
    let mut rows: Vec<_> = (1..=3).map(|n| row(n, Condition::Ready)).collect();
    for row in &mut rows {
        row.evidence = Evidence::LatestModelApplied;
        row.revision = Some(Revision::new("r0"));
    }
    rows[2].imaged = Some(at(1_005));
    let folded = fold(three(Condition::Ready), &look(&listing(1_010, rows)));
    let revisions: Vec<_> =
        folded.machines.iter().map(|m| m.revision.as_ref().unwrap().as_str()).collect();
    assert_eq!(revisions, ["r1", "r1", "r0"], "only a new disk takes the stamp away");
}

#[test]
fn a_node_that_could_not_be_seen_is_kept() {
    let mut machines = three(Condition::Ready);
    machines[0].node = Some(NodeName::new("node-1"));
    let mut seen = listing(1_010, (1..=3).map(|n| row(n, Condition::Ready)).collect());
    seen.gaps.push(Gap { what: "nodes".into(), why: "the API server did not answer".into() });
    let folded = fold(machines.clone(), &look(&seen));
    assert!(folded.machines[0].node.is_some());
    seen.gaps.clear();
    assert!(fold(machines.clone(), &look(&seen)).machines[0].node.is_none());
    // A gap in the autoscale settings says nothing about nodes.
    seen.gaps.push(Gap { what: AUTOSCALE_SETTINGS.into(), why: "no right to".into() });
    assert!(fold(machines, &look(&seen)).machines[0].node.is_none());
}

#[test]
fn a_node_that_joins_after_the_machines_own_may_be_that_of_the_next_machine_with_its_id() {
    let node = |name: &str, joined: i64, condition| Instance {
        node: Some(NodeName::new(name)),
        joined: Some(at(joined)),
        ..row(1, condition)
    };
    let see = |known: &[Machine], read: i64, row: Instance| {
        fold(known.to_vec(), &look(&listing(read, vec![row]))).machines
    };
    let known = see(&[], 1_000, node("a", 900, Condition::Ready));
    let gone = see(&known, 2_000, row(1, Condition::Provisioning));
    let now = |machines: &[Machine]| (machines[0].node.clone(), machines[0].condition);
    assert_eq!(now(&gone), (None, Condition::Provisioning));
    for (name, before) in [("a", &gone), ("b", &gone), ("b", &known)] {
        // It may even have the same name.
        for condition in [Condition::Ready, Condition::Failed] {
            let unsure = see(before, 2_100, node(name, 2_050, condition));
            assert_eq!(now(&unsure), (None, Condition::Unknown), "it may not go");
            let again = see(&unsure, 2_949, node(name, 2_050, condition));
            assert_eq!(now(&again), (None, Condition::Unknown));
            let sure = see(&again, 2_950, node(name, 2_050, condition));
            assert_eq!(now(&sure), (Some(NodeName::new(name)), condition), "no listing is so old");
        }
        let goes = see(before, 2_100, node(name, 2_050, Condition::Deleting));
        assert_eq!(now(&goes), (None, Condition::Deleting));
    }
    let anew = |condition| {
        let row = node("b", 2_050, condition);
        fold(known.clone(), &look(&listing(2_100, vec![row]))).nodes_anew.len()
    };
    assert_eq!((anew(Condition::Ready), anew(Condition::Deleting)), (1, 0), "why it is not seen");
    // One that was not listed for a while.
    let missing = fold(known.clone(), &look(&listing(1_500, vec![row(2, Condition::Ready)])));
    let others: Vec<Machine> =
        missing.machines.into_iter().filter(|m| m.id.as_str() == "2").collect();
    let back = |read: i64, joined: i64| {
        let rows = vec![node("b", joined, Condition::Ready), row(2, Condition::Ready)];
        let machines = fold(others.clone(), &look(&listing(read, rows))).machines;
        now(&machines)
    };
    assert_eq!(back(2_100, 2_050), (None, Condition::Unknown));
    assert_eq!(back(3_000, 2_050).1, Condition::Ready);
    assert_eq!(back(950, 900).1, Condition::Ready, "as late as some join");
    let first = see(&[], 2_100, node("b", 2_050, Condition::Ready));
    assert_eq!(now(&first), (Some(NodeName::new("b")), Condition::Ready), "it had none before");
}

proptest! {
    /// In whatever order a list comes: the same records, in listing order, each row in at most one.
    #[test]
    fn folding_does_not_depend_on_the_order_of_the_list(
        first in prop::collection::vec((0_u32..40, 0_u8..3), 0..40),
        second in prop::collection::vec((0_u32..40, 0_u8..3), 0..40),
        turn in 0_usize..40,
        complete: bool,
    ) {
        let rows = |of: &[(u32, u8)]| -> Vec<Instance> {
            of.iter().map(|&(n, kind)| {
                let mut row = row(n, Condition::Ready);
                row.created = at(i64::from(n % 4));
                if kind == 0 { row.vm = None; }
                row
            }).collect()
        };
        let machines = fold(Vec::new(), &look(&listing(1_000, rows(&first)))).machines;
        let mut seen = listing(1_010, rows(&second));
        seen.set.complete = complete;
        let one = fold(machines.clone(), &look(&seen));
        prop_assert!(one.machines.is_sorted_by(|a, b| a.listing_order(b).is_le()));
        prop_assert_eq!(one.machines.len(), one.touched.len());
        let again = fold(one.machines.clone(), &Observation { fresh: false, ..look(&seen) });
        prop_assert_eq!(&again.machines, &one.machines, "the same look changes nothing twice");
        if !seen.instances.is_empty() {
            // The first of two rows of one machine counts, so only lists without repeats may be rotated.
            let mut keys: Vec<String> = second.iter().map(|(n, _)| n.to_string()).collect();
            keys.sort();
            keys.dedup();
            if keys.len() == second.len() {
                let turned = turn % seen.instances.len();
                seen.instances.rotate_left(turned);
                prop_assert_eq!(fold(machines, &look(&seen)).machines, one.machines);
            }
        }
    }
}

#[test]
fn one_that_was_going_is_closed_by_its_tomb_and_never_comes_back() {
    let others = || vec![row(1, Condition::Ready), row(3, Condition::Ready)];
    for (lifecycle, how) in [
        (Lifecycle::Deleting, CloseReason::Deleted),
        // Another client deleted it.
        (Lifecycle::InService, CloseReason::Vanished),
    ] {
        let mut machines = three(Condition::Ready);
        (machines[1].lifecycle, machines[1].condition) = (lifecycle, Condition::Deleting);
        for read in [1_010, 1_100, 1_300, 1_400, 1_500] {
            machines = fold(machines, &look(&listing(read, others()))).machines;
            assert_eq!(machines.len(), 3, "no plan has remembered at {read} that it went");
        }
        let tombs = [(machines[1].key(), at(1_510))];
        let (old, late) = (listing(1_520, three_rows()), |read| listing(read, others()));
        let shown = fold(machines, &Observation { tombs: &tombs, ..look(&old) }).machines;
        assert_eq!(shown[1].condition, Condition::Deleting, "an old picture is no sign of life");
        let once = fold(shown, &Observation { tombs: &tombs, ..look(&late(1_530)) }).machines;
        let gone = fold(once, &Observation { tombs: &tombs, ..look(&late(1_540)) });
        assert_eq!((gone.machines.len(), gone.changes[0].what), (2, RecordChange::Closed(how)));
        let ghost = fold(gone.machines, &Observation { tombs: &tombs, ..look(&old) }).machines;
        assert_eq!(ghost[1].lifecycle, Lifecycle::Deleting);
    }
}

#[test]
fn a_stamp_stands_until_the_machine_itself_shows_another_model() {
    let one = |revision: &str, evidence| {
        let shown = Instance {
            revision: Some(Revision::new(revision)),
            evidence,
            ..row(1, Condition::Ready)
        };
        listing(1_000, vec![shown])
    };
    let after = |first: (&str, Evidence), then: (&str, Evidence)| {
        let machines = fold(Vec::new(), &look(&one(first.0, first.1))).machines;
        let machine = fold(machines, &look(&one(then.0, then.1))).machines.remove(0);
        machine.revision.unwrap().to_string()
    };
    let stamped = ("v1:aa.11", Evidence::Stamp);
    // The set's model changed, and the row has the stamp of the current set: the same head proves nothing.
    assert_eq!(after(stamped, ("v1:aa.22", Evidence::Stamp)), "v1:aa.11");
    // The row shows the revision as far as it can; the stamp knows more.
    assert_eq!(after(stamped, ("v1:aa.?", Evidence::Model)), "v1:aa.11");
    assert_eq!(after(stamped, ("v1:aa.?", Evidence::LatestModelApplied)), "v1:aa.11");
    // Another head is another model.
    assert_eq!(after(stamped, ("v1:bb.22", Evidence::Stamp)), "v1:bb.22");
    assert_eq!(after(stamped, ("v1:bb.?", Evidence::Model)), "v1:bb.?");
    assert_eq!(after(stamped, ("v1:bb.?", Evidence::LatestModelApplied)), "v1:aa.11");
    // Proof of the whole model always counts, and so does another fingerprint version.
    assert_eq!(after(stamped, ("v1:aa.22", Evidence::Model)), "v1:aa.22");
    assert_eq!(after(stamped, ("v2:aa.22", Evidence::Stamp)), "v2:aa.22");
    assert_eq!(
        after(("v1:aa.?", Evidence::LatestModelApplied), ("v1:aa.22", Evidence::Model)),
        "v1:aa.22"
    );
}

/// Reads of one machine: time of each read, condition, and since when the source says so. Returns what the record says
/// after each.
fn followed(looks: &[(i64, Condition, i64)]) -> Vec<(Condition, i64)> {
    let (mut machines, mut before) = (three(Condition::Ready), Some(at(1_000)));
    let mut told = Vec::new();
    for (read, condition, since) in looks {
        let mut rows = three_rows();
        rows[0].condition = *condition;
        rows[0].since = Some(at(*since));
        let seen = listing(*read, rows);
        machines = fold(machines, &Observation { before, ..look(&seen) }).machines;
        before = Some(seen.set.read_at);
        told.push((machines[0].condition, machines[0].since.millis() / 1_000));
    }
    told
}

#[test]
fn a_change_lies_between_the_look_that_saw_what_was_before_and_this_one() {
    use Condition::{Ready, Unready};
    let once = |since: i64| followed(&[(1_100, Unready, since)])[0].1;
    for (claims, is) in [
        (1_050, 1_050),
        (1_000, 1_000),
        (1_101, 1_101),
        (999, 1_000),
        (-500, 1_000),
        (1_102, 1_101),
        (2_600, 1_101),
    ] {
        assert_eq!(once(claims), is, "claims {claims}");
    }
    // A clock 25 minutes ahead repeats its claim at each read: that is not news, even once that time has come.
    let (first, later) = (1_101, 2_600);
    let ahead: Vec<_> = [1_100, 1_200, 2_590, 2_605, 9_000].map(|at| (at, Unready, later)).into();
    assert_eq!(followed(&ahead), vec![(Unready, first); 5]);
    // It changed away and back between two reads.
    let flaps = followed(&[(1_100, Unready, 1_050), (1_200, Unready, 1_150), (1_300, Ready, 9)]);
    assert_eq!(flaps, [(Unready, 1_050), (Unready, 1_150), (Ready, 1_200)]);
}

#[test]
fn what_was_claimed_before_a_gap_is_no_news_after_it() {
    use Condition::{Ready, Unknown, Unready};
    let seen = followed(&[
        (1_100, Unready, 5_000),
        (1_200, Unknown, 0),
        (1_300, Unready, 5_000),
        (1_400, Unknown, 0),
        (1_500, Ready, 100),
    ]);
    let since: Vec<i64> = seen.iter().map(|(_, since)| *since).collect();
    assert_eq!((since[0], since[2], since[4]), (1_101, 1_101, since[3]), "{seen:?}");
}

#[test]
fn a_birth_that_lies_ahead_or_far_behind_is_not_believed() {
    for (born, since) in [(1_030_u32, 1_030), (400, 1_000), (2_500, 1_061)] {
        let mut rows = three_rows();
        rows.push(row(born, Condition::Provisioning));
        let seen = listing(1_060, rows);
        let before = Some(at(1_000));
        let machines =
            fold(three(Condition::Ready), &Observation { before, ..look(&seen) }).machines;
        let new = machines.iter().find(|m| m.created == at(i64::from(born))).unwrap();
        assert_eq!(new.since, at(since), "born {born}");
    }
}
