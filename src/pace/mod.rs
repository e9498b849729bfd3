//! HOW FAST. How often the cloud is asked, and in which order: reads that are the same share one call, each scale set is
//! sent one request at a time, and no request leaves that its limits do not let through.
//!
//! Never here: what is asked or why, a retry, a merge of two requests into one, a clock or a timer of its own. All of it
//! decides by the time it is given, so it runs in made-up time as it does in production; the few files that wait
//! ([`Pacer`], [`Paced`], [`SharedReads`]) are told how by [`crate::ambient::Sleep`].
//!
//! Begin with [`Gate`], which is pure: a call asks, leaves or waits, and tells what its answer said about limits. Then
//! [`Paced`], which stands before the ports of `observe` and `act`; the adapter behind it asks [`Pacer::pass`] before each
//! request, for only it knows how many requests a listing is.
//!
//! The buckets are our own and not governor's cells: a cell there is made for one quota and cannot be told how full it is,
//! be shut until a time, hold a place for somebody, or give a token back, and answers tell us all the time. The memory of
//! reads is not moka's: it keeps its own clock, and a rehearsal could not repeat what it forgot.

mod bucket;
mod counts;
mod flights;
mod gate;
mod lanes;
mod limits;
mod operation;
mod paced;
mod pacer;
mod sets;
mod shared;
mod told;

pub use counts::{Counts, Tally};
pub use flights::{Boarding, Flight, Flights, Landing};
pub use gate::{AGES_IN, Asked, Call, Gate, Grant, NotNow, READ_PATIENCE, Ticket};
pub use lanes::{Lane, Lanes, Place, Standing};
pub use limits::LimitSeen;
pub use operation::{Class, FrontDoor, Operation, Priority};
pub use paced::{LISTING_IS_GOOD, Paced};
pub use pacer::{Pacer, Pass};
pub use shared::SharedReads;
pub use told::Told;
