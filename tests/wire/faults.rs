//! Bad days on the wire: each kind of trouble alone over the first half hour of an upgrade; `storm` plays them together. No
//! law is broken, nothing is deleted twice that was deleted, and once it is over the rollout ends.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::policy::Deletion;
use poolkeeper::model::time::Span;
use poolkeeper::sim::{End, Intervention, Scenario};
use poolkeeper::world::MINUTE;
use serde_json::{Value, json};

use crate::wire::kit::{
    Mishap, Passing, Played, There, Trouble, limits, play, policy, scenario, set_id, upgraded,
};

/// Trouble begins with the first request and ends then.
const LASTS: Span = Span::minutes(30);

pub fn after_the_effect() -> Value {
    json!({"cut": "after"})
}

pub fn too_often(seconds: u32) -> Value {
    let message = "The server rejected the request because too many requests have been received for this subscription.";
    json!({
        "status": 429, "retryAfter": seconds,
        "body": {"error": {"code": "OperationNotAllowed", "message": message, "details": [
            {"code": "TooManyRequests", "target": "HighCostGetVMScaleSetResource", "message": "{}"}]}},
    })
}

pub fn somebody_elses_page() -> Value {
    let body = "<html><body>Sign in to the network</body></html>";
    json!({"status": 200, "body": body, "contentType": "text/html"})
}

fn upgrade(there: &There) -> Scenario {
    let policy = policy("web", there.machines, |draft| {
        limits(draft, "2", "1");
        upgraded(draft);
    });
    let mut scenario = scenario(&policy, there, 5);
    scenario.calm_after = LASTS;
    scenario.operator = true;
    scenario
}

/// An upgrade of ten of each kind; `strikes` until the trouble is over.
fn struck(
    seed: &Value,
    strikes: impl Fn(&Passing<'_>) -> Mishap + Clone + Send + Sync + 'static,
) -> [Played; 2] {
    [There::uniform(10), There::flexible(10)].map(|there| {
        let strikes = strikes.clone();
        let trouble = Trouble::new(move |passing| match passing.after < LASTS {
            true => strikes(passing),
            false => Mishap::None,
        });
        let there = There { trouble, seed: seed.clone(), ..there };
        let played = play(&upgrade(&there), &there);
        assert_eq!(played.outcome.breaches, [], "{}", played.story(40));
        let end = End::Ended(RolloutPhase::Succeeded);
        assert_eq!(played.outcome.end, end, "{}", played.story(40));
        assert!(played.mishaps >= 3, "only {} mishaps", played.mishaps);
        let gone = played.outcome.timeline.rows.iter().filter(|row| row.gone.is_some()).count();
        assert!(gone >= 10, "{gone} machines left");
        assert!(played.outcome.lowest_available >= 9, "{}", played.outcome.lowest_available);
        assert!(played.outcome.highest_live <= 12, "{}", played.outcome.highest_live);
        played
    })
}

#[test]
fn answers_are_lost_after_the_effect() {
    let played = struck(&json!({}), |passing| match passing.writes() {
        true => Mishap::Rule(after_the_effect()),
        false => Mishap::None,
    });
    for played in played {
        // It was done each time, so it was asked once each time.
        assert_eq!(played.deleted_twice(), [] as [String; 0]);
    }
}

#[test]
fn calls_are_refused_for_their_rate() {
    struck(&json!({}), |passing| match passing.after.millis() / MINUTE % 3 {
        1 if !passing.is_token => Mishap::Rule(too_often(20)),
        _ => Mishap::None,
    });
}

/// A refused token costs one more request, and no turn.
#[test]
fn tokens_are_revoked() {
    let seed = json!({"tokenSeconds": 1_000_000});
    let played = struck(&seed, |passing| match passing.number % 10 {
        0 if !passing.is_token => Mishap::Revoked,
        _ => Mishap::None,
    });
    for played in played {
        assert_eq!(played.outcome.failed, 0, "{}", played.story(10));
        assert_eq!(played.deleted_twice(), [] as [String; 0]);
    }
}

/// They live for a minute and a half, and by the other end's clock alone.
#[test]
fn tokens_expire() {
    for there in [There::uniform(10), There::flexible(10)] {
        let there = There { seed: json!({"tokenSeconds": 90}), ..there };
        let played = play(&upgrade(&there), &there);
        assert_eq!(played.outcome.breaches, [], "{}", played.story(40));
        let end = End::Ended(RolloutPhase::Succeeded);
        assert_eq!(played.outcome.end, end, "{}", played.story(40));
        assert_eq!(played.outcome.failed, 0, "{}", played.story(10));
        assert!(played.tokens >= 5, "{} tokens", played.tokens);
    }
}

/// Where the protection of a Flexible VM cannot be read no machine leaves; once it can, the upgrade goes on and ends.
#[test]
fn the_protection_of_machines_cannot_be_read() {
    let there = There::flexible(6);
    let trouble = Trouble::new(move |passing| {
        let single = passing.path.contains("/virtualMachineScaleSets/web/virtualMachines/");
        match single && passing.after < LASTS {
            true => Mishap::Rule(json!({"status": 403, "code": "AuthorizationFailed"})),
            false => Mishap::None,
        }
    });
    let there = There { trouble, ..there };
    let played = play(&upgrade(&there), &there);
    assert_eq!(played.outcome.breaches, [], "{}", played.story(40));
    assert!(played.mishaps >= 3, "only {} mishaps", played.mishaps);
    let end = End::Ended(RolloutPhase::Succeeded);
    assert_eq!(played.outcome.end, end, "{}", played.story(40));
    let rows = &played.outcome.timeline.rows;
    let gone: Vec<i64> = rows.iter().filter_map(|row| row.gone).collect();
    assert_eq!(gone.len(), 6, "{}", played.story(40));
    let until = played.outcome.timeline.from + LASTS.millis();
    assert!(gone.iter().all(|at| *at >= until), "{}", played.story(40));
}

/// Azure lets a batch of the set pass a delete lock, so the lock holds by what we read of it alone.
fn locked(scope: &str) -> (There, Scenario) {
    let lock = json!({"scope": scope, "name": "keep", "level": "CanNotDelete"});
    let there = There { seed: json!({ "locks": [lock] }), ..There::uniform(6) };
    let mut scenario = upgrade(&there);
    scenario.operator = false;
    (there, scenario)
}

#[test]
fn a_machine_behind_a_lock_outlives_an_upgrade() {
    let (there, scenario) = locked(&format!("{}/virtualMachines/2", set_id("web")));
    let played = play(&scenario, &there);
    assert_eq!(played.outcome.breaches, [], "{}", played.story(40));
    let end = End::Ended(RolloutPhase::SucceededWithExceptions);
    assert_eq!(played.outcome.end, end, "{}", played.story(40));
    let rows = &played.outcome.timeline.rows;
    assert_eq!(rows.iter().filter(|row| row.gone.is_some()).count(), 5, "{}", played.story(40));
}

#[test]
fn a_set_behind_a_lock_keeps_its_machines_and_the_rollout_says_why() {
    let (there, scenario) = locked(set_id("web").as_str());
    let played = play(&scenario, &there);
    assert_eq!(played.outcome.breaches, [], "{}", played.story(40));
    let end = End::Waits { remedy: Intervention::Unlock, hold: "locked" };
    assert_eq!(played.outcome.end, end, "{}", played.story(40));
    assert!(played.asked(|kind| kind.starts_with("PATCH")) > 0, "the model is written");
    assert_eq!(played.asked(|kind| kind.ends_with("/delete")), 0);
    assert!(played.outcome.timeline.rows.iter().all(|row| row.gone.is_none()));
}

/// Deletes hang for half an hour and their operations end meanwhile. Where people control the maintenance of hosts Azure
/// takes no forced delete: the machines are asked for again without force, and go.
#[test]
fn a_delete_with_force_is_refused() {
    let forced = &*Box::leak(Box::new(AtomicUsize::new(0)));
    let trouble = Trouble::new(move |passing| {
        if passing.query.contains("forceDeletion") {
            forced.fetch_add(1, Relaxed);
            let code = "OperationNotAllowedOnResourceThatManagesUpdatesWithMaintenanceControl";
            return Mishap::Rule(json!({"status": 409, "code": code, "message": "no"}));
        }
        match passing.path.contains("/operations/") && passing.after < LASTS {
            true => Mishap::Rule(json!({"status": 200, "body": {"status": "Failed",
                "error": {"code": "InternalExecutionError", "message": "no"}}})),
            false => Mishap::None,
        }
    });
    let there = There { trouble, ..There::uniform(4) };
    let policy = policy("web", 4, |draft| {
        limits(draft, "1", "1");
        upgraded(draft);
        draft.deletion = Deletion { force: true, deadline: Span::minutes(5) };
    });
    let mut scenario = scenario(&policy, &there, 5);
    scenario.faults.delete_hangs = 1.0;
    scenario.calm_after = LASTS;
    scenario.operator = true;
    let played = play(&scenario, &there);
    assert_eq!(played.outcome.breaches, [], "{}", played.story(40));
    let end = End::Ended(RolloutPhase::Succeeded);
    assert_eq!(played.outcome.end, end, "{}", played.story(40));
    // Asked, asked with force, asked without.
    assert_eq!(forced.load(Relaxed), 2, "{}", played.story(40));
    assert_eq!(played.deleted(), ["0", "0", "0", "1", "1", "1", "2", "3"]);
}

#[test]
fn connections_are_cut() {
    let rules = [json!({"cut": "before"}), json!({"cut": "body"}), after_the_effect()];
    struck(&json!({}), move |passing| match (passing.number % 4, passing.number / 4 % 3) {
        (0, which) => Mishap::Rule(rules[which as usize].clone()),
        _ => Mishap::None,
    });
}

#[test]
fn bodies_come_slower_than_anybody_waits() {
    struck(&json!({}), |passing| match passing.number % 25 {
        4 if !passing.is_token => Mishap::Hasty(json!({"slowMs": 15})),
        _ => Mishap::None,
    });
}

#[test]
fn answers_are_of_the_wrong_kind() {
    struck(&json!({}), |passing| match passing.number % 6 {
        0 => Mishap::Rule(somebody_elses_page()),
        // The true answer, called something else.
        2 => Mishap::Rule(json!({"contentType": "text/plain"})),
        // Not to a write: a change that is only said to be done is a person's to find out.
        3 if !passing.writes() => {
            Mishap::Rule(json!({"status": 200, "body": "", "contentType": "application/json"}))
        }
        4 => Mishap::Rule(json!({"status": 503, "body": "upstream connect error"})),
        _ => Mishap::None,
    });
}

#[test]
fn pages_end_in_the_middle() {
    let seed = json!({"settings": {"pageSize": 4}});
    let played = struck(&seed, |passing| {
        let is_list = passing.path.ends_with("/virtualMachines");
        match passing.number % 4 {
            0 if is_list => Mishap::Rule(json!({"cut": "body"})),
            1 if is_list => Mishap::Rule(json!({"status": 500})),
            _ => Mishap::None,
        }
    });
    for played in played {
        assert_eq!(played.deleted_twice(), [] as [String; 0]);
    }
}

/// What goes over the wire is judged by what it does, not by what was meant: a program that names one machine too many, or
/// asks for one too many, is found out by the laws.
#[test]
fn other_bytes_than_were_meant_break_a_law() {
    let one_more: fn(&mut Value) =
        |body| body["instanceIds"].as_array_mut().unwrap().push(json!("9"));
    let too_large: fn(&mut Value) = |body| {
        if let Some(capacity) = body["sku"]["capacity"].as_u64() {
            body["sku"]["capacity"] = json!(capacity + 1);
        }
    };
    for (path, garble, law) in [("/delete", one_more, 3), ("/web", too_large, 4)] {
        let trouble = Trouble::new(move |passing| {
            let meant = passing.writes() && passing.path.ends_with(path);
            if meant { Mishap::Garbled(garble) } else { Mishap::None }
        });
        let there = There { trouble, ..There::uniform(10) };
        let played = play(&upgrade(&there), &there);
        assert_eq!(played.outcome.end, End::Broken, "{}", played.story(20));
        let laws: Vec<u8> = played.outcome.breaches.iter().map(|breach| breach.law).collect();
        assert!(laws.contains(&law), "{:?}", played.outcome.breaches);
        assert!(played.outcome.breaches.iter().all(|breach| !breach.before));
    }
}
