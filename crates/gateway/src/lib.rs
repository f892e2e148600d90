//! The front door: OpenAI and Anthropic requests in, the engine that answers cheapest chosen, bytes
//! passed through.
//!
//! A request goes through the phases in this order, and each phase is a module:
//!
//! 1. `accept` takes the connection, holds its limits, and reads head and body. `scan` reads the
//!    few keys it needs out of the body while that arrives, and hashes the prompt block by block.
//! 2. `identify` says who asks.
//! 3. `admit` says whether there is room.
//! 4. `choose` asks `flyball-routing` for an engine of the `fleet`.
//! 5. `forward` sends the very bytes on, tries again where that is safe, relays the answer while
//!    `sse` watches it, and carries a hang-up to the engine.
//! 6. `meter` counts what was used, once per request, however it ended.
//!
//! Beside them: `settings` (what a gateway is told), `discover` (where engines are), `collect` (what
//! they report), `kv_events` (what they forget), `answer` (error bodies), `admin` (health, metrics).
//!
//! It writes nothing to Kubernetes and knows nothing of the governor. Start at [`process`], which runs
//! everything, or at [`serve`], the data plane.

#![deny(missing_docs)]

mod accept;
pub mod admin;
mod admit;
mod answer;
mod choose;
pub mod collect;
pub mod discover;
pub mod fleet;
mod forward;
mod identify;
pub mod kv_events;
pub mod meter;
pub mod process;
pub mod scan;
pub mod serve;
pub mod settings;
pub mod sse;
mod surface;

pub use surface::Surface;
