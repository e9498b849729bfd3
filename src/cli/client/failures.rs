//! A failed request as a failure of the command, with a hint that fits its cause.

use super::environment::set;
use crate::api::client::{ClientError, ClientWait, ConnectFault, RefusedAnswer};
use crate::cli::exit::{CommandFailure, Exit};

/// The error code of a pool whose first turn has not planned yet.
pub(in crate::cli) const NO_PLAN_YET: &str = "noPlanYet";

pub(in crate::cli) fn failure(error: &ClientError) -> CommandFailure {
    let say = error.to_string();
    match error {
        ClientError::Address(_) => CommandFailure::usage(say)
            .help("write it like http://127.0.0.1:7770 or https://pools.example.com"),
        ClientError::Unsealed(_) => CommandFailure::usage(say),
        ClientError::Token => {
            CommandFailure::usage(say).help("its file, variable or command gives the token alone")
        }
        ClientError::Setup(_) => CommandFailure::new(Exit::Input, "badCertificates", say)
            .help("--server-ca and POOLKEEPER_CA_FILE name a file of PEM certificates"),
        ClientError::Identity(_) => CommandFailure::new(Exit::Input, "badCertificates", say)
            .help("clientCertificate and clientKey of the context name PEM files"),
        ClientError::NoDice => CommandFailure::new(Exit::Internal, "internal", say),
        ClientError::Unreachable { server, fault, .. } => {
            CommandFailure::new(Exit::Unreachable, "unreachable", say).help(hint(*fault, server))
        }
        ClientError::TimedOut { server, wait } => {
            CommandFailure::new(Exit::Unreachable, "timedOut", say).help(silence(*wait, server))
        }
        ClientError::Strange { .. } => CommandFailure::new(Exit::Unreachable, "strangeAnswer", say)
            .help("--server names the address of a running Poolkeeper daemon"),
        ClientError::Refused(refused) => of_answer(refused, say),
    }
}

/// What to do about a server that did not answer in time.
fn silence(wait: ClientWait, server: &str) -> String {
    match wait {
        ClientWait::Connection => {
            format!("check that a firewall lets you reach {server}, or try again")
        }
        ClientWait::Answer => {
            "it accepts connections and does not answer: check that a Poolkeeper \
                               daemon listens there, and look at its log"
                .to_owned()
        }
        ClientWait::Limit => format!(
            "check with `poolkeeper doctor` that a daemon answers at {server}, or give it more time"
        ),
    }
}

/// What to do about it.
fn hint(fault: ConnectFault, server: &str) -> String {
    let other = |from: &str, to: &str| server.replacen(from, to, 1);
    match fault {
        ConnectFault::Refused => {
            "start a daemon with `poolkeeper serve`, or name its address with --server".to_owned()
        }
        ConnectFault::PlainPort => {
            format!("this port does not speak TLS: use {}", other("https://", "http://"))
        }
        ConnectFault::TlsPort => {
            format!("this port does not speak plain HTTP: use {}", other("http://", "https://"))
        }
        ConnectFault::Untrusted => "name the certificate of its authority with --server-ca or \
                                    POOLKEEPER_CA_FILE"
            .to_owned(),
        ConnectFault::OtherName => {
            "the certificate is for other names: name the server as its certificate does".to_owned()
        }
        ConnectFault::Expired => {
            "renew the certificate of the server, or set the clock of this machine".to_owned()
        }
        ConnectFault::UnusableCertificate => {
            "the certificate cannot be that of a server, for example because it is one of an \
             authority: add `-addext basicConstraints=critical,CA:FALSE` where openssl makes it"
                .to_owned()
        }
        ConnectFault::NeedsCertificate => {
            "the server requires a client certificate: `poolkeeper context set` names one with \
             --client-certificate and --client-key"
                .to_owned()
        }
        ConnectFault::Other => {
            "check the name and the port of --server, and the network to it".to_owned()
        }
    }
}

fn of_answer(refused: &RefusedAnswer, say: String) -> CommandFailure {
    let (exit, code) = match refused.status {
        401 => (Exit::NotPermitted, "unauthenticated"),
        403 => (Exit::NotPermitted, "forbidden"),
        404 => (Exit::NotFound, "notFound"),
        409 if refused.code == NO_PLAN_YET => (Exit::Unreachable, NO_PLAN_YET),
        409 | 412 => (Exit::Input, "conflict"),
        429 | 503 => (Exit::Unreachable, "unavailable"),
        500.. => (Exit::Internal, "serverFault"),
        _ => (Exit::Input, "refused"),
    };
    let mut failure = CommandFailure::new(exit, code, say);
    failure.report.help = refused.help.clone().or_else(|| of_identity(refused.status));
    if let Some(fault) = refused.errors.first() {
        failure.report.place = Some((fault.line, fault.column));
        failure.report.field.clone_from(&fault.field);
        failure.report.help = fault.help.clone().or(failure.report.help);
    }
    failure
}

/// A refusal for who asks, if the server gave no hint.
fn of_identity(status: u16) -> Option<String> {
    let source =
        ["POOLKEEPER_TOKEN_FILE", "POOLKEEPER_TOKEN"].into_iter().find(|name| set(name).is_some());
    match (status, source) {
        (401, None) => Some(
            "set POOLKEEPER_TOKEN_FILE or POOLKEEPER_TOKEN, or check the token of the context"
                .to_owned(),
        ),
        (401, Some(source)) => Some(format!(
            "the server does not accept the token in {source}: it may have expired, or belong to another server"
        )),
        (403, Some(source)) => Some(format!(
            "put a token with a higher role into {source}, or ask a person who has one"
        )),
        (403, None) => Some("ask a person with a higher role".to_owned()),
        _ => None,
    }
}
