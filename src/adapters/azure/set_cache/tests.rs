//! What the cache keeps from listings, and for how long.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use serde_json::{Value, json};

use super::*;
use crate::adapters::azure::wire::ArmScaleSet;
use crate::model::action::RemovalReason;
use crate::model::ids::VmId;

fn at(seconds: i64) -> Time {
    Time::from_millis(seconds * 1_000)
}

#[tokio::test]
async fn answers_grow_old_and_are_not_too_many() {
    let kept = ResponseCache::new(Span::seconds(60));
    let read = async |key: &str, now, value: u32| {
        kept.or_read(key, || at(now), async move { (value, None) }).await
    };
    assert_eq!((read("a", 10, 1).await, read("a", 69, 2).await, read("a", 70, 3).await), (1, 1, 3));
    assert_eq!(read("a", 69, 4).await, 4, "a clock that went back");
    assert_eq!((kept.last("a").await, kept.last("b").await), (Some(4), None));
    for n in 0..400 {
        read(&format!("k{n}"), 100 + n, 5).await;
    }
    kept.all.run_pending_tasks().await;
    assert_eq!(kept.all.entry_count(), KEPT);
    assert_eq!((kept.last("a").await, kept.last("k399").await), (None, Some(5)));
}

#[tokio::test]
async fn many_who_ask_at_once_make_one_call() {
    let (kept, calls) = (ResponseCache::new(Span::seconds(60)), AtomicUsize::new(0));
    let ask = || {
        kept.or_read("k", || at(1), async {
            calls.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            (7, None)
        })
    };
    let (mut a, mut b) = (pin!(ask()), pin!(ask()));
    let both = poll_fn(|context| match (a.as_mut().poll(context), b.as_mut().poll(context)) {
        (Poll::Ready(a), Poll::Ready(b)) => Poll::Ready((a, b)),
        (Poll::Ready(a), Poll::Pending) => Poll::Ready((a, 0)),
        _ => Poll::Pending,
    });
    assert_eq!(both.await.0, 7);
    assert_eq!(ask().await, 7);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failure_is_good_for_its_own_time() {
    let kept = ResponseCache::new(Span::hours(6));
    let read = async |now, value: Option<u8>, good_for| {
        kept.or_read("k", || at(now), async move { (value, good_for) }).await
    };
    assert_eq!(read(0, None, Some(Span::seconds(60))).await, None);
    assert_eq!(read(59, Some(1), None).await, None);
    assert_eq!(read(60, Some(1), None).await, Some(1));
    assert_eq!(read(3_600, Some(2), None).await, Some(1));
}

fn model(version: &str, password: bool) -> ModelParts {
    let set: Value = json!({"sku": {"name": "s"}, "properties": {"virtualMachineProfile": {
        "storageProfile": {"imageReference": {"publisher": "p", "offer": "o", "sku": "s", "version": version}},
        "osProfile": {"computerNamePrefix": "web", "linuxConfiguration": {"disablePasswordAuthentication": !password}}}}});
    ModelParts::of(&ArmScaleSet::read(set.to_string().as_bytes()).unwrap())
}

fn known(model: ModelParts, since: Since, step: ReimageStep) -> SetCaches {
    let vm = Some(CompactId::of("vm-3"));
    let row = CachedInstance {
        id: CompactId::of("3"),
        vm,
        created: at(0),
        zone: Some(Zone::new("1")),
        step,
    };
    SetCaches {
        orchestration: Orchestration::Uniform,
        location: "l".into(),
        sizes: Vec::new(),
        makes: Makes::Regular,
        ephemeral: false,
        model,
        image: None,
        since,
        tags: BTreeMap::new(),
        rows: [row].into(),
        names: None,
    }
}

#[test]
fn a_change_of_model_is_dated_by_the_look_that_saw_it() {
    let (shelf, set) = (Shelf::default(), ScaleSetId::new("/Sub/X/"));
    let of = |model: &ModelParts, now| shelf.since(&set, model, at(now));
    let (a, b, c) = (model("1", false), model("2", false), model("2", true));
    assert_eq!(of(&a, 1), Since::default());
    shelf.keep(&set, known(a.clone(), Since::default(), ReimageStep::Reimage));
    assert_eq!(of(&a, 2), Since::default());
    let image = Since { changed: Some(at(3)), os: None, os_alone: false };
    assert_eq!(of(&b, 3), image);
    shelf.keep(&ScaleSetId::new("/sub/x"), known(b, image, ReimageStep::Reimage));
    let os = Since { changed: Some(at(9)), os: Some(at(9)), os_alone: true };
    assert_eq!(of(&c, 9), os);
    // Some machines had not received the previous change yet, so they lack more than the OS profile.
    shelf.keep(&set, known(model("2", false), image, ReimageStep::Upgrade));
    assert_eq!(of(&c, 9), Since { os_alone: false, ..os });
    assert_eq!((shelf.zone(&set, "3"), shelf.zone(&set, "4")), (Some(Zone::new("1")), None));
}

fn target(id: &str, vm: Option<&str>, created: Time) -> Target {
    Target {
        id: InstanceId::new(id),
        vm: vm.map(VmId::new),
        created,
        because: RemovalReason::Outdated,
    }
}

#[test]
fn an_id_that_is_used_again_is_noticed() {
    let known = known(model("1", false), Since::default(), ReimageStep::Reimage);
    let replaced = |target| known.replaced(&[target]).is_some();
    assert!(!replaced(target("3", Some("VM-3"), at(5))));
    assert!(replaced(target("3", Some("vm-4"), at(0))));
    assert!(!replaced(target("3", None, at(0))) && replaced(target("3", None, at(1))));
    assert!(!replaced(target("9", Some("x"), at(0))), "what was not listed, ARM must tell");
}

#[test]
fn a_new_disk_is_dated_by_the_first_work_that_ended_after_it_was_asked_for() {
    let (shelf, set) = (Shelf::default(), ScaleSetId::new("/Sub/X"));
    let three = target("3", Some("vm-3"), at(0));
    let imaged =
        |ended| shelf.imaged(&set, identity(&three.id, three.vm.as_ref(), three.created), ended);
    assert_eq!(imaged(Some(at(5))), None, "no one asked");
    shelf.ask_anew(&ScaleSetId::new("/sub/x/"), std::slice::from_ref(&three), at(10));
    assert_eq!((imaged(None), imaged(Some(at(5)))), (None, None));
    assert_eq!(imaged(Some(at(95))), Some(at(95)));
    assert_eq!(imaged(Some(at(500))), Some(at(95)), "later work is another's");
    shelf.ask_anew(&set, &[], at(10).plus(ANEW_FOR));
    assert_eq!(imaged(Some(at(95))), None);
}
