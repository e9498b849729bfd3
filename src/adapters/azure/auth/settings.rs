//! Authentication settings.

use std::path::PathBuf;

use azure_core::credentials::Secret;

use crate::adapters::azure::cloud::{AzureCloud, BadCloud};
use crate::model::vocabulary::vocabulary;

vocabulary! {
    /// An authentication method. Without a configured one, they are tried in this order.
    pub enum Way {
        /// A token file that a cluster writes for its pod.
        WorkloadIdentity = "workload identity",
        ManagedIdentity = "managed identity",
        ClientSecret = "client secret",
        ClientCertificate = "client certificate",
        AzureCli = "Azure CLI",
    }
}

/// Where an application's secret comes from.
#[derive(Debug, Clone)]
pub enum ClientSecret {
    Value(Secret),
    /// Read again for each token request.
    File(PathBuf),
}

/// Why the environment does not give valid settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    #[error(transparent)]
    Cloud(#[from] BadCloud),
    #[error("AZURE_CLIENT_SECRET and AZURE_CLIENT_SECRET_FILE are both set")]
    TwoSecrets,
}

#[derive(Debug, Clone)]
pub struct AuthSettings {
    pub cloud: AzureCloud,
    /// `None`: try each in order and keep the first that works.
    pub way: Option<Way>,
    pub tenant: Option<Box<str>>,
    pub client: Option<Box<str>>,
    pub federated_token_file: Option<PathBuf>,
    pub secret: Option<ClientSecret>,
    /// PEM: the certificate, its issuers' certificates, and its RSA key.
    pub certificate_file: Option<PathBuf>,
    /// Also send the certificates, for applications that trust an issuer and a subject instead of one certificate.
    pub send_certificates: bool,
    /// Resource id of one of the machine's identities. `None`: its default one, or the one with the client id.
    pub identity: Option<Box<str>>,
    /// The host provides its own identity endpoint, with the address in its environment.
    pub host_serves_identity: bool,
    /// The cluster exchanges its token files itself, through an AKS identity binding.
    pub cluster_exchanges_tokens: bool,
}

impl AuthSettings {
    /// Only the cloud is set.
    pub fn new(cloud: AzureCloud) -> Self {
        Self {
            cloud,
            way: None,
            tenant: None,
            client: None,
            federated_token_file: None,
            secret: None,
            certificate_file: None,
            send_certificates: false,
            identity: None,
            host_serves_identity: false,
            cluster_exchanges_tokens: false,
        }
    }

    /// Reads the environment variables that Azure's own tools use.
    pub fn from_env(
        cloud: AzureCloud,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BadSettings> {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let text = |name: &str| get(name).map(String::into_boxed_str);
        let cloud = match get("AZURE_AUTHORITY_HOST") {
            Some(authority) => cloud.with_authority(&authority)?,
            None => cloud,
        };
        let secret = match (get("AZURE_CLIENT_SECRET"), get("AZURE_CLIENT_SECRET_FILE")) {
            (Some(_), Some(_)) => return Err(BadSettings::TwoSecrets),
            (Some(value), None) => Some(ClientSecret::Value(value.into())),
            (None, file) => file.map(PathBuf::from).map(ClientSecret::File),
        };
        let cluster_exchanges_tokens = get("AZURE_KUBERNETES_TOKEN_PROXY").is_some();
        let on =
            |name: &str| get(name).is_some_and(|v| matches!(v.as_str(), "1" | "true" | "True"));
        Ok(Self {
            cloud,
            // No other identity of the host, such as its node's, may replace the one assigned to the pod.
            way: cluster_exchanges_tokens.then_some(Way::WorkloadIdentity),
            tenant: text("AZURE_TENANT_ID"),
            client: text("AZURE_CLIENT_ID"),
            federated_token_file: get("AZURE_FEDERATED_TOKEN_FILE").map(PathBuf::from),
            secret,
            certificate_file: get("AZURE_CLIENT_CERTIFICATE_PATH").map(PathBuf::from),
            send_certificates: on("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN"),
            identity: None,
            host_serves_identity: get("IDENTITY_ENDPOINT").is_some(),
            cluster_exchanges_tokens,
        })
    }
}
