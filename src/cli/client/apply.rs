//! `apply`: sends pool files, or a saved plan, to a running daemon.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::managed::ManagedPool;
use super::why::Why;
use super::{ENVIRONMENT, Server, ServerLine, failure};
use crate::api::client::{ClientError, Request, digest};
use crate::api::v1::API_VERSION;
use crate::api::v1::node::MAX_BYTES;
use crate::api::v1::pool::to_json;
use crate::cli::diff::changes::{self, KeyChange};
use crate::cli::diff::files;
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::{OutputFormat, Shell};
use crate::cli::plan::saved::{SavedPlan, basis_of_daemon};
use crate::cli::source::SnapshotSource;
use crate::cli::term::Style;
use crate::cli::text::plain;
use crate::model::policy::Policy;

const ABOUT: &str = "Puts pools under management, or changes their documents";
const MORE: &str = "\
Checks every pool of the files here before it sends the first: one faulty file, and nothing is sent. Then it shows \
what each pool changes, and sends the pool to the running daemon, which stores it. A pool that did not change is not \
sent. A pool that another person changes meanwhile is not overwritten: the command says what changed, and ends with exit \
code 11. A pool from a folder that the daemon watches is changed in that folder, not by this command. Without --why, the \
audit records the name of the file and its digest.

--plan applies what `plan --out` saved: the pool as it was planned, if the model of the scale set, the desired number \
and the machines of each revision are still those of the plan. Otherwise it prints what differs, sends nothing, and \
ends with exit code 11. The daemon then plans each action itself, as always.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper apply web.yaml
  poolkeeper apply pools/ --why 'new image'
  poolkeeper plan --pool-file web.yaml --out web.plan && poolkeeper apply --plan web.plan";
const WHY: &str = "Reason for the request, or POOLKEEPER_WHY; by default, the file and its digest. Recorded with the name of the caller";

/// The status of a request whose condition does not hold.
const CHANGED: u16 = 412;

/// Of a longer path, the reason has the last part.
const LONGEST_NAME: usize = 200;

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}")),
    mut_arg("why", |why| why.help(WHY))
)]
pub struct Apply {
    /// A pool file, a folder of pool files, or `-` for standard input
    #[arg(value_name = "FILE|FOLDER", required_unless_present = "plan")]
    path: Option<PathBuf>,

    /// A plan that `plan --out` saved
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    plan: Option<PathBuf>,

    #[command(flatten)]
    why: Why,

    #[command(flatten)]
    server: Server,
}

/// A saved plan that does not hold any more.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanDifferences<'a> {
    api_version: &'static str,
    kind: &'static str,
    pool: &'a str,
    differences: &'a [String],
}

impl Apply {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        match &self.plan {
            Some(plan) => self.apply_plan(plan, shell),
            None => self.apply_files(shell),
        }
    }

    fn apply_files(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let files = files::read(self.path.as_slice(), shell)?;
        let line = self.server.line()?;
        let mut changes = Vec::new();
        for file in &files {
            let why = self.why(&file.name, &file.bytes);
            // A single pool is sent as it was written, each of several by itself.
            let is_alone = file.policies.len() == 1;
            for policy in &file.policies {
                let whole = is_alone.then(|| file.bytes.clone());
                let document = whole.unwrap_or_else(|| to_json(policy).into_bytes());
                changes.push(PoolChange::new(policy, document, why.clone(), &line)?);
            }
        }
        for change in changes {
            change.send(&line, shell)?;
        }
        Ok(Exit::Done)
    }

    fn apply_plan(&self, path: &Path, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let source = SnapshotSource::new(path);
        let bytes = source.read(shell, MAX_BYTES)?;
        let (plan, policy) = SavedPlan::read(&bytes, &source.name())?;
        let line = self.server.line()?;
        let document = to_json(&policy).into_bytes();
        let change = PoolChange::new(&policy, document, self.why(&source.name(), &bytes), &line)?;
        let Some(managed) = &change.managed else {
            let say = format!("the daemon does not manage the pool {}", plan.pool);
            return Err(CommandFailure::new(Exit::NotFound, "notFound", say)
                .help("apply the pool file: a saved plan is for a pool that is managed already"));
        };
        let now = basis_of_daemon(&line, &plan.pool)?;
        let differences = plan.differences(&managed.document, &now);
        if differences.is_empty() {
            change.send(&line, shell)?;
            return Ok(Exit::Done);
        }
        if shell.format == OutputFormat::Table {
            let say =
                format!("{}: not applied; since {}:", plain(&plan.pool), plain(&plan.made_at));
            shell.line(&shell.term.paint(Style::Yellow, &say))?;
            for difference in &differences {
                shell.line(&format!("  {}", plain(difference)))?;
            }
        } else {
            let (api_version, kind) = (API_VERSION, "PlanDifferences");
            let (pool, differences) = (plan.pool.as_str(), differences.as_slice());
            let document = PlanDifferences { api_version, kind, pool, differences };
            shell.line(&serde_json::to_string(&document).unwrap_or_default())?;
        }
        Ok(Exit::NothingDone)
    }

    /// The reason that was given, else what is sent.
    fn why(&self, name: &str, bytes: &[u8]) -> String {
        // A reason has a limited length, and a path need not.
        let is_long = name.len() > LONGEST_NAME;
        let name = if is_long { name.rsplit('/').next().unwrap_or_default() } else { name };
        let what = || format!("{} (sha256 {})", plain(name), digest(bytes));
        self.why.written().unwrap_or_else(what)
    }
}

/// A pool to send.
struct PoolChange<'a> {
    policy: &'a Policy,
    document: Vec<u8>,
    why: String,
    managed: Option<ManagedPool>,
    changes: Vec<KeyChange>,
}

impl<'a> PoolChange<'a> {
    /// Fails for a pool that another source changes.
    fn new(
        policy: &'a Policy,
        document: Vec<u8>,
        why: String,
        line: &ServerLine,
    ) -> Result<Self, CommandFailure> {
        let name = &policy.name;
        let managed = line.managed(name.as_str())?;
        let changes = changes::of_pool(managed.as_ref().map(|pool| &pool.document), policy);
        if managed.is_some()
            && !changes.is_empty()
            && let Some(file) = line.watched_file(name.as_str())?
        {
            let say = format!(
                "{name} is managed from {file}: edit that file; changes are picked up automatically"
            );
            return Err(CommandFailure::new(Exit::Input, "conflict", say));
        }
        Ok(Self { policy, document, why, managed, changes })
    }

    fn send(self, line: &ServerLine, shell: &mut Shell) -> Result<(), CommandFailure> {
        let is_table = shell.format == OutputFormat::Table;
        let name = &self.policy.name;
        match &self.managed {
            Some(_) if self.changes.is_empty() && is_table => {
                return shell.line(&format!("{name}: no change"));
            }
            Some(managed) if self.changes.is_empty() => return shell.line(&managed.text),
            _ => {}
        }
        if is_table {
            let mut page = format!("{}\n", shell.term.paint(Style::Bold, name.as_str()));
            changes::draw(&self.changes, shell.term, &mut page);
            shell.print(&page)?;
            shell.flush()?;
        }
        let path = ["pools", name.as_str()];
        let request = Request::put(&path, self.document.clone());
        let request = request.map_err(|error| failure(&error))?.with("why", &self.why);
        // Another person may change the pool after it was read, or while this one reads what it changes.
        let request = match self.managed.as_ref().map(|managed| &managed.tag) {
            None => request.if_new(),
            Some(Some(tag)) => request.if_match(tag),
            Some(None) => request,
        };
        let written = match line.try_send(&request) {
            Err(ClientError::Refused(refused)) if refused.status == CHANGED => {
                self.changed_meanwhile(line)?
            }
            sent => sent.map_err(|error| failure(&error))?.text,
        };
        if !is_table {
            return shell.line(&written);
        }
        let what = match self.managed {
            None => "new".to_owned(),
            Some(_) => format!("changed: {}", changes::keys(&self.changes)),
        };
        shell.line(&format!("applied: {name} ({what})"))
    }

    /// What the daemon manages now, if that is what was to be applied: the answer to the first of two attempts was lost, or
    /// another person applied the same.
    fn changed_meanwhile(&self, line: &ServerLine) -> Result<String, CommandFailure> {
        let name = &self.policy.name;
        let now = line.managed(name.as_str())?;
        let before = self.managed.as_ref().map(|managed| &managed.document);
        let what = match (&now, before) {
            (Some(now), _) if changes::of_pool(Some(&now.document), self.policy).is_empty() => {
                return Ok(now.text.clone());
            }
            (Some(now), Some(before)) => {
                changes::sentence(&changes::between(before, &now.document))
            }
            (Some(_), None) => "it is managed now".to_owned(),
            (None, _) => "it is not managed any more".to_owned(),
        };
        let say = format!("{name} is not applied: it changed since it was read: {what}");
        Err(CommandFailure::new(Exit::NothingDone, "conflict", say).help(
            "`poolkeeper audit` says who changed it; apply the file again to see what it changes now",
        ))
    }
}
