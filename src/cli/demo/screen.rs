//! The picture: the fleet, the progress, the holds, and the latest lines.

use std::fmt::Write as _;

use super::sight::{DemoSight, DemoView};
use super::words::{Speaker, Words};
use crate::cli::draw::axis::clock;
use crate::cli::draw::look::DrawStyle;
use crate::cli::table::push_line;
use crate::cli::term::{Style, Term};
use crate::cli::text::{cut, short, width};
use crate::model::ids::Key;
use crate::model::time::Time;

/// Size of the picture: terminals are at least this large. A larger picture could not be redrawn in place.
pub const WIDE: usize = 78;
pub const TALL: usize = 23;

/// Machines per line of the fleet, each 7 columns wide.
const ABREAST: usize = 11;
/// Lines of the fleet, always drawn so that the picture does not jump: one more than the pool fills, for records of
/// machines that were just deleted.
const ROWS: usize = 4;
/// Slots that are drawn even when empty: as many as the pool may have machines.
const BERTHS: usize = 3 * ABREAST;
/// Width of the progress bar.
const BAR: usize = 40;
const HOLDS: usize = 2;
/// The fewest latest lines to show; a tall terminal shows more.
const LINES: usize = 8;
/// The column where text begins, after the clock.
const INDENT: usize = 11;

/// What stays the same from picture to picture, and the slot of each machine.
#[derive(Debug)]
pub struct Screen {
    term: Term,
    began: Time,
    times: u32,
    api: String,
    berths: Vec<Option<Key>>,
    /// Latest lines to show.
    lines: usize,
}

impl Screen {
    pub fn new(term: Term, began: Time, times: u32, api: String) -> Self {
        // The rest of the picture, and a line for the cursor.
        let rest = TALL - LINES + 1;
        let lines = term.height.map_or(LINES, |tall| tall.saturating_sub(rest).max(LINES));
        let term = Term { width: Some(WIDE), ..term };
        Self { term, began, times, api, berths: vec![None; ROWS * ABREAST], lines }
    }

    pub fn draw(&mut self, sight: &DemoSight, history: &[Words]) -> String {
        self.moor(&sight.machines);
        let mut page = String::new();
        self.title(sight, &mut page);
        page.push('\n');
        for (n, berths) in self.berths.chunks(ABREAST).take(ROWS).enumerate() {
            self.row(berths, n < BERTHS / ABREAST, sight, &mut page);
        }
        self.legend(&mut page);
        page.push('\n');
        let ends = sight.ends.filter(|at| *at > sight.at && sight.done < sight.total);
        let ends = ends
            .map_or_else(String::new, |at| format!(", about {} to go", short(at.since(sight.at))));
        self.bar(sight.progress(), &ends, &mut page);
        self.numbers(sight, &mut page);
        page.push('\n');
        self.holds(sight, &mut page);
        self.history(history, &mut page);
        page
    }

    /// The picture after the rollout: short, so that the title stays on the screen above the result.
    pub fn draw_end(&mut self, sight: &DemoSight) -> String {
        self.moor(&sight.machines);
        let mut page = String::new();
        self.title(sight, &mut page);
        let taken: Vec<_> = self.berths.iter().filter(|berth| berth.is_some()).cloned().collect();
        for berths in taken.chunks(ABREAST) {
            self.row(berths, false, sight, &mut page);
        }
        self.bar((sight.numbers.desired, sight.numbers.desired), "", &mut page);
        self.numbers(sight, &mut page);
        page
    }

    /// Assigns slots: a new machine takes the first free slot and keeps it.
    fn moor(&mut self, machines: &[DemoView]) {
        for berth in &mut self.berths {
            let is_there = |key: &Key| machines.iter().any(|machine| machine.key == *key);
            if berth.as_ref().is_some_and(|key| !is_there(key)) {
                *berth = None;
            }
        }
        for machine in machines {
            if self.berths.contains(&Some(machine.key.clone())) {
                continue;
            }
            match self.berths.iter_mut().find(|berth| berth.is_none()) {
                Some(berth) => *berth = Some(machine.key.clone()),
                None => self.berths.push(Some(machine.key.clone())),
            }
        }
    }

    fn title(&self, sight: &DemoSight, page: &mut String) {
        let title = "  A pool gets a new image, and keeps serving";
        let passed = clock(sight.at.since(self.began).millis());
        let pace = format!("{passed}, {} times as fast", self.times);
        let pad = " ".repeat(WIDE.saturating_sub(width(title) + width(&pace)));
        let title = self.term.paint(Style::Bold, title);
        push_line(page, &format!("{title}{pad}{}", self.term.paint(Style::Dim, &pace)));
    }

    /// A line of the fleet. `is_marked`: free slots are drawn too.
    fn row(&self, berths: &[Option<Key>], is_marked: bool, sight: &DemoSight, page: &mut String) {
        let mut line = String::from(" ");
        for berth in berths {
            let here = berth.as_ref();
            let here = here.and_then(|key| sight.machines.iter().find(|m| m.key == *key));
            let Some(machine) = here else {
                let free = if is_marked { "     --" } else { "       " };
                line.push_str(&self.term.paint(Style::Dim, free));
                continue;
            };
            let glyphs = machine.look.glyph().to_string().repeat(2);
            let painted = self.term.paint(machine.look.style(), &glyphs);
            // Writing to a string cannot fail.
            let _ = write!(line, " {:>3} {painted}", cut(&machine.id, 3));
        }
        push_line(page, &line);
    }

    fn legend(&self, page: &mut String) {
        let looks = [
            DrawStyle::Old,
            DrawStyle::Deleting,
            DrawStyle::Booting,
            DrawStyle::Settling,
            DrawStyle::New,
            DrawStyle::Failed,
        ];
        let entry = |look: DrawStyle| {
            format!("{} {}", self.term.paint(look.style(), &look.glyph().to_string()), look.words())
        };
        push_line(page, &format!("  {}", looks.map(entry).join("  ")));
    }

    fn bar(&self, (done, total): (u32, u32), ends: &str, page: &mut String) {
        let full = (BAR * done as usize / total.max(1) as usize).min(BAR);
        let bar = self.term.paint(Style::Green, &"█".repeat(full));
        let rest = self.term.paint(Style::Dim, &"░".repeat(BAR - full));
        push_line(page, &format!("  {bar}{rest}  {done} of {total}{ends}"));
    }

    fn numbers(&self, sight: &DemoSight, page: &mut String) {
        let (numbers, limits, calls) = (sight.numbers, sight.limits, sight.calls);
        let good = |number: u32| self.term.paint(Style::Green, &number.to_string());
        push_line(
            page,
            &format!(
                "  in service {} (at least {})   alive {} (at most {})   calls {}, throttled {}",
                good(numbers.available),
                limits.floor,
                good(numbers.exist),
                limits.ceiling,
                calls.made,
                calls.throttled
            ),
        );
    }

    /// The holds, always on the same number of lines, so that the picture does not jump.
    fn holds(&self, sight: &DemoSight, page: &mut String) {
        for n in 0..HOLDS {
            match sight.holds.get(n) {
                Some(hold) => {
                    let label = if n == 0 { "  waiting  " } else { "           " };
                    let label = self.term.paint(Style::Yellow, label);
                    push_line(page, &format!("{label}{}", cut(hold, WIDE - INDENT)));
                }
                None => page.push('\n'),
            }
        }
        page.push('\n');
    }

    fn history(&self, history: &[Words], page: &mut String) {
        let shown = history.get(history.len().saturating_sub(self.lines)..).unwrap_or_default();
        for words in shown {
            let when = self.term.paint(Style::Dim, &self.when(words));
            push_line(page, &format!("{when}{}", self.say(words, WIDE - INDENT)));
        }
        for _ in shown.len()..self.lines {
            page.push('\n');
        }
        let door = format!("  API {} (`poolkeeper get`)   Ctrl-C ends", self.api);
        push_line(page, &self.term.paint(Style::Dim, &cut(&door, WIDE)));
    }

    fn when(&self, words: &Words) -> String {
        let clock = clock(words.at.since(self.began).millis());
        format!("{clock:>width$}  ", width = INDENT - 2)
    }

    fn say(&self, words: &Words, room: usize) -> String {
        let style = match words.by {
            Speaker::Daemon => Style::Cyan,
            Speaker::World => Style::Plain,
            Speaker::Fate => Style::Yellow,
        };
        self.term.paint(style, &cut(&words.say, room))
    }

    /// A line of the output without a picture.
    pub fn line(&self, words: &Words) -> String {
        format!("{}{}\n", self.when(words), self.say(words, usize::MAX))
    }
}
