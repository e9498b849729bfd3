//! Turns a failed connection into a message with a remedy. Most causes are recognized by the error types of the lower
//! layers, the others by their text.

use std::error::Error;
use std::io;

/// The message, if the cause is known.
pub(super) fn known(error: &(dyn Error + 'static)) -> Option<&'static str> {
    innermost(error).map(ErrorCause::say)
}

/// The innermost known cause.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> Option<ErrorCause> {
    let mut next = Some(error);
    let mut known = None;
    while let Some(error) = next {
        known = of(error).or(known);
        next = error.source();
    }
    known
}

/// The message for a known cause; otherwise the error and its causes in one line.
pub(super) fn say(error: &(dyn Error + 'static)) -> Box<str> {
    known(error).map_or_else(|| chain(error), Into::into)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorCause {
    NoName,
    ConnectionRefused,
    ConnectLate,
    AnswerLate,
    UnknownAuthority,
    OtherName,
    OutOfTime,
    Tls,
    ProxyLogin,
    ProxyRefused,
}

impl ErrorCause {
    const fn say(self) -> &'static str {
        match self {
            ErrorCause::NoName => {
                "its name is not known here: check the address, the DNS, and whether a proxy must be used (HTTPS_PROXY)"
            }
            ErrorCause::ConnectionRefused => {
                "nothing listens there: check the address and the port, of the proxy too if there is one"
            }
            ErrorCause::ConnectLate => {
                "it could not be connected in time: check the firewall and whether a proxy must be used (HTTPS_PROXY)"
            }
            ErrorCause::AnswerLate => "it was connected, and then nothing was heard for too long",
            ErrorCause::UnknownAuthority => {
                "its certificate is from an authority that is not trusted here: add that authority's certificate (PEM) \
                 to those that are trusted; a proxy that opens TLS has one of its own"
            }
            ErrorCause::OtherName => "its certificate is for another name: check the address",
            ErrorCause::OutOfTime => {
                "its certificate is out of its time: check the clock of this machine, then ask who runs the other"
            }
            ErrorCause::Tls => {
                "TLS with it failed: check that it is an address that speaks TLS, and whether a proxy stands between"
            }
            ErrorCause::ProxyLogin => {
                "the proxy wants to know who we are: put name and password into its address"
            }
            ErrorCause::ProxyRefused => {
                "the proxy did not let us through: allow the address there, or name it in NO_PROXY"
            }
        }
    }
}

fn of(error: &(dyn Error + 'static)) -> Option<ErrorCause> {
    if let Some(io) = error.downcast_ref::<io::Error>() {
        // `source()` of an `io::Error` skips the error that it contains.
        let inner = io.get_ref().and_then(|inner| of(inner));
        return inner.or_else(|| match io.kind() {
            io::ErrorKind::ConnectionRefused => Some(ErrorCause::ConnectionRefused),
            io::ErrorKind::TimedOut => Some(ErrorCause::ConnectLate),
            _ => None,
        });
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(tls));
    }
    if let Some(request) = error.downcast_ref::<reqwest::Error>()
        && request.is_timeout()
    {
        return Some(if request.is_connect() {
            ErrorCause::ConnectLate
        } else {
            ErrorCause::AnswerLate
        });
    }
    // These errors have no public type.
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    match () {
        () if says("dns error") || says("failed to lookup address") => Some(ErrorCause::NoName),
        () if says("proxy auth") => Some(ErrorCause::ProxyLogin),
        () if says("unsuccessful tunnel") || says("tunnel error") => Some(ErrorCause::ProxyRefused),
        () => None,
    }
}

fn of_tls(error: &rustls::Error) -> ErrorCause {
    use rustls::CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => ErrorCause::OtherName,
            Bad::Expired
            | Bad::ExpiredContext { .. }
            | Bad::NotValidYet
            | Bad::NotValidYetContext { .. } => ErrorCause::OutOfTime,
            // Includes a chain that ends in a self-signed authority.
            _ => ErrorCause::UnknownAuthority,
        },
        _ => ErrorCause::Tls,
    }
}

/// The outermost error of a TLS failure does not name its cause, so list them all.
fn chain(error: &(dyn Error + 'static)) -> Box<str> {
    let mut said: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !said.iter().any(|known| known.contains(&text)) {
            said.push(text);
        }
        next = error.source();
    }
    said.join(": ").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_inside_counts_first() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(of(&refused), Some(ErrorCause::ConnectionRefused));
        let tls = |bad| io::Error::other(rustls::Error::InvalidCertificate(bad));
        use rustls::CertificateError as Bad;
        assert_eq!(of(&tls(Bad::UnknownIssuer)), Some(ErrorCause::UnknownAuthority));
        assert_eq!(of(&tls(Bad::NotValidForName)), Some(ErrorCause::OtherName));
        assert_eq!(of(&tls(Bad::Expired)), Some(ErrorCause::OutOfTime));
        assert_eq!(of(&io::Error::other(rustls::Error::DecryptError)), Some(ErrorCause::Tls));
        assert_eq!(of(&io::Error::other("dns error: no such name")), Some(ErrorCause::NoName));
        let tunnel = io::Error::other("tunnel error: unsuccessful");
        assert_eq!(of(&tunnel), Some(ErrorCause::ProxyRefused));
    }

    #[test]
    fn what_is_not_known_is_told_with_its_causes() {
        let error = io::Error::other("strange");
        assert_eq!(of(&error), None);
        assert_eq!(&*say(&error), "strange");
    }
}
