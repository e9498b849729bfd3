//! What is worth telling about a rollout, in a dozen lines.

use crate::cli::draw::Limits;
use crate::cli::draw::axis::Ms;
use crate::cli::draw::steps::{Step, steps};
use crate::cli::text::short;
use crate::model::time::Span;
use crate::sim::{Doing, Outcome, Row, Scenario, Timeline};

/// A machine that boots for so long makes people wonder.
const WONDER: Ms = 4 * 60_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub at: Ms,
    pub say: String,
}

struct Teller<'a> {
    scenario: &'a Scenario,
    timeline: &'a Timeline,
    limits: Limits,
    steps: Vec<Step>,
    moments: Vec<Moment>,
}

pub fn moments(scenario: &Scenario, outcome: &Outcome, limits: Limits) -> Vec<Moment> {
    let timeline = &outcome.timeline;
    let steps = steps(timeline);
    let mut teller = Teller { scenario, timeline, limits, steps, moments: Vec::new() };
    teller.beginning();
    teller.first_replacement();
    teller.shares();
    teller.failures();
    teller.ending(outcome);
    // Of one moment, what was told first comes first.
    teller.moments.sort_by_key(|moment| moment.at);
    teller.moments
}

/// From the new image until the last old machine was gone and the last new one served.
pub fn took(scenario: &Scenario, outcome: &Outcome) -> Option<Span> {
    let before = scenario.deeds.first().map_or(Span::ZERO, |(after, _)| *after);
    let took = outcome.makespan?.millis() - before.millis();
    Some(Span::from_millis(took))
}

/// Machines that came and went without ever serving.
pub fn never_served(timeline: &Timeline) -> impl Iterator<Item = (&Row, Ms)> {
    let came = timeline.rows.iter().filter(|row| row.created >= timeline.from);
    came.filter(|row| row.segments.iter().all(|s| s.doing != Doing::Serving))
        .filter_map(|row| Some((row, begins(row, Doing::Deleting).or(row.gone)?)))
}

fn begins(row: &Row, doing: Doing) -> Option<Ms> {
    row.segments.iter().find(|segment| segment.doing == doing).map(|segment| segment.from)
}

impl Teller<'_> {
    fn tell(&mut self, at: Ms, say: String) {
        self.moments.push(Moment { at, say });
    }

    fn at(&self, at: Ms) -> (u32, u32) {
        let before = self.steps.partition_point(|step| step.at <= at).saturating_sub(1);
        self.steps.get(before).map_or((0, 0), |step| (step.available, step.live))
    }

    fn beginning(&mut self) {
        let Limits { desired, floor, ceiling } = self.limits;
        let from = self.timeline.from;
        self.tell(from, format!("{desired} machines serve, all of the same age."));
        self.tell(
            from,
            format!(
                "The promise: never fewer than {floor} in service, never more than {ceiling} alive."
            ),
        );
        if let Some((after, _)) = self.scenario.deeds.first() {
            let say = format!("Somebody sets a new image: all {desired} are out of date.");
            self.tell(from + after.millis(), say);
        }
    }

    fn first_replacement(&mut self) {
        let timeline = self.timeline;
        let new = |row: &&Row| row.created >= timeline.from;
        if let Some(first) = timeline.rows.iter().filter(new).min_by_key(|row| row.created) {
            let say = format!("m{} is the first machine with it: is the image any good?", first.id);
            self.tell(first.created, say);
        }
        let serves = |row: &Row| Some((begins(row, Doing::Serving)?, row.id.clone()));
        if let Some((at, id)) = timeline.rows.iter().filter(new).filter_map(serves).min() {
            let ready = short(Span::from_millis(timeline.min_ready));
            self.tell(at, format!("m{id} has been ready for {ready}: from now on it counts."));
        }
        let old = timeline.rows.iter().filter(|row| row.created < timeline.from);
        let leaves = |row: &Row| Some((begins(row, Doing::Deleting)?, row.id.clone()));
        if let Some((at, id)) = old.filter_map(leaves).min() {
            let (available, _) = self.at(at);
            let say = format!("m{id} is deleted: it is out of date, and {available} others serve.");
            self.tell(at, say);
        }
    }

    /// A quarter, half, three quarters.
    fn shares(&mut self) {
        let old = self.timeline.rows.iter().filter(|row| row.created < self.timeline.from);
        let mut ends: Vec<Ms> = old.filter_map(|row| row.gone).collect();
        ends.sort_unstable();
        let all = ends.len();
        for (share, words) in [(1, "A quarter"), (2, "Half"), (3, "Three quarters")] {
            let nth = (all * share).div_ceil(4);
            let Some(at) = nth.checked_sub(1).and_then(|n| ends.get(n)).copied() else { continue };
            let (available, live) = self.at(at);
            let say = format!(
                "{words} of the old ones are gone ({nth} of {all}): {available} serve, {live} live."
            );
            self.tell(at, say);
        }
    }

    fn failures(&mut self) {
        let lost: Vec<(Ms, Ms, Box<str>)> = never_served(self.timeline)
            .map(|(row, end)| (row.created, end, row.id.clone()))
            .collect();
        for (created, end, id) in lost {
            if end - created > WONDER {
                self.tell(
                    created + WONDER,
                    format!("m{id} boots and boots. It does not count, so nothing is lost."),
                );
            }
            let took = short(Span::from_millis((end - created) / 60_000 * 60_000));
            let say = format!("m{id} was not ready within {took}: given up, deleted, replaced.");
            self.tell(end, say);
        }
    }

    fn ending(&mut self, outcome: &Outcome) {
        if let (Some(makespan), Some(took)) = (outcome.makespan, took(self.scenario, outcome)) {
            let desired = self.limits.desired;
            let say = format!("All {desired} are new, and nobody noticed: {} in all.", short(took));
            self.tell(self.timeline.from + makespan.millis(), say);
        }
    }
}
