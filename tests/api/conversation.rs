//! Another program closes the loop with the two documents alone: snapshot in, plan out, carried out, and again.

use poolkeeper::api::v1::plan::encode;
use poolkeeper::api::v1::snapshot::Snapshots;
use poolkeeper::model::time::{Span, Time};
use serde_json::{Value, json};

use crate::api::support::json_pool;

/// The program on the other side: it knows nothing but JSON.
struct Driver {
    now: Time,
    pool: Value,
    capacity: u64,
    born: u64,
    machines: Vec<Value>,
    open: Vec<Value>,
    state: Value,
    plans: Snapshots,
}

const TURN: Span = Span::seconds(5);
const BOOT: Span = Span::seconds(30);
const DELETE: Span = Span::seconds(20);

fn time(value: &Value) -> Time {
    Time::parse(value.as_str().unwrap()).unwrap()
}

impl Driver {
    fn new(pool: Value, count: u64) -> Self {
        let start = Time::parse("2026-03-01T12:00:00Z").unwrap();
        let mut driver = Self {
            now: start,
            pool,
            capacity: count,
            born: 0,
            machines: Vec::new(),
            open: Vec::new(),
            state: Value::Null,
            plans: Snapshots::default(),
        };
        driver.create(count, "r1");
        for machine in &mut driver.machines {
            machine["condition"] = "Ready".into();
            machine["everAvailable"] = true.into();
        }
        driver.now = start.plus(Span::hours(1));
        driver
    }

    fn create(&mut self, many: u64, revision: &str) {
        for _ in 0..many {
            self.born += 1;
            let now = self.now.to_string();
            self.machines.push(json!({
                "id": self.born.to_string(), "vmId": format!("vm-{}", self.born), "createdAt": now,
                "revision": revision, "condition": "Provisioning", "since": now,
            }));
        }
    }

    /// What happens in the cloud by itself.
    fn world(&mut self) {
        let now = self.now;
        for machine in &mut self.machines {
            if machine["condition"] == "Provisioning" && now.since(time(&machine["since"])) >= BOOT
            {
                machine["condition"] = "Ready".into();
                machine["since"] = now.to_string().into();
            }
            if machine["condition"] == "Ready"
                && now.since(time(&machine["since"])) >= Span::minutes(1)
            {
                machine["everAvailable"] = true.into();
            }
        }
        // What had ended was shown once already.
        self.open.retain(|entry| entry["outcome"].is_null());
        for entry in &mut self.open {
            let is_raise = entry["do"] == "raise";
            if is_raise || now.since(time(&entry["since"])) >= DELETE {
                entry["outcome"] = json!({"ok": true, "at": now.to_string()});
                let gone = entry["machines"].clone();
                let is_gone = |id: &Value| gone.as_array().is_some_and(|gone| gone.contains(id));
                self.machines.retain(|machine| !is_gone(&machine["id"]));
            }
        }
    }

    fn ask(&mut self) -> (String, Value) {
        let snapshot = json!({
            "apiVersion": "poolkeeper/v1", "kind": "Snapshot", "now": self.now.to_string(), "pool": self.pool,
            "scaleSet": {"revision": "r2", "capacity": self.capacity, "readAt": self.now.to_string()},
            "machines": self.machines, "open": self.open, "state": self.state,
        });
        let input = self.plans.read(snapshot.to_string().as_bytes()).unwrap();
        let planned = poolkeeper::plan::plan(&input.input()).unwrap();
        let text = encode(&input.input(), &planned);
        let value = serde_json::from_str(&text).unwrap();
        (text, value)
    }

    fn carry_out(&mut self, plan: &Value) {
        let now = self.now.to_string();
        for (n, action) in plan["actions"].as_array().unwrap().iter().enumerate() {
            let id = format!("e{now}-{n}");
            let mut entry = json!({"id": id, "do": action["do"], "since": now, "accepted": now, "outcome": null});
            match action["do"].as_str().unwrap() {
                "raise" => {
                    let to = action["to"].as_u64().unwrap();
                    self.create(to - self.capacity, "r2");
                    (entry["from"], entry["to"]) = (action["from"].clone(), action["to"].clone());
                    self.capacity = to;
                }
                "delete" => {
                    let ids = action["machines"].as_array().unwrap();
                    self.capacity -= ids.len() as u64;
                    for machine in self.machines.iter_mut().filter(|m| ids.contains(&m["id"])) {
                        machine["condition"] = "Deleting".into();
                        machine["since"] = now.clone().into();
                    }
                    entry["machines"] = action["machines"].clone();
                    entry["vmIds"] = action["expect"]["vmIds"].clone();
                    entry["classes"] = action["classes"].clone();
                }
                other => panic!("{other} was not expected here"),
            }
            self.open.push(entry);
        }
        for machine in &mut self.machines {
            let said = plan["machines"]
                .as_array()
                .unwrap()
                .iter()
                .find(|said| said["id"] == machine["id"]);
            if let Some(said) = said {
                machine["lifecycle"] = said["lifecycle"].clone();
            }
        }
        self.state = plan["state"].clone();
    }

    fn available(&self) -> usize {
        let is_available = |machine: &&Value| {
            machine["condition"] == "Ready"
                && self.now.since(time(&machine["since"])) >= Span::minutes(1)
        };
        self.machines.iter().filter(is_available).count()
    }
}

#[test]
fn a_rollout_is_carried_out_by_another_program() {
    let mut pool: Value = serde_json::from_str(&json_pool()).unwrap();
    pool["replicas"]["count"] = 3.into();
    let mut driver = Driver::new(pool, 3);
    let mut story = Vec::new();
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(turns < 300, "{story:#?}");
        driver.now = driver.now.plus(TURN);
        driver.world();
        let (_, plan) = driver.ask();
        for action in plan["actions"].as_array().unwrap() {
            story.push(format!("{} {} {}", action["do"], action["machines"], action["message"]));
        }
        driver.carry_out(&plan);
        assert!(driver.available() >= 3, "turn {turns}: {story:#?}");
        assert!(driver.machines.len() <= 4, "turn {turns}: {story:#?}");
        let has_holds = !plan["holds"].as_array().unwrap().is_empty();
        let acts = !plan["actions"].as_array().unwrap().is_empty();
        match plan["rollout"]["phase"].as_str().unwrap() {
            "Succeeded" if driver.machines.len() == 3 => break,
            "Succeeded" => {}
            _ => assert!(acts || has_holds, "turn {turns}: silent in {plan}"),
        }
    }
    assert!(driver.machines.iter().all(|machine| machine["revision"] == "r2"), "{story:#?}");
    assert_eq!(driver.capacity, 3);
    assert_eq!(story.len(), 6, "{story:#?}");

    // Nothing changes any more: the same state, and nothing to do, however often it is asked.
    driver.open.clear();
    driver.now = driver.now.plus(Span::minutes(30));
    let (_, settled) = driver.ask();
    driver.carry_out(&settled);
    for _ in 0..5 {
        driver.now = driver.now.plus(Span::minutes(1));
        let (text, plan) = driver.ask();
        assert_eq!((&plan["actions"], &plan["state"]), (&json!([]), &settled["state"]));
        assert_eq!(driver.ask().0, text);
    }
}
