//! All metric families. A label has few values: pools, reasons, operations, clusters, token names, never machines or entries.

use crate::model::vocabulary::vocabulary;

vocabulary! {
    pub enum MetricKind {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    pub kind: MetricKind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
}

macro_rules! families {
    ($($id:ident = $name:literal $kind:ident [$($label:literal),*] $help:literal;)*) => {
        $(
            pub const $id: Family =
                Family { name: $name, kind: MetricKind::$kind, labels: &[$($label),*], help: $help };
        )*

        /// All families, in the order of output.
        pub const FAMILIES: &[Family] = &[$($id),*];
    };
}

families! {
    BUILD = "poolkeeper_build_info" Gauge ["version"] "1, with the running version.";
    READY = "poolkeeper_ready" Gauge [] "1 while this process leads and has recovered every pool.";
    LEASE = "poolkeeper_lease_remaining_seconds" Gauge [] "Time until this process stops sending if it cannot renew the lease; 0 if another process leads.";
    STORE_FAILS = "poolkeeper_store_failing" Gauge [] "1 while writes to the store fail, or the store is lost.";
    AUDIT = "poolkeeper_audit_lines" Gauge [] "Lines of the audit after the last hourly sweep; absent before the first.";
    CERTIFICATE = "poolkeeper_api_certificate_expires_timestamp_seconds" Gauge [] "When the certificate of the API expires; absent without one.";
    REFUSED = "poolkeeper_api_certificate_refused" Gauge [] "1 while the certificate files are unusable; the API keeps the previous certificate.";
    TOKENS = "poolkeeper_api_token_expires_timestamp_seconds" Gauge ["name"] "When the last token of a name in the tokens file expires; absent for a name with a token that does not expire.";
    KEYS_FAIL = "poolkeeper_api_identity_keys_failing" Gauge [] "1 while the keys of the identity provider cannot be fetched.";
    REQUESTS = "poolkeeper_api_requests_total" Counter ["answer"] "Requests to the API by status class: 2xx, 3xx, 4xx, 5xx.";
    NOT_ADMITTED = "poolkeeper_api_not_admitted_total" Counter ["reason"] "Requests to the API that were not admitted, by problem code.";
    STOPPED = "poolkeeper_stopped" Gauge [] "1 while a person stops all pools: nothing is begun, except repair if the stop spares it.";
    POOLS = "poolkeeper_pools" Gauge ["standing"] "Pools by standing: managed, or released and watched until their open entries end.";
    FILES = "poolkeeper_pool_file_faults" Gauge [] "Current faults in pool files; pools of such a file keep their last valid settings.";
    FILES_LOOKED = "poolkeeper_pool_files_last_scan_timestamp_seconds" Gauge [] "When all pool files were last scanned; absent without a folder of pool files.";
    RELOADS = "poolkeeper_reloads_total" Counter [] "Applied changes of pool files.";
    TURNS = "poolkeeper_turns_total" Counter ["outcome"] "Turns by outcome: done, frozen, failed, panicked.";
    TURN_TIME = "poolkeeper_turn_seconds" Histogram [] "Duration of turns, from the read to the last response.";
    LAWS = "poolkeeper_invariant_violations_total" Counter ["invariant"] "Plans that would have violated an invariant and were not executed. Must stay 0; invariant 0: the planner contradicted itself.";
    DESIRED = "poolkeeper_pool_desired_machines" Gauge ["pool"] "Desired machines.";
    LIVE = "poolkeeper_pool_total_machines" Gauge ["pool"] "Existing machines, including those that are being deleted.";
    AVAILABLE = "poolkeeper_pool_available_machines" Gauge ["pool"] "Available machines.";
    SURGING = "poolkeeper_pool_surging_machines" Gauge ["pool"] "Machines above the desired ones: replacements of a rollout, and surplus.";
    DELETING = "poolkeeper_pool_deleting_machines" Gauge ["pool"] "Machines on their way out.";
    OUTDATED = "poolkeeper_pool_outdated_machines" Gauge ["pool"] "Machines that are not on the target revision, older than maxAge, or marked.";
    FAILED = "poolkeeper_pool_failed_machines" Gauge ["pool"] "Machines that are unhealthy beyond their grace period.";
    FLOOR = "poolkeeper_pool_floor_machines" Gauge ["pool"] "Poolkeeper never takes the number of available machines below this.";
    CEILING = "poolkeeper_pool_ceiling_machines" Gauge ["pool"] "Poolkeeper never takes the number of machines above this.";
    IN_FLIGHT = "poolkeeper_pool_in_flight" Gauge ["pool"] "Open journal entries.";
    OLDEST = "poolkeeper_pool_oldest_entry_seconds" Gauge ["pool"] "Age of the oldest open journal entry; 0 without one.";
    HELD = "poolkeeper_pool_held" Gauge ["pool", "reason"] "1 for each hold of the last turn.";
    FROZEN = "poolkeeper_pool_frozen" Gauge ["pool"] "1 while the plan would violate an invariant.";
    GAPS = "poolkeeper_pool_gaps" Gauge ["pool"] "Parts of the last read that failed.";
    FAILING = "poolkeeper_pool_failing_turns" Gauge ["pool"] "Failed turns in a row.";
    LAST_TURN = "poolkeeper_pool_last_turn_timestamp_seconds" Gauge ["pool"] "When the last successful turn ended.";
    AUTOSCALER_OFF = "poolkeeper_pool_autoscaler_off_timestamp_seconds" Gauge ["pool"] "When a read first showed that the autoscaler is switched off for a rollout; absent while it is on.";
    PHASE = "poolkeeper_rollout_phase" Gauge ["pool", "phase"] "1 for the phase of the pool's rollout.";
    DONE = "poolkeeper_rollout_done_machines" Gauge ["pool"] "Machines that the rollout has completed.";
    TOTAL = "poolkeeper_rollout_total_machines" Gauge ["pool"] "Machines that the rollout covers.";
    ROLLOUT_FAILED = "poolkeeper_rollout_failed_machines" Gauge ["pool"] "Replacements of the rollout that failed.";
    FINISHES = "poolkeeper_rollout_finishes_timestamp_seconds" Gauge ["pool"] "When the rollout is expected to end; absent if unknown.";
    METRIC_VALUE = "poolkeeper_pool_metric_value" Gauge ["pool", "profile"] "Last value of the metric of a profile; absent before the first.";
    METRIC_AT = "poolkeeper_pool_metric_timestamp_seconds" Gauge ["pool", "profile"] "When the metric server was asked for that value. A value is used until it is two minutes old.";
    METRIC_FAILING = "poolkeeper_pool_metric_failing" Gauge ["pool", "profile"] "1 while the last query of the metric of a profile has no value.";
    QUERIES = "poolkeeper_metric_queries_total" Counter ["server"] "Queries to a metric server.";
    QUERIES_FAILED = "poolkeeper_metric_query_failures_total" Counter ["server", "reason"] "Queries to a metric server that have no value, by reason.";
    GATES = "poolkeeper_gate_measurements_total" Counter ["pool", "gate", "verdict"] "Measurements of a gate, by verdict.";
    DELIVERIES = "poolkeeper_webhook_deliveries_total" Counter ["webhook", "outcome"] "Attempts to deliver a notice or to ask a hook, and notices that are given up, by outcome.";
    CALLS = "poolkeeper_arm_calls_total" Counter ["operation"] "Calls sent to Azure.";
    SAVED = "poolkeeper_arm_calls_saved_total" Counter ["operation"] "Requests that shared the response of another call.";
    WAITS = "poolkeeper_arm_waits_total" Counter ["operation"] "Calls that waited for a rate limit or for their turn.";
    WAITED = "poolkeeper_arm_wait_seconds_total" Counter ["operation"] "Total time that calls waited.";
    THROTTLED = "poolkeeper_arm_throttled_total" Counter ["operation"] "Calls that Azure throttled.";
    WITHDRAWN = "poolkeeper_arm_withdrawn_total" Counter ["operation"] "Calls that were withdrawn because they could not be sent in time.";
    CLUSTER_CALLS = "poolkeeper_cluster_calls_total" Counter ["cluster", "call"] "Requests sent to a Kubernetes cluster, by kind.";
    CLUSTER_HEARD = "poolkeeper_cluster_heard_timestamp_seconds" Gauge ["cluster"] "When the watch of a cluster's nodes last heard from it, at least each minute while it is well; absent before the first complete list.";
    CLOCK = "poolkeeper_arm_clock_ahead_seconds" Gauge [] "How far Azure's clock is ahead of this machine's, by the last response; negative if it is behind. Deadlines use this machine's clock.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_those_who_read_them() {
        let mut names: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        for family in FAMILIES {
            let plain = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            assert!(family.name.starts_with("poolkeeper_") && plain(family.name), "{family:?}");
            assert_eq!(
                family.name.ends_with("_total"),
                family.kind == MetricKind::Counter,
                "{family:?}"
            );
            assert!(family.labels.iter().all(|label| plain(label)), "{family:?}");
            assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{family:?}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FAMILIES.len());
    }
}
