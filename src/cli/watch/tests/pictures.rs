//! What the screen shows.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::golden::golden;
use super::presses::press;
use super::samples::*;
use crate::api::v1::resources::pools::PoolStatus;
use crate::api::v1::resources::stop::StopDetail;
use crate::api::v1::resources::{When, WordOf};
use crate::cli::exit::{CommandFailure, Exit};
use crate::cli::watch::draw::draw;
use crate::cli::watch::state::{Palette, PoolPicture, WatchEvent, WatchPicture, WatchState};
use crate::model::action::MachineClass;
use crate::model::machine::Condition;
use crate::model::time::Span;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (140, 40);

pub fn picture(state: &WatchState) -> Buffer {
    let (wide, tall) = state.size;
    let mut terminal = Terminal::new(TestBackend::new(wide, tall)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            *frame.buffer_mut() = draw(state, area);
        })
        .unwrap();
    terminal.backend().buffer().clone()
}

/// The lines of a picture, without the blanks at their ends.
pub fn text(state: &WatchState) -> Vec<String> {
    let buffer = picture(state);
    let wide = usize::from(buffer.area.width.max(1));
    let line = |cells: &[Cell]| {
        let line: String = cells.iter().map(Cell::symbol).collect();
        line.trim_end().to_owned()
    };
    buffer.content.chunks(wide).map(line).collect()
}

/// Compares with the kept picture, inside a frame that shows its edges.
fn keep(name: &str, state: &WatchState) -> Vec<String> {
    let lines = text(state);
    let (wide, tall) = state.size;
    let framed = format!("|{}\n", lines.join("\n|"));
    golden(&format!("cli/watch/{name}-{wide}x{tall}.txt"), &framed);
    assert_eq!(lines.len(), usize::from(tall), "{framed}");
    lines
}

fn shows(lines: &[String], parts: &[&str]) {
    for part in parts {
        assert!(lines.iter().any(|line| line.contains(part)), "no {part:?} in {lines:#?}");
    }
}

#[test]
fn the_list_of_pools() {
    for size in [SMALL, LARGE] {
        let mut state = of_list(size);
        let lines = keep("list", &state);
        shows(&lines, &["Pools  6 pools: 1 degraded, 1 actionRequired, 1 unknown", "live"]);
        // The worst is first, and selected.
        assert!(lines[3].starts_with("> api "), "{lines:#?}");
        assert!(lines[3].contains("29 of 30") && lines[3].contains("12m"), "{lines:#?}");
        press(&mut state, "Down");
        let lines = text(&state);
        assert!(lines[4].starts_with("> queue "), "{lines:#?}");
        shows(&lines, &["paused: paused by kim: a look first"]);
    }
}

#[test]
fn a_list_that_is_longer_than_the_screen_follows_the_selection() {
    let mut state = WatchState::new(None, RICH, SMALL);
    give(&mut state, list((0..100).map(|n| calm(&format!("pool-{n:03}"))).collect()));
    shows(&text(&state), &["> pool-000", "  pool-018"]);
    press(&mut state, "End");
    let lines = text(&state);
    shows(&lines, &["> pool-099", "  pool-081"]);
    assert!(!lines.iter().any(|line| line.contains("pool-080")), "{lines:#?}");
}

#[test]
fn the_screen_begins_with_the_stop_of_all_pools() {
    let stop = StopDetail {
        since: When(NOW),
        by: "kim".into(),
        why: "quota".into(),
        except: None,
        message: "all pools are stopped since now by kim: quota".into(),
    };
    let status = PoolStatus { stop_all: Some(stop), ..status("web") };
    let mut state = WatchState::new(None, RICH, SMALL);
    give(&mut state, list(vec![status.clone()]));
    let says = "all pools are stopped since now by kim: quota; `poolkeeper resume-all` lifts it";
    assert_eq!(text(&state)[0], says);
    shows(&text(&state), &["Pools  1 pool", "> web"]);
    let mut state = WatchState::new(Some("web"), RICH, SMALL);
    let look = look(&status, machines(5, 1));
    give(&mut state, WatchPicture::Pool(Box::new(PoolPicture { look, lines: lines(3) })));
    assert_eq!(text(&state)[0], says);
}

#[test]
fn one_pool_in_a_rollout() {
    let mut state = of_pool(SMALL, machines(32, 0));
    press(&mut state, "Right Right Right Right");
    let lines = keep("pool", &state);
    shows(
        &lines,
        &[
            "web: ",
            "11 of 30  Progressing  ETA 12m",
            "in service 29 (floor 29)   alive 32 (ceiling 33)   outdated 19   failed 0",
            "[3]",
            "machine   3 Failed, failed, 2.0.0, 1d 6h old; failed",
            "fact 40 of the history",
        ],
    );
    shows(&lines, &["░ serves, old", "× leaves", "· boots", "█ serves, new", "! failed", "H held"]);
}

#[test]
fn a_machine_without_a_state_is_unknown_and_not_deleted() {
    let mut odd = machine("3", None, MachineClass::Unknown);
    odd.condition = WordOf(Condition::Unknown);
    let state = of_pool(SMALL, vec![odd]);
    shows(&text(&state), &["3 ??", " ? unknown"]);
}

#[test]
fn a_narration_stands_above_the_pools() {
    for mut state in [of_list(SMALL), of_pool(SMALL, machines(32, 3))] {
        let without = text(&state);
        state.on(WatchEvent::Narration("A new image follows soon. ".repeat(9)));
        let lines = text(&state);
        assert!(lines[0].starts_with(" A new") && lines[1].starts_with(" new image"), "{lines:#?}");
        assert_eq!(lines[2], "─".repeat(80));
        assert_eq!(lines[3], without[0]);
        assert_eq!(lines[23], without[23]);
    }
}

#[test]
fn one_pool_by_zone_on_a_large_screen() {
    let lines = keep("zones", &of_pool(LARGE, machines(32, 3)));
    shows(&lines, &[" zone 1 ", " zone 2 ", " zone 3 "]);
}

#[test]
fn a_thousand_machines_are_single_signs() {
    for (size, zones) in [(SMALL, 0), (LARGE, 3)] {
        let mut state = of_pool(size, machines(1_000, zones));
        let first = keep("thousand", &state);
        press(&mut state, "End");
        let last = text(&state);
        // The selected machine is on the screen, and the text names it.
        shows(&last, &["machine   99"]);
        assert_ne!(first, last);
        shows(&last, &["fact 40 of the history", "in service"]);
    }
}

#[test]
fn long_names_are_cut_and_ids_make_room() {
    let name = "a-pool-whose-name-is-longer-than-a-column-may-be";
    let mut state = of_list(SMALL);
    press(&mut state, "End Up");
    shows(&text(&state), &["> a-pool-whose-name-is-longer…"]);
    press(&mut state, "Enter");
    let many = (0..30).map(|n| machine(&format!("web_1a2b3c{n:02}"), None, MachineClass::Current));
    let look = look(&PoolStatus { name: name.to_owned(), ..status("web") }, many.collect());
    let picture = PoolPicture { look, lines: lines(3) };
    give(&mut state, WatchPicture::Pool(Box::new(picture)));
    press(&mut state, "Right");
    let lines = keep("long", &state);
    shows(&lines, &[&"█".repeat(30), "machine   web_1a2b3c00 Ready", name]);
}

#[test]
fn a_terminal_without_utf8_gets_ascii_only() {
    let mut state = of_pool(SMALL, machines(32, 3));
    state.palette = Palette { colour: false, unicode: false };
    press(&mut state, "Right");
    let lines = keep("ascii", &state);
    assert!(lines.iter().all(|line| line.is_ascii()), "{lines:#?}");
    shows(&lines, &["o serves, old", "x leaves", ". boots", "# serves, new"]);
}

#[test]
fn times_of_the_history_have_one_width() {
    let mut state = WatchState::new(Some("web"), RICH, SMALL);
    let mut lines = lines(3);
    lines[1].at = When(lines[1].at.0.plus(Span::from_millis(708)));
    let picture = PoolPicture { look: look(&status("web"), machines(3, 0)), lines };
    give(&mut state, WatchPicture::Pool(Box::new(picture)));
    shows(&text(&state), &[" 11:59:50Z  fact 2 of the history", " 12:00:00Z  fact 3"]);
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let lines = keep("small", &of_pool((40, 10), machines(32, 0)));
    shows(&lines, &["needs 60 columns and 16 lines", "this has 40 and 10", "q quits"]);
}

#[test]
fn a_lost_connection_keeps_the_picture_and_says_its_age() {
    let mut state = of_pool(SMALL, machines(32, 0));
    let lost =
        CommandFailure::new(Exit::Unreachable, "unreachable", "the server cannot be reached");
    let subject = state.subject();
    state.on(WatchEvent::Reading(subject, Err(lost)));
    for _ in 0..75 {
        state.on(WatchEvent::Tick);
    }
    let lines = keep("lost", &state);
    shows(&lines, &["not updated for 1m 15s", "the server cannot be reached", "in service 29"]);
}

#[test]
fn help_and_questions() {
    let mut state = of_pool(SMALL, machines(32, 0));
    press(&mut state, "?");
    keep("help", &state);
    press(&mut state, "? A");
    shows(&text(&state), &["abort the rollout of web? type web:"]);
    // A long reason shows its end.
    press(&mut state, "w e b Enter");
    for _ in 0..60 {
        press(&mut state, "x y");
    }
    press(&mut state, "z");
    let lines = text(&state);
    let question = &lines[22];
    assert!(question.starts_with("abort web: why: ") && question.ends_with("xyz"), "{question}");
}

#[test]
fn colour_says_nothing_that_the_signs_do_not_say() {
    let mut state = of_pool(SMALL, machines(32, 0));
    let rich = picture(&state);
    assert!(rich.content.iter().any(|cell| cell.symbol() == "!" && cell.fg == Color::Red));
    assert!(rich.content.iter().any(|cell| cell.symbol() == "█" && cell.fg == Color::Green));
    state.palette.colour = false;
    let plain = picture(&state);
    let is_plain = |cell: &Cell| {
        cell.fg == Color::Reset && cell.bg == Color::Reset && cell.modifier == Modifier::empty()
    };
    assert!(plain.content.iter().all(is_plain));
    let symbols = |buffer: &Buffer| -> Vec<String> {
        buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect()
    };
    assert_eq!(symbols(&rich), symbols(&plain));
    // The selection is marked without colour.
    press(&mut state, "Right");
    let reversed = |cell: &Cell| cell.modifier.contains(Modifier::REVERSED);
    assert!(picture(&state).content.iter().any(reversed));
    assert!(text(&state)[1].starts_with("  [0]"), "{:#?}", text(&state));
}

#[test]
fn every_size_can_be_drawn() {
    let mut states = [of_list((0, 0)), of_pool((0, 0), machines(200, 3))];
    for state in &mut states {
        for keys in ["", "Right", "End", "?", "x A a b"] {
            press(state, keys);
            for wide in (0..150).step_by(7) {
                for tall in 0..45 {
                    let drawn = draw(state, Rect::new(0, 0, wide, tall));
                    assert_eq!(drawn.content.len(), usize::from(wide) * usize::from(tall));
                }
            }
        }
    }
}
