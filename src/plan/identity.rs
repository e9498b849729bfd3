//! Whether a remembered key is that of a machine.

use crate::model::ids::Key;
use crate::model::machine::Machine;

/// Without making the key of the machine, if it has a VM.
pub(super) fn is(key: &Key, machine: &Machine) -> bool {
    match &machine.vm {
        Some(vm) => key.as_str() == vm.as_str(),
        None => *key == machine.key(),
    }
}
