//! The daemon's permissions at a scope, as ARM reports them. Wildcards are evaluated here by ARM's rules.

use serde::Deserialize;
use url::Url;

use super::Azure;
use super::facts::subscription_id;
use super::path;
use super::read::failed;
use super::wire::{BorrowedText, ListPage, some};
use crate::model::ids::is_name;
use crate::model::journal::Refusal;
use crate::observe::ReadError;
use crate::pace::PacedOperation;

/// Maximum number of pages. An identity has a handful of roles at a scope.
const PAGES: usize = 20;

/// The combined permissions of all roles at a scope.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions(Vec<Grant>);

/// One role: its actions and its exclusions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    actions: Vec<Box<str>>,
    not_actions: Vec<Box<str>>,
}

impl Permissions {
    /// Whether some role allows the action. One role's exclusions do not restrict another role.
    pub fn allow(&self, action: &str) -> bool {
        let any = |patterns: &[Box<str>]| patterns.iter().any(|pattern| fits(pattern, action));
        self.0.iter().any(|grant| any(&grant.actions) && !any(&grant.not_actions))
    }
}

/// `*` matches any text, including slashes. Case is ignored.
fn fits(pattern: &str, action: &str) -> bool {
    let (pattern, action) = (pattern.to_ascii_lowercase(), action.to_ascii_lowercase());
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == action };
    let Some(mut left) = action.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(tail)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound(deserialize = "'de: 'a"))]
struct Row<'a> {
    actions: Option<Vec<BorrowedText<'a>>>,
    not_actions: Option<Vec<BorrowedText<'a>>>,
}

impl Row<'_> {
    fn grant(&self) -> Grant {
        let texts = |all: &Option<Vec<BorrowedText<'_>>>| {
            all.iter().flatten().map(|text| text.as_ref().into()).collect()
        };
        Grant { actions: texts(&self.actions), not_actions: texts(&self.not_actions) }
    }
}

impl Azure {
    /// The daemon's permissions at a scope: the id of a subscription, a resource group or a resource.
    pub async fn permissions(&self, scope: &str) -> Result<Permissions, ReadError> {
        let strange = |refusal, say: String| failed(refusal, &format!("permissions: {say}"));
        let parts: Vec<&str> = scope.trim_matches('/').split('/').collect();
        let ["subscriptions", subscription, ..] = parts[..] else {
            return Err(strange(Refusal::Invalid, format!("`{scope}` is no scope")));
        };
        if !parts.iter().all(|part| is_name(part)) {
            return Err(strange(Refusal::Invalid, format!("`{scope}` is no scope")));
        }
        let own = ["providers", "Microsoft.Authorization", "permissions"];
        let all: Vec<&str> = parts.iter().copied().chain(own).collect();
        let mut url = path::build(&self.arm.cloud, &all, path::AUTHORIZATION);
        let (charged, mut grants) = (subscription_id(subscription), Vec::new());
        for _ in 0..PAGES {
            let reply = self.get(PacedOperation::ReadOther, &charged, url).await?;
            let page: ListPage<'_, Row<'_>> = ListPage::read(&reply.body)
                .map_err(|why| strange(Refusal::Unclear, why.to_string()))?;
            grants.extend(page.value.iter().map(Row::grant));
            let Some(next) = some(page.next.as_ref()) else { return Ok(Permissions(grants)) };
            url = Url::parse(next)
                .map_err(|_| strange(Refusal::Unclear, "the next page is nowhere".into()))?;
        }
        Err(strange(Refusal::Unclear, "the pages do not end".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(body: &str) -> Permissions {
        let page: ListPage<'_, Row<'_>> = ListPage::read(body.as_bytes()).unwrap();
        Permissions(page.value.iter().map(Row::grant).collect())
    }

    #[test]
    fn wildcards_stand_for_any_text() {
        const DELETE: &str = "Microsoft.Compute/virtualMachineScaleSets/delete/action";
        for fit in [
            "*",
            "*/action",
            "*/delete/action",
            "microsoft.compute/*",
            "Microsoft.Compute/virtualMachineScaleSets/*",
            "Microsoft.Compute/*/delete/action",
            "Microsoft.Compute/virtualMachineScaleSets/*/action",
            "*compute*delete*",
            DELETE,
        ] {
            assert!(fits(fit, DELETE), "{fit}");
        }
        for other in [
            "",
            "*/read",
            "Microsoft.Compute/virtualMachines/*",
            "*/virtualMachineScaleSets/delete",
            "Microsoft.Compute",
            "*/action/delete/*",
            "Microsoft.Compute/virtualMachineScaleSets/delete/action/*",
        ] {
            assert!(!fits(other, DELETE), "{other}");
        }
        assert!(!fits("ab*ba", "aba"), "no letter counts twice");
    }

    #[test]
    fn what_one_role_takes_out_another_may_allow() {
        let both = permissions(
            r#"{"value":[{"actions":["*"],"notActions":["*/write"],"dataActions":null},
                {"actions":["A/b/write"],"unknown":1},{"actions":null,"notActions":["*"]}]}"#,
        );
        assert!(both.allow("A/b/read") && both.allow("a/B/write") && !both.allow("A/c/write"));
        assert!(permissions(r#"{"value":[]}"#).0.is_empty());
        assert!(!permissions(r#"{"value":[{}]}"#).allow("A/b/read"));
    }
}
