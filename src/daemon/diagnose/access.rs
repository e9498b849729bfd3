//! Checks that all pools share: connections to both endpoints, clocks, identity, token.

use super::check::{Check, CheckOutcome};
use crate::adapters::azure::auth::{
    AuthError, AuthFailureReason, CredentialAttempt, TokenSource, Way,
};
use crate::adapters::azure::{ProbeAnswer, reach};
use crate::ambient::Clock;
use crate::daemon::CloudReader;
use crate::daemon::cloud::CloudAccess;
use crate::daemon::trouble::{self, Trouble};
use crate::model::time::{Span, Time};

/// A larger clock difference makes waits wrong, and tokens and certificates invalid.
// 5 min: what Entra allows for an assertion. 30 s: tokens count as expired this long before their end.
const CLOCK_BREAKS: Span = Span::minutes(5);
const CLOCK_DRIFTS: Span = Span::seconds(30);

impl CloudReader {
    /// The checks, and whether there is a token.
    pub(super) async fn examine_access(&self) -> (Vec<Check>, bool) {
        let CloudAccess { cloud, http, tokens, clock, .. } = &self.access;
        let mut checks = vec![self.cloud()];
        let authority = reach(http, cloud.authority(), clock).await;
        checks.push(self.road("authority", &trouble::authority(cloud), authority));
        let mut url = cloud.resource_manager().clone();
        // Every cloud answers this without a token.
        url.set_path("metadata/endpoints");
        url.set_query(Some("api-version=2022-09-01"));
        let arm = reach(http, &url, clock).await;
        checks.push(self.road("resourceManager", &trouble::arm(cloud), arm));
        checks.push(clocks(arm.ok().or(authority.ok())));
        let token = tokens.token().await;
        match &token {
            Ok(token) => {
                let way = tokens.way().map_or("a token source", Way::name);
                checks.push(Check::fine("credential", format!("{way} works")));
                let scope = cloud.scope();
                let audience = scope.strip_suffix("/.default").unwrap_or(&scope);
                checks.push(lives(audience, token.expires(), clock.now()));
            }
            Err(failed) => checks.extend(credentials(failed)),
        }
        (checks, token.is_ok())
    }

    fn cloud(&self) -> Check {
        let CloudAccess { cloud, .. } = &self.access;
        let by = self.access.proxied().map(|proxy| format!(", by the proxy {proxy}"));
        let say = format!(
            "tokens from {}, resource manager at {}{}",
            cloud.authority().origin().ascii_serialization(),
            cloud.origin().as_str(),
            by.unwrap_or_default()
        );
        Check::fine("cloud", say)
    }

    fn road(
        &self,
        name: &'static str,
        what: &str,
        reached: Result<ProbeAnswer, crate::adapters::azure::ProbeError>,
    ) -> Check {
        match reached {
            Ok(ProbeAnswer { status: 502..=504, .. }) => Check::finding(
                name,
                format!("{what} was answered by a proxy or host that cannot reach it"),
            )
            .next("check the proxy or gateway on the way"),
            Ok(_) => Check::fine(name, format!("{what} answers")),
            Err(why) => {
                let Trouble { say, next, .. } =
                    Trouble::unreached(what, why, self.access.proxied());
                Check::finding(name, say).next(next)
            }
        }
    }
}

fn clocks(answered: Option<ProbeAnswer>) -> Check {
    let Some(ahead_ms) = answered.and_then(|answered| answered.ahead_ms) else {
        return Check::unknown(
            "clock",
            "no response had a date, so the clocks could not be compared",
        );
    };
    let apart = Span::from_millis(ahead_ms.abs());
    let seconds = apart.millis() / 1_000;
    let way = if ahead_ms < 0 { "ahead of" } else { "behind" };
    let say = format!("this machine's clock is {seconds} s {way} that of the cloud");
    let next = "let this machine keep its time by NTP";
    if apart > CLOCK_BREAKS {
        Check::finding("clock", format!("{say}: tokens and assertions are invalid by that"))
            .next(next)
    } else if apart > CLOCK_DRIFTS {
        Check::finding("clock", format!("{say}: what the cloud tells of times is off by that"))
            .next(next)
    } else {
        Check::fine("clock", "this machine's clock agrees with that of the cloud")
    }
}

fn lives(audience: &str, until: Time, now: Time) -> Check {
    let minutes = until.since(now).millis() / 60_000;
    Check::fine("token", format!("obtained for {audience}, lives for {minutes} min"))
}

/// One check for each credential source that was tried.
fn credentials(failed: &AuthError) -> Vec<Check> {
    const NAME: &str = "credential";
    let alone = failed.tried.len() == 1;
    let tried = failed.tried.iter().map(|tried| {
        let outcome = if alone { CheckOutcome::Finding } else { CheckOutcome::Note };
        Check::new(NAME, outcome, tried.to_string()).next(remedy(tried))
    });
    let mut checks: Vec<Check> = tried.collect();
    if !alone {
        let say = format!("none of {} ways works; one is enough", failed.tried.len());
        let next = "set up the way you mean, and choose it with --auth";
        checks.push(Check::finding(NAME, say).next(next));
    }
    checks.push(Check::unknown("token", "no token, because no credential works"));
    checks
}

fn remedy(tried: &CredentialAttempt) -> &'static str {
    match (&tried.why, tried.way) {
        (AuthFailureReason::Unanswered(_) | AuthFailureReason::Late(_), Way::AzureCli) => {
            "run `az account get-access-token` to see why"
        }
        (_, Way::ManagedIdentity) => {
            "on a VM or host of Azure: assign it an identity; name one of several with --client-id or --identity"
        }
        (AuthFailureReason::Unanswered(_) | AuthFailureReason::Late(_), _) => {
            "see what is said of the authority above"
        }
        (AuthFailureReason::Refused { .. }, _) => {
            "check that tenant, application and what proves it belong together"
        }
        (_, Way::WorkloadIdentity) => {
            "on Kubernetes: label the pod azure.workload.identity/use=true, so that its token file and ids are set"
        }
        (_, Way::ClientSecret) => {
            "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET_FILE (or AZURE_CLIENT_SECRET)"
        }
        (_, Way::ClientCertificate) => {
            "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_CERTIFICATE_PATH (PEM, with its key)"
        }
        (_, Way::AzureCli) => "install az and run `az login`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_reason_and_one_finding_is_enough() {
        let tried = Way::ALL.into_iter().map(|way| CredentialAttempt {
            way,
            why: AuthFailureReason::NotSet("AZURE_X"),
            wait: None,
        });
        let all = AuthError { tried: tried.collect() };
        let checks = credentials(&all);
        assert_eq!(checks.iter().filter(|check| check.outcome == CheckOutcome::Finding).count(), 1);
        for way in Way::ALL {
            let of = checks.iter().find(|check| check.say.starts_with(way.name())).unwrap();
            assert!(of.say.contains("AZURE_X is not set") && of.next.is_some(), "{of:?}");
        }
        let late = CredentialAttempt {
            way: Way::ClientSecret,
            why: AuthFailureReason::Late(10),
            wait: None,
        };
        let checks = credentials(&AuthError { tried: vec![late] });
        assert_eq!(checks[0].outcome, CheckOutcome::Finding);
        assert!(checks[0].next.as_ref().unwrap().contains("authority above"));
    }

    #[test]
    fn clocks_may_differ_a_little() {
        let of = |seconds: i64| {
            let ahead_ms = Some(seconds * 1_000);
            clocks(Some(ProbeAnswer { status: 200, ahead_ms }))
        };
        let outcomes: Vec<CheckOutcome> =
            [0, 29, -29, 31, -299, 301, -301].into_iter().map(|s| of(s).outcome).collect();
        use CheckOutcome::{Finding, Fine};
        assert_eq!(outcomes, [Fine, Fine, Fine, Finding, Finding, Finding, Finding]);
        assert!(of(-400).say.contains("400 s ahead of") && of(400).say.contains("400 s behind"));
        assert_eq!(clocks(None).outcome, CheckOutcome::Unknown);
    }
}
