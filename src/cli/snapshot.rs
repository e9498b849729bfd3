//! `snapshot`: everything that a decision about a live pool rests on, as the document that `plan` and `simulate` read.
//!
//! Never here: a write, a decision, what a pod runs. Begin with [`SnapshotCommand::run`].

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::client::managed::ManagedPool;
use super::client::{self, Server};
use super::cloud::{CloudArgs, ENVIRONMENT};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::live::{self, BadName, TargetArg};
use super::output::Shell;
use super::serve;
use super::term::Style;
use crate::api::v1::snapshot::{anonymous, encode};
use crate::daemon::{CloudReader, CloudReading, PodsUnread};
use crate::model::ids::ClusterName;
use crate::model::journal::Refusal;
use crate::model::policy::{Draft, Policy};

const ABOUT: &str = "Writes a live pool as the snapshot that plan and simulate read";
const MORE: &str = "\
Reads the scale set, its machines and, if they are nodes of a Kubernetes cluster, the pods on them and the disruption \
budgets that count these pods, and prints all of it as one document on one line. It writes nothing else, anywhere. \
`plan`, `explain` and `simulate` read the document from a file or from standard input, without access to Azure or to \
the cluster.

POOL is the id of a scale set, the name of a pool in a pool file, or, without a pool file, the name of a pool of a \
running daemon, which then says how the pool is to be. The machines are read from the cloud in each case. The document \
has no state of earlier plans: its plan is that of a daemon that sees the pool for the first time.

Of a pod it holds its namespace, its name, its controller, whether it is ready, and which budgets count it: no \
containers, environment, arguments, labels, annotations or secrets. Pods are listed a node at a time. Pods that have \
ended, and those that a kubelet runs from a file, are left out.

With --anonymous, the names that people gave are replaced: those of pools, subscriptions, resource groups, machines, nodes, \
namespaces, pods, their controllers and budgets, and the values of tags and labels, also inside ids. The same name \
gets the same substitute, and their order stays, so the plan is the same. Only with `rollout.order: random` \
another machine may go first. Zones, VM sizes, times, tag names and the versions of images stay.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper snapshot web > now.json                   a pool of a running daemon
  poolkeeper snapshot web --pool-file pools/web.yaml   a pool of this file
  poolkeeper snapshot web --settings poolkeeper.yaml   with the pods of its nodes
  poolkeeper snapshot /subscriptions/…/virtualMachineScaleSets/web
                                                       a scale set without a pool file
  poolkeeper snapshot web | poolkeeper plan -s -       its plan, from one read
  poolkeeper snapshot web --anonymous > report.json    for a bug report
  poolkeeper simulate now.json                         a rollout of these machines";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{}\n\n{ENVIRONMENT}", client::ENVIRONMENT))
)]
pub struct SnapshotCommand {
    /// Name of a pool, or resource id of a scale set
    #[arg(value_parser = TargetArg::read)]
    pool: TargetArg,

    /// A pool file that has the pool
    #[arg(short, long = "pool-file", value_name = "FILE")]
    pool_files: Vec<PathBuf>,

    /// The Kubernetes cluster whose nodes the machines are, by its name in the settings; by default, the one that the
    /// pool names
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// Settings file of the daemon, which says how the cluster is reached; by default, the file that
    /// POOLKEEPER_SETTINGS names
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,

    /// Replace the names that people gave
    #[arg(long)]
    anonymous: bool,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    cloud: CloudArgs,
}

impl SnapshotCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let policy = self.clustered(self.policy(shell)?)?;
        let settings = serve::named_settings(self.settings.clone())?;
        if let Some(cluster) = policy.cluster.as_ref().filter(|_| settings.is_none()) {
            let say =
                format!("only the settings of the daemon say how cluster {cluster} is reached");
            return Err(CommandFailure::usage(say).help("name them with --settings FILE"));
        }
        let read = async |cloud: &CloudReader| read(cloud, &policy).await;
        let looked = self.cloud.visit_with(settings.as_ref(), read)??;
        for gap in &looked.gaps {
            shell.say(Style::Yellow, "not seen", &format!("{}: {}", gap.what, gap.why));
        }
        let snapshot = match self.anonymous {
            true => anonymous(&looked.snapshot)
                .ok_or_else(|| internal("the pool cannot be read without its names"))?,
            false => looked.snapshot,
        };
        let text = encode(&snapshot).map_err(|error| internal(&error.to_string()))?;
        shell.line(&text)?;
        Ok(Exit::Done)
    }

    /// How the pool is to be.
    fn policy(&self, shell: &Shell) -> Result<Arc<Policy>, CommandFailure> {
        let not_found = |say| CommandFailure::new(Exit::NotFound, "notFound", say);
        match &self.pool {
            TargetArg::Set(set) => {
                let mut found = live::meant(&self.pool_files, std::slice::from_ref(set), shell)?;
                let only = found.pop().ok_or_else(|| not_found(format!("there is no {set}")))?;
                Ok(only.policy)
            }
            TargetArg::Pool(name) if self.pool_files.is_empty() => {
                let name = live::pool_name(name)
                    .map_err(|bad: BadName| CommandFailure::usage(bad.to_string()))?;
                let managed = self.server.line()?.managed(&name)?;
                let managed = managed.ok_or_else(|| {
                    not_found(format!("the server manages no pool {name}")).help(
                        "name its pool file with --pool-file, or a scale set by its resource id",
                    )
                })?;
                let policy = ManagedPool::policy(&managed);
                policy.map(Arc::new).ok_or_else(|| {
                    internal("the daemon is of another version")
                        .help("give the pool file with --pool-file")
                })
            }
            TargetArg::Pool(name) => {
                let all = live::meant(&self.pool_files, &[], shell)?;
                let found = all.into_iter().find(|of| of.policy.name.as_str() == name);
                let found = found
                    .ok_or_else(|| not_found(format!("the pool files have no pool {name}")))?;
                Ok(found.policy)
            }
        }
    }

    /// With the cluster that the option names.
    fn clustered(&self, policy: Arc<Policy>) -> Result<Arc<Policy>, CommandFailure> {
        let Some(cluster) = &self.cluster else { return Ok(policy) };
        let draft = Draft { cluster: Some(ClusterName::new(cluster)), ..Draft::clone(&policy) };
        let policy = Policy::build(draft).map_err(|faults| {
            let say: Vec<String> = faults.iter().map(ToString::to_string).collect();
            CommandFailure::usage(say.join("; "))
        })?;
        Ok(Arc::new(policy))
    }
}

async fn read(cloud: &CloudReader, policy: &Arc<Policy>) -> Result<CloudReading, CommandFailure> {
    cloud.enter().await?;
    let mut looked = cloud.look(policy).await?;
    cloud.read_pods(&mut looked).await?;
    Ok(looked)
}

fn internal(say: &str) -> CommandFailure {
    CommandFailure::new(Exit::Internal, "internal", say.to_owned())
}

impl From<PodsUnread> for CommandFailure {
    fn from(unread: PodsUnread) -> Self {
        let (exit, code) = match unread.refusal {
            Refusal::Forbidden => (Exit::NotPermitted, "notPermitted"),
            Refusal::Invalid => (Exit::Input, "badValue"),
            _ => (Exit::Unreachable, "unreachable"),
        };
        let help = "`poolkeeper doctor --pool-file FILE --settings FILE` checks the cluster";
        CommandFailure::new(exit, code, unread.to_string()).help(help)
    }
}
