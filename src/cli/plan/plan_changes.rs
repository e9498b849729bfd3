//! What a pool file changes, and the beginning of a plan's page.

use super::forecast::wanted_fields;
use super::headline::Headline;
use crate::api::v1::snapshot::SnapshotInput;
use crate::cli::diff::changes::{self, KeyChange};
use crate::cli::page::StatusPage;
use crate::cli::term::Style;
use crate::cli::text::wrap;

/// What a pool file changes in the pool of the daemon, and in the model of the scale set.
#[derive(Debug, Default)]
pub(super) struct PlanChanges {
    pub pool: Vec<KeyChange>,
    pub model: Vec<KeyChange>,
}

impl PlanChanges {
    /// What a snapshot shows of them.
    pub fn of(snapshot: &SnapshotInput) -> Self {
        let followed = snapshot.facts.follow.as_ref().map(|follow| &*follow.image);
        let wanted = wanted_fields(&snapshot.policy, followed);
        let both = snapshot.set.model.as_ref().zip(wanted.as_ref());
        let model = both.map(|(has, wanted)| changes::of_model(has, wanted)).unwrap_or_default();
        Self { pool: Vec::new(), model }
    }

    pub const fn is_empty(&self) -> bool {
        self.pool.is_empty() && self.model.is_empty()
    }

    /// The beginning of a page: the headline and the changes.
    pub fn draw(&self, headline: &Headline, page: &mut StatusPage<'_>) {
        let style = match headline.is_pending() {
            _ if headline.is_frozen => Style::Red,
            true => Style::Yellow,
            false => Style::Green,
        };
        for line in wrap(&headline.words(page.times, page.facts.at()), page.term.width) {
            let line = page.term.paint(style, &line);
            page.line(&line);
        }
        for (changes, title, about) in [
            (&self.pool, "Pool", "what the pool file changes in it"),
            (&self.model, "Model", "what is written to the scale set"),
        ] {
            if !changes.is_empty() {
                page.section(title, about);
                changes::draw(changes, page.term, &mut page.text);
            }
        }
    }
}
