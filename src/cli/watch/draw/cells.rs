//! Machines as cells, by zone: the look of each, and how many stand on a line.

use std::ops::Range;

use crate::api::v1::resources::machines::MachineStatus;
use crate::cli::draw::look::DrawStyle;
use crate::cli::term::Style;
use crate::cli::text::width;
use crate::model::action::MachineClass;
use crate::model::machine::{Condition, Lifecycle};

/// With more machines than this, or longer ids, a machine is one sign without its id.
const WITH_IDS: usize = 120;
const LONGEST_ID: usize = 8;
/// The column of the zones.
pub(super) const ZONE: usize = 8;

/// The look of a machine on the screen: that of `simulate`, or one of those that only real pools have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MachineLook {
    Drawn(DrawStyle),
    /// A person holds it.
    Hold,
    /// Azure does not say in which state it is.
    Unknown,
}

impl MachineLook {
    /// In the order of the legend.
    pub fn all() -> impl Iterator<Item = Self> {
        let drawn = DrawStyle::ALL.into_iter().map(MachineLook::Drawn);
        drawn.chain([MachineLook::Hold, MachineLook::Unknown])
    }

    pub fn of(machine: &MachineStatus) -> Self {
        MachineLook::Drawn(match (machine.lifecycle.0, machine.condition.0, machine.class()) {
            (Lifecycle::Deleting, ..) | (_, Condition::Deleting, _) => DrawStyle::Deleting,
            (Lifecycle::Draining | Lifecycle::Drained, ..) => DrawStyle::Draining,
            (Lifecycle::Updating, ..) => DrawStyle::Updating,
            (Lifecycle::CutOff | Lifecycle::Standby, ..) => DrawStyle::OutOfService,
            (_, Condition::Unknown, _) => return MachineLook::Unknown,
            (_, Condition::Provisioning, _) => DrawStyle::Booting,
            (_, Condition::Unready | Condition::Failed | Condition::Stopped, _) => {
                if machine.ever_available { DrawStyle::Failed } else { DrawStyle::Booting }
            }
            _ if machine.hold.is_some() => return MachineLook::Hold,
            (.., Some(MachineClass::NotYetAvailable)) => DrawStyle::Settling,
            (.., Some(MachineClass::Outdated)) => DrawStyle::Old,
            _ => DrawStyle::New,
        })
    }

    pub const fn glyph(self, unicode: bool) -> char {
        match self {
            MachineLook::Hold => 'H',
            MachineLook::Unknown => '?',
            MachineLook::Drawn(look) if unicode => look.glyph(),
            MachineLook::Drawn(look) => match look {
                DrawStyle::Old => 'o',
                DrawStyle::New => '#',
                DrawStyle::Booting => '.',
                DrawStyle::Settling => '+',
                DrawStyle::Draining => 'v',
                DrawStyle::OutOfService => 'u',
                DrawStyle::Updating => '~',
                DrawStyle::Deleting => 'x',
                DrawStyle::Failed => '!',
            },
        }
    }

    pub const fn style(self) -> Style {
        match self {
            MachineLook::Hold | MachineLook::Unknown => Style::Yellow,
            MachineLook::Drawn(look) => look.style(),
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            MachineLook::Hold => "held",
            MachineLook::Unknown => "unknown",
            MachineLook::Drawn(look) => look.words(),
        }
    }
}

/// One line of machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FleetLine {
    /// The zone, on its first line.
    pub zone: Option<String>,
    /// Their places among the machines of the pool.
    pub machines: Range<usize>,
}

/// How the machines of a pool are laid out.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli::watch) struct Fleet {
    pub(super) lines: Vec<FleetLine>,
    /// Columns of an id; `None`: there is no room for ids.
    pub(super) id: Option<usize>,
    /// The machines have zones, which stand at the beginning of each line.
    pub(super) has_zones: bool,
}

impl Fleet {
    /// Of machines in the order of the screen, on a screen of `wide` columns.
    pub(in crate::cli::watch) fn of(machines: &[&MachineStatus], wide: usize) -> Self {
        let longest = machines.iter().map(|machine| width(&machine.id)).max().unwrap_or(0).max(2);
        let id = (machines.len() <= WITH_IDS && longest <= LONGEST_ID).then_some(longest);
        let has_zones = machines.iter().any(|machine| machine.zone.is_some());
        let indent = if has_zones { ZONE } else { 1 };
        // A space, the id, a space, two signs; or one sign alone.
        let cell = id.map_or(1, |id| id + 4);
        let abreast = (wide.saturating_sub(indent) / cell).max(1);
        let mut lines = Vec::new();
        let mut from = 0;
        for zone in machines.chunk_by(|a, b| a.zone == b.zone) {
            let end = from + zone.len();
            let name = zone.first().and_then(|machine| machine.zone.clone());
            let mut name = if has_zones { Some(name.unwrap_or_default()) } else { None };
            while from < end {
                let to = (from + abreast).min(end);
                lines.push(FleetLine { zone: name.take(), machines: from..to });
                from = to;
            }
        }
        Self { lines, id, has_zones }
    }

    /// The line of a machine.
    pub(super) fn line(&self, at: usize) -> Option<usize> {
        self.lines.iter().position(|line| line.machines.contains(&at))
    }

    /// The machine above or below another.
    pub(in crate::cli::watch) fn beside(&self, at: Option<usize>, below: bool) -> usize {
        let Some(at) = at else { return 0 };
        let Some(line) = self.line(at) else { return 0 };
        let other = if below { Some(line + 1) } else { line.checked_sub(1) };
        let here = self.lines.get(line).map_or(0, |line| at - line.machines.start);
        match other.and_then(|other| self.lines.get(other)) {
            Some(line) => (line.machines.start + here).min(line.machines.end.saturating_sub(1)),
            None => at,
        }
    }
}
