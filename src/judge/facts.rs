//! The view that the laws are judged against: the state of each machine, what the plan does to it, and the numbers of
//! the pool. Counted here from the lists, not taken from the planner's report.

use super::Case;
use super::machine_index::{DELETING, EXCEPTED, MachineMatch, OFF, TRIED};
use super::machine_view::{Aim, Hit, MachineState, MachineView};
use super::marks;
use super::pending;
use super::standing::{Dark, standing};
use crate::model::action::{ActionKind, RemovalReason};
use crate::model::ids::{Key, Revision};
use crate::model::machine::{Condition, Evidence, Machine, Protection};
use crate::model::policy::{Adopt, Checkpoint, Method, Owner, Policy};
use crate::model::quantity::Quantity;
use crate::model::revision::differs;
use crate::model::rollout::Rollout;
use crate::model::time::{Span, Time};

/// Numbers of machines by state. Signed, because they are subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct MachineCounts {
    /// As billed: all listed machines, less those that do not count.
    pub(super) live: i64,
    /// Not counted in `live`: being deleted where that does not count, or written off.
    pub(super) excused: i64,
    pub(super) exist: i64,
    pub(super) failed: i64,
    pub(super) leaving: i64,
    pub(super) ready: i64,
    pub(super) unready: i64,
    pub(super) young: i64,
    pub(super) updating: i64,
    pub(super) unknown: i64,
    pub(super) gray: i64,
    /// Exist, and are certainly on target.
    pub(super) current: i64,
    /// Failed, and certainly on target.
    pub(super) failed_current: i64,
    /// Exist, and nothing proves them outdated.
    pub(super) on_target: i64,
    /// Serve, and nothing proves them outdated.
    pub(super) fit: i64,
    pub(super) named: i64,
    pub(super) kept: i64,
    /// Exist, outdated, may be touched, and not named.
    pub(super) out: i64,
    /// Exist, outdated, and this plan leaves them.
    pub(super) outdated_left: i64,
    /// Machines to be replaced that this plan does not replace: surplus that it takes is not replaced.
    pub(super) to_replace: i64,
}

#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) case: &'a Case<'a>,
    /// Time of the plan: changes since then that the clock alone caused are forgiven.
    pub(super) at: Time,
    pub(super) desired: i64,
    pub(super) surge: i64,
    pub(super) unavailable: i64,
    pub(super) looks: Vec<MachineView>,
    pub(super) aims: Vec<Aim<'a>>,
    pub(super) tally: MachineCounts,
    /// Machines raised for and not seen yet.
    pub(super) pending: i64,
}

impl<'a> View<'a> {
    pub(super) fn of(case: &'a Case<'a>) -> Self {
        let at = case.planned.report.at.max(case.set.read_at).min(case.now);
        let desired = i64::from(case.planned.report.numbers.desired);
        let (surge, unavailable) = budget(case, desired);
        let mut aims = aims(case);
        let names = marks::names(case, &aims, at);
        let mut view = Self {
            case,
            at,
            desired,
            surge,
            unavailable,
            looks: Vec::with_capacity(case.machines.len()),
            aims: Vec::new(),
            tally: MachineCounts::default(),
            pending: pending::count(case),
        };
        let mut age = Age::of(case, at);
        let dark = Dark::of(case, at);
        for (index, machine) in (0_u32..).zip(case.machines) {
            let found = names.of(machine, |aim| {
                if let Some(aim) = aims.get_mut(aim as usize) {
                    aim.machine = Some(index);
                }
            });
            let aim = found.aim.and_then(|aim| aims.get(aim as usize));
            let look = look(machine, found, aim, case, &mut age, dark, at);
            view.tally.add(machine, &look, case.policy);
            view.looks.push(look);
        }
        view.aims = aims;
        view
    }

    pub(super) const fn floor(&self) -> i64 {
        self.desired - self.unavailable
    }

    pub(super) const fn ceiling(&self) -> i64 {
        self.desired + self.surge
    }

    pub(super) fn machine(&self, aim: &Aim) -> Option<(&'a Machine, &MachineView)> {
        let index = aim.machine? as usize;
        Some((self.case.machines.get(index)?, self.looks.get(index)?))
    }

    /// Aims that take something from the pool, with their machines.
    pub(super) fn losses(&self) -> impl Iterator<Item = (&Aim<'a>, &'a Machine, &MachineView)> {
        let taking = |aim: &&Aim| aim.verb != ActionKind::Restore;
        let aims = self.aims.iter().filter(taking);
        aims.filter_map(|aim| self.machine(aim).map(|(machine, look)| (aim, machine, look)))
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a Machine, &MachineView)> {
        self.case.machines.iter().zip(&self.looks)
    }

    pub(super) const fn rollout(&self) -> Option<&'a Rollout> {
        self.case.planned.state.rollout.as_ref()
    }

    /// What the one raise adds; 0 without a raise.
    pub(super) fn raised(&self) -> i64 {
        use crate::model::action::Action;
        let raises = self.case.planned.actions.iter().filter_map(|action| match action {
            Action::Raise { from, to, .. } => Some(i64::from(*to) - i64::from(*from)),
            _ => None,
        });
        raises.map(|more| more.max(0)).sum()
    }

    /// The plan does something besides returning machines to service.
    pub(super) fn has_effect(&self) -> bool {
        self.case.planned.actions.iter().any(|action| action.verb() != ActionKind::Restore)
    }

    pub(super) fn keys(
        &self,
        which: impl Fn(&Aim, Option<(&Machine, &MachineView)>) -> bool,
    ) -> Vec<Key> {
        let bad = self.aims.iter().filter(|aim| which(aim, self.machine(aim)));
        bad.map(|aim| aim.target.key()).collect()
    }

    pub(super) fn at_goal(&self) -> bool {
        let tally = &self.tally;
        let moving = tally.leaving + tally.failed + tally.young + tally.unready;
        let unseen = tally.updating + tally.unknown + tally.gray + self.pending;
        let kept = tally.kept;
        moving + unseen + tally.out + tally.named == 0
            && tally.fit == (self.desired - kept).max(0)
            && self.rollout().is_none()
            && self.case.planned.state.suspension.is_none()
    }
}

/// S and U from the policy: surge rounds up; unavailable rounds down and never exceeds D. If both are 0, one may be
/// unavailable, or nothing could ever be replaced.
fn budget(case: &Case, desired: i64) -> (i64, i64) {
    let policy = case.policy;
    let surge = part(policy.rollout.max_surge, desired, 99);
    let unavailable = part(policy.rollout.max_unavailable, desired, 0).min(desired);
    // The owner of a set's size would take our surge for its own change.
    let alone = policy.owner == Owner::Pool || super::autoscaler::is_off(case);
    let surge = if alone { surge } else { surge.min(1) };
    let (asked, room) = (surge, super::autoscaler::room(case, desired));
    // An autoscaler that stays on takes back what is above its maximum.
    let surge = room.map_or(surge, |room| surge.min(room));
    if asked == 0 && unavailable == 0 && desired > 0 { (0, 1) } else { (surge, unavailable) }
}

/// A number of machines as written in the policy, or that percentage of `whole`; `up` is 99 to round up, 0 to round
/// down.
pub(super) fn part(spelled: Quantity, whole: i64, up: i64) -> i64 {
    let text = spelled.to_string();
    let number = |digits: &str| digits.parse::<i64>().unwrap_or(0);
    match text.strip_suffix('%') {
        Some(percent) => (whole * number(percent) + up) / 100,
        None => number(&text),
    }
}

/// The checkpoint that a rollout has not passed yet, unless a person skipped them all.
pub(super) fn ahead<'a>(policy: &'a Policy, rollout: &Rollout) -> Option<&'a Checkpoint> {
    let left = policy.rollout.checkpoints.iter().skip(rollout.passed as usize);
    left.take(usize::from(!rollout.full)).next()
}

/// The number of machines at which a rollout reaches this checkpoint.
pub(super) fn reached_at(checkpoint: &Checkpoint, rollout: &Rollout) -> i64 {
    part(checkpoint.at, i64::from(rollout.covered), 99).max(1)
}

fn aims<'a>(case: &Case<'a>) -> Vec<Aim<'a>> {
    let each = case.planned.actions.iter();
    each.flat_map(|action| {
        let verb = action.verb();
        action.targets().iter().map(move |target| Aim { verb, target, machine: None })
    })
    .collect()
}

/// What makes a machine outdated, besides being named.
struct Age<'a> {
    target: Option<&'a Revision>,
    /// Disks from before this are over age.
    before: Option<Time>,
    /// Disks from before this may count as over age: the planner batches ages.
    maybe_before: Option<Time>,
    /// The last revision found off target: most machines share one.
    known_off: Option<&'a Revision>,
    /// The cloud's own flag, if it counts at all, counts for machines created before this.
    flag_before: Option<Time>,
}

impl<'a> Age<'a> {
    fn of(case: &Case<'a>, at: Time) -> Self {
        let state = &case.planned.state;
        // A rollout may cover machines within a tenth of the age too; the memory says which.
        let soon = case.policy.rollout.max_age.map(|age| {
            let tenth = Span::from_millis(age.millis() / 10);
            at.minus(age).plus(tenth)
        });
        // At first sight the flag counts only beside better evidence, or if the policy says so.
        let target = case.target();
        let off = |m: &Machine| {
            let other = |to: &Revision| m.revision.as_ref().is_some_and(|has| differs(has, to));
            target.is_some_and(other) && m.evidence != Evidence::LatestModelApplied
        };
        let agreed = case.before.is_some()
            || case.policy.adopt == Adopt::Roll
            || case.machines.iter().any(off);
        Self {
            target,
            known_off: None,
            before: state.refresh_before.filter(|_| state.rollout.is_some()),
            maybe_before: soon.max(state.refresh_before),
            flag_before: state.advisory_before.filter(|_| !state.advisory_held && agreed),
        }
    }

    fn is_off(&mut self, revision: Option<&'a Revision>) -> bool {
        let (Some(target), Some(has)) = (self.target, revision) else { return false };
        if has == target {
            return false;
        }
        if self.known_off != Some(has) && differs(has, target) {
            self.known_off = Some(has);
        }
        self.known_off == Some(has)
    }
}

fn look<'a>(
    machine: &'a Machine,
    found: MachineMatch,
    aim: Option<&Aim>,
    case: &Case,
    age: &mut Age<'a>,
    dark: Option<Dark>,
    at: Time,
) -> MachineView {
    let policy = case.policy;
    let off_target = age.is_off(machine.revision.as_ref());
    let named = machine.delete_request().is_some();
    let older = |limit: Option<Time>| limit.is_some_and(|limit| machine.imaged < limit);
    let believed = machine.evidence != Evidence::LatestModelApplied
        || age.flag_before.is_some_and(|before| machine.created < before);
    // Scale-in protection does not protect from an update of a machine that stays.
    let updated = policy.rollout.method == Method::Reimage;
    let protected = match machine.protection {
        Protection::None => false,
        Protection::ScaleIn => !updated,
        Protection::All | Protection::Unknown => true,
    };
    let held = protected || machine.hold().is_some();
    let past_budgets = policy.rollout.method == Method::OnDelete && !named;
    let outdated = (off_target && believed) || named || older(age.before);
    MachineView {
        standing: standing(machine, found, case, dark, at),
        found,
        outdated,
        current: !(off_target || named || older(age.maybe_before)),
        flag_only: off_target && !believed && !named && !older(age.maybe_before),
        kept: held
            || machine.revision.is_none()
            || past_budgets
            || found.has(TRIED)
            || found.has(EXCEPTED),
        hit: aim.map_or(Hit::None, |aim| match aim.verb {
            ActionKind::CutOff | ActionKind::Drain | ActionKind::Standby | ActionKind::Delete => {
                Hit::Removed(aim.target.because)
            }
            ActionKind::Reimage => Hit::Updated,
            _ => Hit::Restored,
        }),
    }
}

impl MachineCounts {
    fn add(&mut self, machine: &Machine, look: &MachineView, policy: &Policy) {
        let deleting = look.standing == MachineState::Ghost
            || machine.condition == Condition::Deleting
            || look.found.has(DELETING);
        let leaving = matches!(look.standing, MachineState::Leaving | MachineState::Ghost);
        let off = look.found.has(OFF) && leaving;
        match look.standing {
            MachineState::Gone => return,
            _ if off || (deleting && !policy.rollout.count_deleting) => self.excused += 1,
            _ => self.live += 1,
        }
        match look.standing {
            MachineState::Gone | MachineState::Ghost => return,
            // No law waits for a written-off machine.
            MachineState::Leaving => self.leaving += i64::from(!off),
            MachineState::Gray => self.gray += 1,
            MachineState::Unknown => self.unknown += 1,
            MachineState::Updating => self.updating += 1,
            MachineState::Ready => self.ready += 1,
            MachineState::Failed => {
                self.failed += 1;
                self.failed_current += i64::from(look.current && !look.taken());
            }
            MachineState::Young => self.young += 1,
            MachineState::Unready => self.unready += 1,
        }
        if look.exists() {
            self.add_existing(machine, look);
        }
    }

    fn add_existing(&mut self, machine: &Machine, look: &MachineView) {
        let named = machine.delete_request().is_some();
        let stays = !look.taken();
        self.exist += 1;
        self.current += i64::from(look.current);
        self.on_target += i64::from(!look.outdated);
        self.fit += i64::from(!look.outdated && look.standing == MachineState::Ready);
        self.named += i64::from(named);
        self.kept += i64::from(look.outdated && look.kept);
        self.out += i64::from(look.outdated && !look.kept && !named);
        self.outdated_left += i64::from(look.outdated && stays);
        let replaced = !stays && look.removed() != Some(RemovalReason::Surplus);
        self.to_replace += i64::from(look.outdated && !look.kept && !replaced);
    }
}
