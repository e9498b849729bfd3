//! Hooks of a drain: no machine leaves service, or goes, before its webhook agrees, and one that stays after all is told
//! to those that were asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use poolkeeper::emulator::Emulator;
use poolkeeper::memory::{InboxStore, OverrideWrite, TurnStore};
use poolkeeper::model::ids::PoolName;
use poolkeeper::model::machine::MachineHold;
use poolkeeper::model::plan::MachineReason;
use poolkeeper::model::time::Time;
use poolkeeper::reconcile::Decisions;
use serde_json::Value;

use super::kit::*;
use super::receiver::{Attempt, Receiver, counted, secret, settings};

/// One attempt, and how its machine stood then.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    phase: String,
    delivery: String,
    number: u32,
    vm: String,
    /// It exists, and its delete has not begun.
    stays: bool,
    /// Each of its load balancers is told to send it nothing.
    is_off: bool,
}

impl Asked {
    fn of(attempt: &Attempt, emulator: &Emulator) -> Self {
        let body = &attempt.body;
        let text = |at: &str| body.pointer(at).and_then(Value::as_str).unwrap().to_owned();
        let vm = text("/machine/vmId");
        let state = emulator.state();
        let machine = find(&state["scaleSets"][0]["instances"], &vm);
        let backend = find(&state["loadBalancers"][0]["rules"][0]["backends"], &vm);
        Self {
            phase: text("/phase"),
            delivery: attempt.delivery.clone(),
            number: attempt.number,
            stays: machine.is_some_and(|machine| machine["provisioning"] == "Succeeded"),
            is_off: backend.is_some_and(|backend| backend["adminState"] == "Down"),
            vm,
        }
    }

    fn short(&self) -> (&str, u32, bool, bool) {
        (&self.phase, self.number, self.stays, self.is_off)
    }
}

fn find<'v>(all: &'v Value, vm: &str) -> Option<&'v Value> {
    all.as_array().unwrap().iter().find(|one| one["vmId"] == vm)
}

/// A load balancer of one backend pool, a receiver, and the settings for it.
struct Hooked {
    house: House,
    asked: Arc<Mutex<Vec<Asked>>>,
    receiver: Receiver,
    address: String,
    secret: String,
}

impl Hooked {
    /// `answer`: to a phase and the number of the attempt.
    async fn new(
        test: &str,
        count: u32,
        answer: impl Fn(&str, u32) -> &'static str + Send + Sync + 'static,
    ) -> Self {
        let house = House::balanced(test, &[("web", count)]).await;
        let (emulator, asked) = (house.emulator.clone(), Arc::new(Mutex::new(Vec::new())));
        let notes = Arc::clone(&asked);
        let (receiver, address) = Receiver::begin(move |attempt| {
            let one = Asked::of(attempt, &emulator);
            let answer = answer(&one.phase, one.number);
            notes.lock().unwrap().push(one);
            Some(answer)
        })
        .await;
        let secret = secret(&house);
        Self { house, asked, receiver, address, secret }
    }

    /// The daemon, which is to bring the pool to version 2.0.0.
    async fn begin(&self, count: u32, hooks: &str) -> Running {
        let text = pool("web", count, "2.0.0");
        let drain = format!("drain: {{hooks: {hooks}, grace: 10s, deadline: 2h, maxBlocked: 0}}\n");
        self.house.write("web.yaml", &format!("{text}{drain}"));
        let settings = settings(&self.address, &self.secret);
        self.house.begin_as("first", Decisions::PRODUCTION, &settings).await
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn has(&self, phase: &str) -> bool {
        self.asked().iter().any(|asked| asked.phase == phase)
    }

    fn vms(&self) -> Vec<String> {
        let seen = self.house.seen("web");
        let all = seen["instances"].as_array().unwrap().iter();
        all.map(|machine| machine["vmId"].as_str().unwrap().to_owned()).collect()
    }

    /// The load balancer may send it connections.
    fn is_on(&self, vm: &str) -> bool {
        let state = self.house.emulator.state();
        let backend = find(&state["loadBalancers"][0]["rules"][0]["backends"], vm);
        backend.is_some_and(|backend| backend["adminState"] != "Down")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_machine_goes_when_both_hooks_agree() {
    let answer = |phase: &str, number| match (phase, number) {
        ("before", 1) => "202\r\nretry-after: 5",
        ("after", 1) => "503",
        _ => "200",
    };
    let hooked = Hooked::new("hooks", 2, answer).await;
    let old = hooked.vms();
    let daemon = hooked.begin(2, "{before: ops, after: ops}").await;
    daemon.until("it is upgraded", |_| hooked.house.is_on("web", 2, "2.0.0")).await;
    let outcomes =
        ["delivered", "working", "retried", "refused"].map(|outcome| counted(&daemon, outcome));
    daemon.end().await;

    let asked = hooked.asked();
    for vm in &old {
        let of: Vec<_> = asked.iter().filter(|asked| asked.vm == *vm).map(Asked::short).collect();
        assert_eq!(
            of,
            [
                ("before", 1, true, false),
                ("before", 2, true, false),
                ("after", 1, true, true),
                ("after", 2, true, true),
            ],
            "{asked:?}"
        );
    }
    assert_eq!((asked.len(), outcomes), (8, [4, 2, 2, 0]));
    let mut of_delivery: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
    for one in &asked {
        of_delivery.entry(&one.delivery).or_default().push(one);
    }
    assert_eq!(of_delivery.len(), 4);
    assert!(of_delivery.values().all(|of| of[0].phase == of[1].phase && of[0].vm == of[1].vm));

    for Attempt { body, number, .. } in hooked.receiver.attempts() {
        let keys: BTreeSet<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = ["id", "phase", "pool", "scaleSet", "machine", "attempt", "at", "deadline"];
        assert_eq!(keys, BTreeSet::from(expected));
        assert_eq!((&body["attempt"], &body["scaleSet"]), (&number.into(), &set("web").into()));
        let time = |key: &str| Time::parse(body[key].as_str().unwrap()).unwrap();
        assert!(time("deadline") > time("at"), "{body}");
        assert!(body["machine"]["id"].is_string(), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_refuses_keeps_its_machine_until_it_agrees() {
    let refuses = Arc::new(AtomicBool::new(true));
    let is_so = Arc::clone(&refuses);
    let answer = move |phase: &str, _| match phase {
        "before" if is_so.load(Ordering::SeqCst) => "409",
        _ => "204",
    };
    let hooked = Hooked::new("hooks-refused", 1, answer).await;
    let old = hooked.vms().remove(0);
    let daemon = hooked.begin(1, "{before: ops}").await;
    let stays = |daemon: &Running| {
        let report = daemon.pool("web").and_then(|pool| pool.report.clone());
        let planned = report.as_ref().and_then(|report| report.planned.as_ref());
        planned.is_some_and(|planned| {
            planned.report.machines.iter().any(|of| of.why == MachineReason::DrainBlocked)
        })
    };
    daemon.until("it stays", stays).await;
    daemon.until("its hook is told", |_| hooked.has("undoBefore")).await;
    let again = |_: &Running| {
        let asked = hooked.asked();
        let all = asked.iter().filter(|of| of.phase == "before");
        all.map(|of| &*of.delivery).collect::<BTreeSet<_>>().len() >= 2
    };
    daemon.until("it is asked anew", again).await;
    assert!(hooked.vms().contains(&old) && hooked.is_on(&old));
    refuses.store(false, Ordering::SeqCst);
    daemon.until("it goes", |_| hooked.house.is_on("web", 1, "2.0.0")).await;
    daemon.end().await;

    let asked = hooked.asked();
    assert!(!hooked.vms().contains(&old));
    // A refusal is final for its delivery.
    assert!(asked.iter().all(|of| of.number == 1 && of.vm == old), "{asked:?}");
    assert!(asked.iter().all(|of| of.stays && !of.is_off), "{asked:?}");
    let phases: Vec<&str> = asked.iter().map(|of| of.phase.as_str()).collect();
    assert_eq!(phases[..3], ["before", "undoBefore", "before"], "{asked:?}");
    assert_eq!(phases.last(), Some(&"before"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_a_person_holds_returns_and_its_hooks_hear_of_it() {
    let answer = |phase: &str, number| match (phase, number) {
        ("after", _) => "202\r\nretry-after: 3600",
        ("undoAfter", 1) => "500",
        _ => "204",
    };
    let hooked = Hooked::new("hooks-held", 1, answer).await;
    let old = hooked.vms().remove(0);
    let daemon = hooked.begin(1, "{before: ops, after: ops}").await;
    daemon.until("the last hook works on it", |_| hooked.has("after")).await;
    assert!(!hooked.is_on(&old));
    let name = PoolName::new("web");
    let record = hooked.house.store.load(&name).await.unwrap();
    let machine =
        record.machines.iter().find(|of| of.vm.as_ref().is_some_and(|vm| *vm.as_str() == *old));
    let hold = MachineHold { by: "ann".into(), why: "a core dump".into() };
    let mark = OverrideWrite::Hold(Some(hold));
    assert!(hooked.house.store.mark(&name, &machine.unwrap().key(), &mark).await.unwrap());
    daemon.handle.turns.wake_now(&name);
    daemon.until("its hooks are told", |_| hooked.has("undoBefore")).await;
    daemon.until("it gets connections", |_| hooked.is_on(&old)).await;
    daemon.end().await;

    assert!(hooked.vms().contains(&old));
    let asked = hooked.asked();
    let all: Vec<_> = asked.iter().map(|of| (&*of.phase, of.number)).collect();
    let expected =
        [("before", 1), ("after", 1), ("undoAfter", 1), ("undoAfter", 2), ("undoBefore", 1)];
    assert_eq!(all, expected);
    assert!(asked.iter().all(|of| of.stays && of.vm == old), "{asked:?}");
    let undone = hooked.receiver.attempts();
    let undone: Vec<_> =
        undone.iter().filter(|of| of.body["phase"].as_str().unwrap().starts_with("undo")).collect();
    assert!(undone.iter().all(|of| of.body["deadline"].is_null()));
    assert_eq!(undone[0].delivery, undone[1].delivery);
}
