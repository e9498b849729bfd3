//! `validate`: checks pool files offline, and reports every fault of every file at once.
//!
//! Never here: a rule about pool files (they belong to the format). Begin with [`Validate::run`]; `walk` finds files.

pub(super) mod snippet;
pub(super) mod walk;

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::serve;
use super::source::SnapshotSource;
use super::term::Style;
use super::text::{count, list, plain};
use crate::api::v1::API_VERSION;
use crate::api::v1::diagnostic::Diagnostic;
use crate::api::v1::node::MAX_BYTES;
use crate::api::v1::pool::{OutsideNames, PoolDocuments};

const ABOUT: &str = "Checks pool files, and reports every fault at once";
const MORE: &str = "\
Reads pool files in YAML or JSON, with one or more pools each, and reports for each file whether it is valid. Each \
fault has its place, its line, the key, the allowed values, and what was probably meant. Two pools with the same name or the \
same scale set are a fault, in whatever files they are. In a folder and its subfolders it reads every *.yaml, *.yml \
and *.json file, and skips names that begin with a dot.

With the daemon's settings, a metric profile may name only a metric server that they have; without them, any.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper validate web.yaml
  poolkeeper validate pools/                 a folder, sorted by name
  poolkeeper validate - < web.yaml           standard input
  poolkeeper validate pools/ --settings poolkeeper.yaml
  poolkeeper validate pools/ -o json | jq '.files[] | select(.ok | not)'

Example of a fault:
  error: rollout.maxsurge: there is no key maxsurge
   --> pools/web.yaml:7:3
    |
  7 |   maxsurge: 1
    |   ^
    |
    = allowed: method, maxSurge, …
    = help: did you mean maxSurge?";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Validate {
    /// Pool files, folders of them, or `-` for standard input
    #[arg(required = true, value_name = "FILE|FOLDER")]
    paths: Vec<PathBuf>,

    /// Settings file of the daemon, which names the metric servers that pools may use; by default, the file that
    /// POOLKEEPER_SETTINGS names
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

/// The result of one file.
struct FileResult {
    name: String,
    result: Result<FileContent, CommandFailure>,
}

struct FileContent {
    pools: Vec<String>,
    faults: Vec<Diagnostic>,
}

#[derive(Debug, Default)]
struct Sum {
    pools: usize,
    faults: usize,
    bad: usize,
    unreadable: usize,
}

impl Sum {
    const fn exit(&self) -> Exit {
        match (self.unreadable, self.faults) {
            (0, 0) => Exit::Done,
            (0, _) => Exit::Input,
            _ => Exit::Internal,
        }
    }
}

impl Validate {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("validate")?;
        let found = walk::files(&self.paths);
        let mut known = match self.outside_names()? {
            Some(names) => PoolDocuments::with_names(&names),
            None => PoolDocuments::default(),
        };
        let (mut checked, mut sum) = (Vec::new(), Sum::default());
        for file in found {
            let (file, bytes) = match file {
                Ok(source) => check(&source, &mut known, shell),
                Err((name, failure)) => (FileResult { name, result: Err(failure) }, Vec::new()),
            };
            sum.add(&file);
            if json {
                checked.push(file);
            } else {
                print(&file, &bytes, shell)?;
            }
        }
        if json {
            shell.line(&document(&checked, &sum))?;
        } else {
            let line = sum.line();
            let style = if sum.exit() == Exit::Done { Style::Green } else { Style::Red };
            shell.line(&shell.term.paint(style, &line))?;
        }
        Ok(sum.exit())
    }

    /// The names that pools may use. `None`: no settings are named, so every name is allowed.
    fn outside_names(&self) -> Result<Option<OutsideNames>, CommandFailure> {
        let settings = serve::named_settings(self.settings.clone())?;
        Ok(settings.map(|settings| settings.outside_names()))
    }
}

impl Sum {
    fn add(&mut self, file: &FileResult) {
        match &file.result {
            Ok(read) => {
                self.pools += read.pools.len();
                self.faults += read.faults.len();
                self.bad += usize::from(!read.faults.is_empty());
            }
            Err(_) => self.unreadable += 1,
        }
    }

    fn line(&self) -> String {
        let mut parts = vec![format!("{} ok", count(self.pools, "pool"))];
        if self.faults > 0 {
            parts.push(format!("{} in {}", count(self.faults, "fault"), count(self.bad, "file")));
        }
        if self.unreadable > 0 {
            parts.push(format!("{} not readable", count(self.unreadable, "file")));
        }
        parts.join(", ")
    }
}

/// The result of one file, and its bytes.
fn check(
    source: &SnapshotSource,
    known: &mut PoolDocuments,
    shell: &Shell,
) -> (FileResult, Vec<u8>) {
    let name = source.name();
    let bytes = match source.read(shell, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(failure) => return (FileResult { name, result: Err(failure) }, Vec::new()),
    };
    let (policies, faults) = known.read_file(&bytes, &name);
    let pools = policies.iter().map(|p| p.name.as_str().to_owned()).collect();
    (FileResult { name, result: Ok(FileContent { pools, faults }) }, bytes)
}

fn print(file: &FileResult, bytes: &[u8], shell: &mut Shell) -> Result<(), CommandFailure> {
    let term = shell.term;
    let name = plain(&file.name).into_owned();
    let read = match &file.result {
        Ok(read) => read,
        Err(failure) => {
            let help =
                failure.report.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
            let say = format!("{}{help}", failure.report.message);
            return shell.line(&term.paint(Style::Red, &plain(&say)));
        }
    };
    let text = String::from_utf8_lossy(bytes);
    let lines = snippet::lines(&text);
    for fault in &read.faults {
        shell.line(&snippet::draw(fault, &name, &lines, term))?;
        shell.line("")?;
    }
    match (read.pools.len(), read.faults.len()) {
        (0, _) => Ok(()),
        (_, faults) => {
            let but = if faults > 0 { " (but for the faults above)" } else { "" };
            let pools = list(read.pools.iter().map(String::as_str), usize::MAX);
            shell.line(&format!("{name}: {} {pools}{but}", term.paint(Style::Green, "ok:")))
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'static str,
    kind: &'static str,
    ok: bool,
    pools: usize,
    faults: usize,
    files: Vec<Answer<'a>>,
}

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a str,
    ok: bool,
    pools: &'a [String],
    faults: Vec<Fault<'a>>,
}

#[derive(Serialize)]
struct Fault<'a> {
    line: Option<u32>,
    column: Option<u32>,
    field: &'a str,
    code: &'static str,
    message: &'a str,
    allowed: &'a [&'static str],
    nearest: Option<&'a str>,
    help: Option<&'a str>,
}

fn document(checked: &[FileResult], sum: &Sum) -> String {
    let document = Document {
        api_version: API_VERSION,
        kind: "Validation",
        ok: sum.exit() == Exit::Done,
        pools: sum.pools,
        faults: sum.faults + sum.unreadable,
        files: checked.iter().map(of_file).collect(),
    };
    serde_json::to_string(&document).unwrap_or_default()
}

fn of_file(file: &FileResult) -> Answer<'_> {
    let (pools, faults) = match &file.result {
        Ok(read) => (read.pools.as_slice(), read.faults.iter().map(of_fault).collect()),
        Err(failure) => (&[][..], vec![of_failure(failure)]),
    };
    Answer { file: &file.name, ok: faults.is_empty(), pools, faults }
}

fn of_fault(fault: &Diagnostic) -> Fault<'_> {
    Fault {
        line: Some(fault.line),
        column: Some(fault.column),
        field: &fault.key,
        code: fault.code.name(),
        message: &fault.message,
        allowed: &fault.allowed,
        nearest: fault.nearest.as_deref(),
        help: fault.help.as_deref(),
    }
}

fn of_failure(failure: &CommandFailure) -> Fault<'_> {
    Fault {
        line: None,
        column: None,
        field: "",
        code: failure.code,
        message: &failure.report.message,
        allowed: &[],
        nearest: None,
        help: failure.report.help.as_deref(),
    }
}
