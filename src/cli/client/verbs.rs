//! What people ask of a pool or a machine. Each is recorded by the server, and answered by the pool's next turn.

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde_json::{Value, json};

use super::{ENVIRONMENT, Server, failure, text};
use crate::api::client::Request;
use crate::cli::args::with_exit_codes;
use crate::cli::exit::{Exit, Failure};
use crate::cli::shell::Shell;
use crate::cli::text::plain;
use crate::model::plan::WaitKind;

const MORE: &str = "\
The wish is recorded by the Poolkeeper that serves, with who asked and why, and its next turn answers it: what comes of \
it is in `poolkeeper history`. Asked again after a lost answer it is still done once.";

/// What every wish has.
#[derive(Debug, Args)]
struct Wish {
    /// Why; it is kept with who asked
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    why: String,

    #[command(flatten)]
    server: Server,
}

impl Wish {
    fn send(&self, shell: &mut Shell, path: &[&str], now: bool) -> Result<Exit, Failure> {
        let body =
            if now { json!({ "why": self.why, "now": true }) } else { json!({ "why": self.why }) };
        self.post(shell, path, &body)
    }

    fn post(&self, shell: &mut Shell, path: &[&str], body: &Value) -> Result<Exit, Failure> {
        let is_json = shell.one_document("a wish")?;
        let request = Request::post(path, body.to_string()).map_err(|error| failure(&error))?;
        let (written, receipt) = self.server.ask_json(&request)?;
        if is_json {
            shell.line(&written)?;
            return Ok(Exit::Done);
        }
        let pool = plain(text(&receipt, "pool")).into_owned();
        let machine = text(&receipt, "machine");
        let of = if machine.is_empty() {
            pool.clone()
        } else {
            format!("machine {} of {pool}", plain(machine))
        };
        let verb = plain(text(&receipt, "verb")).into_owned();
        shell.line(&format!("{verb}: asked of {of}; its next turn answers"))?;
        shell.line(&format!("`poolkeeper history {pool}` tells what comes of it"))?;
        Ok(Exit::Done)
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
            pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
                self.wish.send(shell, &["pools", &self.pool, $path], false)
            }
        }
    )*};
}

of_pools! {
    Pause "pause" "Stops the rollout of a pool where it is" "pause web --why 'errors since noon'";
    Resume "resume" "Goes on with a paused rollout" "resume web --why 'mended'";
    Abort "abort" "Ends the rollout and puts the pool back at its size" "abort web --why 'wrong image'";
    Retry "retry" "Tries again what failed" "retry web --why 'quota raised'";
    Promote "promote" "Skips the present wait of a rollout" "promote web --why 'no need to wait'";
    Refresh "refresh" "Replaces every machine of a pool, whatever its revision" "refresh web --why 'new keys'";
    SettleCapacity "settleCapacity" "Sets the capacity to what lives: the one write that lowers it" "settle-capacity web --why 'drift'";
    TakeOver "takeOver" "Owns a scale set that another store owns, as its tag says" "take-over web --why 'the old server is gone'";
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
            pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
                let path = ["pools", &self.pool, "machines", &self.machine, $path];
                self.wish.send(shell, &path, false)
            }
        }
    )*};
}

of_machines! {
    Hold "hold" "Never acts on a machine until it is released" "hold web 17 --why debugging";
    Keep "keep" "Takes back the wish to replace a machine" "keep web 17 --why 'it was 18'";
    WriteOff "writeOff" "A machine stuck in deletion counts no more" "write-off web 17 --why 'support says so'";
}

const APPROVE: &str = "Approves the checkpoint ahead, or what waits for a person";
const APPROVE_MORE: &str = "\
Without --what, the approval is about the only thing that waits; where several wait, the answer names them. It covers \
what waited when it was given, and nothing that began since.";

#[derive(Debug, Args)]
#[command(
    about = APPROVE,
    long_about = format!("{}\n\n{APPROVE_MORE}", long(APPROVE)),
    after_long_help = after("approve web --what checkpoint --number 3 --why 'looks good'")
)]
pub struct Approve {
    /// Name of the pool
    pool: String,

    /// What is approved
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(WaitKind::ALL.map(WaitKind::name)))]
    what: Option<String>,

    /// The number that waits: machines, a size or a capacity
    #[arg(long, value_name = "N")]
    number: Option<u32>,

    /// The revision that waits
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,

    #[command(flatten)]
    wish: Wish,
}

impl Approve {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let mut body = json!({ "why": self.wish.why });
        if let Some(what) = &self.what {
            body["what"] = json!(what);
        }
        if let Some(number) = self.number {
            body["number"] = json!(number);
        }
        if let Some(revision) = &self.revision {
            body["revision"] = json!(revision);
        }
        self.wish.post(shell, &["pools", &self.pool, "approve"], &body)
    }
}

const ROLLBACK: &str = "Goes back to a revision that completed: the last one, or the one named";
const ROLLBACK_MORE: &str = "\
With no rollout open it is refused at once where Poolkeeper does not write the model, and the answer is the edit to make. \
`poolkeeper history POOL --revisions` lists the revisions.";

#[derive(Debug, Args)]
#[command(
    about = ROLLBACK,
    long_about = format!("{}\n\n{ROLLBACK_MORE}", long(ROLLBACK)),
    after_long_help = after("rollback web --to 1.0.0 --why 'latency'")
)]
pub struct Rollback {
    /// Name of the pool
    pool: String,

    /// The revision: its name, its number as in #7, or its fingerprint
    #[arg(long, value_name = "REVISION")]
    to: Option<String>,

    #[command(flatten)]
    wish: Wish,
}

impl Rollback {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let mut body = json!({ "why": self.wish.why });
        if let Some(to) = &self.to {
            body["revision"] = json!(to);
        }
        self.wish.post(shell, &["pools", &self.pool, "rollback"], &body)
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

    /// Accept the loss: the floor does not protect it
    #[arg(long)]
    now: bool,

    #[command(flatten)]
    wish: Wish,
}

impl DeleteMachine {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let path = ["pools", &self.pool, "machines", &self.machine, "delete"];
        self.wish.send(shell, &path, self.now)
    }
}

const RELEASE: &str =
    "Ends the hold on a machine; without one, closes the repair breaker of the pool";

#[derive(Debug, Args)]
#[command(about = RELEASE, long_about = long(RELEASE), after_long_help = after("release web 17 --why 'done debugging'"))]
pub struct Release {
    /// Name of the pool
    pool: String,

    /// Id or vmId of the machine
    machine: Option<String>,

    #[command(flatten)]
    wish: Wish,
}

impl Release {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        match &self.machine {
            Some(machine) => {
                let path = ["pools", &self.pool, "machines", machine, "release"];
                self.wish.send(shell, &path, false)
            }
            None => self.wish.send(shell, &["pools", &self.pool, "release"], false),
        }
    }
}
