//! Whether a Poolkeeper serves: reachable, ready, who leads, laws, pool files, pools that come to nothing.

use serde_json::Value;

use crate::api::client::Request;
use crate::api::v1::resources::read::{PoolListRead, ReadyRead};
use crate::cli::client::{Line, Server};
use crate::cli::exit::Failure;
use crate::cli::text::{count, list};
use crate::daemon::checkup::{Check, Outcome};

/// Names in one line; the rest are counted.
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
    match line.probe::<ReadyRead>(&["ready"]) {
        Ok(ready) => checks.push(readiness(&ready)),
        Err(failure) => checks.push(failed("ready", failure)),
    }
    // Whoever may not look is told so once.
    match line.send(&Request::get(&["metrics"])) {
        Ok(metrics) => {
            checks.extend(by_metrics(&metrics, &faults(&line)));
            checks.push(pools(&line).unwrap_or_else(|failure| failed("pools", failure)));
        }
        Err(failure) => checks.push(failed("token", failure)),
    }
    checks
}

fn check(name: &'static str, outcome: Outcome, say: impl Into<String>) -> Check {
    Check { name, outcome, say: say.into(), next: None }
}

fn failed(name: &'static str, failure: Failure) -> Check {
    let say = failure.to_string();
    Check { name, outcome: Outcome::Finding, say, next: failure.told.help }
}

fn version(health: &Value) -> Check {
    let (theirs, ours) = (health["version"].as_str(), env!("CARGO_PKG_VERSION"));
    match theirs {
        Some(theirs) if theirs == ours => {
            check("server", Outcome::Fine, format!("it answers, version {theirs}"))
        }
        Some(theirs) => Check {
            next: Some("use a command line of the server's own version".to_owned()),
            ..check("server", Outcome::Note, format!("it is of version {theirs}, this is {ours}"))
        },
        None => Check {
            next: Some("--server names the address of a Poolkeeper that serves".to_owned()),
            ..check("server", Outcome::Finding, "what answers there is no Poolkeeper")
        },
    }
}

fn readiness(ready: &ReadyRead) -> Check {
    if ready.ready {
        return check("ready", Outcome::Fine, ready.say.clone());
    }
    // One that stands by does what it should; what it waits for says who leads.
    let stands_by = ready.say.contains("leads");
    let outcome = if stands_by { Outcome::Note } else { Outcome::Finding };
    let next = "its log says more; where it does not lead, ask the process that does";
    Check { next: Some(next.to_owned()), ..check("ready", outcome, ready.say.clone()) }
}

/// The values of a family, each with what stands between its braces.
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
            check("leader", Outcome::Fine, say)
        }
        Some(_) => check("leader", Outcome::Note, "this process does not lead"),
        None => check("leader", Outcome::Unknown, "it does not tell whether it leads"),
    };
    vec![leader, laws(metrics), files(metrics, faults)]
}

fn laws(metrics: &str) -> Check {
    const NAME: &str = "lawViolations";
    let counts: Vec<(&str, f64)> = values(metrics, "poolkeeper_law_violations_total").collect();
    if counts.is_empty() {
        return check(NAME, Outcome::Unknown, "it does not tell whether a law was broken");
    }
    let broken = counts.iter().filter(|(_, times)| *times > 0.0);
    let broken: Vec<String> = broken
        .map(|(law, times)| {
            format!("{} {times} times", law.replace("law=", "law ").replace('"', ""))
        })
        .collect();
    if broken.is_empty() {
        return check(NAME, Outcome::Fine, "no plan would have broken a law");
    }
    let next = "this is a fault of Poolkeeper: report it with the log of that time";
    let say = format!("plans were refused: {}", broken.join(", "));
    Check { next: Some(next.to_owned()), ..check(NAME, Outcome::Finding, say) }
}

/// What is wrong with pool files, as far as the server says it. Where it cannot be asked, the check of the pools tells.
fn faults(line: &Line) -> Vec<String> {
    let list = line.read::<PoolListRead>(&Request::get(&["pools"]).with("limit", 1));
    list.map(|(_, list)| list.faults).unwrap_or_default()
}

fn files(metrics: &str, named: &[String]) -> Check {
    const NAME: &str = "poolFiles";
    match values(metrics, "poolkeeper_pool_file_faults").next() {
        None => check(NAME, Outcome::Unknown, "it does not tell whether pool files have faults"),
        Some((_, faults)) if faults > 0.0 => {
            let known = list(named.iter().map(String::as_str), NAMES);
            let known = if named.is_empty() { known } else { format!(": {known}") };
            let say = format!("{faults} faults; pools of such files go on as they were{known}");
            let next = "`poolkeeper validate` with its folder of pool files names each";
            Check { next: Some(next.to_owned()), ..check(NAME, Outcome::Finding, say) }
        }
        Some(_) => check(NAME, Outcome::Fine, "no fault in them"),
    }
}

/// Those that come to nothing.
fn pools(line: &Line) -> Result<Check, Failure> {
    let pools = line.pools()?;
    let ill = pools.iter().map(|(_, pool)| pool).filter(|pool| pool.is_ill());
    let ill: Vec<&str> = ill.map(|pool| pool.name.as_str()).collect();
    let all = count(pools.len(), "pool");
    if ill.is_empty() {
        return Ok(check(
            "pools",
            Outcome::Fine,
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
        ..check("pools", Outcome::Finding, say)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_by_family() {
        let metrics = "# HELP poolkeeper_law_violations_total x\npoolkeeper_law_violations_total{law=\"3\"} 2\n\
            poolkeeper_law_violations_total{law=\"4\"} 0\npoolkeeper_pool_file_faults 1\n\
            poolkeeper_pool_file_faults_other 9\npoolkeeper_lease_remaining_seconds 12.4\n";
        let fault = "pools/web.yaml:3:1: name: there is no key nmae".to_owned();
        let checks = by_metrics(metrics, std::slice::from_ref(&fault));
        let told: Vec<(&str, Outcome)> =
            checks.iter().map(|check| (check.name, check.outcome)).collect();
        let (fine, finding) = (Outcome::Fine, Outcome::Finding);
        assert_eq!(told, [("leader", fine), ("lawViolations", finding), ("poolFiles", finding)]);
        assert_eq!(checks[1].say, "plans were refused: law 3 2 times");
        let said = &checks[2].say;
        assert!(said.starts_with("1 faults") && said.ends_with(&fault), "{said}");
        let silent = by_metrics("", &[]);
        assert!(silent.iter().all(|check| check.outcome == Outcome::Unknown), "{silent:?}");
        let calm = "poolkeeper_law_violations_total{law=\"3\"} 0\npoolkeeper_pool_file_faults 0\n";
        assert!(by_metrics(calm, &[])[1..].iter().all(|check| check.outcome == fine));
    }
}
