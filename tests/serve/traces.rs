//! Traces, as a collector on the loopback gets them.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::kit::*;
use super::program::Program;

struct Collector {
    address: String,
    taken: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    async fn begin() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let keeps = Arc::clone(&keeps);
                tokio::spawn(async move {
                    loop {
                        let mut head = Vec::new();
                        while !head.ends_with(b"\r\n\r\n") {
                            let Ok(byte) = stream.read_u8().await else { return };
                            head.push(byte);
                        }
                        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
                        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
                        assert!(head.contains("content-type: application/json"), "{head}");
                        let (_, length) = head.split_once("content-length: ").unwrap();
                        let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
                        stream.read_exact(&mut body).await.unwrap();
                        keeps.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                        if stream.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, taken }
    }

    fn spans(&self) -> Vec<Value> {
        let taken = self.taken.lock().unwrap();
        let each = |batch: &Value| {
            let resource = &batch["resourceSpans"][0];
            assert_eq!(attribute(&resource["resource"], "service.name"), "poolkeeper");
            resource["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        };
        taken.iter().flat_map(each).collect()
    }
}

fn attribute<'v>(of: &'v Value, key: &str) -> &'v Value {
    let all = of["attributes"].as_array().unwrap();
    let found = all.iter().find(|one| one["key"] == key);
    found.map_or(&Value::Null, |one| one["value"].as_object().unwrap().values().next().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_and_its_calls_are_traced() {
    let house = House::new("traced", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 4, "1.0.0"));
    let collector = Collector::begin().await;
    let otlp = format!("--set=telemetry.otlp={}", collector.address);
    // What the log tells changes nothing here.
    let mut program = Program::start(&house, &["--store=memory", "--log=info", &otlp]);
    program.until("sent");
    program.signal("-TERM");
    let (code, log) = program.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("\"arm\""), "spans of calls are for traces alone: {log}");
    let spans = collector.spans();
    let is = |span: &&Value, name: &str| span["name"] == name;
    let turns: Vec<&Value> = spans.iter().filter(|span| is(span, "turn")).collect();
    assert!(!turns.is_empty() && turns.iter().all(|turn| attribute(turn, "pool") == "web"));
    let calls: Vec<&Value> = spans.iter().filter(|span| is(span, "arm")).collect();
    assert!(calls.iter().any(|call| attribute(call, "status") == "200"), "{calls:?}");
    for call in &calls {
        let turn = turns.iter().find(|turn| turn["spanId"] == call["parentSpanId"]);
        let turn = turn.unwrap_or_else(|| panic!("whose is {call}?"));
        assert_eq!(turn["traceId"], call["traceId"]);
        let time = |of: &Value, key: &str| of[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time(turn, "startTimeUnixNano") <= time(call, "startTimeUnixNano"));
        assert!(time(call, "endTimeUnixNano") <= time(turn, "endTimeUnixNano"));
    }
    let told = turns.iter().flat_map(|turn| turn["events"].as_array().unwrap());
    assert!(told.clone().any(|event| event["name"] == "sent"), "{turns:?}");
    let text = collector.taken.lock().unwrap().iter().map(Value::to_string).collect::<String>();
    for secret in [SECRET, "Bearer", "eyJ", "access_token", "asyncOperation", "?t="] {
        assert!(!text.contains(secret), "{secret} is told: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_disturbs_nobody() {
    let house = House::new("untraced", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 4, "1.0.0"));
    let away = "--set=telemetry.otlp=http://127.0.0.1:1";
    let mut program = Program::start(&house, &["--store=memory", away]);
    program.until("sent");
    program.signal("-TERM");
    let (code, log) = program.end();
    let said = "traces are lost while their collector is away";
    assert_eq!((code, log.matches(said).count()), (Some(0), 1), "{log}");
}
