//! The rehearsals in which faults are planted.

use poolkeeper::model::plan::CommandVerb;
use poolkeeper::model::policy::{Checkpoint, Draft, Image, Owner, Policy, UnconfirmedFall};
use poolkeeper::model::quantity::Quantity;
use poolkeeper::model::time::{Skew, Span};
use poolkeeper::sim::{self, BalancerSetup, ClusterSpec, DiskCut, HookSetup, Scenario, UserAction};
use poolkeeper::world::{ExternalEvent, ModelPatch, SetSpec, Which, WorldChange, WorldFaults};

pub fn pool(count: u32, surge: u8, down: u8, change: impl FnOnce(&mut Draft)) -> Scenario {
    let mut draft = sim::draft("web", count);
    draft.rollout.max_surge = Quantity::of(surge);
    draft.rollout.max_unavailable = Quantity::of(down);
    change(&mut draft);
    let policy = Policy::build(draft).unwrap();
    let set = SetSpec::new("web", count, sim::OLD_IMAGE);
    Scenario::plain(policy, 7, set)
}

pub fn new_image(scenario: &mut Scenario) {
    let patch = ModelPatch::image(sim::NEW_IMAGE);
    scenario.deeds.push((Span::minutes(1), ExternalEvent::PatchModel(patch)));
}

/// Five machines get a new image, one by one.
pub fn rollout() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    new_image(&mut scenario);
    scenario
}

/// The same behind a load balancer.
pub fn balanced() -> Scenario {
    let mut scenario = rollout();
    scenario.balance(BalancerSetup { pools: 1, balancers: 1, probe: 5_000 });
    scenario
}

/// Behind a load balancer; surplus is watched, and after a while it is wanted again.
pub fn balanced_fall() -> Scenario {
    let mut scenario = super::watched::falls();
    scenario.balance(BalancerSetup { pools: 1, balancers: 1, probe: 5_000 });
    scenario.wishes.push((Span::minutes(6), UserAction::Count(5)));
    scenario
}

/// Hooks are asked, and their receivers make trouble.
pub fn hooked() -> Scenario {
    let mut scenario = rollout();
    scenario.hook(HookSetup { before: true, after: true, trouble: 0.8 });
    scenario.calm_after = Span::hours(2);
    scenario
}

/// A hook is asked before surplus is watched, and after a while it is wanted again.
pub fn hooked_fall() -> Scenario {
    let mut scenario = super::watched::falls();
    scenario.hook(HookSetup { before: true, after: false, trouble: 0.0 });
    scenario.linger = 40;
    scenario.wishes.push((Span::minutes(6), UserAction::Count(5)));
    scenario
}

/// Six machines, of which three may be missing, or two more be there.
pub fn loose() -> Scenario {
    let mut scenario = pool(6, 2, 3, |_| {});
    new_image(&mut scenario);
    scenario
}

/// The cloud is busy with others' requests half of the time.
pub fn refused() -> Scenario {
    let mut scenario = loose();
    scenario.faults = WorldFaults { conflict: 0.5, ..WorldFaults::default() };
    scenario.seed = 3;
    scenario.calm_after = Span::hours(2);
    scenario
}

/// Requests get lost on their way, and no error says so.
pub fn unheard() -> Scenario {
    let mut scenario = loose();
    scenario.faults = WorldFaults { lost_before: 0.5, ..WorldFaults::default() };
    scenario.calm_after = Span::hours(2);
    scenario
}

/// One machine, which may be missing or doubled.
pub fn single() -> Scenario {
    let mut scenario = pool(1, 1, 1, |_| {});
    new_image(&mut scenario);
    scenario
}

/// The pool file asks for three more.
pub fn growth() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    scenario.wishes.push((Span::minutes(1), UserAction::Count(8)));
    scenario
}

/// A rollout of machines with nodes.
pub fn nodes() -> Scenario {
    let mut scenario = rollout();
    scenario.cluster = Some(ClusterSpec::default());
    scenario
}

/// The same, and the cloud controller is late to delete nodes whose machines are gone.
pub fn left_nodes() -> Scenario {
    let mut scenario = rollout();
    scenario.cluster = Some(ClusterSpec { lingers: 1.0, ..ClusterSpec::default() });
    scenario
}

/// Two machines with nodes are off until they have failed, and on again before both are replaced.
pub fn stopped_nodes() -> Scenario {
    let mut scenario = pool(5, 1, 0, |draft| draft.repair.breaker_percent = 20);
    scenario.cluster = Some(ClusterSpec::default());
    for which in [Which::Oldest, Which::Newest] {
        let change = |change| ExternalEvent::ChangeInstance(which.clone(), change);
        scenario.deeds.push((Span::minutes(5), change(WorldChange::PowerOff)));
        scenario.deeds.push((Span::minutes(16), change(WorldChange::Start)));
    }
    scenario.calm_after = Span::hours(2);
    scenario
}

/// A rollout of machines with nodes, paused in its middle for an hour.
pub fn paused_nodes() -> Scenario {
    let mut scenario = paused();
    scenario.cluster = Some(ClusterSpec::default());
    scenario
}

/// A rollout of machines with nodes, whose number others set.
pub fn scaled_nodes() -> Scenario {
    let mut scenario = pool(5, 1, 0, |draft| draft.owner = Owner::ScaleSet);
    new_image(&mut scenario);
    scenario.cluster = Some(ClusterSpec::default());
    scenario
}

/// The same, and others write signs on these nodes.
pub fn signed_by_others() -> Scenario {
    let mut scenario = scaled_nodes();
    scenario.cluster = Some(ClusterSpec { strangers: 0.5, ..ClusterSpec::default() });
    scenario.calm_after = Span::hours(2);
    scenario
}

/// A rollout, and owners of some pods want them left alone for half an hour.
pub fn nodes_left_alone() -> Scenario {
    let mut scenario = rollout();
    scenario.cluster = Some(ClusterSpec { left_alone: 0.1, ..ClusterSpec::default() });
    scenario.calm_after = Span::hours(2);
    scenario
}

/// Half of the nodes are to be left alone, and few have a pod that is.
pub fn half_left_alone() -> Scenario {
    let mut scenario = nodes_left_alone();
    let spec = ClusterSpec { left_alone: 0.5, pods_per_node: 1, ..ClusterSpec::default() };
    scenario.cluster = Some(spec);
    scenario
}

/// A rollout with many pods, which take long to end.
pub fn stateful_nodes() -> Scenario {
    let mut scenario = rollout();
    let slow = ClusterSpec { pods_per_node: 24, drain_seconds: 90.0, ..ClusterSpec::default() };
    scenario.cluster = Some(slow);
    scenario
}

/// Others cordon nodes that we drain, and budgets let no drain end.
pub fn cordoned_by_others() -> Scenario {
    let mut scenario = blocked();
    scenario.cluster = scenario.cluster.map(|stubborn| ClusterSpec { others: 0.2, ..stubborn });
    scenario
}

/// A rollout in which a person holds one machine.
pub fn held() -> Scenario {
    let mut scenario = rollout();
    scenario.wishes.push((Span::seconds(30), UserAction::Hold { nth: 0, held: true }));
    scenario.wishes.push((Span::hours(3), UserAction::Hold { nth: 0, held: false }));
    scenario
}

/// A rollout during which listings are cut short now and then.
pub fn cut() -> Scenario {
    let mut scenario = rollout();
    scenario.settings.page_size = 2;
    scenario.faults = WorldFaults { cut_list: 0.3, ..WorldFaults::default() };
    scenario.calm_after = Span::hours(1);
    scenario
}

/// A rollout that is paused in its middle.
pub fn paused() -> Scenario {
    let mut scenario = rollout();
    scenario.wishes.push((Span::minutes(6), UserAction::Ask(CommandVerb::Pause)));
    scenario
}

/// All pools are stopped in the middle of a rollout.
pub fn stopped() -> Scenario {
    let mut scenario = rollout();
    scenario.wishes.push((Span::minutes(6), UserAction::StopAll { except_repair: false }));
    scenario
}

/// The same, except repair.
pub fn only_repair() -> Scenario {
    let mut scenario = rollout();
    scenario.wishes.push((Span::minutes(6), UserAction::StopAll { except_repair: true }));
    scenario
}

/// A machine fails while all pools are stopped.
pub fn stopped_ill() -> Scenario {
    let mut scenario = dead();
    scenario.wishes.push((Span::minutes(1), UserAction::StopAll { except_repair: false }));
    scenario
}

/// The pool file asks for three more while only repair goes on.
pub fn only_repair_grows() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    scenario.wishes.push((Span::minutes(1), UserAction::StopAll { except_repair: true }));
    scenario.wishes.push((Span::minutes(20), UserAction::Count(8)));
    scenario
}

/// One machine of five fails for good.
fn dead() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    scenario.deeds.push((Span::minutes(5), ExternalEvent::Sicken(Which::Id("0".into()), None)));
    scenario
}

/// A pause from before there was a rollout.
pub fn paused_early() -> Scenario {
    let mut scenario = rollout();
    scenario.wishes.push((Span::seconds(20), UserAction::Ask(CommandVerb::Pause)));
    scenario
}

/// All machines anew, asked for while a rollout waits at its checkpoint.
pub fn refreshed() -> Scenario {
    let mut scenario = checkpoint();
    scenario.wishes.push((Span::minutes(20), UserAction::Ask(CommandVerb::Refresh)));
    scenario
}

/// The checkpoint is approved in the moment in which the pool file asks for much less.
pub fn approved_beside_fall() -> Scenario {
    let mut scenario = checkpoint();
    scenario.wishes.push((Span::minutes(40), UserAction::Count(2)));
    scenario
}

/// Nothing happens for a long time.
pub fn at_rest() -> Scenario {
    // Surplus may leave as fast as it likes: the brake is not what is looked at here.
    let mut scenario = pool(5, 1, 0, |draft| draft.unconfirmed = UnconfirmedFall::Allow);
    scenario.linger = 300;
    scenario
}

/// Nothing happens for a long time, in a storm that hardly blows.
pub fn blows() -> Scenario {
    let mut scenario = at_rest();
    scenario.calm_after = Span::hours(12);
    scenario.faults = WorldFaults { flag_flips: 0.000_1, ..WorldFaults::default() };
    scenario
}

/// The pool file asks for three more, and for hours the region has no room.
pub fn no_room() -> Scenario {
    let mut scenario = growth();
    scenario.settings.switches.shortage_refused_at_once = true;
    let until = scenario.start.plus(Span::hours(5)).millis();
    scenario.deeds.push((Span::ZERO, ExternalEvent::NoCapacity { zone: None, until }));
    scenario
}

/// A rollout in which the power goes.
pub fn crashes() -> Scenario {
    let mut scenario = rollout();
    scenario.cuts = vec![DiskCut::After(9)];
    scenario
}

/// A rollout in which the power goes at every seventh write.
pub fn cut_often() -> Scenario {
    let mut scenario = rollout();
    scenario.cuts = (1..40).map(|n| DiskCut::Before(7 * n)).collect();
    scenario
}

/// Drains are held up for longer than they are waited for.
pub fn blocked() -> Scenario {
    let mut scenario = loose();
    let stubborn = ClusterSpec { blocked: 1.0, blocked_for: 3_600_000, ..ClusterSpec::default() };
    scenario.cluster = Some(stubborn);
    scenario.calm_after = Span::hours(2);
    scenario.faults = WorldFaults { flag_flips: 0.000_1, ..WorldFaults::default() };
    scenario
}

/// The image is ours, and its rollout is aborted.
pub fn aborted() -> Scenario {
    let mut scenario = pool(5, 1, 0, |draft| {
        draft.model.image = Some(Image::Exact(sim::OLD_IMAGE.into()));
    });
    scenario.wishes = vec![
        (Span::minutes(1), UserAction::Image(sim::NEW_IMAGE.into())),
        (Span::minutes(8), UserAction::Ask(CommandVerb::Abort)),
    ];
    scenario
}

/// A person approves after the second machine.
pub fn checkpoint() -> Scenario {
    let mut scenario = pool(6, 1, 0, |draft| {
        draft.rollout.checkpoints = vec![Checkpoint {
            at: Quantity::of(2),
            soak: Span::minutes(5),
            approval: true,
            gates: Vec::new(),
        }];
    });
    new_image(&mut scenario);
    scenario.wishes.push((Span::minutes(40), UserAction::Ask(CommandVerb::Approve)));
    scenario
}

/// Machines do not show their model, and the cloud's flag is wrong about all of them for an hour.
pub fn flag() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    scenario.adapter.shows_models = false;
    scenario.faults = WorldFaults { flag_flaps: 1.0, ..WorldFaults::default() };
    scenario.calm_after = Span::hours(1);
    scenario
}

/// The pool file asks for three of ten to go, and nobody confirms it for two hours.
pub fn falls() -> Scenario {
    let mut scenario = pool(10, 1, 0, |_| {});
    scenario.wishes = vec![
        (Span::minutes(1), UserAction::Count(7)),
        (Span::hours(2), UserAction::Ask(CommandVerb::Approve)),
    ];
    scenario
}

/// A rollout beside a cloud whose clock is 25 minutes behind.
pub fn clock_behind() -> Scenario {
    let mut scenario = rollout();
    scenario.adapter.ahead = Skew::seconds(-25 * 60);
    // Looked at while one comes up.
    for after in [80, 100, 120] {
        scenario.wishes.push((Span::seconds(after), UserAction::Ask(CommandVerb::ResetBreaker)));
    }
    scenario
}

/// Another client stops three of five machines, and no client starts them for a while.
pub fn blackout() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    for id in ["0", "1", "2"] {
        scenario.deeds.push((Span::minutes(5), ExternalEvent::StopInstance(Which::Id(id.into()))));
    }
    scenario.wishes.push((Span::hours(2), UserAction::Ask(CommandVerb::ResetBreaker)));
    scenario
}

/// The node of one machine is ill for good.
pub fn dead_nodes() -> Scenario {
    let mut scenario = pool(5, 1, 0, |_| {});
    scenario.cluster = Some(ClusterSpec::default());
    scenario.deeds.push((Span::minutes(5), ExternalEvent::Sicken(Which::Id("0".into()), None)));
    scenario
}
