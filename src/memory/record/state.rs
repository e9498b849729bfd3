//! The state of a pool. The API returns the same document, so this table must never omit a field.

use std::collections::BTreeMap;

use super::codec::Form;
use super::codec::{keys, variants};
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::autoscaler::{Suspension, SuspensionStage};
use crate::model::ids::{CommandId, EntryId, Etag, Key, Revision, StoreId, Zone};
use crate::model::inventory::{ModelFields, ModelRest};
use crate::model::journal::Refusal;
use crate::model::owner::OwnerTag;
use crate::model::plan::WaitKind;
use crate::model::revisions::{KnownRevision, Revisions};
use crate::model::rollout::{
    BackOff, DeleteEffect, DeleteEffects, Desired, EtagHistory, EtagVerdict, Exception, Fall,
    GateBaseline, GoodRevision, KeyBackOff, LedgerLine, ModelBackOff, ModelMemory, OwnerMemory,
    PauseRequest, PoolState, Probe, Progress, RepairLimit, RequestBackOff, Rollout, RolloutCause,
    RolloutEnding, RolloutRecord, RolloutStage, UndeliveredRaise, Wait, Writing,
};
use crate::model::scale::ScaleOrder;
use crate::model::size::{GrayPhase, MetricMemory, ShareBase, SizeMemory};
use crate::model::time::{Span, Time};

keys! {
    PoolState as State with v; {
        must {
            desired: Desired,
        }
        may {
            adopted: Option<Time>,
            surplus_confirmed: bool,
            advisory_held: bool,
            adoption_held: bool,
            advisory_before: Option<Time>,
            mixed: bool,
            scale: Option<ScaleOrder>,
            gray: Option<GrayPhase>,
            size: SizeMemory,
            wanted: Option<Revision>,
            good_revisions: Vec<GoodRevision>,
            revisions: Revisions,
            model: ModelMemory,
            owner: OwnerMemory,
            suspension: Option<Suspension>,
            rollout: Option<Rollout>,
            pause: Option<PauseRequest>,
            last: Option<RolloutRecord>,
            refresh_before: Option<Time>,
            refresh_next: Option<Time>,
            scheduled: Option<Time>,
            blocked: Vec<KeyBackOff>,
            key_backoff: Vec<KeyBackOff>,
            restore_backoff: Vec<KeyBackOff>,
            request_backoff: Vec<RequestBackOff>,
            doubted: Vec<(Key, Time)>,
            exceptions: Vec<Exception>,
            removals: Vec<(Key, RemovalReason)>,
            backoff: Vec<BackOff>,
            undelivered: Option<UndeliveredRaise>,
            etag: EtagHistory,
            deletes: DeleteEffects,
            tombs: Vec<(Key, Time)>,
            vanished: Vec<(Key, Time)>,
            delete_takes: Option<Span>,
            casualties: Vec<(Key, Time)>,
            breaker_opened: Option<Time>,
            breaker_released: Option<Time>,
            surplus_removed: Vec<(Time, u32)>,
            written_off: Vec<Key>,
            in_vain: Vec<(Key, Revision)>,
            model_accepted: Option<Revision>,
            hot_loop_released: Option<Revision>,
            honoured: Vec<CommandId>,
            waiting: Vec<Wait>,
            repair_limit: Option<RepairLimit>,
        }
        old {
            good: Vec<Revision>,
        }
        gone {
            alone_until,
        }
    }
    SizeMemory as SizeKeys; {
        must {}
        may {
            spoke: Option<(Box<str>, u32)>,
            metrics: Vec<MetricMemory>,
            bases: Vec<ShareBase>,
        }
    }
    GrayPhase as GrayKeys; {
        must {
            base: u32,
            to: u32,
            steps: u32,
            stepped: Time,
        }
        may {
            failed: Option<Box<str>>,
            skipped: Vec<Box<str>>,
        }
    }
    MetricMemory as MetricKeys; {
        must {
            profile: Box<str>,
            wants: Vec<(Time, u32)>,
        }
        may {}
    }
    ShareBase as ShareKeys; {
        must {
            profile: Box<str>,
            machines: u32,
        }
        may {}
    }
    ScaleOrder as ScaleKeys; {
        must {
            to: u32,
            over: u32,
            by: Box<str>,
            why: Box<str>,
            at: Time,
        }
        may {
            until: Option<Time>,
            remove: Vec<Key>,
            earlier: Vec<Key>,
        }
    }
    UndeliveredRaise as UndeliveredKeys; {
        must {
            times: u32,
            at: Time,
            until: Time,
        }
        may {}
    }
    EtagHistory as EtagKeys; {
        must {}
        may {
            verdict: EtagVerdict,
            last: Option<(Etag, u32)>,
            since: Option<Time>,
            ends: u32,
        }
    }
    DeleteEffects as DeleteKeys; {
        must {}
        may {
            verdict: DeleteEffect,
            late: Vec<EntryId>,
            proven: bool,
            agreed: Option<EntryId>,
            probe: Option<Probe>,
        }
    }
    Probe as ProbeKeys; {
        must {
            at: Time,
            births: u32,
        }
        may {
            beside: Option<EntryId>,
        }
    }
    Desired as DesiredKeys; {
        must {
            count: u32,
        }
        may {
            waiting: Option<Fall>,
            falls: Vec<Fall>,
            explained: u32,
            ledger: Vec<LedgerLine>,
            others: Vec<Time>,
            lost: Option<Time>,
            refilled: Option<Time>,
            lost_again: Vec<Time>,
            above: Option<Time>,
            below: Option<Time>,
            shown: u32,
            shown_since: Option<Time>,
            confirmed: Option<Time>,
            agreed: u32,
        }
    }
    Fall as FallKeys; {
        must {
            from: u32,
            to: u32,
            at: Time,
        }
        may {}
    }
    LedgerLine as LedgerKeys; {
        must {
            entry: EntryId,
            least: i32,
            most: i32,
        }
        may {
            ended: Option<Time>,
            folded: bool,
        }
    }
    ModelMemory as ModelKeys; {
        must {}
        may {
            seen: Option<Revision>,
            again: Option<Revision>,
            again_since: Option<Time>,
            wanted_fields: Option<ModelFields>,
            writing: Option<Writing>,
            put_back_over: Option<Revision>,
            declined: bool,
            back_off: Option<ModelBackOff>,
            rest_before: ModelRest,
            moved_from: ModelRest,
        }
        old {
            good_fields: Option<ModelFields>,
        }
    }
    OwnerMemory as OwnerMemoryKeys; {
        must {}
        may {
            tag: Option<OwnerTag>,
            tries: u32,
            next: Option<Time>,
            shown: Option<Box<str>>,
            taken_over: Option<Box<str>>,
        }
    }
    Suspension as SuspensionKeys; {
        must {
            setting: Box<str>,
            rest: Box<str>,
            since: Time,
            stage: SuspensionStage,
        }
        may {
            base: Option<u32>,
            unused: Option<Time>,
            tries: u32,
            next: Option<Time>,
            lands: Option<Time>,
        }
    }
    OwnerTag as OwnerTagKeys; {
        must {
            store: StoreId,
            since: Time,
        }
        may {}
    }
    ModelBackOff as ModelBackOffKeys; {
        must {
            fields: ModelFields,
            refusal: Refusal,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            code: Option<Box<str>>,
            message: Option<Box<str>>,
            retry_at: Option<Time>,
            answered: bool,
        }
    }
    Revisions as RevisionsKeys; {
        must {}
        may {
            known: Vec<KnownRevision>,
        }
    }
    KnownRevision as KnownKeys; {
        must {
            number: u32,
            revision: Revision,
            seen: Time,
        }
        may {
            image: Option<Box<str>>,
            vm_size: Option<Box<str>>,
        }
    }
    GoodRevision as GoodKeys; {
        must {
            revision: Revision,
        }
        may {
            fields: Option<ModelFields>,
        }
    }
    Writing as WritingKeys; {
        must {
            over: Revision,
            fields: ModelFields,
            at: Time,
        }
        may {
            put_back: bool,
        }
    }
    ModelFields as FieldKeys; {
        must {}
        may {
            image: Option<Box<str>>,
            vm_size: Option<Box<str>>,
            tags: BTreeMap<Box<str>, Box<str>>,
        }
    }
    Rollout as RolloutKeys; {
        must {
            cause: RolloutCause,
            to: Revision,
            opened: Time,
            covered: u32,
            stage: RolloutStage,
            progress: Progress,
        }
        may {
            from: Option<Revision>,
            failed: Vec<Key>,
            failed_in_a_row: u32,
            served: Vec<Key>,
            answered_failures: u32,
            failed_at: Option<Time>,
            resumed: u32,
            passed: u32,
            soaking: Option<Time>,
            approved: bool,
            answered: Option<Time>,
            tried: Vec<Key>,
            full: bool,
            skipped: Vec<Box<str>>,
            baseline: Option<GateBaseline>,
        }
    }
    Progress as ProgressKeys; {
        must {
            at: Time,
            current_available: u32,
            outdated_left: u32,
        }
        may {
            waiting: Option<Time>,
        }
    }
    Wait as WaitKeys; {
        must {
            what: WaitKind,
            since: Time,
        }
        may {
            number: Option<u32>,
            revision: Option<Revision>,
        }
    }
    RepairLimit as RepairLimitKeys; {
        must {
            since: Time,
            size: u32,
        }
        may {}
    }
    PauseRequest as PauseKeys; {
        must {
            by: Box<str>,
            why: Box<str>,
            at: Time,
        }
        may {}
    }
    RolloutRecord as EndedKeys; {
        must {
            cause: RolloutCause,
            to: Revision,
            at: Time,
            how: RolloutEnding,
            done: u32,
            covered: u32,
            failed: u32,
        }
        may {
            opened: Option<Time>,
        }
    }
    KeyBackOff as KeyBackOffKeys; {
        must {
            key: Key,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            code: Option<Box<str>>,
            message: Option<Box<str>>,
            retry_at: Option<Time>,
            now: bool,
        }
    }
    RequestBackOff as RequestBackOffKeys; {
        must {
            verb: ActionKind,
            refusal: Refusal,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            code: Option<Box<str>>,
            message: Option<Box<str>>,
            retry_at: Option<Time>,
        }
    }
    Exception as ExceptionKeys; {
        must {
            key: Key,
            to: Revision,
            at: Time,
        }
        may {
            cleared: bool,
        }
    }
    BackOff as BackOffKeys; {
        must {
            refusal: Refusal,
            times: u32,
            at: Time,
            until: Time,
        }
        may {
            zone: Option<Zone>,
            size: Option<Box<str>>,
            code: Option<Box<str>>,
            message: Option<Box<str>>,
            retry_at: Option<Time>,
            granted: Option<u32>,
            answered: bool,
        }
        gone {
            available_then,
        }
    }
}

variants! {
    SuspensionStage as SuspensionWord {
        plain { Asked, Overruled, }
        one {}
        many {
            Off { since: Time },
        }
    }
    GateBaseline as BaselineWord {
        plain { Unasked, }
        one { Asked(Time), }
        many {}
    }
    RolloutStage as StageWord {
        plain { Going, }
        one {}
        many {
            Paused { by: Box<str>, why: Box<str>, at: Time },
            Failing { why: Box<str>, at: Time },
            Baking { since: Time },
        }
    }
}

/// The good revisions in their old form: their names, and separately the fields of the last one.
fn old_revisions(wire: &mut State<'_>) -> Vec<GoodRevision> {
    let names: Vec<Revision> = Form::back(std::mem::take(&mut wire.good));
    let fields: Option<ModelFields> = Form::back(wire.model.good_fields.take());
    let bare = |revision| GoodRevision { revision, fields: None };
    let mut good: Vec<GoodRevision> = names.into_iter().map(bare).collect();
    if let Some(last) = good.last_mut() {
        last.fields = fields;
    }
    good
}

/// The state, including what an older program wrote in another form.
pub(super) fn back(mut wire: State<'_>) -> PoolState {
    let old = old_revisions(&mut wire);
    let mut state = PoolState::back(wire);
    if state.good_revisions.is_empty() {
        state.good_revisions = old;
    }
    state
}
