//! `init`: the first pool file of a scale set, written from one read of it.
//!
//! Never here: a write to the cloud, a fact about a key. Begin with [`Init::run`]; `draft` writes the file from facts.

mod draft;

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use super::cloud::{CloudArgs, ENVIRONMENT};
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::file::{FileAccess, replace};
use super::live::{self, TargetArg};
use super::output::Shell;
use super::source::SnapshotSource;
use super::term::Style;
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::pool::PoolDocuments;
use draft::SetFacts;

const ABOUT: &str = "Writes the first pool file of a scale set";
const MORE: &str = "\
Reads a live scale set once, or a snapshot file, and prints a pool file for it: its name, its size or the owner of its \
size, where its health is read, and cautious rollout settings, each with a comment that says why. It changes nothing in \
the cloud. Read the file, check it with `doctor` and `plan`, and then give it to `serve`.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper init --from $(az vmss show -g rg -n web --query id -o tsv) > pools/web.yaml
  poolkeeper init --from /subscriptions/…/virtualMachineScaleSets/web --write pools/web.yaml
  poolkeeper doctor --pool-file pools/web.yaml         what managing it requires
  poolkeeper plan --pool-file pools/web.yaml           what would be done now

To try it without an account, run `poolkeeper emulate` in another terminal: it prints what to export.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct Init {
    /// Resource id of the scale set, or a snapshot file (`-` is standard input)
    #[arg(long, value_name = "RESOURCE|FILE", value_parser = NonEmptyStringValueParser::new())]
    from: String,

    /// Write the pool file there instead of printing it
    #[arg(long, value_name = "PATH")]
    write: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long, requires = "write")]
    force: bool,

    #[command(flatten)]
    cloud: CloudArgs,
}

impl Init {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("init")?;
        let facts = self.facts(shell)?;
        let text = draft::text(&facts);
        accepted(&text)?;
        if let Some(path) = &self.write {
            put(path, &text, self.force)?;
        }
        let name = draft::name(&facts);
        if is_json {
            let document = json!({
                "apiVersion": API_VERSION,
                "kind": "PoolFile",
                "pool": name,
                "file": self.write.as_ref().map(|path| path.display().to_string()),
                "text": text,
            });
            shell.line(&document.to_string())?;
        } else if let Some(path) = &self.write {
            let path = path.display();
            shell.line(&format!("{path}: the pool file of {name} is written"))?;
            shell.line(&format!("next: poolkeeper doctor --pool-file {path}"))?;
        } else {
            shell.print(&text)?;
        }
        Ok(Exit::Done)
    }

    fn facts(&self, shell: &mut Shell) -> Result<SetFacts, CommandFailure> {
        // Only an id of Azure begins so; a path to a file hardly ever does.
        let is_id = self.from.to_ascii_lowercase().starts_with("/subscriptions/");
        if !is_id {
            let snapshot = super::plan::read(&SnapshotSource::new(Path::new(&self.from)), shell)?;
            return Ok(SetFacts::of(&snapshot, None));
        }
        let target =
            TargetArg::read(&self.from).map_err(|bad| CommandFailure::usage(bad.to_string()))?;
        let TargetArg::Set(set) = target else {
            return Err(CommandFailure::usage(
                "a scale set has an id, which begins with /subscriptions/",
            ));
        };
        let mut targets = live::meant(&[], &[set], shell)?;
        let Some(target) = targets.pop() else {
            return Err(CommandFailure::usage("one scale set is needed"));
        };
        self.cloud.visit(async |reader| {
            reader.enter().await?;
            let anatomy = reader.anatomy(&target.policy).await?;
            let reading = reader.look(&target.policy).await?;
            for gap in &reading.gaps {
                shell.say(Style::Yellow, "not seen", &format!("{}: {}", gap.what, gap.why));
            }
            Ok(SetFacts::of(&reading.snapshot, Some(&anatomy)))
        })?
    }
}

/// A file that `validate` refuses is never handed out.
fn accepted(text: &str) -> Result<(), CommandFailure> {
    let (pools, faults) = PoolDocuments::default().read(text, None);
    if pools.len() == 1 && faults.is_empty() {
        return Ok(());
    }
    let say: Vec<String> = faults.iter().map(Diagnostic::to_string).collect();
    let say = format!("the pool file of this scale set would not be valid: {}", say.join("; "));
    Err(CommandFailure::new(Exit::Internal, "internal", say))
}

/// With `force` the old file stays until the new one is complete.
fn put(path: &Path, text: &str, force: bool) -> Result<(), CommandFailure> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            CommandFailure::new(Exit::Input, "exists", format!("{name} exists already"))
                .help("name another file, or replace it with --force")
        }
        _ => CommandFailure::unwritable_file(&name, &error),
    };
    if force {
        return replace(path, text.as_bytes(), FileAccess::AsBefore).map_err(failed);
    }
    let mut file = File::create_new(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
