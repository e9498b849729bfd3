//! What our write of the model moved beside what it named: nothing is replaced by such a model before a person looks.

use poolkeeper::api::v1::state;
use poolkeeper::model::action::{Action, RemovalReason, WriteScope};
use poolkeeper::model::command::CommandName;
use poolkeeper::model::inventory::{ModelFields, ModelRest};
use poolkeeper::model::journal::{EntryOutcome, Phase, Refusal};
use poolkeeper::model::plan::{CommandVerb, RolloutPhase, WaitKind};
use poolkeeper::model::policy::Image;
use poolkeeper::model::rollout::{ModelBackOff, ModelMemory, Writing};
use poolkeeper::model::time::Span;

use super::kit::{NOW, Pool, Turn, good, refused, rev};
use super::world::World;

const KIND: &str = "osDisk.managedDisk.storageAccountType";

fn fields(image: &str) -> ModelFields {
    ModelFields { image: Some(image.into()), ..ModelFields::default() }
}

/// The rest of a model, with an OS disk of this kind.
fn disks(kind: &str) -> ModelRest {
    [(KIND.into(), kind.into()), ("osDisk.diskSizeGB".into(), "128".into())].into()
}

/// Four machines on v1, whose file asks for v2 from now on; a write of the model leaves these disks.
fn writes(left: &str) -> World {
    let mut pool = Pool::new(4, "1", "0").old_ready(4).first_sight();
    pool.draft.model.image = Some(Image::Exact("v1".into()));
    pool = pool.set(|set| {
        (set.revision, set.model) = (rev("r1"), Some(fields("v1")));
        set.model_rest = disks("Premium_LRS");
    });
    let mut world = World::new(pool);
    world.step();
    world.pool.draft.model.image = Some(Image::Exact("v2".into()));
    (world.model_becomes, world.rest_becomes) = (Some("r2".into()), Some(disks(left)));
    world
}

#[track_caller]
fn stands(world: &mut World, turns: usize) -> Turn {
    let mut turn = world.step();
    for _ in 0..turns {
        turn = world.step();
    }
    assert_eq!((world.created, world.deletes), (0, 0), "{:?}", turn.holds());
    turn.says("modelMoved").is_silent_on("stalled");
    turn
}

#[test]
fn a_write_that_moves_the_disks_stops_the_rollout_until_a_person_accepts_them() {
    let mut world = writes("Standard_LRS");
    let turn = stands(&mut world, 200);
    assert_eq!(turn.phase(), RolloutPhase::Waiting);
    let hold = turn.hold("modelMoved").unwrap();
    let moved = format!("{KIND} changed from Premium_LRS to Standard_LRS");
    assert!(
        hold.message.contains(&moved) && !hold.message.contains("diskSizeGB"),
        "{}",
        hold.message
    );
    assert_eq!((hold.verb(), hold.numbers[0]), (Some(CommandName::Approve), ("moved", 1)));
    world.pool.approve_all();
    world.run(300, |world| world.is_at(4, "r2"));
    world.step();
    world.stays_quiet(5);
}

#[test]
fn what_is_set_back_by_hand_goes_on() {
    let mut world = writes("Standard_LRS");
    stands(&mut world, 20);
    (world.pool.set.model_rest, world.pool.set.revision) = (disks("Premium_LRS"), rev("r2b"));
    world.run(300, |world| world.is_at(4, "r2b"));
}

#[test]
fn another_spelling_is_no_move_and_neither_is_what_no_read_shows() {
    let mut world = writes("PREMIUM_LRS");
    world.run(300, |world| world.is_at(4, "r2"));
    let mut world = writes("Standard_LRS");
    world.rest_becomes = Some(ModelRest::new());
    world.run(300, |world| world.is_at(4, "r2"));
}

/// An old picture of the set shows the disks of before, and the image of before.
#[test]
fn an_old_picture_ends_nothing() {
    let mut world = writes("Standard_LRS");
    stands(&mut world, 5);
    let now = world.pool.set.clone();
    world.pool.set.revision = rev("r1");
    (world.pool.set.model, world.pool.set.model_rest) = (Some(fields("v1")), disks("Premium_LRS"));
    world.step().says("modelMoved");
    world.pool.set = now;
    stands(&mut world, 20);
}

/// A pool whose write of v2 over r1 was sent, and whose next read shows it with these disks.
fn wrote(phase: Phase, left: &str) -> Pool {
    let mut pool = Pool::new(4, "1", "0").old_ready(4);
    pool.draft.model.image = Some(Image::Exact("v2".into()));
    let at = NOW.minus(Span::minutes(1));
    let writing = Writing { over: rev("r1"), fields: fields("v2"), put_back: false, at };
    let pool = pool.state(|state| {
        state.wanted = Some(rev("r1"));
        state.good_revisions = vec![good("r1")];
        state.model = ModelMemory {
            seen: Some(rev("r1")),
            wanted_fields: Some(fields("v2")),
            writing: Some(writing),
            rest_before: disks("Premium_LRS"),
            ..ModelMemory::default()
        };
        // As a daemon that was killed since finds it.
        *state = state::decode(&state::encode(state)).unwrap();
    });
    let pool = pool.set(|set| (set.model, set.model_rest) = (Some(fields("v2")), disks(left)));
    let expect = poolkeeper::model::action::Expect {
        etag: None,
        capacity: 4,
        revision: rev("r1"),
        before: NOW,
    };
    let (why, scope) = (poolkeeper::model::action::ModelWrite::Wanted, WriteScope::Image);
    let action =
        Action::UpdateModel { fields: fields("v2"), why, scope, reason: "".into(), expect };
    pool.entry(action, Span::minutes(1), phase)
}

#[test]
fn a_lost_answer_hides_nothing() {
    let (at, soon) = (NOW.minus(Span::seconds(50)), NOW.minus(Span::seconds(10)));
    let ended = |outcome| Phase::Ended { at: soon, accepted: Some(at), outcome };
    for phase in [
        Phase::Doubtful { at },
        Phase::Accepted { at, operation: None },
        ended(EntryOutcome::Done),
        ended(refused(Refusal::Unclear)),
    ] {
        let turn = wrote(phase.clone(), "Standard_LRS").plan();
        turn.does(None, &[]).says("modelMoved");
        let whole = wrote(phase, "Premium_LRS").plan();
        whole.is_silent_on("modelMoved");
    }
}

/// A write of which nothing was known for too long may land all the same.
#[test]
fn a_write_that_was_given_up_is_compared_when_a_read_shows_it() {
    let at = NOW.minus(Span::minutes(1));
    let mut late = wrote(Phase::Doubtful { at }, "Standard_LRS").state(|state| {
        state.model.writing = None;
        state.model.back_off = Some(ModelBackOff {
            fields: fields("v2"),
            refusal: Refusal::Unclear,
            code: None,
            message: None,
            times: 1,
            at,
            until: NOW.plus(Span::minutes(1)),
            retry_at: None,
            answered: false,
        });
    });
    late.open.clear();
    late.plan().does(None, &[]).says("modelMoved");
}

#[test]
fn what_others_move_is_a_change_like_any_other() {
    let pool = Pool::new(3, "1", "0").settled().new_ready(3);
    let theirs =
        pool.set(|set| (set.revision, set.model_rest) = (rev("r3"), disks("Standard_LRS")));
    theirs.plan().does(Some(4), &[]).is_silent_on("modelMoved");
    // Ours was refused for certain, and what the set shows later came from other hands.
    let at = NOW.minus(Span::seconds(50));
    let phase = Phase::Ended { at, accepted: None, outcome: refused(Refusal::Forbidden) };
    let no = wrote(phase, "Premium_LRS");
    let no = no.set(|set| (set.revision, set.model) = (rev("r1"), Some(fields("v1"))));
    let turn = no.plan();
    let later = no.after(&turn, Span::minutes(1)).set(|set| {
        (set.revision, set.model) = (rev("r2"), Some(fields("v2")));
        set.model_rest = disks("Standard_LRS");
    });
    later.plan().does(Some(5), &[]).is_silent_on("modelMoved");
}

/// Such a model is as little proven as one on which nothing ever served.
#[test]
fn what_is_lost_comes_up_on_it_only_where_the_floor_needs_it() {
    let moved = |there: usize| {
        let pool = Pool::new(3, "1", "1").settled().new_ready(there);
        let pool = pool.set(|set| set.model_rest = disks("Standard_LRS"));
        pool.state(|state| state.model.moved_from = disks("Premium_LRS"))
    };
    moved(3).plan().does(None, &[]).says("modelMoved");
    moved(2).plan().does(None, &[]).says("modelMoved").says("modelUnproven");
    moved(1).plan().does(Some(3), &[]).says("modelUnproven");
    // One yes accepts the disks, and all goes on.
    let shown = moved(2).shown().approve(WaitKind::Model, None).plan();
    assert_eq!(shown.accepted(), [true]);
    shown.does(Some(3), &[]).is_silent_on("modelMoved").is_silent_on("modelUnproven");
}

#[test]
fn what_was_drained_to_be_replaced_comes_back() {
    let pool = Pool::new(3, "1", "1").old_ready(3).nodes();
    let pool = pool.drain_ended("o1", RemovalReason::Outdated, EntryOutcome::Done);
    let pool = pool.state(|state| state.removals = vec![]);
    pool.plan().is_silent_on("modelMoved");
    let moved = pool.set(|set| set.model_rest = disks("Standard_LRS"));
    let turn = moved.state(|state| state.model.moved_from = disks("Premium_LRS")).plan();
    assert_eq!((turn.restored(), turn.deleted()), (vec!["o1"], vec![]));
}

/// The model that a way back wants is out of reach of our writes: what a person accepts in its place is wanted from then on.
#[test]
fn a_way_back_that_moves_the_disks_ends_on_what_is_accepted() {
    let mut world = writes("Premium_LRS");
    world.run(300, |world| world.is_at(4, "r2"));
    let (new, old) = ("r1b".into(), Some(disks("Standard_LRS")));
    (world.model_becomes, world.rest_becomes) = (Some(new), old);
    (world.created, world.deletes) = (0, 0);
    world.pool.speak(CommandVerb::Rollback);
    stands(&mut world, 100);
    world.pool.approve_all();
    world.run(300, |world| world.is_at(4, "r1b"));
}

#[test]
fn the_file_says_what_a_write_carries() {
    for scope in [WriteScope::Image, WriteScope::StorageProfile] {
        let mut world = writes("Premium_LRS");
        world.pool.draft.model.write = scope;
        let turn = world.step();
        let wrote = turn.planned.actions.iter().find_map(|action| match action {
            Action::UpdateModel { scope, .. } => Some(*scope),
            _ => None,
        });
        assert_eq!(wrote, Some(scope));
    }
}
