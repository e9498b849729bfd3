//! `context`: the named servers of this person, and which of them commands use.
//!
//! Never here: a token, or a request to a server.

use std::path::{Path, absolute};

use clap::{Args, Subcommand};
use serde::Serialize;

use super::client::context::{CONTEXT, ClientContext, ClientSettings};
use super::client::environment::set;
use super::client::failure;
use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::table::{Cell, Table};
use super::term::Style;
use super::text::plain;
use crate::api::client::{Client, ClientToken};
use crate::api::v1::API_VERSION;

const ABOUT: &str = "Lists named servers, and chooses the one that commands use";
const MORE: &str = "\
A context is a server with a name: its address, where its token comes from, and the certificates that it needs. The \
current context is the server of every command that names no other: --context names another context for one command, \
POOLKEEPER_CONTEXT for one shell. A server in --server or POOLKEEPER_SERVER is used without a context.

Contexts are in ~/.config/poolkeeper/client.yaml, or in the file that POOLKEEPER_CLIENT_FILE names. No token is in \
it: only the file, the variable or the command that has the token.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper context set lab --server http://127.0.0.1:7770
  poolkeeper context set prod --server https://pools.example.com --token-file ~/prod.token
  poolkeeper context set prod --token-command 'az account get-access-token --query accessToken -o tsv'
  poolkeeper context
  poolkeeper context use prod
  poolkeeper --context lab status
  poolkeeper context remove lab";

#[derive(Debug, Args)]
#[command(about = ABOUT, long_about = format!("{ABOUT}.\n\n{MORE}"), after_long_help = with_exit_codes(EXAMPLES))]
pub struct ContextCommand {
    #[command(subcommand)]
    action: Option<ContextAction>,
}

#[derive(Debug, Subcommand)]
enum ContextAction {
    /// Make a context the current one
    Use {
        /// Name of the context
        name: String,
    },
    /// Add a context, or change one; the first one is current
    Set(ContextSet),
    /// Remove a context; its token stays where it is
    Remove {
        /// Name of the context
        name: String,
    },
}

#[derive(Debug, Args)]
struct ContextSet {
    /// Name of the context
    name: String,

    /// URL of the server
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// File that has the token; only its owner and group may read it
    #[arg(long, value_name = "FILE", group = "token")]
    token_file: Option<String>,

    /// Environment variable that has the token
    #[arg(long, value_name = "VARIABLE", group = "token")]
    token_env: Option<String>,

    /// Command that prints the token, with its arguments, without a shell
    #[arg(long, value_name = "COMMAND", group = "token")]
    token_command: Option<String>,

    /// PEM file of certificates to trust in addition to the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,

    /// PEM file of the certificate that this client shows
    #[arg(long, value_name = "FILE")]
    client_certificate: Option<String>,

    /// PEM file of the key of that certificate
    #[arg(long, value_name = "FILE")]
    client_key: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextList<'a> {
    api_version: &'static str,
    kind: &'static str,
    current: Option<String>,
    items: &'a [ClientContext],
}

impl ContextCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("context")?;
        let mut settings = ClientSettings::read()?;
        let done = match &self.action {
            None => None,
            Some(ContextAction::Use { name }) => Some(choose(&mut settings, name)?),
            Some(ContextAction::Set(change)) => Some(change.apply(&mut settings)?),
            Some(ContextAction::Remove { name }) => Some(remove(&mut settings, name)?),
        };
        if done.is_some() {
            settings.write()?;
        }
        if is_json {
            let (api_version, kind) = (API_VERSION, "ContextList");
            let (current, items) = (settings.effective(), settings.contexts.as_slice());
            let document = ContextList { api_version, kind, current, items };
            shell.line(&serde_json::to_string(&document).unwrap_or_default())?;
        } else if let Some(done) = done {
            shell.line(&plain(&done))?;
        } else {
            shell.print(&page(&settings, shell))?;
        }
        if let Some(server) = set("POOLKEEPER_SERVER") {
            let say = format!("any context, because POOLKEEPER_SERVER names {server}");
            shell.say(Style::Yellow, "not used", &say);
        } else if let Some(name) =
            set(CONTEXT).filter(|name| settings.current.as_ref() != Some(name))
        {
            let say = format!("the current context, because {CONTEXT} names {name}");
            shell.say(Style::Yellow, "not used", &say);
        }
        Ok(Exit::Done)
    }
}

fn page(settings: &ClientSettings, shell: &Shell) -> String {
    if settings.contexts.is_empty() {
        return "no contexts; `poolkeeper context set NAME --server URL` adds one\n".to_owned();
    }
    let current = settings.effective();
    let mut table = Table::new(0).names(&[1, 2]);
    table.heading(&["", "NAME", "SERVER", "TOKEN"]);
    for context in &settings.contexts {
        let is_current = current.as_ref() == Some(&context.name);
        let style = if is_current { Style::Bold } else { Style::Plain };
        table.row([
            Cell::new(if is_current { "*" } else { "" }, Style::Green),
            Cell::new(&context.name, style),
            Cell::new(&context.server, style),
            Cell::new(context.token_source(), Style::Plain),
        ]);
    }
    let mut page = String::new();
    table.draw(shell.term, &mut page);
    page
}

fn choose(settings: &mut ClientSettings, name: &str) -> Result<String, CommandFailure> {
    let server = settings.find(name)?.server.clone();
    settings.current = Some(name.to_owned());
    Ok(format!("current context: {name} ({server})"))
}

fn remove(settings: &mut ClientSettings, name: &str) -> Result<String, CommandFailure> {
    let at = settings.position(name)?;
    settings.contexts.remove(at);
    if settings.current.as_deref() == Some(name) {
        settings.current = None;
        return Ok(format!("removed: {name}; no context is current"));
    }
    Ok(format!("removed: {name}"))
}

impl ContextSet {
    fn apply(&self, settings: &mut ClientSettings) -> Result<String, CommandFailure> {
        let known = settings.position(&self.name).ok();
        let before = known.and_then(|at| settings.contexts.get(at)).cloned();
        let is_new = before.is_none();
        let mut context = before.unwrap_or_default();
        context.name.clone_from(&self.name);
        self.change(&mut context)?;
        check(&context)?;
        match known.and_then(|at| settings.contexts.get_mut(at)) {
            Some(place) => *place = context,
            None => settings.contexts.push(context),
        }
        let is_first = is_new && settings.contexts.len() == 1;
        if is_first {
            settings.current = Some(self.name.clone());
        }
        Ok(match (is_new, is_first) {
            (true, true) => format!("added: {}, the current context", self.name),
            (true, false) => format!("added: {}", self.name),
            (false, _) => format!("changed: {}", self.name),
        })
    }

    /// What is not named stays. A file is stored with its whole path, so that it is found from every folder.
    fn change(&self, context: &mut ClientContext) -> Result<(), CommandFailure> {
        if let Some(server) = &self.server {
            context.server.clone_from(server);
        }
        if self.token_file.is_some() || self.token_env.is_some() || self.token_command.is_some() {
            context.token_file = self.token_file.as_deref().map(whole).transpose()?;
            context.token_env.clone_from(&self.token_env);
            let words = self.token_command.iter().flat_map(|command| command.split_whitespace());
            context.token_command = words.map(str::to_owned).collect();
        }
        for (path, place) in [
            (&self.ca, &mut context.ca),
            (&self.client_certificate, &mut context.client_certificate),
            (&self.client_key, &mut context.client_key),
        ] {
            if let Some(path) = path {
                *place = Some(whole(path)?);
            }
        }
        Ok(())
    }
}

fn whole(path: &str) -> Result<String, CommandFailure> {
    let whole = absolute(Path::new(path))
        .map_err(|error| CommandFailure::usage(format!("{path} is no path: {error}")))?;
    Ok(whole.display().to_string())
}

/// A context that no command could use is not stored.
fn check(context: &ClientContext) -> Result<(), CommandFailure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name = &context.name;
    if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
        return Err(CommandFailure::usage(format!("{name} is no name of a context"))
            .help("use letters, digits, dots, dashes and underscores"));
    }
    if context.server.is_empty() {
        return Err(CommandFailure::usage(format!("the context {name} has no server"))
            .help("add --server URL"));
    }
    if context.client_certificate.is_some() != context.client_key.is_some() {
        return Err(CommandFailure::usage("a client certificate and its key need each other")
            .help("add --client-certificate FILE and --client-key FILE"));
    }
    let has_token = context.token_source() != ClientContext::default().token_source();
    let token = has_token.then(|| ClientToken::new(""));
    Client::new(&context.server, token, None).map(drop).map_err(|error| failure(&error))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: ContextCommand,
    }

    fn apply(settings: &mut ClientSettings, args: &[&str]) -> Result<String, CommandFailure> {
        let line = Line::parse_from([&["x", "set"], args].concat());
        let Some(ContextAction::Set(change)) = line.command.action else { panic!("{args:?}") };
        change.apply(settings)
    }

    #[test]
    fn contexts_are_added_changed_chosen_and_removed() {
        Line::command().debug_assert();
        let mut settings = ClientSettings::default();
        let lab = ["lab", "--server", "http://127.0.0.1:7770"];
        assert_eq!(apply(&mut settings, &lab).unwrap(), "added: lab, the current context");
        let prod = ["prod", "--server", "https://pools.example", "--token-env", "PROD"];
        assert_eq!(apply(&mut settings, &prod).unwrap(), "added: prod");
        assert_eq!(settings.current.as_deref(), Some("lab"));
        let command = ["prod", "--token-command", "az  account get"];
        assert_eq!(apply(&mut settings, &command).unwrap(), "changed: prod");
        let changed = settings.find("prod").unwrap();
        assert_eq!((&changed.token_env, changed.server.as_str()), (&None, "https://pools.example"));
        assert_eq!(changed.token_command, ["az", "account", "get"]);
        let chosen = choose(&mut settings, "prod").unwrap();
        assert_eq!(chosen, "current context: prod (https://pools.example)");
        assert_eq!(remove(&mut settings, "prod").unwrap(), "removed: prod; no context is current");
        assert_eq!(settings.contexts.len(), 1);
        assert_eq!(remove(&mut settings, "prod").unwrap_err().exit, Exit::NotFound);
    }

    #[test]
    fn a_context_that_cannot_be_used_is_refused() {
        let mut settings = ClientSettings::default();
        for (args, said) in [
            (&["lab"][..], "has no server"),
            (&["a b", "--server", "http://x"], "no name of a context"),
            (&["lab", "--server", "pools"], "no address of a server"),
            (&["lab", "--server", "http://pools.example", "--token-env", "T"], "use https"),
            (
                &["lab", "--server", "https://x", "--ca", "a", "--client-key", "k"],
                "need each other",
            ),
        ] {
            let refused = apply(&mut settings, args).unwrap_err();
            assert_eq!(refused.exit, Exit::Input, "{args:?}");
            assert!(refused.to_string().contains(said), "{args:?}: {refused}");
        }
        assert_eq!(settings, ClientSettings::default());
    }
}
