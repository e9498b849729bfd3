//! Version 1 of every record, as it was first written: what is kept by those who run this must stay readable.

use poolkeeper::memory::record::{self, SharedTexts};
use poolkeeper::memory::{
    AuditEntry, Consent, EventDetail, HistoryEvent, HistoryRecord, JournalStep,
};
use poolkeeper::model::action::{Action, Expect, ModelWrite, RemovalReason, Target, WriteScope};
use poolkeeper::model::backend::{OutOfService, PutDown, ServiceStep};
use poolkeeper::model::facts::Verdict;
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::hook::{HookAnswer, HookCall, HookPhase};
use poolkeeper::model::ids::*;
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::{Entry, EntryOutcome, OperationUrl, Phase, Refusal, Refused};
use poolkeeper::model::machine::*;
use poolkeeper::model::notice::{Notice, NoticeDetail, NoticeKind, NoticeRollout};
use poolkeeper::model::owner::{OwnerTag, OwnerWrite};
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb, RolloutPhase, WaitKind};
use poolkeeper::model::rollout::*;
use poolkeeper::model::size::SizeSpeaker;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::Time;

use super::golden::golden;

fn at(seconds: i64) -> Time {
    Time::from_millis(1_772_366_400_000 + 1_000 * seconds)
}

fn machines() -> Vec<Machine> {
    let vm = VmId::new("5b1f7c1e-0000-4000-8000-000000000007");
    let plain = Machine::new(InstanceId::new("7"), Some(vm), at(0), Condition::Ready);
    let nameless = Machine::new(InstanceId::new("8"), None, at(1), Condition::Provisioning);
    let full = Machine {
        zone: Some(Zone::new("2")),
        imaged: at(2),
        first_seen: at(3),
        revision: Some(Revision::new("v1:aa.11")),
        evidence: Evidence::LatestModelApplied,
        condition: Condition::Unknown,
        since: at(4),
        claimed_since: Some(at(7)),
        before_gap: Some((Condition::Ready, at(5))),
        lifecycle: Lifecycle::Draining,
        lifecycle_since: at(6),
        protection: Protection::ScaleIn,
        missed: 2,
        workloads: 3,
        node: Some(NodeName::new("web-000007")),
        ..plain.clone()
    };
    vec![plain, nameless, full]
}

fn refused() -> Refused {
    Refused {
        refusal: Refusal::NoCapacity,
        code: Some("ZonalAllocationFailed".into()),
        message: None,
        zone: Some(Zone::new("2")),
        retry_at: Some(at(90)),
    }
}

fn fields() -> ModelFields {
    ModelFields {
        image: Some("image".into()),
        vm_size: Some("Standard_D2s_v5".into()),
        tags: [("team".into(), "web".into())].into(),
    }
}

fn owner_writes() -> [OwnerWrite; 2] {
    let tag = OwnerTag { store: StoreId::new("0af3"), since: at(0) };
    [OwnerWrite::Put { tag: tag.clone(), over: Some("another".into()) }, OwnerWrite::TakeAway(tag)]
}

fn entries() -> Vec<Entry> {
    let [plain, nameless, _] = &machines()[..] else { panic!("three") };
    let targets = || {
        vec![
            Target::of(plain, RemovalReason::DeleteRequestedNow),
            Target::of(nameless, RemovalReason::Failed),
        ]
    };
    let revision = || Revision::new("v1:aa.11");
    let (reason, before) = (|| "why".into(), at(60));
    let expect = |etag: Option<Etag>| Expect { etag, capacity: 3, revision: revision(), before };
    let refused = refused();
    let operation = Some(OperationUrl::new("https://example.invalid/operations/1?sig=x"));
    let actions = [
        (
            Action::Raise { from: 3, to: 4, drift: 0, reason: reason(), expect: expect(None) },
            Phase::Intended,
        ),
        (
            Action::Drain { targets: targets(), reason: reason(), before },
            Phase::Asking { at: at(1) },
        ),
        (
            Action::Delete { targets: targets(), reason: reason(), before, force: true },
            Phase::Accepted { at: at(2), operation },
        ),
        (
            Action::Restore { targets: targets(), reason: reason(), before },
            Phase::Doubtful { at: at(3) },
        ),
        (
            Action::Reimage {
                targets: targets(),
                to: Revision::new("r2"),
                reason: reason(),
                before,
            },
            Phase::Ended {
                at: at(4),
                accepted: Some(at(3)),
                outcome: EntryOutcome::Mixed(vec![
                    (plain.key(), None),
                    (nameless.key(), Some(refused.clone())),
                ]),
            },
        ),
        (
            Action::UpdateModel {
                fields: fields(),
                why: ModelWrite::PutBack,
                scope: WriteScope::Image,
                reason: reason(),
                expect: expect(Some(Etag::new("\"7\""))),
            },
            Phase::Ended { at: at(5), accepted: None, outcome: EntryOutcome::Refused(refused) },
        ),
    ];
    let entry = |(n, (action, phase))| Entry {
        id: EntryId::new(format!("e{n}")),
        epoch: Epoch(4),
        written: at(0),
        read_at: at(-1),
        action,
        phase,
    };
    let tags = owner_writes().map(|write| Action::TagOwner { write, reason: reason(), before });
    let tags = tags.map(|action| (action, Phase::Intended));
    actions.into_iter().chain(tags).enumerate().map(entry).collect()
}

fn lines() -> Vec<HistoryRecord> {
    let (id, key) = (|| InstanceId::new("7"), || Key::new("vm-7"));
    let (entry, say) = (|| EntryId::new("e1"), || "said".into());
    let verb = poolkeeper::model::action::ActionKind::Delete;
    let events = vec![
        HistoryEvent::Appeared { id: id(), key: key(), condition: Condition::Provisioning },
        HistoryEvent::Became {
            id: id(),
            key: key(),
            from: Condition::Ready,
            to: Condition::Unready,
        },
        HistoryEvent::FirstAvailable { id: id(), key: key() },
        HistoryEvent::Closed { id: id(), key: key(), deleted: true },
        HistoryEvent::Decided { entry: entry(), verb, machines: vec![id()], reason: say() },
        HistoryEvent::Moved { entry: entry(), verb, message: say() },
        HistoryEvent::Held { reason: HoldReason::Floor, message: say() },
        HistoryEvent::Freed { reason: HoldReason::Floor },
        HistoryEvent::Rollout { phase: RolloutPhase::Baking, to: Some(Revision::new("r2")) },
        HistoryEvent::Answered { command: CommandId::new("a"), accepted: true, message: say() },
        HistoryEvent::Frozen { invariant: Some(4), message: say() },
        HistoryEvent::Sized { from: 3, to: 4, by: SizeSpeaker::Profile("day".into()) },
        HistoryEvent::Gate { gate: "slo".into(), verdict: Verdict::Fail, message: say() },
    ];
    let detail = EventDetail {
        who: Some("ann".into()),
        why: Some("odd".into()),
        command: Some("pause".into()),
        because: vec![RemovalReason::DeleteRequested],
        capacity: Some((3, 4)),
        desired: Some(3),
        step: Some(JournalStep::Refused),
        code: Some("ZonalAllocationFailed".into()),
        revision_name: Some("2.0.0".into()),
        cause: Some(RolloutCause::Refresh),
        opened: Some(at(0)),
        covered: Some(3),
    };
    let detailed = HistoryEvent::Freed { reason: HoldReason::Floor };
    let plain = events.into_iter().map(|event| HistoryRecord::new(at(0), event));
    plain.chain([HistoryRecord { at: at(0), event: detailed, detail }]).collect()
}

fn state() -> PoolState {
    let to = || Revision::new("r2");
    let mut rollout =
        Rollout::open(RolloutCause::Revision, Some(Revision::new("r1")), to(), at(0), 3);
    rollout.stage = RolloutStage::Paused { by: "ann".into(), why: "because".into(), at: at(1) };
    rollout.failed = vec![Key::new("vm-7")];
    PoolState {
        adopted: Some(at(0)),
        desired: Desired { count: 3, shown: 3, ..Desired::default() },
        wanted: Some(to()),
        good_revisions: vec![GoodRevision::plain(Revision::new("r1"))],
        rollout: Some(rollout),
        backoff: vec![BackOff {
            granted: None,
            answered: false,
            refusal: Refusal::Quota,
            zone: None,
            size: Some("Standard_D2s_v5".into()),
            code: None,
            message: None,
            times: 2,
            at: at(1),
            until: at(60),
            retry_at: Some(at(50)),
        }],
        tombs: vec![(Key::new("vm-6"), at(0))],
        ..PoolState::default()
    }
}

/// Good revisions were names once, and the fields of the last one stood beside them.
#[test]
fn good_revisions_as_they_were_written_once_are_read() {
    let old = r#"{"v":1,"desired":{"count":3},"good":["r1","r2"],
        "model":{"goodFields":{"image":"v2","tags":{"team":"blue"}}}}"#;
    let state = record::read_state(old).unwrap();
    let tags = [("team".into(), "blue".into())].into();
    let fields = Some(ModelFields { image: Some("v2".into()), vm_size: None, tags });
    let (r1, r2) = (Revision::new("r1"), Revision::new("r2"));
    let good = [GoodRevision::plain(r1), GoodRevision { revision: r2, fields }];
    assert_eq!(state.good_revisions, good);
    let again = record::read_state(&record::write_state(&state).unwrap()).unwrap();
    assert_eq!(again, state);
}

fn out_of_service() -> [OutOfService; 6] {
    let pool = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/front/\
                backendAddressPools/web";
    let put = |at, answered| PutDown {
        pool: BackendPoolId::new(pool),
        name: "web_7".into(),
        at,
        answered,
        lost: (!answered).then(|| self::at(0)),
        tries: 2,
    };
    let [plain, nameless, ..] = &machines()[..] else { panic!("two") };
    let leaving = OutOfService { put: vec![put(at(1), false)], ..OutOfService::of(plain, at(0)) };
    let grace = OutOfService {
        step: ServiceStep::Grace { since: at(30) },
        put: vec![put(at(1), true)],
        ..leaving.clone()
    };
    let out = OutOfService { step: ServiceStep::Out, ..OutOfService::of(nameless, at(0)) };
    let returning = OutOfService { step: ServiceStep::Returning, ..grace.clone() };
    let mut asked = HookCall::new(HookPhase::Before, "app".into(), at(0));
    asked.begin(at(1));
    asked.hear(HookAnswer::Retry { after: None, say: "it answers 503".into() }, at(2));
    let asks = OutOfService { hooks: vec![asked], put: Vec::new(), ..leaving.clone() };
    let mut undone = HookCall::new(HookPhase::UndoAfter, "app".into(), at(3));
    undone.hear(HookAnswer::Done, at(4));
    let returned = OutOfService { hooks: vec![undone], ..returning.clone() };
    [leaving, grace, out, returning, asks, returned]
}

fn notices() -> [Notice; 2] {
    let paused = Notice {
        id: "web-1-0-0".into(),
        kind: NoticeKind::Paused,
        at: at(0),
        rollout: Some(NoticeRollout {
            from: Some("1.0.0".into()),
            to: "1.0.1".into(),
            phase: RolloutPhase::Paused,
            cause: RolloutCause::Revision,
            opened: Some(at(1)),
        }),
        message: "the rollout is paused".into(),
        detail: NoticeDetail {
            by: Some("ann".into()),
            why: Some("errors".into()),
            what: Some(WaitKind::Checkpoint),
            number: Some(1),
            revision: Some("1.0.1".into()),
            done: Some(2),
            covered: Some(3),
            failed: Some(4),
            invariant: Some(5),
        },
    };
    let frozen = Notice {
        kind: NoticeKind::Frozen,
        rollout: None,
        detail: NoticeDetail::default(),
        ..paused.clone()
    };
    [paused, frozen]
}

#[test]
fn records_are_written_as_they_always_were() {
    let mut text = String::new();
    let mut say = |record: String| text.push_str(&(record + "\n"));
    for machine in machines() {
        let row = record::write_machine(&machine).unwrap();
        let key = machine.key();
        let again = record::read_machine(key.as_str(), &row, &mut SharedTexts::default()).unwrap();
        assert_eq!(again, machine);
        say(row);
    }
    say(record::write_state(&state()).unwrap());
    for entry in entries() {
        say(record::write_entry(&entry).unwrap());
    }
    for line in lines() {
        say(record::write_line(&line).unwrap());
    }
    for verb in
        [CommandVerb::Pause, CommandVerb::ResetCapacity, CommandVerb::Abandon(InstanceId::new("7"))]
    {
        let (id, by, why) = (CommandId::new("a"), "ann".into(), "because".into());
        say(record::write_ask(&Command {
            id,
            verb,
            by,
            why,
            at: at(0),
            about: CommandArgs::default(),
        })
        .unwrap());
    }
    let delete = Some(DeleteRequest { by: "ann".into(), why: "odd".into(), now: true });
    let hold = Some(MachineHold { by: "bob".into(), why: "debugging".into() });
    say(record::write_marks(&Overrides { delete, hold }).unwrap());
    let audit = AuditEntry {
        at: at(0),
        who: "ann".into(),
        verb: "hold".into(),
        pool: Some(PoolName::new("web")),
        on: "7".into(),
        why: "debugging".into(),
        came: "accepted".into(),
        consent: None,
    };
    say(record::write_audit(&audit).unwrap());
    let awaited = AuditEntry { consent: Some(Consent::Awaited), ..audit };
    say(record::write_audit(&awaited).unwrap());
    let (by, why) = ("kim".into(), "quota".into());
    let stop = GlobalStop { since: at(0), by, why, except_repair: true };
    say(record::write_stop(&stop).unwrap());
    for row in out_of_service() {
        let line = record::write_out(&row).unwrap();
        assert_eq!(record::read_out(&line).unwrap(), row);
        say(line);
    }
    for notice in notices() {
        let line = record::write_notice(&notice).unwrap();
        assert_eq!(record::read_notice(&line).unwrap(), notice);
        say(line);
    }
    golden("store/records-v1.txt", &text);
}

#[test]
fn records_with_what_is_no_longer_kept_are_read() {
    let state = r#"{"v":1,"desired":{"count":3},"aloneUntil":1772366401000,"backoff":[{"refusal":"quota","times":2,"at":1772366401000,"until":1772366460000,"availableThen":3}]}"#;
    assert_eq!(record::read_state(state).unwrap().backoff[0].times, 2);
    let raise = |drift: &str| {
        let entry = format!(
            r#"{{"v":1,"id":"e0","epoch":4,"written":1,"readAt":0,"action":{{"raise":{{"from":3,"to":3,"drift":{drift},"reason":"why","expect":{{"capacity":3,"revision":"r1","before":60}}}}}},"phase":"intended"}}"#
        );
        record::read_entry(&entry).unwrap().action.births()
    };
    assert_eq!([raise("false"), raise("2")], [0, 2]);
}

#[test]
fn reasons_of_holds_by_their_old_names_are_read() {
    for (old, reason) in [
        ("deleteAlone", HoldReason::Leaving),
        ("hotLoop", HoldReason::RolloutLoop),
        ("law", HoldReason::InvariantViolated),
        ("mixed", HoldReason::MixedRevisions),
        ("natives", HoldReason::PlatformConflict),
        ("raiseNotLanded", HoldReason::ScaleOutUnconfirmed),
        ("raisedNotSeen", HoldReason::InstancesNotListed),
        ("sizeDoubted", HoldReason::CapacityUncertain),
        ("twoWriters", HoldReason::ConflictingWriters),
    ] {
        let line =
            format!(r#"{{"v":1,"at":1772366400000,"told":{{"freed":{{"reason":"{old}"}}}}}}"#);
        assert_eq!(
            record::read_line(&line).unwrap().event,
            HistoryEvent::Freed { reason },
            "{old}"
        );
    }
}
