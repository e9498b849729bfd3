//! The commands that ask a Poolkeeper that serves: the program itself, against the API on a free port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use poolkeeper::api::http::HttpListener;
use poolkeeper::api::http::auth::{Role, TokenTable};
use poolkeeper::memory::{ApiStore, HistoryEvent, TurnStore};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::hold::{Hold, HoldReason, Remedy};
use poolkeeper::model::ids::{InstanceId, Key, PoolName};
use poolkeeper::model::plan::CommandVerb;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::http::kit::{Kit, NOW, document};
use crate::http::program::{Ended, command, file, finish, written};

pub struct Served {
    pub kit: Kit,
    pub server: String,
}

pub async fn serve(kit: Kit) -> Served {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let listening = HttpListener::at(any, None, kit.api.clone()).await.unwrap();
    let server = format!("http://{}", listening.address());
    tokio::spawn(listening.serve(std::future::pending()));
    Served { kit, server }
}

pub async fn run(server: &str, token: Option<&str>, args: &[&str]) -> Ended {
    let mut command = command(args);
    command.env("POOLKEEPER_SERVER", server);
    if let Some(token) = token {
        command.env("POOLKEEPER_TOKEN", token);
    }
    tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap()
}

impl Served {
    pub async fn run(&self, args: &[&str]) -> Ended {
        run(&self.server, None, args).await
    }

    async fn done(&self, args: &[&str]) -> String {
        let ended = self.run(args).await;
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended.out
    }
}

#[tokio::test]
async fn every_verb_of_a_pool_has_its_command() {
    let served = serve(Kit::open().await).await;
    for (n, verb) in CommandVerb::PLAIN.iter().enumerate() {
        let mut args = vec![verb.name(), "web", "--why", "it must", "--no-wait"];
        if *verb == CommandVerb::Scale {
            args.push("--end");
        }
        let out = served.done(&args).await;
        assert!(out.starts_with(&format!("{} web: requested; ", verb.name())), "{out}");
        let commands = served.kit.store.inbox(&PoolName::new("web")).await.unwrap().commands;
        let last = commands.last().unwrap();
        assert_eq!((commands.len(), &last.verb, &*last.why), (n + 1, verb, "it must"));
    }
}

#[tokio::test]
async fn scale_says_what_it_asks_for_and_its_code_what_came_of_it() {
    let served = serve(Kit::open().await).await;
    let scale = async |pool: &str, more: &[&str]| {
        let args = ["scale", pool, "--why", "the sale begins", "--no-wait"];
        served.run(&[&args[..], more].concat()).await
    };
    let ended = scale("web", &["--to", "12", "--for", "2h"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.starts_with("scale web: requested; "), "{ended:?}");
    let commands = served.kit.store.inbox(&PoolName::new("web")).await.unwrap().commands;
    let ask = commands.last().unwrap();
    assert_eq!((&ask.verb, ask.about.number), (&CommandVerb::Scale, Some(12)));
    assert!(ask.about.until.is_some() && ask.about.machines.is_empty());
    let same = scale("web", &["--to", "7"]).await;
    let said = "scale web: not done: the size is 7 already\n";
    assert_eq!((same.code, same.out.as_str()), (Some(11), said));
    let unknown = scale("web", &["--to", "6", "--remove", "99"]).await;
    assert_eq!(unknown.code, Some(4), "{unknown:?}");
    let file = scale("batch", &["--to", "12"]).await;
    assert_eq!(file.code, Some(2), "{file:?}");
    assert!(file.err.contains("written in pools/batch.yaml:5: 3"), "{file:?}");
    assert!(file.err.contains("poolkeeper scale batch --to 12 --for 2h"), "{file:?}");
    for wrong in [&[][..], &["--for", "2h"], &["--end", "--to", "3"], &["--to", "3", "--for", "0s"]]
    {
        assert_eq!(scale("web", wrong).await.code, Some(2), "{wrong:?}");
    }
}

#[tokio::test]
async fn every_wish_about_a_machine_has_its_command() {
    let served = serve(Kit::open().await).await;
    let marks = async || served.kit.store.inbox(&PoolName::new("web")).await.unwrap().marks;
    let why = ["--why", "odd", "--no-wait"];
    served.done(&[&["hold", "web", "3"][..], &why].concat()).await;
    assert!(marks().await[0].1.hold.is_some());
    served.done(&[&["release", "web", "3"][..], &why].concat()).await;
    let out = served.done(&[&["delete-machine", "web", "VM-3", "--now"][..], &why].concat()).await;
    assert_eq!(out, "delete-machine web: machine 3 will be replaced\n");
    assert!(marks().await[0].1.delete.as_ref().unwrap().now);
    served.done(&[&["undelete", "web", "3"][..], &why].concat()).await;
    assert_eq!(marks().await, []);
    let written = served.done(&[&["abandon", "web", "3", "-o", "json"][..], &why].concat()).await;
    let receipt: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&receipt["kind"], &receipt["verb"]), (&"Accepted".into(), &"abandon".into()));
    let commands = served.kit.store.inbox(&PoolName::new("web")).await.unwrap().commands;
    assert_eq!(commands[0].verb, CommandVerb::Abandon(InstanceId::new("3")));
}

#[tokio::test]
async fn a_verb_waits_for_its_answer_and_its_code_says_what_was_done() {
    let served = serve(Kit::open().await).await;
    let pause = ["pause", "web", "--why", "errors"];
    served.kit.backend.lock().answers = Some((true, "the rollout is paused"));
    assert_eq!(served.done(&pause).await, "pause web: the rollout is paused (0.0 s)\n");
    let json = served.run(&[&pause[..], &["-o", "json"]].concat()).await.json();
    assert_eq!((&json["kind"], &json["state"]), (&"Command".into(), &"accepted".into()));
    served.kit.backend.lock().answers = Some((false, "no rollout is open"));
    let promote = ["promote", "web", "--why", "go"];
    let ended = served.run(&promote).await;
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(11), "promote web: not done: no rollout is open\n")
    );
    let json = served.run(&[&promote[..], &["-o", "json"]].concat()).await;
    assert_eq!((json.code, &json.json()["state"]), (Some(11), &"refused".into()));
    // No turn answers.
    served.kit.backend.lock().answers = None;
    let ended = served.run(&[&pause[..], &["--timeout", "1s"]].concat()).await;
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(ended.err.contains("pause is recorded, but web made no turn within 1s"), "{ended:?}");
    let from_env = {
        let mut command = command(&["pause", "web", "--no-wait"]);
        command.env("POOLKEEPER_SERVER", &served.server).env("POOLKEEPER_WHY", "the environment");
        tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap()
    };
    assert_eq!(from_env.code, Some(0), "{from_env:?}");
    let commands = served.kit.store.inbox(&PoolName::new("web")).await.unwrap().commands;
    assert_eq!(&*commands.last().unwrap().why, "the environment");
}

#[tokio::test]
async fn a_mark_that_is_there_already_is_nothing_done() {
    let served = serve(Kit::open().await).await;
    let why = ["--why", "odd", "--no-wait"];
    for (verb, first, second) in [
        ("hold", "machine 3 is held until", "not done: machine 3 is already held by local (odd)"),
        ("release", "machine 3 is released", "not done: machine 3 is not held"),
        ("delete-machine", "machine 3 will be", "not done: local already requested that: odd"),
        ("undelete", "3 is no longer marked", "not done: no deletion of machine 3 is requested"),
    ] {
        let args = [&[verb, "web", "3"][..], &why].concat();
        assert!(served.done(&args).await.contains(first), "{verb}");
        let lines = served.kit.audit().await.len();
        let again = served.run(&args).await;
        assert_eq!(again.code, Some(11), "{again:?}");
        assert!(again.out.contains(second), "{again:?}");
        let audit = served.kit.audit().await;
        assert_eq!(audit.len(), lines + 2);
        assert!(audit.last().unwrap().ends_with(": unchanged"), "{audit:?}");
    }
    // The turn that the kit holds did not see the mark.
    let waits = ["hold", "web", "3", "--why", "odd", "--timeout", "1s"];
    assert_eq!(served.run(&waits).await.code, Some(5));
    assert_eq!(served.run(&["release", "web", "3", "--why", "x"]).await.code, Some(0));
}

#[tokio::test]
async fn a_verb_about_a_machine_that_leaves_says_how_it_left() {
    for (verb, code) in [("delete-machine", 0), ("hold", 11)] {
        let served = serve(Kit::open().await).await;
        let web = PoolName::new("web");
        let leaves = async {
            while served.kit.store.inbox(&web).await.unwrap().marks.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let (id, key) = (InstanceId::new("3"), Key::new("3"));
            served.kit.tell("web", HistoryEvent::Closed { id, key, deleted: true }).await;
            let mut known = served.kit.backend.lock();
            let context = known.contexts.get_mut(&web).unwrap();
            context.machines.retain(|machine| machine.id.as_str() != "3");
        };
        let args = [verb, "web", "3", "--why", "odd", "--timeout", "20s"];
        let (ended, ()) = tokio::join!(served.run(&args), leaves);
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.out.starts_with(&format!("{verb} web: 3 was deleted at ")), "{ended:?}");
    }
}

#[tokio::test]
async fn a_wait_ends_with_a_code_that_says_how() {
    let served = serve(Kit::open().await).await;
    {
        let mut known = served.kit.backend.lock();
        let pool = known.pools.get_mut(&PoolName::new("web")).unwrap();
        let mut report = (**pool.report.as_ref().unwrap()).clone();
        report.planned.as_mut().unwrap().report.holds = vec![Hold {
            reason: HoldReason::Paused,
            message: "paused by kim since 2026-03-01T11:59:00Z".into(),
            numbers: Vec::new(),
            blockers: Vec::new(),
            next_check_at: NOW,
            remedy: Some(Remedy::from(CommandName::Resume)),
        }];
        pool.report = Some(Arc::new(report));
    }
    // A time is true whenever it is read, a distance only for a moment.
    let says = "paused: paused by kim since 11:59:00Z";
    let wait = ["wait", "web", "--timeout", "1s"];
    for (until, code) in [("done", 9), ("paused", 0), ("healthy", 9)] {
        let ended = served.run(&[&wait[..], &["--until", until]].concat()).await;
        assert_eq!(ended.code, Some(code), "{until}: {ended:?}");
        assert!(ended.out.starts_with(&format!("web: {says}")), "{until}: {ended:?}");
        assert!(ended.err.contains(says), "{until}: {ended:?}");
    }
    let json = served.run(&[&wait[..], &["-o", "json"]].concat()).await.json();
    assert_eq!((&json["kind"], &json["health"]), (&"PoolHealth".into(), &"actionRequired".into()));
    assert!(json["actionRequired"][0].as_str().unwrap().starts_with(says), "{json}");
    // It has made no turn.
    let ended = served.run(&["wait", "batch", "--timeout", "1s"]).await;
    assert!(ended.code == Some(5) && ended.err.contains("not there after 1s"), "{ended:?}");
    let ended = served.run(&["wait", "wbe"]).await;
    assert!(ended.code == Some(4) && ended.err.contains("nearest: web"), "{ended:?}");
}

#[tokio::test]
async fn pools_are_applied_got_and_removed() {
    let served = serve(Kit::open().await).await;
    let one = written("http", "one.yaml", document("one", 2).as_bytes());
    let told = served.done(&["apply", &one, "--why", "x"]).await;
    assert!(
        told.ends_with("\napplied: one (new)\n") && told.contains("+ replicas.count"),
        "{told}"
    );
    let stored = served.kit.store.document(&PoolName::new("one")).await.unwrap().unwrap();
    assert_eq!(&*stored.text, document("one", 2), "one pool goes as it was written");
    let two = document("two", 2) + "---\n" + &document("three", 3);
    let two = written("http", "two.yaml", two.as_bytes());
    let told = served.done(&["apply", &two]).await;
    let applied: Vec<&str> = told.lines().filter(|line| line.starts_with("applied")).collect();
    assert_eq!(applied, ["applied: two (new)", "applied: three (new)"]);
    let shown = served.done(&["get", "three", "-o", "json"]).await;
    let again = written("http", "again.json", shown.as_bytes());
    assert_eq!(served.done(&["apply", &again, "--why", "x"]).await, "three: no change\n");
    let list = served.done(&["get"]).await;
    assert_eq!(list.lines().count(), 6, "{list}");
    assert!(list.contains("web") && list.contains("WAITS FOR"), "{list}");
    let machines = served.done(&["get", "web", "machines"]).await;
    assert!(machines.contains("Outdated, ready") && machines.contains("3–7"), "{machines}");
    for part in ["status", "rollout", "plan", "explain", "document"] {
        let text = served.done(&["get", "web", part, "-o", "json"]).await;
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{part}: {text}");
        let text = served.done(&["get", "web", part]).await;
        assert!(text.contains(": ") && !text.starts_with('{'), "{part}: {text}");
    }
    assert!(
        served.done(&["unmanage", "one", "--why", "x"]).await.starts_with("no longer managed: one")
    );
    assert_eq!(served.run(&["get", "one"]).await.code, Some(4));
}

#[tokio::test]
async fn history_and_audit_are_read_to_any_depth() {
    let served = serve(Kit::open().await).await;
    for n in 0..1_200 {
        let told =
            HistoryEvent::Held { reason: HoldReason::Floor, message: format!("{n} of 7").into() };
        served.kit.tell("web", told).await;
    }
    let last = served.done(&["history", "web", "--last", "2", "--verbose"]).await;
    assert_eq!(last, "Mar 01 12:00:00  1198 of 7\n       12:00:00  1199 of 7\n");
    let all = served.done(&["history", "web", "--last", "5000", "-o", "ndjson"]).await;
    let ids: Vec<u64> = all
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(ids.len(), 1_203);
    assert!(ids.is_sorted());
    assert_eq!(served.done(&["audit"]).await, "nothing has happened yet\n");
    served.done(&["pause", "web", "--why", "errors", "--no-wait"]).await;
    let audit = served.done(&["audit"]).await;
    assert!(audit.ends_with("local pause web: asked (errors)\n"), "{audit}");
}

#[tokio::test]
async fn failures_have_their_codes_and_say_what_helps() {
    let served = serve(Kit::guarded().await).await;
    let server = served.server.as_str();
    let token = |role: &str| Some(served.kit.tokens[role].as_str());
    let pause = ["pause", "web", "--why", "x", "--no-wait"];
    let file_of =
        written("http", "token", format!("{}\n", served.kit.tokens["operator"]).as_bytes());
    let bad = written("http", "bad.yaml", (document("new", 1) + "colour: red\n").as_bytes());
    let batch = written("http", "batch.yaml", document("batch", 1).as_bytes());
    let missing = file("http", "no-such-token");
    for (token, args, code, hint) in [
        (None, &pause[..], 6, "POOLKEEPER_TOKEN"),
        (Some("pk_wrong"), &pause, 6, "not known"),
        (token("viewer"), &pause, 6, "needs operator"),
        (Some("pk_wrong"), &pause, 6, "the token in POOLKEEPER_TOKEN"),
        (token("viewer"), &pause, 6, "a token with a higher role"),
        (token("operator"), &["pause", "wbe", "--why", "x"], 4, "nearest: web"),
        (
            token("operator"),
            &["hold", "web", "99", "--why", "x"],
            4,
            "there is no machine 99 in pool web",
        ),
        (token("operator"), &["pause", "web"], 2, "--why"),
        (token("operator"), &["pause", "web", "--why", " "], 2, "a reason is required"),
        (
            token("admin"),
            &["apply", &batch, "--why", "x"],
            2,
            "changes are picked up automatically",
        ),
        (token("admin"), &["apply", &bad, "--why", "x"], 2, "bad.yaml:6:1"),
        (token("viewer"), &["get", "web", "colour"], 2, "machines"),
        (token("viewer"), &["get", "--server", "pools"], 2, "no address"),
        (token("viewer"), &["get", "--server", "http://pools.example"], 2, "https"),
        (token("viewer"), &["get", "--server", "http://127.0.0.1:1"], 5, "poolkeeper serve"),
    ] {
        let ended = run(server, token, args).await;
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.err.contains(hint), "{args:?} should speak of {hint}: {}", ended.err);
        assert!(!ended.err.contains("pk_") && !ended.out.contains("pk_"), "{ended:?}");
    }
    for (path, code) in [(&file_of, 0), (&missing, 1)] {
        let mut command = command(&pause);
        command.env("POOLKEEPER_SERVER", server).env("POOLKEEPER_TOKEN_FILE", path);
        let ended = tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap();
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
    let ended = run(server, None, &["pause", "web", "--why", "x", "-o", "json"]).await;
    assert_eq!(
        (&ended.json()["kind"], &ended.json()["code"]),
        (&"Error".into(), &"unauthenticated".into())
    );
}

/// A server that loses its first answers, after it did what was asked.
#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_the_same_key() {
    let served = serve(Kit::open().await).await;
    let inner = served.server.strip_prefix("http://").unwrap().to_owned();
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        for n in 0.. {
            let (mut from, _) = front.accept().await.unwrap();
            let mut to = tokio::net::TcpStream::connect(&inner).await.unwrap();
            if n > 0 {
                tokio::spawn(
                    async move { tokio::io::copy_bidirectional(&mut from, &mut to).await },
                );
                continue;
            }
            let mut asked = vec![0; 64 << 10];
            let mut length = 0;
            while !asked[..length].ends_with(b"\"}") {
                length += from.read(&mut asked[length..]).await.unwrap();
            }
            to.write_all(&asked[..length]).await.unwrap();
            let read = to.read(&mut asked).await.unwrap();
            assert!(
                asked[..read].starts_with(b"HTTP/1.1 202"),
                "{}",
                String::from_utf8_lossy(&asked[..read])
            );
        }
    });
    let ended =
        run(&format!("http://{address}"), None, &["pause", "web", "--why", "x", "--no-wait"]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(served.kit.store.inbox(&PoolName::new("web")).await.unwrap().commands.len(), 1);
}

#[test]
fn a_token_is_made_with_the_line_by_which_it_is_known() {
    let ended = finish(command(&["create-token", "ann", "operator"]), b"");
    let lines: Vec<&str> = ended.out.lines().collect();
    let [token, line] = lines[..] else { panic!("{ended:?}") };
    let found = TokenTable::read(line).unwrap().find(token, NOW).unwrap();
    assert_eq!((&*found.name, found.role), ("ann", Role::Operator));
    let json = finish(command(&["create-token", "ann", "admin", "-o", "json"]), b"").json();
    assert_eq!(json["kind"], "Token");
    assert_ne!(json["token"], token, "each is another");
    let terms = ["--pools", "web-*", "--expires", "2027-01-31T00:00:00Z"];
    let ended = finish(command(&[&["create-token", "ann", "operator"][..], &terms].concat()), b"");
    let (token, line) = ended.out.trim_end().split_once('\n').unwrap();
    let found = TokenTable::read(line).unwrap().find(token, NOW).unwrap();
    assert!(found.scope.covers("web-1") && !found.scope.covers("db"), "{line}");
    assert_eq!(TokenTable::read(line).unwrap().ends().len(), 1);
    for wrong in [
        &["create-token", "a b", "admin"][..],
        &["create-token", "ann", "boss"],
        &["create-token", "ann", "viewer", "--expires", "soon"],
    ] {
        assert_eq!(finish(command(wrong), b"").code, Some(2), "{wrong:?}");
    }
}
