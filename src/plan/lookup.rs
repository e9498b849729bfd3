//! Position of a machine in a list of keys. Lists that may be as long as the pool use a sorted index, not a scan.

use crate::model::ids::Key;
use crate::model::machine::Machine;

/// Digests of the keys in order, each with its position in the list.
#[derive(Debug)]
pub(super) struct Lookup {
    by_digest: Vec<(u64, u32)>,
    /// One bit for the first six of each digest: most machines are in no short list, and this alone shows it.
    bits: u64,
}

impl Lookup {
    pub fn of<'k>(keys: impl Iterator<Item = &'k Key>) -> Self {
        let mut by_digest: Vec<(u64, u32)> =
            keys.map(|key| digest(key.as_str())).zip(0..).collect();
        by_digest.sort_unstable();
        let bits = by_digest.iter().fold(0, |bits, (digest, _)| bits | bit(*digest));
        Self { by_digest, bits }
    }

    /// The first position of this machine; `key` gives the key at a position.
    pub fn find<'k>(&self, machine: &Machine, key: impl Fn(usize) -> &'k Key) -> Option<usize> {
        if self.by_digest.is_empty() {
            return None;
        }
        match &machine.vm {
            Some(vm) => self.place(vm.as_str(), key),
            None => self.place(machine.key().as_str(), key),
        }
    }

    pub fn has(&self, machine: &Machine, keys: &[Key]) -> bool {
        self.find(machine, |at| &keys[at]).is_some()
    }

    pub fn place<'k>(&self, wanted: &str, key: impl Fn(usize) -> &'k Key) -> Option<usize> {
        let digest = digest(wanted);
        if self.bits & bit(digest) == 0 {
            return None;
        }
        let from = self.by_digest.partition_point(|(known, _)| *known < digest);
        let alike = self.by_digest[from..].iter().take_while(|(known, _)| *known == digest);
        alike.map(|(_, at)| *at as usize).find(|at| key(*at).as_str() == wanted)
    }
}

const fn bit(digest: u64) -> u64 {
    1 << (digest >> 58)
}

/// Both ends of a key, mixed. Only for speed: colliding keys are compared whole.
fn digest(key: &str) -> u64 {
    // 2⁶⁴ over the golden ratio: spreads bits of short texts well.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let bytes = key.as_bytes();
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first).wrapping_mul(SPREAD) ^ u64::from_le_bytes(*last)
        }
        _ => bytes.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{InstanceId, VmId};
    use crate::model::machine::Condition;
    use crate::model::time::Time;

    fn machine(id: &str, vm: Option<&str>) -> Machine {
        let born = Time::from_millis(1_772_366_400_000);
        Machine::new(InstanceId::new(id), vm.map(VmId::new), born, Condition::Ready)
    }

    /// Short keys, keys that differ only in the middle and so share a digest, and a duplicate key.
    #[test]
    fn a_machine_is_found_where_its_key_stands_first() {
        let texts = ["", "b", "aaaaaaaa-1-zzzzzzzz", "aaaaaaaa-2-zzzzzzzz", "b", "aaaaaaaa"];
        let keys = texts.map(Key::new);
        let lookup = Lookup::of(keys.iter());
        let place = |machine: &Machine| lookup.find(machine, |at| &keys[at]);
        for text in texts {
            let first = texts.iter().position(|other| *other == text);
            assert_eq!(place(&machine("0", Some(text))), first, "{text:?}");
        }
        for absent in ["a", "aaaaaaaa-3-zzzzzzzz", "aaaaaaab", "bb"] {
            assert_eq!(place(&machine("0", Some(absent))), None, "{absent:?}");
        }
    }

    #[test]
    fn a_machine_without_an_identity_of_the_cloud_is_found_by_its_id_and_birth() {
        let keys = [machine("7", None).key()];
        let lookup = Lookup::of(keys.iter());
        assert!(lookup.has(&machine("7", None), &keys));
        assert!(!lookup.has(&machine("8", None), &keys));
        assert!(!Lookup::of([].iter()).has(&machine("7", None), &[]));
    }
}
