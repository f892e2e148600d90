//! Worlds as data: what there is, what comes, what breaks, and what should come of it.
//!
//! A scenario is a TOML file in `scenarios/`. It says nothing about how anything is computed, so
//! that the simulator and tests on a real cluster can read the same one. Each number that is
//! expected says where it comes from.
//!
//! `form.rs` is the file as it is written, `read.rs` finds everything that is wrong with it at
//! once, `build.rs` makes a [`crate::cluster::Setup`] of it, `speed.rs` says how fast replicas are,
//! `facts.rs` what rivals are set up with, and `judge.rs` compares what came of it with what was expected. Start at [`Scenario`].

mod build;
mod facts;
mod form;
mod judge;
mod read;
mod speed;
#[cfg(test)]
mod tests;

pub use facts::facts;
pub use judge::{Finding, ScenarioVerdict};
pub use read::ScenarioProblems;

use crate::cluster::Setup;
use crate::traffic::Trace;

/// A model on accelerators, by the names that the performance model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modelled<'a> {
    /// The model.
    pub model: &'a str,
    /// The accelerator.
    pub accelerator: &'a str,
    /// How many of them one replica is spread over.
    pub tensor: u32,
}

/// A scenario that was read and found sound.
#[derive(Clone, Debug)]
pub struct Scenario {
    form: form::Form,
}

impl Scenario {
    /// Reads a scenario, or tells everything that is wrong with it.
    pub fn read(text: &str) -> Result<Self, ScenarioProblems> {
        read::read(text).map(|form| Self { form })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.form.name
    }

    /// Summary in a sentence.
    pub fn about(&self) -> &str {
        &self.form.about
    }

    /// The world of it. `traces` finds the traffic that a model replays, by its name.
    pub fn setup(
        &self,
        traces: &dyn Fn(&str) -> Result<Trace, String>,
    ) -> Result<Setup, ScenarioProblems> {
        build::setup(&self.form, traces)
    }

    /// What computes, of each variant whose speed the performance model is to say: those can be played
    /// on a cluster too, with engines that are given the same names.
    pub fn modelled(&self) -> impl Iterator<Item = Modelled<'_>> {
        let variants = self.form.models.iter().flat_map(|model| &model.variants);
        variants.filter_map(|variant| variant.modelled.as_ref()).map(|form| Modelled {
            model: &form.model,
            accelerator: &form.accelerator,
            tensor: form.tensor,
        })
    }

    /// The same with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.form.seed = seed;
        self
    }
}
