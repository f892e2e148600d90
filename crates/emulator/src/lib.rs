//! An engine without a GPU: the API, the timing and the troubles of a real one, over HTTP/1.1.
//!
//! For our own tests and for users' rehearsals. What a step takes comes from `perf`, who is in it
//! from the simulator's engine, driven in real time (or faster): batching, a finite cache, prefixes
//! found again, preemption, aborts. Tokens leave when that engine says so. [`faults`] make it fail in
//! the ways that real engines do, and its log says what truly happened to each request.
//!
//! What it does not know: tokenizers (four bytes are a token), sampling (an answer is words drawn
//! from the prompt's hash, as long as asked for), more than one model at a time, Kubernetes.
//!
//! Start reading at [`Emulator::start`]; then `engine` for time and `serve` for HTTP.

#![deny(missing_docs)]

mod api;
mod engine;
pub mod faults;
mod kv_events;
mod metrics;
pub mod prompt;
mod running;
mod serve;
mod settings;
pub mod speed;
mod words;

pub use engine::{EmulatedState, EngineLogRecord, LoggedOutcome};
pub use faults::Faults;
pub use kv_events::EventShape;
pub use running::{Emulator, RunningEmulator, StartError};
pub use settings::EmulatorSettings;
