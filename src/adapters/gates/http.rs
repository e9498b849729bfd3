//! Asks an endpoint, whose status is the verdict.

use std::time::Duration;

use url::Url;

use crate::model::facts::Verdict;
use crate::model::gate::HttpCheck;
use crate::net::client::is_bare;
use crate::net::server::{ServerAccess, ServerClient, ServerFault, ServerReply, plain};
use crate::observe::{GateQuestion, GateReading};

/// The header that names the pool whose gate is measured.
const POOL: &str = "Poolkeeper-Pool";
/// Maximum size of a response that is read.
const LARGEST: usize = 64 << 10;

#[derive(Debug)]
pub struct Endpoint(ServerClient);

/// The address of an endpoint. `None`: it is invalid.
pub fn at(address: &str) -> Option<Url> {
    let url = Url::parse(address).ok()?;
    Some(url).filter(|url| is_bare(url) && matches!(url.scheme(), "http" | "https"))
}

impl Endpoint {
    /// Makes no request and reads no file. `trusted`: PEM certificates to trust in addition to those of the system.
    pub fn new(access: ServerAccess, trusted: Option<Vec<u8>>) -> Self {
        Self(ServerClient::new(access, trusted))
    }

    pub(super) async fn measure(&self, check: &HttpCheck, of: GateQuestion<'_>) -> GateReading {
        let within = Duration::from_millis(of.timeout.millis().unsigned_abs());
        let pool = of.pool.as_str();
        let sent = self.0.send(within, LARGEST, |client, at| client.get(at).header(POOL, pool));
        match sent.await {
            Ok(reply) => reading(check, &reply),
            Err(fault) => GateReading::unknown(format!(
                "endpoint {}: {}",
                check.endpoint,
                match fault {
                    ServerFault::Credentials(say) | ServerFault::Unreachable(say) => say,
                    ServerFault::Timeout => format!(
                        "it does not answer within {}; make it faster, or raise timeout of the gate",
                        of.timeout
                    ),
                }
            )),
        }
    }
}

fn reading(check: &HttpCheck, reply: &ServerReply) -> GateReading {
    let status = reply.status;
    let verdict = check.verdict(status);
    let what = match (verdict, status) {
        (Verdict::Unknown, 300..=399) => {
            ", a redirect, which is not followed; write the final address in url"
        }
        (Verdict::Unknown, 401 | 403) => {
            ", so it does not accept our credentials; check bearerTokenFile, basicAuth and certificate"
        }
        (Verdict::Unknown, _) => ", which is no verdict by expect of the gate",
        _ => "",
    };
    let body = String::from_utf8_lossy(&reply.body);
    let said = match body.trim_start().lines().next() {
        Some(line) if !line.trim().is_empty() => format!(": {}", plain(line, &reply.secrets)),
        _ => String::new(),
    };
    GateReading::new(verdict, format!("endpoint {} answers {status}{what}{said}", check.endpoint))
}
