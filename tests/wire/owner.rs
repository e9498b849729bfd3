//! Two daemons with stores of their own look after one set.

use std::sync::Arc;

use poolkeeper::adapters::azure::Azure;
use poolkeeper::ambient::{Clock, SystemClock};
use poolkeeper::emulator::Emulator;
use poolkeeper::memory::{HistoryEvent, HistoryStore, InboxStore, MemoryStore, TurnStore};
use poolkeeper::model::action::{Action, ActionKind};
use poolkeeper::model::autoscaler::{AutoscalerPolicy, DuringRollout};
use poolkeeper::model::ids::{CommandId, ScaleSetId, StoreId};
use poolkeeper::model::owner::{Keeper, OwnerTag};
use poolkeeper::model::plan::{Command, CommandArgs, CommandVerb, Facts};
use poolkeeper::model::policy::{Owner, Policy};
use poolkeeper::model::size::SizeSpeaker;
use poolkeeper::model::time::Span;
use poolkeeper::reconcile::{Decisions, PoolTurn, TurnReport};
use serde_json::{Value, json};

use crate::wire::kit::{self, Ends, House, NoNodes, policy};

struct Daemon<'a> {
    ends: &'a Ends,
    house: House<Azure, SystemClock>,
    policy: Policy,
    turns: PoolTurn,
}

impl<'a> Daemon<'a> {
    fn new(ends: &'a Ends, store: &str, count: u32) -> Self {
        Self::of(ends, store, policy("web", count, |_| {}))
    }

    fn of(ends: &'a Ends, store: &str, policy: Policy) -> Self {
        let http = ends.net.http().unwrap();
        let tokens = kit::tokens(&ends.cloud, &http, SystemClock);
        let clock = Arc::new(SystemClock);
        let azure = Azure::new(ends.cloud.clone(), http, tokens, None, clock);
        let keeper = Keeper::Store(StoreId::new(store));
        let house = House {
            cloud: Arc::new(azure),
            nodes: NoNodes(Facts { keeper, ..Facts::default() }),
            store: MemoryStore::new(),
            decide: Decisions::PRODUCTION,
            clock: SystemClock,
        };
        let turns = PoolTurn::new(policy.name.clone(), 1);
        Self { ends, house, policy, turns }
    }

    fn turn(&mut self) -> TurnReport {
        let Self { ends, house, policy, turns } = self;
        ends.runtime.block_on(async {
            let now = SystemClock.now();
            let lease = house.store.acquire("one", now, Span::minutes(2)).await.unwrap();
            let report = turns.turn(&*house, policy, &lease).await.unwrap();
            assert_eq!(report.notes, [], "{report:?}");
            report
        })
    }

    /// Nothing names the pool any more: how many entries are left open.
    fn watch(&mut self) -> usize {
        let Self { ends, house, policy, turns } = self;
        ends.runtime.block_on(async {
            let now = SystemClock.now();
            let lease = house.store.acquire("one", now, Span::minutes(2)).await.unwrap();
            turns.watch(&*house, policy, &lease).await.unwrap()
        })
    }

    fn ask(&self, verb: CommandVerb) {
        let (id, by, why) = (CommandId::new("ask"), "kim".into(), "the other is gone".into());
        let ask =
            Command { id, verb, by, why, at: SystemClock.now(), about: CommandArgs::default() };
        let asked = self.house.store.ask(&self.policy.name, &ask);
        self.ends.runtime.block_on(asked).unwrap();
    }

    fn count(&self, of: impl Fn(&HistoryEvent) -> bool) -> usize {
        let lines = self.house.store.history(&self.policy.name, 100);
        let lines = self.ends.runtime.block_on(lines).unwrap();
        lines.iter().filter(|line| of(&line.event)).count()
    }
}

fn verbs(report: &TurnReport) -> Vec<ActionKind> {
    let planned = report.planned.as_ref().unwrap();
    planned.actions.iter().map(Action::verb).collect()
}

fn holds(report: &TurnReport) -> Vec<&'static str> {
    let planned = report.planned.as_ref().unwrap();
    planned.report.holds.iter().map(|hold| hold.reason.code()).collect()
}

/// What the emulator answers to a GET.
fn shown(emulator: &Emulator, target: &str) -> Value {
    let request = axum::http::Request::get(target)
        .header("host", "localhost")
        .header("authorization", "Bearer x");
    let body = axum::body::Body::empty();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let answer = emulator.answer(request.body(body).unwrap(), true).await;
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    })
}

/// The store that the tag on the set names.
fn owner(emulator: &Emulator, set: &ScaleSetId) -> Option<String> {
    let shown = shown(emulator, &format!("{set}?api-version=2024-07-01"));
    let value = shown["tags"]["poolkeeper-owner"].as_str()?;
    Some(OwnerTag::parse(value).unwrap().store.as_str().to_owned())
}

/// `denied`: endings of actions that the role lacks.
fn emulated(denied: &[&str]) -> (Emulator, Ends, ScaleSetId) {
    emulated_with(denied, &Value::Null)
}

fn emulated_with(denied: &[&str], autoscale: &Value) -> (Emulator, Ends, ScaleSetId) {
    let tags = json!({"tags": {"team": "web"}});
    let seed = json!({
        "scaleSets": [{"name": "web", "capacity": 3, "resource": tags, "autoscale": autoscale}],
        "identities": [{"clientId": "app", "secret": "right", "deniedActions": denied}],
    });
    let seed = serde_json::from_value(seed).unwrap();
    let emulator = Emulator::by_the_clock(&seed, 1.0).unwrap();
    let ends = kit::ends(&emulator);
    (emulator, ends, kit::set_id("web"))
}

#[test]
fn the_second_holds_takes_over_and_lets_go() {
    for denied in [&[][..], &["tags/write"]] {
        let (emulator, ends, set) = emulated(denied);
        let (mut first, mut second) = (Daemon::new(&ends, "aa", 3), Daemon::new(&ends, "bb", 3));
        assert_eq!(verbs(&first.turn()), [ActionKind::TagOwner]);
        assert_eq!(owner(&emulator, &set).as_deref(), Some("aa"));
        emulator.advance(Span::minutes(5).millis());
        assert_eq!(verbs(&first.turn()), [], "once is enough");
        let held = second.turn();
        assert_eq!((verbs(&held), holds(&held)), (vec![], vec!["foreignOwner"]));
        second.ask(CommandVerb::TakeOver);
        let took = second.turn();
        assert_eq!((verbs(&took), holds(&took)), (vec![ActionKind::TagOwner], vec![]));
        assert_eq!(owner(&emulator, &set).as_deref(), Some("bb"));
        emulator.advance(Span::minutes(5).millis());
        let held = first.turn();
        assert_eq!((verbs(&held), holds(&held)), (vec![], vec!["foreignOwner"]));
        // Released, the first leaves the tag of the second alone; the second takes its own away.
        assert_eq!(first.watch(), 0);
        assert_eq!(owner(&emulator, &set).as_deref(), Some("bb"));
        let _ = second.turn();
        let open = (0..5).find(|_| {
            emulator.advance(Span::minutes(5).millis());
            second.watch() == 0
        });
        assert!(open.is_some(), "{denied:?}");
        assert_eq!(owner(&emulator, &set), None, "{denied:?}");
        let tags = |event: &HistoryEvent| {
            matches!(event, HistoryEvent::Decided { verb: ActionKind::TagOwner, .. })
        };
        assert_eq!((first.count(tags), second.count(tags)), (1, 2));
        assert_eq!(second.watch(), 0, "no more is asked");
    }
}

/// A pool whose set cannot be read any more is released all the same.
#[test]
fn a_tag_that_cannot_be_taken_away_is_told_and_nothing_waits_for_it() {
    let (_emulator, ends, _) = emulated(&[]);
    let mut daemon = Daemon::new(&ends, "aa", 3);
    let _ = daemon.turn();
    daemon.policy = policy("web", 3, |draft| draft.scale_set = kit::set_id("gone"));
    assert_eq!(daemon.watch(), 0);
    let stays = |event: &HistoryEvent| matches!(event, HistoryEvent::Moved { message, .. } if message.contains("stays"));
    assert_eq!((daemon.count(stays), daemon.watch(), daemon.count(stays)), (1, 0, 1));
}

/// A rollout switched the autoscaler off, and then nothing names the pool any more.
#[test]
fn a_pool_that_is_released_gives_its_autoscaler_back() {
    let bounds = json!({"minimum": 3, "maximum": 9, "default": 3});
    let profile = json!({"name": "all", "capacity": bounds, "rules": []});
    let (emulator, ends, set) =
        emulated_with(&[], &json!({"enabled": true, "profiles": [profile]}));
    let group = set.as_str().split("/providers/").next().unwrap();
    let setting = format!(
        "{group}/providers/microsoft.insights/autoscalesettings/web?api-version=2022-10-01"
    );
    let was = shown(&emulator, &setting);
    assert_eq!(was["properties"]["enabled"], true);
    let policy = policy("web", 3, |draft| {
        draft.owner = Owner::ScaleSet;
        let during = DuringRollout::Suspend;
        draft.autoscaler = Some(AutoscalerPolicy { during, setting: None });
    });
    let mut daemon = Daemon::of(&ends, "aa", policy);
    daemon.house.cloud.watch(&daemon.policy.name, &daemon.policy);
    assert_eq!(verbs(&daemon.turn()), [ActionKind::TagOwner]);
    daemon.ask(CommandVerb::Refresh);
    assert_eq!(verbs(&daemon.turn()), [ActionKind::SuspendAutoscaler]);
    assert_eq!(shown(&emulator, &setting)["properties"]["enabled"], false);
    assert_eq!(verbs(&daemon.turn()), []);
    daemon.house.cloud.forget(&daemon.policy.name);
    assert_ne!(daemon.watch(), 0, "no read shows yet that it is on");
    assert_eq!(shown(&emulator, &setting), was);
    assert!(owner(&emulator, &set).is_some(), "its tag stays for as long as it owes anything");
    assert_eq!((daemon.watch(), daemon.watch()), (0, 0));
    assert_eq!((shown(&emulator, &setting), owner(&emulator, &set)), (was, None));
}

#[test]
fn a_changed_size_is_told_once_with_who_asked_for_it() {
    let (_emulator, ends, _) = emulated(&[]);
    let mut daemon = Daemon::new(&ends, "aa", 3);
    let _ = (daemon.turn(), daemon.turn());
    let sized = |event: &HistoryEvent| matches!(event, HistoryEvent::Sized { .. });
    assert_eq!(daemon.count(sized), 0, "the size that it began with is no change");
    daemon.policy = policy("web", 4, |_| {});
    let _ = (daemon.turn(), daemon.turn());
    let by = SizeSpeaker::Count;
    assert_eq!(
        daemon.count(|event| *event == HistoryEvent::Sized { from: 3, to: 4, by: by.clone() }),
        1
    );
    assert_eq!(daemon.count(sized), 1);
}
