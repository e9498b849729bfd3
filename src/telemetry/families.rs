//! All metric families. A label has few values: pools, reasons, operations, token names, never machines or entries.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    pub const fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
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
    BUILD = "poolkeeper_build_info" Gauge ["version"] "1, with the version that runs.";
    READY = "poolkeeper_ready" Gauge [] "1 while turns are made: this process leads, and every pool was recovered.";
    LEASE = "poolkeeper_lease_remaining_seconds" Gauge [] "Until nothing more would be sent, if the lease were not renewed; 0 where another process leads.";
    STORE_FAILS = "poolkeeper_store_failing" Gauge [] "1 while the store does not keep what is written, or is lost.";
    AUDIT = "poolkeeper_audit_lines" Gauge [] "Lines of the audit, as the last hourly sweep left them; absent before the first.";
    CERTIFICATE = "poolkeeper_api_certificate_expires_timestamp_seconds" Gauge [] "When the certificate that the API shows is over; absent without one.";
    REFUSED = "poolkeeper_api_certificate_refused" Gauge [] "1 while the files of the certificate hold one that cannot be used; the one before is shown still.";
    TOKENS = "poolkeeper_api_token_expires_timestamp_seconds" Gauge ["name"] "When the last token of a name in the tokens file ends; absent for a name with a token that does not.";
    KEYS_FAIL = "poolkeeper_api_identity_keys_failing" Gauge [] "1 while the keys of the identity provider cannot be had.";
    REQUESTS = "poolkeeper_api_requests_total" Counter ["answer"] "Requests to the API by what they were answered with: 2xx, 3xx, 4xx, 5xx.";
    NOT_ADMITTED = "poolkeeper_api_not_admitted_total" Counter ["reason"] "Requests to the API that were not let in, by the code of the answer.";
    POOLS = "poolkeeper_pools" Gauge ["standing"] "Pools by standing: managed, or released and watched until what was begun there has ended.";
    FILES = "poolkeeper_pool_file_faults" Gauge [] "Faults in pool files now; the pools of such a file go on as they were.";
    FILES_LOOKED = "poolkeeper_pool_files_last_look_timestamp_seconds" Gauge [] "When all pool files were looked at last; absent without a folder of them.";
    RELOADS = "poolkeeper_reloads_total" Counter [] "Times that a change of the pool files was taken in.";
    TURNS = "poolkeeper_turns_total" Counter ["outcome"] "Turns by their end: done, frozen, failed, panicked.";
    TURN_TIME = "poolkeeper_turn_seconds" Histogram [] "How long turns took, from the look to the last answer.";
    LAWS = "poolkeeper_invariant_violations_total" Counter ["invariant"] "Plans that would have violated an invariant and were not executed. Must stay 0; invariant 0: the planner contradicted itself.";
    DESIRED = "poolkeeper_pool_desired_machines" Gauge ["pool"] "Machines the pool should have.";
    LIVE = "poolkeeper_pool_total_machines" Gauge ["pool"] "Machines that are paid for, those on their way out among them.";
    AVAILABLE = "poolkeeper_pool_available_machines" Gauge ["pool"] "Machines that serve.";
    OUTDATED = "poolkeeper_pool_outdated_machines" Gauge ["pool"] "Machines that are not on the target, or too old, or marked.";
    FAILED = "poolkeeper_pool_failed_machines" Gauge ["pool"] "Machines that are ill beyond their grace.";
    FLOOR = "poolkeeper_pool_floor_machines" Gauge ["pool"] "Fewer than this never serve by our doing.";
    CEILING = "poolkeeper_pool_ceiling_machines" Gauge ["pool"] "More than this never live by our doing.";
    IN_FLIGHT = "poolkeeper_pool_in_flight" Gauge ["pool"] "Journal entries that were begun and have not ended.";
    OLDEST = "poolkeeper_pool_oldest_entry_seconds" Gauge ["pool"] "Age of the oldest of them; 0 where there is none.";
    HELD = "poolkeeper_pool_held" Gauge ["pool", "reason"] "1 for each reason to wait that the last turn named.";
    FROZEN = "poolkeeper_pool_frozen" Gauge ["pool"] "1 while the plan would violate an invariant.";
    GAPS = "poolkeeper_pool_gaps" Gauge ["pool"] "Parts of the last look that could not be seen.";
    FAILING = "poolkeeper_pool_failing_turns" Gauge ["pool"] "Failed turns in a row.";
    LAST_TURN = "poolkeeper_pool_last_turn_timestamp_seconds" Gauge ["pool"] "When the last good turn was made.";
    PHASE = "poolkeeper_rollout_phase" Gauge ["pool", "phase"] "1 for the phase the pool's rollout is in.";
    DONE = "poolkeeper_rollout_done_machines" Gauge ["pool"] "Machines the rollout is done with.";
    TOTAL = "poolkeeper_rollout_total_machines" Gauge ["pool"] "Machines the rollout covers.";
    ROLLOUT_FAILED = "poolkeeper_rollout_failed_machines" Gauge ["pool"] "Replacements of the rollout that failed.";
    FINISHES = "poolkeeper_rollout_finishes_timestamp_seconds" Gauge ["pool"] "When the rollout is expected to end; absent if unknown.";
    CALLS = "poolkeeper_arm_calls_total" Counter ["operation"] "Calls to the cloud that left.";
    SAVED = "poolkeeper_arm_calls_saved_total" Counter ["operation"] "Asks that another call's answer served.";
    WAITS = "poolkeeper_arm_waits_total" Counter ["operation"] "Calls that had to wait for their limits or their turn.";
    WAITED = "poolkeeper_arm_wait_seconds_total" Counter ["operation"] "How long they waited together.";
    THROTTLED = "poolkeeper_arm_throttled_total" Counter ["operation"] "Calls that the cloud refused for their rate.";
    WITHDRAWN = "poolkeeper_arm_withdrawn_total" Counter ["operation"] "Calls that did not leave, since they could not in time.";
    CLOCK = "poolkeeper_arm_clock_ahead_seconds" Gauge [] "How far the cloud's clock is ahead of ours, by its last answer; below zero where it is behind. Deadlines go by ours.";
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
