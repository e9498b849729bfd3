//! The demo without a terminal, at a speed at which it takes seconds.

use std::cell::RefCell;

use super::director::{DemoNews, Director};
use super::ending::DemoSummary;
use super::obstacle;
use super::stage::DemoStage;
use crate::cli::term::Term;
use crate::cli::text::width;

/// Speed-up: half an hour passes in seconds.
const QUICK: u32 = 300;
/// Steps that are more than enough.
const MANY: usize = 3_000;

#[test]
fn a_terminal_without_a_picture_says_why() {
    let size = |wide, tall| Term { width: Some(wide), height: Some(tall), ..Term::PLAIN };
    assert_eq!(obstacle(size(60, 20), false), None);
    assert_eq!(obstacle(Term { height: None, ..size(160, 1) }, false), None);
    let small = obstacle(size(60, 18), false);
    let say = "Printing lines: a picture needs 60x20, this is 60x18.";
    assert_eq!(small.as_deref(), Some(say));
    assert!(obstacle(size(80, 19), false).is_some() && obstacle(size(59, 24), false).is_some());
    assert!(obstacle(size(100, 50), true).is_some_and(|say| say.contains("TERM")));
}

/// What the demo tells, and its result.
fn played(stage: &DemoStage) -> (Vec<String>, Vec<String>, Box<DemoSummary>) {
    let (script, facts, end) =
        (RefCell::new(Vec::new()), RefCell::new(Vec::new()), RefCell::new(None));
    let tell = |news| match news {
        DemoNews::Script(_, text) => script.borrow_mut().push(text),
        DemoNews::Fact(fact) => facts.borrow_mut().push(fact.text),
        DemoNews::Progress(done, total) => {
            assert!(done <= total && total == 30, "{done} of {total}")
        }
        DemoNews::End(summary) => *end.borrow_mut() = Some(summary),
        DemoNews::Failure(failure) => panic!("{failure}"),
        DemoNews::Signal(signal) => panic!("signal {signal}"),
    };
    let mut director = Director::new(stage, None).unwrap();
    for _ in 0..MANY {
        if director.step(&tell).unwrap() {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    drop(director);
    let end = end.into_inner();
    let (script, facts) = (script.into_inner(), facts.into_inner());
    let end = end.unwrap_or_else(|| panic!("it did not end: {script:#?} {facts:#?}"));
    (script, facts, end)
}

#[test]
fn the_whole_demo_keeps_its_promises() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let anywhere = "127.0.0.1:0".parse().unwrap();
    let stage = runtime.block_on(DemoStage::set_up(Some(anywhere), QUICK)).unwrap();
    let (script, facts, end) = played(&stage);
    for part in ["are outdated", "fails by itself", "with 429"] {
        assert!(script.iter().any(|text| text.contains(part)), "{part}: {script:#?}");
    }
    // On the narrowest screen each takes two lines at most.
    assert!(script.iter().all(|text| width(text) <= 118), "{script:#?}");
    for part in
        ["rollout to 1.1.0 began: 30 machines", "because it had failed", "rollout to 1.1.0 done"]
    {
        assert!(facts.iter().any(|text| text.contains(part)), "{part}: {facts:#?}");
    }
    assert!(end.is_good(), "{end:?}");
    let extremes = stage.extremes().unwrap();
    assert!(extremes.most_there <= 33 && extremes.fewest_ready >= 28, "{extremes:?}");
    // The result and the hints fit a small terminal, with a line for the cursor.
    let small = Term { width: Some(80), height: Some(24), ..Term::PLAIN };
    let page = end.page(small) + &end.hints(small, "target/release/poolkeeper");
    assert!(page.lines().all(|line| width(line) <= 80) && page.lines().count() < 24, "{page}");
    let said = page.replace('\n', " ").contains("failed by itself");
    assert_eq!(said, extremes.fewest_ready < 29, "{page}");
    let document = end.document();
    assert_eq!((&document["outdated"], &document["desired"]), (&0.into(), &30.into()));
    assert!(document["refused"].as_u64().unwrap() > 0, "{document}");
    runtime.block_on(stage.end()).unwrap();
}
