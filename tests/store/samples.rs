//! Anything that may have to be remembered.

use poolkeeper::memory::{
    AuditEntry, Consent, EventDetail, HistoryEvent, HistoryRecord, JournalStep,
};
use poolkeeper::model::action::{
    Action, ActionKind, Expect, ModelWrite, RemovalReason, Target, WriteScope,
};
use poolkeeper::model::autoscaler::{AutoscalerDocument, AutoscalerTarget, AutoscalerWrite};
use poolkeeper::model::backend::{OutOfService, PutDown, ServiceStep};
use poolkeeper::model::facts::Verdict;
use poolkeeper::model::hold::HoldReason;
use poolkeeper::model::hook::{HookCall, HookEnd, HookPhase};
use poolkeeper::model::ids::*;
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::{Entry, EntryOutcome, OperationUrl, Phase, Refusal, Refused};
use poolkeeper::model::machine::*;
use poolkeeper::model::owner::{OwnerTag, OwnerWrite};
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb, RolloutPhase, WaitKind};
use poolkeeper::model::rollout::RolloutCause;
use poolkeeper::model::size::SizeSpeaker;
use poolkeeper::model::stop::GlobalStop;
use poolkeeper::model::time::Time;
use proptest::option::of as option;
use proptest::prelude::*;
use proptest::sample::select;

/// With what JSON and SQL give a meaning of their own.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~é😀\\n\u{0}]{0,8}",
        select(vec!["null", ",null]", ",0]", "'; --", "\\\"", "0"]).prop_map(str::to_owned)
    ]
}

pub fn boxed() -> impl Strategy<Value = Box<str>> {
    text().prop_map(Into::into)
}

pub fn time() -> impl Strategy<Value = Time> {
    prop_oneof![Just(0), Just(1_772_366_400_000), any::<i64>()].prop_map(Time::from_millis)
}

fn some<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(of, 0..3)
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), any::<u32>()]
}

pub fn condition() -> impl Strategy<Value = Condition> {
    select(vec![
        Condition::Provisioning,
        Condition::Ready,
        Condition::Unready,
        Condition::Failed,
        Condition::Deleting,
        Condition::Stopped,
        Condition::Unknown,
    ])
}

fn lifecycle() -> impl Strategy<Value = Lifecycle> {
    select(vec![
        Lifecycle::InService,
        Lifecycle::CutOff,
        Lifecycle::Standby,
        Lifecycle::Draining,
        Lifecycle::Drained,
        Lifecycle::Updating,
        Lifecycle::Deleting,
    ])
}

/// Without overrides: those are written by the API, not by turns.
pub fn machine() -> BoxedStrategy<Machine> {
    let evidence = select(vec![Evidence::Model, Evidence::Stamp, Evidence::LatestModelApplied]);
    let protection =
        select(vec![Protection::None, Protection::ScaleIn, Protection::All, Protection::Unknown]);
    let names = (text(), option(text()), option(text()), option(text()), option(text()));
    let times = (time(), time(), time(), time(), time());
    let words = (evidence, condition(), lifecycle(), protection);
    let late = (option(time()), option(time()), option(time()), option(time()));
    let rest = (option((condition(), time())), any::<bool>(), any::<u8>(), number(), late);
    (names, times, words, rest)
        .prop_map(|(names, times, words, rest)| Machine {
            id: InstanceId::new(names.0),
            vm: names.1.map(VmId::new),
            zone: names.2.map(Zone::new),
            created: times.0,
            imaged: times.1,
            first_seen: times.2,
            updated: rest.4.0,
            revision: names.3.map(Revision::new),
            evidence: words.0,
            condition: words.1,
            since: times.3,
            claimed_since: rest.4.2,
            before_gap: rest.0,
            ever_available: rest.1,
            lifecycle: words.2,
            lifecycle_since: times.4,
            unreachable_since: rest.4.1,
            protection: words.3,
            missed: rest.2,
            workloads: rest.3,
            node: names.4.map(NodeName::new),
            joined: rest.4.3,
            marks: None,
        })
        .boxed()
}

pub fn marks() -> BoxedStrategy<Overrides> {
    let delete = (boxed(), boxed(), any::<bool>());
    let delete = delete.prop_map(|(by, why, now)| DeleteRequest { by, why, now });
    let hold = (boxed(), boxed()).prop_map(|(by, why)| MachineHold { by, why });
    (option(delete), option(hold)).prop_map(|(delete, hold)| Overrides { delete, hold }).boxed()
}

fn removal_reason() -> impl Strategy<Value = RemovalReason> {
    select(vec![
        RemovalReason::Failed,
        RemovalReason::DeleteRequested,
        RemovalReason::DeleteRequestedNow,
        RemovalReason::Outdated,
        RemovalReason::Surplus,
    ])
}

fn target() -> impl Strategy<Value = Target> {
    (text(), option(text()), time(), removal_reason()).prop_map(|(id, vm, created, because)| {
        Target { id: InstanceId::new(id), vm: vm.map(VmId::new), created, because }
    })
}

fn fields() -> impl Strategy<Value = ModelFields> {
    let tags = prop::collection::btree_map(boxed(), boxed(), 0..3);
    (option(boxed()), option(boxed()), tags).prop_map(|(image, vm_size, tags)| ModelFields {
        image,
        vm_size,
        tags,
    })
}

fn owner_write() -> impl Strategy<Value = OwnerWrite> {
    (text(), time(), option(option(boxed()))).prop_map(|(store, since, over)| {
        let tag = OwnerTag { store: StoreId::new(store), since };
        over.map_or_else(
            || OwnerWrite::TakeAway(tag.clone()),
            |over| OwnerWrite::Put { tag: tag.clone(), over },
        )
    })
}

fn action() -> BoxedStrategy<Action> {
    let expect = || {
        (option(text()), number(), text(), time()).prop_map(|(etag, capacity, revision, before)| {
            let (etag, revision) = (etag.map(Etag::new), Revision::new(revision));
            Expect { etag, capacity, revision, before }
        })
    };
    let why = select(vec![ModelWrite::Wanted, ModelWrite::PutBack]);
    let scope = select(vec![WriteScope::Image, WriteScope::StorageProfile]);
    prop_oneof![
        (number(), number(), number(), boxed(), expect()).prop_map(
            |(from, to, drift, reason, expect)| Action::Raise { from, to, drift, reason, expect }
        ),
        (some(target()), boxed(), time()).prop_map(|(targets, reason, before)| Action::Drain {
            targets,
            reason,
            before
        }),
        (some(target()), boxed(), time(), any::<bool>()).prop_map(
            |(targets, reason, before, force)| Action::Delete { targets, reason, before, force }
        ),
        (some(target()), boxed(), time()).prop_map(|(targets, reason, before)| Action::Restore {
            targets,
            reason,
            before
        }),
        (some(target()), text(), boxed(), time()).prop_map(|(targets, to, reason, before)| {
            Action::Reimage { targets, to: Revision::new(to), reason, before }
        }),
        (fields(), why, scope, boxed(), expect()).prop_map(
            |(fields, why, scope, reason, expect)| Action::UpdateModel {
                fields,
                why,
                scope,
                reason,
                expect,
            },
        ),
        (owner_write(), boxed(), time()).prop_map(|(write, reason, before)| Action::TagOwner {
            write,
            reason,
            before
        }),
        (autoscaler_write(), boxed(), time()).prop_map(|(write, reason, before)| {
            Action::WriteAutoscaler { write, reason, before }
        }),
    ]
    .boxed()
}

fn autoscaler_write() -> impl Strategy<Value = AutoscalerWrite> {
    (boxed(), text(), boxed(), select(AutoscalerTarget::ALL.to_vec())).prop_map(
        |(setting, document, rest, to)| {
            let document = AutoscalerDocument::new(document, rest);
            AutoscalerWrite { setting, document, to }
        },
    )
}

fn refused() -> impl Strategy<Value = Refused> {
    let refusal = select(Refusal::ALL.to_vec());
    (refusal, option(boxed()), option(text()), option(time())).prop_map(
        |(refusal, code, zone, retry_at)| Refused {
            refusal,
            message: code.clone(),
            code,
            zone: zone.map(Zone::new),
            retry_at,
        },
    )
}

fn outcome() -> impl Strategy<Value = EntryOutcome> {
    let part = (text().prop_map(Key::new), option(refused()));
    prop_oneof![
        Just(EntryOutcome::Done),
        Just(EntryOutcome::Withdrawn),
        refused().prop_map(EntryOutcome::Refused),
        some(part).prop_map(EntryOutcome::Mixed),
    ]
}

fn phase() -> BoxedStrategy<Phase> {
    prop_oneof![
        Just(Phase::Intended),
        time().prop_map(|at| Phase::Asking { at }),
        (time(), option(text().prop_map(OperationUrl::new)))
            .prop_map(|(at, operation)| Phase::Accepted { at, operation }),
        time().prop_map(|at| Phase::Doubtful { at }),
        (time(), option(time()), outcome()).prop_map(|(at, accepted, outcome)| Phase::Ended {
            at,
            accepted,
            outcome
        }),
    ]
    .boxed()
}

pub fn entry() -> BoxedStrategy<Entry> {
    (text(), any::<u64>(), time(), time(), action(), phase())
        .prop_map(|(id, epoch, written, read_at, action, phase)| Entry {
            id: EntryId::new(id),
            epoch: Epoch(epoch),
            written,
            read_at,
            action,
            phase,
        })
        .boxed()
}

pub fn ask() -> BoxedStrategy<Command> {
    let verb = prop_oneof![
        select(CommandVerb::PLAIN.to_vec()),
        text().prop_map(|id| CommandVerb::Abandon(InstanceId::new(id))),
    ];
    let kind = select(WaitKind::ALL.to_vec());
    let size = (option(time()), some(text()));
    let about =
        (option(kind), option(number()), option(text()), any::<bool>(), (size, option(boxed())))
            .prop_map(|(what, number, revision, full, ((until, machines), gate))| {
                let revision = revision.map(Revision::new);
                let machines = machines.into_iter().map(InstanceId::new).collect();
                CommandArgs { what, number, revision, full, until, machines, gate }
            });
    (text(), verb, boxed(), boxed(), time(), about)
        .prop_map(|(id, verb, by, why, at, about)| Command {
            id: CommandId::new(id),
            verb,
            by,
            why,
            at,
            about,
        })
        .boxed()
}

fn rollout_phase() -> impl Strategy<Value = RolloutPhase> {
    select(RolloutPhase::ALL.to_vec())
}

pub fn line() -> BoxedStrategy<HistoryRecord> {
    let names = || (text().prop_map(InstanceId::new), text().prop_map(Key::new));
    let entry = || (text().prop_map(EntryId::new), select(ActionKind::ALL.to_vec()));
    let reason = || select(HoldReason::ALL.to_vec());
    let event = prop_oneof![
        (names(), condition()).prop_map(|((id, key), condition)| HistoryEvent::Appeared {
            id,
            key,
            condition
        }),
        (names(), condition(), condition())
            .prop_map(|((id, key), from, to)| HistoryEvent::Became { id, key, from, to }),
        names().prop_map(|(id, key)| HistoryEvent::FirstAvailable { id, key }),
        (names(), any::<bool>()).prop_map(|((id, key), deleted)| HistoryEvent::Closed {
            id,
            key,
            deleted
        }),
        (entry(), some(text().prop_map(InstanceId::new)), boxed()).prop_map(
            |((entry, verb), machines, reason)| HistoryEvent::Decided {
                entry,
                verb,
                machines,
                reason
            }
        ),
        (entry(), boxed()).prop_map(|((entry, verb), message)| HistoryEvent::Moved {
            entry,
            verb,
            message
        }),
        (reason(), boxed()).prop_map(|(reason, message)| HistoryEvent::Held { reason, message }),
        reason().prop_map(|reason| HistoryEvent::Freed { reason }),
        (rollout_phase(), option(text()))
            .prop_map(|(phase, to)| HistoryEvent::Rollout { phase, to: to.map(Revision::new) }),
        (text(), any::<bool>(), boxed()).prop_map(|(ask, accepted, message)| {
            HistoryEvent::Answered { command: CommandId::new(ask), accepted, message }
        }),
        (any::<u32>(), any::<u32>(), text()).prop_map(|(from, to, by)| HistoryEvent::Sized {
            from,
            to,
            by: SizeSpeaker::of(&by)
        }),
        (boxed(), select(Verdict::ALL.to_vec()), boxed())
            .prop_map(|(gate, verdict, message)| { HistoryEvent::Gate { gate, verdict, message } }),
        (option(any::<u8>()), boxed())
            .prop_map(|(invariant, message)| HistoryEvent::Frozen { invariant, message }),
    ];
    (time(), event, event_detail())
        .prop_map(|(at, event, detail)| HistoryRecord { at, event, detail })
        .boxed()
}

fn event_detail() -> BoxedStrategy<EventDetail> {
    let steps: Vec<JournalStep> = JournalStep::ALL.to_vec();
    let said =
        (option(boxed()), option(boxed()), option(boxed()), option(boxed()), option(boxed()));
    let numbers = (option(any::<(u32, u32)>()), option(any::<u32>()), option(any::<u32>()));
    let causes = select(vec![
        RolloutCause::Revision,
        RolloutCause::Refresh,
        RolloutCause::MaxAge,
        RolloutCause::Rollback,
        RolloutCause::Exception,
    ]);
    let words = (some(removal_reason()), option(select(steps)), option(causes));
    (said, numbers, words, option(time()))
        .prop_map(|(said, numbers, words, opened)| {
            let (who, why, command, code, revision_name) = said;
            let (capacity, desired, covered) = numbers;
            let (because, step, cause) = words;
            EventDetail {
                who,
                why,
                command,
                because,
                capacity,
                desired,
                step,
                code,
                revision_name,
                cause,
                opened,
                covered,
            }
        })
        .boxed()
}

pub fn stop() -> BoxedStrategy<GlobalStop> {
    (time(), boxed(), boxed(), any::<bool>())
        .prop_map(|(since, by, why, except_repair)| GlobalStop { since, by, why, except_repair })
        .boxed()
}

pub fn out_of_service() -> BoxedStrategy<OutOfService> {
    let step = prop_oneof![
        Just(ServiceStep::Leaving),
        time().prop_map(|since| ServiceStep::Grace { since }),
        Just(ServiceStep::Out),
        Just(ServiceStep::Returning),
    ];
    let put = (text(), boxed(), time(), any::<bool>(), option(time()), any::<u32>()).prop_map(
        |(pool, name, at, answered, lost, tries)| PutDown {
            pool: BackendPoolId::new(pool),
            name,
            at,
            answered,
            lost,
            tries,
        },
    );
    let hook = (select(HookPhase::ALL.to_vec()), boxed(), time(), any::<u32>(), time()).prop_map(
        |(phase, webhook, since, attempts, next)| (phase, webhook, since, attempts, next),
    );
    let hook = (hook, option(boxed()), option(select(HookEnd::ALL.to_vec()))).prop_map(
        |((phase, webhook, since, attempts, next), said, end)| HookCall {
            phase,
            webhook,
            since,
            attempts,
            next,
            said,
            end,
        },
    );
    (text(), option(text()), time(), step, time(), some(put), some(hook))
        .prop_map(|(id, vm, created, step, since, put, hooks)| OutOfService {
            id: InstanceId::new(id),
            vm: vm.map(VmId::new),
            created,
            step,
            since,
            put,
            hooks,
        })
        .boxed()
}

pub fn audit() -> BoxedStrategy<AuditEntry> {
    let said = (boxed(), boxed(), boxed(), boxed(), boxed());
    let consent = option(select(vec![Consent::Awaited, Consent::Given]));
    (time(), option(text()), said, consent)
        .prop_map(|(at, pool, (who, verb, on, why, came), consent)| AuditEntry {
            at,
            who,
            verb,
            pool: pool.map(PoolName::new),
            on,
            why,
            came,
            consent,
        })
        .boxed()
}
