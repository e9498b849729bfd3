//! Pools for the tests of the screen.

use serde_json::{Value, to_value};

use crate::api::v1::API_VERSION;
use crate::api::v1::resources::When;
use crate::api::v1::resources::machines::{HeldBy, MachineStatus};
use crate::api::v1::resources::plans::{EstimateStatus, HoldStatus, RolloutProgress};
use crate::api::v1::resources::pools::{OpenRollout, PoolNumbers, PoolStatus, RolloutStatus};
use crate::api::v1::resources::told::{HistoryLine, ReadinessStatus};
use crate::cli::page::TimeStyle;
use crate::cli::status::{More, PoolLook, PoolReport};
use crate::cli::watch::state::{
    Palette, PoolPicture, PoolsPicture, WatchEvent, WatchPicture, WatchState, WatchSubject,
};
use crate::memory::{HistoryEvent, HistoryRecord};
use crate::model::action::MachineClass;
use crate::model::command::CommandName;
use crate::model::hold::{Hold, HoldReason, Remedy};
use crate::model::ids::{CommandId, InstanceId, VmId, Zone};
use crate::model::machine::{Condition, Machine};
use crate::model::plan::RolloutPhase;
use crate::model::time::{Span, Time};

/// Whole signs, and colour.
pub const RICH: Palette = Palette { colour: true, unicode: true };

/// 2026-03-01T12:00:00Z
pub const NOW: Time = Time::from_millis(1_772_366_400_000);

pub fn numbers(desired: u32, outdated: u32) -> PoolNumbers {
    PoolNumbers {
        desired,
        surge: 3,
        unavailable: 1,
        floor: desired - 1,
        ceiling: desired + 3,
        total: desired + 2,
        available: desired - 1,
        current: desired - outdated,
        outdated,
        failed: 0,
        not_yet_available: 2,
        deleting: 0,
        requested: 0,
    }
}

pub fn hold(reason: HoldReason, message: &str, verb: Option<CommandName>) -> HoldStatus {
    HoldStatus::of(&Hold {
        reason,
        message: message.into(),
        numbers: Vec::new(),
        blockers: Vec::new(),
        next_check_at: NOW.plus(Span::seconds(30)),
        remedy: verb.map(Remedy::from),
    })
}

/// A pool in the middle of a rollout.
pub fn status(name: &str) -> PoolStatus {
    PoolStatus {
        name: name.to_owned(),
        scale_set: format!("/subscriptions/s/{name}"),
        origin: "file".into(),
        file: Some(format!("pools/{name}.yaml")),
        at: Some(When(NOW)),
        next_check_at: Some(When(NOW.plus(Span::seconds(30)))),
        numbers: Some(numbers(30, 19)),
        phase: RolloutPhase::Progressing.name().into(),
        holds: vec![hold(HoldReason::Floor, "29 of at least 29 machines serve", None)],
        frozen: None,
        trouble: None,
        ignored: None,
        estimate: Some(EstimateStatus {
            finishes: Some(When(NOW.plus(Span::minutes(12)))),
            peak_machines: 33,
            peak_cores: None,
            calls: 60,
        }),
        awaiting_second_person: Some(Vec::new()),
        stop_all: None,
    }
}

/// Between two rollouts, with nothing to do.
pub fn calm(name: &str) -> PoolStatus {
    let whole = PoolNumbers { available: 30, total: 30, not_yet_available: 0, ..numbers(30, 0) };
    PoolStatus {
        numbers: Some(whole),
        phase: RolloutPhase::None.name().into(),
        holds: Vec::new(),
        estimate: None,
        ..status(name)
    }
}

pub fn ready() -> ReadinessStatus {
    ReadinessStatus {
        api_version: API_VERSION.into(),
        kind: "Readiness".into(),
        ready: true,
        message: "ready".to_owned(),
        pools: 1,
    }
}

pub fn rollout(name: &str) -> RolloutStatus {
    let text = |text: &str| Some(text.to_owned());
    RolloutStatus {
        api_version: API_VERSION.into(),
        kind: "Rollout".into(),
        pool: name.to_owned(),
        progress: RolloutProgress {
            phase: RolloutPhase::Progressing.name().into(),
            from: text("r1"),
            from_name: text("1.0.0"),
            to: text("r2"),
            to_name: text("2.0.0"),
            reference: text("r2"),
            reference_name: text("2.0.0"),
            done: 11,
            total: 30,
            failed: 0,
            gates: Vec::new(),
            exceptions: Vec::new(),
        },
        open: Some(OpenRollout {
            cause: "model".into(),
            opened: When(NOW.minus(Span::minutes(8))),
            covered: 30,
            stage: "moving".into(),
            since: None,
            by: None,
            why: None,
            checkpoints_passed: 0,
            soaking: None,
            approved: false,
            progress_at: When(NOW),
        }),
        last: None,
        commands: Vec::new(),
        estimate: None,
    }
}

pub fn machine(id: &str, zone: Option<&str>, class: MachineClass) -> MachineStatus {
    let condition = match class {
        MachineClass::Failed => Condition::Failed,
        MachineClass::Deleting => Condition::Deleting,
        MachineClass::NotYetAvailable => Condition::Provisioning,
        _ => Condition::Ready,
    };
    let born = NOW.minus(Span::hours(30));
    let vm = Some(VmId::new(format!("vm-{id}")));
    let mut machine = Machine::new(InstanceId::new(id), vm, born, condition);
    machine.zone = zone.map(Zone::new);
    machine.ever_available = class != MachineClass::NotYetAvailable;
    let is_old = class == MachineClass::Outdated;
    MachineStatus {
        revision_name: Some(if is_old { "1.0.0" } else { "2.0.0" }.to_owned()),
        class: Some(class.name().into()),
        message: Some(match class {
            MachineClass::Outdated => "outdated; waits for its turn".to_owned(),
            class => class.name().to_owned(),
        }),
        hold: (class == MachineClass::Held)
            .then(|| HeldBy { by: "kim".to_owned(), why: "leak".to_owned() }),
        ..MachineStatus::of(&machine)
    }
}

/// As many machines, a third of them on the new revision, in this many zones.
pub fn machines(many: usize, zones: usize) -> Vec<MachineStatus> {
    let zone = |n: usize| (zones > 0).then(|| (n % zones + 1).to_string());
    let class = |n: usize| match n {
        3 => MachineClass::Failed,
        5 => MachineClass::Held,
        7 => MachineClass::Deleting,
        n if n + 2 >= many => MachineClass::NotYetAvailable,
        n if n * 3 < many => MachineClass::Current,
        _ => MachineClass::Outdated,
    };
    (0..many).map(|n| machine(&n.to_string(), zone(n).as_deref(), class(n))).collect()
}

/// Each is a fact.
pub fn lines(many: u64) -> Vec<HistoryLine> {
    let line = |n: u64| {
        let at = NOW.minus(Span::seconds(i64::try_from(many - n).unwrap() * 10));
        let (command, message) = (CommandId::new("c"), format!("fact {n} of the history").into());
        let event = HistoryEvent::Answered { command, accepted: true, message };
        HistoryLine::of(n, "web", &HistoryRecord::new(at, event))
    };
    (1..=many).map(line).collect()
}

pub fn look(status: &PoolStatus, machines: Vec<MachineStatus>) -> PoolLook {
    let (rollout, status) = (to_value(rollout(&status.name)), to_value(status));
    let (rollout, status): (Value, Value) = (rollout.unwrap(), status.unwrap());
    PoolLook::of(&status, &rollout, machines, None, ready(), TimeStyle::Absolute).unwrap()
}

pub fn list(pools: Vec<PoolStatus>) -> WatchPicture {
    let none = More::default();
    let mut pools: Vec<PoolReport> = pools
        .into_iter()
        .map(|status| PoolReport::of(status, &none, TimeStyle::Absolute))
        .collect();
    pools.sort_by(|a, b| a.place().cmp(&b.place()));
    WatchPicture::Pools(PoolsPicture { pools, ready: ready() })
}

/// Hands a reading to the screen.
pub fn give(state: &mut WatchState, picture: WatchPicture) {
    let subject = state.subject();
    assert_eq!(state.on(WatchEvent::Reading(subject, Ok(picture))), None);
}

/// The list of six pools.
pub fn of_list(size: (u16, u16)) -> WatchState {
    let mut state = WatchState::new(None, RICH, size);
    state.on(WatchEvent::Stream(true));
    let broken = PoolStatus {
        holds: vec![hold(
            HoldReason::Refused,
            "a raise was refused (QuotaExceeded)",
            Some(CommandName::Retry),
        )],
        ..status("api")
    };
    let paused = PoolStatus {
        holds: vec![hold(
            HoldReason::Paused,
            "paused by kim: a look first",
            Some(CommandName::Resume),
        )],
        ..status("queue")
    };
    let young = PoolStatus { at: None, next_check_at: None, numbers: None, ..calm("young") };
    let long = calm("a-pool-whose-name-is-longer-than-a-column-may-be");
    give(&mut state, list(vec![status("web"), calm("batch"), broken, paused, young, long]));
    state
}

/// One pool that is named on the command line.
pub fn of_pool(size: (u16, u16), machines: Vec<MachineStatus>) -> WatchState {
    let mut state = WatchState::new(Some("web"), RICH, size);
    state.on(WatchEvent::Stream(true));
    let look = look(&status("web"), machines);
    give(&mut state, WatchPicture::Pool(Box::new(PoolPicture { look, lines: lines(40) })));
    assert_eq!(state.subject(), WatchSubject::Pool("web".to_owned()));
    state
}
