//! What we may do at a scope, as ARM tells it of ourselves. Wildcards are evaluated here, as ARM does it.

use serde::Deserialize;
use url::Url;

use super::Azure;
use super::path;
use super::read::failed;
use super::throttle::Class;
use super::wire::{Page, Text, some};
use crate::model::ids::is_name;
use crate::model::journal::Refusal;
use crate::observe::ReadFailed;

/// Pages of one answer: an identity has a handful of roles at a scope.
const PAGES: usize = 20;

/// What the roles that hold at a scope allow together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions(Vec<Grant>);

/// Of one role: actions, and what is taken out of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    actions: Vec<Box<str>>,
    not_actions: Vec<Box<str>>,
}

impl Permissions {
    /// Whether some role allows it. What one role takes out another may allow.
    pub fn allow(&self, action: &str) -> bool {
        let any = |patterns: &[Box<str>]| patterns.iter().any(|pattern| fits(pattern, action));
        self.0.iter().any(|grant| any(&grant.actions) && !any(&grant.not_actions))
    }

    /// No role at all holds there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `*` stands for any text, also over slashes; letters count the same in both cases.
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
#[serde(rename_all = "camelCase", default)]
struct Row<'a> {
    #[serde(borrow)]
    actions: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    not_actions: Option<Vec<Text<'a>>>,
}

impl Row<'_> {
    fn grant(&self) -> Grant {
        let texts = |all: &Option<Vec<Text<'_>>>| {
            all.iter().flatten().map(|text| text.as_ref().into()).collect()
        };
        Grant { actions: texts(&self.actions), not_actions: texts(&self.not_actions) }
    }
}

impl Azure {
    /// What we may do at this scope: a subscription, a resource group or a resource, by its id.
    pub async fn permissions(&self, scope: &str) -> Result<Permissions, ReadFailed> {
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
        let mut grants = Vec::new();
        for _ in 0..PAGES {
            let reply = self.get(Class::ReadPermissions, subscription, None, url).await?;
            let page: Page<'_, Row<'_>> = Page::read(&reply.body)
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
        let page: Page<'_, Row<'_>> = Page::read(body.as_bytes()).unwrap();
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
        assert!(permissions(r#"{"value":[]}"#).is_empty());
        assert!(!permissions(r#"{"value":[{}]}"#).allow("A/b/read"));
    }
}
