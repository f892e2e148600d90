//! A request from phase to phase. Each phase has a value of its own: what it found out, and the value of
//! the phase before.
//!
//! `Arrived`, `Identified`, `Reading`, `Aimed`, then `Granted`, `Queued` and `Admitted`, or `Repeated` if its answer
//! is in the cache. `forward` goes on with `Sending` and `Answering`. What is owed to others, as its place
//! or its turn, is in these values too and is given back with them.
//!
//! Start at [`Open`], which holds the newest value and the [`Head`], and tells the meter of the end.

mod admitted;
mod aimed;
mod granted;
mod head;
mod identified;
mod open;
mod reading;
mod repeated;

pub(crate) use admitted::Admitted;
pub(crate) use granted::Granted;
pub(crate) use head::Head;
pub(crate) use identified::Identified;
pub(crate) use open::Open;

use crate::finished::{Finished, RequestOutcome};
use flyball_fleet::Time;

/// A request of which only the head is known.
pub(crate) struct Arrived;

/// What is known of a request in one phase.
pub(crate) trait Phase {
    /// How it ends with an answer of our own.
    const REFUSED: RequestOutcome = RequestOutcome::Refused;

    /// Says what this phase and those before it found out.
    fn describe<'a>(&'a self, finished: &mut Finished<'a>);

    /// Gives back what others wait for. Called once, before anybody hears of the end.
    fn settle(&mut self, _: RequestOutcome, _: Time) {}
}

impl Phase for Arrived {
    fn describe<'a>(&'a self, _: &mut Finished<'a>) {}
}
