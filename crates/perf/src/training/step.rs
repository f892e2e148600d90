//! The time of one training step, by part.
//!
//! A step sends micro-batches through a pipeline, then sums gradients and updates weights. Each part
//! is a closed form over the shape, the layout and the rates of the hardware; six numbers for all
//! and three per framework were fitted to published measurements (docs/accuracy.md).

use super::coefficients::TrainingCoefficients;
use super::compute::{Inputs, Passes};
use super::run::TrainingSetup;
use super::shape::Shape;
use super::{TrainingHardware, TrainingLayout};
use crate::architecture::Architecture;

/// Seconds of one step, by what they are spent on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainingStepParts {
    /// Matrix products of the layers, recomputation included.
    pub linear: f64,
    /// The output layer.
    pub head: f64,
    pub attention: f64,
    /// Norms, residuals, activations, casts and the loss.
    pub elementwise: f64,
    /// The host's work to start kernels, where the accelerator waits for it.
    pub launches: f64,
    /// Collectives inside layers.
    pub tensor: f64,
    /// Sending tokens to experts and back.
    pub expert: f64,
    /// Stages that wait for the first or last micro-batch.
    pub bubble: f64,
    pub stage_transfers: f64,
    /// Gradients and weights between the copies, as far as not hidden.
    pub data: f64,
    pub optimizer: f64,
}

impl TrainingStepParts {
    /// Every part with its name, in order.
    pub const fn named(&self) -> [(&'static str, f64); 11] {
        [
            ("linear", self.linear),
            ("head", self.head),
            ("attention", self.attention),
            ("elementwise", self.elementwise),
            ("launches", self.launches),
            ("tensor", self.tensor),
            ("expert", self.expert),
            ("bubble", self.bubble),
            ("stage_transfers", self.stage_transfers),
            ("data", self.data),
            ("optimizer", self.optimizer),
        ]
    }

    /// The same where the fullest stage has so many times the layers of the mean one and sets the
    /// pace. The output layer stays: the stage that has it is not the fullest.
    #[must_use]
    pub fn of_fullest_stage(self, fuller: f64) -> Self {
        Self {
            linear: self.linear * fuller,
            head: self.head,
            attention: self.attention * fuller,
            elementwise: self.elementwise * fuller,
            launches: self.launches * fuller,
            tensor: self.tensor * fuller,
            expert: self.expert * fuller,
            bubble: self.bubble * fuller,
            stage_transfers: self.stage_transfers,
            data: self.data * fuller,
            optimizer: self.optimizer * fuller,
        }
    }

    /// Seconds of the whole step.
    pub fn total(&self) -> f64 {
        self.named().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Share of a part in the whole, such as `parts.share_of(parts.bubble)`.
    pub fn share_of(&self, part: f64) -> f64 {
        part / self.total()
    }
}

/// One model on one kind of accelerator.
#[derive(Clone, Copy, Debug)]
pub struct TrainingModel {
    shape: Shape,
    hardware: TrainingHardware,
    coefficients: TrainingCoefficients,
}

impl TrainingModel {
    pub fn new(
        model: &Architecture,
        hardware: &TrainingHardware,
        coefficients: &TrainingCoefficients,
    ) -> Self {
        Self { shape: Shape::of(model), hardware: *hardware, coefficients: *coefficients }
    }

    /// The same with other fitted numbers.
    #[must_use]
    pub const fn with(self, coefficients: &TrainingCoefficients) -> Self {
        Self { coefficients: *coefficients, ..self }
    }

    /// The same on other hardware.
    #[must_use]
    pub const fn on(self, hardware: &TrainingHardware) -> Self {
        Self { hardware: *hardware, ..self }
    }
    /// The time of one step, by part.
    pub fn step(&self, layout: &TrainingLayout, run: &TrainingSetup) -> TrainingStepParts {
        let passes = Passes::of(&self.shape, layout, run);
        let inputs = Inputs {
            shape: &self.shape,
            hardware: &self.hardware,
            global: &self.coefficients,
            own: &self.coefficients.frameworks[run.framework.index()],
            layout,
            run,
            passes: &passes,
            tokens: layout.tokens(run.sequence),
        };
        let compute = inputs.compute();
        let (tensor, expert) = (inputs.tensor(), inputs.expert());
        let micro_batch = compute.linear
            + compute.head
            + compute.attention
            + compute.elementwise
            + compute.launches
            + tensor
            + expert;
        let count = layout.micro_batches(run.global_batch);
        let transfer = inputs.stage_transfer();
        let waiting = (f64::from(layout.pipeline) - 1.0) / f64::from(layout.interleave);
        let bubble = waiting * micro_batch;
        let pipeline = count * (micro_batch + transfer) + bubble;
        TrainingStepParts {
            linear: count * compute.linear,
            head: count * compute.head,
            attention: count * compute.attention,
            elementwise: count * compute.elementwise,
            launches: count * compute.launches,
            tensor: count * tensor,
            expert: count * expert,
            bubble,
            stage_transfers: count * transfer,
            data: inputs.data(count, pipeline),
            optimizer: inputs.optimizer(),
        }
    }
}
