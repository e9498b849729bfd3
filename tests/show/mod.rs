//! What people are shown of rehearsals: the demo, pages, pictures, documents, and errors.

mod days;
mod demo;
mod pictures;
mod simulate;
mod support;
mod usage;

use crate::support::golden;
use crate::support::program;
