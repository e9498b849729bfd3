//! The sentence of one machine: what happens to it, or what it waits for, with the numbers, times and people behind it.

mod departure;
mod given_up;
mod outdated;

use std::fmt::{self, Display, Formatter};

use crate::api::v1::wire::Rfc3339;
use crate::model::action::{Action, MachineClass};
use crate::model::hold::{Hold, HoldReason};
use crate::model::machine::{Condition, Lifecycle, Machine, Protection};
use crate::model::plan::MachineReason as Why;
use crate::model::plan::{Decision, Input, MachineReport};
use crate::model::quantity::counted;
use crate::model::rollout::{Rollout, RolloutStage};

use departure::Departure;
use given_up::given_up;
use outdated::{OutdatedReason, Short};

pub(super) struct Say<'a> {
    pub input: &'a Input<'a>,
    pub planned: &'a Decision,
    pub machine: &'a MachineReport,
    pub seen: &'a Machine,
}

impl Display for Say<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.happens(f)?;
        self.departure().returns(f)
    }
}

const fn protected(protection: Protection) -> &'static str {
    match protection {
        Protection::All => "against scale-in and every other change",
        Protection::Unknown => "in a way that Poolkeeper cannot read",
        Protection::ScaleIn | Protection::None => "against scale-in",
    }
}

impl Say<'_> {
    fn happens(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.machine.why {
            Why::Fine
            | Why::Proving
            | Why::Settling
            | Why::Grace
            | Why::HeldByPerson
            | Why::ProtectedInCloud
            | Why::RevisionUnknown
            | Why::NotSeen
            | Why::AutoscalerRemoves => self.stays(f),
            Why::CloudDeletes
            | Why::Deleting
            | Why::Draining
            | Why::Ghost
            | Why::StuckDelete
            | Why::RequestLost
            | Why::ReasonEnded
            | Why::Updating
            | Why::CutOff
            | Why::Standby => self.under_way(f),
            Why::RemovedFailed
            | Why::RemovedNamed
            | Why::RemovedOutdated
            | Why::RemovedSurplus
            | Why::UpdatedInPlace
            | Why::Restored => self.acted_on(f),
            Why::FailedInTurn
            | Why::FailedBreaker
            | Why::NamedWaits
            | Why::WaitsOwner
            | Why::WaitsStopped
            | Why::WaitsPicture
            | Why::WaitsRefused
            | Why::Frozen => self.waits(f),
            Why::DrainBlocked if self.machine.class != MachineClass::Outdated => {
                write!(f, "{} since {}; ", condition(self.seen), Rfc3339(self.seen.since))?;
                self.drain_blocked(f)
            }
            Why::DrainBlocked
            | Why::Exception
            | Why::UpdateFailed
            | Why::WaitsFloor
            | Why::WaitsSurge
            | Why::WaitsRamp
            | Why::WaitsCheckpoint
            | Why::WaitsPaused
            | Why::WaitsFailing
            | Why::WaitsWindow
            | Why::WaitsAdoption
            | Why::WaitsOnDelete
            | Why::WaitsLast
            | Why::WaitsConfirmation
            | Why::WaitsRollout => {
                write!(f, "{}; ", self.outdated())?;
                self.outdated_waits(f)
            }
        }
    }

    /// Nothing is done, and nothing needs to be done.
    fn stays(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seen, policy) = (self.seen, self.input.policy);
        let (since, rollout) = (Rfc3339(seen.since), &policy.rollout);
        let due = |at| Rfc3339(self.machine.next_check_at.unwrap_or(at));
        match self.machine.why {
            Why::Proving => write!(
                f,
                "its disk is from {} and it is {}; it counts as failed if it is not available by {}",
                Rfc3339(seen.imaged),
                condition(seen),
                due(seen.imaged.plus(rollout.readiness_deadline))
            ),
            Why::Settling => write!(
                f,
                "ready since {since}; it counts as available after {}, at {}",
                rollout.min_ready,
                due(seen.since.plus(rollout.min_ready))
            ),
            Why::Grace if seen.condition == Condition::Ready => write!(
                f,
                "ready again since {since}; it counts as available at {}",
                due(seen.since.plus(rollout.min_ready))
            ),
            Why::Grace => write!(
                f,
                "{} since {since}; it will be replaced unless it recovers by {}",
                condition(seen),
                due(seen.since.plus(policy.repair.after))
            ),
            Why::HeldByPerson => {
                let (by, why) = seen.hold().map_or(("", ""), |hold| (&hold.by, &hold.why));
                write!(f, "held{}; nothing is done to it until it is released", Who(by, why))
            }
            Why::ProtectedInCloud if let Some(lock) = self.input.set.lock_of(&seen.id) => {
                write!(
                    f,
                    "{lock} protects it; Poolkeeper does not remove it, even on request, before the lock is removed: az lock delete --ids {}",
                    lock.id
                )
            }
            Why::ProtectedInCloud => write!(
                f,
                "protected in Azure {}; Poolkeeper does not remove it, even on request, before its instance protection is removed in Azure",
                protected(seen.protection)
            ),
            Why::RevisionUnknown => write!(
                f,
                "{} since {since} on an unknown revision, which never counts as outdated",
                condition(seen)
            ),
            Why::AutoscalerRemoves => write!(
                f,
                "the cluster-autoscaler drains and deletes it, since {since}; Poolkeeper leaves it alone"
            ),
            Why::NotSeen => self.not_seen(f),
            _ => match &seen.revision {
                Some(revision) => {
                    let name = self.planned.state.name(revision);
                    write!(f, "serves on {}, {} since {since}", Short(&name), condition(seen))
                }
                None => write!(f, "serves, {} since {since}", condition(seen)),
            },
        }
    }

    fn not_seen(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seen, since) = (self.seen, Rfc3339(self.seen.since));
        match seen.condition {
            Condition::Unknown if self.input.facts.nodes_anew.contains(&seen.id) => write!(
                f,
                "not visible since {since}: a new node has its id, and may be of another machine until it is a quarter of an hour old"
            ),
            Condition::Unknown => {
                write!(f, "not visible since {since}; nothing is done until it is visible")
            }
            _ => write!(
                f,
                "{} since {since}, together with many others; nothing is done unless it lasts",
                condition(seen)
            ),
        }
    }

    /// Something started earlier is still in progress.
    fn under_way(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seen = self.seen;
        let since = Rfc3339(seen.lifecycle_since);
        match self.machine.why {
            Why::CloudDeletes => {
                let at = Rfc3339(seen.since);
                write!(f, "being deleted since {at}, not by Poolkeeper")
            }
            Why::Draining => self.draining(f),
            Why::Ghost => f.write_str("deleted; the listing still shows it for a while"),
            Why::StuckDelete => self.departure().overdue_delete(f),
            Why::RequestLost if self.machine.lifecycle == Lifecycle::InService => {
                write!(
                    f,
                    "the request of {since} to remove it no longer holds; it is back in service"
                )
            }
            Why::RequestLost => {
                write!(f, "the request of {since} to remove it had no effect")?;
                self.at_next(f)
            }
            Why::ReasonEnded => {
                f.write_str("the reason to remove it is gone; it is back in service")
            }
            Why::Updating if seen.lifecycle == Lifecycle::Updating => {
                write!(f, "being updated in place since {since}")
            }
            Why::Updating => {
                write!(f, "draining since {since}, to be updated in place")?;
                self.departure().drain(f)
            }
            Why::CutOff => write!(f, "out of service, and still running, since {since}"),
            Why::Standby if seen.condition == Condition::Stopped => {
                write!(f, "deallocated since {since}")
            }
            Why::Standby if seen.lifecycle != Lifecycle::Standby => {
                f.write_str("this plan switches it off")
            }
            Why::Standby => write!(f, "being switched off since {since}"),
            _ if seen.lifecycle == Lifecycle::Deleting => self.departure().delete(f),
            _ => f.write_str("its delete is sent now"),
        }
    }

    const fn outdated(&self) -> OutdatedReason<'_> {
        OutdatedReason { input: self.input, planned: self.planned, seen: self.seen }
    }

    const fn departure(&self) -> Departure<'_> {
        Departure { input: self.input, seen: self.seen }
    }

    fn draining(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.machine.lifecycle == Lifecycle::Drained {
            let off = self.input.policy.switches_off();
            let next = if off { "drained; it leaves next" } else { "drained; it is deleted next" };
            return f.write_str(next);
        }
        write!(f, "draining since {}", Rfc3339(self.seen.lifecycle_since))?;
        self.departure().drain(f)
    }

    /// This plan acts on it.
    fn acted_on(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seen = self.seen;
        let numbers = &self.planned.report.numbers;
        f.write_str(match (self.machine.why, self.machine.lifecycle) {
            (Why::Restored, _) => return f.write_str("this plan puts it back into service"),
            (Why::UpdatedInPlace, Lifecycle::Draining) => {
                "this plan drains it for an update in place: "
            }
            (Why::UpdatedInPlace, _) => "this plan updates it in place: ",
            (_, Lifecycle::CutOff) => "this plan takes it out of service: ",
            (Why::RemovedSurplus, Lifecycle::Draining) if self.input.policy.switches_off() => {
                "this plan drains it; it is switched off once drained: "
            }
            (_, Lifecycle::Draining) => "this plan drains it; it is deleted once drained: ",
            _ => "this plan deletes it: ",
        })?;
        match self.machine.why {
            Why::RemovedFailed => {
                write!(f, "{} since {}", condition(seen), Rfc3339(seen.since))?;
                let never = !seen.ever_available;
                f.write_str(if never { " and never served" } else { "" })
            }
            Why::RemovedNamed => {
                let (by, why) = self.requested();
                write!(f, "requested{}", Who(by, why))?;
                let now = seen.delete_request().is_some_and(|asked| asked.now);
                f.write_str(if now { ", accepting the loss" } else { "" })
            }
            Why::RemovedSurplus => {
                write!(f, "surplus, {} existing and {} desired", numbers.exist, numbers.desired)
            }
            _ => self.outdated().fmt(f),
        }
    }

    /// Who asked for its deletion, and why: by its own mark, or by the order that scaled the pool.
    fn requested(&self) -> (&str, &str) {
        match (self.seen.delete_request(), &self.planned.state.scale) {
            (Some(asked), _) => (&asked.by, &asked.why),
            (None, Some(order)) => (&order.by, &order.why),
            (None, None) => ("", ""),
        }
    }

    /// A change is due but waits.
    fn waits(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seen, repair) = (self.seen, &self.input.policy.repair);
        let numbers = &self.planned.report.numbers;
        match self.machine.why {
            Why::FailedInTurn => write!(
                f,
                "{} since {}; waits for repair: {} failed, at most {} repaired at a time",
                condition(seen),
                Rfc3339(seen.since),
                numbers.failed,
                repair.max_at_once
            ),
            Why::FailedBreaker => write!(
                f,
                "{} since {}; the repair breaker is open, because more than {}% of {} failed within {}",
                condition(seen),
                Rfc3339(seen.since),
                repair.breaker_percent,
                counted(numbers.desired as usize, "machine"),
                repair.window
            ),
            Why::NamedWaits => {
                let (by, why) = self.requested();
                write!(f, "delete requested{}; ", Who(by, why))?;
                self.floor_waits(f)
            }
            Why::Frozen => f.write_str(
                "no action: the plan would violate an invariant, and the pool is frozen",
            ),
            why => {
                let blind = |hold: &Hold| hold.reason == HoldReason::HealthBlind;
                let refused = |hold: &Hold| hold.reason == HoldReason::PlatformConflict;
                let waits = match why {
                    Why::WaitsRefused => "the back-off of a refused delete",
                    Why::WaitsStopped => "`resume-all`: all pools are stopped",
                    Why::WaitsOwner => "a person to take over the scale set from its other owner",
                    _ if self.planned.report.holds.iter().any(blind) => {
                        "more machines of the pool to be visible"
                    }
                    _ if self.planned.report.holds.iter().any(refused) => {
                        "the scale set's eviction policy to fit the owner of its size"
                    }
                    _ => "a complete and fresh listing",
                };
                if self.machine.class == MachineClass::Outdated {
                    return write!(f, "{}; waits for {waits}", self.outdated());
                }
                write!(f, "{} since {}; waits for {waits}", condition(seen), Rfc3339(seen.since))
            }
        }
    }

    /// The machine is outdated; says what keeps it.
    fn outdated_waits(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = &self.planned.report;
        let (numbers, resolved, rollout) = (&report.numbers, &report.resolved, &report.rollout);
        match self.machine.why {
            Why::DrainBlocked => self.drain_blocked(f),
            Why::Exception => {
                f.write_str("its removal was blocked repeatedly; the rollout ended without it")
            }
            Why::UpdateFailed => f.write_str(
                "its update in place did not reach the target revision and is not retried",
            ),
            Why::WaitsFloor => self.floor_waits(f),
            Why::WaitsConfirmation => write!(
                f,
                "waits: {} existing, {} desired, and the removal of the rest is not approved",
                numbers.exist, numbers.desired
            ),
            Why::WaitsSurge => write!(
                f,
                "waits for a new machine to become available: {} of {} available, {} of at most {} existing",
                numbers.available, resolved.floor, numbers.total, resolved.ceiling
            ),
            Why::WaitsRamp => write!(
                f,
                "waits for the ramp: {} new, {} of them available",
                numbers.current, numbers.proven
            ),
            Why::WaitsCheckpoint => {
                write!(f, "waits at a checkpoint with {} of {} done", rollout.done, rollout.total)
            }
            Why::WaitsPaused => match self.rollout().map(|rollout| &rollout.stage) {
                Some(RolloutStage::Paused { by, why, at }) => {
                    write!(f, "the rollout is paused since {}{}", Rfc3339(*at), Who(by, why))
                }
                _ => f.write_str("the rollout is paused"),
            },
            Why::WaitsFailing => match self.rollout().map(|rollout| &rollout.stage) {
                Some(RolloutStage::Failing { why, at }) => {
                    write!(f, "the rollout stopped at {}: {why}", Rfc3339(*at))
                }
                _ => f.write_str("the rollout stopped after failures"),
            },
            Why::WaitsWindow => {
                let changes = self.input.policy.windows.at(self.input.now).changes;
                f.write_str("waits for its window")?;
                changes.map_or(Ok(()), |at| write!(f, ", which may open at {}", Rfc3339(at)))
            }
            Why::WaitsAdoption => {
                f.write_str("only Azure's `latestModelApplied` says so; `refresh` starts it")
            }
            Why::WaitsOnDelete => {
                f.write_str("replaced only when an operator names it (`method: onDelete`)")
            }
            Why::WaitsLast => {
                f.write_str("the last available machine; it waits until another is available")
            }
            _ => f.write_str("no rollout is open"),
        }
    }

    /// It waits for its turn, or for the floor.
    fn floor_waits(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (available, floor) =
            (self.planned.report.numbers.available, self.planned.report.resolved.floor);
        let leave = |action: &Action| match action {
            Action::Drain { targets, .. }
            | Action::Delete { targets, .. }
            | Action::Reimage { targets, .. } => targets.len(),
            _ => 0,
        };
        let leaving: usize = self.planned.actions.iter().map(leave).sum();
        match leaving {
            0 if available > floor => {
                write!(f, "waits until another is available: {available} available")
            }
            0 => write!(f, "waits: {available} available, the floor is {floor}"),
            n => {
                write!(
                    f,
                    "waits for its turn: {n} before it, {available} available, the floor is {floor}"
                )
            }
        }
    }

    fn drain_blocked(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (state, key) = (&self.planned.state, self.seen.key());
        let both = || state.blocked.iter().chain(&state.key_backoff).filter(|b| b.key == key);
        let stands = both().find(|known| known.until > self.input.now);
        let blocked = stands.or_else(|| state.blocked.iter().find(|b| b.key == key));
        let code = blocked.and_then(|blocked| blocked.code.as_deref());
        let why = blocked.and_then(|of| given_up(of, &self.input.policy.drain.hooks));
        if let Some((blocked, (end, why))) = blocked.zip(why) {
            let at = Rfc3339(blocked.at);
            write!(f, "its drain {end} at {at}: {why}; it stays, and Poolkeeper retries")?;
            return self.at_next(f);
        }
        f.write_str("its drain or removal was refused")?;
        if let Some(blocked) = blocked {
            let code = code.unwrap_or_default();
            let (open, close) = if code.is_empty() { ("", "") } else { (" (", ")") };
            write!(f, " at {}{open}{code}{close}", Rfc3339(blocked.at))?;
        }
        f.write_str(", so it stays; Poolkeeper retries")?;
        self.at_next(f)
    }

    fn at_next(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.machine.next_check_at.map_or(Ok(()), |at| write!(f, " at {}", Rfc3339(at)))
    }

    fn rollout(&self) -> Option<&Rollout> {
        self.planned.state.rollout.as_ref()
    }
}

/// Who asked and why, as far as the request says: ` by ann (its disk is slow)`.
struct Who<'a>(&'a str, &'a str);

impl Display for Who<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() {
            write!(f, " by {}", self.0)?;
        }
        if !self.1.is_empty() {
            write!(f, " ({})", self.1)?;
        }
        Ok(())
    }
}

fn condition(machine: &Machine) -> &'static str {
    match machine.condition {
        Condition::Provisioning => "booting",
        Condition::Ready => "ready",
        Condition::Unready => "not ready",
        Condition::Failed => "failed",
        Condition::Deleting => "being deleted",
        Condition::Stopped => "stopped",
        Condition::Unknown => "not seen",
    }
}
