//! Flags of the commands that talk to the cloud: which one, who we are to it, and how it is reached.

use std::env;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::exit::{Exit, Failure};
use crate::daemon::{Access, BadAccess, Cause, Choice, House, Trouble, Way};

/// The end of what these commands say of themselves.
pub(super) const ENVIRONMENT: &str = "\
Environment, where no flag says otherwise:
  AZURE_ENVIRONMENT           the cloud: public, usGovernment, china (or AzureCloud, …)
  AZURE_AUTHORITY_HOST        where tokens are had
  AZURE_RESOURCE_MANAGER_URL  where the resource manager is: a region's own, or an emulator
  AZURE_TENANT_ID, AZURE_CLIENT_ID, and one of AZURE_FEDERATED_TOKEN_FILE,
  AZURE_CLIENT_SECRET_FILE, AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH
                              who we are; a secret is read from here alone
  HTTPS_PROXY, NO_PROXY       the proxy, and what needs none
  SSL_CERT_FILE               certificates to trust, in PEM";

#[derive(Debug, Args)]
#[command(next_help_heading = "Cloud")]
pub(super) struct Cloud {
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

    /// How we say who we are; without it each is tried in this order
    #[arg(long, value_enum, value_name = "WAY", hide_short_help = true)]
    auth: Option<Auth>,

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
    ca_file: Option<PathBuf>,

    /// So long an answer may take
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
    /// A token file that a cluster writes for its pod
    WorkloadIdentity,
    /// The identity of the machine or host
    ManagedIdentity,
    /// A secret of an application, in AZURE_CLIENT_SECRET
    ClientSecret,
    /// A certificate of an application, in AZURE_CLIENT_CERTIFICATE_PATH
    ClientCertificate,
    /// Whoever signed in with `az login`
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

impl Cloud {
    /// Opens the cloud by these flags and the environment, and does this with it.
    pub fn visit<T>(&self, work: impl AsyncFnOnce(&House) -> T) -> Result<T, Failure> {
        let access = Access::settle(&self.choice(), |name| env::var(name).ok());
        let house = access.and_then(House::open).map_err(|bad| not_opened(&bad))?;
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

pub(super) fn not_opened(bad: &BadAccess) -> Failure {
    match bad {
        BadAccess::CaUnread { source, .. } => {
            let say = format!("{bad}: {}", super::exit::reason(source));
            Failure::new(Exit::Internal, "unreadable", say)
        }
        _ => Failure::usage(bad.to_string()),
    }
    .help(bad.next())
}

fn internal(error: &io::Error) -> Failure {
    Failure::new(Exit::Internal, "internal", format!("cannot begin: {error}"))
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        let (exit, code) = match trouble.cause {
            Cause::NotBelieved | Cause::NotPermitted => (Exit::NotPermitted, "notPermitted"),
            Cause::NotFound => (Exit::NotFound, "notFound"),
            Cause::Unreachable => (Exit::Unreachable, "unreachable"),
            Cause::Invalid => (Exit::Input, "badValue"),
        };
        Failure::new(exit, code, trouble.say).help(trouble.next)
    }
}
