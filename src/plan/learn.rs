//! What the state learns: first from the read and the journal, then from the machines as they are counted.

use crate::model::plan::Input;
use crate::model::rollout::PoolState;

use super::backoff;
use super::breaker;
use super::deletes;
use super::desired;
use super::document_size::ProfiledSize;
use super::exceptions;
use super::follow_model;
use super::journal::Journal;
use super::known;
use super::machines::PoolMachines;
use super::model;
use super::next_check;
use super::owner;
use super::setbacks;
use super::suspension;
use super::version;

/// The state before any command: the wanted model, the desired count, what was refused, whose set it is.
pub(super) fn from_read(
    input: &Input,
    journal: &Journal,
    size: Option<&ProfiledSize>,
) -> PoolState {
    let mut memory = input.state.cloned().unwrap_or_default();
    follow_model::learn(input, &mut memory);
    known::learn(input, &mut memory);
    model::follow_wish(input, &mut memory);
    version::learn(input, &mut memory);
    let confirmed = size.is_some_and(|size| size.sizing.confirmed);
    memory.size = size.map(|size| size.memory.clone()).unwrap_or_default();
    desired::settle(input, &mut memory, journal.pending, confirmed);
    setbacks::learn(input, &mut memory);
    exceptions::learn(input, &mut memory);
    owner::learn(input, &mut memory);
    suspension::learn(input, &mut memory);
    memory
}

/// Back-offs of raises, how the set counts deletes and how long they take, and the repair breaker.
pub(super) fn from_machines(
    input: &Input,
    memory: &mut PoolState,
    journal: &Journal,
    machines: &PoolMachines,
) {
    let (rows, count) = (&machines.rows[..], &machines.count);
    if input.is_first_sight() {
        memory.surplus_confirmed = count.exist + count.failed <= count.desired;
    }
    backoff::learn(input, memory, count);
    deletes::learn(input, memory, journal, count, rows);
    breaker::learn(input, memory, rows);
    next_check::learn_deletes(input, memory);
}
