//! Files and batches, as OpenAI's API has them, on capacity that nobody else wants.
//!
//! `forms` are the objects and lines as clients see them; `check` reads an input file once and says what is wrong with it.
//! `state` is a batch in the store: a history of states that grows by names which can be taken once, and segments of
//! results. `step` says from these what is to do next, `order` whose line is next, `worker` does it, and whoever follows a
//! dead worker goes on from the segments. `lines` sends a line to the gateway in class `batch` and assembles the answer.
//! `api` answers clients.
//!
//! There is no database: everything is in the store. It knows nothing of engines, queues or clusters: whose turn a line is
//! at an engine is the gateway's business, also to cut a line off and to go on with it.
//!
//! Start at [`service::run`], then `worker/mod.rs`.

#![deny(missing_docs)]

mod api;
mod check;
mod forms;
mod lease;
mod lines;
mod order;
pub mod service;
pub mod settings;
mod state;
mod step;
mod worker;
#[cfg(test)]
mod worlds;
