//! What the judge of rehearsals remembers from turn to turn. Begin with [`History`]; give each rehearsal a new one.

mod calls;
mod cleanup;
mod liveness;
mod loops;
mod rest;
mod signs;

pub use calls::{Fence, Once};
pub use cleanup::{Brake, Out};
pub use liveness::{CalmProgress, Quiet};
pub use loops::Loops;
#[cfg(test)]
pub(super) use loops::REFUSED_AN_HOUR;
pub use rest::Rest;
pub use signs::LeftSigns;

/// The whole memory. Opaque: only [`super::after`] reads and writes it.
#[derive(Debug, Default)]
pub struct History {
    /// Law 9.
    pub(super) fence: Fence,
    /// Law 4.
    pub(super) once: Once,
    /// Law 7.
    pub(super) progress: CalmProgress,
    /// Law 7, of a pool at rest.
    pub(super) rest: Rest,
    pub(super) loops: Loops,
    /// Law 8.
    pub(super) quiet: Quiet,
    /// Law 10.
    pub(super) out: Out,
    pub(super) signs: LeftSigns,
    /// Law 12.
    pub(super) brake: Brake,
}
