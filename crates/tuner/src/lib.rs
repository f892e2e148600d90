//! Which law decides for a model, chosen by replaying the traffic that it had.
//!
//! A [`Tuner`] keeps a record of each model's work. From time to time a `Trial` replays it under every law, the
//! governor's own at several settings and those of others, and the cheapest that keeps the objective with a margin
//! decides from then on. Real misses have the last word: a law under which too many miss is set aside for a week.
//!
//! The modules are its steps, in order: what came (`record`), what could decide (`laws`), what each would have cost
//! (`trial`), which one does ([`Tuner`]), and all of it as a policy of replays ([`Tuned`]). There is no clock here and
//! no thread: whoever calls runs the trial where it disturbs nobody.

#![deny(missing_docs)]

mod laws;
mod policy;
mod record;
mod trial;
mod tuner;

pub use laws::Name;
pub use policy::Tuned;
pub use trial::{LawTrial, TrialResult, TrialVerdict};
pub use tuner::{LawChoice, Tuner};
