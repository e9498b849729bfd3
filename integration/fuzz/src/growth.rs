//! What four times as long an input costs: no more than a few times as much, whatever of it is repeated. The first byte
//! is the format, the next four say which part is repeated, and the rest is the text.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use poolkeeper::api::v1::pool::PoolDocuments;
use poolkeeper::api::v1::snapshot::Snapshots;

use crate::{arm, door, token};

const SMALL: usize = 32 << 10;
const LARGE: usize = 4 * SMALL;
/// What costs less is too short to be measured, and harms no one.
const CHEAP: Duration = Duration::from_millis(60);
/// Four is what is read in one pass; sixteen is what compares each part with each other.
const MOST: u32 = 9;
/// A measurement may be disturbed; a cost is there each time.
const TRIES: usize = 3;

const READERS: [fn(&[u8]); 5] = [
    |text| drop(PoolDocuments::default().read_bytes(text, None)),
    |text| drop(Snapshots::default().read(text)),
    arm::read,
    door::read,
    token::read,
];

pub fn read(input: &[u8]) {
    let Some(([format, a, b, c, d], text)) = input.split_first_chunk() else { return };
    let reader = READERS[usize::from(*format) % READERS.len()];
    let from = usize::from(u16::from_le_bytes([*a, *b])) % (text.len() + 1);
    let (head, rest) = text.split_at(from);
    let (part, tail) = rest.split_at(usize::from(u16::from_le_bytes([*c, *d])) % (rest.len() + 1));
    if part.is_empty() || text.len() > SMALL / 2 {
        return;
    }
    let pumped = |size: usize| [head, &part.repeat(size / part.len()), tail].concat();
    let (small, large) = (pumped(SMALL), pumped(LARGE));
    let mut grew = Vec::new();
    for _ in 0..TRIES {
        let (short, long) = (cost(reader, &small), cost(reader, &large));
        if long < CHEAP || long < short * MOST {
            return;
        }
        grew.push((short, long));
    }
    panic!("four times the length costs too much more: {grew:?}");
}

/// Processor time of this thread alone: other work on the machine does not count.
fn cost(reader: fn(&[u8]), text: &[u8]) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let begun = now();
    reader(text);
    now().saturating_sub(begun)
}
