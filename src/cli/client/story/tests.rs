use super::*;
use crate::memory::{EventDetail, HistoryEvent, HistoryRecord};
use crate::model::facts::Verdict;
use crate::model::ids::{CommandId, EntryId, InstanceId, Key, Revision};
use crate::model::rollout::RolloutCause;
use crate::model::size::SizeSpeaker;

type Line = (i64, HistoryEvent, EventDetail);

fn plain(second: i64, event: HistoryEvent) -> Line {
    (second, event, EventDetail::default())
}

fn appeared(second: i64, id: &str, condition: Condition) -> Line {
    let (id, key) = (InstanceId::new(id), Key::new(id));
    plain(second, HistoryEvent::Appeared { id, key, condition })
}

fn became(second: i64, id: &str, from: Condition, to: Condition) -> Line {
    let (id, key) = (InstanceId::new(id), Key::new(id));
    plain(second, HistoryEvent::Became { id, key, from, to })
}

fn serves(second: i64, id: &str) -> Line {
    let (id, key) = (InstanceId::new(id), Key::new(id));
    plain(second, HistoryEvent::FirstAvailable { id, key })
}

fn closed(second: i64, id: &str, deleted: bool) -> Line {
    let (id, key) = (InstanceId::new(id), Key::new(id));
    plain(second, HistoryEvent::Closed { id, key, deleted })
}

fn raise(second: i64, from: u32, to: u32, desired: u32) -> Line {
    let (verb, machines, reason) = (ActionKind::Raise, Vec::new(), "2 machines missing".into());
    let event = HistoryEvent::Decided { entry: EntryId::new("e1"), verb, machines, reason };
    let (capacity, desired) = (Some((from, to)), Some(desired));
    (second, event, EventDetail { capacity, desired, ..EventDetail::default() })
}

fn decided(second: i64, verb: ActionKind, ids: &[&str], because: RemovalReason) -> Line {
    let machines = ids.iter().map(|id| InstanceId::new(*id)).collect();
    let (entry, reason) = (EntryId::new("e2"), "why".into());
    let event = HistoryEvent::Decided { entry, verb, machines, reason };
    (second, event, EventDetail { because: vec![because; ids.len()], ..EventDetail::default() })
}

fn moved(second: i64, entry: &str, verb: ActionKind, step: JournalStep, code: &str) -> Line {
    let event = HistoryEvent::Moved { entry: EntryId::new(entry), verb, message: "said".into() };
    let code = Some(code).filter(|code| !code.is_empty()).map(Into::into);
    (second, event, EventDetail { step: Some(step), code, ..EventDetail::default() })
}

/// The message as the executor writes it.
fn with_words((second, event, detail): Line) -> Line {
    let HistoryEvent::Moved { entry, verb, .. } = event else { panic!("{event:?}") };
    let message = "refused: forbidden (Forbidden): \"you may not patch nodes\"".into();
    (second, HistoryEvent::Moved { entry, verb, message }, detail)
}

fn held(second: i64, reason: HoldReason) -> Line {
    plain(second, HistoryEvent::Held { reason, message: reason.meaning().into() })
}

fn rollout(second: i64, phase: RolloutPhase, name: &str, opened: i64) -> Line {
    let to = Some(Revision::new(format!("v1:{name}.00")));
    let detail = EventDetail {
        revision_name: Some(name.into()),
        cause: Some(RolloutCause::Revision),
        opened: Some(Time::from_millis(opened * 1_000)),
        covered: Some(30),
        ..EventDetail::default()
    };
    (second, HistoryEvent::Rollout { phase, to }, detail)
}

fn answered(second: i64, verb: CommandName, accepted: bool) -> Line {
    let (command, message) = (CommandId::new("c"), "the answer".into());
    let detail = EventDetail {
        who: Some("ann".into()),
        why: Some("errors since noon".into()),
        command: Some(verb.name().into()),
        ..EventDetail::default()
    };
    (second, HistoryEvent::Answered { command, accepted, message }, detail)
}

fn lines(story: Vec<Line>) -> Vec<HistoryLine> {
    let of = |(n, (second, event, detail)): (usize, Line)| {
        let at = Time::from_millis(second * 1_000);
        HistoryLine::of(n as u64, "web", &HistoryRecord { at, event, detail })
    };
    story.into_iter().enumerate().map(of).collect()
}

fn texts(facts: Vec<Fact>) -> Vec<String> {
    facts.into_iter().map(|fact| fact.text).collect()
}

fn told(story: Vec<Line>) -> Vec<String> {
    texts(Story::default().tell(&lines(story)))
}

#[test]
fn a_rollout_is_one_line_a_fact() {
    use ActionKind::{Delete, Drain, Raise};
    use Condition::{Deleting, Provisioning, Ready, Unknown};
    let outdated = RemovalReason::Outdated;
    let mut story = vec![plain(0, HistoryEvent::Rollout { phase: RolloutPhase::None, to: None })];
    story.extend((0..12).map(|id| appeared(0, &id.to_string(), Ready)));
    story.extend([
        rollout(60, RolloutPhase::Progressing, "2.0.0", 60),
        raise(60, 12, 14, 12),
        moved(61, "e1", Raise, JournalStep::Asking, ""),
        moved(61, "e1", Raise, JournalStep::Accepted, ""),
        held(62, HoldReason::SurgeBooting),
        appeared(62, "31", Provisioning),
        appeared(62, "32", Provisioning),
        became(90, "31", Provisioning, Ready),
        serves(120, "31"),
        serves(120, "32"),
        plain(120, HistoryEvent::Freed { reason: HoldReason::SurgeBooting }),
        rollout(120, RolloutPhase::Waiting, "2.0.0", 60),
        decided(120, Drain, &["5"], outdated),
        decided(150, Delete, &["5", "6"], outdated),
        moved(151, "e2", Delete, JournalStep::Accepted, ""),
        became(180, "5", Ready, Unknown),
        became(180, "6", Ready, Deleting),
        moved(200, "e2", Delete, JournalStep::Done, ""),
        closed(200, "5", true),
        closed(200, "6", true),
        rollout(1_740, RolloutPhase::Succeeded, "2.0.0", 60),
    ]);
    assert_eq!(
        told(story),
        [
            "rollout to 2.0.0 began: 30 machines",
            "raised capacity 12 → 14",
            "machines 31, 32 are there",
            "machines 31, 32 serve",
            "machines 5, 6 deleted; replaced by 31, 32",
            "rollout to 2.0.0 done in 28m",
        ]
    );
}

#[test]
fn equal_facts_of_a_turn_are_joined_and_others_are_not() {
    let mut story = vec![raise(0, 0, 12, 12)];
    story.extend((0..12).rev().map(|id| appeared(5, &id.to_string(), Condition::Provisioning)));
    story.extend([
        became(9, "3", Condition::Ready, Condition::Failed),
        became(9, "4", Condition::Ready, Condition::Unready),
        became(9, "7", Condition::Ready, Condition::Failed),
        closed(9, "8", false),
        became(10, "3", Condition::Failed, Condition::Ready),
        became(11, "9", Condition::Ready, Condition::Unknown),
        became(12, "9", Condition::Unknown, Condition::Ready),
        raise(12, 11, 12, 12),
        appeared(13, "12", Condition::Provisioning),
    ]);
    assert_eq!(
        told(story),
        [
            "raised capacity 0 → 12",
            "12 machines are there: 0–11",
            "machines 3, 7 do not serve any more: Failed",
            "machine 4 does not serve any more: Unready",
            "machine 8 is gone, not by Poolkeeper",
            "machine 3 is ready again",
            "machine 9 is no longer visible",
            "machine 9 is visible again",
            "raised capacity 11 → 12",
            "machine 12 is there, in place of 8",
        ]
    );
}

#[test]
fn a_command_is_told_with_who_and_why() {
    use RolloutPhase::{Aborted, Paused, Progressing};
    for (story, is) in [
        (
            vec![rollout(9, Paused, "2.0.0", 0), answered(9, CommandName::Pause, true)],
            "ann paused the rollout: errors since noon",
        ),
        (
            vec![answered(9, CommandName::Pause, true)],
            "ann ran pause (errors since noon): the answer",
        ),
        (
            vec![rollout(9, Progressing, "2.0.0", 0), answered(9, CommandName::Resume, true)],
            "ann resumed the rollout: errors since noon",
        ),
        (
            vec![answered(9, CommandName::Resume, false)],
            "ann ran resume (errors since noon); refused: the answer",
        ),
        (
            vec![answered(9, CommandName::Approve, true)],
            "ann ran approve (errors since noon): the answer",
        ),
        (
            vec![plain(
                9,
                HistoryEvent::Answered {
                    command: CommandId::new("c"),
                    accepted: true,
                    message: "from an earlier version".into(),
                },
            )],
            "from an earlier version",
        ),
    ] {
        assert_eq!(told(story), [is]);
    }
    let abort = vec![rollout(360, Aborted, "2.0.0", 60), answered(360, CommandName::Abort, true)];
    assert_eq!(
        told(abort),
        ["rollout to 2.0.0 aborted after 5m", "ann aborted the rollout: errors since noon"]
    );
}

#[test]
fn a_refusal_names_who_refused_what_and_its_code() {
    use ActionKind::{Delete, Drain, Raise};
    let code = "OverconstrainedZonalAllocationRequest";
    let story = vec![
        raise(0, 12, 14, 12),
        moved(1, "e1", Raise, JournalStep::Refused, code),
        raise(2, 12, 12, 12),
        moved(3, "e1", Raise, JournalStep::Refused, CHANGED_SINCE_READ),
        raise(4, 14, 12, 12),
        moved(5, "e1", Raise, JournalStep::Lost, ""),
        decided(6, Delete, &["5", "6"], RemovalReason::Failed),
        moved(7, "e2", Delete, JournalStep::PartlyRefused, "OperationNotAllowed"),
        decided(8, Drain, &["7"], RemovalReason::Outdated),
        moved(9, "e2", Drain, JournalStep::Refused, "forbidden"),
        decided(10, Drain, &["8"], RemovalReason::Surplus),
        moved(11, "e2", Drain, JournalStep::Refused, STILL_SERVES),
        decided(12, Drain, &["9"], RemovalReason::Surplus),
        moved(13, "e2", Drain, JournalStep::Refused, HOOK_KEEPS),
        decided(14, Drain, &["10"], RemovalReason::Surplus),
        with_words(moved(15, "e2", Drain, JournalStep::Refused, "Forbidden")),
        held(9, HoldReason::RemovalRefused),
        held(9, HoldReason::GateFailed),
    ];
    assert_eq!(
        told(story),
        [
            "raised capacity 12 → 14",
            "Azure refused the raise: OverconstrainedZonalAllocationRequest",
            "repeated capacity 12: machines are missing",
            "lowered capacity 14 → 12",
            "the answer to the raise was lost",
            "Azure refused the delete of 5, 6 in part: OperationNotAllowed",
            "the cluster refused the drain of 7: forbidden",
            "waits: A gate fails.",
            "the drain of 8 was given up: the machine was not out of its load balancers by the deadline",
            "the drain of 9 was given up: a webhook refused, or did not agree by the deadline",
            "the cluster refused the drain of 10: Forbidden (you may not patch nodes)",
        ]
    );
}

#[test]
fn a_deleted_machine_is_told_with_its_reason() {
    use ActionKind::Delete;
    let asked = || {
        let (second, event, mut detail) = closed(5, "60", true);
        (detail.who, detail.why) = (Some("local".into()), Some("see what happens".into()));
        (second, event, detail)
    };
    let delete = |id: &str, because| decided(4, Delete, &[id], because);
    for (story, is) in [
        (vec![closed(5, "60", true)], "machine 60 deleted"),
        (
            vec![delete("60", RemovalReason::Failed), closed(5, "60", true)],
            "machine 60 deleted, because it had failed",
        ),
        (
            vec![delete("60", RemovalReason::Surplus), closed(5, "60", true)],
            "machine 60 deleted, because it was surplus",
        ),
        (
            vec![delete("60", RemovalReason::DeleteRequested), asked()],
            "machine 60 deleted, asked by local (see what happens)",
        ),
    ] {
        assert_eq!(told(story), [is]);
    }
}

#[test]
fn a_refresh_and_a_rollback_have_their_names() {
    let again = |cause| {
        let (second, event, mut detail) = rollout(0, RolloutPhase::Waiting, "2.0.0", 0);
        detail.cause = Some(cause);
        (second, event, detail)
    };
    assert_eq!(
        told(vec![again(RolloutCause::Refresh)]),
        ["rollout to 2.0.0 (again) began: 30 machines"]
    );
    assert_eq!(
        told(vec![
            again(RolloutCause::Revision),
            rollout(60, RolloutPhase::Progressing, "3.0.0", 0),
            rollout(90, RolloutPhase::RollingBack, "1.0.0", 90),
            rollout(390, RolloutPhase::RolledBack, "1.0.0", 90),
        ]),
        [
            "rollout to 2.0.0 began: 30 machines",
            "the rollout goes to 3.0.0 instead: 30 machines",
            "rollback to 1.0.0 began: 30 machines",
            "rollback to 1.0.0 done in 5m",
        ]
    );
}

#[test]
fn facts_come_in_order_of_time_and_then_of_id_over_several_calls() {
    let mut story = Story::default();
    let all = lines(vec![
        held(9, HoldReason::Window),
        held(7, HoldReason::Quota),
        held(9, HoldReason::Failing),
        raise(20, 12, 13, 12),
        appeared(21, "31", Condition::Provisioning),
        decided(22, ActionKind::Delete, &["6"], RemovalReason::Outdated),
        closed(23, "6", true),
    ]);
    let facts = story.tell(&all[..3]);
    let times: Vec<i64> = facts.iter().map(|fact| fact.at.millis() / 1_000).collect();
    assert_eq!(times, [7, 9, 9]);
    assert!(facts[1].text.contains("windows") && facts[2].text.contains("Replacements failed"));
    assert_eq!(texts(story.tell(&all[3..5])), ["raised capacity 12 → 13", "machine 31 is there"]);
    assert_eq!(texts(story.tell(&all[5..])), ["machine 6 deleted; replaced by 31"]);
}

#[test]
fn a_changed_size_says_who_asked() {
    let by = SizeSpeaker::Profile("day".into());
    let sized = |at, by| plain(at, HistoryEvent::Sized { from: 4, to: 6, by });
    let all = lines(vec![sized(9, by), sized(19, SizeSpeaker::Kept)]);
    let told = texts(Story::default().tell(&all));
    // The bounds of the file moved, and no profile has an opinion.
    let without = "the size is 6 instead of 4";
    assert_eq!(told, [format!("{without}, by the profile day"), without.to_owned()]);
}

#[test]
fn a_gate_says_what_it_found() {
    let gate = |verdict, message: &str| {
        let (gate, message) = ("slo".into(), message.into());
        plain(9, HistoryEvent::Gate { gate, verdict, message })
    };
    let all = lines(vec![gate(Verdict::Pass, "0.002 is <= 0.01"), gate(Verdict::Fail, "")]);
    let told = Story::default().tell(&all);
    assert_eq!(texts(told), ["gate slo passes: 0.002 is <= 0.01", "gate slo fails"]);
}

#[test]
fn machines_are_named_in_ranges() {
    for (ids, is) in [
        (&["3"][..], "machine 3"),
        (&["4", "3"], "machines 3, 4"),
        (&["10", "9", "11", "2"], "machines 2, 9–11"),
        (&["web_b", "web_a"], "machines web_b, web_a"),
        (
            &["0", "2", "4", "6", "8", "10", "12", "14", "16", "18"],
            "machines 0, 2, 4, 6, 8, 10, 12, 14 and 2 more",
        ),
    ] {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        assert_eq!(machines(&ids), is);
    }
}
