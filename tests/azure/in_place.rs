//! Updates in place: what an upgrade brings and what only a new disk does, for both kinds of set; and which machine an
//! id means.

use std::sync::{Arc, Mutex};

use poolkeeper::act::CallOutcome;
use poolkeeper::model::inventory::Instance;
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::time::{Span, Time};
use serde_json::{Value, json};

use crate::azure::kit::{Changes, Kit, SET, START, Sheet, alone, kit, machine, set, target, usual};
use crate::azure::server::{Heard, Says};

const VMS: &str =
    "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines";

/// What the cloud shows, to be changed in the middle of a test.
#[derive(Clone)]
struct Shown(Arc<Mutex<(Value, Vec<Value>)>>);

impl Shown {
    fn new(set: Value, machines: Vec<Value>) -> Self {
        Self(Arc::new(Mutex::new((set, machines))))
    }

    fn change(&self, change: impl FnOnce(&mut Value, &mut Vec<Value>)) {
        let (set, machines) = &mut *self.0.lock().unwrap();
        change(set, machines);
    }

    async fn kit(&self) -> Kit {
        self.kit_that_answers(|| Says::status(202, "")).await
    }

    async fn kit_that_answers(&self, write: fn() -> Says) -> Kit {
        let shown = self.clone();
        kit(move |heard: &Heard| {
            let (set, machines) = &*shown.0.lock().unwrap();
            if let Some(alone) = alone(heard, machines).filter(|_| heard.verb == "GET") {
                return alone;
            }
            match () {
                () if heard.verb != "GET" => write(),
                () if heard.target.contains("/virtualMachines?") => {
                    Says::json(&json!({"value": machines}))
                }
                () if heard.target.contains("userData") => Says::json(set),
                () => usual(heard),
            }
        })
        .await
    }
}

fn flagged(n: u32, flag: bool) -> Value {
    let mut machine = machine(n);
    machine["properties"]["latestModelApplied"] = json!(flag);
    machine
}

fn worked_on(machine: &mut Value, at: Time) {
    machine["properties"]["instanceView"]["statuses"][0]["time"] = json!(at.to_string());
}

fn with_image(machine: &mut Value, version: &str, exact: &str) {
    let image = &mut machine["properties"]["storageProfile"]["imageReference"];
    (image["version"], image["exactVersion"]) = (json!(version), json!(exact));
}

fn model_image(set: &mut Value, version: &str) {
    set["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]["version"] =
        json!(version);
}

fn os_profile(set: &mut Value, keys: &str) {
    set["properties"]["virtualMachineProfile"]["osProfile"] =
        json!({"linuxConfiguration": {"ssh": keys}});
}

async fn update(kit: &Kit, ids: &[&str]) -> (CallOutcome, Heard) {
    let targets: Vec<_> = ids.iter().map(|id| target(id)).collect();
    let sheet = Sheet::new();
    let answer = kit.azure.reimage(&sheet.order(), &targets).await;
    (answer, kit.server.heard().pop().unwrap())
}

async fn rows(kit: &Kit) -> Vec<Instance> {
    kit.look().await.unwrap().instances
}

#[tokio::test]
async fn what_is_on_the_model_gets_a_new_disk_and_what_is_not_an_upgrade() {
    let shown = Shown::new(set(), vec![flagged(0, true), flagged(1, false), flagged(2, true)]);
    let kit = shown.kit().await;
    rows(&kit).await;
    let (answer, sent) = update(&kit, &["0", "2"]).await;
    assert_eq!(answer, CallOutcome::Accepted(None));
    assert!(sent.is("POST", &format!("{SET}/reimage?api-version=2024-07-01")), "{sent:?}");
    assert_eq!(sent.json(), json!({"instanceIds": ["0", "2"]}));
    for ids in [&["1"][..], &["0", "1"], &["9"]] {
        let (_, sent) = update(&kit, ids).await;
        assert!(sent.is("POST", &format!("{SET}/manualupgrade?")), "{ids:?}");
        assert_eq!(sent.json(), json!({"instanceIds": ids}));
    }
    // Where nothing was seen, nothing is known to need a new disk.
    let blind = shown.kit().await;
    assert!(update(&blind, &["0"]).await.1.is("POST", "/manualupgrade?"));
}

#[tokio::test]
async fn a_new_disk_is_dated_when_the_work_ended() {
    let shown = Shown::new(set(), vec![machine(0), machine(1)]);
    let kit = shown.kit().await;
    assert_eq!(rows(&kit).await[0].imaged, None);
    update(&kit, &["0"]).await;
    assert_eq!(rows(&kit).await[0].imaged, None, "it is asked for, and not there");
    let ended = START.plus(Span::seconds(90));
    shown.change(|_, machines| machines.iter_mut().for_each(|m| worked_on(m, ended)));
    let rows = rows(&kit).await;
    assert_eq!((rows[0].imaged, rows[1].imaged), (Some(ended), None));
}

#[tokio::test]
async fn a_new_disk_that_was_refused_for_another_machine_is_dated_never() {
    let shown = Shown::new(set(), vec![machine(0), machine(1)]);
    let locked = || {
        let message = format!(
            "The scope '{SET}' cannot perform write operation because following scope(s) are locked: \
             '{SET}/virtualMachines/1'. Please remove the lock and try again."
        );
        Says::fault(409, "ScopeLocked", &message)
    };
    let kit = shown.kit_that_answers(locked).await;
    rows(&kit).await;
    assert!(matches!(update(&kit, &["0", "1"]).await.0, CallOutcome::RefusedFor(..)));
    let ended = START.plus(Span::seconds(90));
    shown.change(|_, machines| machines.iter_mut().for_each(|m| worked_on(m, ended)));
    assert_eq!(rows(&kit).await[0].imaged, None, "it was never asked for");
}

#[tokio::test]
async fn an_os_profile_comes_with_a_new_disk_and_not_with_an_upgrade() {
    let shown = Shown::new(set(), vec![machine(0), machine(1)]);
    let kit = shown.kit().await;
    let before = rows(&kit).await[0].revision.clone();
    kit.clock.pass(Span::seconds(10));
    shown.change(|set, machines| {
        os_profile(set, "new keys");
        *machines = vec![flagged(0, false), flagged(1, false)];
    });
    let to = kit.look().await.unwrap().set.revision;
    let (_, sent) = update(&kit, &["0"]).await;
    assert!(sent.is("POST", &format!("{SET}/reimage?")), "{sent:?}");
    // Machine 0 has its new disk, and the flag stayed down; machine 1 was upgraded by somebody, and the flag went up.
    let ended = START.plus(Span::seconds(100));
    shown.change(|_, machines| {
        worked_on(&mut machines[0], ended);
        machines[1] = flagged(1, true);
        worked_on(&mut machines[1], ended);
    });
    let rows = rows(&kit).await;
    assert_eq!(rows[0].revision, Some(to.clone()));
    assert!(rows[1].revision != Some(to) && rows[1].revision != before, "{:?}", rows[1]);
    assert!(update(&kit, &["1"]).await.1.is("POST", "/reimage?"));
}

#[tokio::test]
async fn a_disk_that_an_upgrade_left_is_swapped_by_its_version() {
    let shown = Shown::new(set(), vec![machine(0)]);
    let kit = shown.kit().await;
    rows(&kit).await;
    kit.clock.pass(Span::seconds(10));
    shown.change(|set, machines| {
        model_image(set, "2.0");
        machines[0] = flagged(0, false);
    });
    let to = kit.look().await.unwrap().set.revision;
    assert!(update(&kit, &["0"]).await.1.is("POST", "/manualupgrade?"));
    // Azure says that it is done, and has kept the disk.
    let ended = START.plus(Span::seconds(60));
    shown.change(|_, machines| {
        machines[0] = machine(0);
        with_image(&mut machines[0], "2.0", "1.0");
        worked_on(&mut machines[0], ended);
    });
    assert_ne!(rows(&kit).await[0].revision, Some(to.clone()));
    let (_, sent) = update(&kit, &["0"]).await;
    assert!(sent.is("POST", &format!("{SET}/reimage?")));
    assert_eq!(sent.json(), json!({"instanceIds": ["0"], "exactVersion": "2.0"}));
    shown.change(|_, machines| with_image(&mut machines[0], "2.0", "2.0"));
    assert_eq!(rows(&kit).await[0].revision, Some(to));
}

/// A Flexible set and two of its machines, of which the second is stopped.
fn flexible(ephemeral: bool) -> Shown {
    let mut set = set();
    set["properties"]["orchestrationMode"] = json!("Flexible");
    if ephemeral {
        set["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"] =
            json!({"diffDiskSettings": {"option": "Local"}});
    }
    let vm = |name: &str, n: u32| {
        let mut vm = machine(n);
        vm["name"] = json!(name);
        vm["properties"]["virtualMachineScaleSet"] = json!({"id": SET});
        vm["properties"].as_object_mut().unwrap().remove("latestModelApplied");
        vm
    };
    Shown::new(set, vec![vm("web_0000000a", 0), vm("web_0000000b", 1)])
}

fn of(name: &str, n: &str) -> poolkeeper::model::action::Target {
    poolkeeper::model::action::Target {
        id: poolkeeper::model::ids::InstanceId::new(name),
        ..target(n)
    }
}

#[tokio::test]
async fn vms_of_a_flexible_set_are_started_and_deallocated_each_by_itself() {
    let both = [of("web_0000000b", "1"), of("web_0000000a", "0")];
    for action in ["start", "deallocate"] {
        let (kit, sheet) = (flexible(false).kit().await, Sheet::new());
        rows(&kit).await;
        let answer = match action {
            "start" => kit.azure.restore(&sheet.order(), &both).await,
            _ => kit.azure.standby(&sheet.order(), &both).await,
        };
        assert_eq!(answer, CallOutcome::Accepted(None), "{action}");
        for name in ["web_0000000a", "web_0000000b"] {
            assert_eq!(kit.server.count("POST", &format!("{VMS}/{name}/{action}?")), 1);
        }
        assert_eq!(kit.server.count("POST", "virtualMachineScaleSets"), 0);
    }
}

#[tokio::test]
async fn machines_with_ephemeral_disks_are_not_deallocated() {
    let kit = flexible(true).kit().await;
    rows(&kit).await;
    let asked = kit.server.heard().len();
    let answer = kit.azure.standby(&Sheet::new().order(), &[of("web_0000000a", "0")]).await;
    let CallOutcome::Refused(no) = answer else { panic!("{answer:?}") };
    assert_eq!((no.refusal, no.code.as_deref()), (Refusal::Invalid, Some("EphemeralDisks")));
    assert_eq!(kit.server.heard().len(), asked, "no call is made");
}

#[tokio::test]
async fn the_first_refusal_stops_them_and_what_was_begun_stays_begun() {
    let shown = flexible(false);
    for (bad, sent) in [("web_0000000a", 1), ("web_0000000b", 2)] {
        let (shown, inner) = (shown.clone(), shown.clone());
        drop(shown);
        let kit = kit(move |heard: &Heard| {
            let (set, machines) = &*inner.0.lock().unwrap();
            match () {
                () if heard.target.contains(bad) => Says::fault(409, "ScopeLocked", "locked"),
                () if heard.verb != "GET" => Says::status(202, ""),
                () if heard.target.contains("/virtualMachines?") => {
                    Says::json(&json!({"value": machines}))
                }
                () if heard.target.contains("userData") => Says::json(set),
                () => usual(heard),
            }
        })
        .await;
        rows(&kit).await;
        let sheet = Sheet::new();
        let answer = kit
            .azure
            .restore(&sheet.order(), &[of("web_0000000a", "0"), of("web_0000000b", "1")])
            .await;
        match sent {
            1 => assert!(
                matches!(answer, CallOutcome::Refused(no) if no.refusal == Refusal::Forbidden)
            ),
            _ => assert_eq!(answer, CallOutcome::Accepted(None)),
        }
        assert_eq!(kit.server.count("POST", "/start"), sent);
    }
}

#[tokio::test]
async fn a_flexible_set_gives_new_disks_only_where_they_are_on_the_host() {
    let kit = flexible(false).kit().await;
    rows(&kit).await;
    let sheet = Sheet::new();
    let one = [of("web_0000000a", "0")];
    let CallOutcome::Refused(no) = kit.azure.reimage(&sheet.order(), &one).await else { panic!() };
    assert_eq!(
        (no.refusal, no.code.as_deref()),
        (Refusal::Invalid, Some("ReimageNeedsEphemeralDisk"))
    );
    assert_eq!(kit.server.count("POST", ""), 0);
    let kit = flexible(true).kit().await;
    rows(&kit).await;
    assert_eq!(kit.azure.reimage(&sheet.order(), &one).await, CallOutcome::Accepted(None));
    assert!(kit.server.heard().pop().unwrap().is("POST", &format!("{VMS}/web_0000000a/reimage?")));
}

#[tokio::test]
async fn an_ephemeral_disk_of_a_uniform_set_is_asked_to_take_the_model() {
    let mut local = set();
    local["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"] =
        json!({"diffDiskSettings": {"option": "Local"}});
    let kit = Shown::new(local, vec![machine(0)]).kit().await;
    rows(&kit).await;
    let (_, sent) = update(&kit, &["0"]).await;
    assert_eq!(sent.json(), json!({"instanceIds": ["0"], "forceUpdateOSDiskForEphemeral": true}));
}

#[tokio::test]
async fn an_id_that_is_another_machines_by_now_goes_nowhere() {
    let shown = Shown::new(set(), vec![machine(0), machine(1)]);
    let kit = shown.kit().await;
    rows(&kit).await;
    shown.change(|_, machines| machines[1]["properties"]["vmId"] = json!("0000-new"));
    rows(&kit).await;
    let (sheet, both) = (Sheet::new(), [target("0"), target("1")]);
    let order = sheet.order();
    for answer in [
        kit.azure.delete(&order, &both, false).await,
        kit.azure.reimage(&order, &both).await,
        kit.azure.restore(&order, &both).await,
    ] {
        let CallOutcome::Refused(no) = answer else { panic!("{answer:?}") };
        assert_eq!((no.refusal, no.code.as_deref()), (Refusal::Conflict, Some("AnotherMachine")));
    }
    assert_eq!(kit.server.count("POST", ""), 0);
    assert_eq!(kit.azure.delete(&order, &both[..1], false).await, CallOutcome::Accepted(None));
}
