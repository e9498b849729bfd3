//! Real connections through a load balancer to machines that come, go and are taken out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use poolkeeper::emulator::{Emulator, Seed};
use poolkeeper::world::{ExternalEvent, SetId, Which};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::*;
use crate::support::http::{Ask, Reply, get};

/// Two machines behind one front end that listens.
#[derive(Debug)]
struct Behind {
    emulator: Emulator,
    clock: ManualClock,
    address: SocketAddr,
    set: SetId,
}

async fn behind(switches: Value) -> Behind {
    let seed = json!({ "scaleSets": [{ "name": "web", "capacity": 2, "pools": ["front/web"] }],
        "loadBalancers": [{ "name": "front", "pools": ["web"], "listen": { "web": "127.0.0.1:0" } }],
        "settings": { "switches": switches } });
    let seed: Seed = serde_json::from_value(seed).unwrap();
    let clock = ManualClock::at(START);
    let emulator = Emulator::new(&seed, 1.0, Arc::new(clock.clone())).unwrap();
    let fronts = emulator.bind_fronts().await.unwrap();
    let address = fronts.addresses()[0];
    tokio::spawn(fronts.serve());
    let set = emulator.with_world(|world| world.sets().map(|(set, _)| set).next().unwrap());
    let behind = Behind { emulator, clock, address, set };
    // The machines listen from the first tick on.
    behind.until(|counts| counts["served"].as_u64() >= Some(2)).await;
    behind
}

impl Behind {
    fn rule(&self) -> Value {
        self.emulator.state()["loadBalancers"][0]["rules"][0].clone()
    }

    fn counts(&self) -> Value {
        self.rule()["requests"].clone()
    }

    /// Asks again until the counts are as wanted.
    async fn until(&self, wanted: impl Fn(&Value) -> bool) {
        for _ in 0..500 {
            get(self.address, "/", None).await;
            if wanted(&self.counts()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{}", self.rule());
    }

    /// Waits for ticks only.
    async fn settled(&self, count: &str, wanted: u64) {
        for _ in 0..500 {
            if self.counts()[count] == json!(wanted) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{count}: {}", self.rule());
    }

    /// A request that its machine holds, and the machine.
    async fn hold(&self) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let ask = "GET / HTTP/1.1\r\nhost: h\r\n\r\nGET /hold/600000 HTTP/1.1\r\nhost: h\r\n\r\n";
        stream.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = vec![0; 1024];
        let n = stream.read(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer[..n]).into_owned();
        (stream, text.trim_end().rsplit('\n').next().unwrap().to_owned())
    }

    /// One held request on each machine, that of machine 0 first.
    async fn hold_both(&self) -> [TcpStream; 2] {
        let (one, two) = (self.hold().await, self.hold().await);
        assert_ne!(one.1, two.1, "connections go to the machines in turn");
        if one.1 == "web/0" { [one.0, two.0] } else { [two.0, one.0] }
    }

    async fn pass(&self, seconds: i64) {
        self.clock.pass(Span::seconds(seconds));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    async fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        let target = format!("{path}?{VERSION}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let ask = Ask::new(method, &target).header("host", "localhost:1").text(&body);
        let request = ask.header("authorization", "Bearer x").request();
        Reply::read(self.emulator.answer(request, false).await).await.expect("an answer")
    }

    async fn set_admin(&self, instance: &str, state: &str) {
        let path = format!(
            "{SUB}/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/front/backendAddressPools/web"
        );
        let mut pool = self.ask("GET", &path, &Value::Null).await.expect(200).json();
        let list = pool["properties"]["loadBalancerBackendAddresses"].as_array_mut().unwrap();
        for element in list {
            let id = element["properties"]["networkInterfaceIPConfiguration"]["id"].to_string();
            if id.contains(&format!("/virtualMachines/{instance}/")) {
                element["properties"]["adminState"] = json!(state);
            }
        }
        self.ask("PUT", &path, &pool).await.expect(200);
        self.pass(300).await;
    }

    async fn bodies(&self, n: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..n {
            let answer = get(self.address, "/", None).await;
            all.push(answer.trim_end().rsplit('\n').next().unwrap().to_owned());
        }
        all.sort();
        all
    }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

async fn is_cut(stream: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 64])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

async fn is_open(stream: &mut TcpStream) -> bool {
    tokio::time::timeout(Duration::from_millis(300), stream.read(&mut [0; 64])).await.is_err()
}

#[test]
fn a_delete_cuts_what_its_machine_holds() {
    run(async {
        let behind = behind(json!({})).await;
        assert_eq!(behind.bodies(4).await, ["web/0", "web/0", "web/1", "web/1"]);
        let [mut zero, mut one] = behind.hold_both().await;
        let delete = json!({ "instanceIds": ["0"] });
        behind.ask("POST", &format!("{SET}/delete"), &delete).await.expect(202);
        behind.settled("cut", 1).await;
        assert!(is_cut(&mut zero).await && is_open(&mut one).await);
        let before = behind.counts()["unanswered"].as_u64().unwrap();
        // No probe knows it yet.
        behind.bodies(4).await;
        assert_eq!(behind.counts()["unanswered"], before + 2);
        behind.pass(11).await;
        assert_eq!(behind.bodies(2).await, ["web/1", "web/1"]);
        assert_eq!(behind.counts()["unanswered"], before + 2);
        drop(one);
        behind.settled("abandoned", 1).await;
        assert_eq!(behind.counts()["cut"], 1);
    });
}

#[test]
fn a_machine_that_is_down_keeps_its_connections_and_gets_no_new_ones() {
    run(async {
        let behind = behind(json!({})).await;
        let [mut zero, one] = behind.hold_both().await;
        behind.set_admin("0", "Down").await;
        assert_eq!(behind.bodies(3).await, ["web/1", "web/1", "web/1"]);
        assert!(is_open(&mut zero).await);
        behind.set_admin("1", "Down").await;
        behind.bodies(2).await;
        assert_eq!(behind.counts()["refused"], 2);
        behind.set_admin("0", "None").await;
        assert_eq!(behind.bodies(2).await, ["web/0", "web/0"]);
        assert_eq!((&behind.counts()["cut"], &behind.counts()["reset"]), (&json!(0), &json!(0)));
        drop(one);
    });
}

#[test]
fn down_resets_connections_only_with_the_switch() {
    run(async {
        let behind = behind(json!({ "adminDownResets": true })).await;
        let [mut zero, mut one] = behind.hold_both().await;
        behind.set_admin("0", "Down").await;
        behind.settled("reset", 1).await;
        assert!(is_cut(&mut zero).await && is_open(&mut one).await);
        assert_eq!(behind.counts()["cut"], 0);
    });
}

#[test]
fn a_sick_machine_answers_503_until_its_probe_fails() {
    run(async {
        let behind = behind(json!({})).await;
        let sick = ExternalEvent::Sicken(Which::Id("1".into()), None);
        behind.emulator.with_world(|world| world.happens(behind.set, sick));
        behind.pass(0).await;
        behind.bodies(4).await;
        assert_eq!(behind.counts()["failed"], 2);
        behind.pass(11).await;
        assert_eq!(behind.bodies(2).await, ["web/0", "web/0"]);
        behind.set_admin("1", "Up").await;
        behind.bodies(4).await;
        assert_eq!(behind.counts()["failed"], 4, "Up overrides the probe");
    });
}

#[test]
fn a_front_end_listens_on_the_loopback_for_a_rule_that_exists() {
    for (rule, address, says) in [
        ("web", "0.0.0.0:0", "0.0.0.0:0 is not a loopback address"),
        ("no", "127.0.0.1:0", "there is no rule \"no\""),
    ] {
        let seed = json!({ "loadBalancers":
            [{ "name": "front", "pools": ["web"], "listen": { rule: address } }] });
        let seed: Seed = serde_json::from_value(seed).unwrap();
        let made = Emulator::by_the_clock(&seed, 1.0).unwrap_err().to_string();
        assert!(made.ends_with(says), "{made}");
    }
}
