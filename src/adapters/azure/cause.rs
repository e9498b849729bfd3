//! Why no answer came, in words that say what to do about it. The types of the layers below tell most of it; what has
//! none is told by its text.

use std::error::Error;
use std::io;

/// What to say where the cause is known.
pub(super) fn known(error: &(dyn Error + 'static)) -> Option<&'static str> {
    innermost(error).map(Cause::say)
}

/// The first cause that is known, from the inside out.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> Option<Cause> {
    let mut next = Some(error);
    let mut known = None;
    while let Some(error) = next {
        known = of(error).or(known);
        next = error.source();
    }
    known
}

/// Where it is not, the error and its causes in one line.
pub(super) fn say(error: &(dyn Error + 'static)) -> Box<str> {
    known(error).map_or_else(|| chain(error), Into::into)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    NoName,
    NobodyThere,
    ConnectLate,
    AnswerLate,
    UnknownAuthority,
    OtherName,
    OutOfTime,
    Tls,
    ProxyLogin,
    ProxyRefused,
}

impl Cause {
    const fn say(self) -> &'static str {
        match self {
            Cause::NoName => {
                "its name is not known here: check the address, the DNS, and whether a proxy must be used (HTTPS_PROXY)"
            }
            Cause::NobodyThere => {
                "nobody listens there: check the address and the port, of the proxy too if there is one"
            }
            Cause::ConnectLate => {
                "it could not be connected in time: check the firewall and whether a proxy must be used (HTTPS_PROXY)"
            }
            Cause::AnswerLate => "it was connected, and then nothing was heard for too long",
            Cause::UnknownAuthority => {
                "its certificate is from an authority that is not trusted here: add that authority's certificate (PEM) \
                 to those that are trusted; a proxy that opens TLS has one of its own"
            }
            Cause::OtherName => "its certificate is for another name: check the address",
            Cause::OutOfTime => {
                "its certificate is out of its time: check the clock of this machine, then ask who runs the other"
            }
            Cause::Tls => {
                "TLS with it failed: check that it is an address that speaks TLS, and whether a proxy stands between"
            }
            Cause::ProxyLogin => {
                "the proxy wants to know who we are: put name and password into its address"
            }
            Cause::ProxyRefused => {
                "the proxy did not let us through: allow the address there, or name it in NO_PROXY"
            }
        }
    }
}

fn of(error: &(dyn Error + 'static)) -> Option<Cause> {
    if let Some(io) = error.downcast_ref::<io::Error>() {
        // What stands inside is no source of it.
        let inner = io.get_ref().and_then(|inner| of(inner));
        return inner.or_else(|| match io.kind() {
            io::ErrorKind::ConnectionRefused => Some(Cause::NobodyThere),
            io::ErrorKind::TimedOut => Some(Cause::ConnectLate),
            _ => None,
        });
    }
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(tls));
    }
    if let Some(request) = error.downcast_ref::<reqwest::Error>()
        && request.is_timeout()
    {
        return Some(if request.is_connect() { Cause::ConnectLate } else { Cause::AnswerLate });
    }
    // These have no type that could be named.
    let text = error.to_string();
    let says = |part: &str| text.contains(part);
    match () {
        () if says("dns error") || says("failed to lookup address") => Some(Cause::NoName),
        () if says("proxy auth") => Some(Cause::ProxyLogin),
        () if says("unsuccessful tunnel") || says("tunnel error") => Some(Cause::ProxyRefused),
        () => None,
    }
}

fn of_tls(error: &rustls::Error) -> Cause {
    use rustls::CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Cause::OtherName,
            Bad::Expired
            | Bad::ExpiredContext { .. }
            | Bad::NotValidYet
            | Bad::NotValidYetContext { .. } => Cause::OutOfTime,
            // Also where a chain ends in an authority of its own making.
            _ => Cause::UnknownAuthority,
        },
        _ => Cause::Tls,
    }
}

/// A TLS failure tells nothing at its outside.
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
        assert_eq!(of(&refused), Some(Cause::NobodyThere));
        let tls = |bad| io::Error::other(rustls::Error::InvalidCertificate(bad));
        use rustls::CertificateError as Bad;
        assert_eq!(of(&tls(Bad::UnknownIssuer)), Some(Cause::UnknownAuthority));
        assert_eq!(of(&tls(Bad::NotValidForName)), Some(Cause::OtherName));
        assert_eq!(of(&tls(Bad::Expired)), Some(Cause::OutOfTime));
        assert_eq!(of(&io::Error::other(rustls::Error::DecryptError)), Some(Cause::Tls));
        assert_eq!(of(&io::Error::other("dns error: no such name")), Some(Cause::NoName));
        let tunnel = io::Error::other("tunnel error: unsuccessful");
        assert_eq!(of(&tunnel), Some(Cause::ProxyRefused));
    }

    #[test]
    fn what_is_not_known_is_told_with_its_causes() {
        let error = io::Error::other("strange");
        assert_eq!(of(&error), None);
        assert_eq!(&*say(&error), "strange");
    }
}
