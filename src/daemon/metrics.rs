//! The metric families, filled from the daemon's state.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::board::{Board, Lead, ManagementStatus, PoolBoard};
use super::run::{GateCounts, MetricReading, QueryCounts};
use super::webhooks::{DeliveryCounts, DeliveryOutcome};
use crate::adapters::kubernetes::Clusters;
use crate::model::autoscaler::SuspensionStage;
use crate::model::facts::Verdict;
use crate::model::hold::HoldReason;
use crate::model::plan::{Report, RolloutPhase};
use crate::model::time::{Skew, Time};
use crate::observe::MetricFaultReason;
use crate::pace::{CallTally, Counts};
use crate::telemetry::families::*;
use crate::telemetry::{Counters, Exposition, Family};

/// What was measured of the metrics that profiles name, of gates, of deliveries to webhooks, and of clusters.
pub(super) struct Measurements {
    pub readings: Vec<MetricReading>,
    pub queries: Vec<QueryCounts>,
    pub gates: Vec<GateCounts>,
    pub deliveries: BTreeMap<Box<str>, DeliveryCounts>,
    pub clusters: Arc<Clusters>,
}

pub(super) fn page(
    board: &Board,
    counters: &Counters,
    calls: &Counts,
    clock_ahead: Option<Skew>,
    measured: &Measurements,
    now: Time,
) -> String {
    let mut page = Exposition::default();
    process(&mut page, board, now);
    counters.write(&mut page);
    let pools = board.pools();
    records(&mut page, &pools, now);
    plans(&mut page, &pools);
    rollouts(&mut page, &pools);
    of_profiles(&mut page, measured);
    of_gates(&mut page, &measured.gates);
    of_webhooks(&mut page, &measured.deliveries);
    cloud(&mut page, calls);
    of_clusters(&mut page, &measured.clusters);
    page.family(&CLOCK, clock_ahead.map(|ahead| ([""; 0], seconds(ahead.millis()))));
    page.finish()
}

fn process(page: &mut Exposition, board: &Board, now: Time) {
    let (status, pools) = (board.status(), board.pools());
    page.family(&BUILD, [([env!("CARGO_PKG_VERSION")], 1.0)]);
    alone(page, &READY, f64::from(u8::from(status.is_ready())));
    alone(page, &STORE_FAILS, f64::from(u8::from(status.store.is_some())));
    page.family(&AUDIT, status.audit.map(|lines| ([""; 0], lines as f64)));
    let left = match &status.lead {
        Lead::Ours(lease) => seconds(lease.not_after.since(now).millis()),
        Lead::Vacant | Lead::Waiting { .. } => 0.0,
    };
    alone(page, &LEASE, left);
    let ends = status.certificate.and_then(|certificate| certificate.ends);
    page.family(&CERTIFICATE, ends.map(|at| ([""; 0], seconds(at.millis()))));
    let refused = status.certificate.map(|certificate| u8::from(certificate.refused));
    page.family(&REFUSED, refused.map(|refused| ([""; 0], f64::from(refused))));
    let ends = status.tokens.iter().map(|(name, at)| ([&**name], seconds(at.millis())));
    page.family(&TOKENS, ends);
    alone(page, &KEYS_FAIL, f64::from(u8::from(status.keys_fail)));
    alone(page, &STOPPED, f64::from(u8::from(status.stopped)));
    let standings = [ManagementStatus::Managed, ManagementStatus::Released].map(|standing| {
        let count = pools.iter().filter(|seen| seen.standing == standing).count();
        ([standing.name()], count as f64)
    });
    page.family(&POOLS, standings);
    alone(page, &FILES, status.faults.len() as f64);
    let looked = status.files.and_then(|files| files.looked);
    page.family(&FILES_LOOKED, looked.map(|at| ([""; 0], seconds(at.millis()))));
}

fn records(page: &mut Exposition, pools: &[Arc<PoolBoard>], now: Time) {
    let mut each = |family: &Family, number: &dyn Fn(&PoolBoard) -> Option<f64>| {
        let known = pools.iter().filter_map(|seen| Some((seen, number(seen)?)));
        page.family(family, known.map(|(seen, number)| ([seen.policy.name.as_str()], number)));
    };
    each(&IN_FLIGHT, &|seen| Some(seen.open as f64));
    each(&OLDEST, &|seen| Some(seen.oldest.map_or(0.0, |at| seconds(now.since(at).millis()))));
    each(&FAILING, &|seen| Some(seen.failing.as_ref().map_or(0.0, |f| f64::from(f.turns))));
    each(&FROZEN, &|seen| Some(f64::from(u8::from(seen.report.as_ref()?.frozen.is_some()))));
    each(&GAPS, &|seen| Some(seen.report.as_ref()?.gaps.len() as f64));
    each(&AUTOSCALER_OFF, &|seen| Some(seconds(autoscaler_off(seen)?.millis())));
    each(&LAST_TURN, &|seen| Some(seconds(seen.report.as_ref()?.at.millis())));
}

/// Since when the autoscaler of the pool is switched off for a rollout.
fn autoscaler_off(seen: &PoolBoard) -> Option<Time> {
    let planned = seen.report.as_ref()?.planned.as_ref()?;
    match planned.state.suspension.as_ref()?.stage {
        SuspensionStage::Off { since } => Some(since),
        SuspensionStage::Asked | SuspensionStage::Overruled => None,
    }
}

fn report(seen: &PoolBoard) -> Option<&Report> {
    Some(&seen.report.as_ref()?.planned.as_ref()?.report)
}

fn plans(page: &mut Exposition, pools: &[Arc<PoolBoard>]) {
    let mut each = |family: &Family, number: &dyn Fn(&Report) -> u32| {
        let known = pools.iter().filter_map(|seen| Some((seen, number(report(seen)?))));
        page.family(family, known.map(|(s, n)| ([s.policy.name.as_str()], f64::from(n))));
    };
    each(&DESIRED, &|report| report.numbers.desired);
    each(&LIVE, &|report| report.numbers.total);
    each(&AVAILABLE, &|report| report.numbers.available);
    each(&SURGING, &|report| report.numbers.surging());
    each(&DELETING, &|report| report.numbers.deleting);
    each(&OUTDATED, &|report| report.numbers.outdated);
    each(&FAILED, &|report| report.numbers.failed);
    each(&FLOOR, &|report| report.resolved.floor);
    each(&CEILING, &|report| report.resolved.ceiling);
    let held = pools.iter().flat_map(|seen| {
        let frozen = seen.report.iter().filter_map(|report| report.frozen.as_ref());
        let holds = report(seen).into_iter().flat_map(|report| &report.holds);
        let mut reasons: Vec<HoldReason> = holds.chain(frozen).map(|hold| hold.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let name = seen.policy.name.as_str();
        reasons.into_iter().map(move |reason| ([name, reason.code()], 1.0))
    });
    page.family(&HELD, held);
}

fn rollouts(page: &mut Exposition, pools: &[Arc<PoolBoard>]) {
    let open = |seen: &&Arc<PoolBoard>| {
        report(seen).is_some_and(|report| report.rollout.phase != RolloutPhase::None)
    };
    let known: Vec<(&str, &Report)> = pools
        .iter()
        .filter(open)
        .filter_map(|seen| Some((seen.policy.name.as_str(), report(seen)?)))
        .collect();
    page.family(&PHASE, known.iter().map(|(pool, r)| ([*pool, r.rollout.phase.name()], 1.0)));
    let mut each = |family: &Family, number: &dyn Fn(&Report) -> u32| {
        page.family(family, known.iter().map(|(pool, r)| ([*pool], f64::from(number(r)))));
    };
    each(&DONE, &|report| report.rollout.done);
    each(&TOTAL, &|report| report.rollout.total);
    each(&ROLLOUT_FAILED, &|report| report.rollout.failed);
    let ends = known.iter().filter_map(|(pool, r)| Some((*pool, r.estimate.finishes?)));
    page.family(&FINISHES, ends.map(|(pool, at)| ([pool], seconds(at.millis()))));
}

fn of_profiles(page: &mut Exposition, Measurements { readings, queries, .. }: &Measurements) {
    let latest = || readings.iter().filter_map(|of| Some((of, of.latest?)));
    let value = latest().map(|(of, (value, _))| (of.labels(), value.get()));
    page.family(&METRIC_VALUE, value);
    let at = latest().map(|(of, (_, at))| (of.labels(), seconds(at.millis())));
    page.family(&METRIC_AT, at);
    let failing = readings.iter().map(|of| (of.labels(), f64::from(u8::from(of.failing))));
    page.family(&METRIC_FAILING, failing);
    page.family(&QUERIES, queries.iter().map(|of| ([&*of.server], of.asked as f64)));
    let failed = queries.iter().flat_map(|of| {
        let count = |reason: &MetricFaultReason| of.failed.get(reason).copied().unwrap_or(0);
        // Export zeros as well, so that an alarm sees the first increment.
        MetricFaultReason::ALL.map(|reason| ([&*of.server, reason.name()], count(&reason) as f64))
    });
    page.family(&QUERIES_FAILED, failed);
}

fn of_gates(page: &mut Exposition, gates: &[GateCounts]) {
    let measured = gates.iter().flat_map(|of| {
        let count = |verdict: &Verdict| of.verdicts.get(verdict).copied().unwrap_or(0);
        // Zeros too, so that an alarm sees the first increment.
        Verdict::ALL
            .map(|verdict| ([of.pool.as_str(), &of.gate, verdict.name()], count(&verdict) as f64))
    });
    page.family(&GATES, measured);
}

fn of_webhooks(page: &mut Exposition, deliveries: &BTreeMap<Box<str>, DeliveryCounts>) {
    let counted = deliveries.iter().flat_map(|(webhook, counts)| {
        let count = |outcome: &DeliveryOutcome| counts.get(outcome).copied().unwrap_or(0);
        // Zeros too, so that an alarm sees the first increment.
        DeliveryOutcome::ALL.map(|outcome| ([&**webhook, outcome.name()], count(&outcome) as f64))
    });
    page.family(&DELIVERIES, counted);
}

fn cloud(page: &mut Exposition, calls: &Counts) {
    let mut each = |family: &Family, number: &dyn Fn(&CallTally) -> f64| {
        page.family(family, calls.iter().map(|(call, tally)| ([call.name()], number(&tally))));
    };
    each(&CALLS, &|tally| tally.made as f64);
    each(&SAVED, &|tally| tally.saved as f64);
    each(&WAITS, &|tally| tally.waited as f64);
    each(&WAITED, &|tally| seconds(tally.waited_for.millis()));
    each(&THROTTLED, &|tally| tally.throttled as f64);
    each(&WITHDRAWN, &|tally| tally.withdrawn as f64);
}

fn of_clusters(page: &mut Exposition, clusters: &Clusters) {
    // Zeros too: of evictions an alarm sees the first.
    let calls = clusters.calls().map(|(of, call, count)| ([of, call.name()], count as f64));
    page.family(&CLUSTER_CALLS, calls);
    let heard = clusters.heard().map(|(of, at)| ([of], seconds(at.millis())));
    page.family(&CLUSTER_HEARD, heard);
}

fn alone(page: &mut Exposition, family: &Family, number: f64) {
    page.family(family, [([""; 0], number)]);
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::kubernetes::{ClusterCall, ClusterConfig};
    use crate::ambient::{SharedClock, SystemClock};

    #[test]
    fn a_cluster_has_its_counts_before_the_first_call() {
        let configs = BTreeMap::from([("prod".into(), ClusterConfig::default())]);
        let clock: SharedClock = Arc::new(SystemClock);
        let mut page = Exposition::default();
        of_clusters(&mut page, &Clusters::new(configs, &clock));
        let text = page.finish();
        for call in ClusterCall::ALL {
            let name = call.name();
            let line =
                format!("poolkeeper_cluster_calls_total{{cluster=\"prod\",call=\"{name}\"}} 0\n");
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert!(!text.contains("heard_timestamp_seconds{"), "nothing was heard yet: {text}");
    }
}
