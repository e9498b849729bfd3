//! What limits a storm's pool from outside, by seed: the hours in which it may be worked on, and the cores it may take.
//! A pool that draws neither is the pool it would be without this file.

use super::draw::{moment, one_of};
use super::scenario::{Meter, Scenario, Wish, changed};
use crate::ambient::Dice;
use crate::model::calendar::{Cron, Window, Windows, Zone};
use crate::model::machine::DeleteRequest;
use crate::model::plan::AskVerb;
use crate::model::policy::Owner;
use crate::model::time::{Span, Time};
use crate::world::{Deed, HOUR, MINUTE, Native};

/// Machines above which windows are wide: at one at a time, three hundred would not be done within a rehearsal.
const MANY: u32 = 15;

/// When clocks are turned, and whose: an hour forward and back, and half an hour.
const TURNS: [(&str, &str); 6] = [
    ("Europe/Berlin", "2026-03-29T01:00:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
];

/// Zones with odd minutes among them.
const ZONES: [&str; 5] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "America/St_Johns"];

/// A third of the pools may be worked on only at times; some of the storms blow while the clocks are turned. Before all
/// else that is drawn: it may move the start.
pub(super) fn windows(scenario: &mut Scenario, dice: &mut Dice) {
    if !dice.chance(0.33) {
        return;
    }
    let zone = if dice.chance(0.35) {
        let (zone, turns) = one_of(dice, &TURNS, TURNS[0]);
        let turns = Time::parse(turns).unwrap_or(scenario.start);
        scenario.start = turns.minus(moment(dice, Span::hours(4)));
        zone
    } else {
        one_of(dice, &ZONES, "UTC")
    };
    let zone = Zone::get(zone).unwrap_or_else(|_| Zone::utc());
    let drawn = Drawn { start: scenario.start, storm: scenario.calm_after, zone };
    let wide = scenario.policy.count > MANY;
    let closed = dice.chance(0.12);
    let windows = if closed { drawn.long_ago() } else { drawn.windows(dice, wide) };
    scenario.policy = changed(&scenario.policy, |draft| draft.windows = windows);
    if closed {
        // It never opens by itself: hours after the calm somebody writes another file.
        let at = scenario.calm_after.plus(moment(dice, Span::hours(20)));
        scenario.wishes.push((at, Wish::Windows(Windows::default())));
    } else if dice.chance(0.2) {
        // Somebody closes or moves the windows on the way.
        let at = moment(dice, scenario.calm_after);
        scenario.wishes.push((at, Wish::Windows(drawn.windows(dice, wide))));
    }
    asked(scenario, dice);
}

/// What is asked for inside windows and outside of them.
fn asked(scenario: &mut Scenario, dice: &mut Dice) {
    for _ in 0..dice.below(3) {
        let at = moment(dice, scenario.calm_after);
        let request = DeleteRequest { by: "ann".into(), why: "odd".into(), now: dice.chance(0.3) };
        let wish = match dice.below(6) {
            0 | 1 => Wish::Ask(AskVerb::Refresh),
            2 => Wish::Ask(AskVerb::Abort),
            3 => Wish::Ask(AskVerb::Resume),
            _ => Wish::Delete { nth: dice.below(300) as u32, request },
        };
        scenario.wishes.push((at, wish));
    }
}

/// Windows with dates come and go within this time after the storm.
const SETTLED: Span = Span::hours(10);

/// How finely a day of windows is looked at.
const STEP: Span = Span::minutes(10);

/// What windows are laid around.
struct Drawn {
    start: Time,
    storm: Span,
    zone: Zone,
}

impl Drawn {
    fn windows(&self, dice: &mut Dice, wide: bool) -> Windows {
        let allow = self.allow(dice, wide);
        let denies = allow.is_empty() || dice.chance(0.3);
        let deny = if denies { self.deny(dice) } else { Vec::new() };
        let windows = Windows::new(allow.clone(), deny).unwrap_or_default();
        let least = if wide { 4 } else { 1 };
        if self.open_a_day(&windows) >= Span::hours(least) {
            return windows;
        }
        // One that denies all that others allow would never let a rollout end.
        Windows::new(allow, Vec::new()).unwrap_or_default()
    }

    /// For how long on the day after everything that was drawn has happened.
    fn open_a_day(&self, windows: &Windows) -> Span {
        let from = self.start.plus(self.storm).plus(SETTLED);
        let looks = (0..24 * 6).map(|n| from.plus(STEP.times(n)));
        STEP.times(looks.filter(|at| windows.at(*at).open).count() as i64)
    }

    /// None: always.
    fn allow(&self, dice: &mut Dice, wide: bool) -> Vec<Window> {
        let minute = dice.below(60);
        let hour = dice.below(24);
        match dice.below(if wide { 5 } else { 9 }) {
            0 => Vec::new(),
            1 => self.each(&format!("{minute} * * * *"), 20 + dice.below(30)),
            2 => self.each("*/20 * * * *", 8 + dice.below(10)),
            3 => self.each(&format!("{minute} */3 * * *"), 60 + dice.below(60)),
            // Closes soon after the rollout began, and opens again on each day.
            4 => {
                let ends = Span::minutes(4 + dice.below(50) as i64);
                let mut all = self.dated(Span::hours(-2), ends);
                all.extend(self.each(&format!("{minute} {hour} * * *"), 8 * 60));
                all
            }
            // In the middle of the night, when clocks are turned.
            5 => self.each("30 2 * * *", 60 + dice.below(180)),
            6 => self.each(&format!("{minute} {hour} * * *"), 60 + dice.below(180)),
            7 => self.each("0 9-16 * * 1-6", 60),
            // Once, and later for good.
            _ => {
                let opens = moment(dice, self.storm);
                let mut all = self.dated(opens, opens.plus(Span::minutes(10)));
                let later = self.storm.plus(moment(dice, SETTLED));
                all.extend(self.dated(later, later.plus(Span::days(20))));
                all
            }
        }
    }

    fn deny(&self, dice: &mut Dice) -> Vec<Window> {
        let minute = dice.below(60);
        match dice.below(4) {
            0 => self.each(&format!("{minute} * * * *"), 5 + dice.below(30)),
            1 => self.each("0 0 * * *", 9 * 60),
            // Begins in the storm, and lasts into the calm.
            2 => {
                let from = moment(dice, self.storm);
                self.dated(from, self.storm.plus(moment(dice, SETTLED)))
            }
            _ => {
                let from = moment(dice, self.storm);
                self.dated(from, from.plus(Span::minutes(5 + dice.below(90) as i64)))
            }
        }
    }

    /// What is over already.
    fn long_ago(&self) -> Windows {
        let allow = self.dated(Span::days(-20), Span::days(-19));
        Windows::new(allow, Vec::new()).unwrap_or_default()
    }

    fn each(&self, cron: &str, minutes: u64) -> Vec<Window> {
        let lasts = Span::minutes(minutes as i64);
        let cron = Cron::parse(cron).ok();
        let window = cron.and_then(|cron| Window::recurring(cron, lasts, self.zone.clone()).ok());
        window.into_iter().collect()
    }

    fn dated(&self, from: Span, until: Span) -> Vec<Window> {
        let at = |after: Span| self.start.plus(after).to_string();
        Window::dated(&at(from), &at(until), &self.zone).into_iter().collect()
    }
}

/// A quarter of the pools live in a subscription with few cores, and some of them are told how many are left.
pub(super) fn quota(scenario: &mut Scenario, dice: &mut Dice) {
    if !dice.chance(0.25) {
        return;
    }
    let (count, storm) = (scenario.policy.count, scenario.calm_after);
    let room = |dice: &mut Dice| {
        let more = one_of(dice, &[0, 0, 1, 2, 3, count / 2, count], 1);
        CORES * (count + more)
    };
    scenario.settings.quota_cores = Some(room(dice));
    for _ in 0..dice.below(4) {
        let limit = if dice.chance(0.2) { CORES * count.saturating_sub(1) } else { room(dice) };
        scenario.deeds.push((moment(dice, storm), Deed::SetQuota(Some(limit))));
    }
    let each = one_of(dice, &[0, MINUTE, 10 * MINUTE, HOUR], 0);
    let cloud = Meter::Cloud { each: Span::from_millis(each) };
    scenario.meter = if dice.chance(0.2) { Meter::Nobody } else { cloud };
    for _ in 0..dice.below(3) {
        let says = [0, CORES - 1, CORES, 2 * CORES, 10_000].map(Meter::Says);
        let says = one_of(dice, &says, Meter::Nobody);
        let meter = if dice.chance(0.3) { Meter::Nobody } else { says };
        scenario.wishes.push((moment(dice, storm), Wish::Meter(meter)));
        scenario.wishes.push((storm, Wish::Meter(scenario.meter)));
    }
    lasting(scenario, dice);
}

/// Cores of a machine of these sets.
const CORES: u32 = 4;

/// In some the limit outlasts the storm. Nothing is left to grow into, and still every rollout ends whose pool may miss
/// a machine; where it may not, it waits for more, and is told so by a meter alone: a raise that is refused is tried
/// again for ever.
fn lasting(scenario: &mut Scenario, dice: &mut Dice) {
    let grows = |wish: &Wish| matches!(wish, Wish::Count(_));
    let alone = scenario.policy.owner == Owner::Pool && scenario.set.native == Native::default();
    let grows = scenario.wishes.iter().any(|(_, wish)| grows(wish));
    let told = matches!(scenario.meter, Meter::Cloud { .. });
    if alone && told && !grows && dice.chance(0.4) {
        let more = one_of(dice, &[0, 0, 1, 2], 0);
        scenario.quota_after = Some(CORES * (scenario.policy.count + more));
    }
}
