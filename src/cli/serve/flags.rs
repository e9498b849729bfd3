//! Flags of the daemon: the settings that people change most, and `--set` for every other one.

use std::path::PathBuf;

use clap::Args;

use crate::cli::exit::CommandFailure;
use crate::daemon::settings::without_secrets;

#[derive(Debug, Args)]
pub(super) struct Flags {
    /// Settings file, in YAML or JSON; by default, the file that POOLKEEPER_SETTINGS names
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,

    /// Folder of pool files, or `off`
    #[arg(long, value_name = "FOLDER")]
    pools: Option<String>,

    /// Path of the store that holds the state of pools, or `memory`
    #[arg(long, value_name = "PATH")]
    store: Option<String>,

    /// Address on which the API listens, or `off`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,

    /// Log level: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,

    /// Set any key of the settings; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print the effective settings and the source of each, then exit
    #[arg(long)]
    pub print_settings: bool,

    #[command(flatten)]
    cloud: Cloud,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cloud")]
struct Cloud {
    /// Azure cloud: public, usGovernment or china
    #[arg(long = "cloud", value_name = "NAME", hide_short_help = true)]
    named: Option<String>,

    /// URL of Azure Resource Manager, if it differs from the cloud's own
    #[arg(long, value_name = "URL", hide_short_help = true)]
    arm: Option<String>,

    /// URL of the authority that issues tokens
    #[arg(long, value_name = "URL", hide_short_help = true)]
    authority: Option<String>,

    /// Audience of the tokens
    #[arg(long, value_name = "URL", hide_short_help = true)]
    audience: Option<String>,

    /// How to authenticate; by default, each method is tried
    #[arg(long, value_name = "WAY", hide_short_help = true)]
    auth: Option<String>,

    /// Tenant that issues the token
    #[arg(long, value_name = "ID", hide_short_help = true)]
    tenant: Option<String>,

    /// Client id of the application or of the managed identity
    #[arg(long, value_name = "ID", hide_short_help = true)]
    client_id: Option<String>,

    /// Resource id of a managed identity
    #[arg(long, value_name = "RESOURCE", hide_short_help = true, conflicts_with = "client_id")]
    identity: Option<String>,

    /// PEM file of certificates to trust in addition to the system's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ca_file: Option<String>,

    /// Timeout of a request, such as 30s
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    timeout: Option<String>,
}

impl Flags {
    /// Flag, key and value of each given flag. A key's own flag overrides `--set`.
    pub fn said(&self) -> Result<Vec<(&'static str, String, String)>, CommandFailure> {
        let mut said = Vec::new();
        for pair in &self.set {
            let Some((key, value)) = pair.split_once('=') else {
                let pair = without_secrets(pair);
                let say = format!("--set {pair}: a key and a value are needed");
                return Err(CommandFailure::usage(say).help("write it like --set turns.atOnce=32"));
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
