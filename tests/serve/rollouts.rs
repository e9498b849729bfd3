//! Pools from one version to the next.

use poolkeeper::api::http::Backend;
use poolkeeper::judge;
use poolkeeper::model::time::Span;
use poolkeeper::telemetry::{FAMILIES, TurnOutcome};

use super::kit::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_is_upgraded_from_end_to_end() {
    let house = House::new("upgrade", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let daemon = house.begin().await;
    daemon.until("all are new", |_| house.is_on("web", 3, "2.0.0")).await;
    daemon.until("it is told", |d| d.sentence("web").contains("Succeeded")).await;
    let facts = daemon.pool("web").unwrap().report.clone().unwrap();
    assert!(facts.frozen.is_none() && facts.gaps.is_empty(), "{:?}", facts.gaps);
    let page = daemon.handle.metrics();
    for family in FAMILIES {
        assert!(
            page.contains(&format!("# TYPE {} {}", family.name, family.kind.name())),
            "{}",
            family.name
        );
    }
    for line in [
        "poolkeeper_ready 1",
        "poolkeeper_pool_desired_machines{pool=\"web\"} 3",
        "poolkeeper_pool_available_machines{pool=\"web\"} 3",
        "poolkeeper_pool_outdated_machines{pool=\"web\"} 0",
        "poolkeeper_turns_total{outcome=\"panicked\"} 0",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    for law in 0..=judge::LAWS {
        let line = format!("poolkeeper_invariant_violations_total{{invariant=\"{law}\"}} 0");
        assert!(page.contains(&line), "{line}: {page}");
    }
    assert!(!page.contains("poolkeeper_arm_calls_total{operation=\"list\"} 0"), "{page}");
    assert_eq!(page.lines().filter(|line| line.starts_with("# TYPE")).count(), FAMILIES.len());
    let name = poolkeeper::model::ids::PoolName::new("web");
    let scene = daemon.handle.turns.plan_context(&name).await.unwrap();
    let named = |index: u32| &scene.machines[index as usize];
    let planned = scene.report.planned.as_ref().unwrap();
    assert_eq!(scene.machines.len(), planned.report.machines.len());
    assert!(planned.report.machines.iter().all(|row| named(row.index).lifecycle == row.lifecycle));
    assert!(scene.facts.quota.is_some(), "quota is looked at in live turns: {:?}", scene.facts);
    assert!(
        daemon
            .handle
            .turns
            .plan_context(&poolkeeper::model::ids::PoolName::new("none"))
            .await
            .is_none()
    );
    assert_eq!(daemon.handle.counters().laws(), 0);
    assert!(daemon.handle.counters().turns(TurnOutcome::Done) > 3);
    // At rest nothing is written to the cloud.
    let writes = house.writes();
    pass(&house.clock, Span::minutes(6)).await;
    assert_eq!(house.writes(), writes);
    daemon.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_half_way_loses_nothing_and_repeats_nothing() {
    let house = House::new("half-way", &[("web", 3)]).await;
    house.write("web.yaml", &pool("web", 3, "2.0.0"));
    let first = house.begin().await;
    first
        .until("something is under way", |_| {
            house.seen("web")["instances"].as_array().unwrap().len() > 3
        })
        .await;
    assert_eq!(first.end().await, poolkeeper::daemon::run::DaemonEnd::Stopped);
    let writes = house.writes();
    pass(&house.clock, Span::minutes(3)).await;
    assert_eq!(house.writes(), writes, "nobody leads, nothing is changed");
    let second = house.begin_as("second", poolkeeper::reconcile::Decisions::PRODUCTION, &[]).await;
    second.until("all are new", |_| house.is_on("web", 3, "2.0.0")).await;
    second.until("it is told", |d| d.sentence("web").contains("Succeeded")).await;
    second.end().await;
    let made = house.emulator.state();
    // Three machines were replaced, one after another: a fourth delete, or a fourth birth, would be a repeated one.
    let births = made["scaleSets"][0]["instances"].as_array().unwrap();
    let newest = births.iter().map(|vm| vm["id"].as_str().unwrap().parse::<u32>().unwrap()).max();
    assert_eq!(newest, Some(5), "three old ones from 0, three new ones after them: {births:?}");
}
