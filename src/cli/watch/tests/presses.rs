//! What each key does.

use super::pictures::text;
use super::samples::*;
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::watch::state::{
    PoolPicture, WatchEffect, WatchEvent, WatchKey, WatchMode, WatchPicture, WatchRequest,
    WatchState, WatchSubject,
};
use crate::model::command::CommandName;

fn key(name: &str) -> WatchKey {
    match name {
        "Enter" => WatchKey::Enter,
        "Esc" => WatchKey::Escape,
        "Back" => WatchKey::Backspace,
        "Up" => WatchKey::Up,
        "Down" => WatchKey::Down,
        "Left" => WatchKey::Left,
        "Right" => WatchKey::Right,
        "PgUp" => WatchKey::PageUp,
        "PgDn" => WatchKey::PageDown,
        "Home" => WatchKey::Home,
        "End" => WatchKey::End,
        "Space" => WatchKey::Char(' '),
        "Ctrl-C" => WatchKey::Interrupt,
        "Ctrl-Z" => WatchKey::Suspend,
        one => WatchKey::Char(one.chars().next().unwrap()),
    }
}

/// Presses keys that are separated by spaces; the effect of the last one.
pub fn press(state: &mut WatchState, keys: &str) -> Option<WatchEffect> {
    let mut effect = None;
    for name in keys.split(' ').filter(|name| !name.is_empty()) {
        effect = state.on(WatchEvent::Key(key(name)));
    }
    effect
}

fn send(verb: CommandName, machine: Option<&str>, why: &str) -> Option<WatchEffect> {
    Some(WatchEffect::Send(WatchRequest {
        verb,
        pool: "web".to_owned(),
        machine: machine.map(str::to_owned),
        why: why.to_owned(),
    }))
}

/// The line of questions and answers.
fn answer_line(state: &WatchState) -> String {
    let lines = text(state);
    lines[lines.len() - 2].clone()
}

#[test]
fn keys_of_one_pool() {
    use CommandName::{Abort, Approve, Hold, Pause, Release, Resume};
    let cancelled = "cancelled: nothing was sent";
    let table = [
        ("q", Some(WatchEffect::Quit), ""),
        ("Ctrl-C", Some(WatchEffect::Quit), ""),
        ("p o h Ctrl-C", Some(WatchEffect::Quit), "pause web: why: oh"),
        ("Ctrl-Z", Some(WatchEffect::Suspend), ""),
        ("p", None, "pause web: why:"),
        ("p Enter", None, "pause web: why:"),
        ("p Space Enter", None, "pause web: why:"),
        ("p q ? h Back", None, "pause web: why: q?"),
        ("p a Space b Enter", send(Pause, None, "a b"), "pause web: sent; waits for the answer"),
        ("p a Esc", None, cancelled),
        ("r a Enter", send(Resume, None, "a"), "resume web: sent; waits for the answer"),
        ("a a Enter", send(Approve, None, "a"), "approve web: sent; waits for the answer"),
        ("A", None, "abort the rollout of web? type web:"),
        ("A w e Enter", None, "this is not the name of the pool: nothing was sent"),
        ("A w e b Enter", None, "abort web: why:"),
        ("A w e b Enter a Enter", send(Abort, None, "a"), "abort web: sent; waits for the answer"),
        ("A w e b Enter Esc", None, cancelled),
        ("A Esc", None, cancelled),
        ("h", None, "no machine is selected: select one with the arrows"),
        ("H", None, "no machine is selected: select one with the arrows"),
        ("Right h", None, "hold web 0: why:"),
        ("j j h a Enter", send(Hold, Some("1"), "a"), "hold web 1: sent; waits for the answer"),
        (
            "End H a Enter",
            send(Release, Some("31"), "a"),
            "release web 31: sent; waits for the answer",
        ),
        ("p a Enter r", None, "pause web is not answered yet: wait for its answer"),
        // There is no list to go back to.
        ("Esc", None, ""),
        ("x / Enter Back", None, ""),
    ];
    for (keys, effect, line) in table {
        let mut state = of_pool((80, 24), machines(32, 0));
        assert_eq!(press(&mut state, keys), effect, "{keys}");
        // Ctrl-C while a question is open ends the program; its line is not drawn again.
        if effect != Some(WatchEffect::Quit) {
            assert_eq!(answer_line(&state), line, "{keys}");
        }
    }
}

#[test]
fn arrows_move_over_the_fleet() {
    // 80 columns hold 13 machines of 6 columns.
    for (keys, machine) in [
        ("Right", "vm-0"),
        ("Right Left", "vm-0"),
        ("Right Right", "vm-1"),
        ("Right Down", "vm-13"),
        ("Right Down Down", "vm-26"),
        ("Right Down Down Down", "vm-26"),
        ("End", "vm-31"),
        ("End End", "vm-31"),
        ("Right End Up", "vm-18"),
        ("Right End Down", "vm-31"),
        ("Right End Home", "vm-0"),
    ] {
        let mut state = of_pool((80, 24), machines(32, 0));
        press(&mut state, keys);
        let open = state.open.as_ref().unwrap();
        assert_eq!(open.machine.as_deref(), Some(machine), "{keys}");
    }
}

#[test]
fn a_machine_stays_selected_while_others_leave() {
    let mut state = of_pool((80, 24), machines(32, 0));
    press(&mut state, "Right j j j");
    let machines = machines(32, 0).split_off(2);
    let look = look(&status("web"), machines);
    let picture = PoolPicture { look, lines: lines(40) };
    give(&mut state, WatchPicture::Pool(Box::new(picture)));
    assert_eq!(state.open.as_ref().unwrap().selected().unwrap().id, "3");
}

#[test]
fn keys_of_the_list() {
    let mut state = of_list((80, 24));
    let opened = |name: &str| Some(WatchEffect::Read(WatchSubject::Pool(name.to_owned())));
    assert_eq!(press(&mut state, "j j j Enter"), opened("web"));
    assert!(state.open.is_some());
    // What is pressed before the pool is read does no harm.
    press(&mut state, "Right Down PgUp PgDn End Home h Esc");
    assert!(state.open.is_none());
    assert_eq!(state.pool_name().as_deref(), Some("web"));
    assert_eq!(press(&mut state, "p"), None);
    assert_eq!(answer_line(&state), "pause web: why:");
    assert_eq!(press(&mut state, "Esc q"), Some(WatchEffect::Quit));
}

#[test]
fn going_back_reads_the_list_again() {
    let mut state = of_list((80, 24));
    press(&mut state, "Enter");
    assert_eq!(press(&mut state, "Esc"), Some(WatchEffect::Read(WatchSubject::Pools)));
}

#[test]
fn a_filter_leaves_what_it_names() {
    let mut state = of_list((80, 24));
    press(&mut state, "/ U e");
    assert_eq!(answer_line(&state), "filter: Ue");
    let names = |state: &WatchState| -> Vec<String> {
        state.listed().iter().map(|pool| pool.status.name.clone()).collect()
    };
    assert_eq!(names(&state), ["queue"]);
    press(&mut state, "Enter");
    assert_eq!((state.pool_name().as_deref(), &state.mode), (Some("queue"), &WatchMode::Browse));
    press(&mut state, "/ z z Enter");
    assert_eq!(names(&state), Vec::<String>::new());
    assert_eq!(press(&mut state, "Enter"), None);
    assert_eq!(press(&mut state, "p"), None);
    assert_eq!(state.mode, WatchMode::Browse);
    press(&mut state, "Esc");
    assert_eq!(names(&state).len(), 6);
}

#[test]
fn answers_are_shown_until_the_next_key() {
    let mut state = of_pool((80, 24), machines(32, 0));
    press(&mut state, "p a Enter");
    state.on(WatchEvent::Answer(Ok((Exit::Done, "pause web: paused by kim".to_owned()))));
    assert_eq!(answer_line(&state), "pause web: paused by kim");
    press(&mut state, "x");
    assert_eq!(answer_line(&state), "");
    let help = "put a token with a higher role into POOLKEEPER_TOKEN, or ask a person who has one";
    let refused = CommandFailure::new(
        Exit::NotPermitted,
        "forbidden",
        "pause needs the role operator, and vic is a viewer",
    );
    press(&mut state, "p a Enter");
    state.on(WatchEvent::Answer(Err(refused.help(help))));
    let lines = text(&state);
    let both = format!("{} {}", lines[22], lines[23]);
    assert_eq!(both, format!("pause needs the role operator, and vic is a viewer; {help}"));
    assert_eq!(press(&mut state, "p"), None);
    assert_eq!(answer_line(&state), "pause web: why:");
}

#[test]
fn the_history_scrolls_and_stays_where_it_is_read() {
    let mut state = of_pool((80, 24), machines(32, 0));
    let last = |state: &WatchState| text(state)[21].clone();
    assert!(last(&state).ends_with("fact 40 of the history"), "{}", last(&state));
    press(&mut state, "PgUp");
    assert!(last(&state).ends_with("fact 30 of the history"), "{}", last(&state));
    let mut later = lines(45);
    later.drain(..5);
    let look = look(&status("web"), machines(32, 0));
    let picture = PoolPicture { look, lines: later };
    give(&mut state, WatchPicture::Pool(Box::new(picture)));
    assert!(last(&state).ends_with("fact 30 of the history"), "{}", last(&state));
    // What was told stays, and nothing is told twice.
    let facts = &state.open.as_ref().unwrap().facts;
    assert!(facts.len() == 45 && facts[0].text == "fact 1 of the history", "{facts:?}");
    press(&mut state, "PgUp PgUp PgUp PgUp PgUp");
    assert!(text(&state).iter().any(|line| line.ends_with("fact 6 of the history")));
    press(&mut state, "PgDn PgDn PgDn PgDn PgDn PgDn");
    assert!(last(&state).ends_with("fact 45 of the history"), "{}", last(&state));
}
