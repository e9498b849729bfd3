//! External limits of a storm's pool, by seed: maintenance windows and available cores. A pool that draws neither is
//! unaffected by this file.

use super::generate::{moment, one_of};
use super::scenario::{QuotaSource, Scenario, UserAction, changed};
use crate::ambient::Dice;
use crate::model::calendar::{Cron, ScheduleZone, Window, Windows};
use crate::model::machine::DeleteRequest;
use crate::model::plan::CommandVerb;
use crate::model::policy::Owner;
use crate::model::time::{Span, Time};
use crate::world::{ExternalEvent, HOUR, MINUTE, PlatformSpec};

/// Pools above this size get wide windows: one at a time, three hundred machines would not finish within a rehearsal.
const MANY: u32 = 15;

/// Clock changes and their zones: an hour forward and back, and half an hour.
const TURNS: [(&str, &str); 6] = [
    ("Europe/Berlin", "2026-03-29T01:00:00Z"),
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
];

/// Includes zones with offsets that are not whole hours.
const ZONES: [&str; 5] =
    ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "America/St_Johns"];

/// A third of the pools have windows; some of their storms occur during a clock change. Drawn first, because it may
/// move the start.
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
    let zone = ScheduleZone::get(zone).unwrap_or_else(|_| ScheduleZone::utc());
    let drawn = Drawn { start: scenario.start, storm: scenario.calm_after, zone };
    let wide = scenario.policy.count > MANY;
    let closed = dice.chance(0.12);
    let windows = if closed { drawn.long_ago() } else { drawn.windows(dice, wide) };
    scenario.policy = changed(&scenario.policy, |draft| draft.windows = windows);
    if closed {
        // It never opens by itself: hours after the calm an operator writes another file.
        let at = scenario.calm_after.plus(moment(dice, Span::hours(20)));
        scenario.wishes.push((at, UserAction::Windows(Windows::default())));
    } else if dice.chance(0.2) {
        // An operator closes or moves the windows during the storm.
        let at = moment(dice, scenario.calm_after);
        scenario.wishes.push((at, UserAction::Windows(drawn.windows(dice, wide))));
    }
    asked(scenario, dice);
}

/// Commands given inside and outside windows.
fn asked(scenario: &mut Scenario, dice: &mut Dice) {
    for _ in 0..dice.below(3) {
        let at = moment(dice, scenario.calm_after);
        let request = DeleteRequest { by: "ann".into(), why: "odd".into(), now: dice.chance(0.3) };
        let wish = match dice.below(6) {
            0 | 1 => UserAction::Ask(CommandVerb::Refresh),
            2 => UserAction::Ask(CommandVerb::Abort),
            3 => UserAction::Ask(CommandVerb::Resume),
            _ => UserAction::Delete { nth: dice.below(300) as u32, request },
        };
        scenario.wishes.push((at, wish));
    }
}

/// Dated windows begin and end within this time after the storm.
const SETTLED: Span = Span::hours(10);

/// Sampling step for a day of windows.
const STEP: Span = Span::minutes(10);

/// What windows are placed around.
struct Drawn {
    start: Time,
    storm: Span,
    zone: ScheduleZone,
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
        // A deny list that covers all allowed windows would never let a rollout end.
        Windows::new(allow, Vec::new()).unwrap_or_default()
    }

    /// How long the pool is open on the day after every drawn event.
    fn open_a_day(&self, windows: &Windows) -> Span {
        let from = self.start.plus(self.storm).plus(SETTLED);
        let looks = (0..24 * 6).map(|n| from.plus(STEP.times(n)));
        STEP.times(looks.filter(|at| windows.at(*at).open).count() as i64)
    }

    /// Empty: always open.
    fn allow(&self, dice: &mut Dice, wide: bool) -> Vec<Window> {
        let minute = dice.below(60);
        let hour = dice.below(24);
        match dice.below(if wide { 5 } else { 9 }) {
            0 => Vec::new(),
            1 => self.each(&format!("{minute} * * * *"), 20 + dice.below(30)),
            2 => self.each("*/20 * * * *", 8 + dice.below(10)),
            3 => self.each(&format!("{minute} */3 * * *"), 60 + dice.below(60)),
            // Closes soon after the rollout began, and opens again every day.
            4 => {
                let ends = Span::minutes(4 + dice.below(50) as i64);
                let mut all = self.dated(Span::hours(-2), ends);
                all.extend(self.each(&format!("{minute} {hour} * * *"), 8 * 60));
                all
            }
            // In the middle of the night, when clocks change.
            5 => self.each("30 2 * * *", 60 + dice.below(180)),
            6 => self.each(&format!("{minute} {hour} * * *"), 60 + dice.below(180)),
            7 => self.each("0 9-16 * * 1-6", 60),
            // Opens once, and later for good.
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
            // Begins in the storm and lasts into the calm.
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

    /// A window that has already ended.
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

/// A quarter of the pools live in a subscription with few cores, and some of them can read how many are left.
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
        scenario.deeds.push((moment(dice, storm), ExternalEvent::SetQuota(Some(limit))));
    }
    let each = one_of(dice, &[0, MINUTE, 10 * MINUTE, HOUR], 0);
    let cloud = QuotaSource::Cloud { each: Span::from_millis(each) };
    scenario.meter = if dice.chance(0.2) { QuotaSource::Missing } else { cloud };
    for _ in 0..dice.below(3) {
        let says = [0, CORES - 1, CORES, 2 * CORES, 10_000].map(QuotaSource::Says);
        let says = one_of(dice, &says, QuotaSource::Missing);
        let meter = if dice.chance(0.3) { QuotaSource::Missing } else { says };
        scenario.wishes.push((moment(dice, storm), UserAction::Meter(meter)));
        scenario.wishes.push((storm, UserAction::Meter(scenario.meter)));
    }
    lasting(scenario, dice);
}

/// Cores of one machine in these sets.
const CORES: u32 = 4;

/// In some storms the limit lasts into the calm. There is no room to grow, but every rollout still ends if its pool may
/// miss a machine. If it may not, the rollout waits for quota, and only a meter shows that: without one the planner
/// retries the refused raise for ever.
fn lasting(scenario: &mut Scenario, dice: &mut Dice) {
    let grows = |wish: &UserAction| matches!(wish, UserAction::Count(_));
    let alone =
        scenario.policy.owner == Owner::Pool && scenario.set.native == PlatformSpec::default();
    let grows = scenario.wishes.iter().any(|(_, wish)| grows(wish));
    let told = matches!(scenario.meter, QuotaSource::Cloud { .. });
    if alone && told && !grows && dice.chance(0.4) {
        let more = one_of(dice, &[0, 0, 1, 2], 0);
        scenario.quota_after = Some(CORES * (scenario.policy.count + more));
    }
}
