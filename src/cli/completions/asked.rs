//! Determines which names fit after the words typed so far, from the same command table that parses them.

use std::path::PathBuf;

use clap::{Arg, Command};

/// What to look up, and on which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompletionContext {
    pub meant: CompletionTarget,
    pub server: Option<String>,
    pub ca: Option<PathBuf>,
    pub context: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CompletionTarget {
    Pools,
    MachinesOf(String),
    Contexts,
}

/// Options that make a command read from somewhere other than a server.
const ELSEWHERE: [&str; 3] = ["snapshot", "pool-file", "resource"];

/// Whether an argument is the name of a pool.
pub(super) fn is_pool(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "pool" | "pools") && arg.is_positional()
}

/// Whether an argument is the name of a known context.
fn is_context(command: &Command, arg: &Arg) -> bool {
    arg.get_id() == "name" && matches!(command.get_name(), "use" | "remove" | "set")
}

pub(super) fn is_machine(arg: &Arg) -> bool {
    arg.get_id() == "machine" && arg.is_positional()
}

/// `None`: neither a pool name nor a machine name fits here.
pub(super) fn asked(root: &Command, words: &[String]) -> Option<CompletionContext> {
    let (mut command, mut named) = (None::<&Command>, Vec::new());
    let (mut server, mut ca, mut context) = (None, None, None);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let options = command.unwrap_or(root);
        if let Some((arg, value)) = option(options, word) {
            let takes = arg.is_some_and(|arg| arg.get_action().takes_values());
            let value = match (value, takes) {
                (None, true) => match (words.next(), arg.and_then(Arg::get_long)) {
                    (None, Some("context")) => return Some(CompletionContext::contexts()),
                    (value, _) => Some(value?),
                },
                (value, _) => value,
            };
            match arg.and_then(Arg::get_long) {
                Some("server") => server = value.map(str::to_owned),
                Some("context") => context = value.map(str::to_owned),
                Some("server-ca") => ca = value.map(PathBuf::from),
                Some(long) if ELSEWHERE.contains(&long) => return None,
                _ => {}
            }
        } else if let Some(inner) = options.find_subcommand(word) {
            command = Some(inner);
        } else {
            command?;
            named.push(word);
        }
    }
    let mut places = command?.get_positionals();
    let last = command?.get_positionals().last();
    let many = last.filter(|arg| arg.get_action().takes_values() && takes_many(arg));
    let arg = places.nth(named.len()).or(many)?;
    // `get pool web` and `get machines web` are what kubectl users type.
    let is_after_kind = command?.get_name() == "get"
        && matches!(named[..], ["pool" | "pools" | "machine" | "machines"]);
    let meant = match arg {
        arg if is_context(command?, arg) => CompletionTarget::Contexts,
        _ if is_after_kind => CompletionTarget::Pools,
        arg if is_pool(arg) => CompletionTarget::Pools,
        arg if is_machine(arg) => CompletionTarget::MachinesOf((*named.first()?).to_owned()),
        _ => return None,
    };
    Some(CompletionContext { meant, server, ca, context })
}

impl CompletionContext {
    const fn contexts() -> Self {
        Self { meant: CompletionTarget::Contexts, server: None, ca: None, context: None }
    }
}

fn takes_many(arg: &Arg) -> bool {
    matches!(arg.get_action(), clap::ArgAction::Append)
}

/// Parses a word as an option, with its value if the same word holds it. An unknown option takes no value.
fn option<'c, 'w>(
    command: &'c Command,
    word: &'w str,
) -> Option<(Option<&'c Arg>, Option<&'w str>)> {
    let find = |is: &dyn Fn(&Arg) -> bool| command.get_arguments().find(|arg| is(arg));
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        return Some((find(&|arg| arg.get_long() == Some(name)), value));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let rest = letters.as_str();
    Some((find(&|arg| arg.get_short() == Some(letter)), (!rest.is_empty()).then_some(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use clap::CommandFactory;

    fn of(line: &str) -> Option<CompletionContext> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut command = Cli::command();
        command.build();
        asked(&command, &words)
    }

    #[test]
    fn pools_come_where_a_pool_is_meant() {
        for line in [
            "status",
            "status web",
            "plan",
            "explain",
            "get",
            "get pool",
            "get machines",
            "describe",
            "history",
            "history --follow",
            "history --last 5",
            "pause --why x",
            "-o json pause",
            "hold",
            "unmanage",
            "reset-capacity",
            "reset-breaker",
            "take-over",
        ] {
            assert_eq!(of(line).map(|asked| asked.meant), Some(CompletionTarget::Pools), "{line}");
        }
    }

    #[test]
    fn machines_come_after_their_pool() {
        for verb in ["explain", "hold", "release", "delete-machine", "undelete", "abandon"] {
            let meant = of(&format!("{verb} web")).map(|asked| asked.meant);
            assert_eq!(meant, Some(CompletionTarget::MachinesOf("web".to_owned())), "{verb}");
        }
    }

    #[test]
    fn contexts_come_where_a_context_is_meant() {
        for line in
            ["context use", "context remove", "context set", "--context", "status --context"]
        {
            let meant = of(line).map(|asked| asked.meant);
            assert_eq!(meant, Some(CompletionTarget::Contexts), "{line}");
        }
        for line in ["--context lab status", "status --context lab", "status --context=lab"] {
            let asked = of(line).unwrap();
            let found = (asked.meant, asked.context.as_deref());
            assert_eq!(found, (CompletionTarget::Pools, Some("lab")), "{line}");
        }
    }

    #[test]
    fn elsewhere_none_are_meant() {
        for line in [
            "",
            "sta",
            "audit",
            "validate",
            "context",
            "context use lab",
            "store backup",
            "pause web",
            "explain web 17",
            "get web",
            "explain --snapshot now.json",
            "plan -s now.json",
            "status -p pools/web.yaml",
            "pause --why",
            "explain -o",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn the_server_is_the_one_that_is_typed() {
        for line in ["status --server http://x:1", "status --server=http://x:1"] {
            assert_eq!(of(line).unwrap().server.as_deref(), Some("http://x:1"), "{line}");
        }
        let line = "hold --server-ca ca.pem --why odd web";
        assert_eq!(of(line).unwrap().ca, Some(PathBuf::from("ca.pem")));
    }
}
