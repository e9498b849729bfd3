//! With real processes: scripts for `/bin/sh` in a folder of their own.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper};
use tokio::time::{sleep, timeout};

use super::*;
use crate::model::gate::GateCheck;
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};

const LONG: Span = Span::seconds(20);
const SHORT: Span = Span::from_millis(500);

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("poolkeeper-command-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// The process whose number a script has written there.
    async fn pid(&self, name: &str) -> i32 {
        let path = self.path(name);
        let read = || fs::read_to_string(&path).unwrap_or_default();
        becomes(name, || read().ends_with('\n')).await;
        read().trim().parse().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A test that fails may leave a process that still writes there.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(argv: &[&str]) -> GateCommand {
    let argv = argv.iter().map(|&part| part.into()).collect();
    GateCommand { argv, environment: BTreeMap::new(), inherit: Vec::new() }
}

fn script(text: &str, arguments: &[&str]) -> GateCommand {
    command(&[&["/bin/sh", "-c", text, "check"], arguments].concat())
}

async fn run_by(runner: &CommandRunner, command: &GateCommand, timeout: Span) -> GateReading {
    let check = GateCheck::Command { run: "check".into() };
    let pool = PoolName::new("web; $(echo)");
    let at = Time::from_millis(0);
    runner
        .run(command, GateQuestion { pool: &pool, gate: "smoke", check: &check, timeout, at })
        .await
}

async fn run(command: &GateCommand, timeout: Span) -> GateReading {
    run_by(&CommandRunner::new(1), command, timeout).await
}

/// A zombie that another process does not reap is gone too.
fn is_gone(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

async fn goes(pid: i32) {
    becomes("gone", || is_gone(pid)).await;
}

async fn becomes(what: &str, is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_secs(10), so).await.unwrap_or_else(|_| panic!("not {what}"));
}

#[tokio::test]
async fn the_exit_code_is_the_verdict() {
    for (text, verdict, say) in [
        ("exit 0", Verdict::Pass, "exit 0"),
        ("echo 12 of 12; echo more", Verdict::Pass, "exit 0: 12 of 12"),
        ("echo 3 errors >&2; exit 1", Verdict::Fail, "exit 1: 3 errors"),
        ("echo one; echo two >&2; exit 1", Verdict::Fail, "exit 1: one"),
        ("echo two >&2; echo one; exit 1", Verdict::Fail, "exit 1: two"),
        ("echo busy; exit 75", Verdict::Unknown, "exit 75: busy"),
        ("exit 2", Verdict::Unknown, "exit 2, but only 0 passes and only 1 fails"),
        ("exit 255", Verdict::Unknown, "exit 255, but only 0 passes and only 1 fails"),
        ("echo so far; kill -9 $$", Verdict::Unknown, "signal 9 ended it: so far"),
        ("kill -15 $$", Verdict::Unknown, "signal 15 ended it"),
        (r"printf '\033[31mred\033[0m\007\n'; exit 1", Verdict::Fail, "exit 1: red"),
        // Its standard input is empty, and closed channels are its own affair.
        ("read -r x; echo $? $x; exit 1", Verdict::Fail, "exit 1: 1"),
        ("readlink /proc/self/fd/0", Verdict::Pass, "exit 0: /dev/null"),
        ("exec >&- 2>&-; sleep 0.1; exit 1", Verdict::Fail, "exit 1"),
        ("pwd", Verdict::Pass, "exit 0: /"),
    ] {
        let reading = run(&script(text, &[]), LONG).await;
        assert_eq!(reading, GateReading::new(verdict, say), "{text}");
    }
}

#[tokio::test]
async fn what_does_not_start_says_why_and_what_helps() {
    let folder = Folder::new("start");
    // Written by another process: a program that is open for writing here could not start.
    let write = r#"cd "$1"; echo 'exit 0' > plain; echo 'exit 0' > nothing; chmod +x nothing
        echo '#!/no/such/program' > lost; chmod +x lost; mkdir folder"#;
    assert_eq!(run(&script(write, &[&folder.path("")]), LONG).await.verdict, Verdict::Pass);
    for (program, say) in [
        ("absent", "there is no PATH; install it, or correct the command in the settings"),
        ("plain", "PATH is not executable; run chmod +x on it"),
        ("folder", "PATH is a directory; name a program in it"),
        (
            "nothing",
            "PATH is no program of this system; a script begins with #! and an interpreter",
        ),
        (
            "lost",
            "the program that runs PATH is missing; correct its first line, or install that program",
        ),
    ] {
        let path = folder.path(program);
        let reading = run(&command(&[&path]), LONG).await;
        let say = format!("it does not start: {}", say.replace("PATH", &path));
        assert_eq!(reading, GateReading::unknown(say));
    }
    let relative = run(&command(&["sh", "-c", "exit 0"]), LONG).await;
    assert_eq!(relative.verdict, Verdict::Unknown);
    assert!(relative.say.contains("is no absolute path"), "{relative:?}");
    let mut thief = script("exit 0", &[]);
    thief.inherit.push("AZURE_CLIENT_SECRET".into());
    let refused = run(&thief, LONG).await;
    assert!(
        refused.verdict == Verdict::Unknown && refused.say.contains("credential"),
        "{refused:?}"
    );
}

/// Ignores TERM, and so does a process that it has started; both write who they are.
const STUBBORN: &str = r#"trap '' TERM; cd "$1"; echo $$ > first
    sh -c 'trap "" TERM; echo $$ > second; while :; do sleep 5; done' &
    echo working; while :; do sleep 5; done"#;

#[tokio::test]
async fn what_ignores_term_is_killed_with_all_that_it_started() {
    let folder = Folder::new("stubborn");
    let check = script(STUBBORN, &[&folder.path("")]);
    // Its time limit and 2 s.
    let reading = timeout(Duration::from_millis(2_500), run(&check, SHORT)).await.unwrap();
    let say = "no exit within 500ms, so it was ended; make it quicker, or raise timeout: working";
    assert_eq!(reading, GateReading::unknown(say));
    goes(folder.pid("first").await).await;
    goes(folder.pid("second").await).await;
}

#[tokio::test]
async fn who_ends_at_term_ends_at_once() {
    let folder = Folder::new("gentle");
    let text = r#"trap 'echo cleaned > "$1/cleaned"; exit 0' TERM; while :; do sleep 0.05; done"#;
    let check = script(text, &[&folder.path("")]);
    let reading = timeout(Duration::from_millis(1_300), run(&check, SHORT)).await.unwrap();
    // Too late to pass.
    assert_eq!(reading.verdict, Verdict::Unknown);
    assert_eq!(fs::read_to_string(folder.path("cleaned")).unwrap(), "cleaned\n");
}

#[tokio::test]
async fn a_process_in_the_background_does_not_hold_the_measurement() {
    let folder = Folder::new("background");
    let text = r#"sh -c 'trap "" TERM; echo $$ > "$1/second"; sleep 60' check "$1" &
        while ! [ -s "$1/second" ]; do sleep 0.01; done; echo done; exit 1"#;
    let check = script(text, &[&folder.path("")]);
    let reading = timeout(Duration::from_secs(10), run(&check, LONG)).await.unwrap();
    assert_eq!(reading, GateReading::new(Verdict::Fail, "exit 1: done"));
    goes(folder.pid("second").await).await;
}

#[tokio::test]
async fn orphans_that_come_to_the_daemon_are_reaped() {
    // As the first process of a container.
    set_child_subreaper(Some(getpid())).unwrap();
    let folder = Folder::new("orphans");
    let text = r#"sleep 60 & echo $! > "$1/second"; exit 0"#;
    let reading = run(&script(text, &[&folder.path("")]), LONG).await;
    set_child_subreaper(None).unwrap();
    assert_eq!(reading, GateReading::new(Verdict::Pass, "exit 0"));
    let pid = folder.pid("second").await;
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{pid} is left as a zombie");
}

#[tokio::test]
async fn a_flood_of_output_blocks_nothing() {
    let text = "head -c 10000000 /dev/zero | tr '\\0' 'x'; head -c 10000000 /dev/zero >&2; exit 1";
    let reading = run(&script(text, &[]), LONG).await;
    assert_eq!(reading, GateReading::new(Verdict::Fail, format!("exit 1: {}", "x".repeat(200))));
    // What is beyond the limit is not kept.
    let beyond = "yes '' | head -c 65536; echo a line; exit 1";
    let reading = run(&script(beyond, &[]), LONG).await;
    assert_eq!(reading, GateReading::new(Verdict::Fail, "exit 1"));
}

#[tokio::test]
async fn a_dropped_measurement_leaves_no_process() {
    let folder = Folder::new("dropped");
    let runner = CommandRunner::new(1);
    let stubborn = script(STUBBORN, &[&folder.path("")]);
    let second = tokio::select! {
        reading = run_by(&runner, &stubborn, LONG) => panic!("{reading:?}"),
        second = folder.pid("second") => second,
    };
    goes(second).await;
    let first = folder.pid("first").await;
    goes(first).await;
    // Its place is free again, and no zombie is left of it.
    let next = run_by(&runner, &script("exit 0", &[]), LONG).await;
    assert_eq!(next, GateReading::new(Verdict::Pass, "exit 0"));
    assert!(!fs::exists(format!("/proc/{first}")).unwrap(), "{first} is left as a zombie");
}

#[tokio::test]
async fn only_so_many_run_at_once() {
    let folder = Folder::new("places");
    let runner = CommandRunner::new(2);
    // Each counts those that run beside it.
    let text = r#"cd "$1"; echo > run-$$; sleep 0.2; set -- run-*; echo $#; rm run-$$"#;
    let counting = script(text, &[&folder.path("")]);
    let measure = || run_by(&runner, &counting, LONG);
    let (a, b, c, d, e) = tokio::join!(measure(), measure(), measure(), measure(), measure());
    let most = [a, b, c, d, e].map(|reading| {
        assert_eq!(reading.verdict, Verdict::Pass, "{reading:?}");
        reading.say.rsplit_once(' ').unwrap().1.parse::<u32>().unwrap()
    });
    assert_eq!(most.into_iter().max(), Some(2), "{most:?}");

    let single = CommandRunner::new(1);
    let slow = script("sleep 0.8", &[]);
    let (first, second) = tokio::join!(run_by(&single, &slow, LONG), run_by(&single, &slow, SHORT));
    assert_eq!(first.verdict, Verdict::Pass);
    let say = "it had no place to run within 500ms: the limit of commands at once is 1; make them quicker, or raise that limit";
    assert_eq!(second, GateReading::unknown(say));
}

#[tokio::test]
async fn it_has_no_descriptor_of_the_daemon() {
    let folder = Folder::new("descriptors");
    let file = File::create(folder.path("secret")).unwrap();
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let [file_name, socket_name] = [file.as_raw_fd(), socket.as_raw_fd()].map(|fd| {
        let name = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        name.to_str().unwrap().to_owned()
    });
    let all = r#"for fd in /proc/self/fd/*; do readlink "$fd"; done > "$1/open"; ls -l "$1/open""#;
    let reading = run(&script(all, &[&folder.path("")]), LONG).await;
    assert_eq!(reading.verdict, Verdict::Pass, "{reading:?}");
    let open = fs::read_to_string(folder.path("open")).unwrap();
    assert!(open.contains("/dev/null") && open.contains("pipe:"), "{open}");
    assert!(!open.contains(&file_name) && !open.contains(&socket_name), "{open}");
    drop((file, socket));
}

/// This test again, in a process with secrets in its environment.
#[test]
fn a_command_has_only_variables_that_are_named() {
    const MARK: &str = "POOLKEEPER_TEST_GATE_MARK";
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if std::env::var_os(MARK).is_some() {
        return runtime().block_on(has_only_named_variables());
    }
    let name = "adapters::gates::command::tests::a_command_has_only_variables_that_are_named";
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .envs([(MARK, "1"), ("AZURE_CLIENT_SECRET", "hunter2"), ("POOLKEEPER_TOKEN", "hunter2")])
        .envs([("OWN_KEY", "key-of-the-check"), ("POOLKEEPER_POOL", "another"), ("TIER", "a")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success() && said.contains("1 passed"), "{said}");
}

async fn has_only_named_variables() {
    let folder = Folder::new("variables");
    let mut all = command(&["/usr/bin/env"]);
    all.inherit = ["OWN_KEY", "TIER", "POOLKEEPER_TEST_ABSENT"].map(Into::into).into();
    all.environment = BTreeMap::from([("TIER".into(), "b c".into())]);
    all.argv =
        command(&["/bin/sh", "-c", r#"/usr/bin/env > "$1/env""#, "x", &folder.path("")]).argv;
    let reading = run(&all, LONG).await;
    assert_eq!(reading, GateReading::new(Verdict::Pass, "exit 0"));
    let env = fs::read_to_string(folder.path("env")).unwrap();
    // What a shell sets by itself.
    let own = ["PWD=", "SHLVL=", "_=", "OLDPWD="];
    let mut lines: Vec<_> =
        env.lines().filter(|line| !own.iter().any(|own| line.starts_with(own))).collect();
    lines.sort_unstable();
    let expected = [
        "OWN_KEY=key-of-the-check",
        "POOLKEEPER_GATE=smoke",
        "POOLKEEPER_POOL=web; $(echo)",
        "TIER=b c",
    ];
    assert_eq!(lines, expected);

    all.argv = command(&["/bin/sh", "-c", "echo refused: $OWN_KEY; exit 1"]).argv;
    let reading = run(&all, LONG).await;
    assert_eq!(reading, GateReading::new(Verdict::Fail, "exit 1: refused: $OWN_KEY"));
}
