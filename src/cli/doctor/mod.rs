//! `doctor`: checks whether Poolkeeper has everything it needs to manage pools, and suggests fixes.
//!
//! Never here: a check of the cloud (those belong to the daemon's `CloudReader`), a write. Begin with [`Doctor::run`];
//! `server` checks a running server.

mod server;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::client::{self, Server};
use super::cloud::{CloudArgs, ENVIRONMENT};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::live;
use super::output::Shell;
use super::serve;
use super::table::{Cell, Table};
use super::term::{Style, Term};
use super::text::{count, plain};
use crate::api::v1::API_VERSION;
use crate::daemon::diagnose::{Check, CheckOutcome, ClusterChecks, Diagnosis, PoolChecks};
use crate::daemon::set_id;
use crate::model::ids::ScaleSetId;

const ABOUT: &str =
    "Checks whether Poolkeeper has what it needs to manage pools, and suggests fixes";
const MORE: &str = "\
Without a pool, or if a server is named, it checks the running daemon: that it answers and is ready, which process \
leads, that no plan would have violated an invariant, that its pool files have no fault, and that no pool is frozen, \
refused or in trouble.

For named pools it first checks what all pools share: that both addresses answer, that the clocks agree, which \
credential works (or why none of the five kinds does), and that it gets a token for the right audience. Then it \
checks for each pool: that its scale set and machines can be read, that each permission is held, that the quota has \
room for the surge, which of Azure's own features would act on the set too, whether something reports the health of \
machines, whether each rule of its load balancers has a health probe, which webhooks are asked when a machine leaves \
(it does not ask them), and whether the set has an etag that protects \
capacity raises.

For the Kubernetes clusters of these pools it checks, if the settings of the daemon say how they are reached: that \
each answers, that each right of a drain is held, which disruption budgets can allow no eviction or count no pod, \
and that its nodes are the machines of the pools.

Permissions are those that Azure reports for this identity, with wildcards and exceptions evaluated, including those \
on the networks and identities that new machines use. If they cannot be read, it says so and lists the needed ones. \
It tries nothing out: none of its calls changes anything.

Anything wrong or missing is a finding, and then the exit code is 7. What could not be determined is unknown, which \
is not a finding. A pool that cannot be read is a finding; the others are still checked.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper doctor                                    the running daemon
  poolkeeper doctor /subscriptions/…/virtualMachineScaleSets/web
  poolkeeper doctor --pool-file pools/web.yaml
  poolkeeper doctor --pool-file all.yaml --settings poolkeeper.yaml
  poolkeeper doctor --pool-file all.yaml --auth workload-identity
  poolkeeper doctor --pool-file all.yaml -o json | jq '.. | objects | select(.outcome == \"finding\")'

To try it without an account, run `poolkeeper emulate` in another terminal: it prints what to export.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{}\n\n{ENVIRONMENT}", client::ENVIRONMENT))
)]
pub struct Doctor {
    /// Resource ids of scale sets to check in the cloud
    #[arg(value_name = "RESOURCE", value_parser = set_id)]
    resources: Vec<ScaleSetId>,

    /// A pool file, whose pools are checked in the cloud
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// Settings file of the daemon, which says how the clusters of pools are reached; by default, the file that
    /// POOLKEEPER_SETTINGS names
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// Print only findings and unknown results
    #[arg(long)]
    brief: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: CloudArgs,
}

impl Doctor {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("doctor")?;
        let asks_cloud = !self.resources.is_empty() || !self.pool_files.is_empty();
        let diagnosis = if asks_cloud { Some(self.cloud(shell)?) } else { None };
        let server = match &diagnosis {
            // A check of the cloud before any server runs must not report the missing server as a finding.
            Some(_) if !self.server.is_named() => Vec::new(),
            _ => server::examine(&self.server),
        };
        let found = Findings { server, diagnosis };
        if json {
            shell.line(&document(&found).to_string())?;
        } else {
            shell.print(&page(&found, self.brief, shell.term))?;
        }
        let is_ill = found.count(CheckOutcome::Finding) > 0;
        Ok(if is_ill { Exit::Findings } else { Exit::Done })
    }

    fn cloud(&self, shell: &Shell) -> Result<Diagnosis, CommandFailure> {
        let pools = live::meant(&self.pool_files, &self.resources, shell)?;
        let policies: Vec<Arc<_>> = pools.into_iter().map(|meant| meant.policy).collect();
        let settings = serve::named_settings(self.settings.clone())?;
        self.cloud.visit_with(settings.as_ref(), async |house| house.examine(&policies).await)
    }
}

/// The results. A part that was not requested is empty or `None`.
struct Findings {
    server: Vec<Check>,
    diagnosis: Option<Diagnosis>,
}

impl Findings {
    fn count(&self, outcome: CheckOutcome) -> usize {
        let server = self.server.iter().filter(|check| check.outcome == outcome).count();
        server + self.diagnosis.as_ref().map_or(0, |diagnosis| diagnosis.count(outcome))
    }
}

fn page(found: &Findings, brief: bool, term: Term) -> String {
    let mut text = String::new();
    if !found.server.is_empty() {
        section("Server", "", &found.server, brief, term, &mut text);
    }
    if let Some(diagnosis) = &found.diagnosis {
        if !text.is_empty() {
            text.push('\n');
        }
        section("Cloud", "", &diagnosis.access, brief, term, &mut text);
        for ClusterChecks { cluster, checks } in &diagnosis.clusters {
            text.push('\n');
            section(&format!("Cluster {cluster}"), "", checks, brief, term, &mut text);
        }
        for PoolChecks { pool, set, checks, .. } in &diagnosis.pools {
            text.push('\n');
            section(pool.as_str(), set.as_str(), checks, brief, term, &mut text);
        }
    }
    let [findings, unknown, notes] =
        [CheckOutcome::Finding, CheckOutcome::Unknown, CheckOutcome::Note]
            .map(|outcome| found.count(outcome));
    let line =
        format!("{}, {unknown} unknown, {}", count(findings, "finding"), count(notes, "note"));
    let style = if findings > 0 { Style::Red } else { Style::Green };
    text.push_str(&format!("\n{}\n", term.paint(style, &line)));
    text
}

fn section(title: &str, about: &str, checks: &[Check], brief: bool, term: Term, text: &mut String) {
    let title = term.paint(Style::Bold, &plain(title));
    let about = term.paint(Style::Dim, &plain(about));
    text.push_str(format!("{title}  {about}").trim_end());
    text.push('\n');
    let shown = |check: &&Check| !brief || check.outcome >= CheckOutcome::Unknown;
    let mut table = Table::new(2);
    let mut none = true;
    for check in checks.iter().filter(shown) {
        none = false;
        let style = match check.outcome {
            CheckOutcome::Fine => Style::Green,
            CheckOutcome::Note => Style::Cyan,
            CheckOutcome::Unknown => Style::Yellow,
            CheckOutcome::Finding => Style::Red,
        };
        let name = Cell::new(check.name, Style::Plain);
        table.row([Cell::new(check.outcome.name(), style), name, check.say.as_str().into()]);
        if let Some(next) = check.next.as_ref() {
            let next = Cell::new(format!("→ {next}"), Style::Dim);
            table.row([Cell::default(), Cell::default(), next]);
        }
    }
    if none {
        table.row([Cell::new("no checks", Style::Dim)]);
    }
    table.draw(term, text);
}

fn document(found: &Findings) -> Value {
    let of_pools = found.diagnosis.iter().flat_map(|diagnosis| &diagnosis.pools);
    let pools = of_pools.map(|pool| {
        let rights = pool.rights.iter().map(|right| {
            json!({ "action": right.action, "scope": right.scope, "for": right.what, "held": right.held })
        });
        json!({ "pool": pool.pool.as_str(), "scaleSet": pool.set.as_str(),
            "checks": checks(&pool.checks), "permissions": rights.collect::<Vec<_>>() })
    });
    let of_clusters = found.diagnosis.iter().flat_map(|diagnosis| &diagnosis.clusters);
    let clusters = of_clusters
        .map(|of| json!({ "cluster": of.cluster.as_str(), "checks": checks(&of.checks) }));
    let access = found.diagnosis.as_ref().map_or(&[][..], |diagnosis| &diagnosis.access);
    json!({ "apiVersion": API_VERSION, "kind": "Diagnosis",
        "findings": found.count(CheckOutcome::Finding), "unknown": found.count(CheckOutcome::Unknown),
        "server": checks(&found.server), "cloud": checks(access),
        "clusters": clusters.collect::<Vec<_>>(), "pools": pools.collect::<Vec<_>>() })
}

fn checks(checks: &[Check]) -> Vec<Value> {
    let of = |check: &Check| json!({ "check": check.name, "outcome": check.outcome.name(), "message": check.say, "next": check.next });
    checks.iter().map(of).collect()
}
