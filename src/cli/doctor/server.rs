//! Checks a running Poolkeeper server: reachable, ready, who leads, invariants, pool files, pools in trouble.

use serde_json::Value;

use crate::api::client::Request;
use crate::api::v1::resources::pools::PoolList;
use crate::api::v1::resources::told::ReadinessStatus;
use crate::cli::client::{Server, ServerLine};
use crate::cli::exit::CommandFailure;
use crate::cli::text::{count, list};
use crate::daemon::diagnose::{Check, CheckOutcome};

/// The most names on a line; the rest are counted.
const NAMES: usize = 8;

pub(super) fn examine(server: &Server) -> Vec<Check> {
    let line = match server.line() {
        Ok(line) => line,
        Err(failure) => return vec![failed("server", failure)],
    };
    let health: Value = match line.probe(&["health"]) {
        Ok(health) => health,
        Err(failure) => return vec![failed("server", failure)],
    };
    let mut checks = vec![version(&health)];
    match line.probe::<ReadinessStatus>(&["ready"]) {
        Ok(ready) => checks.push(readiness(&ready)),
        Err(failure) => checks.push(failed("ready", failure)),
    }
    // Report a missing permission once, not for every check.
    match line.send(&Request::get(&["metrics"])) {
        Ok(metrics) => {
            checks.extend(by_metrics(&metrics, &faults(&line)));
            checks.push(pools(&line).unwrap_or_else(|failure| failed("pools", failure)));
        }
        Err(failure) => checks.push(failed("token", failure)),
    }
    checks
}

fn check(name: &'static str, outcome: CheckOutcome, say: impl Into<String>) -> Check {
    Check { name, outcome, say: say.into(), next: None }
}

fn failed(name: &'static str, failure: CommandFailure) -> Check {
    let say = failure.to_string();
    Check { name, outcome: CheckOutcome::Finding, say, next: failure.report.help }
}

fn version(health: &Value) -> Check {
    let (theirs, ours) = (health["version"].as_str(), env!("CARGO_PKG_VERSION"));
    match theirs {
        Some(theirs) if theirs == ours => {
            check("server", CheckOutcome::Fine, format!("the server responds, version {theirs}"))
        }
        Some(theirs) => Check {
            next: Some("use a command line of the server's own version".to_owned()),
            ..check(
                "server",
                CheckOutcome::Note,
                format!("the server has version {theirs}, this client {ours}"),
            )
        },
        None => Check {
            next: Some("--server names the address of a running Poolkeeper daemon".to_owned()),
            ..check("server", CheckOutcome::Finding, "the server at this address is not Poolkeeper")
        },
    }
}

fn readiness(ready: &ReadinessStatus) -> Check {
    if ready.ready {
        return check("ready", CheckOutcome::Fine, ready.message.clone());
    }
    // A standby is working as it should; its message names the leader.
    let stands_by = ready.message.contains("leads");
    let outcome = if stands_by { CheckOutcome::Note } else { CheckOutcome::Finding };
    let next = "its log says more; if it is not the leader, ask the process that is";
    Check { next: Some(next.to_owned()), ..check("ready", outcome, ready.message.clone()) }
}

/// The values of a metric family, each with the labels between its braces.
fn values<'m>(metrics: &'m str, family: &'m str) -> impl Iterator<Item = (&'m str, f64)> {
    metrics.lines().filter_map(move |line| {
        let rest = line.strip_prefix(family)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let labels = match labels {
            "" => "",
            labels => labels.strip_prefix('{')?.strip_suffix('}')?,
        };
        Some((labels, value.parse().ok()?))
    })
}

fn by_metrics(metrics: &str, faults: &[String]) -> Vec<Check> {
    let lease = values(metrics, "poolkeeper_lease_remaining_seconds").next();
    let leader = match lease {
        Some((_, left)) if left > 0.0 => {
            let say = format!("this process leads; its lease holds for {left:.0} s and is renewed");
            check("leader", CheckOutcome::Fine, say)
        }
        Some(_) => check("leader", CheckOutcome::Note, "this process does not lead"),
        None => check(
            "leader",
            CheckOutcome::Unknown,
            "the metrics do not say whether this process leads",
        ),
    };
    let mut checks = vec![leader, laws(metrics), files(metrics, faults)];
    checks.extend(profile_metrics(metrics));
    checks
}

/// Checks that the metrics of profiles have values. `None`: no pool has such a profile.
fn profile_metrics(metrics: &str) -> Option<Check> {
    const NAME: &str = "metrics";
    let all: Vec<(&str, f64)> = values(metrics, "poolkeeper_pool_metric_failing").collect();
    let failing = all.iter().filter(|(_, failing)| *failing > 0.0);
    let failing: Vec<String> = failing
        .map(|(labels, _)| labels.replace("pool=", "").replace(",profile=", "/").replace('"', ""))
        .collect();
    if all.is_empty() {
        return None;
    }
    let count = count(all.len(), "metric");
    if failing.is_empty() {
        return Some(check(NAME, CheckOutcome::Fine, format!("{count}, all with values")));
    }
    let names = list(failing.iter().map(String::as_str), NAMES);
    let say = format!("{} of {count} without a new value: {names}", failing.len());
    let next =
        "the server's log says why; the section metrics of its settings names the metric servers";
    Some(Check { next: Some(next.to_owned()), ..check(NAME, CheckOutcome::Finding, say) })
}

fn laws(metrics: &str) -> Check {
    const NAME: &str = "invariantViolations";
    let counts: Vec<(&str, f64)> =
        values(metrics, "poolkeeper_invariant_violations_total").collect();
    if counts.is_empty() {
        return check(
            NAME,
            CheckOutcome::Unknown,
            "the metrics do not say whether an invariant was violated",
        );
    }
    let broken = counts.iter().filter(|(_, times)| *times > 0.0);
    let broken: Vec<String> = broken
        .map(|(law, times)| {
            let law = law.replace("invariant=", "invariant ").replace('"', "");
            format!("{law}: {}", count(*times as usize, "time"))
        })
        .collect();
    if broken.is_empty() {
        return check(NAME, CheckOutcome::Fine, "no plan would have violated an invariant");
    }
    let next = "this is a bug in Poolkeeper: report it with the log of that time";
    let say = format!("plans were refused: {}", broken.join(", "));
    Check { next: Some(next.to_owned()), ..check(NAME, CheckOutcome::Finding, say) }
}

/// The faults of pool files that the server reports. If this request fails, the check of the pools reports the error.
fn faults(line: &ServerLine) -> Vec<String> {
    let list = line.read::<PoolList>(&Request::get(&["pools"]).with("limit", 1));
    list.map(|(_, list)| list.faults).unwrap_or_default()
}

fn files(metrics: &str, named: &[String]) -> Check {
    const NAME: &str = "poolFiles";
    match values(metrics, "poolkeeper_pool_file_faults").next() {
        None => check(
            NAME,
            CheckOutcome::Unknown,
            "the metrics do not say whether pool files have faults",
        ),
        Some((_, faults)) if faults > 0.0 => {
            let known = list(named.iter().map(String::as_str), NAMES);
            let known = if named.is_empty() { known } else { format!(": {known}") };
            let say = format!(
                "{}; pools of these files keep their last valid settings{known}",
                count(faults as usize, "fault")
            );
            let next = "run `poolkeeper validate` on the folder of pool files to see each";
            Check { next: Some(next.to_owned()), ..check(NAME, CheckOutcome::Finding, say) }
        }
        Some(_) => check(NAME, CheckOutcome::Fine, "no faults"),
    }
}

/// Checks for pools that are frozen, refused or in trouble.
fn pools(line: &ServerLine) -> Result<Check, CommandFailure> {
    let pools = line.pools()?;
    let ill = pools.iter().map(|(_, pool)| pool).filter(|pool| pool.is_ill());
    let ill: Vec<&str> = ill.map(|pool| pool.name.as_str()).collect();
    let all = count(pools.len(), "pool");
    if ill.is_empty() {
        return Ok(check(
            "pools",
            CheckOutcome::Fine,
            format!("{all}, none frozen, refused or in trouble"),
        ));
    }
    let say = format!(
        "{} of {all} frozen, refused or in trouble: {}",
        ill.len(),
        list(ill.into_iter(), NAMES)
    );
    Ok(Check {
        next: Some("`poolkeeper status` says why".to_owned()),
        ..check("pools", CheckOutcome::Finding, say)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_by_family() {
        let metrics = "# HELP poolkeeper_invariant_violations_total x\npoolkeeper_invariant_violations_total{invariant=\"3\"} 2\n\
            poolkeeper_invariant_violations_total{invariant=\"4\"} 0\npoolkeeper_pool_file_faults 1\n\
            poolkeeper_pool_file_faults_other 9\npoolkeeper_lease_remaining_seconds 12.4\n";
        let fault = "pools/web.yaml:3:1: name: there is no key nmae".to_owned();
        let checks = by_metrics(metrics, std::slice::from_ref(&fault));
        let outcomes: Vec<(&str, CheckOutcome)> =
            checks.iter().map(|check| (check.name, check.outcome)).collect();
        let (fine, finding) = (CheckOutcome::Fine, CheckOutcome::Finding);
        assert_eq!(
            outcomes,
            [("leader", fine), ("invariantViolations", finding), ("poolFiles", finding)]
        );
        assert_eq!(checks[1].say, "plans were refused: invariant 3: 2 times");
        let said = &checks[2].say;
        assert!(said.starts_with("1 fault;") && said.ends_with(&fault), "{said}");
        let silent = by_metrics("", &[]);
        assert!(silent.iter().all(|check| check.outcome == CheckOutcome::Unknown), "{silent:?}");
        let calm = "poolkeeper_invariant_violations_total{invariant=\"3\"} 0\npoolkeeper_pool_file_faults 0\n";
        assert!(by_metrics(calm, &[])[1..].iter().all(|check| check.outcome == fine));
    }
}
