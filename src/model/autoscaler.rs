//! The cloud's own autoscaler of a scale set: what its setting says, and what a pool may do beside it.

use std::fmt;
use std::sync::Arc;

use super::action::{Action, ActionKind};
use super::journal::Entry;
use super::time::{Span, Time};
use super::vocabulary::vocabulary;

/// A write of a setting whose answer was lost may land for so long.
pub const WRITE_LANDS: Span = Span::minutes(2);

/// The setting that targets a set. A set has at most one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Autoscaler {
    /// The id of the setting.
    pub setting: Box<str>,
    /// It writes the set's capacity.
    pub enabled: bool,
    /// What holds now. `None`: it could not be read from the profiles.
    pub bounds: Option<AutoscalerBounds>,
    /// `None`: the source does not show it.
    pub document: Option<AutoscalerDocument>,
}

/// A setting as the cloud showed it, to be put back. Addresses in it may hold secrets, so it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct AutoscalerDocument {
    text: Arc<str>,
    rest: Box<str>,
}

impl AutoscalerDocument {
    /// `rest`: a fingerprint of all that a person may have written, but for whether it is enabled.
    pub fn new(text: impl Into<Arc<str>>, rest: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), rest: rest.into() }
    }

    /// For the cloud and the store only.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// They differ at most in whether they are enabled.
    pub fn is_same(&self, other: &AutoscalerDocument) -> bool {
        self.rest == other.rest
    }
}

impl fmt::Debug for AutoscalerDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AutoscalerDocument({})", self.rest)
    }
}

/// A write of a setting: switched off, or back as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoscalerWrite {
    pub setting: Box<str>,
    /// The setting before it was switched off.
    pub document: AutoscalerDocument,
    pub to: AutoscalerTarget,
}

vocabulary! {
    /// What the setting is to be after the write.
    pub enum AutoscalerTarget {
        Suspended = "suspended",
        PutBack = "putBack",
    }
}

impl AutoscalerWrite {
    pub const fn verb(&self) -> ActionKind {
        match self.to {
            AutoscalerTarget::Suspended => ActionKind::SuspendAutoscaler,
            AutoscalerTarget::PutBack => ActionKind::PutBackAutoscaler,
        }
    }

    /// It may replace what is there: nothing of it was edited meanwhile.
    pub fn may_follow(&self, found: &Autoscaler) -> bool {
        self.is_about(found) && found.enabled == (self.to == AutoscalerTarget::Suspended)
    }

    /// What is there is its result.
    pub fn is_done(&self, found: Option<&Autoscaler>) -> bool {
        let done = |found: &Autoscaler| {
            self.is_about(found) && found.enabled == (self.to == AutoscalerTarget::PutBack)
        };
        found.is_some_and(done)
    }

    fn is_about(&self, found: &Autoscaler) -> bool {
        let same = |document: &AutoscalerDocument| self.document.is_same(document);
        found.setting.eq_ignore_ascii_case(&self.setting)
            && found.document.as_ref().is_some_and(same)
    }
}

/// The sizes between which the autoscaler keeps the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoscalerBounds {
    /// The profile that applies.
    pub profile: Box<str>,
    pub minimum: u32,
    pub maximum: u32,
}

impl Autoscaler {
    /// The last part of its id.
    pub fn name(&self) -> &str {
        last_part(&self.setting)
    }
}

fn last_part(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

/// The autoscaler of the set is switched off for a rollout, or is about to be. What it was like is in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    pub setting: Box<str>,
    /// The fingerprint of the setting that is owed to the set.
    pub rest: Box<str>,
    pub since: Time,
    pub stage: SuspensionStage,
    /// The size meanwhile: what the autoscaler asked for last, within what it allows.
    pub base: Option<u32>,
    /// Since when no rollout has needed it.
    pub unused: Option<Time>,
    /// Writes that no read has shown, and the earliest time of the next.
    pub tries: u32,
    pub next: Option<Time>,
    /// The answer to a write that puts it back was lost: it may land in reads begun before this.
    pub lands: Option<Time>,
}

impl Suspension {
    pub fn name(&self) -> &str {
        last_part(&self.setting)
    }

    pub fn names(&self, found: &Autoscaler) -> bool {
        self.setting.eq_ignore_ascii_case(&found.setting)
    }

    /// What is owed was not edited.
    pub fn is_as_it_was(&self, found: &Autoscaler) -> bool {
        found.document.as_ref().is_some_and(|document| document.rest() == &*self.rest)
    }

    /// What is to be put back: the journal keeps the entry for as long as it is owed.
    pub fn owed<'e>(&self, entries: &'e [Entry]) -> Option<&'e AutoscalerDocument> {
        let mut newest = entries.iter().rev();
        newest.find(|entry| self.rests_on(entry)).and_then(|entry| match &entry.action {
            Action::WriteAutoscaler { write, .. } => Some(&write.document),
            _ => None,
        })
    }

    /// One of the writes that switch it off may land after this read, although no read showed it.
    pub fn may_still_land(&self, entries: &[Entry], read_at: Time) -> bool {
        let ours = entries.iter().filter(|entry| self.rests_on(entry));
        let ended = |entry: &Entry| entry.outcome().map(|(at, _)| at);
        // `None`: one has not ended.
        let last = ours.map(ended).try_fold(self.since, |last, at| Some(last.max(at?)));
        last.is_none_or(|last| read_at < last.plus(WRITE_LANDS))
    }

    /// This entry has what is to be put back.
    pub fn rests_on(&self, entry: &Entry) -> bool {
        matches!(&entry.action, Action::WriteAutoscaler { write, .. }
            if write.to == AutoscalerTarget::Suspended
                && write.setting == self.setting
                && write.document.rest() == &*self.rest)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspensionStage {
    /// The write that switches it off was decided, and no read shows that it happened.
    Asked,
    /// A read showed it switched off.
    Off { since: Time },
    /// Another client switched it on again while a rollout was open.
    Overruled,
}

/// Written in the document, it is the consent to work beside the autoscaler of the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoscalerPolicy {
    pub during: DuringRollout,
    /// The id of the setting that is meant; `None`: whichever targets the set.
    pub setting: Option<Box<str>>,
}

/// What happens to the autoscaler while a rollout is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuringRollout {
    /// It stays on: a rollout goes no higher than its maximum.
    Keep,
    /// It is switched off, and put back afterwards.
    Suspend,
}

impl AutoscalerPolicy {
    pub fn means(&self, found: &Autoscaler) -> bool {
        self.setting.as_ref().is_none_or(|named| named.eq_ignore_ascii_case(&found.setting))
    }
}

/// As a person reads it: `2 to 8 machines (profile night)`.
impl fmt::Display for AutoscalerBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} machines (profile {})", self.minimum, self.maximum, self.profile)
    }
}
