//! The picture the laws are read against: where each machine stands, what the plan does to it, and the numbers of the
//! pool. Counted here from the lists, not taken from the planner's report.

use super::Case;
use super::marks;
use super::names::{DELETING, EXCEPTED, Found, OFF, TRIED};
use super::pending;
use super::standing::{Dark, standing};
use crate::model::action::{Because, Target, Verb};
use crate::model::ids::{Key, Revision};
use crate::model::machine::{Condition, Evidence, Machine, Protection};
use crate::model::policy::{Adopt, Method, Owner, Policy};
use crate::model::quantity::Quantity;
use crate::model::revision::differs;
use crate::model::rollout::{Rollout, Stage};
use crate::model::time::{Span, Time};

/// Where a machine stands. First that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its delete succeeded, and a complete listing lacked it.
    Gone,
    /// Its delete succeeded, and rows still show it.
    Ghost,
    Leaving,
    Gray,
    Unknown,
    Updating,
    Ready,
    Failed,
    /// Never served yet.
    Young,
    /// Served, and does not now.
    Unready,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) standing: Standing,
    pub(super) found: Found,
    /// For certain off target, named, or over age.
    pub(super) outdated: bool,
    /// On target beyond doubt of the planner's leeway.
    pub(super) current: bool,
    /// Off target only as the cloud's own flag has it, and the flag does not count.
    pub(super) flag_only: bool,
    /// Held by a person, protected, of unknown revision, or not named where only names count.
    pub(super) kept: bool,
    pub(super) hit: Hit,
}

/// What the plan does to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hit {
    None,
    /// Taken back into service.
    Restored,
    Updated,
    /// Drained or deleted.
    Removed(Because),
}

/// One target of the plan, and the machine it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aim<'a> {
    pub(super) verb: Verb,
    pub(super) target: &'a Target,
    pub(super) machine: Option<u32>,
}

/// Machines by where they stand. Signed: differences are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Tally {
    /// As billed: all that are listed, less what may be left out.
    pub(super) live: i64,
    /// Left out of `live`: being deleted where that does not count, or written off.
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
    /// Exist, and are on target beyond doubt.
    pub(super) current: i64,
    /// Failed, and on target beyond doubt.
    pub(super) failed_current: i64,
    /// Exist, and nothing says for certain that they are outdated.
    pub(super) on_target: i64,
    /// Serve, and nothing says for certain that they are outdated.
    pub(super) fit: i64,
    pub(super) named: i64,
    pub(super) kept: i64,
    /// Exist, outdated, may be touched, and are not named.
    pub(super) out: i64,
    /// Exist, outdated, and this plan leaves them.
    pub(super) outdated_left: i64,
    /// Of those to be replaced, the ones that this plan does not replace: what it takes as surplus is not replaced.
    pub(super) to_replace: i64,
}

#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) case: &'a Case<'a>,
    /// When the plan was made: what the clock alone changed since then is forgiven.
    pub(super) at: Time,
    pub(super) desired: i64,
    pub(super) surge: i64,
    pub(super) unavailable: i64,
    pub(super) looks: Vec<Look>,
    pub(super) aims: Vec<Aim<'a>>,
    pub(super) tally: Tally,
    /// Machines raised for and not yet seen.
    pub(super) pending: i64,
}

impl<'a> Scene<'a> {
    pub(super) fn of(case: &'a Case<'a>) -> Self {
        let at = case.planned.report.at.max(case.set.read_at).min(case.now);
        let desired = i64::from(case.planned.report.numbers.desired);
        let (surge, unavailable) = budget(case.policy, desired);
        let mut aims = aims(case);
        let names = marks::names(case, &aims, at);
        let mut scene = Self {
            case,
            at,
            desired,
            surge,
            unavailable,
            looks: Vec::with_capacity(case.machines.len()),
            aims: Vec::new(),
            tally: Tally::default(),
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
            let look = look(machine, found, aim, case.policy, &mut age, dark, at);
            scene.tally.add(machine, &look, case.policy);
            scene.looks.push(look);
        }
        scene.aims = aims;
        scene
    }

    pub(super) const fn floor(&self) -> i64 {
        self.desired - self.unavailable
    }

    pub(super) const fn ceiling(&self) -> i64 {
        self.desired + self.surge
    }

    pub(super) fn machine(&self, aim: &Aim) -> Option<(&'a Machine, &Look)> {
        let index = aim.machine? as usize;
        Some((self.case.machines.get(index)?, self.looks.get(index)?))
    }

    /// Aims that take something from the pool, with the machines they are at.
    pub(super) fn losses(&self) -> impl Iterator<Item = (&Aim<'a>, &'a Machine, &Look)> {
        let taking = |aim: &&Aim| aim.verb != Verb::Restore;
        let aims = self.aims.iter().filter(taking);
        aims.filter_map(|aim| self.machine(aim).map(|(machine, look)| (aim, machine, look)))
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a Machine, &Look)> {
        self.case.machines.iter().zip(&self.looks)
    }

    pub(super) const fn rollout(&self) -> Option<&'a Rollout> {
        self.case.planned.state.rollout.as_ref()
    }

    /// What the one raise adds; nothing where there is none.
    pub(super) fn raised(&self) -> i64 {
        use crate::model::action::Action;
        let raises = self.case.planned.actions.iter().filter_map(|action| match action {
            Action::Raise { from, to, .. } => Some(i64::from(*to) - i64::from(*from)),
            _ => None,
        });
        raises.map(|more| more.max(0)).sum()
    }

    /// Anything is done beside taking machines back into service.
    pub(super) fn has_effect(&self) -> bool {
        self.case.planned.actions.iter().any(|action| action.verb() != Verb::Restore)
    }

    pub(super) fn keys(&self, which: impl Fn(&Aim, Option<(&Machine, &Look)>) -> bool) -> Vec<Key> {
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
    }
}

impl Look {
    pub(super) const fn exists(&self) -> bool {
        use Standing::{Ready, Unknown, Unready, Updating, Young};
        matches!(self.standing, Young | Ready | Unready | Updating | Unknown)
    }

    pub(super) const fn removed(&self) -> Option<Because> {
        match self.hit {
            Hit::Removed(because) => Some(because),
            _ => None,
        }
    }

    /// Drained, deleted or updated by this plan.
    pub(super) const fn taken(&self) -> bool {
        matches!(self.hit, Hit::Updated | Hit::Removed(_))
    }
}

/// S and U from their spellings: surge rounds up, unavailable down and never above D; where both come out as nothing,
/// one may be unavailable, or nothing could ever be replaced.
fn budget(policy: &Policy, desired: i64) -> (i64, i64) {
    let surge = part(policy.rollout.max_surge, desired, 99);
    let unavailable = part(policy.rollout.max_unavailable, desired, 0).min(desired);
    // Who owns the size of a set reads our surge as theirs.
    let surge = if policy.owner == Owner::ScaleSet { surge.min(1) } else { surge };
    if surge == 0 && unavailable == 0 && desired > 0 { (0, 1) } else { (surge, unavailable) }
}

/// A number of machines as people spelled it, or so many of each hundred of `whole`; `up` is 99 to round up, 0 to
/// round down.
pub(super) fn part(spelled: Quantity, whole: i64, up: i64) -> i64 {
    let text = spelled.to_string();
    let number = |digits: &str| digits.parse::<i64>().unwrap_or(0);
    match text.strip_suffix('%') {
        Some(percent) => (whole * number(percent) + up) / 100,
        None => number(&text),
    }
}

fn aims<'a>(case: &Case<'a>) -> Vec<Aim<'a>> {
    let each = case.planned.actions.iter();
    each.flat_map(|action| {
        let verb = action.verb();
        action.targets().iter().map(move |target| Aim { verb, target, machine: None })
    })
    .collect()
}

/// What makes a machine outdated, beside its name.
struct Age<'a> {
    target: Option<&'a Revision>,
    /// Disks that started before this are over age.
    before: Option<Time>,
    /// Disks that started before this may be counted as over age: ages are bunched.
    maybe_before: Option<Time>,
    /// A revision that is off target, as found last: most machines share one.
    known_off: Option<&'a Revision>,
    /// The cloud's own flag counts for machines born before this, once it counts at all.
    flag_before: Option<Time>,
}

impl<'a> Age<'a> {
    fn of(case: &Case<'a>, at: Time) -> Self {
        let state = &case.planned.state;
        // Who passes within a tenth of the age may be covered as well; which are, the memory says.
        let soon = case.policy.rollout.max_age.map(|age| {
            let tenth = Span::from_millis(age.millis() / 10);
            at.minus(age).plus(tenth)
        });
        // At first sight the flag counts beside better evidence only, or if the policy says so.
        let target = target(case);
        let off = |m: &Machine| {
            let other = |to: &Revision| m.revision.as_ref().is_some_and(|has| differs(has, to));
            target.is_some_and(other) && m.evidence != Evidence::Advisory
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

/// The revision that counts as "on target": where the rollout goes, or what it left once it is failing.
pub(super) fn target<'a>(case: &Case<'a>) -> Option<&'a Revision> {
    let planned = case.planned;
    match &planned.state.rollout {
        Some(Rollout { stage: Stage::Failing { .. }, from, to, .. }) => {
            from.as_ref().or(planned.report.rollout.reference.as_ref()).or(Some(to))
        }
        Some(rollout) => Some(&rollout.to),
        None => planned.state.wanted.as_ref().or(Some(&case.set.revision)),
    }
}

fn look<'a>(
    machine: &'a Machine,
    found: Found,
    aim: Option<&Aim>,
    policy: &Policy,
    age: &mut Age<'a>,
    dark: Option<Dark>,
    at: Time,
) -> Look {
    let off_target = age.is_off(machine.revision.as_ref());
    let named = machine.delete_request().is_some();
    let older = |limit: Option<Time>| limit.is_some_and(|limit| machine.imaged < limit);
    let believed = machine.evidence != Evidence::Advisory
        || age.flag_before.is_some_and(|before| machine.created < before);
    // Protection from scale-in is none from an update of what stays.
    let updated = policy.rollout.method == Method::Reimage;
    let protected = match machine.protection {
        Protection::None => false,
        Protection::ScaleIn => !updated,
        Protection::All | Protection::Unknown => true,
    };
    let held = protected || machine.hold().is_some();
    let unasked = policy.rollout.method == Method::OnDelete && !named;
    let outdated = (off_target && believed) || named || older(age.before);
    Look {
        standing: standing(machine, found, policy, dark, at),
        found,
        outdated,
        current: !(off_target || named || older(age.maybe_before)),
        flag_only: off_target && !believed && !named && !older(age.maybe_before),
        kept: held
            || machine.revision.is_none()
            || unasked
            || found.has(TRIED)
            || found.has(EXCEPTED),
        hit: aim.map_or(Hit::None, |aim| match aim.verb {
            Verb::Drain | Verb::Delete => Hit::Removed(aim.target.because),
            Verb::Reimage => Hit::Updated,
            _ => Hit::Restored,
        }),
    }
}

impl Tally {
    fn add(&mut self, machine: &Machine, look: &Look, policy: &Policy) {
        let deleting = look.standing == Standing::Ghost
            || machine.condition == Condition::Deleting
            || look.found.has(DELETING);
        let leaving = matches!(look.standing, Standing::Leaving | Standing::Ghost);
        let off = look.found.has(OFF) && leaving;
        match look.standing {
            Standing::Gone => return,
            _ if off || (deleting && !policy.rollout.count_deleting) => self.excused += 1,
            _ => self.live += 1,
        }
        match look.standing {
            Standing::Gone | Standing::Ghost => return,
            // Nobody waits for what was written off.
            Standing::Leaving => self.leaving += i64::from(!off),
            Standing::Gray => self.gray += 1,
            Standing::Unknown => self.unknown += 1,
            Standing::Updating => self.updating += 1,
            Standing::Ready => self.ready += 1,
            Standing::Failed => {
                self.failed += 1;
                self.failed_current += i64::from(look.current && !look.taken());
            }
            Standing::Young => self.young += 1,
            Standing::Unready => self.unready += 1,
        }
        if look.exists() {
            self.add_existing(machine, look);
        }
    }

    fn add_existing(&mut self, machine: &Machine, look: &Look) {
        let named = machine.delete_request().is_some();
        let stays = !look.taken();
        self.exist += 1;
        self.current += i64::from(look.current);
        self.on_target += i64::from(!look.outdated);
        self.fit += i64::from(!look.outdated && look.standing == Standing::Ready);
        self.named += i64::from(named);
        self.kept += i64::from(look.outdated && look.kept);
        self.out += i64::from(look.outdated && !look.kept && !named);
        self.outdated_left += i64::from(look.outdated && stays);
        let replaced = !stays && look.removed() != Some(Because::Surplus);
        self.to_replace += i64::from(look.outdated && !look.kept && !replaced);
    }
}
