//! `emulate`: a made-up Azure on this machine, for `az`, the SDKs and Poolkeeper itself.
//!
//! Never here: what Azure answers (it is the emulator's). Begin with [`Emulate::run`]; `seed` reads what is there at
//! the start, `told` says how to talk to it.

mod seed;
mod told;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::{env, fs, io};

use clap::Args;

use super::args::with_exit_codes;
use super::exit::{Exit, Failure};
use super::shell::Shell;
use crate::emulator::{Emulator, Listening, Seed, ServeError, Tls};
use told::Told;

const ABOUT: &str = "Serves a made-up Azure that az and the official SDKs take for the real one";
const MORE: &str = "\
Scale sets of both kinds, their VMs, long operations, etags, paging, throttling, autoscale settings, quota, sizes, \
gallery images and the tokens for all of it, answered as Azure Resource Manager answers them, from the same made-up \
cloud that `simulate` rehearses in. Nothing is kept when it ends, and it listens on the loopback only: it gives a token \
to whoever asks.

Official clients send tokens over TLS only. With --tls a certificate authority is made for this run, its certificate is \
written to a file, and what to export so that clients trust it is printed.

With --quicker all that Azure takes time for takes so many times less. World time runs with the clock; --speed moves it \
ahead of the clock of every client, and POST /_control/clock sends it ahead at once. GET / is a page for people, \
GET /_control/state the same as a document; POST /_control/faults orders trouble, POST /_control/deeds lets things \
happen to VMs.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper emulate                              plain HTTP on 127.0.0.1:8400, one scale set of three VMs
  poolkeeper emulate --tls --quicker 60           for az, the SDKs and `serve`: a minute takes a second
  poolkeeper emulate --pool pools/web.yaml        with the scale set of a pool file
  poolkeeper emulate --seed-file azure.yaml       with everything that file names
  poolkeeper emulate --listen 127.0.0.1:0 -o json what a script needs, on one line

A seed file, every key of which may be left out:
  location: eastus2
  scaleSets:
    - {name: web, resourceGroup: rg, capacity: 10, zones: ['1', '2'], size: Standard_D4s_v5}
    - {name: old, instances: [{found: sick}, {found: ready}], flexible: true}
  galleries: [{gallery: shared, image: web, version: 1.2.0}]
  identities: [{clientId: app, secret: s, denied: [/virtualMachineScaleSets/old]}]
  settings: {pageSize: 50, quotaCores: 200, throttling: true, quicker: 60, record: true}
  faults: {named: mild}

With record, GET /_control/record tells what was asked and what became of VMs.

Trouble to order:
  curl 127.0.0.1:8400/_control/faults -d '{\"named\":\"storm\"}'
  curl 127.0.0.1:8400/_control/faults -d '{\"rules\":[{\"method\":\"PATCH\",\"status\":429,\"retryAfter\":5}]}'
  curl 127.0.0.1:8400/_control/deeds  -d '{\"instance\":\"oldest\",\"deed\":{\"sicken\":{}}}'
  curl 127.0.0.1:8400/_control/clock  -d '{\"advance\":\"10m\"}'";

/// A week of it is a second; faster, and clients see nothing between two polls.
const FASTEST: f64 = 604_800.0;

/// The most that a seed file may ask for too.
const QUICKEST: f64 = 1_000.0;

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Emulate {
    /// Where to listen, on the loopback; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8400")]
    listen: SocketAddr,

    /// What is there at the start, in YAML or JSON; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    seed_file: Option<PathBuf>,

    /// Pool files whose scale sets are there too
    #[arg(long = "pool", value_name = "FILE")]
    pools: Vec<PathBuf>,

    /// Serve HTTPS with a certificate made for this run
    #[arg(long)]
    tls: bool,

    /// Where the certificate authority of --tls is written; in the folder for temporary files where not given
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca_file: Option<PathBuf>,

    /// Serve HTTPS with this certificate chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls")]
    tls_cert: Option<PathBuf>,

    /// The key of --tls-cert, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Everything takes so many times less
    ///
    /// The clock stays that of the clients. It goes before the same setting of a seed file.
    #[arg(long, value_name = "TIMES", value_parser = quicker)]
    quicker: Option<f64>,

    /// World seconds in a second
    ///
    /// For clients that compare no clocks: `serve` does.
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = speed)]
    speed: f64,
}

fn quicker(text: &str) -> Result<f64, String> {
    let times: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let allowed = (1.0..=QUICKEST).contains(&times);
    if allowed { Ok(times) } else { Err(format!("from 1 to {QUICKEST}")) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let allowed = (0.0..=FASTEST).contains(&speed);
    if allowed { Ok(speed) } else { Err(format!("from 0 (time stands still) to {FASTEST}")) }
}

impl Emulate {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, Failure> {
        let json = shell.one_document("emulate")?;
        let (seed, from) = self.seed(shell)?;
        let emulator = Emulator::by_the_clock(&seed, self.speed)
            .map_err(|error| Failure::new(Exit::Input, "badValue", format!("{from}: {error}")))?;
        let tls = self.security()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| internal(&error))?;
        runtime.block_on(async {
            let authority = tls.as_ref().and_then(|tls| tls.authority.clone());
            let is_tls = tls.is_some();
            let listening = Listening::at(self.listen, tls).await.map_err(|e| unserved(&e))?;
            let address = listening.address();
            let ca_file = self.write_authority(authority.as_deref(), address)?;
            let told = Told { address, is_tls, ca_file, seed: &seed, speed: self.speed };
            if json {
                shell.line(&told.document(&emulator.state()).to_string())?;
            } else {
                shell.print(&told.page(shell.term, &emulator.state()))?;
            }
            shell.flush()?;
            listening.serve(emulator).await.map_err(|error| unserved(&error))
        })?;
        Ok(Exit::Done)
    }

    /// And where it comes from, for messages.
    fn seed(&self, shell: &Shell) -> Result<(Seed, String), Failure> {
        let mut from = "the seed".to_owned();
        let mut seed = match &self.seed_file {
            Some(path) => {
                from = path.display().to_string();
                seed::read(path, shell)?
            }
            None if self.pools.is_empty() => seed::example(),
            None => Seed::default(),
        };
        for path in &self.pools {
            seed.scale_sets.extend(seed::of_pools(path, shell)?);
        }
        seed.settings.quicker = self.quicker.or(seed.settings.quicker);
        Ok((seed, from))
    }

    fn security(&self) -> Result<Option<Tls>, Failure> {
        let made = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::given(certificate, key)),
            _ => self.tls.then(Tls::made),
        };
        made.transpose().map_err(|error| unserved(&error))
    }

    fn write_authority(
        &self,
        authority: Option<&str>,
        address: SocketAddr,
    ) -> Result<Option<PathBuf>, Failure> {
        let Some(pem) = authority else { return Ok(None) };
        let name = format!("poolkeeper-emulator-{}.pem", address.port());
        let path = self.ca_file.clone().unwrap_or_else(|| env::temp_dir().join(name));
        let told = path.display().to_string();
        fs::write(&path, pem).map_err(|error| Failure::unwritable_file(&told, &error))?;
        Ok(Some(path))
    }
}

fn internal(error: &io::Error) -> Failure {
    Failure::new(Exit::Internal, "internal", format!("cannot begin to serve: {error}"))
}

pub(super) fn unserved(error: &ServeError) -> Failure {
    let say = error.to_string();
    match error {
        ServeError::Listen { source, .. } => {
            let failure = Failure::new(Exit::Internal, "cannotListen", say);
            failure.help(match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "something listens there already: end it, or let --listen 127.0.0.1:0 pick a free port"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 are for root: choose a higher one",
                _ => "choose another address with --listen",
            })
        }
        ServeError::NotLoopback(_) => {
            Failure::usage(say).help("use 127.0.0.1, [::1] or a tunnel to it")
        }
        ServeError::Read { .. } => Failure::new(Exit::Internal, "unreadable", say).help(
            "give a certificate chain with --tls-cert and its key with --tls-key, both in PEM",
        ),
        ServeError::Certificate(_) => Failure::new(Exit::Input, "badValue", say)
            .help("give a certificate and the key it was made with, or use --tls"),
        ServeError::Make(_) | ServeError::Ended(_) => Failure::new(Exit::Internal, "internal", say),
    }
}
