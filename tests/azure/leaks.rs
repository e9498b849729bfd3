//! Nothing that people, logs or errors see holds a token, an operation's address, or what stands in a body.

use std::fmt::Write as _;
use std::time::Duration;

use poolkeeper::act::ChangeCloud;
use serde_json::json;

use crate::azure::kit::{
    Changes, Purse, SECRET, Sheet, kit, kit_of, machine, set_id, target, usual,
};
use crate::azure::log::Log;
use crate::azure::server::{Heard, Says};

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
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let mut shown = String::new();
    for n in 0..9 {
        // A place in the code that another test came by first may have been told that nobody listens.
        tracing::callsite::rebuild_interest_cache();
        let patience = Duration::from_millis(60);
        let kit = kit_of(Purse::default(), patience, move |heard| wrongs(heard).remove(n));
        let kit = kit.await;
        let sheet = Sheet::new();
        let listed = kit.look().await;
        let _ = write!(shown, "{listed:?} {} ", listed.as_ref().unwrap_err());
        let answer = kit.azure.delete(&sheet.order(), &[target("1")], false).await;
        let _ = write!(shown, "{answer:?} ");
        let address = format!("async {}/operations/o?s={SIGNATURE}", kit.server.base);
        let operation = poolkeeper::model::journal::OperationUrl::new(address);
        let _ = write!(shown, "{:?} {operation:?} ", kit.azure.poll(&set_id(), &operation).await);
        let _ = write!(shown, "{:?} {:?} ", kit.azure, kit.purse);
    }
    let log = log.text();
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

/// The error of a reader quotes what it met, and ARM may write what it likes.
#[tokio::test]
async fn what_is_said_of_a_bad_answer_is_short() {
    let long = "9".repeat(6_000);
    for (is_list, status, body) in [
        (false, 200, json!({"sku": {"capacity": long}, "properties": {}})),
        (false, 200, json!({"sku": {"capacity": 1}, "properties": {"overprovision": long}})),
        (false, 409, json!({"error": {"code": long, "message": long, "target": long}})),
        (true, 200, json!({"value": long})),
        (true, 200, json!({"value": [{"name": long}, {"id": long, "zones": long}, machine(0)]})),
    ] {
        let says = Says::status(status, &body.to_string()).with("x-ms-request-id", &long);
        let kit = kit(move |heard| match heard.is("GET", "/virtualMachines?") == is_list {
            true => says.clone(),
            false => usual(heard),
        });
        let texts: Vec<Box<str>> = match kit.await.look().await {
            Ok(seen) => seen.gaps.into_iter().flat_map(|gap| [gap.what, gap.why]).collect(),
            Err(why) => vec![why.to_string().into(), why.code.unwrap_or_default()],
        };
        assert!(texts.len() >= 2 && texts.iter().all(|text| text.len() < 1_000), "{texts:?}");
    }
}
