//! Who is who: a sorted table of the machines that the plan, the journal and the tombstones name. It is the machines
//! that look themselves up, by reference, so that a pool of a thousand costs no thousand copies of names.

use crate::model::action::Target;
use crate::model::ids::Key;
use crate::model::machine::Machine;

/// What the table says of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Found {
    marks: u16,
    /// Open deletes of it that have passed their deadline.
    pub(super) overdue: u8,
    /// Which target of the plan it is.
    pub(super) aim: Option<u32>,
}

/// Its delete succeeded.
pub(super) const TOMB: u16 = 1;
/// A person wrote it off.
pub(super) const OFF: u16 = 2;
/// An open entry names it.
pub(super) const OPEN: u16 = 4;
/// An open drain or delete names it.
pub(super) const LEAVING: u16 = 8;
/// An open delete names it that is still within its deadline.
pub(super) const DELETING: u16 = 16;
/// An open update in place names it.
pub(super) const UPDATING: u16 = 32;
/// Its drain was blocked, and waits for its next try.
pub(super) const BLOCKED: u16 = 64;
/// A request of ours may have taken it out of service: to put it back is ours.
pub(super) const OURS: u16 = 128;
/// Updated in place by this rollout already: not tried again.
pub(super) const TRIED: u16 = 256;
/// As blocked, but the memory that the plan was given does not say so.
pub(super) const SAID_BLOCKED: u16 = 512;
/// An open drain or delete takes it as failed.
pub(super) const REPAIRED: u16 = 1024;
/// Left as it is for this target: its drain was blocked again and again.
pub(super) const EXCEPTED: u16 = 2048;
/// The delete that took it out of service was refused, or its answer was lost and a later look shows it.
pub(super) const GIVEN_BACK: u16 = 4096;
/// A delete a short while ago may have taken it: a listing that shows it may be older.
pub(super) const DOUBTED: u16 = 8192;
/// Its drain ended well, and the delete after it was never sent: it is out of service still.
pub(super) const DRAINED: u16 = 16384;

impl Found {
    pub(super) const fn has(self, mark: u16) -> bool {
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
    /// Named without a VM id, so that a machine whose VM id became known since is still meant.
    loose: bool,
    found: Found,
}

#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    rows: Vec<Row<'a>>,
    /// Of the rows, apart: it is these that are searched.
    digests: Vec<u64>,
    loose: bool,
    /// Some machine is known by its birth only.
    nameless: bool,
}

impl<'a> Names<'a> {
    pub(super) fn for_machines(machines: &[Machine]) -> Self {
        Self { nameless: machines.iter().any(|machine| machine.vm.is_none()), ..Self::default() }
    }

    pub(super) fn key(&mut self, key: &'a Key, marks: u16) {
        let found = Found { marks, ..Found::default() };
        self.push(Who::Vm(key.as_str()), false, found);
        if let Some((id, ms)) = key.as_str().rsplit_once('@')
            && let Ok(ms) = ms.parse()
        {
            self.push(Who::Born(id, ms), true, found);
        }
    }

    pub(super) fn target(&mut self, target: &'a Target, marks: u16, overdue: bool) {
        self.add(target, Found { marks, overdue: u8::from(overdue), aim: None });
    }

    pub(super) fn aim(&mut self, target: &'a Target, aim: usize) {
        let aim = u32::try_from(aim).ok();
        self.add(target, Found { aim, ..Found::default() });
    }

    fn add(&mut self, target: &'a Target, found: Found) {
        if let Some(vm) = &target.vm {
            self.push(Who::Vm(vm.as_str()), false, found);
        }
        if self.nameless || target.vm.is_none() {
            let born = Who::Born(target.id.as_str(), target.created.millis());
            self.push(born, target.vm.is_none(), found);
        }
    }

    fn push(&mut self, who: Who<'a>, loose: bool, found: Found) {
        self.loose |= loose;
        self.rows.push(Row { digest: digest(who), who, loose, found });
    }

    pub(super) fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.digest);
        self.digests = self.rows.iter().map(|row| row.digest).collect();
    }

    /// What is said of this machine, all rows together. `each` hears of every aim at it.
    pub(super) fn of(&self, machine: &Machine, mut each: impl FnMut(u32)) -> Found {
        let mut sum = Found::default();
        if self.rows.is_empty() {
            return sum;
        }
        let mut fold = |found: Found| {
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

/// Both ends of a name, mixed. Only for speed: names that collide are told apart by comparing them whole.
fn digest(who: Who) -> u64 {
    // 2⁶⁴ over the golden ratio: spreads bits of short texts well.
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
