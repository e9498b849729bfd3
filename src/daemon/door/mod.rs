//! The daemon as its API sees it: pools from files and documents, with their state from the board and the records.
//!
//! Never here: a route, access control (both belong to the API), a wait for the cloud or for a turn. Requests are
//! already in the store; this module only notifies the loop. Begin with [`Front`]; [`listen`] starts the server.

mod files;
mod oidc;
mod open;
mod refusals;
mod tls;
mod tokens;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

pub use crate::api::http::ListenError;
pub use open::{NoDoor, listen};

use super::board::{FilesStatus, Lead, ProcessStatus};
use super::pool_sources::{ManagedPoolSpec, PoolSource};
use super::run::{DaemonHandle, Ticks};
use crate::api::http::{Backend, PlanContext, PoolOrigin, PoolView, Readiness, TroubleView};
use crate::api::v1::diagnostic::{Code, Diagnostic};
use crate::memory::{AUDIT_LARGE, AuditEntry, Store};
use crate::model::ids::PoolName;
use crate::model::time::{Span, Time};
use refusals::RefusedRequests;

/// The loop shows a pool only between its turns. If that takes longer than this, read the records instead.
const SHOWN_WITHIN: Duration = Duration::from_millis(500);

/// The daemon's state for the API.
#[derive(Debug)]
pub struct Front<S, C> {
    doors: DaemonHandle<S, C>,
    approvals: u32,
    refusals: RefusedRequests,
}

impl<S: Store + Send + Sync + 'static, C: Ticks> Front<S, C> {
    pub fn new(doors: DaemonHandle<S, C>) -> Self {
        Self { doors, approvals: 1, refusals: RefusedRequests::default() }
    }

    /// `approvals`: how many people must request an irreversible action.
    pub fn asking(self, approvals: u32) -> Self {
        Self { approvals, ..self }
    }

    fn refusals(&self) -> RefusedRequests {
        self.refusals.clone()
    }

    fn seen(&self, meant: &ManagedPoolSpec, faults: &[Diagnostic]) -> PoolView {
        let seen = self.doors.board.pool(&meant.policy.name);
        let trouble = seen.as_ref().and_then(|seen| seen.failing.as_ref()).map(|failing| {
            TroubleView { say: failing.say.clone(), since: failing.since, retry: failing.retry }
        });
        let origin = match &meant.source {
            PoolSource::File(path) => PoolOrigin::File(PathBuf::from(&**path)),
            PoolSource::Missing(path) => PoolOrigin::Missing(PathBuf::from(&**path)),
            PoolSource::Applied => PoolOrigin::Api,
        };
        let report = seen.as_ref().and_then(|seen| seen.report.clone());
        let ignored = match &origin {
            PoolOrigin::File(path) => first_fault(faults, path),
            PoolOrigin::Missing(_) | PoolOrigin::Api => None,
        };
        PoolView { policy: meant.policy.clone(), origin, report, trouble, ignored }
    }

    /// `None` also if this process stops leading in the meantime: then nothing answers.
    async fn shown(&self, name: &PoolName) -> Option<PlanContext> {
        let mut changes = self.doors.board.subscribe();
        let mut scene = std::pin::pin!(self.doors.bell.scene(name));
        while self.doors.board.house().ready {
            tokio::select! {
                scene = &mut scene => return scene,
                changed = changes.changed() => changed.ok()?,
            }
        }
        None
    }
}

impl<S: Store + Send + Sync + 'static, C: Ticks> Backend for Front<S, C> {
    fn now(&self) -> Time {
        self.doors.clock.now()
    }

    fn pools(&self) -> Vec<PoolView> {
        let faults = self.doors.board.house().faults;
        self.doors.meant().iter().map(|meant| self.seen(meant, &faults)).collect()
    }

    fn pool(&self, name: &PoolName) -> Option<PoolView> {
        let pools = self.doors.meant();
        let found = pools.binary_search_by(|meant| meant.policy.name.cmp(name)).ok()?;
        let meant = pools.get(found)?;
        Some(self.seen(meant, &self.doors.board.house().faults))
    }

    async fn scene(&self, name: &PoolName) -> Option<PlanContext> {
        if let Ok(shown) = tokio::time::timeout(SHOWN_WITHIN, self.shown(name)).await {
            return shown;
        }
        self.doors.recorded(name).await
    }

    fn wake(&self, name: &PoolName) {
        // A process that does not lead runs no turns; the next leader starts with a turn of every pool.
        if self.doors.board.house().ready && !self.doors.bell.knock(name) {
            let (bell, name) = (self.doors.bell.clone(), name.clone());
            tokio::spawn(async move { bell.ring(&name).await });
        }
    }

    async fn reload(&self, _: &PoolName) -> bool {
        self.doors.take_up(None).await
    }

    fn refused(&self) -> Vec<(PoolName, Box<str>)> {
        self.doors.refused().to_vec()
    }

    fn faults(&self) -> Vec<Diagnostic> {
        self.doors.board.house().faults
    }

    fn is_unnamed(&self, name: &PoolName) -> bool {
        self.doors.unnamed().contains(name)
    }

    async fn let_go(&self, name: &PoolName) -> bool {
        self.doors.take_up(Some(name.clone())).await
    }

    fn readiness(&self) -> Readiness {
        let house = self.doors.board.house();
        Readiness { ready: house.is_ready(), say: waits_for(&house).into() }
    }

    fn troubles(&self) -> Vec<String> {
        let mut troubles = troubles(&self.doors.board.house(), self.now());
        let refused = self.doors.refused().len();
        if refused > 0 {
            let say = "documents of applied pools are refused; `poolkeeper get -o json` lists them";
            troubles.push(format!("{refused} {say}"));
        }
        troubles
    }

    fn answered(&self, status: u16) {
        self.doors.counters().answered(status);
    }

    fn approvals(&self) -> u32 {
        self.approvals
    }

    fn audited(&self, line: &AuditEntry) {
        crate::daemon::run::audited(line);
    }

    fn expired(&self, name: &str, at: Time) {
        tracing::warn!(name, %at, "an expired token was presented; `poolkeeper create-token` creates another");
    }

    fn not_admitted(&self, client: IpAddr, name: Option<&str>, code: &'static str) {
        self.doors.counters().not_admitted(code);
        self.refusals.add(client, name, code, self.now());
    }

    fn metrics(&self) -> String {
        self.doors.metrics()
    }

    fn news(&self) -> watch::Receiver<u64> {
        self.doors.board.subscribe()
    }
}

/// Without the file name, which is shown next to it.
fn first_fault(faults: &[Diagnostic], file: &Path) -> Option<Box<str>> {
    let is_of = |fault: &&Diagnostic| fault.file.as_deref().map(Path::new) == Some(file);
    let fault = faults.iter().find(is_of)?;
    Some(Diagnostic { file: None, ..fault.clone() }.to_string().into())
}

fn waits_for(house: &ProcessStatus) -> String {
    match &house.lead {
        _ if house.stopping => "stopping".to_owned(),
        _ if house.store.is_some() => {
            let why = house.store.as_deref().unwrap_or_default();
            format!("the store does not keep what is written: {why}")
        }
        _ if house.ready => "turns are made".to_owned(),
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

fn ends_soon(ends: Time, now: Time) -> bool {
    ends.since(now) < SOON
}

fn troubles(house: &ProcessStatus, now: Time) -> Vec<String> {
    let mut troubles = Vec::new();
    if house.store.is_some() {
        troubles
            .push("the store does not keep what is written; /ready and the log say why".to_owned());
    }
    if let Some(at) = house.restored.filter(|at| now.since(*at) < RESTORED_SHOWN) {
        troubles.push(format!(
            "the store was restored from a copy at {at}; what the copy does not know is read from Azure, and the audit says more"
        ));
    }
    if let Some(FilesStatus { looked, hangs: true }) = house.files {
        let since = looked.map_or("the start".to_owned(), |at| at.to_string());
        troubles.push(format!(
            "pool files have not been scanned since {since}: their disk does not respond"
        ));
    }
    if house.faults.iter().any(|fault| fault.code == Code::Vanished) {
        troubles.push(
            "the files of many pools are gone; none of these pools is released until a person says more"
                .to_owned(),
        );
    }
    if let Some(lines) = house.audit.filter(|lines| *lines > AUDIT_LARGE) {
        troubles.push(format!(
            "the audit has {lines} lines younger than audit.keep and keeps growing: find out who sends so many requests, or lower audit.keep"
        ));
    }
    let certificate = house.certificate.as_ref();
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
    if house.tokens_refused {
        troubles.push("the tokens file cannot be used; the log says why".to_owned());
    }
    if house.tokens.values().any(|ends| ends_soon(*ends, now)) {
        troubles.push("tokens expire soon or have expired; the log names them".to_owned());
    }
    if house.keys_fail {
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
