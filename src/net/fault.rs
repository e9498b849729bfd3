//! Why a server could not be reached, told apart by types, never by texts.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFault {
    /// No program listens there.
    Refused,
    /// The port speaks plain HTTP, and TLS was tried.
    PlainPort,
    /// The port does not speak HTTP, and plain HTTP was tried: it probably speaks TLS.
    TlsPort,
    /// The certificate is not signed by a trusted authority.
    Untrusted,
    /// The certificate is for other names.
    OtherName,
    /// The certificate is not valid at this time.
    Expired,
    /// The certificate is unusable for a server, as that of an authority is.
    UnusableCertificate,
    /// The server requires a certificate of the client.
    NeedsCertificate,
    /// Any other: a name that is unknown, a network that is down, a connection that was cut.
    Other,
}

impl ConnectFault {
    pub fn of(error: &reqwest::Error) -> Self {
        let mut inner: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = inner {
            if let Some(fault) = one(error) {
                return fault;
            }
            inner = error.source();
        }
        ConnectFault::Other
    }
}

fn one(error: &(dyn Error + 'static)) -> Option<ConnectFault> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return of_tls(tls);
    }
    if let Some(http) = error.downcast_ref::<hyper::Error>() {
        return http.is_parse().then_some(ConnectFault::TlsPort);
    }
    let system = error.downcast_ref::<io::Error>()?;
    match system.get_ref() {
        // An error that another one wraps is not among its sources.
        Some(wrapped) => one(wrapped),
        None => {
            (system.kind() == io::ErrorKind::ConnectionRefused).then_some(ConnectFault::Refused)
        }
    }
}

fn of_tls(error: &rustls::Error) -> Option<ConnectFault> {
    match error {
        rustls::Error::InvalidMessage(_) => Some(ConnectFault::PlainPort),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => Some(ConnectFault::NeedsCertificate),
        rustls::Error::InvalidCertificate(certificate) => Some(of_certificate(certificate)),
        _ => None,
    }
}

fn of_certificate(error: &CertificateError) -> ConnectFault {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => ConnectFault::Untrusted,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ConnectFault::OtherName
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => ConnectFault::Expired,
        _ => ConnectFault::UnusableCertificate,
    }
}
