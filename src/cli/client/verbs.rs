//! Requests about a pool or a machine. The server records each request, the pool's next turn answers it, and the command
//! waits for that answer.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::outcome::Patience;
use super::why::Why;
use super::{ENVIRONMENT, Server};
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::Shell;
use crate::model::command::CommandName;
use crate::model::plan::WaitKind;

const MORE: &str = "\
The running daemon records the request, who sent it and why. The next turn of the pool answers it; this command waits \
for the answer and prints it. Exit code 0: it was done; 11: it was answered, and nothing was done. With --no-wait it \
ends once the request is recorded. A request that is sent again after a lost answer is still executed once.

With --output json it prints the command and its answer, for a hold or a delete request the explanation of the machine.";

/// The options that every request has.
#[derive(Debug, Args)]
pub(super) struct Wish {
    #[command(flatten)]
    pub why: Why,

    #[command(flatten)]
    pub patience: Patience,

    #[command(flatten)]
    pub server: Server,
}

impl Wish {
    fn send(&self, shell: &mut Shell, path: &[&str], now: bool) -> Result<Exit, CommandFailure> {
        let body = if now { json!({ "now": true }) } else { json!({}) };
        self.post(shell, path, body)
    }

    fn post(
        &self,
        shell: &mut Shell,
        path: &[&str],
        mut body: Value,
    ) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("a command")?;
        body["why"] = json!(self.why.given(&self.server)?);
        let outcome = self.server.line()?.request(path, &body, &self.patience)?;
        shell.line(if is_json { &outcome.document } else { &outcome.message })?;
        Ok(outcome.exit)
    }
}

fn long(about: &str) -> String {
    format!("{about}.\n\n{MORE}")
}

fn after(example: &str) -> String {
    with_exit_codes(&format!("Examples:\n  poolkeeper {example}\n\n{ENVIRONMENT}"))
}

macro_rules! of_pools {
    ($($name:ident $path:literal $about:literal $example:literal;)*) => {$(
        #[derive(Debug, Args)]
        #[command(about = $about, long_about = long($about), after_long_help = after($example))]
        pub struct $name {
            /// Name of the pool
            pool: String,

            #[command(flatten)]
            wish: Wish,
        }

        impl $name {
            pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
                self.wish.send(shell, &["pools", &self.pool, $path], false)
            }
        }
    )*};
}

of_pools! {
    Pause "pause" "Stops the rollout of a pool where it is" "pause web --why 'errors since noon'";
    Resume "resume" "Resumes a paused rollout" "resume web --why 'mended'";
    Abort "abort" "Ends the rollout and returns the pool to its size" "abort web --why 'wrong image'";
    Retry "retry" "Retries what failed" "retry web --why 'quota raised'";
    Refresh "refresh" "Replaces every machine of a pool, whatever its revision" "refresh web --why 'new keys'";
    ResetCapacity "reset-capacity" "Lowers the capacity of the scale set to the machines it has" "reset-capacity web --why 'drift'";
    ResetBreaker "reset-breaker" "Closes the repair breaker, so that failed machines are replaced again" "reset-breaker web --why 'the cloud is healthy again'";
    TakeOver "take-over" "Takes ownership of a scale set whose tag names another store" "take-over web --why 'the old server is gone'";
}

macro_rules! of_machines {
    ($($name:ident $path:literal $about:literal $example:literal;)*) => {$(
        #[derive(Debug, Args)]
        #[command(about = $about, long_about = long($about), after_long_help = after($example))]
        pub struct $name {
            /// Name of the pool
            pool: String,

            /// Id or vmId of the machine
            machine: String,

            #[command(flatten)]
            wish: Wish,
        }

        impl $name {
            pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
                let path = ["pools", &self.pool, "machines", &self.machine, $path];
                self.wish.send(shell, &path, false)
            }
        }
    )*};
}

of_machines! {
    Hold "hold" "Never acts on a machine until it is released" "hold web 17 --why debugging";
    Release "release" "Ends the hold on a machine" "release web 17 --why 'done debugging'";
    Undelete "undelete" "Cancels delete-machine" "undelete web 17 --why 'it was 18'";
    Abandon "abandon" "Stops counting a machine that is stuck in deletion" "abandon web 17 --why 'support confirmed'";
}

const APPROVE: &str = "Approves the next checkpoint, or anything else that waits for approval";
const APPROVE_MORE: &str = "\
Without --what, the approval is for the only thing that waits; if several wait, the answer lists them. It covers \
what waited when it was given, and nothing that began later.";

#[derive(Debug, Args)]
#[command(
    about = APPROVE,
    long_about = format!("{}\n\n{APPROVE_MORE}", long(APPROVE)),
    after_long_help = after("approve web --what checkpoint --number 3 --why 'looks good'")
)]
pub struct Approve {
    /// Name of the pool
    pool: String,

    /// What to approve
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(WaitKind::ALL.map(WaitKind::name)))]
    what: Option<String>,

    /// The number that waits for approval: machines, a size or a capacity
    #[arg(long, value_name = "N")]
    number: Option<u32>,

    /// The revision that waits for approval
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,

    /// Skip this gate in the open rollout, to its end
    #[arg(long, value_name = "GATE", conflicts_with_all = ["what", "number", "revision"])]
    skip_gate: Option<String>,

    #[command(flatten)]
    wish: Wish,
}

impl Approve {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let mut body = json!({});
        if let Some(what) = &self.what {
            body["what"] = json!(what);
        }
        if let Some(number) = self.number {
            body["number"] = json!(number);
        }
        if let Some(revision) = &self.revision {
            body["revision"] = json!(revision);
        }
        if let Some(gate) = &self.skip_gate {
            body["skipGate"] = json!(gate);
        }
        self.wish.post(shell, &["pools", &self.pool, "approve"], body)
    }
}

const PROMOTE: &str = "Skips the current wait of a rollout, or all of them";

#[derive(Debug, Args)]
#[command(about = PROMOTE, long_about = long(PROMOTE), after_long_help = after("promote web --why 'no need to wait'\n  poolkeeper promote web --full --why 'the fix is urgent'"))]
pub struct Promote {
    /// Name of the pool
    pool: String,

    /// Skip every later wait of this rollout too: checkpoints, gates, and the bake at its end. Limits of how many machines
    /// may be replaced at once stay, and so does a pause
    #[arg(long)]
    full: bool,

    #[command(flatten)]
    wish: Wish,
}

impl Promote {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let body = if self.full { json!({ "full": true }) } else { json!({}) };
        self.wish.post(shell, &["pools", &self.pool, "promote"], body)
    }
}

const ROLLBACK: &str = "Rolls back to a completed revision: the last one, or the named one";
const ROLLBACK_MORE: &str = "\
If no rollout is open and Poolkeeper does not write the model, the request is rejected at once, and the answer says \
which edit to make. `poolkeeper history POOL --revisions` lists the revisions.";

#[derive(Debug, Args)]
#[command(
    about = ROLLBACK,
    long_about = format!("{}\n\n{ROLLBACK_MORE}", long(ROLLBACK)),
    after_long_help = after("rollback web --to 1.0.0 --why 'latency'")
)]
pub struct RollbackCommand {
    /// Name of the pool
    pool: String,

    /// The revision to go back to: its name, its number as in #7, or its fingerprint
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,

    #[command(flatten)]
    wish: Wish,
}

impl RollbackCommand {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let mut body = json!({});
        if let Some(to) = &self.to {
            body["revision"] = json!(to);
        }
        self.wish.post(shell, &["pools", &self.pool, "rollback"], body)
    }
}

const DELETE: &str = "Replaces one machine; its pool keeps its size";

#[derive(Debug, Args)]
#[command(about = DELETE, long_about = long(DELETE), after_long_help = after("delete-machine web 17 --why 'disk errors'"))]
pub struct DeleteMachine {
    /// Name of the pool
    pool: String,

    /// Id or vmId of the machine
    machine: String,

    /// Delete it even if the pool falls below its floor
    #[arg(long)]
    now: bool,

    #[command(flatten)]
    wish: Wish,
}

impl DeleteMachine {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let path =
            ["pools", &self.pool, "machines", &self.machine, CommandName::DeleteMachine.name()];
        self.wish.send(shell, &path, self.now)
    }
}
