//! Flags of the daemon: the keys that people change most, and `--set` for every other.

use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::Failure;
use crate::daemon::settings::without_secrets;

#[derive(Debug, Args)]
pub(super) struct Flags {
    /// The settings file, in YAML or JSON; POOLKEEPER_SETTINGS where not given
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// The folder of pool files, or `off`
    #[arg(long, value_name = "FOLDER")]
    pools: Option<String>,

    /// Where pools are remembered, or `memory`
    #[arg(long, value_name = "PATH")]
    store: Option<String>,

    /// Where the API listens, or `off`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// How much is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,

    /// Any key of the settings; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print the settings that would hold, and where each came from, and end
    #[arg(long)]
    pub print_settings: bool,

    #[command(flatten)]
    cloud: Cloud,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cloud")]
struct Cloud {
    /// public, usGovernment or china
    #[arg(long = "cloud", value_name = "NAME", hide_short_help = true)]
    named: Option<String>,

    /// Where the resource manager is, where not where the cloud has it
    #[arg(long, value_name = "URL", hide_short_help = true)]
    arm: Option<String>,

    /// Where tokens are had
    #[arg(long, value_name = "URL", hide_short_help = true)]
    authority: Option<String>,

    /// For whom tokens are made out
    #[arg(long, value_name = "URL", hide_short_help = true)]
    audience: Option<String>,

    /// How we say who we are; without it each way is tried
    #[arg(long, value_name = "WAY", hide_short_help = true)]
    auth: Option<String>,

    /// The tenant that gives the token
    #[arg(long, value_name = "ID", hide_short_help = true)]
    tenant: Option<String>,

    /// The application, or the managed identity
    #[arg(long, value_name = "ID", hide_short_help = true)]
    client_id: Option<String>,

    /// A managed identity, by its resource id
    #[arg(long, value_name = "RESOURCE", hide_short_help = true, conflicts_with = "client_id")]
    identity: Option<String>,

    /// Certificates to trust beside those of the system, in PEM
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ca_file: Option<String>,

    /// So long an answer may take, such as 30s
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    timeout: Option<String>,
}

impl Flags {
    /// Flag, key and value of all that were given; `--set` is weaker than a flag of the key's own.
    pub fn said(&self) -> Result<Vec<(&'static str, String, String)>, Failure> {
        let mut said = Vec::new();
        for pair in &self.set {
            let Some((key, value)) = pair.split_once('=') else {
                let pair = without_secrets(pair);
                let say = format!("--set {pair}: a key and a value are needed");
                return Err(Failure::usage(say).help("write it like --set turns.atOnce=32"));
            };
            said.push(("set", key.to_owned(), value.to_owned()));
        }
        let cloud = &self.cloud;
        let own = [
            ("pools", "pools", &self.pools),
            ("store", "store.path", &self.store),
            ("listen", "api.listen", &self.listen),
            ("log", "log.level", &self.log),
            ("cloud", "azure.cloud", &cloud.named),
            ("arm", "azure.resourceManager", &cloud.arm),
            ("authority", "azure.authority", &cloud.authority),
            ("audience", "azure.audience", &cloud.audience),
            ("auth", "azure.auth", &cloud.auth),
            ("tenant", "azure.tenant", &cloud.tenant),
            ("client-id", "azure.clientId", &cloud.client_id),
            ("identity", "azure.identity", &cloud.identity),
            ("ca-file", "azure.caFile", &cloud.ca_file),
            ("timeout", "azure.timeout", &cloud.timeout),
        ];
        said.extend(
            own.into_iter()
                .filter_map(|(flag, key, value)| Some((flag, key.to_owned(), value.clone()?))),
        );
        Ok(said)
    }
}
