//! The first thing that newcomers see: here its refusals. The show itself takes minutes, and is proven where it is played.

use std::env;
use std::io::{BufRead, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::program::{Running, command};
use super::support::*;

/// What restores a terminal: the end of its alternate screen, and its cursor.
const LEAVES_SCREEN: &str = "\u{1b}[?1049l";
const SHOWS_CURSOR: &str = "\u{1b}[?25h";

#[test]
fn a_port_that_is_taken_is_told_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let ran = run(&["demo", "--listen", &place]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""));
    assert!(ran.err.contains(&place) && ran.err.contains("leave --listen out"), "{}", ran.err);
}

#[test]
fn it_is_reached_from_this_machine_only() {
    let ran = run(&["demo", "--listen", "0.0.0.0:0"]);
    assert_eq!((ran.code, &*ran.out), (Some(2), ""));
    assert!(ran.err.contains("loopback only"), "{}", ran.err);
}

#[test]
fn interrupted_it_says_how_far_it_came_and_ends() {
    let mut demo = Running::start(command(&["demo", "--listen", "127.0.0.1:0"]));
    let mut out = demo.out();
    let mut told = String::new();
    out.read_line(&mut told).unwrap();
    assert!(told.contains("machines of a simulated Azure serve"), "{told}");
    demo.signal("-INT");
    out.read_to_string(&mut told).unwrap();
    assert!(told.contains("Ended ") && told.contains("left behind"), "{told}");
    assert_eq!(demo.code(), Some(130));
}

#[test]
fn on_a_terminal_the_pool_is_watched_and_a_key_ends_it() {
    const CTRL_C: &[u8] = b"\x03";
    for (key, code) in [(&b"q"[..], 0), (CTRL_C, 130)] {
        let (rest, ended) = pressed(key);
        let (_, after) = rest.rsplit_once(LEAVES_SCREEN).unwrap_or_else(|| panic!("{rest:?}"));
        assert!(after.contains(SHOWS_CURSOR), "{after:?}");
        assert!(after.contains("Ended ") && after.contains("left behind"), "{after:?}");
        assert_eq!(ended, Some(code), "{after:?}");
    }
}

/// What the terminal gets from this key on, and the exit code. The key is pressed once the pool is on the screen.
fn pressed(key: &[u8]) -> (String, Option<i32>) {
    let program = env!("CARGO_BIN_EXE_poolkeeper");
    let line = format!("stty cols 80 rows 24; exec {program} demo --listen 127.0.0.1:0");
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).env_clear();
    command.env("PATH", env::var_os("PATH").unwrap()).env("SHELL", "/bin/sh");
    command.env("TERM", "xterm").env("LANG", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut demo = Running::start(command);
    let (mut input, mut out) = (demo.input(), demo.out());
    let (mut shown, mut bytes) = (String::new(), [0; 4 << 10]);
    // A word of the script, and one of the screen of `watch`.
    while !(shown.contains("simulated") && shown.contains("ceiling")) {
        let read = out.read(&mut bytes).unwrap();
        assert!(read > 0, "{shown:?}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    input.write_all(key).unwrap();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    (String::from_utf8_lossy(&rest).into_owned(), demo.code())
}
