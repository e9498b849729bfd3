//! What a person sees who asks a Poolkeeper that serves: `status`, `plan` and `explain`, each as it stands on the screen.

use std::sync::Arc;

use poolkeeper::api::http::{PoolView, TurnFailure};
use poolkeeper::memory::TurnStore;
use poolkeeper::model::command::CommandName;
use poolkeeper::model::hold::{Hold, HoldReason, INVARIANT, Remedy};
use poolkeeper::model::ids::{InstanceId, PoolName, Revision};
use poolkeeper::model::plan::RolloutPhase;
use poolkeeper::model::time::Span;
use serde_json::Value;

use crate::http::golden::golden;
use crate::http::kit::{Kit, NOW, document, policy};
use crate::http::program::{Ended, command, finish};
use crate::http::terminal::{Served, run, serve};

/// A page as golden, with what was typed.
fn kept(name: &str, args: &[&str], ended: &Ended) {
    let Ended { out, err, code } = ended;
    let err = if err.is_empty() { String::new() } else { format!("--- standard error\n{err}") };
    let code = code.unwrap_or(-1);
    let typed = args.join(" ");
    golden(
        &format!("http/{name}.txt"),
        &format!("$ poolkeeper {typed}\n{out}{err}--- exit {code}\n"),
    );
}

impl Served {
    pub async fn page(&self, name: &str, args: &[&str]) -> Ended {
        let ended = self.run(args).await;
        kept(name, args, &ended);
        ended
    }

    /// As a small terminal shows it.
    async fn narrow(&self, args: &[&str]) -> String {
        let mut command = command(args);
        command.env("POOLKEEPER_SERVER", &self.server).env("COLUMNS", "80");
        let ended = tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.out
    }

    fn change(&self, pool: &str, change: impl FnOnce(&mut PoolView)) {
        change(self.kit.backend.lock().pools.get_mut(&PoolName::new(pool)).unwrap());
    }

    /// The last turn of web with these holds.
    fn hold(&self, holds: Vec<Hold>) {
        let mut known = self.kit.backend.lock();
        let context = known.contexts.get_mut(&PoolName::new("web")).unwrap();
        let report = Arc::make_mut(&mut context.report);
        report.planned.as_mut().unwrap().report.holds = holds;
        let report = Arc::clone(&context.report);
        known.pools.get_mut(&PoolName::new("web")).unwrap().report = Some(report);
    }
}

fn release(machine: &str) -> Option<Remedy> {
    let machine = Some(InstanceId::new(machine));
    Some(Remedy::Command { verb: CommandName::Release, machine, now: false })
}

fn hold(reason: HoldReason, say: &str, verb: Option<CommandName>) -> Hold {
    let (numbers, blockers) = (vec![("outdated", 5)], Vec::new());
    let recheck = NOW.plus(Span::minutes(15));
    Hold {
        reason,
        message: say.into(),
        numbers,
        blockers,
        next_check_at: recheck,
        remedy: verb.map(Remedy::from),
    }
}

#[tokio::test]
async fn a_pool_in_the_middle_of_a_rollout() {
    let served = serve(Kit::open().await).await;
    served.page("status", &["status"]).await;
    let narrow = served.narrow(&["status"]).await;
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert!(
        narrow.starts_with("POOL   HEALTH          AVAIL   OLD  ROLLOUT      ETA      MESSAGE"),
        "{narrow}"
    );
    served.page("status-web", &["status", "web"]).await;
    served.page("status-batch", &["status", "batch"]).await;
    served.page("plan-web", &["plan", "web"]).await;
    served.page("explain-web", &["explain", "web"]).await;
    served.page("explain-web-2", &["explain", "web", "VM-2"]).await;
}

#[tokio::test]
async fn what_waits_for_a_person_says_what_to_type() {
    let served = serve(Kit::open().await).await;
    let paused = hold(HoldReason::Paused, "paused by kim: a look first", Some(CommandName::Resume));
    let baking = hold(HoldReason::Baking, "gates are watched", Some(CommandName::Promote));
    let mut kept =
        hold(HoldReason::Kept, "1 machine is to leave but held", Some(CommandName::Release));
    kept.blockers = vec!["3".into()];
    kept.remedy = release("3");
    served.hold(vec![baking, kept, paused]);
    served.page("status-waits", &["status", "web"]).await;
    let standing = served.run(&["status", "web", "-o", "json"]).await.json();
    assert_eq!(
        (&standing["health"], &standing["problems"]),
        (&"actionRequired".into(), &Value::from(Vec::<Value>::new()))
    );
    // A machine that a person holds is a state, and no task.
    let tasks = standing["actionRequired"].as_array().unwrap();
    assert!(tasks.len() == 1 && tasks[0].as_str().unwrap().starts_with("paused: "), "{standing}");
    let mut surge = hold(HoldReason::SurgeBooting, "1 machine is booting", None);
    surge.blockers = vec!["4".into()];
    let mut held =
        hold(HoldReason::Kept, "1 machine is to leave but held", Some(CommandName::Release));
    held.blockers = vec!["3".into()];
    held.remedy = release("3");
    served.hold(vec![held.clone(), surge]);
    let calm = served.run(&["status", "web", "-o", "json"]).await.json();
    assert_eq!(
        (&calm["health"], &calm["actionRequired"]),
        (&"progressing".into(), &Value::from(Vec::<Value>::new())),
        "{calm}"
    );
    served.hold(vec![
        hold(
            HoldReason::Drift,
            "the capacity is above what lives",
            Some(CommandName::ResetCapacity),
        ),
        hold(HoldReason::Paused, "paused by kim: a look first", Some(CommandName::Resume)),
        held,
    ]);
    served.change("web", |pool| {
        let mut report = (**pool.report.as_ref().unwrap()).clone();
        report.planned.as_mut().unwrap().report.numbers.failed = 1;
        pool.report = Some(Arc::new(report));
    });
    let table = served.run(&["status"]).await;
    let line = table.out.lines().find(|line| line.starts_with("web")).unwrap();
    assert!(line.contains("degraded") && line.contains("paused: paused by kim"), "{line}");
}

#[tokio::test]
async fn what_is_refused_or_ignored_is_wrong_and_for_you_in_every_view() {
    let served = serve(Kit::open().await).await;
    let no = "a write of the model was refused (InvalidImage)";
    let passing = hold(HoldReason::Refused, "a raise was refused once", None);
    served.hold(vec![passing]);
    let calm = served.run(&["status", "web", "-o", "json"]).await.json();
    assert_eq!((&calm["health"], &calm["problems"][0]), (&"progressing".into(), &Value::Null));
    served.hold(vec![hold(HoldReason::Refused, no, Some(CommandName::Retry))]);
    let refused = served.run(&["status", "web", "-o", "json"]).await.json();
    let said = |list: &Value| list[0].as_str().unwrap_or_default().contains(no);
    assert!(said(&refused["problems"]) && said(&refused["actionRequired"]), "{refused}");
    assert_eq!(refused["health"], "degraded");
    let table = served.run(&["status"]).await.out;
    assert!(table.lines().any(|line| line.contains("degraded") && line.contains(no)), "{table}");
    assert_eq!(served.run(&["doctor"]).await.code, Some(7));
    served.hold(Vec::new());
    served.change("batch", |pool| pool.ignored = Some("5:25: replicas.cuont: no such key".into()));
    let ignored = served.page("status-ignored", &["status", "batch"]).await.out;
    for part in ["pools/batch.yaml", "5:25: replicas.cuont", "poolkeeper validate"] {
        assert!(ignored.contains(part), "{part}: {ignored}");
    }
    let table = served.run(&["status"]).await.out;
    let line = table.lines().find(|line| line.starts_with("batch")).unwrap();
    assert!(line.contains("degraded") && line.contains("pools/batch.yaml"), "{line}");
    let doctor = served.run(&["doctor"]).await;
    assert!(doctor.code == Some(7) && doctor.out.contains("batch"), "{doctor:?}");
}

#[tokio::test]
async fn the_revisions_of_a_pool_are_listed_and_gone_back_to_by_name() {
    let served = serve(Kit::open().await).await;
    let listed = served.page("revisions-web", &["history", "web", "--revisions"]).await;
    assert_eq!(listed.code, Some(0));
    let list = served.run(&["history", "web", "--revisions", "-o", "json"]).await.json();
    assert_eq!(
        (&list["items"][0]["name"], &list["items"][0]["revision"]),
        (&"2.0.0".into(), &"r2".into())
    );
    let rollout = served.kit.get("/api/v1/pools/web/rollout").await.json();
    assert_eq!((&rollout["to"], &rollout["toName"]), (&"r2".into(), &"2.0.0".into()));
    let back = ["rollback", "web", "--to", "1.0.0", "--why", "latency", "--no-wait", "-o", "json"];
    let id = served.run(&back).await.json()["id"].as_str().unwrap().to_owned();
    let loaded = served.kit.store.load(&PoolName::new("web")).await.unwrap();
    let ask = loaded.inbox.commands.iter().find(|ask| ask.id.as_str() == id).unwrap();
    assert_eq!(ask.about.revision, Some(Revision::new("1.0.0")));
    for args in
        [&["history", "web", "--revisions", "--follow"][..], &["history", "wbe", "--revisions"]]
    {
        assert_ne!(served.run(args).await.code, Some(0), "{args:?}");
    }
}

#[tokio::test]
async fn a_rollout_that_ended_moves_nothing() {
    let served = serve(Kit::open().await).await;
    for phase in [
        RolloutPhase::Succeeded,
        RolloutPhase::SucceededWithExceptions,
        RolloutPhase::Aborted,
        RolloutPhase::RolledBack,
    ] {
        served.hold(Vec::new());
        served.change("web", |pool| {
            let mut report = (**pool.report.as_ref().unwrap()).clone();
            let planned = report.planned.as_mut().unwrap();
            (planned.report.numbers.requested, planned.report.numbers.not_yet_available) = (0, 0);
            planned.report.rollout.phase = phase;
            pool.report = Some(Arc::new(report));
        });
        let items = served.run(&["status", "-o", "json"]).await.json();
        let web = items["items"].as_array().unwrap().iter().find(|one| one["pool"] == "web");
        assert_eq!(web.unwrap()["health"], "healthy", "{}: {items}", phase.name());
    }
}

#[tokio::test]
async fn what_is_wrong_comes_first() {
    let served = serve(Kit::open().await).await;
    for n in 0..50 {
        let name = format!("calm-{n:02}");
        let mut report =
            (*served.kit.backend.lock().pools[&PoolName::new("web")].report.clone().unwrap())
                .clone();
        let planned = report.planned.as_mut().unwrap();
        planned.report.holds.clear();
        planned.report.numbers.requested = 0;
        planned.report.numbers.not_yet_available = 0;
        planned.report.rollout.phase = RolloutPhase::None;
        planned.report.estimate.finishes = None;
        let policy = Arc::new(policy(&document(&name, 7)));
        let origin = poolkeeper::api::http::PoolOrigin::Api;
        let pool = PoolView {
            policy,
            origin,
            report: Some(Arc::new(report)),
            trouble: None,
            ignored: None,
        };
        served.kit.backend.lock().pools.insert(PoolName::new(name), pool);
    }
    served.change("calm-07", |pool| {
        let mut report = (**pool.report.as_ref().unwrap()).clone();
        let mut law = hold(
            HoldReason::InvariantViolated,
            "the plan would violate invariant 3: too few are left",
            None,
        );
        law.numbers = vec![(INVARIANT, 3)];
        report.frozen = Some(law);
        pool.report = Some(Arc::new(report));
    });
    served.change("calm-09", |pool| {
        let (since, retry) = (NOW.minus(Span::minutes(4)), Some(NOW.plus(Span::seconds(30))));
        pool.trouble =
            Some(TurnFailure { since, turns: 1, say: "the cloud answers 500".into(), retry });
    });
    served.kit.backend.lock().ready = false;
    let ended = served.page("status-worst", &["status"]).await;
    assert_eq!(ended.code, Some(3), "a law forbids something");
    let all = served.run(&["status", "--all"]).await;
    assert_eq!(all.out.lines().count(), 1 + 1 + 52 + 1, "{}", all.out);
    served.page("status-frozen", &["status", "calm-07"]).await;
    served.page("status-trouble", &["status", "calm-09"]).await;
    let lines = served.run(&["status", "-o", "ndjson"]).await;
    let first: Value = serde_json::from_str(lines.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["pool"], &first["health"]), (&"calm-07".into(), &"frozen".into()));
    let list = served.run(&["status", "-o", "json"]).await.json();
    assert_eq!((&list["ready"], list["items"].as_array().unwrap().len()), (&false.into(), 52));
}

#[tokio::test]
async fn what_is_not_there_is_told_with_what_is() {
    let served = serve(Kit::open().await).await;
    for (name, args, code) in [
        ("unknown-pool", &["status", "wbe"][..], 4),
        ("unknown-history", &["history", "bacth"], 4),
        ("unknown-machine", &["explain", "web", "33"], 4),
        ("no-plan-yet", &["plan", "batch"], 5),
    ] {
        assert_eq!(served.page(name, args).await.code, Some(code), "{args:?}");
    }
    for args in
        [&["plan", "wbe"][..], &["explain", "wbe"], &["get", "wbe"], &["explain", "wbe", "1"]]
    {
        let ended = served.run(args).await;
        assert!(ended.code == Some(4) && ended.err.contains("nearest: web"), "{ended:?}");
    }
    let nobody = "http://127.0.0.1:1";
    for args in [&["status"][..], &["status", "web"], &["plan", "web"], &["explain", "web"]] {
        let ended = run(nobody, None, args).await;
        assert!(ended.code == Some(5) && ended.err.contains("poolkeeper serve"), "{ended:?}");
    }
}

#[tokio::test]
async fn who_may_not_look_is_told_how_to_show_a_token() {
    let served = serve(Kit::guarded().await).await;
    for args in [&["status"][..], &["status", "web"], &["plan", "web"], &["explain", "web", "1"]] {
        let ended = run(&served.server, None, args).await;
        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(ended.err.contains("POOLKEEPER_TOKEN"), "{ended:?}");
        let wrong = run(&served.server, Some("pk_wrong"), args).await;
        assert!(wrong.code == Some(6) && wrong.err.contains("not known"), "{wrong:?}");
        let right = run(&served.server, Some(&served.kit.tokens["viewer"]), args).await;
        assert_eq!(right.code, Some(0), "{right:?}");
    }
}

#[tokio::test]
async fn the_doctor_looks_at_who_serves() {
    let served = serve(Kit::open().await).await;
    served.page("doctor", &["doctor"]).await;
    served.kit.backend.lock().ready = false;
    served.change("web", |pool| {
        let trouble =
            TurnFailure { since: NOW, turns: 1, say: "the cloud answers 500".into(), retry: None };
        pool.trouble = Some(trouble);
    });
    assert_eq!(served.page("doctor-ill", &["doctor"]).await.code, Some(7));
    let json = served.run(&["doctor", "-o", "json"]).await.json();
    assert_eq!((&json["findings"], &json["cloud"]), (&2.into(), &Value::from(Vec::<Value>::new())));
    let nobody = run("http://127.0.0.1:1", None, &["doctor"]).await;
    assert!(nobody.code == Some(7) && nobody.out.contains("poolkeeper serve"), "{nobody:?}");
    let guarded = serve(Kit::guarded().await).await;
    let refused = run(&guarded.server, None, &["doctor"]).await;
    assert!(refused.code == Some(7) && refused.out.contains("POOLKEEPER_TOKEN"), "{refused:?}");
}

#[tokio::test]
async fn json_is_what_the_server_answered() {
    let served = serve(Kit::open().await).await;
    for (args, path) in [
        (&["plan", "web"][..], "/api/v1/pools/web/plan"),
        (&["explain", "web"], "/api/v1/pools/web/explain"),
        (&["explain", "web", "vm-3"], "/api/v1/pools/web/machines/3/explain"),
    ] {
        let answered = served.kit.get(path).await.text;
        let ended = served.run(&[args, &["-o", "json"]].concat()).await;
        assert_eq!(ended.out.trim_end(), answered, "{args:?}");
    }
}
