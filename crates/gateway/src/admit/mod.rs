//! Says whose turn it is. Whether there is room inside the gateway itself is said before, by `room`.
//!
//! 1. [`Gate`] is the one queue of a model. A request that finds an engine with room and nobody
//!    waiting passes without a stop; others stand in line until it is their [`Turn`], until they have
//!    waited long enough, or until their client hangs up. Whoever would wait too long is told so at
//!    once. If the model has no engine at all, requests are held while somebody wakes it.
//! 2. `Prompt` is how long a prompt is and how much of it is work, before an engine has counted it.
//! 3. [`AdmittedDemand`] is the queue's state: what callers feel, and what scaling goes by; `judge` counts who
//!    felt too much.
//! 4. [`Served`] has all models, each with its engines and its queue.
//! 5. `idle` gives turns to the class batch and takes them back for others, `batch` has what of it is at engines.
//!
//! Who is next is decided by `flyball_routing::fair`, which is pure; here are locks, clocks and tasks.

mod batch;
mod demand;
mod enter;
mod gate;
mod idle;
mod judge;
mod line;
mod pace;
mod prompt;
mod served;
#[cfg(test)]
mod tests;
mod turn;
mod wake;

pub use demand::{AdmittedDemand, ModelNow};
pub(crate) use enter::{Ask, Entered};
pub(crate) use gate::{BATCH_RETRY_S, Gate};
pub(crate) use judge::Objectives;
pub(crate) use prompt::{BYTES_PER_TOKEN, Scale};
pub(crate) use served::{Served, ServedModel};
pub(crate) use turn::{InLine, Turn};
