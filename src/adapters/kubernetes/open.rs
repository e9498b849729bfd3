//! Opens a client of a cluster, as a kubeconfig or the pod's own service account say. No text of a failure repeats what
//! a file or a command of theirs holds.

use std::error::Error as StdError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::header::{HeaderValue, USER_AGENT};
use kube::client::AuthError;
use kube::config::{
    ExecInteractiveMode, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError,
    LoadDataError,
};
use kube::{Client, Config, Error};
use url::Url;

use crate::net::client::is_sealed;

const CONNECT: Duration = Duration::from_secs(5);
/// A command for credentials may ask a server far away.
const OPEN: Duration = Duration::from_secs(30);

/// How to reach a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterConfig {
    /// `None`: this process is a pod of the cluster.
    pub kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig; `None`: its current one.
    pub context: Option<Box<str>>,
}

pub(super) async fn open(config: &ClusterConfig) -> Result<Client, Box<str>> {
    match tokio::time::timeout(OPEN, opened(config)).await {
        Ok(opened) => opened,
        Err(_) => Err(format!("its credentials are not there within {} s", OPEN.as_secs()).into()),
    }
}

async fn opened(config: &ClusterConfig) -> Result<Client, Box<str>> {
    let mut wire = match &config.kubeconfig {
        Some(path) => of_file(path, config.context.as_deref()).await?,
        None => Config::incluster().map_err(|error| in_cluster(&error))?,
    };
    let server = Url::parse(&wire.cluster_url.to_string()).ok().filter(is_sealed);
    if server.is_none() {
        return Err("the server's address must begin with https://".into());
    }
    // The journal decides what is sent again.
    wire.default_retry = false;
    wire.connect_timeout = Some(CONNECT);
    let agent = HeaderValue::from_static(concat!("poolkeeper/", env!("CARGO_PKG_VERSION")));
    wire.headers.push((USER_AGENT, agent));
    if let Some(exec) = &mut wire.auth_info.exec {
        // No person sits at our input, and our output is not the command's.
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    blocking(move || Client::try_from(wire).map_err(|error| of_client(&error))).await
}

async fn of_file(path: &Path, context: Option<&str>) -> Result<Config, Box<str>> {
    let at = path.to_owned();
    let read = blocking(move || Kubeconfig::read_from(at).map_err(|error| of_config(&error)));
    let options =
        KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let config = match read.await {
        Ok(file) => {
            Config::from_custom_kubeconfig(file, &options).await.map_err(|error| of_config(&error))
        }
        Err(say) => Err(say),
    };
    config.map_err(|say| format!("{}: {say}", path.display()).into())
}

/// Reads files and runs commands aside from the other tasks.
async fn blocking<T: Send + 'static>(
    does: impl FnOnce() -> Result<T, Box<str>> + Send + 'static,
) -> Result<T, Box<str>> {
    let done = tokio::task::spawn_blocking(does).await;
    done.unwrap_or_else(|_| Err("it cannot be opened".into()))
}

fn in_cluster(error: &InClusterError) -> Box<str> {
    match error {
        InClusterError::ReadEnvironmentVariable(_) => {
            "this process runs in no cluster: name a kubeconfig".into()
        }
        InClusterError::ReadCertificateBundle(error)
        | InClusterError::ReadDefaultNamespace(error) => {
            format!("the service account's files cannot be read: {error}").into()
        }
        _ => "the service account cannot be used".into(),
    }
}

fn of_config(error: &KubeconfigError) -> Box<str> {
    match error {
        KubeconfigError::CurrentContextNotSet => "it has no current context: name one".into(),
        KubeconfigError::LoadContext(name) => format!("it has no context {name}").into(),
        KubeconfigError::LoadClusterOfContext(name) => format!("it has no cluster {name}").into(),
        KubeconfigError::ReadConfig(error, _) => format!("it cannot be read: {error}").into(),
        KubeconfigError::MissingClusterUrl | KubeconfigError::ParseClusterUrl(_) => {
            "its cluster has no valid address".into()
        }
        KubeconfigError::LoadCertificateAuthority(error) => of_data("authority", error),
        KubeconfigError::LoadClientCertificate(error) => of_data("certificate", error),
        KubeconfigError::LoadClientKey(error) => of_data("key", error),
        KubeconfigError::ParseCertificates(_) => "its certificates are no PEM".into(),
        KubeconfigError::ParseProxyUrl(_) => "its proxy has no valid address".into(),
        _ => "it is no kubeconfig".into(),
    }
}

fn of_data(what: &str, error: &LoadDataError) -> Box<str> {
    match error {
        LoadDataError::ReadFile(error, path) => {
            format!("its {what} {} cannot be read: {error}", path.display()).into()
        }
        LoadDataError::DecodeBase64(_) => format!("its {what} is no base64").into(),
        LoadDataError::NoBase64DataOrFile => format!("it has no {what}").into(),
    }
}

fn of_client(error: &Error) -> Box<str> {
    match error {
        Error::Auth(error) => of_credentials(error),
        Error::InferKubeconfig(error) => of_config(error),
        Error::ProxyProtocolUnsupported { .. } | Error::ProxyProtocolDisabled { .. } => {
            "its proxy speaks no protocol of ours".into()
        }
        _ => "its certificates or credentials cannot be used".into(),
    }
}

fn of_credentials(error: &AuthError) -> Box<str> {
    match error {
        AuthError::AuthExecStart(error) => {
            format!("the command for its credentials cannot be started: {error}").into()
        }
        AuthError::AuthExecRun { out, .. } => {
            format!("the command for its credentials failed: {}", out.status).into()
        }
        AuthError::ReadTokenFile(error, path) => {
            format!("its token {} cannot be read: {error}", path.display()).into()
        }
        AuthError::MissingCommand => "its credentials name no command".into(),
        AuthError::AuthExec(_)
        | AuthError::AuthExecParse(_)
        | AuthError::ExecPluginFailed
        | AuthError::UnrefreshableTokenResponse => {
            "the command for its credentials gave none".into()
        }
        _ => "its credentials cannot be used".into(),
    }
}

/// Why no answer came: the innermost cause says most.
pub(super) fn no_answer(error: &Error) -> Box<str> {
    let mut inner: &(dyn StdError + 'static) = error;
    loop {
        if let Some(error) = inner.downcast_ref::<AuthError>() {
            return of_credentials(error);
        }
        match inner.source() {
            Some(source) => inner = source,
            None => return format!("the cluster does not answer: {inner}").into(),
        }
    }
}
