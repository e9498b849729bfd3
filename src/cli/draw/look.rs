//! The look of a machine: a glyph that is legible without colour, a style, a colour, words.

use crate::cli::term::Style;
use crate::sim::{Segment, Timeline, TimelineState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrawStyle {
    Failed,
    Deleting,
    Draining,
    OutOfService,
    Updating,
    Booting,
    Settling,
    Old,
    New,
}

impl DrawStyle {
    /// In the order of the legend, which follows a replacement from the old machine to the new one.
    pub const ALL: [DrawStyle; 9] = [
        DrawStyle::Old,
        DrawStyle::Draining,
        DrawStyle::OutOfService,
        DrawStyle::Deleting,
        DrawStyle::Booting,
        DrawStyle::Settling,
        DrawStyle::New,
        DrawStyle::Updating,
        DrawStyle::Failed,
    ];

    pub fn of(segment: &Segment, timeline: &Timeline) -> DrawStyle {
        match segment.doing {
            TimelineState::Booting => DrawStyle::Booting,
            TimelineState::Settling => DrawStyle::Settling,
            TimelineState::Serving if segment.model == timeline.target => DrawStyle::New,
            TimelineState::Serving => DrawStyle::Old,
            TimelineState::Draining => DrawStyle::Draining,
            TimelineState::OutOfService => DrawStyle::OutOfService,
            TimelineState::Updating => DrawStyle::Updating,
            TimelineState::Deleting => DrawStyle::Deleting,
            TimelineState::Failed => DrawStyle::Failed,
        }
    }

    pub const fn glyph(self) -> char {
        match self {
            DrawStyle::Old => '░',
            DrawStyle::New => '█',
            DrawStyle::Booting => '·',
            DrawStyle::Settling => '▒',
            DrawStyle::Draining => '▽',
            DrawStyle::OutOfService => '▿',
            DrawStyle::Updating => '~',
            DrawStyle::Deleting => '×',
            DrawStyle::Failed => '!',
        }
    }

    pub const fn style(self) -> Style {
        match self {
            DrawStyle::Old => Style::Dim,
            DrawStyle::New => Style::Green,
            DrawStyle::Booting | DrawStyle::Settling => Style::Cyan,
            DrawStyle::Draining
            | DrawStyle::OutOfService
            | DrawStyle::Updating
            | DrawStyle::Deleting => Style::Yellow,
            DrawStyle::Failed => Style::Red,
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            DrawStyle::Old => "serves, old",
            DrawStyle::New => "serves, new",
            DrawStyle::Booting => "boots",
            DrawStyle::Settling => "settles",
            DrawStyle::Draining => "drains",
            DrawStyle::OutOfService => "out of service",
            DrawStyle::Updating => "updates",
            DrawStyle::Deleting => "leaves",
            DrawStyle::Failed => "failed",
        }
    }

    pub const fn colour(self) -> &'static str {
        match self {
            DrawStyle::Old => "#b8c2cc",
            DrawStyle::New => "#2f9e62",
            DrawStyle::Booting => "#f3c969",
            DrawStyle::Settling => "#a5dcbc",
            DrawStyle::Draining => "#ec9a4c",
            DrawStyle::OutOfService => "#d9b38c",
            DrawStyle::Updating => "#7b8ce0",
            DrawStyle::Deleting => "#8a5a83",
            DrawStyle::Failed => "#d6293e",
        }
    }

    /// The weight of this look in a cell that several looks share: short trouble must stay visible among long stable
    /// periods.
    pub const fn weight(self) -> i64 {
        match self {
            DrawStyle::Failed => 8,
            DrawStyle::Draining | DrawStyle::OutOfService | DrawStyle::Deleting => 3,
            DrawStyle::Booting | DrawStyle::Settling | DrawStyle::Updating => 2,
            DrawStyle::Old | DrawStyle::New => 1,
        }
    }
}

/// The looks that occur in a timeline, in the order of the legend.
pub fn seen(timeline: &Timeline) -> Vec<DrawStyle> {
    let occurs = |look: &DrawStyle| {
        timeline.rows.iter().any(|row| {
            row.segments.iter().any(|s| s.to > timeline.from && DrawStyle::of(s, timeline) == *look)
        })
    };
    DrawStyle::ALL.into_iter().filter(occurs).collect()
}
