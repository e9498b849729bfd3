//! `serve`: starts the daemon, from a terminal or a service manager.
//!
//! Never here: the rules for settings, or the care of pools (both belong to the daemon). Begin with [`Serve::run`].

mod flags;
mod settings;

use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::term::Style;
use crate::daemon::api_server::{ApiServerError, ListenError};
use crate::daemon::run::{DaemonEnd, DaemonOpenError, ServeError};
use crate::daemon::settings::sections::Section;
use crate::daemon::settings::{Effective, Settings, SettingsFault, Sources, keys};
use crate::daemon::store::OpenError;
use crate::daemon::{StartError, start};
use flags::Flags;

const ABOUT: &str = "Runs the daemon, which manages pools";
const MORE: &str = "\
Manages every pool in a folder of pool files, and keeps checking that folder. It takes in a new or changed file \
within seconds. A file with a fault changes nothing, and the daemon reports the place of the fault. When a file is \
removed, its pool is released: the daemon no longer touches it. SIGHUP checks at once. Pools can also be applied \
over the API, which listens on the loopback and serves the other commands of this program. If a file and an applied \
pool share a name or a scale set, the one that came first stays in effect.

One process leads at a time, under a lease; another process on the same store waits for the lease and says who \
leads. SIGTERM and SIGINT let running turns end, within seconds; a second signal ends the process at once. After a \
kill at any moment it continues where it was: it records each call before it sends it, and reads the outcome from \
the cloud.

Settings come from a file, the environment and flags; a later source overrides an earlier one. --print-settings \
prints the effective settings and the source of each. Logs go to standard error: text on a terminal, otherwise one \
JSON object per line. The daemon notifies systemd when it is ready (Type=notify), and its main loop notifies the \
watchdog if one is set.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper serve --pools pools
  poolkeeper serve --settings poolkeeper.yaml
  poolkeeper serve --settings poolkeeper.yaml --print-settings
  poolkeeper serve --set turns.atOnce=32 --set log.level=debug
  POOLKEEPER_LOG=debug poolkeeper serve

To try it without an account, run `poolkeeper emulate` in another terminal: it prints what to export.";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(&examples())
)]
pub struct Serve {
    #[command(flatten)]
    flags: Flags,
}

fn examples() -> String {
    let mut text = format!("{EXAMPLES}\n\nKeys, their variables and their defaults:\n");
    for key in keys::KEYS {
        let default = if key.default.is_empty() { "not set" } else { key.default };
        text.push_str(&format!("  {:<22} {:<34} {default}\n", key.name, key.variable));
    }
    for section in Section::ALL {
        let (name, entry) = (section.name(), section.entry());
        text.push_str(&format!(
            "\nKeys of each {entry}, by its name in the file or in --set {name}.NAME.KEY=VALUE:\n"
        ));
        for key in section.keys() {
            let default = if key.default.is_empty() { "not set" } else { key.default };
            let path = format!("{name}.NAME.{}", key.name);
            text.push_str(&format!("  {path:<37} {default}\n"));
        }
    }
    format!("{text}\n{}", super::cloud::ENVIRONMENT)
}

impl Serve {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("serve")?;
        let settled = self.sources()?.settle().map_err(|faults| refused(&faults, shell))?;
        if self.flags.print_settings {
            match json {
                true => shell.line(&settings::document(&settled))?,
                false => shell.print(&settled.to_yaml())?,
            }
            return Ok(Exit::Done);
        }
        serve(&settled)
    }

    fn sources(&self) -> Result<Sources, CommandFailure> {
        let file = settings_file(self.flags.settings.clone())?;
        // Skip variables that are not Unicode: none of them is ours.
        let variables = env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Ok(Sources { file, variables: variables.collect(), flags: self.flags.said()? })
    }
}

/// The settings of that file alone, for commands that are told how the daemon is set up. `None`: no file is named.
pub(super) fn named_settings(named: Option<PathBuf>) -> Result<Option<Settings>, CommandFailure> {
    let Some(file) = settings_file(named)? else { return Ok(None) };
    let name = file.0.clone();
    let settled = Sources { file: Some(file), ..Sources::default() }.settle();
    let settled = settled.map_err(|faults| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        CommandFailure::new(Exit::Input, "badValue", first).help(format!(
            "`poolkeeper serve --settings {name} --print-settings` shows every fault"
        ))
    })?;
    Ok(Some(settled.settings()))
}

/// The name and the content of the settings file: the one in `named`, or else the one that the environment names.
pub(super) fn settings_file(
    named: Option<PathBuf>,
) -> Result<Option<(String, Vec<u8>)>, CommandFailure> {
    let Some(path) = named.or_else(|| env::var_os(keys::FILE).map(Into::into)) else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let bytes = fs::read(&path).map_err(|error| CommandFailure::unreadable(&name, &error))?;
    Ok(Some((name, bytes)))
}

/// Prints all faults but the last, and returns the last as the failure.
fn refused(faults: &[SettingsFault], shell: &Shell) -> CommandFailure {
    let (last, before) = match faults {
        [before @ .., last] => (last.to_string(), before),
        [] => return CommandFailure::usage("settings are refused"),
    };
    for fault in before {
        shell.say(Style::Red, "error", &fault.to_string());
    }
    let failure = CommandFailure::new(Exit::Input, "badValue", last);
    failure.help("nothing was started; `poolkeeper help serve` lists the keys")
}

fn serve(settled: &Effective) -> Result<Exit, CommandFailure> {
    let settings = settled.settings();
    there(&settings)?;
    let traces = settings.begin_log(io::stderr().is_terminal());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        CommandFailure::new(Exit::Internal, "internal", format!("cannot start: {error}"))
    })?;
    let ended = runtime.block_on(start(settings, traces, |name| env::var(name).ok()));
    // Do not wait for tasks that still block on a socket.
    runtime.shutdown_background();
    match ended {
        Ok(DaemonEnd::Stopped) => Ok(Exit::Done),
        // The exit code that a shell reports for a process that a signal ended.
        Ok(DaemonEnd::Cut(signal)) => std::process::exit(128 + signal),
        Err(error) => Err(not_begun(error)),
    }
}

/// Checks that the folder of pool files exists. A missing folder is a mistake, and the daemon would manage no pools.
fn there(settings: &Settings) -> Result<(), CommandFailure> {
    let Some(pools) = &settings.pools else { return Ok(()) };
    let name = pools.display().to_string();
    match fs::read_dir(pools) {
        Ok(_) => Ok(()),
        Err(error) => {
            let failure =
                CommandFailure::unreadable(&format!("the folder of pool files, {name},"), &error);
            Err(failure.help("name the folder with --pools, POOLKEEPER_POOLS or the key pools; `--pools off` takes pools over the API alone"))
        }
    }
}

fn not_begun(error: StartError) -> CommandFailure {
    match error {
        StartError::Access(bad) => super::cloud::not_opened(&bad),
        StartError::Serve(ServeError::NotOpened(DaemonOpenError::Access(bad))) => {
            super::cloud::not_opened(&bad)
        }
        StartError::Serve(ServeError::NotOpened(DaemonOpenError::Trouble(trouble))) => {
            trouble.into()
        }
        StartError::Store(OpenError::InUse { .. }) => {
            // Do not suggest a second daemon with its own store: two leaders work against each other.
            CommandFailure::new(Exit::Internal, "store", error.to_string())
                .help("`poolkeeper status` asks the running daemon; with --set store.shared=true on both, this one stands by")
        }
        // The error itself names the remedy. A second store next to the first is not one.
        StartError::Store(_) => CommandFailure::new(Exit::Internal, "store", error.to_string()),
        StartError::ApiServer(error) => closed(&error),
        StartError::Traces(_) => CommandFailure::new(Exit::Input, "badValue", error.to_string())
            .help("nothing was started; telemetry.otlp names the collector"),
        StartError::Manager(_) => {
            CommandFailure::new(Exit::Internal, "internal", error.to_string())
                .help("NOTIFY_SOCKET is set by systemd; unset it to run by hand")
        }
        StartError::Serve(_) | StartError::Fault => {
            CommandFailure::new(Exit::Internal, "internal", error.to_string())
        }
    }
}

pub(super) fn closed(error: &ApiServerError) -> CommandFailure {
    let (exit, code, help) = match error {
        ApiServerError::Listen(ListenError::Listen { .. }) => {
            let help = "another process may listen there: name another address with --listen, or serve no API with --listen off";
            (Exit::Internal, "listen", help)
        }
        ApiServerError::Listen(ListenError::Read { .. })
        | ApiServerError::Certificate { .. }
        | ApiServerError::Unread { .. } => {
            (Exit::Internal, "unreadable", "it is named by the settings; nothing was started")
        }
        ApiServerError::Listen(ListenError::NoCredentials) => {
            let help =
                "`poolkeeper create-token` makes a token, and its line for the file of api.tokens";
            (Exit::Input, "badValue", help)
        }
        ApiServerError::HalfOidc(_)
        | ApiServerError::LoneOidc(_)
        | ApiServerError::NoRole(_)
        | ApiServerError::Issuer(_) => {
            let help =
                "nothing was started; `poolkeeper help serve` lists the keys that begin with oidc";
            (Exit::Input, "badValue", help)
        }
        ApiServerError::FewDescriptors(_) => {
            (Exit::Internal, "listen", "nothing was started; --listen off serves no API")
        }
        ApiServerError::Listen(_)
        | ApiServerError::HalfSealed
        | ApiServerError::LoneClients
        | ApiServerError::OnePerson
        | ApiServerError::Tokens { .. } => {
            let help =
                "nothing was started; `poolkeeper help serve` lists the keys that begin with api";
            (Exit::Input, "badValue", help)
        }
    };
    CommandFailure::new(exit, code, error.to_string()).help(help)
}
