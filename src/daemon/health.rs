//! The state of the daemon in sentences: what it waits for, and what needs a person.

use super::board::{FilesStatus, Lead, ProcessStatus};
use crate::api::v1::diagnostic::Code;
use crate::memory::AUDIT_LARGE;
use crate::model::time::{Span, Time};

/// What the process waits for, or that it waits for nothing.
pub(super) fn waits_for(status: &ProcessStatus) -> String {
    match &status.lead {
        _ if status.stopping => "stopping".to_owned(),
        _ if status.store.is_some() => {
            let why = status.store.as_deref().unwrap_or_default();
            format!("the store does not keep what is written: {why}")
        }
        _ if status.ready => "turns are made".to_owned(),
        Lead::Vacant => "waiting for the lease".to_owned(),
        Lead::Waiting { by, until } => {
            format!("another process leads, {by}, until {until} at least")
        }
        Lead::Ours(_) => "reading what is remembered".to_owned(),
    }
}

/// Certificates and tokens that expire within this time are reported as trouble.
// Two weeks: automatic renewal happens a month before, and people need days.
const SOON: Span = Span::days(14);

/// How long a restored store is reported as trouble.
// A day: the person who restored it at night has time to inform the others.
const RESTORED_SHOWN: Span = Span::days(1);

pub(super) fn ends_soon(ends: Time, now: Time) -> bool {
    ends.since(now) < SOON
}

/// Problems that need attention. Public: they name no file, no address and no pool.
pub(super) fn troubles(status: &ProcessStatus, now: Time) -> Vec<String> {
    let mut troubles = Vec::new();
    if status.store.is_some() {
        troubles
            .push("the store does not keep what is written; /ready and the log say why".to_owned());
    }
    if let Some(at) = status.restored.filter(|at| now.since(*at) < RESTORED_SHOWN) {
        troubles.push(format!(
            "the store was restored from a copy at {at}; what the copy does not know is read from Azure, and the audit says more"
        ));
    }
    if let Some(FilesStatus { looked, hangs: true }) = status.files {
        let since = looked.map_or("the start".to_owned(), |at| at.to_string());
        troubles.push(format!(
            "pool files have not been scanned since {since}: their disk does not respond"
        ));
    }
    if status.faults.iter().any(|fault| fault.code == Code::Vanished) {
        troubles.push(
            "the files of many pools are gone; none of these pools is released until a person says more"
                .to_owned(),
        );
    }
    if let Some(lines) = status.audit.filter(|lines| *lines > AUDIT_LARGE) {
        troubles.push(format!(
            "the audit has {lines} lines younger than audit.keep and keeps growing: find out who sends so many requests, or lower audit.keep"
        ));
    }
    let certificate = status.certificate.as_ref();
    match certificate.and_then(|certificate| certificate.ends) {
        Some(ends) if ends <= now => troubles.push(format!("the certificate ended at {ends}")),
        Some(ends) if ends_soon(ends, now) => {
            troubles.push(format!("the certificate ends at {ends}"));
        }
        _ => {}
    }
    if certificate.is_some_and(|certificate| certificate.refused) {
        troubles.push("the new certificate cannot be used; the log says why".to_owned());
    }
    if status.tokens_refused {
        troubles.push("the tokens file cannot be used; the log says why".to_owned());
    }
    if status.tokens.values().any(|ends| ends_soon(*ends, now)) {
        troubles.push("tokens expire soon or have expired; the log names them".to_owned());
    }
    if status.keys_fail {
        troubles.push("the keys of the identity provider cannot be fetched".to_owned());
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::board::CertificateStatus;

    #[test]
    fn a_certificate_is_told_of_two_weeks_before_its_end() {
        let now = Time::from_millis(1_800_000_000_000);
        let told = |left: Span, refused: bool| {
            let certificate = Some(CertificateStatus { ends: Some(now.plus(left)), refused });
            troubles(&ProcessStatus { certificate, ..ProcessStatus::default() }, now)
        };
        assert_eq!(told(Span::days(14), false), Vec::<String>::new());
        let soon = told(Span::from_millis(Span::days(14).millis() - 1), false);
        assert!(soon.len() == 1 && soon[0].contains("ends at"), "{soon:?}");
        let over = told(Span::from_millis(0), true);
        assert!(over.len() == 2 && over[0].contains("ended at"), "{over:?}");
        let lost = troubles(
            &ProcessStatus { store: Some("gone".into()), ..ProcessStatus::default() },
            now,
        );
        assert!(lost.len() == 1 && lost[0].starts_with("the store does not keep"), "{lost:?}");
        let token = |left: Span| {
            let tokens = [("ann".into(), now.plus(left))].into();
            troubles(&ProcessStatus { tokens, ..ProcessStatus::default() }, now)
        };
        assert_eq!(token(Span::days(14)), Vec::<String>::new());
        assert_eq!(
            token(Span::days(13)),
            ["tokens expire soon or have expired; the log names them"]
        );
        let restored = |ago: Span| {
            let restored = Some(now.minus(ago));
            troubles(&ProcessStatus { restored, ..ProcessStatus::default() }, now)
        };
        assert!(restored(Span::hours(23))[0].starts_with("the store was restored"));
        assert_eq!(restored(Span::days(1)), Vec::<String>::new());
        let refused = ProcessStatus { tokens_refused: true, ..ProcessStatus::default() };
        assert_eq!(troubles(&refused, now), ["the tokens file cannot be used; the log says why"]);
        let large = |lines| {
            troubles(&ProcessStatus { audit: Some(lines), ..ProcessStatus::default() }, now)
        };
        assert_eq!(large(AUDIT_LARGE), Vec::<String>::new());
        assert!(large(AUDIT_LARGE + 1)[0].starts_with("the audit has 100001 lines"));
        let files = Some(FilesStatus { looked: Some(now), hangs: true });
        let hangs = troubles(&ProcessStatus { files, ..ProcessStatus::default() }, now);
        assert!(hangs.len() == 1 && hangs[0].contains(&format!("since {now}")), "{hangs:?}");
        let away = troubles(&ProcessStatus { keys_fail: true, ..ProcessStatus::default() }, now);
        assert!(away.len() == 1 && away[0].contains("identity provider"), "{away:?}");
    }
}
