//! The demo without a terminal, at a speed at which it takes seconds.

use std::sync::mpsc::channel;

use rustix::process::{Signal, getpid, kill_process};

use super::director::{DemoEnd, DemoLine, Director};
use super::script::ScriptStep;
use super::stage::DemoStage;
use super::{Manner, Signals};
use crate::cli::term::Term;
use crate::cli::text::width;
use crate::cli::watch::tests::readme;
use crate::model::time::Span;

/// Speed-up: half an hour passes in seconds.
const QUICK: u32 = 300;

#[test]
fn the_picture_of_the_readme_is_kept() {
    readme::keep(&ScriptStep::Sicken("30".into()).words(29));
}

#[tokio::test]
async fn a_terminal_that_closes_ends_the_drawn_demo() {
    let mut heard = Signals::heard(Manner::Drawn).unwrap();
    kill_process(getpid(), Signal::HUP).unwrap();
    assert_eq!(heard.next().await, Signal::HUP.as_raw());
}

#[test]
fn the_whole_demo_keeps_its_promises() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let anywhere = "127.0.0.1:0".parse().unwrap();
    let stage = runtime.block_on(DemoStage::set_up(Some(anywhere), QUICK)).unwrap();
    let (mut script, mut facts) = (Vec::new(), Vec::new());
    let mut director = Director::new(&stage).unwrap();
    let (_stop, stopped) = channel();
    let server = stage.line().unwrap();
    let ended = director.play(Span::minutes(2), &stopped, &mut |line| {
        match line {
            DemoLine::Script(fact) => {
                if fact.text.contains("fails by itself") {
                    readme::is_of(&server, &fact.text);
                }
                script.push(fact.text);
            }
            DemoLine::Pool(fact) => facts.push(fact.text),
        }
        Ok(())
    });
    let Ok(DemoEnd::Summary(end)) = ended else { panic!("{ended:?} {script:#?} {facts:#?}") };
    assert!(director.progress.is_some_and(|(done, total)| done >= 29 && total == 30));
    for part in ["simulated", "are outdated", "fails by itself", "with 429", "answers again"] {
        assert!(script.iter().any(|text| text.contains(part)), "{part}: {script:#?}");
    }
    // On the narrowest screen each takes two lines at most.
    assert!(script.iter().all(|text| width(text) <= 116), "{script:#?}");
    for part in ["to 1.1.0 began: 30 machines", "because it had failed", "to 1.1.0 done in"] {
        assert!(facts.iter().any(|text| text.contains(part)), "{part}: {facts:#?}");
    }
    readme::tells_of(&facts);
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
    drop(director);
    runtime.block_on(stage.end()).unwrap();
}
