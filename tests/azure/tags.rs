//! The owner tag: what is sent for it, and how without the right to write tags.

use poolkeeper::act::CallOutcome;
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::ids::StoreId;
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::{CHANGED_SINCE_READ, Refusal};
use poolkeeper::model::owner::{OWNER_TAG, OwnerTag, OwnerWrite};
use poolkeeper::model::time::Span;
use serde_json::{Value, json};

use crate::azure::kit::{Changes, Kit, SET, START, Sheet, expect, kit, set, usual};
use crate::azure::server::{Heard, Says};

const OURS: &str = "aa since 2026-03-01T12:00:00Z";
const THEIRS: &str = "bb since 2026-02-01T00:00:00Z";

fn tag() -> OwnerTag {
    OwnerTag { store: StoreId::new("aa"), since: START }
}

fn put(over: Option<&str>) -> OwnerWrite {
    OwnerWrite::Put { tag: tag(), over: over.map(Into::into) }
}

/// A set with this tag and one of its people; `may`: the role allows to write tags alone.
async fn tagged(value: Option<&'static str>, may: bool) -> Kit {
    kit(move |heard: &Heard| match () {
        () if heard.target.contains("Microsoft.Resources/tags") && !may => {
            Says::fault(403, "AuthorizationFailed", "does not have authorization")
        }
        () if heard.target.contains("Microsoft.Resources/tags") => Says::json(&json!({})),
        () if heard.verb == "PATCH" => Says::json(&set()),
        () if heard.target.contains("userData") => {
            let mut shown = set();
            if let Some(value) = value {
                shown["tags"]["PoolKeeper-Owner"] = json!(value);
            }
            Says::json(&shown)
        }
        () => usual(heard),
    })
    .await
}

fn writes(kit: &Kit) -> Vec<Heard> {
    kit.server.heard().into_iter().filter(|heard| heard.verb != "GET").collect()
}

async fn sends(kit: &Kit, write: &OwnerWrite) -> CallOutcome {
    kit.azure.tag_owner(&Sheet::new().order(), write).await
}

#[tokio::test]
async fn the_tag_is_merged_and_taken_away_alone() {
    for (value, write, operation) in [
        (None, put(None), "Merge"),
        (Some(THEIRS), put(Some(THEIRS)), "Merge"),
        (Some(OURS), OwnerWrite::TakeAway(tag()), "Delete"),
    ] {
        let kit = tagged(value, true).await;
        assert_eq!(sends(&kit, &write).await, CallOutcome::Done);
        let [sent] = &writes(&kit)[..] else { panic!("one write") };
        let at = format!("{SET}/providers/Microsoft.Resources/tags/default?api-version=2021-04-01");
        assert_eq!((sent.verb.as_str(), &sent.target), ("PATCH", &at));
        let tags = json!({OWNER_TAG: OURS});
        assert_eq!(sent.json(), json!({"operation": operation, "properties": {"tags": tags}}));
        assert_eq!(sent.header("if-match"), None);
    }
}

#[tokio::test]
async fn without_the_right_all_tags_go_along_under_the_version_that_was_read() {
    for (value, write, tags) in [
        (None, put(None), json!({"team": "web", OWNER_TAG: OURS})),
        (Some(THEIRS), put(Some(THEIRS)), json!({"team": "web", OWNER_TAG: OURS})),
        (Some(OURS), OwnerWrite::TakeAway(tag()), json!({"team": "web"})),
    ] {
        let kit = tagged(value, false).await;
        assert_eq!(sends(&kit, &write).await, CallOutcome::Done);
        let [alone, whole] = &writes(&kit)[..] else { panic!("two writes") };
        assert!(alone.target.contains("Microsoft.Resources/tags/default"));
        assert_eq!(whole.target, format!("{SET}?api-version=2024-07-01"));
        assert_eq!(whole.json(), json!({"tags": tags}));
        assert_eq!(whole.header("if-match"), Some("\"7\""));
    }
}

#[tokio::test]
async fn nothing_is_written_over_what_was_not_shown() {
    for (value, write) in [
        (Some(THEIRS), put(None)),
        (Some("cc since 2026-02-01T00:00:00Z"), put(Some(THEIRS))),
        (None, put(Some(THEIRS))),
    ] {
        let kit = tagged(value, true).await;
        let CallOutcome::Refused(no) = sends(&kit, &write).await else { panic!("{write:?}") };
        let code = no.code.as_deref();
        assert_eq!((no.refusal, code), (Refusal::Conflict, Some(CHANGED_SINCE_READ)));
        assert_eq!(writes(&kit).len(), 0);
    }
    // What is done already is not done again, and another owner's tag is not ours to take away.
    for (value, write) in [
        (Some(OURS), put(None)),
        (Some(THEIRS), OwnerWrite::TakeAway(tag())),
        (None, OwnerWrite::TakeAway(tag())),
    ] {
        let kit = tagged(value, true).await;
        assert_eq!(sends(&kit, &write).await, CallOutcome::Done);
        assert_eq!(writes(&kit).len(), 0);
    }
    let kit = tagged(None, true).await;
    kit.clock.pass(Span::minutes(2));
    assert_eq!(sends(&kit, &put(None)).await, CallOutcome::NotSent);
    assert_eq!(kit.server.heard().len(), 0);
}

/// It says nothing of machines, so no revision counts it; and a write of other tags keeps it.
#[tokio::test]
async fn the_tag_counts_for_no_revision_and_a_write_of_the_model_keeps_it() {
    let (bare, owned) = (tagged(None, true).await, tagged(Some(OURS), true).await);
    let seen = owned.look().await.unwrap().set;
    assert_eq!(seen.owner(), Some(OURS));
    assert_eq!(bare.look().await.unwrap().set.revision, seen.revision);
    let tags = [("stage".into(), "two".into())].into();
    let fields = ModelFields { tags, ..ModelFields::default() };
    let expect = expect(&seen.revision, Some("\"7\""));
    let order = Sheet::new();
    let _ = owned.azure.update_model(&order.order(), &fields, WriteScope::Image, &expect).await;
    let sent: Value = writes(&owned)[0].json();
    assert_eq!(sent["tags"], json!({"team": "web", "stage": "two", "PoolKeeper-Owner": OURS}));
}
