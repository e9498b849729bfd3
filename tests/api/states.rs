//! The state of a pool survives its journey, and what is not understood is refused.

use poolkeeper::api::v1::state::{HELP, StateError, decode, encode};
use poolkeeper::model::action::{ActionKind, RemovalReason};
use poolkeeper::model::ids::{CommandId, EntryId, Etag, Key, Revision, StoreId, Zone};
use poolkeeper::model::inventory::{ModelFields, ModelRest};
use poolkeeper::model::journal::Refusal;
use poolkeeper::model::owner::OwnerTag;
use poolkeeper::model::plan::WaitKind;
use poolkeeper::model::revisions::{KnownRevision, Revisions};
use poolkeeper::model::rollout::*;
use poolkeeper::model::time::Time;
use proptest::prelude::*;

fn time() -> impl Strategy<Value = Time> {
    any::<i64>().prop_map(Time::from_millis)
}

fn text() -> impl Strategy<Value = String> {
    "[ -~é😀\\n]{0,8}"
}

fn boxed() -> impl Strategy<Value = Box<str>> {
    text().prop_map(Into::into)
}

fn key() -> impl Strategy<Value = Key> {
    text().prop_map(Key::new)
}

fn revision() -> impl Strategy<Value = Revision> {
    text().prop_map(Revision::new)
}

fn some<T>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>>
where
    T: std::fmt::Debug,
{
    prop::collection::vec(of, 0..3)
}

fn fields() -> impl Strategy<Value = ModelFields> {
    let tags = prop::collection::btree_map(boxed(), boxed(), 0..3);
    (prop::option::of(boxed()), prop::option::of(boxed()), tags)
        .prop_map(|(image, vm_size, tags)| ModelFields { image, vm_size, tags })
}

fn fall() -> impl Strategy<Value = Fall> {
    (any::<u32>(), any::<u32>(), time()).prop_map(|(from, to, at)| Fall { from, to, at })
}

fn cause() -> impl Strategy<Value = RolloutCause> {
    prop::sample::select(vec![
        RolloutCause::Revision,
        RolloutCause::Refresh,
        RolloutCause::MaxAge,
        RolloutCause::Rollback,
        RolloutCause::Exception,
    ])
}

fn stage() -> impl Strategy<Value = RolloutStage> {
    prop_oneof![
        Just(RolloutStage::Going),
        (boxed(), boxed(), time()).prop_map(|(by, why, at)| RolloutStage::Paused { by, why, at }),
        (boxed(), time()).prop_map(|(why, at)| RolloutStage::Failing { why, at }),
        time().prop_map(|since| RolloutStage::Baking { since }),
    ]
}

fn rollout() -> impl Strategy<Value = Rollout> {
    let head = (cause(), prop::option::of(revision()), revision(), time(), any::<u32>(), stage());
    let tail = (some(key()), any::<u32>(), any::<u32>(), prop::option::of(time()), any::<bool>());
    let progress = (time(), any::<u32>(), any::<u32>());
    let baseline = prop_oneof![Just(GateBaseline::Unasked), time().prop_map(GateBaseline::Asked)];
    let rest = (some(key()), prop::option::of(time()), some(boxed()), prop::option::of(baseline));
    (head, tail, progress, rest).prop_map(|(head, tail, progress, rest)| Rollout {
        cause: head.0,
        from: head.1,
        to: head.2,
        opened: head.3,
        covered: head.4,
        stage: head.5,
        served: tail.0.clone(),
        failed: tail.0,
        failed_in_a_row: tail.1,
        answered_failures: tail.2 / 3,
        failed_at: tail.3.map(|at| Time::from_millis(at.millis() / 2)),
        resumed: tail.1 / 5,
        passed: tail.2,
        soaking: tail.3,
        approved: tail.4,
        progress: Progress {
            at: progress.0,
            current_available: progress.1,
            outdated_left: progress.2,
            waiting: tail.3,
        },
        answered: rest.1,
        tried: rest.0,
        full: tail.4,
        skipped: rest.2,
        baseline: rest.3,
    })
}

fn desired() -> impl Strategy<Value = Desired> {
    let line = (text(), any::<i32>(), any::<i32>(), prop::option::of(time()), any::<bool>());
    let line = line.prop_map(|(entry, least, most, ended, folded)| LedgerLine {
        entry: EntryId::new(entry),
        least,
        most,
        ended,
        folded,
    });
    let falls = (prop::option::of(fall()), some(fall()));
    let rest = (some(line), some(time()), prop::collection::vec(prop::option::of(time()), 4));
    (any::<u32>(), any::<u32>(), falls, rest).prop_map(|(count, explained, falls, rest)| Desired {
        count,
        explained,
        waiting: falls.0,
        falls: falls.1,
        ledger: rest.0,
        others: rest.1,
        above: rest.2[0],
        below: rest.2[1],
        shown: explained / 2,
        shown_since: rest.2[2],
        confirmed: rest.2[3],
        agreed: explained / 3,
        lost: rest.2[0],
        refilled: rest.2[1],
        lost_again: rest.2[2].into_iter().collect(),
    })
}

fn model_back_off() -> impl Strategy<Value = ModelBackOff> {
    let when = (time(), time(), prop::option::of(time()));
    (fields(), prop::option::of(boxed()), any::<u32>(), when).prop_map(
        |(fields, code, times, (at, until, retry_at))| ModelBackOff {
            fields,
            refusal: Refusal::Forbidden,
            message: code.clone(),
            code,
            times,
            at,
            until,
            retry_at,
            answered: times % 2 == 1,
        },
    )
}

fn good() -> impl Strategy<Value = GoodRevision> {
    (revision(), prop::option::of(fields()))
        .prop_map(|(revision, fields)| GoodRevision { revision, fields })
}

fn model() -> impl Strategy<Value = ModelMemory> {
    let writing = (revision(), fields(), any::<bool>(), time());
    let writing =
        writing.prop_map(|(over, fields, put_back, at)| Writing { over, fields, put_back, at });
    let option = prop::option::of::<BoxedStrategy<Revision>>;
    (
        option(revision().boxed()),
        prop::option::of(fields()),
        prop::option::of(model_back_off()),
        prop::option::of(writing),
        option(revision().boxed()),
        (option(revision().boxed()), prop::option::of(time())),
        (rest(), rest()),
    )
        .prop_map(|(seen, wanted_fields, back_off, writing, put_back_over, back, rest)| {
            ModelMemory {
                seen,
                again: back.0,
                again_since: back.1,
                wanted_fields,
                writing,
                put_back_over,
                declined: back.1.is_some_and(|at| at.millis() % 2 == 0),
                back_off,
                rest_before: rest.0,
                moved_from: rest.1,
            }
        })
}

fn rest() -> impl Strategy<Value = ModelRest> {
    let text = || "[a-zA-Z0-9.]{1,12}".prop_map(Into::into);
    prop::collection::btree_map(text(), text(), 0..3)
}

fn ended() -> impl Strategy<Value = RolloutRecord> {
    let how = prop::sample::select(vec![
        RolloutEnding::Succeeded,
        RolloutEnding::SucceededWithExceptions,
        RolloutEnding::Aborted,
        RolloutEnding::RolledBack,
    ]);
    (cause(), revision(), time(), how, any::<[u32; 3]>()).prop_map(|(cause, to, at, how, n)| {
        RolloutRecord {
            cause,
            to,
            opened: (n[0] > 5).then_some(at),
            at,
            how,
            done: n[0],
            covered: n[1],
            failed: n[2],
        }
    })
}

fn back_off() -> impl Strategy<Value = BackOff> {
    let zone = prop::option::of(text().prop_map(Zone::new));
    let refusal = prop::sample::select(Refusal::ALL.to_vec());
    (refusal, zone, prop::option::of(boxed()), any::<[u32; 2]>(), time(), time()).prop_map(
        |(refusal, zone, code, n, at, until)| BackOff {
            granted: (n[0] % 2 == 0).then_some(n[0]),
            answered: n[1] % 3 == 0,
            refusal,
            zone,
            size: code.clone(),
            message: code.clone(),
            code,
            times: n[0],
            at,
            until,
            retry_at: (n[1] % 2 == 0).then_some(at),
        },
    )
}

fn wait() -> impl Strategy<Value = Wait> {
    let what = prop::sample::select(WaitKind::ALL.to_vec());
    (what, prop::option::of(any::<u32>()), prop::option::of(revision()), time())
        .prop_map(|(what, number, revision, since)| Wait { what, number, revision, since })
}

fn blocked() -> impl Strategy<Value = KeyBackOff> {
    (key(), any::<u32>(), time(), time(), prop::option::of(boxed())).prop_map(
        |(key, times, at, until, code)| KeyBackOff {
            key,
            times,
            at,
            until,
            message: code.clone().filter(|_| times % 3 == 0),
            code,
            retry_at: None,
            now: times % 2 == 0,
        },
    )
}

const fn because(n: u32) -> RemovalReason {
    match n % 5 {
        0 => RemovalReason::Failed,
        1 => RemovalReason::DeleteRequested,
        2 => RemovalReason::DeleteRequestedNow,
        3 => RemovalReason::Outdated,
        _ => RemovalReason::Surplus,
    }
}

fn back_off_of_key(like: &KeyBackOff) -> KeyBackOff {
    KeyBackOff { code: None, retry_at: like.now.then_some(like.at), ..like.clone() }
}

fn back_off_of_request(like: &KeyBackOff) -> RequestBackOff {
    let KeyBackOff { times, at, until, code, now, .. } = like.clone();
    let verb = if now { ActionKind::Delete } else { ActionKind::Reimage };
    let refusal = Refusal::ALL[times as usize % Refusal::ALL.len()];
    let (message, retry_at) = (code.clone(), now.then_some(until));
    RequestBackOff { verb, refusal, code, message, times, at, until, retry_at }
}

fn exception(like: &KeyBackOff) -> Exception {
    let KeyBackOff { key, at, now, .. } = like.clone();
    Exception { key, to: Revision::new("r2"), at, cleared: now }
}

fn probe(at: Time) -> Probe {
    let beside = (at.millis() % 2 == 0).then(|| EntryId::new("g"));
    Probe { at, births: 3, beside }
}

fn owner(flags: [bool; 3], at: Option<Time>) -> OwnerMemory {
    OwnerMemory {
        tag: at.map(|since| OwnerTag { store: StoreId::new("0af3"), since }),
        tries: u32::from(flags[0]),
        next: at,
        shown: flags[1].then(|| "theirs".into()),
        taken_over: flags[2].then(|| "".into()),
    }
}

fn met(good: &[GoodRevision]) -> Revisions {
    let known = good.iter().zip(1..).map(|(good, number)| KnownRevision {
        number,
        revision: good.revision.clone(),
        image: good.fields.as_ref().and_then(|fields| fields.image.clone()),
        vm_size: good.fields.as_ref().and_then(|fields| fields.vm_size.clone()),
        seen: Time::from_millis(i64::from(number)),
    });
    Revisions { known: known.collect() }
}

/// Every field of a state, any value in it.
pub fn state() -> impl Strategy<Value = PoolState> {
    bare().prop_map(|state| {
        let flags = [state.surplus_confirmed, state.advisory_held, state.mixed];
        let owner = owner(flags, state.adopted);
        let repair_limit = state.breaker_opened.map(|since| RepairLimit { since, size: 3 });
        PoolState { owner, revisions: met(&state.good_revisions), repair_limit, ..state }
    })
}

/// Without the owner tag, and the revisions that the pool met.
fn bare() -> impl Strategy<Value = PoolState> {
    let times = prop::collection::vec(prop::option::of(time()), 7);
    let revisions = prop::collection::vec(prop::option::of(revision()), 3);
    let parts = (desired(), model(), prop::option::of(rollout()), prop::option::of(ended()));
    let lists = (some(blocked()), some(back_off()), some((key(), time())), some((key(), time())));
    let more = (
        some((time(), any::<u32>())),
        some(key()),
        some(text().prop_map(CommandId::new)),
        some(good()),
        some((key(), revision())),
        some(wait()),
    );
    (any::<[bool; 3]>(), times, revisions, parts, lists, more).prop_map(
        |(flags, times, revisions, parts, lists, more)| PoolState {
            adopted: times[0],
            surplus_confirmed: flags[0],
            advisory_held: flags[1],
            advisory_before: times[1],
            adoption_held: flags[2],
            mixed: flags[2],
            desired: parts.0,
            wanted: revisions[0].clone(),
            good_revisions: more.3,
            model: parts.1,
            rollout: parts.2,
            last: parts.3,
            refresh_before: times[2],
            refresh_next: times[3],
            pause: times[4].map(|at| PauseRequest { by: "ann".into(), why: "looks".into(), at }),
            scheduled: times[3],
            key_backoff: lists.0.iter().map(back_off_of_key).collect(),
            restore_backoff: lists.0.iter().rev().map(back_off_of_key).collect(),
            request_backoff: lists.0.iter().map(back_off_of_request).collect(),
            doubted: lists.2.iter().rev().cloned().collect(),
            exceptions: lists.0.iter().map(exception).collect(),
            removals: lists.0.iter().map(|b| (b.key.clone(), because(b.times))).collect(),
            blocked: lists.0,
            backoff: lists.1,
            undelivered: times[5].map(|at| UndeliveredRaise { times: 2, at, until: at }),
            etag: EtagHistory {
                verdict: if flags[1] { EtagVerdict::Moves } else { EtagVerdict::Stays },
                last: flags[0].then(|| (Etag::new("7"), 3)),
                since: times[5],
                ends: u32::from(flags[1]),
            },
            deletes: DeleteEffects {
                verdict: if flags[2] { DeleteEffect::AtEnd } else { DeleteEffect::Unknown },
                late: flags[1].then(|| EntryId::new("e")).into_iter().collect(),
                proven: flags[0],
                agreed: flags[2].then(|| EntryId::new("f")),
                probe: times[4].map(probe),
            },
            vanished: lists.2.iter().take(1).cloned().collect(),
            tombs: lists.2,
            delete_takes: times[6].map(|at| at.since(Time::from_millis(0))),
            casualties: lists.3,
            breaker_opened: times[0],
            breaker_released: times[4],
            surplus_removed: more.0,
            written_off: more.1,
            in_vain: more.4,
            model_accepted: revisions[1].clone(),
            hot_loop_released: revisions[2].clone(),
            honoured: more.2,
            waiting: more.5,
            ..PoolState::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_state_survives(state in state()) {
        let text = encode(&state);
        prop_assert_eq!(decode(&text).map_err(|error| error.to_string()), Ok(state));
        prop_assert!(!text.contains('\n'));
    }

    #[test]
    fn a_state_with_slips_never_panics(text in state().prop_flat_map(|s| crate::api::bad_bytes::mutated(encode(&s)))) {
        drop(decode(&text));
    }
}

#[test]
fn what_is_at_its_default_is_left_out() {
    assert_eq!(encode(&PoolState::default()), r#"{"v":1,"desired":{"count":0}}"#);
    assert_eq!(decode(r#"{"v":1,"desired":{"count":0}}"#).unwrap(), PoolState::default());
}

#[test]
fn another_version_is_refused_with_advice() {
    for text in [r#"{"v":2,"desired":{"count":0}}"#, r#"{"v":99,"later":[]}"#] {
        assert!(matches!(decode(text), Err(StateError::Version(2 | 99))), "{text}");
    }
    for text in
        ["{}", "[]", "7", "", r#"{"v":1}"#, r#"{"v":1,"desired":{"count":-1}}"#, r#"{"v":"1"}"#]
    {
        assert!(matches!(decode(text), Err(StateError::Unreadable(_))), "{text}");
    }
    assert!(HELP.contains("leave the state out"));
}
