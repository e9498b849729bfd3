//! Nothing that people, logs or errors see holds a token, an operation's address, or what stands in a body.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolkeeper::act::ChangeCloud;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::kit::{Ledger, Purse, SECRET, Sheet, kit_of, set_id, target};
use crate::server::{Heard, Says};

/// Every event at every level, as text.
#[derive(Debug, Clone, Default)]
struct Everything(Arc<Mutex<String>>);

struct Words<'a>(&'a mut String);

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Words(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Words(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Words(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const SIGNATURE: &str = "c2lnbmF0dXJl";

/// Every way to go wrong, one after the other.
fn wrongs(heard: &Heard) -> Vec<Says> {
    let host = heard.header("host").unwrap();
    let address = format!("http://{host}/operations/o?s={SIGNATURE}");
    let signed =
        |says: Says| says.with("Azure-AsyncOperation", &address).with("Location", &address);
    vec![
        signed(Says::status(202, "")),
        signed(Says::fault(429, "TooManyRequests", "m")),
        signed(Says::fault(500, "InternalServerError", "m")),
        signed(Says::status(401, "")),
        signed(Says::status(302, "")),
        Says::status(200, &format!("<html>{SIGNATURE}")),
        Says::Half("{".into()),
        Says::Stall("{".into()),
        Says::Nothing,
    ]
}

#[tokio::test]
async fn nothing_leaks() {
    let log = Everything::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let mut shown = String::new();
    for n in 0..9 {
        // A place in the code that another test came by first may have been told that nobody listens.
        tracing::callsite::rebuild_interest_cache();
        let patience = Duration::from_millis(60);
        let kit = kit_of(Purse::default(), Ledger::default(), patience, move |heard| {
            wrongs(heard).remove(n)
        });
        let kit = kit.await;
        let sheet = Sheet::new();
        let listed = kit.look().await;
        let _ = write!(shown, "{listed:?} {} ", listed.as_ref().unwrap_err());
        let answer = kit.azure.delete(&sheet.order(), &[target("1")], false).await;
        let _ = write!(shown, "{answer:?} ");
        let address = format!("async {}/operations/o?s={SIGNATURE}", kit.server.base);
        let operation = poolkeeper::model::journal::Operation::new(address);
        let _ = write!(shown, "{:?} {operation:?} ", kit.azure.poll(&set_id(), &operation).await);
        let _ = write!(shown, "{:?} {:?} ", kit.azure, kit.purse);
    }
    let log = log.0.lock().unwrap().clone();
    assert!(
        log.contains("ARM answered") && log.contains("ARM refused"),
        "the log was heard: {log}"
    );
    for secret in [SECRET, SIGNATURE] {
        for (what, text) in [("the log", &log), ("values", &shown)] {
            let at = text.find(secret);
            let near = at.map(|at| text[at.saturating_sub(300)..at].to_owned());
            assert!(at.is_none(), "{what} shows {secret} after: {near:?}");
        }
    }
}
