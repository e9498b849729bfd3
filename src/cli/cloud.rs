//! Flags of the commands that talk to the cloud: which cloud, which credentials, and which addresses.

use std::env;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::exit::{CommandFailure, Exit};
use crate::daemon::settings::Settings;
use crate::daemon::{Access, BadAccess, Choice, CloudReader, Trouble, TroubleCause, Way};

/// The end of the help text of these commands.
pub(super) const ENVIRONMENT: &str = "\
Environment, unless a flag overrides it:
  AZURE_ENVIRONMENT           the cloud: public, usGovernment, china (or AzureCloud, …)
  AZURE_AUTHORITY_HOST        the URL of the authority that issues tokens
  AZURE_RESOURCE_MANAGER_URL  the URL of Azure Resource Manager, or of an emulator
  AZURE_TENANT_ID, AZURE_CLIENT_ID, and one of AZURE_FEDERATED_TOKEN_FILE,
  AZURE_CLIENT_SECRET_FILE, AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH
                              the identity; secrets come only from here
  HTTPS_PROXY, NO_PROXY       the proxy, and hosts that bypass it
  SSL_CERT_FILE               certificates to trust, in PEM";

#[derive(Debug, Args)]
#[command(next_help_heading = "Cloud")]
pub(super) struct CloudArgs {
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

    /// How to authenticate; by default, each method is tried in this order
    #[arg(long, value_enum, value_name = "WAY", hide_short_help = true)]
    auth: Option<Auth>,

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
    ca_file: Option<PathBuf>,

    /// Timeout of a request
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=600),
        hide_short_help = true
    )]
    timeout: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Auth {
    /// A token file that Kubernetes writes for the pod
    WorkloadIdentity,
    /// The managed identity of the machine or host
    ManagedIdentity,
    /// The secret of an application, in AZURE_CLIENT_SECRET
    ClientSecret,
    /// The certificate of an application, in the file that AZURE_CLIENT_CERTIFICATE_PATH names
    ClientCertificate,
    /// The account that is signed in with `az login`
    AzureCli,
}

impl Auth {
    const fn way(self) -> Way {
        match self {
            Auth::WorkloadIdentity => Way::WorkloadIdentity,
            Auth::ManagedIdentity => Way::ManagedIdentity,
            Auth::ClientSecret => Way::ClientSecret,
            Auth::ClientCertificate => Way::ClientCertificate,
            Auth::AzureCli => Way::AzureCli,
        }
    }
}

impl CloudArgs {
    /// Connects to the cloud with these flags and the environment, and runs `work` with the connection.
    pub fn visit<T>(&self, work: impl AsyncFnOnce(&CloudReader) -> T) -> Result<T, CommandFailure> {
        self.visit_with(None, work)
    }

    /// The same, and with the clusters of these settings.
    pub fn visit_with<T>(
        &self,
        settings: Option<&Settings>,
        work: impl AsyncFnOnce(&CloudReader) -> T,
    ) -> Result<T, CommandFailure> {
        let access = Access::settle(&self.choice(), |name| env::var(name).ok());
        let house = access.and_then(CloudReader::open).map_err(|bad| not_opened(&bad))?;
        let house = match settings {
            Some(settings) => house.with_clusters(settings),
            None => house,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| internal(&error))?;
        Ok(runtime.block_on(work(&house)))
    }

    fn choice(&self) -> Choice {
        Choice {
            cloud: self.named.clone(),
            authority: self.authority.clone(),
            resource_manager: self.arm.clone(),
            audience: self.audience.clone(),
            way: self.auth.map(Auth::way),
            tenant: self.tenant.clone(),
            client: self.client_id.clone(),
            identity: self.identity.clone(),
            ca_file: self.ca_file.clone(),
            patience: Some(Duration::from_secs(self.timeout)),
        }
    }
}

pub(super) fn not_opened(bad: &BadAccess) -> CommandFailure {
    match bad {
        BadAccess::CaUnread { source, .. } => {
            let say = format!("{bad}: {}", super::exit::reason(source));
            CommandFailure::new(Exit::Internal, "unreadable", say)
        }
        _ => CommandFailure::usage(bad.to_string()),
    }
    .help(bad.next())
}

fn internal(error: &io::Error) -> CommandFailure {
    CommandFailure::new(Exit::Internal, "internal", format!("cannot start: {error}"))
}

impl From<Trouble> for CommandFailure {
    fn from(trouble: Trouble) -> Self {
        let (exit, code) = match trouble.cause {
            TroubleCause::NotBelieved | TroubleCause::NotPermitted => {
                (Exit::NotPermitted, "notPermitted")
            }
            TroubleCause::NotFound => (Exit::NotFound, "notFound"),
            TroubleCause::Unreachable => (Exit::Unreachable, "unreachable"),
            TroubleCause::Invalid => (Exit::Input, "badValue"),
        };
        CommandFailure::new(exit, code, trouble.say).help(trouble.next)
    }
}
