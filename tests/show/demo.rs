//! The first thing that newcomers see: here its refusals. The show itself takes minutes, and is proven where it is played.

use std::io::{BufRead, Read};
use std::net::TcpListener;

use super::program::{Running, command};
use super::support::*;

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
    assert!(told.contains("Ended before") && told.contains("left behind"), "{told}");
    assert_eq!(demo.code(), Some(130));
}
