//! Changes: exactly what is sent, and what each answer becomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use poolkeeper::act::{CallOutcome, ChangeCloud, Poll};
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::ids::{Etag, InstanceId, Revision};
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::journal::{CHANGED_SINCE_READ, Refusal};
use poolkeeper::model::time::Span;
use serde_json::{Value, json};

use crate::azure::kit::{Changes, Kit, SET, START, Sheet, expect, kit, set, set_id, target, usual};
use crate::azure::server::{Heard, Says};

/// The answer to a write of the second pattern.
fn accepted(heard: &Heard) -> Says {
    let host = heard.header("host").unwrap();
    let at =
        |tail: &str| format!("http://{host}/subscriptions/sub/operations/o?p=1{tail}&s=SIGNATURE");
    Says::status(202, "")
        .with("Azure-AsyncOperation", &at(""))
        .with("Location", &at("&monitor=true"))
}

fn writes(heard: &Heard) -> Says {
    if heard.verb == "GET" { usual(heard) } else { accepted(heard) }
}

async fn revision(kit: &Kit) -> Revision {
    kit.look().await.unwrap().set.revision
}

fn last(kit: &Kit) -> Heard {
    kit.server.heard().pop().unwrap()
}

fn refusal(answer: &CallOutcome) -> (Refusal, Option<String>) {
    let CallOutcome::Refused(no) = answer else { panic!("{answer:?}") };
    (no.refusal, no.code.as_deref().map(str::to_owned))
}

#[tokio::test]
async fn a_raise_writes_the_number_and_the_size_it_read() {
    let kit = kit(writes).await;
    let revision = revision(&kit).await;
    let answer =
        kit.azure.raise(&Sheet::new().order(), 2, 5, &expect(&revision, Some("\"7\""))).await;
    assert!(matches!(answer, CallOutcome::Accepted(Some(_))), "{answer:?}");
    let sent = last(&kit);
    assert_eq!(
        (sent.verb.as_str(), sent.target),
        ("PATCH", format!("{SET}?api-version=2024-07-01"))
    );
    assert_eq!(
        serde_json::from_str::<Value>(&sent.body).unwrap(),
        json!({"sku": {"name": "Standard_D2s_v3", "capacity": 5}})
    );
    assert!(sent.headers.contains(&("if-match".into(), "\"7\"".into())));
    assert!(sent.headers.contains(&("content-type".into(), "application/json".into())));
    assert_eq!(kit.server.count("GET", "userData"), 2, "and once more right before the write");
    // A number that moved meanwhile is not written over, whatever the version says.
    let answer =
        kit.azure.raise(&Sheet::new().order(), 3, 5, &expect(&revision, Some("\"7\""))).await;
    assert_eq!(refusal(&answer), (Refusal::Conflict, Some("ChangedSinceRead".to_owned())));
    assert_eq!(kit.server.count("PATCH", ""), 1);
}

#[tokio::test]
async fn without_a_version_the_set_is_read_right_before() {
    let kit = kit(writes).await;
    let now = revision(&kit).await;
    let sheet = Sheet::new();
    let answer = kit.azure.raise(&sheet.order(), 2, 5, &expect(&now, None)).await;
    assert!(matches!(answer, CallOutcome::Accepted(Some(_))));
    assert!(last(&kit).header("if-match").is_none());
    // Somebody wrote another number, or another model.
    let changed = Some("ChangedSinceRead".to_owned());
    let answer = kit.azure.raise(&sheet.order(), 3, 5, &expect(&now, None)).await;
    assert_eq!(refusal(&answer), (Refusal::Conflict, changed.clone()));
    let other = expect(&Revision::new("v1:a.b"), None);
    let answer = kit.azure.raise(&sheet.order(), 2, 5, &other).await;
    assert_eq!(refusal(&answer), (Refusal::Conflict, changed.clone()));
    let answer = kit
        .azure
        .update_model(&sheet.order(), &ModelFields::default(), WriteScope::Image, &other)
        .await;
    assert_eq!(refusal(&answer), (Refusal::Conflict, changed));
    assert_eq!(kit.server.count("PATCH", ""), 1);
    kit.clock.pass(Span::seconds(61));
    assert_eq!(
        kit.azure.raise(&sheet.order(), 2, 5, &expect(&now, None)).await,
        CallOutcome::NotSent
    );
    assert_eq!(kit.server.count("PATCH", ""), 1);
}

#[tokio::test]
async fn a_set_that_cannot_be_read_is_not_written() {
    for (says, expected) in [
        (Says::fault(429, "SubscriptionRequestsThrottled", "m"), Some(Refusal::Throttled)),
        (Says::fault(403, "AuthorizationFailed", "m"), Some(Refusal::Forbidden)),
        (Says::fault(500, "InternalServerError", "m"), None),
        (Says::Nothing, None),
    ] {
        let kit = kit(move |_| says.clone()).await;
        let answer =
            kit.azure.raise(&Sheet::new().order(), 2, 5, &expect(&Revision::new("r"), None)).await;
        match expected {
            Some(expected) => assert_eq!(refusal(&answer).0, expected),
            None => assert_eq!(answer, CallOutcome::NotSent),
        }
        assert_eq!(kit.server.count("PATCH", ""), 0);
    }
}

#[tokio::test]
async fn a_batch_names_each_machine_once_and_never_all() {
    let kit = kit(writes).await;
    revision(&kit).await;
    let sheet = Sheet::new();
    let batch = [target("10"), target("3"), target("10")];
    assert!(matches!(
        kit.azure.delete(&sheet.order(), &batch, false).await,
        CallOutcome::Accepted(Some(_))
    ));
    let sent = last(&kit);
    assert_eq!(
        (sent.verb.as_str(), sent.target.as_str()),
        ("POST", &*format!("{SET}/delete?api-version=2024-07-01"))
    );
    assert_eq!(sent.json(), json!({"instanceIds": ["10", "3"]}));
    let _ = kit.azure.delete(&sheet.order(), &batch, true).await;
    assert!(last(&kit).target.ends_with("/delete?api-version=2024-07-01&forceDeletion=true"));
    let before = kit.server.heard().len();
    assert_eq!(kit.azure.delete(&sheet.order(), &[], false).await, CallOutcome::Done);
    for strange in ["*", "", "0/../1", "web_1"] {
        let batch = [target("1"), target(strange)];
        let answer = kit.azure.delete(&sheet.order(), &batch, false).await;
        assert_eq!(
            refusal(&answer),
            (Refusal::Invalid, Some("InvalidInstanceId".into())),
            "{strange}"
        );
    }
    assert_eq!(kit.server.heard().len(), before);
}

#[tokio::test]
async fn what_may_not_be_forced_is_deleted_without_force() {
    const CODE: &str = "OperationNotAllowedOnResourceThatManagesUpdatesWithMaintenanceControl";
    let kit = kit(|heard| match heard.target.contains("forceDeletion") {
        true => {
            let detail = json!({"code": CODE, "message": "Force deletion is not allowed."});
            let error =
                json!({"code": "OperationNotAllowed", "message": "No.", "details": [detail]});
            Says::status(409, &json!({ "error": error }).to_string())
        }
        false => writes(heard),
    })
    .await;
    let answer = kit.azure.delete(&Sheet::new().order(), &[target("1")], true).await;
    assert!(matches!(answer, CallOutcome::Accepted(Some(_))), "{answer:?}");
    let heard = kit.server.heard();
    let posts: Vec<_> = heard.iter().filter(|heard| heard.verb == "POST").collect();
    let [forced, plain] = &posts[..] else { panic!("{posts:?}") };
    assert!(forced.target.ends_with("forceDeletion=true") && !plain.target.contains("force"));
    assert_eq!(forced.body, plain.body);
}

#[tokio::test]
async fn even_a_set_that_was_never_seen_is_never_asked_for_all() {
    let kit = kit(writes).await;
    let answer = kit.azure.delete(&Sheet::new().order(), &[target("*")], true).await;
    assert_eq!(refusal(&answer).0, Refusal::Invalid);
    assert!(kit.server.heard().is_empty());
}

#[tokio::test]
async fn each_action_has_its_own_door() {
    let kit = kit(writes).await;
    revision(&kit).await;
    let (sheet, one) = (Sheet::new(), [target("1")]);
    let order = sheet.order();
    let _ = kit.azure.restore(&order, &one).await;
    assert!(last(&kit).is("POST", &format!("{SET}/start?")));
    assert_eq!(last(&kit).json(), json!({"instanceIds": ["1"]}));
    let verbs: Vec<String> = kit.server.heard().into_iter().map(|heard| heard.verb).collect();
    assert!(!verbs.contains(&"DELETE".to_owned()), "nothing here deletes a resource");
}

#[tokio::test]
async fn a_model_write_carries_only_what_the_pool_owns() {
    let (of_gallery, kit) = (kit(|heard| gallery_set(heard, writes)).await, kit(writes).await);
    let revision = revision(&kit).await;
    let of_gallery_now = of_gallery.look().await.unwrap().set.revision;
    let write_to = async |kit: &Kit, revision: &Revision, fields: ModelFields| {
        let expect = expect(revision, Some("\"7\""));
        let answer = kit
            .azure
            .update_model(&Sheet::new().order(), &fields, WriteScope::Image, &expect)
            .await;
        assert!(matches!(answer, CallOutcome::Accepted(Some(_))), "{answer:?}");
        last(kit).json()
    };
    let write = async |fields: ModelFields| write_to(&kit, &revision, fields).await;
    let by_id = async |fields: ModelFields| write_to(&of_gallery, &of_gallery_now, fields).await;
    let image = |text: &str| ModelFields { image: Some(text.into()), ..ModelFields::default() };
    let reference = |image: Value| json!({"properties": {"virtualMachineProfile": {"storageProfile": {"imageReference": image}}}});
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/G/images/I/versions/1.2.3";
    assert_eq!(by_id(image(id)).await, reference(json!({"id": id})));
    let urn = json!({"publisher": "p", "offer": "o", "sku": "s", "version": "2.0"});
    assert_eq!(write(image("p:o:s:2.0")).await, reference(urn));
    let shared = "/SharedGalleries/u/Images/I/Versions/1.0.0";
    assert_eq!(by_id(image(shared)).await, reference(json!({"sharedGalleryImageId": shared})));
    let community = "/CommunityGalleries/u/Images/I/Versions/1.0.0";
    assert_eq!(
        by_id(image(community)).await,
        reference(json!({"communityGalleryImageId": community}))
    );
    let size = ModelFields { vm_size: Some("Standard_D4s_v3".into()), ..ModelFields::default() };
    let both = json!({"sku": {"name": "Standard_D4s_v3", "capacity": 2}});
    assert_eq!(write(size).await, both, "with the number of this moment");
    let tags = [("Team".into(), "other".into()), ("new".into(), "x".into())].into();
    let tagged = write(ModelFields { tags, ..ModelFields::default() }).await;
    assert_eq!(tagged, json!({"tags": {"Team": "other", "new": "x"}}));
    let tags = [("new".into(), "x".into())].into();
    let tagged = write(ModelFields { tags, ..ModelFields::default() }).await;
    assert_eq!(tagged, json!({"tags": {"team": "web", "new": "x"}}), "the others' tags go along");

    let before = kit.server.heard().len();
    for strange in ["", "ubuntu", "a:b:c", "a:b:c:d:e", "a:b:c:d e", "https://x/y"] {
        let expect = expect(&revision, Some("\"7\""));
        let answer = kit
            .azure
            .update_model(&Sheet::new().order(), &image(strange), WriteScope::Image, &expect)
            .await;
        assert_eq!(refusal(&answer).0, Refusal::Invalid, "{strange}");
    }
    assert_eq!(kit.server.heard().len(), before);
}

const GALLERY: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/G/images/I/versions/1.0.0";

/// A set whose image is of a gallery; all else is answered as by `others`.
fn gallery_set(heard: &Heard, others: fn(&Heard) -> Says) -> Says {
    if heard.verb != "GET" || !heard.target.contains("userData") {
        return others(heard);
    }
    let mut shown = set();
    shown["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"] =
        json!({"id": GALLERY});
    Says::json(&shown)
}

/// A write of the size carries the number: one that moved since the listing would be taken back by it.
#[tokio::test]
async fn a_size_is_not_written_over_a_number_that_moved() {
    let capacity = Arc::new(AtomicU32::new(2));
    let now = Arc::clone(&capacity);
    let kit = kit(move |heard| {
        if heard.verb != "GET" || !heard.target.contains("userData") {
            return writes(heard);
        }
        let mut shown = set();
        shown["sku"]["capacity"] = json!(now.load(Ordering::SeqCst));
        Says::json(&shown)
    })
    .await;
    let revision = revision(&kit).await;
    capacity.store(4, Ordering::SeqCst);
    let fields = ModelFields { vm_size: Some("Standard_D4s_v3".into()), ..ModelFields::default() };
    let expect = expect(&revision, Some("\"7\""));
    let answer =
        kit.azure.update_model(&Sheet::new().order(), &fields, WriteScope::Image, &expect).await;
    let code = Some(CHANGED_SINCE_READ.to_owned());
    assert_eq!(refusal(&answer), (Refusal::Conflict, code));
    assert_eq!(kit.server.count("PATCH", ""), 0);
}

/// Azure refuses each of these for good, so none of them is sent.
#[tokio::test]
async fn an_image_that_the_set_can_never_take_is_not_sent() {
    let (of_gallery, of_market) =
        (kit(|heard| gallery_set(heard, writes)).await, kit(writes).await);
    for (kit, image, code, says) in [
        (&of_gallery, "p:o:s:2.0", "ImageTypeChangeNotAllowed", "gallery"),
        (&of_market, GALLERY, "ImageTypeChangeNotAllowed", "marketplace"),
        (&of_market, "p:other:s:2.0", "PropertyChangeNotAllowed", "offer"),
        (&of_market, "other:o:s:2.0", "PropertyChangeNotAllowed", "publisher"),
    ] {
        let revision = kit.look().await.unwrap().set.revision;
        let fields = ModelFields { image: Some(image.into()), ..ModelFields::default() };
        let expect = expect(&revision, Some("\"7\""));
        let answer = kit
            .azure
            .update_model(&Sheet::new().order(), &fields, WriteScope::Image, &expect)
            .await;
        let CallOutcome::Refused(no) = answer else { panic!("{image}: {answer:?}") };
        assert_eq!((no.refusal, no.code.as_deref()), (Refusal::Invalid, Some(code)), "{image}");
        assert!(no.message.as_deref().unwrap().contains(says), "{image}: {no:?}");
        assert_eq!(kit.server.count("PATCH", ""), 0, "{image}");
    }
}

#[tokio::test]
async fn what_is_read_back_is_what_was_written() {
    // The cloud gives ids back in a case of its own.
    let wanted = "/subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/galleries/G/images/I/versions/1.2.3";
    let mut shown = set();
    shown["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"] =
        json!({"id": wanted.replace("resourceGroups/rg", "resourceGroups/RG")});
    let kit = kit(move |heard| match heard.target.contains("userData") {
        true => Says::json(&shown),
        false => usual(heard),
    });
    let model = kit.await.look().await.unwrap().set.model.unwrap();
    let fields = ModelFields { image: Some(wanted.into()), ..ModelFields::default() };
    assert!(model.carries(&fields));
}

#[tokio::test]
async fn a_lock_on_one_machine_of_a_batch_names_that_machine() {
    let kit = kit(|heard| {
        let message = format!(
            "The scope '{SET}' cannot perform delete operation because following scope(s) are locked: \
             '{SET}/virtualMachines/1'. Please remove the lock and try again."
        );
        if heard.verb == "GET" { usual(heard) } else { Says::fault(409, "ScopeLocked", &message) }
    })
    .await;
    let batch = [target("0"), target("1")];
    let answer = kit.azure.delete(&Sheet::new().order(), &batch, false).await;
    let CallOutcome::RefusedFor(no, machines) = answer else { panic!("{answer:?}") };
    assert_eq!((no.refusal, no.code.as_deref()), (Refusal::Forbidden, Some("ScopeLocked")));
    assert_eq!(machines, [InstanceId::new("1")]);
}

#[tokio::test]
async fn an_accepted_write_is_asked_about_at_its_own_address() {
    let kit = kit(|heard| match () {
        () if heard.verb == "POST" => accepted(heard),
        () if heard.target.contains("operations") => {
            Says::status(200, r#"{"status":"InProgress","name":"o"}"#).with("Retry-After", "10")
        }
        () => usual(heard),
    })
    .await;
    let CallOutcome::Accepted(Some(operation)) =
        kit.azure.delete(&Sheet::new().order(), &[target("1")], false).await
    else {
        panic!()
    };
    let poll = kit.azure.poll(&set_id(), &operation).await;
    assert_eq!(poll, Poll::Running { retry_at: Some(START.plus(Span::seconds(10))) });
    assert_eq!(last(&kit).target, "/subscriptions/sub/operations/o?p=1&s=SIGNATURE");
    assert_eq!(
        kit.azure.poll(&set_id(), &poolkeeper::model::journal::OperationUrl::new("x")).await,
        Poll::Lost
    );
}

#[tokio::test]
async fn an_operation_that_failed_names_the_zone_of_the_machine_it_names() {
    let status = json!({"status": "Failed", "error":
        {"code": "ZonalAllocationFailed", "message": "no room", "target": "1"}});
    let kit = kit(move |heard| match () {
        () if heard.verb == "POST" => accepted(heard),
        () if heard.target.contains("operations") => Says::json(&status),
        () => usual(heard),
    })
    .await;
    revision(&kit).await;
    let CallOutcome::Accepted(Some(operation)) =
        kit.azure.restore(&Sheet::new().order(), &[target("1")]).await
    else {
        panic!()
    };
    let Poll::Failed(no) = kit.azure.poll(&set_id(), &operation).await else { panic!() };
    assert_eq!((no.refusal, no.zone.unwrap().as_str()), (Refusal::NoCapacity, "2"));
}

#[tokio::test]
async fn refusals_keep_their_meaning_through_the_door() {
    let stale =
        "The provided instanceId 857 is not an active Virtual Machine Scale Set VM instanceId.";
    let stale =
        json!({"error": {"code": "InvalidParameter", "target": "instanceIds", "message": stale}})
            .to_string();
    for (says, expected) in [
        (Says::status(400, &stale), Refusal::Gone),
        (
            Says::fault(
                412,
                "PreconditionFailed",
                "Etag provided in if-match header \"7\" does not match etag \"8\" of resource.",
            ),
            Refusal::Conflict,
        ),
        (Says::fault(409, "ScopeLocked", "locked"), Refusal::Forbidden),
        // The set, not the machines: nothing is said about them.
        (
            Says::fault(404, "ResourceNotFound", "The Resource was not found.")
                .with("x-ms-failure-cause", "gateway"),
            Refusal::Conflict,
        ),
        (Says::status(404, "").with("x-ms-request-id", "r"), Refusal::Conflict),
        (
            Says::fault(404, "NotFound", "The entity was not found in this Azure location."),
            Refusal::Gone,
        ),
        (Says::status(404, "<html>"), Refusal::Unclear),
    ] {
        let shown = format!("{says:?}");
        let kit = kit(move |_| says.clone()).await;
        let answer = kit.azure.delete(&Sheet::new().order(), &[target("857")], false).await;
        assert_eq!(refusal(&answer).0, expected, "{shown}");
        assert_eq!(kit.server.heard().len(), 1, "{shown}");
    }
    assert_eq!(Etag::new("\"7\"").as_str(), "\"7\"");
}
