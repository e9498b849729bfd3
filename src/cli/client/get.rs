//! Reads pools of a running Poolkeeper server, or one part of a pool.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use serde_json::Value;

use super::short_pool::shortest;
use super::{ENVIRONMENT, Server, items, understood};
use crate::api::v1::resources::machines::MachineStatus;
use crate::api::v1::resources::pools::{PoolNumbers, PoolStatus};
use crate::api::v1::resources::stop::StopDetail;
use crate::cli::exit::{CommandFailure, Exit, with_exit_codes};
use crate::cli::output::{ListStyle, OutputFormat, Shell};
use crate::cli::page::{MachineListing, MachineOrder, push_stop};
use crate::cli::table::{Cell, Table, push_line};
use crate::cli::term::Style;
use crate::cli::text::plain;
use crate::cli::yaml::JsonTree;
use crate::model::plan::RolloutPhase;

const GET: &str = "Shows the pools of a running daemon, or one part of a pool";
const GET_MORE: &str = "\
Without a name it lists the pools. With a name it shows the pool's document, or the named part. A list is a table; \
everything else is YAML, or JSON with --output json. The document has no defaults in it and can be applied again; \
--output yaml shows it with all its keys.

Machines with the same state, image and reason are one line, the worst first; --output wide shows a line for each, \
and --output name the names alone.

The words of kubectl work too: `get pools`, `get pool web`, `get pool/web`, `get machines web`. A pool that is really \
called pools, or like a part, is reached by `get pool pools`.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper get                                every pool
  poolkeeper get web > web.yaml                 the document of a pool, to edit and apply
  poolkeeper get web machines                   its machines, equal ones in one line
  poolkeeper get web machines --sort-by age     the oldest first
  poolkeeper get web machines -o wide | grep Unready
  poolkeeper get web rollout -o json";

/// The most lines of machines if the height of the screen is not known.
const LINES: usize = 20;

#[derive(Debug, Args)]
#[command(
    about = GET,
    long_about = format!("{GET}.\n\n{GET_MORE}"),
    after_long_help = with_exit_codes(&format!("{EXAMPLES}\n\n{ENVIRONMENT}"))
)]
pub struct Get {
    /// Name of the pool
    pool: Option<String>,

    /// Which part of the pool to print
    #[arg(value_parser = PartWord)]
    part: Option<String>,

    #[arg(hide = true)]
    last: Option<String>,

    /// The order of the machines
    #[arg(long, value_enum, value_name = "KEY")]
    sort_by: Option<MachineOrder>,

    /// Show times as they are, not as distances from now
    #[arg(long)]
    timestamps: bool,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Part {
    /// The pool document, in a form that can be applied again
    #[default]
    Document,
    /// The status of the pool, and what it waits for
    Status,
    /// The machines of the pool
    #[value(alias = "machine")]
    Machines,
    /// The rollout of the pool
    Rollout,
    /// The plan of the last turn
    Plan,
    /// Why nothing (more) happens
    Explain,
}

impl Part {
    const fn path(self) -> Option<&'static str> {
        match self {
            Part::Document => None,
            Part::Status => Some("status"),
            Part::Machines => Some("machines"),
            Part::Rollout => Some("rollout"),
            Part::Plan => Some("plan"),
            Part::Explain => Some("explain"),
        }
    }

    fn of(word: &str) -> Option<Self> {
        Part::from_str(word, true).ok()
    }

    fn needed(word: &str) -> Result<Self, CommandFailure> {
        Part::of(word).ok_or_else(|| {
            CommandFailure::usage(format!("a pool has no part {}", plain(word)))
                .help("the parts are document, status, machines, rollout, plan and explain")
        })
    }
}

/// Offers the names of parts, and takes any word: after `pool`, it is the name of a pool.
#[derive(Debug, Clone)]
struct PartWord;

impl TypedValueParser for PartWord {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Part::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}

/// What the words name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GetTarget<'a> {
    Pools,
    Pool(&'a str, Part),
}

impl<'a> GetTarget<'a> {
    fn of(words: &[&'a str]) -> Result<Self, CommandFailure> {
        let is_kind = |word: &str| matches!(word, "pool" | "pools");
        let slashed = words.first().and_then(|word| word.split_once('/'));
        if let Some((kind, name)) = slashed.filter(|(kind, _)| is_kind(kind)) {
            let rest = words.get(1..).unwrap_or_default();
            return Self::of(&[&[kind, name], rest].concat());
        }
        match *words {
            [] => Ok(GetTarget::Pools),
            [kind] if is_kind(kind) => Ok(GetTarget::Pools),
            [kind, pool] if is_kind(kind) => Ok(GetTarget::Pool(pool, Part::Document)),
            [kind, pool, part] if is_kind(kind) => Ok(GetTarget::Pool(pool, Part::needed(part)?)),
            [machines] if Part::of(machines) == Some(Part::Machines) => {
                Err(CommandFailure::usage("the machines of which pool?")
                    .help(format!("`poolkeeper get {machines} POOL`; a pool of this name is reached by `get pool {machines}`")))
            }
            [pool] => Ok(GetTarget::Pool(pool, Part::Document)),
            [part, pool] if Part::of(pool).is_none() && Part::of(part).is_some() => {
                Ok(GetTarget::Pool(pool, Part::needed(part)?))
            }
            [pool, part] => Ok(GetTarget::Pool(pool, Part::needed(part)?)),
            _ => Err(CommandFailure::usage("these are too many words")
                .help("`poolkeeper get POOL PART`, or `poolkeeper get pool POOL PART`")),
        }
    }
}

impl Get {
    pub(in crate::cli) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        shell.one_document("get")?;
        let words = [&self.pool, &self.part, &self.last];
        let words: Vec<&str> = words.into_iter().filter_map(Option::as_deref).collect();
        let target = GetTarget::of(&words)?;
        let is_of_machines = matches!(target, GetTarget::Pool(_, Part::Machines));
        if !is_of_machines && (self.sort_by.is_some() || self.timestamps) {
            let say = "--sort-by and --timestamps are for machines";
            return Err(CommandFailure::usage(say).help("`poolkeeper get POOL machines`"));
        }
        match target {
            GetTarget::Pools => self.pools(shell)?,
            GetTarget::Pool(pool, Part::Machines) => self.machines(pool, shell)?,
            GetTarget::Pool(pool, part) => self.document(pool, part, shell)?,
        }
        Ok(Exit::Done)
    }

    fn pools(&self, shell: &mut Shell) -> Result<(), CommandFailure> {
        let list = self.server.line()?.all(&["pools"])?;
        if shell.format != OutputFormat::Table {
            return shell.line(&list.to_string());
        }
        let items: Vec<PoolStatus> = items(&list)?;
        match shell.list {
            ListStyle::Name => names("pool", items.iter().map(|item| item.name.as_str()), shell),
            style => {
                let stop = items.first().and_then(|item| item.stop_all.as_ref());
                print_stop(stop, shell)?;
                match style {
                    _ if items.is_empty() => shell.line("none"),
                    ListStyle::Wide => shell.table(&pools(&items, true), None),
                    _ => shell.table(&pools(&items, false), shell.term.width),
                }
            }
        }
    }

    fn machines(&self, pool: &str, shell: &mut Shell) -> Result<(), CommandFailure> {
        let line = self.server.line()?;
        let path = ["pools", pool, "machines"];
        let list = line.all(&path).map_err(|failure| line.about(&path, failure))?;
        if shell.format != OutputFormat::Table {
            return shell.line(&list.to_string());
        }
        let items: Vec<MachineStatus> = items(&list)?;
        let order = self.sort_by.unwrap_or_default();
        if shell.list == ListStyle::Name {
            let list = MachineListing::of(&items, order, None, false);
            return names("machine", list.ids(), shell);
        }
        if items.is_empty() {
            return shell.line("none");
        }
        let status = line.status(pool)?.1;
        print_stop(status.stop_all.as_ref(), shell)?;
        let now = status.at.map(|at| at.0);
        let list = MachineListing::of(&items, order, now, self.timestamps);
        if shell.list == ListStyle::Wide {
            return shell.table(&list.wide(), None);
        }
        // A line of machines takes three lines of a screen.
        let most = shell.term.height.map_or(LINES, |tall| (tall / 3).max(4));
        let (table, more) = list.folded(most);
        shell.table(&table, shell.term.width)?;
        let Some(more) = more else { return Ok(()) };
        let mut line = String::new();
        push_line(&mut line, &shell.term.paint(Style::Dim, &more));
        shell.print(&line)
    }

    fn document(&self, pool: &str, part: Part, shell: &mut Shell) -> Result<(), CommandFailure> {
        if shell.list == ListStyle::Wide
            || (shell.list == ListStyle::Name && part != Part::Document)
        {
            let say = "this is one document, and no list";
            return Err(CommandFailure::usage(say).help("use --output yaml or --output json"));
        }
        let (written, _): (_, Value) = self.server.line()?.of_pool(pool, part.path().as_slice())?;
        if shell.format != OutputFormat::Table {
            return shell.line(&written);
        }
        if shell.list == ListStyle::Name {
            return names("pool", [pool].into_iter(), shell);
        }
        let document: JsonTree = understood(&written)?;
        let document = if part == Part::Document { shortest(document) } else { document };
        shell.document(&document)
    }
}

/// A name a line, as commands take it.
fn names<'n>(
    kind: &str,
    mut names: impl Iterator<Item = &'n str>,
    shell: &mut Shell,
) -> Result<(), CommandFailure> {
    names.try_for_each(|name| shell.line(&format!("{kind}/{}", plain(name))))
}

fn print_stop(stop: Option<&StopDetail>, shell: &mut Shell) -> Result<(), CommandFailure> {
    let mut first = String::new();
    push_stop(stop, shell.term, &mut first);
    shell.print(&first)
}

fn number(pool: &PoolStatus, of: fn(&PoolNumbers) -> u32) -> Cell {
    pool.numbers.as_ref().map_or_else(|| "-".to_owned(), |all| of(all).to_string()).into()
}

fn phase(pool: &PoolStatus) -> Cell {
    let phase = &*pool.phase;
    if phase == RolloutPhase::None.name() { "-".into() } else { phase.into() }
}

/// Why nothing more happens, as a code.
fn waits_for(pool: &PoolStatus) -> Cell {
    let frozen = pool.frozen.as_ref().map(|hold| hold.reason.as_ref());
    let trouble = pool.trouble.as_ref().map(|trouble| trouble.message.as_str());
    let hold = pool.holds.first().map(|hold| hold.reason.as_ref());
    frozen.or(trouble).or(hold).unwrap_or("-").into()
}

/// One pool a line; a wide list has more columns.
fn pools(items: &[PoolStatus], is_wide: bool) -> Table {
    const MORE: [&str; 6] = ["FAILED", "TOTAL", "FLOOR", "CEILING", "ORIGIN", "SCALE SET"];
    let more = if is_wide { &MORE[..] } else { &[] };
    let mut table = Table::new(0).names(&[0]);
    let first = ["POOL", "ROLLOUT", "WANTED", "AVAILABLE", "OUTDATED"];
    table.heading(&[&first[..], more, &["WAITS FOR"]].concat());
    for item in items {
        let mut row = vec![
            Cell::new(&item.name, Style::Bold),
            phase(item),
            number(item, |all| all.desired),
            number(item, |all| all.available),
            number(item, |all| all.outdated),
        ];
        if is_wide {
            row.extend([
                number(item, |all| all.failed),
                number(item, |all| all.total),
                number(item, |all| all.floor),
                number(item, |all| all.ceiling),
                item.file.as_deref().unwrap_or(&item.origin).into(),
                item.scale_set.as_str().into(),
            ]);
        }
        row.push(waits_for(item));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubectl_users_type_is_understood() {
        let pool = |name, part| Ok(GetTarget::Pool(name, part));
        for (words, target) in [
            (&[][..], Ok(GetTarget::Pools)),
            (&["pools"], Ok(GetTarget::Pools)),
            (&["pool"], Ok(GetTarget::Pools)),
            (&["web"], pool("web", Part::Document)),
            (&["pool", "web"], pool("web", Part::Document)),
            (&["pools/web"], pool("web", Part::Document)),
            (&["pool/web", "machines"], pool("web", Part::Machines)),
            (&["pool", "pools"], pool("pools", Part::Document)),
            (&["pool", "machines", "status"], pool("machines", Part::Status)),
            (&["web", "machines"], pool("web", Part::Machines)),
            (&["machines", "web"], pool("web", Part::Machines)),
            (&["machine", "web"], pool("web", Part::Machines)),
            (&["rollout", "web"], pool("web", Part::Rollout)),
            (&["plan", "status"], pool("plan", Part::Status)),
        ] {
            let words: &[&str] = words;
            let found: Result<_, CommandFailure> = GetTarget::of(words);
            assert_eq!(found, target, "{words:?}");
        }
        for (words, hint) in [
            (&["web", "colour"][..], "machines"),
            (&["machines"], "get machines POOL"),
            (&["web", "plan", "status"], "POOL PART"),
        ] {
            let failure = GetTarget::of(words).unwrap_err();
            let help = failure.report.help.clone().unwrap_or_default();
            assert!(failure.exit == Exit::Input && help.contains(hint), "{help}");
        }
    }
}
