//! Names of pools and machines in a shell: what `completions` prints, in the shell that reads it.

use std::io;
use std::process::{Command, Stdio};

use crate::http::kit::Kit;
use crate::http::program::{command, finish, written};
use crate::http::terminal::{Served, run, serve};

/// What bash offers for a line with the cursor at its end; `None`: there is no bash here.
fn offered(script: &str, server: &str, line: &str) -> Option<Vec<String>> {
    const ASK: &str = r#"
        source "$1"
        COMP_LINE="poolkeeper $2"; COMP_POINT=${#COMP_LINE}
        read -r -a COMP_WORDS <<< "$COMP_LINE"
        [[ "$COMP_LINE" == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        function_of=$(complete -p poolkeeper | sed 's/.*-F \([^ ]*\).*/\1/')
        poolkeeper() { "$PROGRAM" "$@"; }
        "$function_of" poolkeeper "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ASK, "bash", script, line]);
    bash.env("POOLKEEPER_SERVER", server).env("PROGRAM", env!("CARGO_BIN_EXE_poolkeeper"));
    let asked = bash.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let ended = match asked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        asked => asked.unwrap(),
    };
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "", "{line}");
    let out = String::from_utf8(ended.stdout).unwrap();
    Some(out.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

async fn asked(served: &Served, script: &str, line: &str) -> Option<Vec<String>> {
    let (script, server, line) = (script.to_owned(), served.server.clone(), line.to_owned());
    tokio::task::spawn_blocking(move || offered(&script, &server, &line)).await.unwrap()
}

fn script(shell: &str) -> String {
    let ended = finish(command(&["completions", shell]), b"");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.out
}

#[tokio::test]
async fn bash_completes_names() {
    let served = serve(Kit::open().await).await;
    let path = written("http", "completions.bash", script("bash").as_bytes());
    let elsewhere = format!("status --server {} w", served.server);
    for (line, names) in [
        ("status ", &["batch", "web"][..]),
        ("status w", &["web"]),
        ("explain b", &["batch"]),
        ("explain web ", &["1", "2", "3", "4", "5", "6", "7"]),
        ("delete-machine web 3", &["3"]),
        ("pause --why x w", &["web"]),
        ("paus", &["pause"]),
        ("hold web 9", &[]),
        (elsewhere.as_str(), &["web"]),
    ] {
        let Some(offered) = asked(&served, &path, line).await else { return };
        assert_eq!(offered, names, "{line}");
    }
    let options = asked(&served, &path, "explain web --ser").await.unwrap();
    assert_eq!(options, ["--server", "--server-ca"]);
}

#[tokio::test]
async fn where_nobody_serves_nothing_is_said() {
    let served = serve(Kit::guarded().await).await;
    for (server, args) in [
        ("http://127.0.0.1:1", &["names", "--", "status"][..]),
        (served.server.as_str(), &["names", "--", "status"]),
        (served.server.as_str(), &["names", "--", "explain", "nobody"]),
        ("no address", &["names", "--", "plan"]),
    ] {
        let ended = run(server, None, args).await;
        let said = (ended.code, ended.out.as_str(), ended.err.as_str());
        assert_eq!(said, (Some(0), "", ""), "{args:?}");
    }
    let viewer = Some(served.kit.tokens["viewer"].as_str());
    let ended = run(&served.server, viewer, &["names", "--", "status"]).await;
    assert_eq!(ended.out, "batch\nweb\n");
}

/// One that takes its time.
#[tokio::test]
async fn nobody_waits_long_for_a_name() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let asked = run(&server, None, &["names", "--", "status"]);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(10), asked).await.unwrap();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
fn the_other_shells_ask_at_the_same_places() {
    let (zsh, fish) = (script("zsh"), script("fish"));
    assert_eq!(zsh.lines().next(), Some("#compdef poolkeeper"));
    assert!(zsh.matches(":_poolkeeper_names' \\").count() >= 20, "{zsh}");
    assert!(!zsh.contains("pool -- Name of the pool:_default"), "{zsh}");
    let asks = fish.lines().last().unwrap();
    for verb in ["status", "explain", "pause", "abandon", "history"] {
        assert!(asks.split([' ', '"']).any(|word| word == verb), "{asks}");
    }
    assert!(!asks.contains("validate") && asks.contains("poolkeeper names"), "{asks}");
}
