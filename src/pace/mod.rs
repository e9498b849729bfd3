//! HOW FAST. How often the cloud is called, and in which order: identical reads share one call, each scale set gets one
//! request at a time, and no request leaves before its limits let it through.
//!
//! Never here: what to ask or why, a retry, a merge of two requests into one, a clock or a timer of its own. All of it
//! decides by the time it is given, so it runs in simulated time as in production; the few files that wait ([`Pacer`],
//! [`SerializedCloud`], [`SharedReads`]) wait through [`crate::ambient::Sleep`].
//!
//! Begin with [`Admission`], which is pure: a call asks, leaves or waits, and reports what its answer said of limits.
//! Then [`SerializedCloud`], which wraps the ports of `observe` and `act`; the adapter behind it asks [`Pacer::permit`]
//! before each request, because only the adapter knows how many requests a listing takes.
//!
//! The buckets are our own, not governor's cells: a cell has one fixed quota, cannot take a level from outside, close
//! until a time, reserve a place or return a token, and answers report levels all the time. The read cache is not
//! moka's: moka keeps its own clock, so a rehearsal could not repeat its evictions.

mod admission;
mod bucket;
mod counts;
mod lanes;
mod limits;
mod operation;
mod pacer;
mod response_hints;
mod serialized;
mod sets;
mod shared;
mod single_flight;

pub use admission::{
    AGES_IN, Admission, AdmissionAnswer, AdmissionGrant, CallCost, NotNow, READ_PATIENCE, Ticket,
};
pub use counts::{CallTally, Counts};
pub use lanes::{Lane, LanePlace, LaneState, Lanes};
pub use limits::LimitReading;
pub use operation::{CallPriority, FrontDoor, OperationClass, PacedOperation};
pub use pacer::{Pacer, Permit};
pub use response_hints::ResponseHints;
pub use serialized::{LISTING_IS_GOOD, SerializedCloud};
pub use shared::SharedReads;
pub use single_flight::{Boarding, Flight, Flights, Landing};
