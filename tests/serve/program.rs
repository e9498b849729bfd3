//! The program itself: what it says when it cannot begin, and that it ends when it is told to.

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{ChildStderr, Command, Stdio};

use super::kit::{House, SECRET, pool};
use super::run::*;

fn told(args: &[&str]) -> Ended {
    finish(command(&[&["serve"], args].concat()), b"")
}

#[test]
fn what_keeps_it_from_beginning_is_told_with_the_next_step() {
    let no_folder = told(&["--pools", "no/such/folder"]);
    assert_eq!(no_folder.code, Some(1), "{no_folder:?}");
    assert!(
        no_folder.err.contains("no/such/folder") && no_folder.err.contains("--pools"),
        "{no_folder:?}"
    );
    let bad = written("serve", "bad.yaml", b"pools: config/pools\nlog: {level: loud}\nturn: {}\n");
    let refused = told(&["--settings", &bad]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("bad.yaml:2:14: log.level")
            && refused.err.contains("did you mean turns?"),
        "{refused:?}"
    );
    let missing = told(&["--settings", "nowhere.yaml"]);
    assert!(missing.code == Some(1) && missing.err.contains("nowhere.yaml"), "{missing:?}");
    let json = told(&["--set", "reload=never", "-o", "json"]);
    assert_eq!((json.code, json.json()["code"].as_str()), (Some(2), Some("badValue")));
    let nowhere = told(&["--pools", "config/pools", "--store", "no/such/folder/file.db"]);
    assert!(nowhere.code == Some(1) && nowhere.err.contains("no/such/folder"), "{nowhere:?}");
    let nobody = told(&["--store", "memory", "--pools", "config/pools", "--auth", "client-secret"]);
    assert_eq!(nobody.code, Some(6), "{nobody:?}");
    assert!(nobody.err.contains("client secret: AZURE_CLIENT_SECRET is not set"), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_few_descriptors_are_told_at_the_start_with_the_remedy() {
    let house = House::new("descriptors", &[("web", 3)]).await;
    let mut limited = Command::new("/bin/sh");
    limited.args(["-c", "ulimit -n 300; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_poolkeeper")]);
    limited.args(["serve", "--auth", "client-secret", "--store", "memory"]);
    limited.args(["--pools", "config/pools", "--listen", "127.0.0.1:0"]);
    limited.current_dir(HOME).env_clear().envs(house.environment());
    limited.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let few = finish(limited, b"");
    assert_eq!(few.code, Some(1), "{few:?}");
    for said in ["may open 300 files", "needs 320", "LimitNOFILE=", "--listen off"] {
        assert!(few.err.contains(said), "{few:?}");
    }
}

#[test]
fn settings_are_printed_in_both_ways() {
    let shown = told(&["--print-settings", "--set", "turns.atOnce=3"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.out.contains("  atOnce: 3") && shown.out.contains("# --set"), "{shown:?}");
    let document = told(&["--print-settings", "-o", "json"]).json();
    assert_eq!(
        (&document["kind"], &document["settings"][0]["key"]),
        (&"Settings".into(), &"pools".into())
    );
}

/// The program as a service manager starts it, and what it logged so far.
pub struct Program {
    running: Running,
    lines: Lines<BufReader<ChildStderr>>,
    pub log: String,
}

impl Program {
    pub fn start(house: &House, args: &[&str]) -> Self {
        let pools = house.folder.display().to_string();
        let listen = ("POOLKEEPER_API_LISTEN", "127.0.0.1:0");
        Self::start_in(house, &[("POOLKEEPER_POOLS", &pools), listen], args)
    }

    /// With these variables beside those that say who it is.
    pub fn start_in(house: &House, variables: &[(&str, &str)], args: &[&str]) -> Self {
        let mut program = command(&["serve", "--auth", "client-secret"]);
        program.args(args).stdout(Stdio::null());
        program.envs(house.environment()).envs(variables.iter().copied());
        let mut running = Running::start(program);
        let lines = running.err().lines();
        Self { running, lines, log: String::new() }
    }

    /// Reads its log until it says this.
    pub fn until(&mut self, said: &str) {
        let said = format!("\"message\":\"{said}\"");
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            self.log.push_str(&line);
            self.log.push('\n');
            if line.contains(&said) {
                return;
            }
        }
        panic!("{said} is never said: {}", self.log);
    }

    pub fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    /// Where its API listens, once it said so.
    pub fn address(&self) -> SocketAddr {
        let (_, after) = self.log.split_once("\"address\":\"").unwrap();
        after.split('"').next().unwrap().parse().unwrap()
    }

    pub fn end(mut self) -> (Option<i32>, String) {
        for line in self.lines {
            self.log.push_str(&line.unwrap());
            self.log.push('\n');
        }
        (self.running.code(), self.log)
    }
}

/// The whole program against the emulator: its log has no secret in it, and SIGTERM ends it in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_serves_until_it_is_told_to_stop_and_keeps_its_secrets() {
    let house = House::new("program", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 4, "1.0.0"));
    let mut program = Program::start(&house, &["--log", "trace", "--store", "memory"]);
    program.until("sent");
    program.signal("-HUP");
    program.until("pool files were reloaded on request");
    program.signal("-TERM");
    let (code, log) = program.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.lines().all(|line| line.starts_with('{') && line.ends_with('}')), "{log}");
    assert!(
        log.contains("\"message\":\"ready\"") && log.contains("\"message\":\"stopped\""),
        "{log}"
    );
    assert!(log.contains("\"pool\":\"web\"") && log.contains("\"entry\":\""), "{log}");
    for secret in [SECRET, "Bearer", "eyJ", "access_token", "asyncOperation", "?t="] {
        assert!(!log.contains(secret), "{secret} is told: {log}");
    }
}

/// On a file that lasts: nobody else opens it meanwhile, a stop gives it up at once, and what was known is known again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_it_remembers_lasts_and_is_one_processes_at_a_time() {
    let house = House::new("lasts", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 4, "1.0.0"));
    let store = house.folder.join("poolkeeper.db").display().to_string();
    let args = ["--store", store.as_str()];
    let mut first = Program::start(&house, &args);
    first.until("sent");
    let (code, said) = Program::start(&house, &args).end();
    assert_eq!(code, Some(1), "{said}");
    let holder = format!("-{}-", first.running.id());
    assert!(said.contains("is in use by") && said.contains(&holder), "{said}");
    assert!(!said.contains("--store") && !said.contains("another file"), "a second one: {said}");
    first.signal("-TERM");
    assert_eq!(first.end().0, Some(0));
    let mut second = Program::start(&house, &args);
    second.until("recovered");
    second.until("ready");
    assert!(
        second.log.contains("\"machines\":3") && second.log.contains("\"open\":1"),
        "{}",
        second.log
    );
    assert!(!second.log.contains("another process leads"), "{}", second.log);
    second.signal("-TERM");
    assert_eq!(second.end().0, Some(0));
    let writes = house.emulator.state()["requests"].to_string();
    assert_eq!(house.seen("web")["capacity"], 4, "raised once: {writes}");
}

/// A hang-up before anything is open is no reason to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hang_up_in_its_first_moments_ends_nothing() {
    let house = House::new("hang-up", &[("web", 3)]).await;
    let store = house.folder.join("poolkeeper.db").display().to_string();
    let mut program = Program::start(&house, &["--store", store.as_str()]);
    program.until("poolkeeper begins");
    program.signal("-HUP");
    program.until("ready");
    program.signal("-TERM");
    assert_eq!(program.end().0, Some(0));
}

/// A store in a file puts its tag on the set, and takes it away when nothing names the pool any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_lasts_owns_the_set_of_its_pool() {
    let house = House::new("owner", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "1.0.0"));
    let owner = || {
        house.emulator.with_world(|world| {
            let set = world.sets().next().unwrap().0;
            world.true_model(set).unwrap().tags.get("poolkeeper-owner").cloned()
        })
    };
    let store = house.folder.join("poolkeeper.db").display().to_string();
    let mut program = Program::start(&house, &["--store", store.as_str()]);
    program.until("sent");
    let tag = owner().unwrap();
    assert!(tag.len() > 32 && tag.contains(" since 20"), "{tag}");
    house.remove("web.yaml");
    for _ in 0..2 {
        program.signal("-HUP");
        program.until("pool files were reloaded on request");
    }
    program.until("released: nothing of it is under way any more");
    assert_eq!(owner(), None);
    assert_eq!(house.writes(), 2);
    program.signal("-TERM");
    assert_eq!(program.end().0, Some(0));
}

/// The commands reach the daemon, and a port that is taken is told of with what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_ask_it_and_a_port_has_one_listener() {
    let house = House::new("commands", &[("web", 3)]).await;
    let mut serving = Program::start(&house, &["--store", "memory", "--pools", "off"]);
    serving.until("the API listens");
    serving.until("ready");
    let address = serving.address().to_string();
    let (code, said) = Program::start(&house, &["--store", "memory", "--listen", &address]).end();
    assert_eq!(code, Some(1), "{said}");
    for part in [format!("cannot listen on {address}"), "--listen off".to_owned()] {
        assert!(said.contains(&part), "{part}: {said}");
    }
    let document = written("serve", "applied.yaml", pool("web", 4, "1.0.0").as_bytes());
    let ask = |args: &[&str]| {
        let mut command = command(args);
        command.env("POOLKEEPER_SERVER", format!("http://{address}"));
        let ended = finish(command, b"");
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended.out
    };
    ask(&["apply", &document, "--why", "a test"]);
    assert!(ask(&["get"]).contains("web"), "it is managed at once");
    serving.until("sent");
    ask(&["unmanage", "web", "--why", "a test"]);
    assert!(!ask(&["get"]).contains("web"));
    serving.signal("-TERM");
    assert_eq!(serving.end().0, Some(0));
    assert_eq!(house.seen("web")["capacity"], 4, "asked for once, and left alone");
}
