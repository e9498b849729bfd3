//! The journal's open entries, as another program stores them for us.

use super::fault::Fault;
use super::lists::{check_count, each_once, fields};
use super::strings::Strings;
use super::wire;
use crate::api::v1::diagnostic::{Code, quote};
use crate::api::v1::wire::{RecordText, WordOf, WordTable};
use crate::model::action::{
    Action, ActionKind, Expect, ModelWrite, READ_IS_FRESH, RemovalReason, Target, WriteScope,
};
use crate::model::autoscaler::{AutoscalerDocument, AutoscalerTarget, AutoscalerWrite};
use crate::model::ids::{EntryId, Epoch, InstanceId, Key, VmId};
use crate::model::inventory::SetReading;
use crate::model::journal::{Entry, EntryOutcome, Phase, Refusal, Refused};
use crate::model::machine::{Condition, Machine};
use crate::model::owner::{OwnerTag, OwnerWrite};
use crate::model::time::Span;

/// The entries in the order in which they were written.
pub(super) fn entries(
    wire: &[wire::Open<'_>],
    set: &SetReading,
    machines: &[Machine],
    strings: &mut Strings,
) -> Result<Vec<Entry>, Fault> {
    if wire.is_empty() {
        return Ok(Vec::new());
    }
    each_once(wire.iter().map(|open| open.id.as_str()), |n| format!("open[{n}].id"))?;
    let mut by_id: Vec<&Machine> = machines.iter().collect();
    by_id.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let mut entries = Vec::with_capacity(wire.len());
    for (n, open) in wire.iter().enumerate() {
        let path = format!("open[{n}]");
        entries.push(entry(open, &path, set, &by_id, strings)?);
    }
    entries.sort_by(|a, b| (a.written, &a.id).cmp(&(b.written, &b.id)));
    Ok(entries)
}

/// Orders machines against a raise by the listing, not by the two clocks: machines in its baseline existed before it,
/// all others appeared after it.
pub(super) fn tell_births(wire: &[wire::Open<'_>], machines: &mut [Machine]) {
    let instant = Span::from_millis(1);
    for open in wire {
        let Some(baseline) = open.baseline.as_ref().filter(|listed| !listed.is_empty()) else {
            continue;
        };
        let mut listed: Vec<&str> = baseline.iter().map(RecordText::as_str).collect();
        listed.sort_unstable();
        let since = open.since.0;
        for machine in machines.iter_mut() {
            let Some(vm) = &machine.vm else { continue };
            machine.first_seen = if listed.binary_search(&vm.as_str()).is_ok() {
                machine.first_seen.min(since.minus(instant))
            } else {
                machine.first_seen.max(since.plus(instant))
            };
        }
    }
}

fn entry(
    open: &wire::Open<'_>,
    path: &str,
    set: &SetReading,
    machines: &[&Machine],
    strings: &mut Strings,
) -> Result<Entry, Fault> {
    let verb = open.verb.0;
    let since = open.since.0;
    let action = action(open, verb, path, set, machines, strings)?;
    let phase = phase(open, &action, path, strings)?;
    Ok(Entry {
        id: EntryId::new(open.id.as_str()),
        epoch: Epoch::default(),
        written: since,
        read_at: since,
        action,
        phase,
    })
}

fn action(
    open: &wire::Open<'_>,
    verb: ActionKind,
    path: &str,
    set: &SetReading,
    machines: &[&Machine],
    strings: &mut Strings,
) -> Result<Action, Fault> {
    let before = open.since.0.plus(READ_IS_FRESH);
    let reason: Box<str> = open.message.as_ref().map(RecordText::to_box).unwrap_or_default();
    let (from, to) = capacities(open, verb, path)?;
    let expect = |capacity| Expect { etag: None, capacity, revision: set.revision.clone(), before };
    let has_targets = !matches!(
        verb,
        ActionKind::Raise
            | ActionKind::UpdateModel
            | ActionKind::TagOwner
            | ActionKind::SuspendAutoscaler
            | ActionKind::PutBackAutoscaler
    );
    // No snapshot has the document: what is there now stands for it.
    let autoscaler = |to: AutoscalerTarget| {
        let setting = open.setting.as_ref().ok_or_else(|| {
            let say = "a write of an autoscale setting needs its id";
            Fault::new(format!("{path}.setting"), Code::BadValue, say)
        })?;
        let known = set.autoscaler.as_ref().and_then(|found| found.document.clone());
        let document = known.unwrap_or_else(|| AutoscalerDocument::new("", ""));
        let write = AutoscalerWrite { setting: setting.to_box(), document, to };
        Ok::<_, Fault>(Action::WriteAutoscaler { write, reason: reason.clone(), before })
    };
    let targets = targets(open, has_targets, path, machines)?;
    Ok(match verb {
        ActionKind::Raise => {
            let drift = open.drift.unwrap_or(0);
            Action::Raise { from, to, drift, reason, expect: expect(from) }
        }
        ActionKind::UpdateModel => Action::UpdateModel {
            fields: open.fields.as_ref().map(fields).unwrap_or_default(),
            why: open.why.map_or(ModelWrite::Wanted, |why| why.0),
            scope: WriteScope::default(),
            reason,
            expect: expect(set.capacity),
        },
        ActionKind::TagOwner => {
            let tag = open.tag.as_ref().and_then(|tag| OwnerTag::parse(tag.as_str()));
            let tag = tag.ok_or_else(|| {
                let say = "a tagOwner needs its tag, as `<store> since <time>`";
                Fault::new(format!("{path}.tag"), Code::BadValue, say)
            })?;
            Action::TagOwner { write: OwnerWrite::Put { tag, over: None }, reason, before }
        }
        ActionKind::SuspendAutoscaler => autoscaler(AutoscalerTarget::Suspended)?,
        ActionKind::PutBackAutoscaler => autoscaler(AutoscalerTarget::PutBack)?,
        ActionKind::CutOff => Action::CutOff { targets, reason, before },
        ActionKind::Standby => Action::Standby { targets, reason, before },
        ActionKind::Drain => Action::Drain { targets, reason, before },
        ActionKind::Restore => Action::Restore { targets, reason, before },
        ActionKind::Delete => {
            Action::Delete { targets, reason, before, force: open.force.unwrap_or(false) }
        }
        ActionKind::Reimage => {
            let to = open.revision.as_ref().map(|revision| strings.revision(revision.as_str()));
            let to = to.unwrap_or_else(|| set.revision.clone());
            Action::Reimage { targets, to, reason, before }
        }
    })
}

fn capacities(open: &wire::Open<'_>, verb: ActionKind, path: &str) -> Result<(u32, u32), Fault> {
    let keys = [("from", open.from), ("to", open.to)];
    if verb != ActionKind::Raise {
        let strange = keys.iter().find(|(_, value)| value.is_some());
        return strange.map_or(Ok((0, 0)), |(key, _)| {
            let say = format!("{key} belongs to a raise, not to {}", verb.name());
            Err(Fault::new(format!("{path}.{key}"), Code::BadValue, say))
        });
    }
    for (key, value) in keys {
        let at = format!("{path}.{key}");
        let Some(value) = value else {
            return Err(Fault::new(at, Code::MissingKey, format!("a raise needs {key}")));
        };
        check_count(&at, value)?;
    }
    let (from, to) = (open.from.unwrap_or(0), open.to.unwrap_or(0));
    if to < from && open.drift.unwrap_or(0) == 0 {
        let say = format!("a raise never lowers, and {to} is below {from}");
        return Err(Fault::new(format!("{path}.to"), Code::Contradiction, say));
    }
    Ok((from, to))
}

fn targets(
    open: &wire::Open<'_>,
    needed: bool,
    path: &str,
    machines: &[&Machine],
) -> Result<Vec<Target>, Fault> {
    let names = open.machines.as_deref().unwrap_or_default();
    let at = |what: &str| format!("{path}.{what}");
    if needed && names.is_empty() {
        let say = format!("{} needs the machines it is about", open.verb.0.word());
        return Err(Fault::new(at("machines"), Code::MissingKey, say));
    }
    if !needed && !names.is_empty() {
        let say = "this entry is about the set, not about machines";
        return Err(Fault::new(at("machines"), Code::BadValue, say));
    }
    each_once(names.iter().map(RecordText::as_str), |n| at(&format!("machines[{n}]")))?;
    let known = |id: &RecordText<'_>| names.contains(id);
    let vm_ids = open.vm_ids.iter().flatten().map(|(id, _)| ("vmIds", id));
    let classes = open.classes.iter().flatten().map(|(id, _)| ("classes", id));
    if names.len() <= MOST_CHECKED
        && let Some((key, id)) = vm_ids.chain(classes).find(|(_, id)| !known(id))
    {
        let say = format!("{} is not among the machines of this entry", quote(id.as_str()));
        return Err(Fault::new(at(key), Code::BadValue, say));
    }
    Ok(names.iter().map(|id| target(open, id, machines)).collect())
}

/// Larger batches than one cloud call takes are not checked for stray names.
const MOST_CHECKED: usize = 1_000;

fn target(open: &wire::Open<'_>, id: &RecordText<'_>, machines: &[&Machine]) -> Target {
    let vm = open.vm_ids.as_ref().and_then(|vms| vms.get(id)).and_then(Option::as_ref);
    let vm = vm.map(|vm| VmId::new(vm.as_str()));
    let at = machines.binary_search_by(|machine| machine.id.as_str().cmp(id.as_str()));
    let listed =
        at.ok().and_then(|at| machines.get(at)).filter(|machine| match (&vm, &machine.vm) {
            (Some(a), Some(b)) => a == b,
            // Without an identity: the entry cannot mean a machine that is younger than the entry.
            _ => machine.created <= open.since.0,
        });
    let class = open.classes.as_ref().and_then(|classes| classes.get(id)).copied().or(open.class);
    Target {
        id: InstanceId::new(id.as_str()),
        vm,
        created: listed.map_or(open.since.0, |machine| machine.created),
        because: because(class, listed.copied()),
    }
}

/// Why it is removed: from the entry, else from the machine's state.
fn because(class: Option<WordOf<RemovalReason>>, listed: Option<&Machine>) -> RemovalReason {
    let request = listed.and_then(Machine::delete_request);
    match (class.map(|class| class.0), request) {
        (Some(RemovalReason::DeleteRequested) | None, Some(request)) if request.now => {
            RemovalReason::DeleteRequestedNow
        }
        (Some(because), _) => because,
        (None, Some(_)) => RemovalReason::DeleteRequested,
        (None, None) => match listed.map(|machine| machine.condition) {
            Some(Condition::Failed) => RemovalReason::Failed,
            _ => RemovalReason::Outdated,
        },
    }
}

fn phase(
    open: &wire::Open<'_>,
    action: &Action,
    path: &str,
    strings: &mut Strings,
) -> Result<Phase, Fault> {
    let since = open.since.0;
    let accepted = open.accepted.map(|at| at.0);
    let Some(outcome) = &open.outcome else {
        return Ok(match accepted {
            Some(at) => Phase::Accepted { at, operation: None },
            None => Phase::Asking { at: since },
        });
    };
    let at = outcome.at.map_or(since, |at| at.0);
    let path = format!("{path}.outcome");
    let whole = refused(&outcome.ending(), &path, strings)?;
    let is_unclear = |refused: &Option<Refused>| {
        refused.as_ref().is_some_and(|refused| refused.refusal == Refusal::Unclear)
    };
    let Some(parts) = outcome.machines.as_ref().filter(|parts| !parts.is_empty()) else {
        return Ok(match whole {
            Some(_) if is_unclear(&whole) => Phase::Doubtful { at },
            Some(refused) => Phase::Ended { at, accepted, outcome: EntryOutcome::Refused(refused) },
            None => Phase::Ended { at, accepted, outcome: EntryOutcome::Done },
        });
    };
    let mut each: Vec<(Key, Option<Refused>)> = Vec::with_capacity(action.targets().len());
    for target in action.targets() {
        let vm = target.vm.as_ref().map(|vm| parts.get(&RecordText::new(vm.as_str())));
        let part = vm.flatten().or_else(|| parts.get(&RecordText::new(target.id.as_str())));
        let found = match part {
            Some(part) => refused(&part.ending(), &format!("{path}.machines"), strings)?,
            None => whole.clone(),
        };
        each.push((target.key(), found));
    }
    let named = |name: &RecordText<'_>| {
        action.targets().iter().any(|target| {
            let vm = target.vm.as_ref().map(VmId::as_str);
            vm == Some(name.as_str()) || target.id.as_str() == name.as_str()
        })
    };
    if each.len() <= MOST_CHECKED
        && let Some(stray) = parts.keys().find(|name| !named(name))
    {
        let say = format!("{} is not a machine of this entry", quote(stray.as_str()));
        return Err(Fault::new(format!("{path}.machines"), Code::BadValue, say));
    }
    // One lost answer leaves the whole batch in doubt: only a new read can tell.
    if each.iter().any(|(_, found)| is_unclear(found)) {
        return Ok(Phase::Doubtful { at });
    }
    each.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Phase::Ended { at, accepted, outcome: EntryOutcome::Mixed(each) })
}

/// `None`: it succeeded.
fn refused(
    ending: &wire::EndingKeys<'_>,
    path: &str,
    strings: &mut Strings,
) -> Result<Option<Refused>, Fault> {
    match (ending.ok, ending.refusal) {
        (true, None) => Ok(None),
        (true, Some(_)) => {
            let say = "what ended ok was not refused";
            Err(Fault::new(format!("{path}.refusal"), Code::Contradiction, say))
        }
        (false, None) => {
            let say = "what did not end ok was refused in one of the known ways";
            Err(Fault::new(format!("{path}.refusal"), Code::MissingKey, say)
                .help("write unclear where the answer was lost"))
        }
        (false, Some(refusal)) => Ok(Some(Refused {
            refusal,
            code: ending.code.map(RecordText::to_box),
            message: ending.message.map(RecordText::to_box),
            zone: ending.zone.map(|zone| strings.zone(zone.as_str())),
            retry_at: ending.retry_at,
        })),
    }
}
