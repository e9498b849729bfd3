//! `serve`: the daemon, from the terminal or a service manager.
//!
//! Never here: what a setting may be, or how a pool is looked after (both are the daemon's). Begin with [`Serve::run`].

mod flags;
mod told;

use std::env;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;

use super::args::with_exit_codes;
use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::term::Style;
use crate::daemon::door::{ListenError, NoDoor};
use crate::daemon::run::{BeginError, Ended, NotOpened, ServeError, begin};
use crate::daemon::settings::{Effective, Fault, Settings, Sources, keys};
use crate::daemon::store::OpenError;
use flags::Flags;

const ABOUT: &str = "Keeps pools: the daemon";
const MORE: &str = "\
Looks after every pool of a folder of pool files, and keeps looking at that folder: a file that is new or changed is \
taken in within seconds, one that is faulty changes nothing and is told with its place, and a pool whose file is taken \
away is released: nothing of it is touched any more. SIGHUP looks at once. Pools may also be applied over the API, \
which listens on the loopback and which the commands of this program ask; of a file and an applied pool that share a \
name or a scale set the one that was there first goes on.

One process leads at a time, under a lease; another one that is started on the same store waits for it and says who \
leads. SIGTERM and SIGINT let the turns that run come to their end, within seconds, and a second one ends at once. \
Killed at any moment it goes on where it was: what it meant to do was written down before, and what came of it is read \
off the cloud.

Settings come from a file, from the environment and from flags, the later before the earlier; --print-settings says \
what holds and where it came from. Logs go to standard error: text on a terminal, else one JSON object a line. systemd \
is told when it is ready (Type=notify), and hears from the loop itself where it wants a watchdog.";
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
    format!("{text}\n{}", super::cloud::ENVIRONMENT)
}

impl Serve {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("serve")?;
        let settled = self.sources()?.settle().map_err(|faults| refused(&faults, shell))?;
        if self.flags.print_settings {
            match json {
                true => shell.line(&told::document(&settled))?,
                false => shell.print(&settled.to_yaml())?,
            }
            return Ok(Exit::Done);
        }
        serve(&settled)
    }

    fn sources(&self) -> Result<Sources, Failure> {
        let file = settings_file(self.flags.settings.clone())?;
        // What is no text is none of ours.
        let variables = env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Ok(Sources { file, variables: variables.collect(), flags: self.flags.said()? })
    }
}

/// The settings file by its name, and what is in it; as the environment names it where `named` does not.
pub(super) fn settings_file(named: Option<PathBuf>) -> Result<Option<(String, Vec<u8>)>, Failure> {
    let Some(path) = named.or_else(|| env::var_os(keys::FILE).map(Into::into)) else {
        return Ok(None);
    };
    let name = path.display().to_string();
    let bytes = fs::read(&path).map_err(|error| Failure::unreadable(&name, &error))?;
    Ok(Some((name, bytes)))
}

/// All of them at once; the document names the first.
fn refused(faults: &[Fault], shell: &Shell) -> Failure {
    let (last, before) = match faults {
        [before @ .., last] => (last.to_string(), before),
        [] => return Failure::usage("settings are refused"),
    };
    for fault in before {
        shell.say(Style::Red, "error", &fault.to_string());
    }
    let failure = Failure::new(Exit::Input, "badValue", last);
    failure.help("nothing was started; `poolkeeper help serve` lists the keys")
}

fn serve(settled: &Effective) -> Result<Exit, Failure> {
    let settings = settled.settings();
    there(&settings)?;
    let traces = settings.begin_log(io::stderr().is_terminal());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Internal, "internal", format!("cannot begin: {error}"))
    })?;
    let ended = runtime.block_on(begin(settings, traces, |name| env::var(name).ok()));
    // Whatever still hangs on a socket is not waited for.
    runtime.shutdown_background();
    match ended {
        Ok(Ended::Stopped) => Ok(Exit::Done),
        // As a shell tells of a process that a signal ended.
        Ok(Ended::Cut(signal)) => std::process::exit(128 + signal),
        Err(error) => Err(not_begun(error)),
    }
}

/// A folder that is not there is a slip, and no pools at all would be served.
fn there(settings: &Settings) -> Result<(), Failure> {
    let Some(pools) = &settings.pools else { return Ok(()) };
    let name = pools.display().to_string();
    match fs::read_dir(pools) {
        Ok(_) => Ok(()),
        Err(error) => {
            let failure =
                Failure::unreadable(&format!("the folder of pool files, {name},"), &error);
            Err(failure.help("name the folder with --pools, POOLKEEPER_POOLS or the key pools; `--pools off` takes pools over the API alone"))
        }
    }
}

fn not_begun(error: BeginError) -> Failure {
    match error {
        BeginError::Access(bad) => super::cloud::not_opened(&bad),
        BeginError::Serve(ServeError::NotOpened(NotOpened::Access(bad))) => {
            super::cloud::not_opened(&bad)
        }
        BeginError::Serve(ServeError::NotOpened(NotOpened::Trouble(trouble))) => trouble.into(),
        BeginError::Store(OpenError::InUse { .. }) => {
            // No second one on a store of its own: two that lead work against each other.
            Failure::new(Exit::Internal, "store", error.to_string())
                .help("`poolkeeper status` asks the one that runs; --set store.shared=true on both lets this one stand by")
        }
        // The error itself says what to do. A second store beside the first one is no remedy.
        BeginError::Store(_) => Failure::new(Exit::Internal, "store", error.to_string()),
        BeginError::Door(no_door) => closed(&no_door),
        BeginError::Traces(_) => Failure::new(Exit::Input, "badValue", error.to_string())
            .help("nothing was started; telemetry.otlp names the collector"),
        BeginError::Manager(_) => Failure::new(Exit::Internal, "internal", error.to_string())
            .help("NOTIFY_SOCKET is set by systemd; unset it to run by hand"),
        BeginError::Serve(_) | BeginError::Fault => {
            Failure::new(Exit::Internal, "internal", error.to_string())
        }
    }
}

pub(super) fn closed(no_door: &NoDoor) -> Failure {
    let (exit, code, help) = match no_door {
        NoDoor::Listen(ListenError::Listen { .. }) => {
            let help = "another process may listen there: name another address with --listen, or serve no API with --listen off";
            (Exit::Internal, "listen", help)
        }
        NoDoor::Listen(ListenError::Read { .. })
        | NoDoor::Certificate { .. }
        | NoDoor::Unread { .. } => {
            (Exit::Internal, "unreadable", "it is named by the settings; nothing was started")
        }
        NoDoor::Listen(ListenError::Nobody) => {
            let help = "`poolkeeper token` makes a token, and its line for the file of api.tokens";
            (Exit::Input, "badValue", help)
        }
        NoDoor::HalfOidc(_) | NoDoor::LoneOidc(_) | NoDoor::NoRole(_) | NoDoor::Issuer(_) => {
            let help =
                "nothing was started; `poolkeeper help serve` lists the keys that begin with oidc";
            (Exit::Input, "badValue", help)
        }
        NoDoor::FewDescriptors(_) => {
            (Exit::Internal, "listen", "nothing was started; --listen off serves no API")
        }
        NoDoor::Listen(_)
        | NoDoor::HalfSealed
        | NoDoor::LoneClients
        | NoDoor::OnePerson
        | NoDoor::Tokens { .. } => {
            let help =
                "nothing was started; `poolkeeper help serve` lists the keys that begin with api";
            (Exit::Input, "badValue", help)
        }
    };
    Failure::new(exit, code, no_door.to_string()).help(help)
}
