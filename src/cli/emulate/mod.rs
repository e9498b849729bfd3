//! `emulate`: an Azure emulator on this machine, for `az`, the SDKs and Poolkeeper itself.
//!
//! Never here: Azure's answers (they belong to the emulator). Begin with [`Emulate::run`]; `seed` reads the initial
//! resources, `report` prints how to connect.

mod report;
mod seed;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::{env, fs, io};

use clap::Args;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use crate::emulator::{Emulator, EmulatorListener, EmulatorServeError, Seed, Tls};
use report::EmulatorMessage;

const ABOUT: &str = "Serves a simulated Azure that az and the official SDKs accept as the real one";
const MORE: &str = "\
Serves scale sets of both kinds, their VMs, long operations, etags, paging, throttling, autoscale settings, load \
balancers, quota, sizes, gallery images and the tokens for all of it. It answers as Azure Resource Manager does, from the same \
simulated cloud that `simulate` uses. It keeps nothing when it ends, and it listens on the loopback only, because it \
gives a token to every caller.

Official clients send tokens over TLS only. With --tls it creates a certificate authority for this run, writes its \
certificate to a file, and prints what to export so that clients trust it.

With --quicker everything that takes time in Azure takes that many times less. World time runs with the clock; \
--speed moves it ahead of the clock of every client, and POST /_control/clock advances it at once. GET / is a page \
for people, and GET /_control/state the same as a document. POST /_control/faults orders faults, and POST \
/_control/deeds triggers events on VMs.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper emulate                              plain HTTP on 127.0.0.1:8400, one scale set of three VMs
  poolkeeper emulate --tls --quicker 60           for az, the SDKs and `serve`: a minute takes a second
  poolkeeper emulate --pool pools/web.yaml        with the scale set of a pool file
  poolkeeper emulate --seed-file azure.yaml       with everything in this file
  poolkeeper emulate --listen 127.0.0.1:0 -o json what a script needs, on one line

A seed file; every key is optional:
  location: eastus2
  scaleSets:
    - {name: web, resourceGroup: rg, capacity: 10, zones: ['1', '2'], size: Standard_D4s_v5}
    - {name: old, instances: [{found: sick}, {found: ready}], flexible: true}
    - {name: shop, capacity: 3, pools: [front/shop]}
  loadBalancers: [{name: front, pools: [shop], probeInterval: 5, listen: {shop: '127.0.0.1:0'}}]
  galleries: [{gallery: shared, image: web, version: 1.2.0}]
  identities: [{clientId: app, secret: s, denied: [/virtualMachineScaleSets/old]}]
  settings: {pageSize: 50, quotaCores: 200, throttling: true, quicker: 60, record: true}
  faults: {named: mild}

A load balancer sends the connections to an address of `listen` to machines of the pool. Each machine answers with its \
name, and /hold/500 holds a request for half a second. GET /_control/state counts what was served, refused and cut.

With record, GET /_control/record lists the requests and the changes of VMs.

Faults, events and time on demand:
  curl 127.0.0.1:8400/_control/faults -d '{\"named\":\"storm\"}'
  curl 127.0.0.1:8400/_control/faults -d '{\"rules\":[{\"method\":\"PATCH\",\"status\":429,\"retryAfter\":5}]}'
  curl 127.0.0.1:8400/_control/deeds  -d '{\"instance\":\"oldest\",\"deed\":{\"sicken\":{}}}'
  curl 127.0.0.1:8400/_control/clock  -d '{\"advance\":\"10m\"}'";

/// Maximum speed: a week per second. At higher speeds clients would see nothing between two polls.
const FASTEST: f64 = 604_800.0;

/// Maximum of `--quicker`; a seed file has the same limit.
const QUICKEST: f64 = 1_000.0;

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct Emulate {
    /// Loopback address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8400")]
    listen: SocketAddr,

    /// Initial resources, in YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    seed_file: Option<PathBuf>,

    /// Pool file whose scale sets exist at the start too; may be repeated
    #[arg(long = "pool", value_name = "FILE")]
    pools: Vec<PathBuf>,

    /// Serve HTTPS with a certificate generated for this run
    #[arg(long)]
    tls: bool,

    /// File for the certificate authority of --tls [default: in the temporary folder]
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca_file: Option<PathBuf>,

    /// Serve HTTPS with the certificate chain in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls")]
    tls_cert: Option<PathBuf>,

    /// PEM file of the key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Divide the duration of every operation by this factor
    ///
    /// The emulator's clock stays equal to the clients' clock. This flag overrides the same setting in a seed file.
    #[arg(long, value_name = "TIMES", value_parser = quicker)]
    quicker: Option<f64>,

    /// Seconds that pass in the emulator per real second
    ///
    /// Only for clients that do not compare clocks. `serve` does compare them.
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
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let json = shell.one_document("emulate")?;
        let (seed, from) = self.seed(shell)?;
        let emulator = Emulator::by_the_clock(&seed, self.speed).map_err(|error| {
            CommandFailure::new(Exit::Input, "badValue", format!("{from}: {error}"))
        })?;
        let tls = self.security()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| internal(&error))?;
        runtime.block_on(async {
            let authority = tls.as_ref().and_then(|tls| tls.authority.clone());
            let is_tls = tls.is_some();
            let listening =
                EmulatorListener::at(self.listen, tls).await.map_err(|e| unserved(&e))?;
            let address = listening.address();
            let fronts = emulator.bind_fronts().await.map_err(|error| unserved(&error))?;
            let ca_file = self.write_authority(authority.as_deref(), address)?;
            let message =
                EmulatorMessage { address, is_tls, ca_file, seed: &seed, speed: self.speed };
            if json {
                shell.line(&message.document(&emulator.state()).to_string())?;
            } else {
                shell.print(&message.page(shell.term, &emulator.state()))?;
            }
            shell.flush()?;
            tokio::select! {
                served = listening.serve(emulator) => served.map_err(|error| unserved(&error)),
                () = fronts.serve() => Ok(()),
            }
        })?;
        Ok(Exit::Done)
    }

    /// The seed, and its source for messages.
    fn seed(&self, shell: &Shell) -> Result<(Seed, String), CommandFailure> {
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

    fn security(&self) -> Result<Option<Tls>, CommandFailure> {
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
    ) -> Result<Option<PathBuf>, CommandFailure> {
        let Some(pem) = authority else { return Ok(None) };
        let name = format!("poolkeeper-emulator-{}.pem", address.port());
        let path = self.ca_file.clone().unwrap_or_else(|| env::temp_dir().join(name));
        let name = path.display().to_string();
        fs::write(&path, pem).map_err(|error| CommandFailure::unwritable_file(&name, &error))?;
        Ok(Some(path))
    }
}

fn internal(error: &io::Error) -> CommandFailure {
    CommandFailure::new(Exit::Internal, "internal", format!("cannot start to serve: {error}"))
}

pub(super) fn unserved(error: &EmulatorServeError) -> CommandFailure {
    let say = error.to_string();
    match error {
        EmulatorServeError::Listen { source, .. } => {
            let failure = CommandFailure::new(Exit::Internal, "cannotListen", say);
            failure.help(match source.kind() {
                io::ErrorKind::AddrInUse => {
                    "the port is in use: stop that program, or let --listen 127.0.0.1:0 choose a free port"
                }
                io::ErrorKind::PermissionDenied => "ports below 1024 are for root: choose a higher one",
                _ => "choose another address with --listen",
            })
        }
        EmulatorServeError::NotLoopback(_) => {
            CommandFailure::usage(say).help("use 127.0.0.1, [::1] or a tunnel to it")
        }
        EmulatorServeError::Read { .. } => CommandFailure::new(Exit::Internal, "unreadable", say)
            .help(
                "give a certificate chain with --tls-cert and its key with --tls-key, both in PEM",
            ),
        EmulatorServeError::Certificate(_) => CommandFailure::new(Exit::Input, "badValue", say)
            .help("give a certificate and the key it was made with, or use --tls"),
        EmulatorServeError::Make(_) | EmulatorServeError::Ended(_) => {
            CommandFailure::new(Exit::Internal, "internal", say)
        }
    }
}
