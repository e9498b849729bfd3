//! What a machine looks like: a glyph that is legible without colour, a style, a colour, words.

use crate::cli::term::Style;
use crate::sim::{Doing, Segment, Timeline};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    Failed,
    Deleting,
    Draining,
    Updating,
    Booting,
    Settling,
    Old,
    New,
}

impl Look {
    /// In the order of a legend: a life from its start to its end.
    pub const ALL: [Look; 8] = [
        Look::Old,
        Look::Draining,
        Look::Deleting,
        Look::Booting,
        Look::Settling,
        Look::New,
        Look::Updating,
        Look::Failed,
    ];

    pub fn of(segment: &Segment, timeline: &Timeline) -> Look {
        match segment.doing {
            Doing::Booting => Look::Booting,
            Doing::Settling => Look::Settling,
            Doing::Serving if segment.model == timeline.target => Look::New,
            Doing::Serving => Look::Old,
            Doing::Draining => Look::Draining,
            Doing::Updating => Look::Updating,
            Doing::Deleting => Look::Deleting,
            Doing::Failed => Look::Failed,
        }
    }

    pub const fn glyph(self) -> char {
        match self {
            Look::Old => '░',
            Look::New => '█',
            Look::Booting => '·',
            Look::Settling => '▒',
            Look::Draining => '▽',
            Look::Updating => '~',
            Look::Deleting => '×',
            Look::Failed => '!',
        }
    }

    pub const fn style(self) -> Style {
        match self {
            Look::Old => Style::Dim,
            Look::New => Style::Green,
            Look::Booting | Look::Settling => Style::Cyan,
            Look::Draining | Look::Updating | Look::Deleting => Style::Yellow,
            Look::Failed => Style::Red,
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Look::Old => "serves, old",
            Look::New => "serves, new",
            Look::Booting => "boots",
            Look::Settling => "settles",
            Look::Draining => "drains",
            Look::Updating => "is updated",
            Look::Deleting => "is deleted",
            Look::Failed => "failed",
        }
    }

    pub const fn colour(self) -> &'static str {
        match self {
            Look::Old => "#b8c2cc",
            Look::New => "#2f9e62",
            Look::Booting => "#f3c969",
            Look::Settling => "#a5dcbc",
            Look::Draining => "#ec9a4c",
            Look::Updating => "#7b8ce0",
            Look::Deleting => "#8a5a83",
            Look::Failed => "#d6293e",
        }
    }

    /// How much a moment of it counts where many share a cell, so that short troubles are not drowned by long peace.
    pub const fn weight(self) -> i64 {
        match self {
            Look::Failed => 8,
            Look::Draining | Look::Deleting => 3,
            Look::Booting | Look::Settling | Look::Updating => 2,
            Look::Old | Look::New => 1,
        }
    }
}

/// Those that occur in a timeline, in the order of a legend.
pub fn seen(timeline: &Timeline) -> Vec<Look> {
    let occurs = |look: &Look| {
        timeline.rows.iter().any(|row| {
            row.segments.iter().any(|s| s.to > timeline.from && Look::of(s, timeline) == *look)
        })
    };
    Look::ALL.into_iter().filter(occurs).collect()
}
