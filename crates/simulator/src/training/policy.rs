//! What decides about a run in a replay.

use flyball_core::units::Micros;
use flyball_training::{TrainingChoice, TrainingReason, TrainingSnapshot};

/// What a policy wants for the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChoice {
    /// Where the run should be.
    pub choice: TrainingChoice,
    /// Whether it should save first.
    pub save_now: bool,
    /// How long it computes from one save to the next.
    pub save_every: Micros,
    /// Why, where the policy says.
    pub reason: Option<TrainingReason>,
    /// What the choice breaks of what its policy promises.
    pub broken: Vec<&'static str>,
}

/// A policy over one run, asked once at each step.
pub trait RunPolicy {
    /// What to do now.
    fn choose(&mut self, snapshot: &TrainingSnapshot) -> PolicyChoice;
}
