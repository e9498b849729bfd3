//! Each way to a token, tried once.

use std::sync::Arc;

use azure_core::cloud::CustomConfiguration;
use azure_core::credentials::{AccessToken, TokenCredential};
use azure_core::http::{ClientOptions, HttpClient, Method, Request, RetryOptions, Transport, Url};
use azure_identity::{
    AzureCliCredential, AzureCliCredentialOptions, ClientAssertionCredential,
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    Executor, ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
};

use super::assertion::{About, Signer, Written};
use super::failed::{NO_TOKEN, Tried, Why};
use super::file::SecretFiles;
use super::line::Line;
use super::settings::{ClientSecret, Identity, Settings, Way};
use crate::ambient::Sleep;
use crate::model::time::Span;

/// Where a machine's own service of identities is, if it has one.
const MACHINE_SERVICE: &str = "http://169.254.169.254/metadata/identity/oauth2/token";

/// How long a machine's service has to show that it is there, when nobody said that it is.
// 1 s: it is on the same host; elsewhere nobody ever answers, and the next way waits.
const SHOWS_ITSELF: Span = Span::seconds(1);

/// How long any way has for one try.
// 10 s: several times the slowest good answer; a longer one would keep all pools.
const PATIENCE: Span = Span::seconds(10);

/// What the ways are tried with.
#[derive(Debug)]
pub(super) struct Ways<C> {
    pub settings: Settings,
    pub files: SecretFiles,
    pub http: Arc<dyn HttpClient>,
    pub clock: C,
    /// Runs the Azure CLI; `None`: as a process of its own.
    pub cli: Option<Arc<dyn Executor>>,
}

impl<C: Sleep + Sync> Ways<C> {
    /// One try, with a credential made for it: what it remembers is not wanted, since it never forgets what was refused.
    pub async fn try_one(&self, way: Way) -> Result<AccessToken, Tried> {
        let (http, authority) = (Arc::clone(&self.http), self.settings.cloud.authority());
        let line = Arc::new(Line::new(http, authority, self.clock.now()));
        self.try_on(way, &line).await.map_err(|why| Tried { way, why, wait: line.wait() })
    }

    async fn try_on(&self, way: Way, line: &Arc<Line>) -> Result<AccessToken, Why> {
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
        // The library repeats its request until the time is over: the refusal says more than the time.
        let asked = asked.map_err(|late| line.refused().unwrap_or(late))?;
        let token = asked.map_err(|error| line.heard().unwrap_or_else(|| silent(way, &error)))?;
        // An answer without one is read as an empty one.
        match token.token.secret().trim().is_empty() {
            true => Err(Why::Unanswered(NO_TOKEN)),
            false => Ok(token),
        }
    }

    async fn credential(
        &self,
        way: Way,
        line: &Arc<Line>,
    ) -> Result<Arc<dyn TokenCredential>, Why> {
        match way {
            Way::WorkloadIdentity => self.workload(line).await,
            Way::ManagedIdentity => self.managed(line),
            Way::ClientSecret => self.secret(line).await,
            Way::ClientCertificate => self.certificate(line).await,
            Way::AzureCli => self.cli(),
        }
    }

    /// The file is read at each try: the cluster writes it anew before it is too old.
    async fn workload(&self, line: &Arc<Line>) -> Result<Arc<dyn TokenCredential>, Why> {
        if self.settings.cluster_exchanges_tokens {
            let what = "AZURE_KUBERNETES_TOKEN_PROXY";
            return Err(Why::Unusable { what, say: IDENTITY_BINDING });
        }
        let file = self.settings.federated_token_file.as_ref();
        let file = file.ok_or(Why::NotSet("AZURE_FEDERATED_TOKEN_FILE"))?;
        let (tenant, client) = self.who()?;
        let token = self.files.read_secret(file, "the federated token file").await?;
        self.with_assertion(tenant, client, Written(token), line)
    }

    fn managed(&self, line: &Arc<Line>) -> Result<Arc<dyn TokenCredential>, Why> {
        let user_assigned_id = match (&self.settings.identity, &self.settings.client) {
            (Some(Identity::ClientId(id)), _) | (None, Some(id)) => {
                Some(UserAssignedId::ClientId(id.to_string()))
            }
            (Some(Identity::ResourceId(_)), _) if self.settings.host_serves_identity => {
                let say = "cannot name the identity on this kind of host: give its client id";
                return Err(Why::Unusable { what: "the resource id", say });
            }
            (Some(Identity::ResourceId(id)), _) => Some(UserAssignedId::ResourceId(id.to_string())),
            (None, None) => None,
        };
        let client_options = self.options(line);
        let options = ManagedIdentityCredentialOptions { user_assigned_id, client_options };
        let made = ManagedIdentityCredential::new(Some(options));
        Ok(made.map_err(|_| Why::Unusable {
            what: "this kind of host",
            say: "serves identities in a way that is not known here",
        })?)
    }

    async fn secret(&self, line: &Arc<Line>) -> Result<Arc<dyn TokenCredential>, Why> {
        let secret = self.settings.secret.as_ref().ok_or(Why::NotSet("AZURE_CLIENT_SECRET"))?;
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

    /// The file is read at each try: certificates are renewed.
    async fn certificate(&self, line: &Arc<Line>) -> Result<Arc<dyn TokenCredential>, Why> {
        let file = self.settings.certificate_file.as_ref();
        let file = file.ok_or(Why::NotSet("AZURE_CLIENT_CERTIFICATE_PATH"))?;
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
        self.with_assertion(tenant, client, Written(assertion), line)
    }

    fn cli(&self) -> Result<Arc<dyn TokenCredential>, Why> {
        let tenant_id = self.settings.tenant.as_ref().map(ToString::to_string);
        let executor = self.cli.clone();
        let options = AzureCliCredentialOptions { subscription: None, tenant_id, executor };
        Ok(AzureCliCredential::new(Some(options)).map_err(|_| TENANT)?)
    }

    fn with_assertion(
        &self,
        tenant: &str,
        client: &str,
        assertion: Written,
        line: &Arc<Line>,
    ) -> Result<Arc<dyn TokenCredential>, Why> {
        let options = ClientAssertionCredentialOptions { client_options: self.options(line) };
        let (tenant, client) = (tenant.to_owned(), client.to_owned());
        let made = ClientAssertionCredential::new(tenant, client, assertion, Some(options));
        Ok(made.map_err(|_| TENANT)?)
    }

    /// Tenant and client, fit to stand in an address and in a claim.
    fn who(&self) -> Result<(&str, &str), Why> {
        let tenant = self.settings.tenant.as_deref().ok_or(Why::NotSet("AZURE_TENANT_ID"))?;
        let client = self.settings.client.as_deref().ok_or(Why::NotSet("AZURE_CLIENT_ID"))?;
        let is_plain = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        if !is_plain(tenant) {
            return Err(TENANT);
        }
        if !is_plain(client) {
            return Err(Why::Unusable { what: "the client id", say: "is no id" });
        }
        Ok((tenant, client))
    }

    /// No retries of its own: who asks for a token comes again.
    fn options(&self, line: &Arc<Line>) -> ClientOptions {
        let mut cloud = CustomConfiguration::default();
        cloud.authority_host = Line::dressed(self.settings.cloud.authority());
        let http: Arc<dyn HttpClient> = Arc::<Line>::clone(line);
        ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::new(http)),
            cloud: Some(Arc::new(cloud.into())),
            ..ClientOptions::default()
        }
    }

    /// Any answer will do. It is not asked for a token yet, so that nobody else who listens there gets the question.
    async fn look_for_machine_service(&self) -> Result<(), Why> {
        let absent = Why::Unanswered("this machine has no service for it");
        let Ok(url) = Url::parse(MACHINE_SERVICE) else { return Err(absent) };
        let request = Request::new(url, Method::Get);
        match self.within(SHOWS_ITSELF, self.http.execute_request(&request)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(absent),
        }
    }

    async fn within<T>(&self, span: Span, work: impl Future<Output = T>) -> Result<T, Why> {
        let mut late = std::pin::pin!(self.clock.sleep_until(self.clock.now().plus(span)));
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| {
            if let std::task::Poll::Ready(done) = work.as_mut().poll(context) {
                return std::task::Poll::Ready(Ok(done));
            }
            let seconds = u32::try_from(span.millis() / 1_000).unwrap_or(u32::MAX);
            late.as_mut().poll(context).map(|()| Err(Why::Late(seconds)))
        })
        .await
    }
}

/// Entra knows no federated credential for the tokens of such a pod: it would refuse each of them.
const IDENTITY_BINDING: &str = "an AKS identity binding is not supported: give the identity a federated credential for this \
    service account, and take the annotation azure.workload.identity/use-identity-binding off the pod";

const TENANT: Why = Why::Unusable { what: "the tenant id", say: "is no id and no domain" };

/// A way that failed without a word on its line. What it says may hold anything, so it is only compared.
fn silent(way: Way, error: &azure_core::Error) -> Why {
    if way != Way::AzureCli {
        return Why::Unanswered("it could not be asked");
    }
    let said = error.to_string();
    if said.contains("not found on PATH") {
        Why::Unusable { what: "az", say: "is not installed, or not on the path" }
    } else if said.contains("az login") {
        Why::Unusable { what: "az", say: "nobody is signed in: run `az login`" }
    } else if said.contains("2.54.0") {
        Why::Unusable { what: "az", say: "is too old: install 2.54.0 or newer" }
    } else {
        Why::Unanswered("az failed: run `az account get-access-token` to see why")
    }
}
