//! The sentence of one machine: what happens to it, or what it waits for, with the numbers, times and people behind it.

use std::fmt::{self, Display, Formatter};

use crate::api::v1::wire::Shown;
use crate::model::action::{Action, Class};
use crate::model::budget::{Hold, HoldReason};
use crate::model::machine::{Condition, Lifecycle, Machine, Protection};
use crate::model::plan::{Input, MachineReport, Planned, Why};
use crate::model::quantity::counted;
use crate::model::rollout::{Rollout, Stage};
use crate::model::time::Time;

pub(super) struct Say<'a> {
    pub input: &'a Input<'a>,
    pub planned: &'a Planned,
    pub machine: &'a MachineReport,
    pub seen: &'a Machine,
}

impl Display for Say<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.machine.why {
            Why::Fine
            | Why::Proving
            | Why::Settling
            | Why::Grace
            | Why::HeldByPerson
            | Why::ProtectedInCloud
            | Why::RevisionUnknown
            | Why::NotSeen => self.stays(f),
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
            | Why::SurplusWaits
            | Why::WaitsOwner
            | Why::WaitsPicture
            | Why::WaitsRefused
            | Why::Frozen => self.waits(f),
            Why::DrainBlocked if self.machine.class != Class::Outdated => {
                write!(f, "{} since {}; ", condition(self.seen), Shown(self.seen.since))?;
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
                write!(f, "{}; ", Outdated(self))?;
                self.outdated_waits(f)
            }
        }
    }
}

impl Say<'_> {
    /// Nothing is done, and nothing is owed.
    fn stays(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seen, policy) = (self.seen, self.input.policy);
        let (since, rollout) = (Shown(seen.since), &policy.rollout);
        match self.machine.why {
            Why::Proving => write!(
                f,
                "its disk is from {} and it is {}; it has failed if it is not available by {}",
                Shown(seen.imaged),
                condition(seen),
                Shown(self.machine.next.unwrap_or(seen.imaged.plus(rollout.readiness_deadline)))
            ),
            Why::Settling => write!(
                f,
                "ready since {since}; it counts as available after {} of that, at {}",
                rollout.min_ready,
                Shown(self.machine.next.unwrap_or(seen.since.plus(rollout.min_ready)))
            ),
            Why::Grace if seen.condition == Condition::Ready => write!(
                f,
                "ready again since {since}; it counts as available at {}",
                Shown(self.machine.next.unwrap_or(seen.since.plus(rollout.min_ready)))
            ),
            Why::Grace => write!(
                f,
                "{} since {since}; it is repaired unless it recovers by {}",
                condition(seen),
                Shown(self.machine.next.unwrap_or(seen.since.plus(policy.repair.after)))
            ),
            Why::HeldByPerson => {
                let (by, why) = seen.hold().map_or(("", ""), |hold| (&hold.by, &hold.why));
                write!(f, "held{}; it stays as it is until it is released", Who(by, why))
            }
            Why::ProtectedInCloud if let Some(lock) = self.input.set.lock_of(&seen.id) => write!(
                f,
                "{lock} protects it; it is never removed by us, named or not, before that is lifted: az lock delete --ids {}",
                lock.id
            ),
            Why::ProtectedInCloud => {
                let kind = match seen.protection {
                    Protection::All => "from scale-in and every other change",
                    Protection::Unknown => "in a way that cannot be read",
                    Protection::ScaleIn | Protection::None => "from scale-in",
                };
                write!(
                    f,
                    "protected in the cloud {kind}; it is never removed by us, named or not, before its instance protection is taken off there"
                )
            }
            Why::RevisionUnknown => write!(
                f,
                "{} since {since} on a revision that is not known, which is never taken for outdated",
                condition(seen)
            ),
            Why::NotSeen if seen.condition != Condition::Unknown => write!(
                f,
                "{} since {since}, together with many others; nothing is done before it lasts",
                condition(seen)
            ),
            Why::NotSeen => {
                write!(f, "not seen since {since}; nothing is done to what cannot be seen")
            }
            _ => match &seen.revision {
                Some(revision) => {
                    let name = self.planned.state.name(revision);
                    write!(f, "serves on {}, {} since {since}", Short(&name), condition(seen))
                }
                None => write!(f, "serves, {} since {since}", condition(seen)),
            },
        }
    }

    /// Something begun earlier goes on.
    fn under_way(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seen, policy) = (self.seen, self.input.policy);
        let since = Shown(seen.lifecycle_since);
        match self.machine.why {
            Why::CloudDeletes => {
                let at = Shown(seen.since);
                write!(f, "being taken away by the cloud since {at}, not because we asked")
            }
            Why::Draining => self.draining(f),
            Why::Ghost => f.write_str("deleted; the listing still shows it for a while"),
            Why::StuckDelete => write!(
                f,
                "leaving since {since}, longer than the {} it may take; writing it off stops counting it",
                policy.deletion.deadline
            ),
            Why::RequestLost if self.machine.lifecycle == Lifecycle::InService => {
                write!(
                    f,
                    "the request of {since} to remove it stands no more; it is back in service"
                )
            }
            Why::RequestLost => {
                write!(f, "the request of {since} to remove it did not hold")?;
                self.at_next(f)
            }
            Why::ReasonEnded => f.write_str("the reason to remove it ended; it is back in service"),
            Why::Updating if seen.lifecycle == Lifecycle::Updating => {
                write!(f, "being updated in place since {since}")
            }
            Why::Updating => write!(f, "draining since {since}, to be updated in place"),
            Why::CutOff => write!(f, "cut off from traffic and still running since {since}"),
            Why::Standby => write!(f, "on standby, deallocated, since {since}"),
            _ if seen.lifecycle == Lifecycle::Deleting => {
                write!(f, "being deleted since {since}")
            }
            _ => f.write_str("being deleted from now on"),
        }
    }

    fn draining(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.machine.lifecycle == Lifecycle::Drained {
            return f.write_str("drained; its delete comes next");
        }
        write!(f, "draining since {}", Shown(self.seen.lifecycle_since))?;
        let mut drains = self.input.facts.drains.iter();
        let Some(fact) = drains.find(|fact| fact.id == self.seen.id) else { return Ok(()) };
        write!(f, "; {} since {}", fact.step, Shown(fact.since))?;
        match &fact.blocker {
            Some(blocker) => write!(f, ", held up by {blocker}"),
            None => Ok(()),
        }
    }

    /// This plan acts on it.
    fn acted_on(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let seen = self.seen;
        let numbers = &self.planned.report.numbers;
        match (self.machine.why, self.machine.lifecycle) {
            (Why::Restored, _) => return f.write_str("goes back into service"),
            (Why::UpdatedInPlace, Lifecycle::Draining) => {
                return write!(f, "drains now to be updated in place, {}", Outdated(self));
            }
            (Why::UpdatedInPlace, _) => {
                return write!(f, "updated in place now, {}", Outdated(self));
            }
            (_, Lifecycle::Draining) => f.write_str("drains now to leave, ")?,
            _ => f.write_str("leaves now, ")?,
        }
        match self.machine.why {
            Why::RemovedFailed => {
                write!(f, "{} since {}", condition(seen), Shown(seen.since))?;
                let never = !seen.ever_available;
                f.write_str(if never { ", and it never served" } else { "" })
            }
            Why::RemovedNamed => {
                let request = seen.delete_request();
                let (by, why) = request.map_or(("", ""), |asked| (&asked.by, &asked.why));
                write!(f, "asked for{}", Who(by, why))?;
                let now = request.is_some_and(|asked| asked.now);
                f.write_str(if now { ", accepting the loss" } else { "" })
            }
            Why::RemovedSurplus => {
                write!(f, "one too many: {} there, {} wanted", numbers.exist, numbers.desired)
            }
            _ => Outdated(self).fmt(f),
        }
    }

    /// Something is owed to it, and waits.
    fn waits(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seen, repair) = (self.seen, &self.input.policy.repair);
        let numbers = &self.planned.report.numbers;
        match self.machine.why {
            Why::FailedInTurn => write!(
                f,
                "{} since {}; waits for its turn: {} failed, at most {} repaired at a time",
                condition(seen),
                Shown(seen.since),
                numbers.failed,
                repair.max_at_once
            ),
            Why::FailedBreaker => write!(
                f,
                "{} since {}; repair stopped itself, as more than {}% of {} failed within {}",
                condition(seen),
                Shown(seen.since),
                repair.breaker_percent,
                counted(numbers.desired as usize, "machine"),
                repair.window
            ),
            Why::NamedWaits => {
                let request = seen.delete_request();
                let (by, why) = request.map_or(("", ""), |asked| (&asked.by, &asked.why));
                write!(f, "asked for{}; ", Who(by, why))?;
                self.floor_waits(f)
            }
            Why::SurplusWaits => write!(
                f,
                "one too many: {} there, {} wanted; waits for its turn",
                numbers.exist, numbers.desired
            ),
            Why::Frozen => f.write_str("left alone: the plan broke a law and the pool is frozen"),
            why => {
                let blind = |hold: &Hold| hold.reason == HoldReason::HealthBlind;
                let refused = |hold: &Hold| hold.reason == HoldReason::Natives;
                let waits = match why {
                    Why::WaitsRefused => "the back-off of a delete that was refused",
                    Why::WaitsOwner => "a person to take the scale set over from its other owner",
                    _ if self.planned.report.holds.iter().any(blind) => {
                        "more of the pool to be seen"
                    }
                    _ if self.planned.report.holds.iter().any(refused) => {
                        "the owner of the size and the set's evictions to agree"
                    }
                    _ => "a complete and fresh listing",
                };
                if self.machine.class == Class::Outdated {
                    return write!(f, "{}; waits for {waits}", Outdated(self));
                }
                write!(f, "{} since {}; waits for {waits}", condition(seen), Shown(seen.since))
            }
        }
    }

    /// It is outdated, and this is what keeps it.
    fn outdated_waits(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let report = &self.planned.report;
        let (numbers, resolved, rollout) = (&report.numbers, &report.resolved, &report.rollout);
        match self.machine.why {
            Why::DrainBlocked => self.drain_blocked(f),
            Why::Exception => {
                f.write_str("its removal was blocked again and again; the rollout ended without it")
            }
            Why::UpdateFailed => {
                f.write_str("its update in place did not bring it there, and is not tried again")
            }
            Why::WaitsFloor => self.floor_waits(f),
            Why::WaitsConfirmation => write!(
                f,
                "waits: {} there, {} wanted, and nobody said that so many may leave",
                numbers.exist, numbers.desired
            ),
            Why::WaitsSurge => write!(
                f,
                "waits for a new machine to serve: {} of {} available, {} of at most {} there",
                numbers.available, resolved.floor, numbers.live, resolved.ceiling
            ),
            Why::WaitsRamp => write!(
                f,
                "waits for the ramp: {} new, {} of them proven",
                numbers.current, numbers.proven
            ),
            Why::WaitsCheckpoint => {
                write!(f, "waits at a checkpoint with {} of {} done", rollout.done, rollout.total)
            }
            Why::WaitsPaused => match self.rollout().map(|rollout| &rollout.stage) {
                Some(Stage::Paused { by, why, at }) => {
                    write!(f, "the rollout is paused since {}{}", Shown(*at), Who(by, why))
                }
                _ => f.write_str("the rollout is paused"),
            },
            Why::WaitsFailing => match self.rollout().map(|rollout| &rollout.stage) {
                Some(Stage::Failing { why, at }) => {
                    write!(f, "the rollout stopped at {}: {why}", Shown(*at))
                }
                _ => f.write_str("the rollout stopped after failures"),
            },
            Why::WaitsWindow => {
                let changes = self.input.policy.windows.at(self.input.now).changes;
                f.write_str("waits for its window")?;
                changes.map_or(Ok(()), |at| write!(f, ", which may open at {}", Shown(at)))
            }
            Why::WaitsAdoption => {
                f.write_str("only the cloud's own flag says so; a refresh starts it")
            }
            Why::WaitsOnDelete => f.write_str("replaced only when an operator names it"),
            Why::WaitsLast => {
                f.write_str("the last that is available, so it waits for another to serve")
            }
            _ => f.write_str("no rollout is replacing machines now"),
        }
    }

    /// Not its turn yet, or the floor.
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
                write!(f, "waits for another to serve: {available} available")
            }
            0 => write!(f, "waits: {available} available, {floor} needed"),
            n => {
                write!(f, "waits for its turn: {n} first, {available} available and {floor} needed")
            }
        }
    }

    fn drain_blocked(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let key = self.seen.key();
        f.write_str("its drain or removal was refused")?;
        if let Some(blocked) = self.planned.state.blocked.iter().find(|b| b.key == key) {
            let code = blocked.code.as_deref().map_or("", |code| code);
            let (open, close) = if code.is_empty() { ("", "") } else { (" (", ")") };
            write!(f, " at {}{open}{code}{close}", Shown(blocked.at))?;
        }
        f.write_str(", so it stays; it is tried again")?;
        self.at_next(f)
    }

    fn at_next(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.machine.next.map_or(Ok(()), |at| write!(f, " at {}", Shown(at)))
    }

    fn rollout(&self) -> Option<&Rollout> {
        self.planned.state.rollout.as_ref()
    }
}

/// Why a machine counts as outdated.
struct Outdated<'a>(&'a Say<'a>);

impl Display for Outdated<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Say { input, planned, seen, .. } = self.0;
        let reference = planned.report.rollout.reference.as_ref();
        let older = |than: Time| seen.imaged < than;
        match (&seen.revision, reference) {
            (Some(has), Some(wanted)) if has != wanted => {
                let (has, wanted) = (planned.state.name(has), planned.state.name(wanted));
                let (short, other) = (Short(&has).to_string(), Short(&wanted).to_string());
                if short == other {
                    return write!(f, "on {has}, where {wanted} is wanted");
                }
                write!(f, "on {short}, where {other} is wanted")
            }
            _ => match (planned.state.refresh_before, input.policy.rollout.max_age) {
                (Some(asked), _) if older(asked) => write!(
                    f,
                    "its disk is from {}, before the refresh of {}",
                    Shown(seen.imaged),
                    Shown(asked)
                ),
                (_, Some(age)) => {
                    write!(f, "its disk is from {} and may be {age} old", Shown(seen.imaged))
                }
                _ => write!(f, "its disk is from {}", Shown(seen.imaged)),
            },
        }
    }
}

/// Who asked and why, as far as they said so: ` by ann (its disk is slow)`.
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

/// Letters of a fingerprint that tell models apart at a glance.
const SHORT: usize = 16;

/// A name, cut short where it is a fingerprint.
struct Short<'a>(&'a str);

impl Display for Short<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let text = self.0;
        match text.char_indices().nth(SHORT).filter(|_| text.starts_with('v') && text.contains(':'))
        {
            Some((end, _)) if text.len() > SHORT + 4 => {
                write!(f, "{}…", text.get(..end).unwrap_or(text))
            }
            _ => f.write_str(text),
        }
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
