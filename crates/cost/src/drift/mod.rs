//! Whether what comes through the gateway still looks like what came before: a sequential test for each model and tenant.
//!
//! A [`DriftWatch`] learns from its first requests how often each of some two dozen things is seen (a prompt longer than
//! the median, a refused request, a script), and from then on bets against each of them being at most that often and a
//! margin. Bets that win add up in a Shiryaev-Roberts e-detector (`detector.rs`): as long as no share has moved beyond its
//! margin, an alarm comes on average at most once in [`DriftSettings::mean_requests`] requests. That holds by
//! construction, for any dependence between requests, because it needs only that a share is what it is given all that came
//! before; no distribution is assumed.
//!
//! What an alarm is not: an opinion on quality. What it cannot tell: a change that was there while it learned, and a mix
//! that swings by more than the margin of itself, which is a change and is reported as one.

mod detector;
mod script;
#[cfg(test)]
mod tests;
mod watch;

pub use script::TextScript;
pub use watch::{Drift, DriftFeature, DriftSettings, DriftWatch, FinishKind, ObservedRequest};
