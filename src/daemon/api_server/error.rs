//! Why the API server cannot start.

use std::io;
use std::path::PathBuf;

use crate::adapters::issuer::BadIssuer;
use crate::api::http::auth::TokensError;
use crate::api::http::{ListenError, Places};

#[derive(Debug, thiserror::Error)]
pub enum ApiServerError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("api.certificate and api.key go together: one of them is not set")]
    HalfSealed,
    #[error(
        "api.clientCertificates needs api.certificate and api.key, and api.tokens to say who comes"
    )]
    LoneClients,
    #[error("the certificate {path} or its key cannot be read: {source}")]
    Certificate { path: PathBuf, source: io::Error },
    #[error("the tokens file {path} cannot be read: {source}")]
    Unread { path: PathBuf, source: io::Error },
    #[error("the tokens file {path}: {source}")]
    Tokens { path: PathBuf, source: TokensError },
    #[error("oidc.issuer is set and oidc.{0} is not: no token would be accepted")]
    HalfOidc(&'static str),
    #[error("oidc.{0} is set, and oidc.issuer is not")]
    LoneOidc(&'static str),
    #[error("oidc.pools names {0}, and none of oidc.viewers, oidc.operators and oidc.admins does")]
    NoRole(Box<str>),
    #[error(
        "api.approvals is 2, and without api.tokens and oidc.issuer everyone has one name: name a file of tokens, or set it to 1"
    )]
    OnePerson,
    #[error(
        "this process may open {0} files and connections, and the API needs {least}: raise the limit (LimitNOFILE= of a unit, --ulimit nofile= of a container)",
        least = Places::DESCRIPTORS
    )]
    FewDescriptors(u64),
    #[error(transparent)]
    Issuer(#[from] BadIssuer),
}
