//! On which machines a training run should be, so that it is never late and costs the least: spot, on-demand, in which
//! zone, or none for now; and how often it should save.
//!
//! [`decide()`] is a plain function of a [`TrainingSnapshot`], the previous decision and what was learnt. Its steps, in
//! order: what must hold ([`deadline`]), what was seen (`lifetimes`, [`memory`]), what finishing would cost from each
//! state (`outlook`), how often to save ([`interval`]), and the choice (`decide`). [`invariants`] say what must hold
//! between a snapshot and a decision.
//!
//! It does no I/O and knows no clock, no randomness and no serialised form. It assumes that on-demand machines can always
//! be had; nothing here makes a run wait for one. `flyball backtest train` replays it, and the operator carries it out.
//! [`victims()`] says whom a preemption should take, [`size()`] how many nodes an elastic run should have. Start at [`TrainingSnapshot`].

#![deny(missing_docs)]

pub mod deadline;
pub mod decide;
mod hours;
pub mod interval;
pub mod invariants;
mod learnt;
mod lifetimes;
pub mod memory;
mod outlook;
pub mod sizes;
pub mod snapshot;
pub mod victims;

pub use decide::{TrainingDecision, TrainingReason, decide};
pub use learnt::{LearntLives, LearntMarket, LearntZone};
pub use lifetimes::Lifetimes;
pub use memory::RunMemory;
pub use sizes::{ElasticRun, SizeCandidate, SizeDecision, size};
pub use snapshot::{HeldMachine, SpotState, SpotZone, TrainingChoice, TrainingSnapshot, ZoneName};
pub use victims::{VictimCandidate, victims};
