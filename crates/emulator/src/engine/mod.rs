//! The simulator's engine in real time.
//!
//! [`Core`] holds it behind a lock. One thread of its own sleeps until the engine's next event, lets
//! it happen and notes how far each request is ([`progress`]); one task on the runtime then wakes
//! the connections. The thread is there because timers of the runtime are exact to a millisecond
//! only, which is a tenth of a step; and one wake-up of the runtime a step is cheap where one a
//! request is not. `log` keeps the truth, `counts` the sums that the metrics page shows.
//!
//! What it does not know: HTTP, text, faults. Start reading at [`Core`].

mod core;
mod counts;
mod inside;
mod log;
pub(crate) mod progress;

pub use self::core::EmulatedState;
pub(crate) use self::core::{Core, Refused, Ticket, Work};
pub(crate) use counts::{Counts, Histogram};
pub use log::{EngineLogRecord, LoggedOutcome};
