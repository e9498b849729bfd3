//! What the judge of rehearsals remembers from turn to turn. Begin with [`Past`]; give a new one to each rehearsal.

mod calls;
mod calm;
mod loops;
mod owed;
mod rest;

pub use calls::{Fence, Once};
pub use calm::{Progress, Quiet};
pub use loops::Loops;
#[cfg(test)]
pub(super) use loops::REFUSED_AN_HOUR;
pub use owed::{Brake, Out};
pub use rest::Rest;

/// All of it. Opaque: [`super::after`] alone reads and feeds it.
#[derive(Debug, Default)]
pub struct Past {
    /// Law 9.
    pub(super) fence: Fence,
    /// Law 4.
    pub(super) once: Once,
    /// Law 7.
    pub(super) progress: Progress,
    /// Law 7 of a pool at rest.
    pub(super) rest: Rest,
    pub(super) loops: Loops,
    /// Law 8.
    pub(super) quiet: Quiet,
    /// Law 10.
    pub(super) out: Out,
    /// Law 12.
    pub(super) brake: Brake,
}
