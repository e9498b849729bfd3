//! The log of a rollout, as other people's tools read it.

use std::io::{Result, Write};
use std::sync::{Arc, Mutex};

use poolkeeper::telemetry::log::{Log, LogDetail, LogFormat};
use serde_json::Value;

use super::kit::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Whatever is logged by this process, the daemons of other tests among it.
fn listen() -> Kept {
    let kept = Kept::default();
    let to = kept.clone();
    let log = Log { format: LogFormat::Json, detail: LogDetail::Info };
    tracing::subscriber::set_global_default(log.subscriber(move || to.clone(), None)).unwrap();
    kept
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_line_of_a_turn_names_the_pool_and_what_else_it_is_about() {
    let kept = listen();
    let house = House::new("logs", &[("told", 3)]).await;
    house.write("told.yaml", &pool("told", 3, "2.0.0"));
    let daemon = house.begin().await;
    daemon.until("all are new", |_| house.is_on("told", 3, "2.0.0")).await;
    daemon.until("it is told", |d| d.sentence("told").contains("Succeeded")).await;
    daemon.end().await;
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    // Somebody else may be writing a line.
    let whole = text.lines().map_while(|line| serde_json::from_str(line).ok());
    let lines: Vec<Value> = whole.collect();
    let of_turns: Vec<&Value> = lines
        .iter()
        .filter(|line| line["target"].as_str().unwrap().ends_with("daemon::run::turn_log"))
        .collect();
    for line in &of_turns {
        assert!(line["span"]["pool"].is_string(), "{line}");
    }
    let of_turns: Vec<&Value> =
        of_turns.into_iter().filter(|line| line["span"]["pool"] == "told").collect();
    assert!(of_turns.len() > 20, "{of_turns:?}");
    let about = |what: &str| {
        let named = |line: &&&Value| line["message"] == what || line["verb"] == what;
        of_turns.iter().filter(named).copied().collect::<Vec<_>>()
    };
    let begun = of_turns.iter().position(|line| line["message"] == "rollout: Progressing").unwrap();
    let ended = of_turns.iter().position(|line| line["message"] == "rollout: Succeeded").unwrap();
    for line in &of_turns[begun..ended] {
        assert!(line["span"]["rollout"].is_string(), "{line}");
    }
    let sent = about("sent");
    assert!(sent.len() >= 6 && about("done").len() >= 6, "{of_turns:?}");
    for line in sent.iter().chain(&about("done")) {
        assert!(line["entry"].is_string(), "{line}");
    }
    let deletes = about("delete");
    assert!(deletes.len() >= 6, "three are decided, and sent: {of_turns:?}");
    for line in deletes {
        assert!(line["machine"].is_string(), "{line}");
    }
    let done = about("done");
    assert!(done.iter().filter(|line| line["machine"].is_string()).count() >= 3, "{done:?}");
}
