//! What the judge of rehearsals remembers from turn to turn. Begin with [`Past`]; give a new one to each rehearsal.

mod calls;
mod calm;
mod owed;

pub use calls::{Fence, Once};
pub use calm::{Progress, Quiet};
pub use owed::{Brake, Out};

/// All of it. Opaque: [`super::after`] alone reads and feeds it.
#[derive(Debug, Default)]
pub struct Past {
    /// Law 9.
    pub(super) fence: Fence,
    /// Law 4.
    pub(super) once: Once,
    /// Law 7.
    pub(super) progress: Progress,
    /// Law 8.
    pub(super) quiet: Quiet,
    /// Law 10.
    pub(super) out: Out,
    /// Law 12.
    pub(super) brake: Brake,
}
