//! Converts the keys of a snapshot to the values that the planner reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::budgets;
use super::cluster;
use super::fault::Fault;
use super::input::SnapshotInput;
use super::lists::{MOST_MACHINES, check_count, each_once, fields, texts};
use super::open;
use super::strings::Strings;
use super::wire;
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::{Code, nearest, quote};
use crate::api::v1::state::{self, StateError};
use crate::api::v1::wire::{RecordText, WordOf};
use crate::model::autoscaler::{Autoscaler, AutoscalerBounds};
use crate::model::command::CommandName;
use crate::model::ids::{
    BackendPoolId, CommandId, Etag, InstanceId, NodeName, PoolName, StoreId, VmId,
};
use crate::model::inventory::{
    Busy, Lock, Orchestration, PlatformFeature, PriorityMix, SetReading,
};
use crate::model::machine::{
    Condition, DeleteRequest, Evidence, Lifecycle, Machine, MachineHold, Overrides, Protection,
};
use crate::model::owner::Keeper;
use crate::model::plan::{
    Command, CommandArgs, CommandVerb, DrainFact, Facts, Follow, Gate, Quota, Witness,
};
use crate::model::policy::Policy;
use crate::model::size::{Decimal, MetricFact, PoolFact};
use crate::model::time::{Skew, Span, Time};

/// `now` may have been cut to whole seconds when the time of the read was not.
const ROUNDING: Span = Span::seconds(1);

/// Azure accepts no longer notice.
const MAX_NOTICE: Span = Span::minutes(15);

pub(super) fn input(
    wire: &wire::Snapshot<'_>,
    policy: Arc<Policy>,
    strings: &mut Strings,
) -> Result<SnapshotInput, Fault> {
    for (field, found, wanted) in
        [("apiVersion", &wire.api_version, API_VERSION), ("kind", &wire.kind, "Snapshot")]
    {
        if let Some(found) = found.as_ref().filter(|found| found.as_str() != wanted) {
            let say = format!("must be {wanted}, not {}", quote(found.as_str()));
            return Err(Fault::new(field, Code::WrongVersion, say));
        }
    }
    let now = wire.now.0;
    let set = scale_set(&wire.scale_set, now, strings)?;
    check_machines(&wire.machines)?;
    let mut machines: Vec<Machine> =
        wire.machines.iter().map(|each| machine(each, strings)).collect();
    for machine in &mut machines {
        machine.protection = set.protection_of(&machine.id, machine.protection);
    }
    machines.sort_unstable_by(Machine::listing_order);
    open::tell_births(wire.open.as_deref().unwrap_or_default(), &mut machines);
    let facts = wire.facts.as_ref().map(facts).transpose()?.unwrap_or_default();
    let budgets = budgets::all(wire)?;
    let machine_budgets = budgets::of_machines(&wire.machines, &budgets)?;
    let cluster = wire.cluster.as_ref().map(|of| cluster::read(of, &budgets)).transpose()?;
    let state = wire
        .state
        .map(|raw| state::decode(raw.get()))
        .transpose()
        .map_err(|error| bad_state(&error))?;
    Ok(SnapshotInput {
        now,
        seed: wire.seed.unwrap_or(0),
        policy,
        open: open::entries(wire.open.as_deref().unwrap_or_default(), &set, &machines, strings)?,
        set,
        machines,
        commands: commands(wire.commands.as_deref().unwrap_or_default(), now, strings)?,
        facts: Facts { budgets, machine_budgets, ..facts },
        cluster,
        stop: wire.stop_all.as_ref().map(|stop| stop.read(now)),
        state,
    })
}

fn bad_state(error: &StateError) -> Fault {
    let (code, say) = match error {
        StateError::Version(_) => (Code::WrongVersion, error.to_string()),
        StateError::Unreadable(source) => (Code::BadValue, format!("{error}: {source}")),
    };
    Fault::new("state", code, say).help(state::HELP)
}

fn scale_set(
    set: &wire::ScaleSetKeys<'_>,
    now: Time,
    strings: &mut Strings,
) -> Result<SetReading, Fault> {
    let read_at = set.read_at.0;
    if read_at > now.plus(ROUNDING) {
        let say = format!("the read began at {read_at}, which is after now, {now}");
        return Err(Fault::new("scaleSet.readAt", Code::Contradiction, say));
    }
    check_count("scaleSet.capacity", set.capacity)?;
    not_empty("scaleSet.revision", &set.revision)?;
    let zones = set.zones.as_deref().unwrap_or_default();
    let mut zones: Vec<_> = zones.iter().map(|zone| strings.zone(zone.as_str())).collect();
    zones.sort_unstable();
    zones.dedup();
    let mut attached: Vec<_> =
        set.attached.iter().flatten().map(|name| InstanceId::new(name.as_str())).collect();
    attached.sort_unstable();
    attached.dedup();
    let platform_features = |words: &Option<Vec<WordOf<PlatformFeature>>>| {
        let mut platform_features: Vec<_> = words.iter().flatten().map(|word| word.0).collect();
        platform_features.sort_unstable();
        platform_features.dedup();
        platform_features
    };
    let mut reading = SetReading {
        backends: backends(set.load_balancers.as_deref().unwrap_or_default())?,
        terminate_notice: terminate_notice(set.terminate_notice.as_ref())?,
        revision: strings.revision(set.revision.as_str()),
        capacity: set.capacity,
        etag: set.etag.as_ref().map(|etag| Etag::new(etag.as_str())),
        orchestration: or(set.orchestration, Orchestration::Uniform),
        zones,
        attached,
        read_at: read_at.min(now),
        complete: set.complete.unwrap_or(true),
        busy: set
            .busy
            .as_ref()
            .map(|busy| Busy { operation: busy.operation.to_box(), since: busy.since.0 }),
        platform_features: platform_features(&set.platform_features),
        platform_features_unknown: platform_features(&set.platform_features_unknown),
        autoscaler: None,
        locks: locks(set.locks.as_deref().unwrap_or_default())?,
        spot: set.spot.map(|word| word.0),
        priority_mix: set.priority_mix.as_ref().map(priority_mix).transpose()?,
        vm_size: set.vm_size.as_ref().map(RecordText::to_box),
        model: set.model.as_ref().map(fields),
        model_rest: texts(set.model_rest.as_ref()),
    };
    reading.show_autoscaler(set.autoscaler.as_ref().map(autoscaler).transpose()?);
    Ok(reading)
}

fn terminate_notice(text: Option<&RecordText<'_>>) -> Result<Span, Fault> {
    let Some(text) = text else { return Ok(Span::ZERO) };
    let bad = |say| Fault::new("scaleSet.terminateNotice", Code::BadValue, say);
    let notice = Span::parse(text.as_str()).map_err(|error| {
        bad(format!("{} is {error}", quote(text.as_str()))).help("write PT5M as 5m")
    })?;
    if notice > MAX_NOTICE {
        return Err(bad(format!("{notice} is more than {MAX_NOTICE}, the longest in Azure")));
    }
    Ok(notice)
}

fn backends(all: &[RecordText<'_>]) -> Result<Vec<BackendPoolId>, Fault> {
    let mut pools: Vec<BackendPoolId> = Vec::with_capacity(all.len());
    for (n, id) in all.iter().enumerate() {
        not_empty(format!("scaleSet.loadBalancers[{n}]"), id)?;
        pools.push(BackendPoolId::new(id.as_str()));
    }
    pools.sort_unstable();
    pools.dedup();
    Ok(pools)
}

fn locks(all: &[wire::LockKeys<'_>]) -> Result<Vec<Lock>, Fault> {
    each_once(all.iter().map(|lock| lock.id.as_str()), |n| format!("scaleSet.locks[{n}].id"))?;
    let lock = |lock: &wire::LockKeys<'_>| Lock {
        level: lock.level.0,
        name: lock.name.to_box(),
        id: lock.id.to_box(),
    };
    let mut locks: Vec<Lock> = all.iter().map(lock).collect();
    locks.sort_unstable();
    Ok(locks)
}

fn autoscaler(found: &wire::AutoscalerKeys<'_>) -> Result<Autoscaler, Fault> {
    let bounds = found.bounds.as_ref().map(|bounds| AutoscalerBounds {
        profile: bounds.profile.to_box(),
        minimum: bounds.minimum,
        maximum: bounds.maximum,
    });
    if let Some(AutoscalerBounds { minimum, maximum, .. }) = &bounds
        && minimum > maximum
    {
        let path = "scaleSet.autoscaler.bounds.minimum";
        let say = format!("{minimum} is more than the maximum {maximum}");
        return Err(Fault::new(path, Code::BadValue, say));
    }
    Ok(Autoscaler {
        setting: found.setting.to_box(),
        enabled: found.enabled,
        bounds,
        document: None,
    })
}

fn priority_mix(mix: &wire::PriorityMixKeys) -> Result<PriorityMix, Fault> {
    let percent = mix.regular_priority_percentage_above_base;
    if percent > 100 {
        let path = "scaleSet.priorityMix.regularPriorityPercentageAboveBase";
        return Err(Fault::new(path, Code::BadValue, format!("{percent} is more than 100")));
    }
    Ok(PriorityMix { base_regular: mix.base_regular_priority_count, regular_percent: percent })
}

fn not_empty(path: impl Into<String>, text: &RecordText<'_>) -> Result<(), Fault> {
    if text.as_str().is_empty() {
        return Err(Fault::new(path, Code::BadValue, "must not be empty"));
    }
    Ok(())
}

fn or<T>(word: Option<WordOf<T>>, default: T) -> T {
    word.map_or(default, |word| word.0)
}

/// Names must be present and unique: a plan uses them to say what is removed.
fn check_machines(machines: &[wire::MachineFields<'_>]) -> Result<(), Fault> {
    if machines.len() > MOST_MACHINES as usize {
        let say = format!("{} machines are more than {MOST_MACHINES}", machines.len());
        return Err(Fault::new("machines", Code::TooLarge, say));
    }
    let ids = machines.iter().map(|machine| machine.id.as_str());
    each_once(ids, |n| format!("machines[{n}].id"))?;
    let (places, vms): (Vec<usize>, Vec<&str>) = machines
        .iter()
        .enumerate()
        .filter_map(|(n, machine)| Some((n, machine.vm_id.as_ref()?.as_str())))
        .unzip();
    let path = |n: usize| format!("machines[{}].vmId", places.get(n).copied().unwrap_or(n));
    each_once(vms.into_iter(), path)
}

fn machine(wire: &wire::MachineFields<'_>, strings: &mut Strings) -> Machine {
    let (created, since, condition) = (wire.created_at.0, wire.since.0, wire.condition.0);
    Machine {
        id: InstanceId::new(wire.id.as_str()),
        vm: wire.vm_id.as_ref().map(|vm| VmId::new(vm.as_str())),
        zone: wire.zone.as_ref().map(|zone| strings.zone(zone.as_str())),
        created,
        imaged: wire.imaged_at.map_or(created, |at| at.0),
        first_seen: wire.first_seen.map_or(created, |at| at.0),
        updated: wire.updated_at.map(|at| at.0),
        revision: wire.revision.as_ref().map(|revision| strings.revision(revision.as_str())),
        evidence: or(wire.evidence, Evidence::Model),
        condition,
        since,
        claimed_since: None,
        before_gap: None,
        ever_available: wire.ever_available.unwrap_or(condition != Condition::Provisioning),
        lifecycle: or(wire.lifecycle, Lifecycle::InService),
        lifecycle_since: wire.lifecycle_since.map_or(since, |at| at.0),
        unreachable_since: wire.unreachable_since.map(|at| at.0),
        protection: or(wire.protection, Protection::None),
        missed: 0,
        workloads: wire.workloads.as_ref().map_or(0, budgets::pods),
        node: wire.node.as_ref().map(|node| NodeName::new(node.as_str())),
        joined: None,
        marks: marks(wire),
    }
}

fn marks(wire: &wire::MachineFields<'_>) -> Option<Box<Overrides>> {
    let delete = wire.delete_requested.as_ref().and_then(|request| match request {
        wire::DeleteRequestKeys::Plain(false) => None,
        wire::DeleteRequestKeys::Plain(true) => {
            Some(DeleteRequest { by: "".into(), why: "".into(), now: false })
        }
        wire::DeleteRequestKeys::Said(words) => Some(DeleteRequest {
            by: RecordText::or_empty(words.by.as_ref()),
            why: RecordText::or_empty(words.why.as_ref()),
            now: words.now.unwrap_or(false),
        }),
    });
    let hold = wire.hold.as_ref();
    let hold = hold.map(|hold| MachineHold {
        by: RecordText::or_empty(hold.by.as_ref()),
        why: RecordText::or_empty(hold.why.as_ref()),
    });
    (delete.is_some() || hold.is_some()).then(|| Box::new(Overrides { delete, hold }))
}

fn commands(
    wire: &[wire::CommandKeys<'_>],
    now: Time,
    strings: &mut Strings,
) -> Result<Vec<Command>, Fault> {
    each_once(wire.iter().map(|ask| ask.id.as_str()), |n| format!("commands[{n}].id"))?;
    let mut commands = Vec::with_capacity(wire.len());
    for (n, ask) in wire.iter().enumerate() {
        commands.push(Command {
            id: CommandId::new(ask.id.as_str()),
            verb: ask_verb(ask, n)?,
            about: about(ask, n, strings)?,
            by: RecordText::or_empty(ask.by.as_ref()),
            why: RecordText::or_empty(ask.why.as_ref()),
            at: ask.at.map_or(now, |at| at.0),
        });
    }
    commands.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok(commands)
}

/// What an approval covers, where a rollback goes, that a promotion is one in full, or a size; other verbs have no choice.
fn about(
    ask: &wire::CommandKeys<'_>,
    n: usize,
    strings: &mut Strings,
) -> Result<CommandArgs, Fault> {
    let Some(args) = &ask.args else { return Ok(CommandArgs::default()) };
    let about = CommandArgs {
        what: args.what.map(|what| what.0),
        number: args.number,
        revision: args.revision.as_ref().map(|text| strings.revision(text.as_str())),
        full: args.full.unwrap_or_default(),
        until: args.until.map(|until| until.0),
        machines: args.machines.iter().flatten().map(|id| InstanceId::new(id.as_str())).collect(),
        gate: args.skip_gate.as_ref().map(RecordText::to_box),
    };
    let is_else = |rest: CommandArgs| rest == CommandArgs::default();
    let names_revision = is_else(CommandArgs { revision: None, ..about.clone() });
    let is_full = is_else(CommandArgs { full: false, ..about.clone() });
    let scales =
        is_else(CommandArgs { number: None, until: None, machines: Vec::new(), ..about.clone() });
    let skips_gate = is_else(CommandArgs { gate: None, ..about.clone() });
    let approves = skips_gate
        || (about.gate.is_none()
            && !about.full
            && about.until.is_none()
            && about.machines.is_empty());
    let verb = ask.verb.as_str();
    if about == CommandArgs::default()
        || (verb == CommandVerb::Approve.name() && approves)
        || (verb == CommandVerb::Scale.name() && scales && about.number.is_some())
        || (verb == CommandVerb::Promote.name() && is_full)
        || (verb == CommandVerb::Rollback.name() && names_revision)
    {
        return Ok(about);
    }
    let say = format!(
        "{verb} takes no such argument: approve takes what, number and revision, or skipGate alone, rollback a revision, promote full, scale number, until and machines"
    );
    Err(Fault::new(format!("commands[{n}].args"), Code::BadValue, say).help("leave them out"))
}

fn ask_verb(ask: &wire::CommandKeys<'_>, n: usize) -> Result<CommandVerb, Fault> {
    const ABANDON: &str = CommandName::Abandon.name();
    let machine = ask.args.as_ref().and_then(|args| args.machine.as_ref());
    let of_machine = || format!("commands[{n}].args.machine");
    let word = ask.verb.as_str();
    match (CommandVerb::PLAIN.into_iter().find(|verb| verb.name() == word), machine) {
        (Some(verb), None) => Ok(verb),
        (Some(_), Some(_)) => {
            let say = format!("{word} is about the pool, not about a machine");
            Err(Fault::new(of_machine(), Code::BadValue, say).help("leave it out"))
        }
        (None, Some(id)) if word == ABANDON => {
            Ok(CommandVerb::Abandon(InstanceId::new(id.as_str())))
        }
        (None, None) if word == ABANDON => {
            let say = "abandon needs the machine it is about";
            Err(Fault::new(of_machine(), Code::MissingKey, say))
        }
        (None, _) => {
            let say = format!("{} is not one of {}", quote(word), CommandVerb::NAMES.join(", "));
            let fault = Fault::new(format!("commands[{n}].verb"), Code::BadValue, say);
            Err(match nearest(word, &CommandVerb::NAMES) {
                Some(near) => fault.help(format!("did you mean {near}?")),
                None => fault,
            })
        }
    }
}

fn facts(wire: &wire::FactKeys<'_>) -> Result<Facts, Fault> {
    let names = wire.gates.iter().flatten().map(|gate| gate.name.as_str());
    each_once(names, |n| format!("facts.gates[{n}].name"))?;
    let gates = wire.gates.iter().flatten().map(|gate| Gate {
        name: gate.name.to_box(),
        verdict: gate.verdict.0,
        at: gate.at.0,
        say: gate.message.as_ref().map(RecordText::to_box),
    });
    let mut gates: Vec<Gate> = gates.collect();
    gates.sort_by(|a, b| a.name.cmp(&b.name));
    let drains = wire.drain.iter().flatten().map(|drain| DrainFact {
        id: InstanceId::new(drain.id.as_str()),
        step: drain.step.to_box(),
        since: drain.since.0,
        blocker: drain.blocker.as_ref().map(RecordText::to_box),
        clear: drain.clear.unwrap_or(false),
    });
    let mut drains: Vec<DrainFact> = drains.collect();
    drains.sort_by(|a, b| (&a.id, a.since, &a.step).cmp(&(&b.id, b.since, &b.step)));
    let witnesses = wire.witnesses.iter().flatten();
    let witnesses = witnesses.map(|witness| Witness { what: witness.what.0, at: witness.at.0 });
    let mut witnesses: Vec<Witness> = witnesses.collect();
    witnesses.sort_unstable();
    let names = wire.metrics.iter().flatten().map(|metric| metric.name.as_str());
    each_once(names, |n| format!("facts.metrics[{n}].name"))?;
    let metrics = wire.metrics.iter().flatten().map(|metric| MetricFact {
        profile: metric.name.to_box(),
        value: metric.value.and_then(Decimal::new),
        at: metric.at.0,
        since: metric.since.map(|since| since.0),
    });
    let names = wire.pools.iter().flatten().map(|pool| pool.name.as_str());
    each_once(names, |n| format!("facts.pools[{n}].name"))?;
    let pools = wire.pools.iter().flatten().map(|pool| PoolFact {
        name: PoolName::new(pool.name.as_str()),
        available: pool.available,
        desired: pool.desired,
    });
    Ok(Facts {
        gates,
        metrics: metrics.collect(),
        pools: pools.collect(),
        budgets: Vec::new(),
        budgets_unread: None,
        machine_budgets: BTreeMap::new(),
        quota: wire.quota.as_ref().map(|quota| Quota {
            family: RecordText::or_empty(quota.family.as_ref()),
            cores_left: quota.cores_left,
            cores_each: quota.cores_each,
        }),
        drains,
        nodes_unseen: None,
        autoscaler_removes: Vec::new(),
        nodes_anew: Vec::new(),
        runs_on: None,
        sign_refused: None,
        node_undeleted: None,
        follow: wire
            .follow
            .as_ref()
            .map(|follow| Follow { image: follow.image.to_box(), at: follow.at.0 }),
        witnesses,
        clock_ahead: wire.clock_ahead_seconds.map(|ahead| Skew::seconds(ahead.into())),
        keeper: wire
            .store
            .as_ref()
            .map_or(Keeper::Unknown, |store| Keeper::Store(StoreId::new(store.as_str()))),
    })
}
