//! One owner of a set: the tag is written once, and another store's tag stops all that is begun.

use poolkeeper::api::v1::state;
use poolkeeper::model::action::{Action, ActionKind, RemovalReason};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::ids::StoreId;
use poolkeeper::model::inventory::{Lock, LockLevel, ModelFields};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal};
use poolkeeper::model::machine::Condition;
use poolkeeper::model::owner::{Keeper, OWNER_TAG, OwnerTag, OwnerWrite};
use poolkeeper::model::plan::{CommandVerb, MachineReason};
use poolkeeper::model::policy::{Draft, Policy};
use poolkeeper::model::time::{Span, Time};

use crate::rulings::kit::{NOW, Pool, Turn, refused};

fn id(text: &str) -> StoreId {
    StoreId::new(text)
}

fn tag(store: &str, since: Time) -> OwnerTag {
    OwnerTag { store: id(store), since }
}

/// The pool of store `aa`, and the set with this tag.
fn owned(mut pool: Pool, value: Option<&str>) -> Pool {
    pool.facts.keeper = Keeper::Store(id("aa"));
    tagged(pool, value)
}

fn tagged(pool: Pool, value: Option<&str>) -> Pool {
    let tags = value.map(|value| (OWNER_TAG.to_uppercase().into(), value.into()));
    let fields = ModelFields { tags: tags.into_iter().collect(), ..ModelFields::default() };
    pool.set(|set| set.model = Some(fields))
}

fn quiet() -> Pool {
    Pool::new(3, "1", "0").settled().new_ready(3)
}

fn outdated() -> Pool {
    Pool::new(3, "1", "0").old_ready(3)
}

fn ours() -> String {
    tag("aa", NOW.minus(Span::days(1))).to_string()
}

const THEIRS: &str = "bb since 2026-02-01T00:00:00Z";

fn written(turn: &Turn) -> Vec<&OwnerWrite> {
    let of = |action: &'_ Action| matches!(action, Action::TagOwner { .. });
    let tags = turn.planned.actions.iter().filter(|action| of(action));
    tags.filter_map(|action| match action {
        Action::TagOwner { write, .. } => Some(write),
        _ => None,
    })
    .collect()
}

#[test]
fn a_set_without_a_tag_gets_ours_once_and_nothing_waits_for_it() {
    let pool = owned(outdated(), None);
    let turn = pool.plan();
    turn.does(Some(4), &[]);
    let put = OwnerWrite::Put { tag: tag("aa", NOW), over: None };
    assert_eq!(written(&turn), [&put]);
    let verbs: Vec<ActionKind> = turn.planned.actions.iter().map(Action::verb).collect();
    assert_eq!(verbs, [ActionKind::TagOwner, ActionKind::Raise]);
    // No read shows it yet, and then one does.
    let lags = owned(quiet(), None).state(|s| s.owner = turn.planned.state.owner.clone());
    assert_eq!(written(&lags.plan()).len(), 0);
    let shown = tagged(lags, Some(&put.tag().to_string()));
    let turn = shown.plan();
    assert!(turn.is_idle(), "{:?}", turn.planned.actions);
    let memory = &turn.planned.state.owner;
    assert_eq!((memory.tag.as_ref(), memory.tries, memory.next), (Some(put.tag()), 0, None));
    assert!(owned(quiet(), Some(&ours())).plan().is_idle(), "it is never renewed");
}

#[test]
fn the_tag_is_tried_again_later_and_later_and_always_the_same() {
    let mut pool = owned(quiet(), None);
    let mut waits = Vec::new();
    let first = tag("aa", NOW);
    for _ in 0..14 {
        let turn = pool.plan();
        assert_eq!(written(&turn).first().map(|put| put.tag().clone()), Some(first.clone()));
        let next = turn.planned.state.owner.next.unwrap();
        let wait = next.since(pool.now);
        waits.push(wait);
        let early = pool.clone().after(&turn, Span::from_millis(wait.millis() - 1));
        assert_eq!(written(&early.plan()).len(), 0);
        pool = pool.after(&turn, wait);
    }
    assert_eq!(waits[..3], [Span::minutes(1), Span::minutes(2), Span::minutes(4)]);
    assert_eq!(waits.last(), Some(&Span::days(1)));
    let told = pool.plan().planned.report.notices.join("\n");
    assert!(told.contains("Microsoft.Resources/tags/write") && told.contains("tag: off"), "{told}");
    let retried = pool.clone().ask(CommandVerb::Retry).plan();
    assert_eq!(retried.accepted(), [false], "nothing waits now");
    let turn = pool.plan();
    let waits = pool.after(&turn, Span::minutes(1)).ask(CommandVerb::Retry).plan();
    assert_eq!((waits.accepted(), written(&waits).len()), (vec![true], 1));
}

#[test]
fn where_no_tag_may_be_written_none_is() {
    let off = owned(quiet(), None).policy(|d| d.tags_owner = false);
    let mut passing = owned(quiet(), None);
    passing.facts.keeper = Keeper::Passing;
    let mut preview = owned(quiet(), None);
    preview.facts.keeper = Keeper::Unknown;
    let dark = owned(quiet(), None).set(|set| set.model = None);
    let cut = owned(quiet(), None).set(|set| set.complete = false);
    let scope = "/subscriptions/s";
    let lock = Lock {
        level: LockLevel::ReadOnly,
        name: "l".into(),
        id: format!("{scope}/providers/Microsoft.Authorization/locks/l").into(),
    };
    let locked = owned(quiet(), None).set(|set| set.locks = vec![lock]);
    let write = OwnerWrite::Put { tag: tag("aa", NOW), over: None };
    let action = Action::TagOwner { write, reason: "".into(), before: NOW };
    let at = NOW.minus(Span::seconds(9));
    let open = owned(quiet(), None).entry(action, Span::seconds(9), Phase::Doubtful { at });
    // A newer request may end one that Azure is still at.
    let busy = Pool::new(3, "1", "0").settled().new_ready(4).delete_open(&["n1"], Span::ZERO);
    let busy = owned(busy.edit("n1", |m| m.condition = Condition::Deleting), None);
    for pool in [&off, &passing, &preview, &dark, &cut, &locked, &open, &busy] {
        assert!(pool.plan().is_idle());
    }
}

#[test]
fn under_another_owners_tag_nothing_is_begun() {
    let grows = Pool::new(5, "1", "0").settled().new_ready(3);
    let surplus = Pool::new(3, "1", "0").settled().new_ready(5);
    let failed = Pool::new(3, "1", "0").settled().new_ready(2).new_failed(1);
    let named = Pool::new(3, "1", "0").settled().new_ready(4).named("n1", false);
    for (n, pool) in vec![outdated(), grows, surplus, failed, named].into_iter().enumerate() {
        assert!(!owned(pool.clone(), Some(&ours())).plan().is_idle(), "{n}");
        for theirs in [THEIRS, "kim", ""] {
            let turn = owned(pool.clone(), Some(theirs)).plan();
            assert!(turn.is_idle(), "{n}: {:?}", turn.planned.actions);
            let hold = turn.hold("foreignOwner").unwrap();
            assert_eq!((hold.verb(), &*hold.blockers[0]), (Some(CommandName::TakeOver), theirs));
        }
    }
    let turn = owned(outdated(), Some(THEIRS)).plan();
    let said = &turn.hold("foreignOwner").unwrap().message;
    assert!(said.contains("store bb") && said.contains("2026-02-01T00:00:00Z"), "{said}");
    assert_eq!(turn.report("o1").why, MachineReason::WaitsOwner);
    let mut passing = owned(outdated(), Some(THEIRS));
    passing.facts.keeper = Keeper::Passing;
    passing.plan().says("foreignOwner");
    passing.facts.keeper = Keeper::Unknown;
    passing.plan().does(Some(4), &[]).is_silent_on("foreignOwner");
}

#[test]
fn what_we_took_out_of_service_is_put_back_under_another_owners_tag() {
    let pool = Pool::new(3, "1", "1").old_ready(3).nodes();
    let pool = pool.drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    assert_eq!(owned(pool.clone(), Some(&ours())).plan().deleted(), ["o1"]);
    let turn = owned(pool, Some(THEIRS)).plan();
    assert_eq!((turn.restored(), turn.deleted()), (vec!["o1"], vec![]));
    // A delete that was begun is watched to its end.
    let going = owned(Pool::new(3, "1", "0").settled().new_ready(4), Some(THEIRS));
    let going = going.delete_open(&["n1"], Span::seconds(30));
    let going = going.edit("n1", |machine| machine.condition = Condition::Deleting);
    assert!(going.plan().is_idle());
}

/// The pool one turn later, so that a person could read the hold.
fn held() -> Pool {
    owned(outdated(), Some(THEIRS)).shown()
}

#[test]
fn a_person_takes_over_just_what_was_shown() {
    let turn = held().ask(CommandVerb::TakeOver).plan();
    assert_eq!(turn.accepted(), [true]);
    turn.does(Some(4), &[]).is_silent_on("foreignOwner");
    assert_eq!(written(&turn).len(), 1);
    let OwnerWrite::Put { tag, over } = written(&turn)[0] else { panic!("{turn:?}") };
    assert_eq!((&tag.store, over.as_deref()), (&id("aa"), Some(THEIRS)));
    // An old picture of the set holds nothing up; a restart forgets nothing.
    let mut later = held().after(&turn, Span::minutes(1));
    later = later.state(|s| *s = state::decode(&state::encode(s)).unwrap());
    later.plan().is_silent_on("foreignOwner");
    // Another value is another question.
    let other = tagged(later, Some("bb since 2026-03-01T12:00:30Z"));
    assert!(other.plan().says("foreignOwner").is_idle());
}

#[test]
fn taking_over_is_refused_while_anything_is_in_doubt() {
    let first = owned(outdated(), Some(THEIRS)).first_sight().ask(CommandVerb::TakeOver);
    let unseen = owned(outdated(), Some(THEIRS)).ask(CommandVerb::TakeOver);
    let changed = tagged(held(), Some("cc since 2026-03-01T00:00:00Z")).ask(CommandVerb::TakeOver);
    let own = owned(outdated(), Some(&ours())).ask(CommandVerb::TakeOver);
    let cut = held().set(|set| set.complete = false).ask(CommandVerb::TakeOver);
    let lost = |pool: Pool| {
        let outcome = refused(Refusal::Unclear);
        pool.delete_ended(&["o1"], Span::ZERO, outcome).ask(CommandVerb::TakeOver)
    };
    for (n, pool) in vec![first, unseen, changed, own, cut, lost(held())].into_iter().enumerate() {
        let turn = pool.plan();
        assert_eq!(turn.accepted(), [false], "{n}: {:?}", turn.planned.report.commands);
        assert!(written(&turn).is_empty(), "{n}");
    }
}

#[test]
fn a_set_whose_tags_may_not_be_written_is_taken_over_all_the_same() {
    let turn = held().policy(|d| d.tags_owner = false).ask(CommandVerb::TakeOver).plan();
    turn.does(Some(4), &[]).is_silent_on("foreignOwner");
    assert_eq!((turn.accepted(), written(&turn).len()), (vec![true], 0));
}

#[test]
fn the_pool_file_may_not_name_the_tag() {
    let name = poolkeeper::model::ids::PoolName::new("web");
    let mut draft = Draft::with_defaults(name, poolkeeper::model::ids::ScaleSetId::new("/web"));
    draft.model.fields.tags.insert("Poolkeeper-Owner".into(), "me".into());
    let faults = Policy::build(draft).unwrap_err();
    assert_eq!(faults.iter().map(|fault| fault.key).collect::<Vec<_>>(), ["model.tags"]);
}

/// The write of the tag may move the version of the set, and that of the model rests on it.
#[test]
fn a_turn_that_writes_the_model_leaves_the_tag_for_the_next() {
    let pool = owned(quiet(), None).policy(|d| d.model.fields.vm_size = Some("B".into()));
    let pool = pool.set(|set| set.model.as_mut().unwrap().vm_size = Some("A".into()));
    let turn = pool.plan();
    let verbs: Vec<ActionKind> = turn.planned.actions.iter().map(Action::verb).collect();
    assert_eq!((verbs, written(&turn).len()), (vec![ActionKind::UpdateModel], 0));
}
