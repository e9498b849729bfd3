//! What is written is read again as what it was.

use poolkeeper::api::v1::pool::{read_inside, to_json};
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::calendar::{Chore, Cron, Schedule, ScheduleZone, Window, Windows};
use poolkeeper::model::drain::{
    BalancerChoice, DaemonSetPods, DrainLadder, DrainPolicy, FragilePods, NodeDrainPolicy,
    OnTimeout, PodFilters, PodRule, PodRuling,
};
use poolkeeper::model::hook::DrainHooks;
use poolkeeper::model::ids::{BackendPoolId, ClusterName, PoolName, ScaleSetId};
use poolkeeper::model::inventory::ModelFields;
use poolkeeper::model::policy::*;
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::Span;
use proptest::prelude::*;

fn quantity() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        (1_i64..=1_000).prop_map(|n| Quantity::count(n).unwrap()),
        (1_u8..=100).prop_map(Quantity::percent),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    (0_i64..10_000_000_000).prop_map(Span::from_millis)
}

fn text() -> impl Strategy<Value = Box<str>> {
    "[ -~éß😀]{0,12}[a-z]".prop_map(Into::into)
}

fn zone() -> impl Strategy<Value = ScheduleZone> {
    prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York"])
        .prop_map(|name| ScheduleZone::get(name).unwrap())
}

fn cron() -> impl Strategy<Value = Cron> {
    prop::sample::select(vec!["0 3 * * sun", "*/15 1-5 * * *", "@daily", "0 0 29 2 *"])
        .prop_map(|text| Cron::parse(text).unwrap())
}

fn window() -> impl Strategy<Value = Window> {
    let recurring = (cron(), 1_i64..600, zone())
        .prop_map(|(cron, n, zone)| Window::recurring(cron, Span::minutes(n), zone).unwrap());
    let dated = (1_u8..28, zone(), any::<bool>()).prop_map(|(day, zone, exact)| {
        let time = if exact { "T18:00" } else { "" };
        let (from, until) = (format!("2026-01-{day:02}{time}"), format!("2026-02-{day:02}{time}"));
        Window::dated(&from, &until, &zone).unwrap()
    });
    prop_oneof![recurring, dated]
}

fn rollout() -> impl Strategy<Value = RolloutPolicy> {
    let words = (
        prop::sample::select(vec![Method::Replace, Method::Reimage, Method::OnDelete]),
        prop::option::of(prop::sample::select(vec![
            RemovalOrder::Oldest,
            RemovalOrder::Newest,
            RemovalOrder::Random,
        ])),
        prop::sample::select(vec![OnFailure::Pause, OnFailure::Rollback, OnFailure::Continue]),
        prop::sample::select(vec![RollbackPolicy::Pause, RollbackPolicy::WriteModel]),
        any::<bool>(),
    );
    let numbers = (quantity(), quantity(), quantity(), span(), span(), span(), 0_i64..60);
    let ramp = prop::option::of((1_u32..50, 2_u32..50));
    let checkpoint = (quantity(), span(), any::<bool>(), prop::collection::vec(text(), 0..3));
    let checkpoints = prop::collection::vec(checkpoint, 0..3);
    let schedules = prop::collection::vec((cron(), zone()), 0..3);
    let age = prop::option::of(1_i64..1_000);
    (words, numbers, ramp, checkpoints, schedules, age).prop_map(
        |(words, numbers, ramp, checkpoints, schedules, age)| RolloutPolicy {
            method: words.0,
            order: words.1,
            on_failure: words.2,
            rollback: words.3,
            count_deleting: words.4,
            max_surge: numbers.0,
            max_unavailable: numbers.1,
            failure_threshold: numbers.2,
            min_ready: numbers.3,
            readiness_deadline: numbers.3.plus(numbers.4).plus(Span::seconds(1)),
            progress_deadline: numbers.4,
            bake: numbers.5,
            coalesce: Span::seconds(numbers.6),
            ramp: ramp.map(|(first, factor)| Ramp { first, factor }),
            max_age: age.map(Span::hours),
            checkpoints: checkpoints
                .into_iter()
                .map(|(at, soak, approval, gates)| Checkpoint { at, soak, approval, gates })
                .collect(),
            schedule: schedules
                .into_iter()
                .map(|(cron, zone)| Schedule { cron, zone, what: Chore::Refresh })
                .collect(),
        },
    )
}

fn model() -> impl Strategy<Value = OwnedModel> {
    let image = prop::option::of((text(), any::<bool>()));
    let tags = prop::collection::btree_map(text(), text(), 0..4);
    (image, prop::option::of(text()), tags, any::<bool>()).prop_map(
        |(image, vm_size, tags, whole)| {
            let kind = |(id, follow)| if follow { Image::Follow(id) } else { Image::Exact(id) };
            let fields = ModelFields { vm_size, tags, image: None };
            let write = if whole { WriteScope::StorageProfile } else { WriteScope::Image };
            OwnedModel { image: image.map(kind), fields, write }
        },
    )
}

fn word<T: Clone + std::fmt::Debug + 'static>(words: &[T]) -> impl Strategy<Value = T> {
    prop::sample::select(words.to_vec())
}

fn pod_rule() -> impl Strategy<Value = PodRule> {
    let namespace = prop::option::of("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?".prop_map(Box::from));
    let key =
        "([a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?";
    let value = "([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?";
    let labels =
        prop::collection::btree_map(key.prop_map(Box::from), value.prop_map(Box::from), 0..4);
    (namespace, labels, word(&PodRuling::ALL), -1_000..=1_000)
        .prop_filter("a rule matches something", |(namespace, labels, ..)| {
            namespace.is_some() || !labels.is_empty()
        })
        .prop_map(|(namespace, labels, ruling, order)| PodRule { namespace, labels, ruling, order })
}

fn nodes() -> impl Strategy<Value = NodeDrainPolicy> {
    let filters = (word(&DaemonSetPods::ALL), word(&FragilePods::ALL), word(&FragilePods::ALL));
    let off = || prop::option::of(span());
    let rules = prop::collection::vec(pod_rule(), 0..4);
    (filters, rules, (span(), off(), off()), span(), off()).prop_map(
        |((daemon_sets, empty_dir, bare), rules, ladder, volumes, deletion)| NodeDrainPolicy {
            filters: PodFilters { daemon_sets, empty_dir, bare },
            rules,
            ladder: DrainLadder {
                evict: ladder.0.plus(Span::minutes(1)),
                shorter_grace: ladder.1,
                delete: ladder.2,
            },
            volumes,
            deletion,
        },
    )
}

fn drain() -> impl Strategy<Value = DrainPolicy> {
    let pool = "[a-zA-Z0-9_().-]{0,39}[a-z]".prop_map(|name| {
        BackendPoolId::new(format!("/subscriptions/s/resourceGroups/{name}/providers/Microsoft.Network/loadBalancers/{name}/backendAddressPools/{name}"))
    });
    let balancers = prop_oneof![
        Just(BalancerChoice::Auto),
        Just(BalancerChoice::Off),
        prop::collection::btree_set(pool, 1..4)
            .prop_map(|pools| BalancerChoice::Pools(pools.into_iter().collect())),
    ];
    let on_timeout = prop::sample::select(OnTimeout::ALL.to_vec());
    let hooks = prop::array::uniform2(prop::option::of("[a-z0-9_-]{1,63}".prop_map(Box::from)))
        .prop_map(|[before, after]| DrainHooks { before, after });
    (balancers, hooks, span(), span(), on_timeout, 0_u32..=1_000, span(), nodes()).prop_map(
        |(balancers, hooks, grace, longer, on_timeout, max_blocked, failed_after, nodes)| {
            DrainPolicy {
                balancers,
                hooks,
                grace,
                deadline: grace.plus(longer).plus(Span::seconds(1)),
                on_timeout,
                max_blocked,
                failed_after,
                nodes,
            }
        },
    )
}

prop_compose! {
    fn policy()(
        name in "[a-z][a-z0-9_.-]{0,20}",
        set in "[a-zA-Z0-9_().-]{0,39}[a-z]",
        count in prop::option::of(0_u32..2_000),
        model in model(),
        rollout in rollout(),
        windows in (prop::collection::vec(window(), 0..3), prop::collection::vec(window(), 0..3)),
        words in (0_usize..4, any::<[bool; 4]>()),
        repair in (span(), span(), 1_u32..100, 0_u32..=100),
        deadline in span(),
        drain in drain(),
        cluster in prop::option::of("[a-z0-9_-]{1,63}"),
    ) -> Policy {
        let set = format!("/subscriptions/s/resourceGroups/{set}/providers/Microsoft.Compute/virtualMachineScaleSets/{set}");
        let mut draft = Draft::with_defaults(PoolName::new(name), ScaleSetId::new(set));
        draft.owner = if count.is_some() { Owner::Pool } else { Owner::ScaleSet };
        draft.count = count.unwrap_or(0);
        draft.model = model;
        draft.rollout = rollout;
        draft.windows = Windows::new(windows.0, windows.1).unwrap();
        let sources = [HealthPolicy::Auto, HealthPolicy::Node, HealthPolicy::ApplicationHealth, HealthPolicy::Provisioning];
        draft.health = sources[words.0];
        draft.adopt = if words.1[0] { Adopt::Hold } else { Adopt::Roll };
        draft.platform_features = if words.1[1] { PlatformFeatures::Refuse } else { PlatformFeatures::Warn };
        draft.tags_owner = words.1[2];
        draft.unconfirmed = if words.1[2] { UnconfirmedFall::Hold } else { UnconfirmedFall::Allow };
        let (after, window, max_at_once, breaker_percent) = repair;
        draft.repair = Repair { after, window, max_at_once, breaker_percent };
        draft.deletion = Deletion { force: words.1[3], deadline };
        draft.drain = drain;
        draft.cluster = cluster.map(ClusterName::new);
        Policy::build(draft).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_policy_survives_its_document(policy in policy()) {
        let text = to_json(&policy);
        let again = read_inside(&text);
        prop_assert_eq!(again.as_ref().map_err(|faults| faults[0].to_string()), Ok(&policy), "{}", text);
    }
}
