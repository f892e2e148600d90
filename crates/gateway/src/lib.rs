//! The front door: OpenAI and Anthropic requests in, the engine that answers cheapest chosen, bytes
//! passed through.
//!
//! A request goes through the phases in this order, and each phase is a module:
//!
//! 1. `accept` takes the connection and holds its limits.
//! 2. `identify` says who asks.
//! 3. `room` says whether there is room inside the gateway, for the request and for its body. `scan`
//!    reads the few keys it needs out of the body while that arrives, and hashes the prompt block by
//!    block.
//! 4. `aim` finds the model behind a name (`split`) and makes the request as its engines get it
//!    (`salt`, `edit`). `answer_cache` may have its answer, and `mirror` may send a copy.
//! 5. `admit` says whose turn it is at the engines.
//! 6. `choose` asks `flyball-routing` for an engine of the fleet.
//! 7. `forward` sends the bytes on, tries again where that is safe, relays the answer while
//!    `sse` watches it, and carries a hang-up to the engine.
//! 8. `meter` counts what was used, once per request, however it ended (`finished`).
//!
//! `request` takes it from phase to phase and is the one that knows all of them. What each phase found out
//! is a value in `phase`, and from there on in `forward`; whoever holds it owes the meter its end. `shared`
//! is what every phase may look at. `serve` runs threads that do this.
//!
//! Beside them: `settings` (what a gateway is told), `live` (what of it may change while it runs),
//! `models` (which models ModelServices offer), `tenants` (who is let in by Tenants), `tokens` (their members, who show tokens), `access` (what their keys may do), `collector` (engines asked once for all gateways), `wake`
//! (who is told that a model is wanted), `link` (what the operator is told and says), `orders` (how what
//! it said last is carried out), `quota` (parts of limits and budgets of Tenants), `answer` (error bodies), `admin` (health, metrics), `state` (one look at
//! all of it), `audit` (what was done to it), `shadow` (which policy would have been better).
//!
//! Engines are in a crate of their own, `flyball-fleet`: where they are, what they report and forget, and
//! what must hold while requests are under way at them.
//!
//! No module uses one that comes after it or stands beside it here:
//!
//! - `access`, `names`, `state`, `surface`
//! - `scan`, `sse`
//! - `answer`, `edit`, `finished`, `settings`
//! - `accept`, `admit`, `audit`, `answer_cache`, `models`, `quota`, `room`, `salt`, `split`
//! - `choose`, `collector`, `identify`
//! - `live`, `shadow`, `tenants`
//! - `tokens`
//! - `aim`, `orders`, `shared`
//! - `phase`
//! - `forward`
//! - `mirror`
//! - `request`
//! - `serve`
//! - `link`
//! - `meter`, `wake`
//! - `admin`
//! - `process`
//!
//! It writes nothing to Kubernetes and knows nothing of the governor. Start at [`process`], which runs
//! everything, or at [`serve`], the data plane.

#![deny(missing_docs)]

mod accept;
mod access;
pub mod admin;
mod admit;
mod aim;
mod answer;
mod answer_cache;
pub mod audit;
mod choose;
pub mod collector;
mod edit;
mod finished;
mod forward;
mod identify;
pub mod link;
mod live;
pub mod meter;
mod mirror;
pub mod models;
mod names;
mod orders;
mod phase;
pub mod process;
pub mod quota;
mod request;
mod room;
mod salt;
pub mod scan;
pub mod serve;
pub mod settings;
pub mod shadow;
mod shared;
mod split;
pub mod sse;
pub mod state;
mod surface;
pub mod tenants;
pub mod tokens;
mod urgency;
pub mod wake;

pub use admit::AdmittedDemand;
pub use identify::{RefusedKey, UnauthorizedReason};
pub use surface::Surface;
