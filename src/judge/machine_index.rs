//! Identities: a sorted table of the machines that the plan, the journal and the tombstones name. Machines look
//! themselves up by reference, so a pool of a thousand needs no thousand copies of names.

use crate::model::action::Target;
use crate::model::ids::Key;
use crate::model::machine::Machine;

/// What the table says about a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MachineMatch {
    marks: u32,
    /// Its open deletes that have passed their deadline.
    pub(super) overdue: u8,
    /// Its target in the plan.
    pub(super) aim: Option<u32>,
}

/// Its delete succeeded.
pub(super) const TOMB: u32 = 1;
/// An operator wrote it off.
pub(super) const OFF: u32 = 2;
/// An open entry names it.
pub(super) const OPEN: u32 = 4;
/// An open drain or delete names it.
pub(super) const LEAVING: u32 = 8;
/// An open delete that is still within its deadline names it.
pub(super) const DELETING: u32 = 16;
/// An open update in place names it.
pub(super) const UPDATING: u32 = 32;
/// Its drain was blocked and waits for its next try.
pub(super) const BLOCKED: u32 = 64;
/// A request of ours may have taken it out of service, so we must return it.
pub(super) const OURS: u32 = 128;
/// This rollout already updated it in place: the plan does not retry it.
pub(super) const TRIED: u32 = 256;
/// As `BLOCKED`, but the memory that the plan was given does not say so.
pub(super) const SAID_BLOCKED: u32 = 512;
/// An open drain or delete takes it as failed.
pub(super) const REPAIRED: u32 = 1024;
/// Exempt from this target: its drain was blocked again and again.
pub(super) const EXCEPTED: u32 = 2048;
/// The delete that took it out of service was refused, or its answer was lost and a later read shows it.
pub(super) const GIVEN_BACK: u32 = 4096;
/// A recent delete may have taken it: a listing that shows it may be older.
pub(super) const DOUBTED: u32 = 8192;
/// Its drain ended well, and the delete after it was never sent: it is still out of service.
pub(super) const DRAINED: u32 = 16384;
/// It was off, and we start it or have started it.
pub(super) const STARTED: u32 = 32768;
/// It is off, and the delete of this surplus had no effect.
pub(super) const STILL_OFF: u32 = 65536;

impl MachineMatch {
    pub(super) const fn has(self, mark: u32) -> bool {
        self.marks & mark != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who<'a> {
    Vm(&'a str),
    Born(&'a str, i64),
}

#[derive(Debug)]
struct Row<'a> {
    digest: u64,
    who: Who<'a>,
    /// Named without a VM id, so it still matches a machine whose VM id became known since.
    loose: bool,
    found: MachineMatch,
}

#[derive(Debug, Default)]
pub(super) struct MachineIndex<'a> {
    rows: Vec<Row<'a>>,
    /// Digests of the rows, kept apart because searches read only them.
    digests: Vec<u64>,
    loose: bool,
    /// At least one machine is known only by its creation time.
    nameless: bool,
}

impl<'a> MachineIndex<'a> {
    pub(super) fn for_machines(machines: &[Machine]) -> Self {
        Self { nameless: machines.iter().any(|machine| machine.vm.is_none()), ..Self::default() }
    }

    pub(super) fn key(&mut self, key: &'a Key, marks: u32) {
        let found = MachineMatch { marks, ..MachineMatch::default() };
        self.push(Who::Vm(key.as_str()), false, found);
        if let Some((id, ms)) = key.as_str().rsplit_once('@')
            && let Ok(ms) = ms.parse()
        {
            self.push(Who::Born(id, ms), true, found);
        }
    }

    pub(super) fn target(&mut self, target: &'a Target, marks: u32, overdue: bool) {
        self.add(target, MachineMatch { marks, overdue: u8::from(overdue), aim: None });
    }

    pub(super) fn aim(&mut self, target: &'a Target, aim: usize) {
        let aim = u32::try_from(aim).ok();
        self.add(target, MachineMatch { aim, ..MachineMatch::default() });
    }

    fn add(&mut self, target: &'a Target, found: MachineMatch) {
        if let Some(vm) = &target.vm {
            self.push(Who::Vm(vm.as_str()), false, found);
        }
        if self.nameless || target.vm.is_none() {
            let born = Who::Born(target.id.as_str(), target.created.millis());
            self.push(born, target.vm.is_none(), found);
        }
    }

    fn push(&mut self, who: Who<'a>, loose: bool, found: MachineMatch) {
        self.loose |= loose;
        self.rows.push(Row { digest: digest(who), who, loose, found });
    }

    pub(super) fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.digest);
        self.digests = self.rows.iter().map(|row| row.digest).collect();
    }

    /// What all rows together say about this machine. Calls `each` with every aim at it.
    pub(super) fn of(&self, machine: &Machine, mut each: impl FnMut(u32)) -> MachineMatch {
        let mut sum = MachineMatch::default();
        if self.rows.is_empty() {
            return sum;
        }
        let mut fold = |found: MachineMatch| {
            sum.marks |= found.marks;
            sum.overdue = sum.overdue.saturating_add(found.overdue);
            if let Some(aim) = found.aim {
                sum.aim = sum.aim.or(Some(aim));
                each(aim);
            }
        };
        let born = Who::Born(machine.id.as_str(), machine.created.millis());
        match &machine.vm {
            Some(vm) => {
                self.rows_of(Who::Vm(vm.as_str())).for_each(|row| fold(row.found));
                if self.loose {
                    self.rows_of(born).filter(|row| row.loose).for_each(|row| fold(row.found));
                }
            }
            None => self.rows_of(born).for_each(|row| fold(row.found)),
        }
        sum
    }

    fn rows_of<'s>(&'s self, who: Who<'s>) -> impl Iterator<Item = &'s Row<'a>> {
        let digest = digest(who);
        let from = self.digests.partition_point(|known| *known < digest);
        let rest = self.rows.get(from..).unwrap_or_default();
        rest.iter().take_while(move |row| row.digest == digest).filter(move |row| row.who == who)
    }
}

/// Mixes both ends of a name. Only for speed: colliding names are compared in full.
fn digest(who: Who) -> u64 {
    // 2⁶⁴ over the golden ratio: spreads the bits of short texts well.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let (text, salt) = match who {
        Who::Vm(text) => (text.as_bytes(), 0),
        Who::Born(text, ms) => (text.as_bytes(), (ms as u64) | 1),
    };
    let ends = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first).wrapping_mul(SPREAD) ^ u64::from_le_bytes(*last)
        }
        _ => text.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
    };
    (ends ^ salt.rotate_left(32)).wrapping_mul(SPREAD)
}
