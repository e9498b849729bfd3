//! Every state of small pools, reachable or not, explored with the production planner.
//!
//! A state is a multiset of machine kinds. From each state every turn and every calm event is followed; no law may be
//! broken, no state may be a dead end without a named outside cause, and no cycle may exist without an outside event.
//! `POOLKEEPER_EXHAUSTIVE=6` explores six machines instead of five.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what cannot be stops"
)]

mod explore;
mod kinds;
mod laws;

use explore::{Found, Setting, explore};
use kinds::multisets;

fn settings() -> Vec<Setting> {
    let open = Setting {
        name: "ramp off",
        ramp: false,
        checkpoint: None,
        paused: false,
        late_capacity: false,
    };
    vec![
        open,
        Setting {
            name: "ramp off, capacity falls when a delete is done",
            late_capacity: true,
            ..open
        },
        Setting { name: "ramp 1, 2, 4", ramp: true, ..open },
        Setting { name: "ramp, checkpoint at 1", ramp: true, checkpoint: Some(1), ..open },
        Setting { name: "ramp, checkpoint at 2", ramp: true, checkpoint: Some(2), ..open },
        Setting { name: "paused", paused: true, ..open },
    ]
}

#[test]
fn every_small_pool_is_safe_and_ends() {
    let top = std::env::var("POOLKEEPER_EXHAUSTIVE").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let states = multisets(top);
    let mut all = Vec::new();
    for setting in settings() {
        for desired in 0..=4 {
            for (surge, unavailable) in
                (0..9).map(|n| (n / 3, n % 3)).filter(|pair| *pair != (0, 0))
            {
                all.push((setting, desired, surge, unavailable));
            }
        }
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let results: Vec<(usize, Found)> = std::thread::scope(|scope| {
        let shares = (0..cores).map(|core| {
            let (all, states) = (&all, &states);
            scope.spawn(move || {
                let mine = all.iter().enumerate().skip(core).step_by(cores);
                mine.map(|(at, (setting, d, s, u))| (at, explore(states, *setting, *d, *s, *u)))
                    .collect::<Vec<_>>()
            })
        });
        let shares: Vec<_> = shares.collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    let mut broken = Vec::new();
    for setting in settings() {
        let of = |at: &usize| all[*at].0.name == setting.name;
        let mine: Vec<&Found> =
            results.iter().filter(|(at, _)| of(at)).map(|(_, found)| found).collect();
        println!(
            "{:<48} {:>9} states {:>10} edges, longest calm path {}, waiting for a person {}",
            setting.name,
            mine.iter().map(|f| f.states).sum::<usize>(),
            mine.iter().map(|f| f.edges).sum::<usize>(),
            mine.iter().map(|f| f.longest).max().unwrap_or(0),
            mine.iter().map(|f| f.waiting).sum::<usize>(),
        );
        broken.extend(mine.iter().flat_map(|found| found.broken.iter().cloned()));
    }
    broken.sort();
    broken.dedup_by(|a, b| a.split(':').next() == b.split(':').next());
    assert!(broken.is_empty(), "{} kinds of breach:\n{}", broken.len(), broken.join("\n"));
}
