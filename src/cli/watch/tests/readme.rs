//! The picture of the README: the screen in the middle of the demo, as SVG; and whether a demo looks so.

use std::collections::BTreeSet;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use serde_json::to_value;

use super::golden::golden;
use super::pictures::{picture, text};
use super::samples::*;
use crate::api::v1::resources::WordOf;
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::plans::RolloutProgress;
use crate::api::v1::resources::pools::{PoolNumbers, PoolStatus, RolloutStatus};
use crate::cli::client::{Fact, ServerLine};
use crate::cli::draw::canvas::escape;
use crate::cli::page::TimeStyle;
use crate::cli::status::PoolLook;
use crate::cli::watch::reading::read;
use crate::cli::watch::state::{PoolPicture, WatchEvent, WatchPicture, WatchState, WatchSubject};
use crate::model::action::MachineClass;
use crate::model::hold::HoldReason;
use crate::model::machine::Condition;
use crate::model::time::Span;

/// Size of a cell of the terminal, and of the frame.
const CELL: (usize, usize) = (9, 20);
const FRAME: usize = 16;
const STYLE: &str = "text{font:15px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\
.plain{fill:#d0d7de}.bold{fill:#fff;font-weight:600}.dim{fill:#8b949e}.red{fill:#ff7b72}\
.green{fill:#3fb950}.yellow{fill:#d29922}.cyan{fill:#39c5cf}";

/// Parts that the picture shows at any moment of a rollout.
const PARTS: [&str; 10] = [
    "web: ",
    " zone 1 ",
    " zone 2 ",
    " zone 3 ",
    "░ serves, old",
    "█ serves, new",
    " of 30  ",
    "  ETA ",
    " (floor 29)   alive ",
    " (ceiling 33)   outdated ",
];

/// Compares with the kept picture.
pub fn keep(narration: &str) {
    golden("../../config/demo.svg", &svg(&picture(&sample(narration))));
}

/// Compares with the screen of a demo in the middle of its rollout.
pub fn is_of(demo: &ServerLine, narration: &str) {
    let of = read(demo, &WatchSubject::Pool("web".to_owned())).unwrap();
    let (real, kept) = (text(&screen(narration, of)), text(&sample(narration)));
    assert_eq!((&real[..3], real.last()), (&kept[..3], kept.last()));
    for part in PARTS {
        for lines in [&real, &kept] {
            assert!(lines.iter().any(|line| line.contains(part)), "no {part:?} in {lines:#?}");
        }
    }
}

/// Compares its history with what happened in a demo. A fast demo may replace a machine in the turn that sees it fail, and
/// does not say then that it fails.
pub fn tells_of(demo: &[String]) {
    let real: BTreeSet<String> = demo.iter().map(|text| form(text)).collect();
    for fact in facts().into_iter().filter(|fact| !fact.text.contains("Unready")) {
        assert!(real.contains(&form(&fact.text)), "{:?} is not of {real:#?}", fact.text);
    }
}

/// The same for any numbers, and for one machine as for several.
fn form(fact: &str) -> String {
    let words = fact.split(' ').map(|word| match word.trim_end_matches(',') {
        number if number.parse::<u32>().is_ok() => "#",
        "machines" => "machine",
        "serves" => "serve",
        "does" => "do",
        "is" => "are",
        _ => word,
    });
    let mut words: Vec<&str> = words.collect();
    words.dedup();
    words.join(" ")
}

fn screen(narration: &str, picture: WatchPicture) -> WatchState {
    let mut state = WatchState::new(Some("web"), RICH, (80, 24));
    state.is_single = false;
    state.on(WatchEvent::Stream(true));
    state.on(WatchEvent::Narration(narration.to_owned()));
    give(&mut state, picture);
    state
}

fn sample(narration: &str) -> WatchState {
    let of = PoolPicture { look: pool(), lines: Vec::new() };
    let mut state = screen(narration, WatchPicture::Pool(Box::new(of)));
    state.open.as_mut().unwrap().facts = facts();
    state
}

/// Ten of thirty machines are done, and one of them does not serve any more.
fn pool() -> PoolLook {
    let machine = |n: u32| {
        let class = match n {
            10 => MachineClass::Deleting,
            11..30 => MachineClass::Outdated,
            30..41 => MachineClass::Current,
            _ => MachineClass::NotYetAvailable,
        };
        let status = machine(&n.to_string(), Some(&(n % 3 + 1).to_string()), class);
        match n {
            30 => MachineStatus { condition: WordOf(Condition::Unready), ..status },
            41 => MachineStatus { condition: WordOf(Condition::Ready), ..status },
            _ => status,
        }
    };
    let numbers = PoolNumbers { total: 33, available: 29, deleting: 1, ..numbers(30, 19) };
    let holds = vec![
        hold(HoldReason::Floor, "29 available, 29 committed; the floor is 29", None),
        hold(HoldReason::Grace, "1 machine is not serving, within the grace period", None),
    ];
    let status = PoolStatus { numbers: Some(numbers), holds, ..status("web") };
    let of = rollout("web");
    let of = RolloutStatus { progress: RolloutProgress { done: 10, ..of.progress }, ..of };
    let (status, of) = (to_value(status).unwrap(), to_value(of).unwrap());
    let machines = (10..43).map(machine).collect();
    PoolLook::of(&status, &of, machines, None, ready(), TimeStyle::Absolute).unwrap()
}

fn facts() -> Vec<Fact> {
    let facts = [
        (96, "machine 7 deleted; replaced by 39"),
        (70, "machines 38, 39 serve"),
        (64, "machine 30 does not serve any more: Unready"),
        (64, "raised capacity 32 → 33"),
        (41, "machine 8 deleted; replaced by 40"),
        (30, "machine 40 serves"),
        (12, "machine 9 deleted; replaced by 41"),
        (12, "machine 42 is there"),
    ];
    let fact =
        |(ago, text): (i64, &str)| Fact { at: NOW.minus(Span::seconds(ago)), text: text.into() };
    facts.map(fact).into()
}

fn svg(buffer: &Buffer) -> String {
    let (wide, tall) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (wide * CELL.0 + 2 * FRAME, tall * CELL.1 + 2 * FRAME);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" xml:space=\"preserve\">\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (row, cells) in buffer.content.chunks(wide).enumerate() {
        let mut column = 0;
        for run in cells.chunk_by(|a, b| (class(a), shade(a)) == (class(b), shade(b))) {
            svg.push_str(&run_of(run, column, row));
            column += run.len();
        }
    }
    svg + "</svg>\n"
}

/// Blocks become rectangles, which are the same with every font.
fn run_of(run: &[Cell], column: usize, row: usize) -> String {
    let text: String = run.iter().map(Cell::symbol).collect();
    let kept = text.trim_start_matches(' ');
    let x = FRAME + (column + text.len() - kept.len()) * CELL.0;
    let (y, wide) = (FRAME + row * CELL.1, kept.trim_end().chars().count() * CELL.0);
    let class = class(&run[0]);
    match shade(&run[0]) {
        _ if wide == 0 => String::new(),
        Some(shade) => format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"{}\" fill-opacity=\"{shade}\"/>\n",
            y + 2,
            CELL.1 - 4
        ),
        None => format!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{}\" textLength=\"{wide}\">{}</text>\n",
            y + 15,
            escape(kept.trim_end())
        ),
    }
}

fn shade(cell: &Cell) -> Option<&'static str> {
    match cell.symbol() {
        "█" => Some("1"),
        "▒" => Some(".6"),
        "░" => Some(".35"),
        _ => None,
    }
}

fn class(cell: &Cell) -> &'static str {
    match cell.fg {
        Color::Red => "red",
        Color::Green => "green",
        Color::Yellow => "yellow",
        Color::Cyan => "cyan",
        _ if cell.modifier.contains(Modifier::BOLD) => "bold",
        _ if cell.modifier.contains(Modifier::DIM) => "dim",
        _ => "plain",
    }
}
