//! Matches the rows of a listing with our records.
//!
//! By vmId; if either side lacks it, by instance id and creation time. Never by instance id alone: the cloud reuses
//! ids. Both sides are sorted by a hash of the identity and merged, so the work is n log n on plain numbers; equal
//! hashes are always compared in full. Text is compared case-insensitively, as the cloud does.

use crate::model::ids::VmId;
use crate::model::inventory::Instance;
use crate::model::machine::Machine;

/// What a row of the listing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Record(usize),
    New,
    /// The same machine was listed twice; the first row counts.
    Repeat,
}

/// The match of each row, and the row of each record.
pub(super) struct Matches {
    pub rows: Vec<Match>,
    pub records: Vec<Option<usize>>,
}

/// How far a record may be from its row's expected place while the walk compares both lists.
// 64: the width of a wave of deletes; the walk soon notices a list in another order and leaves it to the merge.
const NEAR: usize = 64;

/// Rows not found nearby before the walk gives up.
const LOST: usize = 16;

pub(super) fn join(records: &[Machine], rows: &[Instance]) -> Matches {
    let mut joined =
        Matches { rows: vec![Match::New; rows.len()], records: vec![None; records.len()] };
    if joined.walk(records, rows) {
        return joined;
    }
    let by_vm = |vm: Option<&VmId>| vm.map(|vm| hash(SEED, vm.as_str().as_bytes()));
    let right = joined.rows.iter().zip(rows);
    let right = hashes(right.map(|(met, r)| by_vm(r.vm.as_ref()).filter(|_| *met == Match::New)));
    // Usually few rows are left: sort only records that may match them.
    let wanted = |h: &u64| right.binary_search_by_key(h, |(wanted, _)| *wanted).is_ok();
    let left = hashes(records.iter().map(|m| by_vm(m.vm.as_ref()).filter(wanted)));
    joined.merge(&left, &right, |pair| match pair {
        Pair::Both(m, r) => same_vm(records.get(m)?.vm.as_ref(), rows.get(r)?.vm.as_ref()),
        Pair::Rows(a, b) => same_vm(rows.get(a)?.vm.as_ref(), rows.get(b)?.vm.as_ref()),
    });
    if joined.has_leftovers(records, rows) {
        joined.merge_by_birth(records, rows);
    }
    joined
}

fn same_vm(a: Option<&VmId>, b: Option<&VmId>) -> Option<()> {
    let same = |a: &VmId, b: &VmId| a == b || a.as_str().eq_ignore_ascii_case(b.as_str());
    a.zip(b).is_some_and(|(a, b)| same(a, b)).then_some(())
}

enum Pair {
    Both(usize, usize),
    Rows(usize, usize),
}

impl Matches {
    /// Clouds list in a stable order: usually each row has the next record. Returns true if all are found.
    fn walk(&mut self, records: &[Machine], rows: &[Instance]) -> bool {
        let (mut next, mut lost, mut all) = (0, 0, true);
        for (r, row) in rows.iter().enumerate() {
            let near = records.iter().enumerate().skip(next).take(NEAR);
            let found = near
                .filter(|(_, m)| same_vm(m.vm.as_ref(), row.vm.as_ref()).is_some())
                .map(|(m, _)| m)
                .next();
            if let Some(m) = found {
                self.set_record(m, r);
                self.set_row(r, Match::Record(m));
                next = m + 1;
            } else {
                // New machines come last, and searching for them behind the last record costs nothing.
                all = false;
                lost += usize::from(next < records.len());
                if lost > LOST {
                    return false;
                }
            }
        }
        all
    }

    /// Merges two sorted lists of (hash, index); `same` says whether an equal hash is an equal identity.
    fn merge(
        &mut self,
        left: &[(u64, u32)],
        right: &[(u64, u32)],
        same: impl Fn(Pair) -> Option<()>,
    ) {
        let mut from = left;
        let mut rest = right;
        while let Some(&(at, _)) = rest.first() {
            let run = rest.iter().take_while(|(h, _)| *h == at).count();
            let (now, later) = rest.split_at(run);
            rest = later;
            from = from.get(from.iter().take_while(|(h, _)| *h < at).count()..).unwrap_or(&[]);
            let owners = from.iter().take_while(|(h, _)| *h == at).count();
            self.settle(from.get(..owners).unwrap_or(&[]), now, &same);
        }
    }

    /// Settles one run of equal hashes; nearly always one record and one row.
    fn settle(
        &mut self,
        owners: &[(u64, u32)],
        run: &[(u64, u32)],
        same: &impl Fn(Pair) -> Option<()>,
    ) {
        for (n, &(_, row)) in run.iter().enumerate() {
            let row = row as usize;
            let owner = owners.iter().map(|&(_, m)| m as usize);
            let owner = owner.filter(|&m| same(Pair::Both(m, row)).is_some()).min();
            let met = match owner {
                Some(m) if self.records.get(m).copied().flatten().is_none() => {
                    self.set_record(m, row);
                    Match::Record(m)
                }
                Some(_) => Match::Repeat,
                None => {
                    let mut before = run.iter().take(n).map(|&(_, r)| r as usize);
                    let repeat = before.any(|r| same(Pair::Rows(r, row)).is_some());
                    if repeat { Match::Repeat } else { Match::New }
                }
            };
            self.set_row(row, met);
        }
    }

    fn set_record(&mut self, record: usize, row: usize) {
        if let Some(slot) = self.records.get_mut(record) {
            *slot = Some(row);
        }
    }

    fn set_row(&mut self, row: usize, met: Match) {
        if let Some(slot) = self.rows.get_mut(row) {
            *slot = met;
        }
    }

    fn has_leftovers(&self, records: &[Machine], rows: &[Instance]) -> bool {
        let new =
            self.rows.iter().zip(rows).any(|(met, row)| *met == Match::New && row.vm.is_none());
        let old = self.records.iter().zip(records).any(|(row, m)| row.is_none() && m.vm.is_none());
        new || old
    }

    /// Matches the remaining rows where at least one side has no vmId.
    fn merge_by_birth(&mut self, records: &[Machine], rows: &[Instance]) {
        let left = hashes(records.iter().map(|m| Some(birth(m.id.as_str(), m.created.millis()))));
        let right = hashes(rows.iter().zip(&self.rows).map(|(r, met)| {
            (*met == Match::New).then(|| birth(r.id.as_str(), r.created.millis()))
        }));
        self.merge(&left, &right, |pair| match pair {
            Pair::Both(m, r) => same_birth(of_record(records.get(m)?), of_row(rows.get(r)?)),
            Pair::Rows(a, b) => same_birth(of_row(rows.get(a)?), of_row(rows.get(b)?)),
        });
    }
}

/// Instance id, creation time, and whether a vmId is shown too.
type Birth<'a> = (&'a str, i64, bool);

fn of_record(m: &Machine) -> Birth<'_> {
    (m.id.as_str(), m.created.millis(), m.vm.is_some())
}

fn of_row(r: &Instance) -> Birth<'_> {
    (r.id.as_str(), r.created.millis(), r.vm.is_some())
}

/// Two different vmIds are never the same machine, whatever else matches.
fn same_birth(a: Birth<'_>, b: Birth<'_>) -> Option<()> {
    let both_show_a_vm = a.2 && b.2;
    (!both_show_a_vm && a.1 == b.1 && a.0.eq_ignore_ascii_case(b.0)).then_some(())
}

fn hashes(of: impl Iterator<Item = Option<u64>>) -> Vec<(u64, u32)> {
    let mut all: Vec<(u64, u32)> =
        of.enumerate().filter_map(|(i, h)| Some((h?, u32::try_from(i).ok()?))).collect();
    all.sort_unstable();
    all
}

pub(super) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Equal for texts that differ only by ASCII case. A few other texts share a hash too: equal hashes are compared.
pub(super) fn hash(seed: u64, text: &[u8]) -> u64 {
    text.chunks(8).fold(seed, |h, chunk| {
        let mut eight = [0x20_u8; 8];
        for (to, from) in eight.iter_mut().zip(chunk) {
            *to = from | 0x20;
        }
        (h.rotate_left(23) ^ u64::from_le_bytes(eight)).wrapping_mul(0xff51_afd7_ed55_8ccd)
    })
}

fn birth(id: &str, created: i64) -> u64 {
    hash(SEED ^ created.cast_unsigned(), id.as_bytes())
}
