//! `doctor`: whether the care of live pools has everything it needs, and what to do where it has not.
//!
//! Never here: a check of the cloud (they are the house's), a write. Begin with [`Doctor::run`]; `server` checks who serves.

mod server;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};

use super::args::with_exit_codes;
use super::client::{self, Server};
use super::cloud::{Cloud, ENVIRONMENT};
use super::exit::{Exit, Failure};
use super::live;
use super::shell::Shell;
use super::table::{Cell, Table};
use super::term::{Style, Term};
use super::text::{count, plain};
use crate::api::v1::API_VERSION;
use crate::daemon::checkup::{Check, Diagnosis, Outcome, PoolChecks};
use crate::daemon::set_id;
use crate::model::ids::ScaleSetId;

const ABOUT: &str = "Checks whether the care of live pools has all it needs, and says what to do";
const MORE: &str = "\
Without a pool, or where a server is named, it checks the Poolkeeper that serves: that it answers and is ready, who leads, \
that no plan would have broken a law, that its pool files have no fault, and that no pool is frozen, refused or in trouble.

Of the pools that are named it checks once what all pools share: that both addresses answer, that the clocks agree, which credential works (or why none \
of the five ways does), and that a token is obtained for the right audience. Then for each pool: that its scale set and \
machines can be read, that each permission is held, that the quota has room for the surge, what of Azure's own would act \
beside us, whether something tells the health of machines, and whether the set has a version that protects raises.

Permissions are those that Azure says this identity has, with wildcards and exceptions evaluated; also those on the \
networks and identities that new machines use. Where they cannot be read that is said, and which are needed. Nothing is \
tried out: no call made here changes anything.

What is wrong or missing is a finding, and then the exit code is 7. What could not be found out is told as unknown and \
is no finding. A pool that cannot be looked at is a finding, and the others are checked all the same.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper doctor                                    the Poolkeeper that serves
  poolkeeper doctor /subscriptions/…/virtualMachineScaleSets/web
  poolkeeper doctor --pool-file pools/web.yaml
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
    /// Resource ids of live scale sets
    #[arg(value_name = "RESOURCE", value_parser = set_id)]
    resources: Vec<ScaleSetId>,

    /// A pool file, whose live pools are examined
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// Only findings, and what is unknown
    #[arg(long)]
    brief: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: Cloud,
}

impl Doctor {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("doctor")?;
        let asks_cloud = !self.resources.is_empty() || !self.pool_files.is_empty();
        let diagnosis = if asks_cloud { Some(self.cloud(shell)?) } else { None };
        let server = match &diagnosis {
            // Who looks at the cloud before anything serves is not to be told that nothing does.
            Some(_) if !self.server.is_named() => Vec::new(),
            _ => server::examine(&self.server),
        };
        let found = Found { server, diagnosis };
        if json {
            shell.line(&document(&found).to_string())?;
        } else {
            shell.print(&page(&found, self.brief, shell.term))?;
        }
        let is_ill = found.count(Outcome::Finding) > 0;
        Ok(if is_ill { Exit::Findings } else { Exit::Done })
    }

    fn cloud(&self, shell: &Shell) -> Result<Diagnosis, Failure> {
        let pools = live::meant(&self.pool_files, &self.resources, shell)?;
        let policies: Vec<Arc<_>> = pools.into_iter().map(|meant| meant.policy).collect();
        self.cloud.visit(async |house| house.examine(&policies).await)
    }
}

/// What was checked; empty, or `None`: nobody asked.
struct Found {
    server: Vec<Check>,
    diagnosis: Option<Diagnosis>,
}

impl Found {
    fn count(&self, outcome: Outcome) -> usize {
        let server = self.server.iter().filter(|check| check.outcome == outcome).count();
        server + self.diagnosis.as_ref().map_or(0, |diagnosis| diagnosis.count(outcome))
    }
}

fn page(found: &Found, brief: bool, term: Term) -> String {
    let mut text = String::new();
    if !found.server.is_empty() {
        section("Server", "", &found.server, brief, term, &mut text);
    }
    if let Some(diagnosis) = &found.diagnosis {
        if !text.is_empty() {
            text.push('\n');
        }
        section("Cloud", "", &diagnosis.access, brief, term, &mut text);
        for PoolChecks { pool, set, checks, .. } in &diagnosis.pools {
            text.push('\n');
            section(pool.as_str(), set.as_str(), checks, brief, term, &mut text);
        }
    }
    let [findings, unknown, notes] =
        [Outcome::Finding, Outcome::Unknown, Outcome::Note].map(|outcome| found.count(outcome));
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
    let told = |check: &&Check| !brief || check.outcome >= Outcome::Unknown;
    let mut table = Table::new(2);
    let mut none = true;
    for check in checks.iter().filter(told) {
        none = false;
        let style = match check.outcome {
            Outcome::Fine => Style::Green,
            Outcome::Note => Style::Cyan,
            Outcome::Unknown => Style::Yellow,
            Outcome::Finding => Style::Red,
        };
        let name = Cell::new(check.name, Style::Plain);
        table.row([Cell::new(check.outcome.name(), style), name, check.say.as_str().into()]);
        if let Some(next) = check.next.as_ref() {
            let next = Cell::new(format!("→ {next}"), Style::Dim);
            table.row([Cell::default(), Cell::default(), next]);
        }
    }
    if none {
        table.row([Cell::new("nothing to tell", Style::Dim)]);
    }
    table.draw(term, text);
}

fn document(found: &Found) -> Value {
    let of_pools = found.diagnosis.iter().flat_map(|diagnosis| &diagnosis.pools);
    let pools = of_pools.map(|pool| {
        let rights = pool.rights.iter().map(|right| {
            json!({ "action": right.action, "scope": right.scope, "for": right.what, "held": right.held })
        });
        json!({ "pool": pool.pool.as_str(), "scaleSet": pool.set.as_str(),
            "checks": checks(&pool.checks), "permissions": rights.collect::<Vec<_>>() })
    });
    let access = found.diagnosis.as_ref().map_or(&[][..], |diagnosis| &diagnosis.access);
    json!({ "apiVersion": API_VERSION, "kind": "Diagnosis",
        "findings": found.count(Outcome::Finding), "unknown": found.count(Outcome::Unknown),
        "server": checks(&found.server), "cloud": checks(access), "pools": pools.collect::<Vec<_>>() })
}

fn checks(checks: &[Check]) -> Vec<Value> {
    let of = |check: &Check| json!({ "check": check.name, "outcome": check.outcome.name(), "say": check.say, "next": check.next });
    checks.iter().map(of).collect()
}
