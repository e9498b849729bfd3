//! Keeps web pages out of an open (tokenless) API. A browser on this machine can reach the loopback for any page, so
//! without tokens every web page could delete machines. Two checks keep pages out: the Host must name the loopback (a
//! page whose own DNS name was rebound to this machine still sends that name), and the Origin must be this API.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode, Uri};

use crate::api::http::problem::Problem;

const FETCH_SITE: &str = "sec-fetch-site";

/// Refuses requests from pages of another site.
pub fn check(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail| Problem::new(StatusCode::FORBIDDEN, "foreignOrigin", detail);
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    };
    let Some(host) = host.filter(|host| names_loopback(host)) else {
        return Err(misdirected());
    };
    if uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host)) {
        return Err(misdirected());
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        // The API sends no CORS permission, so a page cannot read the answer.
        return Ok(());
    }
    if headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(refused("a web page of another site may change nothing here"));
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !place.is_some_and(|place| place.eq_ignore_ascii_case(host)) {
            return Err(refused("a web page of another origin may change nothing here"));
        }
    }
    Ok(())
}

fn misdirected() -> Problem {
    let say = "this door without tokens answers to localhost, 127.0.0.1 and [::1] only";
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "foreignHost", say)
}

fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => {
            let Some((address, port)) = rest.split_once(']') else { return false };
            let address: Option<Ipv6Addr> = address.parse().ok();
            return address.is_some_and(|a| a.is_loopback()) && (port.is_empty() || is_port(port));
        }
        None => match host.split_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            Some(_) => return false,
            None => host,
        },
    };
    let address: Option<Ipv4Addr> = name.parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|a| IpAddr::V4(a).is_loopback())
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.1.2.3", "[::1]", "[::1]:1"]
        {
            assert!(names_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "localhost:x",
            "localhost:1:2",
            "[::2]",
            "[::1",
            "[::1]x",
            "0.0.0.0",
            "127.1",
            "2130706433",
        ] {
            assert!(!names_loopback(host), "{host}");
        }
    }
}
