//! Protection of the VMs of Flexible sets. Azure shows it only at `{set}/virtualMachines/{name}`, not in the list of
//! VMs and not on the VM resource, so each VM needs its own read. The protection of an unread VM is `Unknown`.
//!
//! A VM is read when it is new, every few minutes while it is protected, and right before a request that removes or
//! changes it.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream;

use super::Azure;
use super::condition::protection;
use super::orchestration::members;
use super::path::SetPath;
use super::read::failed;
use super::set_cache::ProtectionReading;
use super::wire::{ArmVm, some};
use crate::act::{CallContext, CallOutcome};
use crate::model::action::Target;
use crate::model::ids::{InstanceId, Key, ScaleSetId, VmId};
use crate::model::inventory::{Gap, Instance, Orchestration};
use crate::model::journal::{CHANGED_SINCE_READ, Refusal, Refused};
use crate::model::machine::{Protection, identity};
use crate::model::time::{Span, Time};
use crate::observe::ReadError;
use crate::pace::PacedOperation;

/// Time limit for all reads of one listing together. The remaining VMs are read after the next listing.
// 20 s: a third of the time for which a listing may be acted on.
const READ_WITHIN: Span = Span::seconds(20);

/// Maximum number of concurrent reads.
// 16: reads a thousand VMs at 120 ms each in eight seconds. The pacer delays what exceeds the rate limits.
const AT_ONCE: usize = 16;

/// What is about to happen to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Removal,
    Update,
}

impl Harm {
    pub(super) const fn is_forbidden_by(self, protection: Protection) -> bool {
        match protection {
            Protection::None => false,
            Protection::ScaleIn => matches!(self, Harm::Removal),
            Protection::All | Protection::Unknown => true,
        }
    }
}

impl Azure {
    /// Fills in the protection of a Flexible set's VMs. The gap gives the reason if some could not be read.
    pub(super) async fn read_protections(
        &self,
        set: &ScaleSetId,
        path: &SetPath,
        instances: &mut [Instance],
    ) -> Option<Gap> {
        let now = self.arm.clock.now();
        let mut due: Vec<(Option<Time>, Key, &Instance)> = Vec::new();
        for instance in &*instances {
            let key = key_of(instance);
            match self.shelf.protection(set, &key) {
                Some(read) if !read.is_due(now) => {}
                read => due.push((read.map(|read| read.at), key, instance)),
            }
        }
        // VMs that were never read come first, then the oldest reads.
        due.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let (before, failed) = (now.plus(READ_WITHIN), Mutex::new(None::<Box<str>>));
        let stopped = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let reads = stream::iter(due).for_each_concurrent(AT_ONCE, async |(_, key, instance)| {
            if stopped() || self.arm.clock.now() > before {
                return;
            }
            let Instance { id, vm, .. } = instance;
            let read = self.read_protection(set, path, (id, vm.as_ref()), before).await;
            let at = self.arm.clock.now();
            let shows = *read.as_ref().unwrap_or(&Protection::Unknown);
            self.shelf.keep_protection(set, key, ProtectionReading { shows, at });
            // A VM that is gone proves nothing about the others. Any other failure would affect them too.
            if let Err(why) = read
                && why.refusal != Refusal::Gone
            {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.say);
            }
        });
        Box::pin(reads).await;
        let (mut listed, mut unknown) = (BTreeSet::new(), 0_usize);
        for instance in instances {
            let key = key_of(instance);
            let read = self.shelf.protection(set, &key);
            instance.protection = read.map_or(Protection::Unknown, |read| read.shows);
            unknown += usize::from(instance.protection == Protection::Unknown);
            listed.insert(key);
        }
        self.shelf.retain_protections(set, &listed);
        // No read failed in this listing: an earlier one did, or the time limit was reached.
        let later = || format!("of {unknown} VMs it is read after a later listing").into();
        let why = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        (unknown > 0)
            .then(|| Gap { what: "instance protection".into(), why: why.unwrap_or_else(later) })
    }

    async fn read_protection(
        &self,
        set: &ScaleSetId,
        path: &SetPath,
        (id, vm): (&InstanceId, Option<&VmId>),
        before: Time,
    ) -> Result<Protection, ReadError> {
        let url = path.set(&self.arm.cloud, &["virtualMachines", id.as_str()]);
        let reply = self.get_before(PacedOperation::ReadMachine, set, url, Some(before)).await?;
        let shown = ArmVm::read(&reply.body)
            .map_err(|why| failed(Refusal::Unclear, &format!("machine {id}: {why}")))?;
        let properties = shown.properties.as_ref();
        let properties = properties.ok_or_else(|| {
            failed(Refusal::Unclear, &format!("machine {id} is shown without its properties"))
        })?;
        let other = |vm: &VmId| {
            some(properties.vm_id.as_ref())
                .is_none_or(|shown| !vm.as_str().eq_ignore_ascii_case(shown))
        };
        if vm.is_some_and(other) {
            return Err(failed(
                Refusal::Gone,
                &format!("the name {id} is another machine's by now"),
            ));
        }
        Ok(protection(properties))
    }

    /// A Flexible set's listing shows no protection, and the last read of a VM may be outdated: reads each target again
    /// right before it is removed or changed. `Err`: the answer to return instead of sending.
    pub(super) async fn check_protection(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
        harm: Harm,
    ) -> Result<(), CallOutcome> {
        let (path, _) = self.named(order, targets)?;
        self.check_locks(order, &path, targets, harm).await?;
        let uniform = match self.shelf.of(order.set) {
            Some(known) => known.orchestration == Orchestration::Uniform,
            // No listing has shown this set yet: only a Uniform set uses numbers as ids.
            None => targets.iter().all(|t| members(Orchestration::Uniform).may_name(&t.id)),
        };
        if uniform {
            return Ok(());
        }
        let reads = targets.iter().map(|target| self.check_one(order, &path, target, harm));
        let reads: Vec<_> = reads.collect();
        let mut reads = Box::pin(stream::iter(reads).buffered(AT_ONCE));
        while let Some(read) = reads.next().await {
            read?;
        }
        Ok(())
    }

    async fn check_one(
        &self,
        order: &CallContext<'_>,
        path: &SetPath,
        target: &Target,
        harm: Harm,
    ) -> Result<(), CallOutcome> {
        let Target { id, vm, created, .. } = target;
        let read = self.read_protection(order.set, path, (id, vm.as_ref()), order.before).await;
        let shows = *read.as_ref().unwrap_or(&Protection::Unknown);
        let (key, at) = (identity(id, vm.as_ref(), *created), self.arm.clock.now());
        self.shelf.keep_protection(order.set, key, ProtectionReading { shows, at });
        match read {
            Ok(shows) if !harm.is_forbidden_by(shows) => Ok(()),
            Ok(_) => Err(changed()),
            Err(why) => Err(unread(&why)),
        }
    }
}

fn key_of(instance: &Instance) -> Key {
    identity(&instance.id, instance.vm.as_ref(), instance.created)
}

/// The next listing shows the change, and the next turn plans from it.
pub(super) fn changed() -> CallOutcome {
    let code = Some(CHANGED_SINCE_READ.into());
    CallOutcome::Refused(Refused { code, ..Refused::plain(Refusal::Conflict) })
}

/// A VM that could not be read must not be removed.
fn unread(why: &ReadError) -> CallOutcome {
    match why.refusal {
        Refusal::Unclear => CallOutcome::NotSent,
        Refusal::Gone => changed(),
        refusal => {
            CallOutcome::Refused(Refused { retry_at: why.retry_at, ..Refused::plain(refusal) })
        }
    }
}
