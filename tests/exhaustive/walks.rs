//! Pools too large to be explored whole: each is played from a drawn state, first with upsets, then in a calm in which it
//! must come to rest. Every turn is judged as in the exploration.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use poolkeeper::ambient::Dice;

use super::explore::{Case, Found, follow};
use super::kinds::Kind::*;
use super::kinds::{KINDS, Kind, State};
use super::{Suite, cores};

/// Machines at first, and machines asked for. Twelve with their surge of three are less than a case has slots for.
const MOST: u64 = 12;
const SURGE: u64 = 3;
/// So many turns with upsets.
const UPSETS: u64 = 12;
/// More of one kind would have been unready for so long that they have failed.
const UNREADY: i64 = 6;
/// A calm longer than this does not end.
const CALM_TURNS: usize = 1_000;

/// What the world does when it does not keep its promises. `None`: the machine is gone.
const UPSET: [(Kind, Option<Kind>); 11] = [
    (OldReady, Some(OldUnready)),
    (NewReady, Some(NewUnready)),
    (OldReady, Some(OldFailed)),
    (NewReady, Some(NewFailed)),
    (NewYoung, Some(NewFailed)),
    (OldReady, Some(OldNamed)),
    (NewReady, Some(NewNamed)),
    (OldReady, None),
    (NewReady, None),
    (NewYoung, None),
    (NewUnready, None),
];

#[derive(Debug, Default)]
pub struct Walked {
    pub turns: usize,
    /// Different ones.
    pub states: usize,
    pub walks: usize,
    pub broken: Vec<String>,
}

/// Walks, until so many turns were played.
pub fn until(suites: &[Suite], seed: u64, turns: usize) -> Walked {
    let (next, played) = (AtomicU64::new(0), AtomicUsize::new(0));
    let shares = std::thread::scope(|scope| {
        let share = || {
            let mut walks = Walks::default();
            while played.load(Ordering::Relaxed) < turns {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let before = walks.states.len();
                walks.walk(suites, seed, number);
                played.fetch_add(walks.states.len() - before, Ordering::Relaxed);
            }
            walks
        };
        let shares: Vec<_> = (0..cores()).map(|_| scope.spawn(share)).collect();
        shares.into_iter().map(|share| share.join().unwrap()).collect::<Vec<_>>()
    });
    let mut states: Vec<u64> =
        shares.iter().flat_map(|share| share.states.iter().copied()).collect();
    states.sort_unstable();
    states.dedup();
    Walked {
        turns: played.into_inner(),
        states: states.len(),
        walks: next.into_inner() as usize,
        broken: shares.into_iter().flat_map(|share| share.found.broken).collect(),
    }
}

#[derive(Default)]
struct Walks {
    /// A hash of each state that was met, as often as it was met.
    states: Vec<u64>,
    found: Found,
}

impl Walks {
    fn walk(&mut self, suites: &[Suite], seed: u64, number: u64) {
        let mut dice = Dice::from_seed(seed).branch("walk").branch_number(number);
        let suite = &suites[dice.below(suites.len() as u64) as usize];
        let setting = suite.settings[dice.below(suite.settings.len() as u64) as usize];
        let desired = dice.below(MOST + 1) as u8;
        let budget = 1 + dice.below((SURGE + 1) * (SURGE + 1) - 1) as u8;
        let (surge, unavailable) = (budget / (SURGE as u8 + 1), budget % (SURGE as u8 + 1));
        let case = Case::new(setting, desired, surge, unavailable);
        let place = format!(
            "walk {number} of seed {seed}, D{desired} S{surge} U{unavailable} {}",
            setting.name
        );
        let mut state = drawn(suite, &mut dice);
        for _ in 0..dice.below(UPSETS) {
            let mut next = self.step(&case, &state, &place);
            next.extend(upsets(&state));
            state = pick(&next, &mut dice).unwrap_or(state);
        }
        let mut met = BTreeSet::new();
        while let Some(next) = pick(&self.step(&case, &state, &place), &mut dice) {
            if !met.insert(state) || met.len() > CALM_TURNS {
                self.found.broken.push(format!("cycle: {place}: {}", state.show()));
                return;
            }
            state = next;
        }
    }

    fn step(&mut self, case: &Case, state: &State, place: &str) -> Vec<State> {
        let name = place.split_once(", ").map_or(place, |(_, name)| name);
        let bytes = name.bytes().chain(state.0);
        self.states.push(bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }));
        follow(case, state, place, &mut self.found)
    }
}

fn drawn(suite: &Suite, dice: &mut Dice) -> State {
    let mut state = State([0; KINDS.len()]);
    for _ in 0..dice.below(MOST + 1) {
        // Mostly machines that serve, so that pools look like pools.
        let serves = [OldReady, NewReady, NewYoung][dice.below(3) as usize];
        let any = suite.kinds[dice.below(suite.kinds.len() as u64) as usize];
        let kind = if dice.chance(0.5) { serves } else { any };
        if may_be(&state, kind) {
            state = state.add(kind, 1);
        }
    }
    state
}

fn may_be(state: &State, kind: Kind) -> bool {
    !matches!(kind, OldUnready | NewUnready) || state.of(kind) < UNREADY
}

fn upsets(state: &State) -> Vec<State> {
    let may = |(from, to): &&(Kind, Option<Kind>)| {
        state.of(*from) > 0 && to.is_none_or(|to| may_be(state, to))
    };
    UPSET.iter().filter(may).map(|(from, to)| state.shift(*from, *to, 1)).collect()
}

fn pick(from: &[State], dice: &mut Dice) -> Option<State> {
    from.get(dice.below(from.len() as u64) as usize).copied()
}
