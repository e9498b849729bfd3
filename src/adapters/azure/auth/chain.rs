//! The authentication methods, each tried once.

use std::sync::Arc;

use azure_core::cloud::CustomConfiguration;
use azure_core::credentials::{AccessToken, TokenCredential};
use azure_core::http::{ClientOptions, HttpClient, Method, Request, RetryOptions, Transport, Url};
use azure_identity::{
    AzureCliCredential, AzureCliCredentialOptions, ClientAssertionCredential,
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    Executor, ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
};

use super::assertion::{About, SignedAssertion, Signer};
use super::failed::{AuthFailureReason, CredentialAttempt, NO_TOKEN};
use super::file::SecretFiles;
use super::recording_client::RecordingClient;
use super::settings::{AuthSettings, ClientSecret, Way};
use crate::ambient::Sleep;
use crate::model::time::Span;

/// The address of a machine's instance metadata service.
const MACHINE_SERVICE: &str = "http://169.254.169.254/metadata/identity/oauth2/token";

/// How long the metadata service has to respond if nothing in the environment announces it.
// 1 s: it is on the same host. Elsewhere nothing ever answers, and the next method waits.
const SHOWS_ITSELF: Span = Span::seconds(1);

/// Time limit for one attempt with any method.
// 10 s: several times the slowest successful response. A longer limit would delay all pools.
const PATIENCE: Span = Span::seconds(10);

/// What the methods need.
#[derive(Debug)]
pub(super) struct Ways<C> {
    pub settings: AuthSettings,
    pub files: SecretFiles,
    pub http: Arc<dyn HttpClient>,
    pub clock: C,
    /// Runs the Azure CLI. `None`: as a separate process.
    pub cli: Option<Arc<dyn Executor>>,
}

impl<C: Sleep + Sync> Ways<C> {
    /// Makes one attempt, with a new credential: a reused credential never forgets a refused token.
    pub async fn try_one(&self, way: Way) -> Result<AccessToken, CredentialAttempt> {
        let (http, authority) = (Arc::clone(&self.http), self.settings.cloud.authority());
        let line = Arc::new(RecordingClient::new(http, authority, self.clock.now()));
        self.try_on(way, &line).await.map_err(|why| CredentialAttempt {
            way,
            why,
            wait: line.wait(),
        })
    }

    async fn try_on(
        &self,
        way: Way,
        line: &Arc<RecordingClient>,
    ) -> Result<AccessToken, AuthFailureReason> {
        if way == Way::ManagedIdentity
            && self.settings.way.is_none()
            && !self.settings.host_serves_identity
        {
            self.look_for_machine_service().await?;
        }
        let credential = self.within(PATIENCE, self.credential(way, line)).await??;
        let scope = self.settings.cloud.scope();
        let scopes = [scope.as_str()];
        let asked = self.within(PATIENCE, credential.get_token(&scopes, None)).await;
        // The library retries until the time limit: the last refusal is more informative than the timeout.
        let asked = asked.map_err(|late| line.refused().unwrap_or(late))?;
        let token = asked.map_err(|error| line.heard().unwrap_or_else(|| silent(way, &error)))?;
        // The library reads a response without a token as an empty token.
        match token.token.secret().trim().is_empty() {
            true => Err(AuthFailureReason::Unanswered(NO_TOKEN)),
            false => Ok(token),
        }
    }

    async fn credential(
        &self,
        way: Way,
        line: &Arc<RecordingClient>,
    ) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        match way {
            Way::WorkloadIdentity => self.workload(line).await,
            Way::ManagedIdentity => self.managed(line),
            Way::ClientSecret => self.secret(line).await,
            Way::ClientCertificate => self.certificate(line).await,
            Way::AzureCli => self.cli(),
        }
    }

    /// The file is read at each attempt: the cluster rewrites it before it expires.
    async fn workload(
        &self,
        line: &Arc<RecordingClient>,
    ) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        if self.settings.cluster_exchanges_tokens {
            let what = "AZURE_KUBERNETES_TOKEN_PROXY";
            return Err(AuthFailureReason::Unusable { what, say: IDENTITY_BINDING });
        }
        let file = self.settings.federated_token_file.as_ref();
        let file = file.ok_or(AuthFailureReason::NotSet("AZURE_FEDERATED_TOKEN_FILE"))?;
        let (tenant, client) = self.who()?;
        let token = self.files.read_secret(file, "the federated token file").await?;
        self.with_assertion(tenant, client, SignedAssertion(token), line)
    }

    fn managed(
        &self,
        line: &Arc<RecordingClient>,
    ) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        let user_assigned_id = match (&self.settings.identity, &self.settings.client) {
            (None, Some(id)) => Some(UserAssignedId::ClientId(id.to_string())),
            (Some(_), _) if self.settings.host_serves_identity => {
                let say = "cannot name the identity on this kind of host: give its client id";
                return Err(AuthFailureReason::Unusable { what: "the resource id", say });
            }
            (Some(id), _) => Some(UserAssignedId::ResourceId(id.to_string())),
            (None, None) => None,
        };
        let client_options = self.options(line);
        let options = ManagedIdentityCredentialOptions { user_assigned_id, client_options };
        let made = ManagedIdentityCredential::new(Some(options));
        Ok(made.map_err(|_| AuthFailureReason::Unusable {
            what: "this kind of host",
            say: "serves identities in a way that is not known here",
        })?)
    }

    async fn secret(
        &self,
        line: &Arc<RecordingClient>,
    ) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        let secret = self
            .settings
            .secret
            .as_ref()
            .ok_or(AuthFailureReason::NotSet("AZURE_CLIENT_SECRET"))?;
        let (tenant, client) = self.who()?;
        let secret = match secret {
            ClientSecret::Value(secret) => secret.clone(),
            ClientSecret::File(file) => {
                self.files.read_secret(file, "the client secret file").await?
            }
        };
        let options = ClientSecretCredentialOptions { client_options: self.options(line) };
        let made = ClientSecretCredential::new(tenant, client.to_owned(), secret, Some(options));
        Ok(made.map_err(|_| TENANT)?)
    }

    /// The file is read at each attempt: certificates are renewed.
    async fn certificate(
        &self,
        line: &Arc<RecordingClient>,
    ) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        let file = self.settings.certificate_file.as_ref();
        let file = file.ok_or(AuthFailureReason::NotSet("AZURE_CLIENT_CERTIFICATE_PATH"))?;
        let (tenant, client) = self.who()?;
        let signer = Signer::read(&self.files.read(file, "the certificate file").await?)?;
        let endpoint = format!("/{tenant}/oauth2/v2.0/token");
        let audience = self.settings.cloud.authority().join(&endpoint).map_err(|_| TENANT)?;
        let about = About {
            client,
            audience: audience.as_str(),
            send_certificates: self.settings.send_certificates,
        };
        let assertion = signer.sign(&about, self.clock.now())?;
        self.with_assertion(tenant, client, SignedAssertion(assertion), line)
    }

    fn cli(&self) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        let tenant_id = self.settings.tenant.as_ref().map(ToString::to_string);
        let executor = self.cli.clone();
        let options = AzureCliCredentialOptions { subscription: None, tenant_id, executor };
        Ok(AzureCliCredential::new(Some(options)).map_err(|_| TENANT)?)
    }

    fn with_assertion(
        &self,
        tenant: &str,
        client: &str,
        assertion: SignedAssertion,
        line: &Arc<RecordingClient>,
    ) -> Result<Arc<dyn TokenCredential>, AuthFailureReason> {
        let options = ClientAssertionCredentialOptions { client_options: self.options(line) };
        let (tenant, client) = (tenant.to_owned(), client.to_owned());
        let made = ClientAssertionCredential::new(tenant, client, assertion, Some(options));
        Ok(made.map_err(|_| TENANT)?)
    }

    /// Tenant and client, validated for use in an address and in a claim.
    fn who(&self) -> Result<(&str, &str), AuthFailureReason> {
        let tenant =
            self.settings.tenant.as_deref().ok_or(AuthFailureReason::NotSet("AZURE_TENANT_ID"))?;
        let client =
            self.settings.client.as_deref().ok_or(AuthFailureReason::NotSet("AZURE_CLIENT_ID"))?;
        let is_plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        if !is_plain(tenant) {
            return Err(TENANT);
        }
        if !is_plain(client) {
            return Err(AuthFailureReason::Unusable { what: "the client id", say: "is no id" });
        }
        Ok((tenant, client))
    }

    /// Without retries: the caller asks again.
    fn options(&self, line: &Arc<RecordingClient>) -> ClientOptions {
        let mut cloud = CustomConfiguration::default();
        cloud.authority_host = RecordingClient::dressed(self.settings.cloud.authority());
        let http: Arc<dyn HttpClient> = Arc::<RecordingClient>::clone(line);
        ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::new(http)),
            cloud: Some(Arc::new(cloud.into())),
            ..ClientOptions::default()
        }
    }

    /// Any response will do. This does not request a token, so that another service at that address would not get the
    /// request.
    async fn look_for_machine_service(&self) -> Result<(), AuthFailureReason> {
        let absent = AuthFailureReason::Unanswered("this machine has no service for it");
        let Ok(url) = Url::parse(MACHINE_SERVICE) else { return Err(absent) };
        let request = Request::new(url, Method::Get);
        match self.within(SHOWS_ITSELF, self.http.execute_request(&request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(absent),
        }
    }

    async fn within<T>(
        &self,
        span: Span,
        work: impl Future<Output = T>,
    ) -> Result<T, AuthFailureReason> {
        let mut late = std::pin::pin!(self.clock.sleep_until(self.clock.now().plus(span)));
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            if let std::task::Poll::Ready(done) = work.as_mut().poll(context) {
                return std::task::Poll::Ready(Ok(done));
            }
            let seconds = u32::try_from(span.millis() / 1_000).unwrap_or(u32::MAX);
            late.as_mut().poll(context).map(|()| Err(AuthFailureReason::Late(seconds)))
        })
        .await
    }
}

/// Entra has no federated credential for the tokens of such a pod and would refuse each of them.
const IDENTITY_BINDING: &str = "an AKS identity binding is not supported: give the identity a federated credential for this \
    service account, and take the annotation azure.workload.identity/use-identity-binding off the pod";

const TENANT: AuthFailureReason =
    AuthFailureReason::Unusable { what: "the tenant id", say: "is no id and no domain" };

/// A method that failed without a response. The error's text may contain anything, so it is only compared.
// azure_identity reports all failures of az as one kind with a text: no code tells them apart.
fn silent(way: Way, error: &azure_core::Error) -> AuthFailureReason {
    if way != Way::AzureCli {
        return AuthFailureReason::Unanswered("it could not be asked");
    }
    let said = error.to_string();
    if said.contains("not found on PATH") {
        AuthFailureReason::Unusable { what: "az", say: "is not installed, or not on the path" }
    } else if said.contains("az login") {
        AuthFailureReason::Unusable { what: "az", say: "no account is signed in: run `az login`" }
    } else if said.contains("2.54.0") {
        AuthFailureReason::Unusable { what: "az", say: "is too old: install 2.54.0 or newer" }
    } else {
        AuthFailureReason::Unanswered("az failed: run `az account get-access-token` to see why")
    }
}
