//! What accelerators send each other, and how long that takes.

use super::compute::{Inputs, PLAIN_TRAFFIC};
use super::layout::Sharding;

/// Seconds until the first byte of a collective in a layer has gone round.
const COLLECTIVE_START: f64 = 10e-6;
/// Trained weights of low-rank adapters, relative to the frozen ones (rank 16 to 64).
const ADAPTERS: f64 = 0.02;
/// Bytes per weight that the optimizer reads and writes: FP32 weight, two moments, gradient and the
/// 16-bit copy.
const OPTIMIZER_TRAFFIC: f64 = 24.0;

impl Inputs<'_> {
    /// All-reduces of tensor parallelism in one micro-batch: two forward, two backward per layer.
    pub(super) fn tensor(&self) -> f64 {
        if self.layout.tensor == 1 {
            return 0.0;
        }
        let tensor = f64::from(self.layout.tensor);
        let domain = self.hardware.domain;
        let (bandwidth, exposed) = if tensor > domain {
            (self.network() * domain, 1.0)
        } else {
            (self.hardware.bus, self.own.tensor_exposed_share)
        };
        let sent = 2.0 * (tensor - 1.0) / tensor * 2.0 * self.tokens * self.shape.hidden;
        let layers = self.shape.layers / f64::from(self.layout.pipeline);
        let collectives = 4.0 + 2.0 * self.passes.full;
        layers * collectives * (sent / bandwidth + COLLECTIVE_START) * exposed
    }

    /// All-to-alls around the experts in one micro-batch.
    pub(super) fn expert(&self) -> f64 {
        if self.layout.expert == 1 {
            return 0.0;
        }
        let expert = f64::from(self.layout.expert);
        let tensor = f64::from(self.layout.tensor);
        // An accelerator is always in its own domain, also when one matrix spans several.
        let inside = expert.min((self.hardware.domain / tensor).max(1.0));
        let over_network = 1.0 - inside / expert;
        let over_links = 1.0 - 1.0 / expert - over_network;
        // There and back, forward and backward, two bytes per value: 8 bytes.
        let layers = self.shape.expert_layers / f64::from(self.layout.pipeline);
        let sent =
            8.0 * self.tokens / tensor * self.shape.active_experts * self.shape.hidden * layers;
        let seconds = over_links / self.hardware.bus + over_network / self.hardware.network;
        self.global.all_to_all_share * sent * seconds
    }

    /// Sending a micro-batch from stage to stage, as far as it is not hidden.
    pub(super) fn stage_transfer(&self) -> f64 {
        if self.layout.pipeline == 1 {
            return 0.0;
        }
        let sent = 4.0 * f64::from(self.layout.interleave) * self.tokens * self.shape.hidden
            / f64::from(self.layout.tensor);
        self.global.exposed_share * sent / self.hardware.network
    }

    /// Summing gradients and sending weights in one step of `micro_batches`, as far as it is not
    /// hidden behind `pipeline_seconds` of other work.
    pub(super) fn data(&self, micro_batches: f64, pipeline_seconds: f64) -> f64 {
        let layout = self.layout;
        let copies = layout.copies();
        let shared = (copies - 1.0) / copies;
        let (weights, expert_weights) = self.local_weights();
        let gathers = layout.sharding.gathers();
        // With a pipeline, gathered weights are kept until the step ends.
        let each_micro_batch = gathers && layout.pipeline == 1;
        let exchanged = if gathers {
            // Gathered forward and backward and reduced, two bytes each.
            let bytes = match layout.sharding {
                Sharding::Gradients if each_micro_batch => 4.0,
                _ => 6.0,
            };
            let times = if each_micro_batch { micro_batches } else { 1.0 };
            times * bytes * weights * shared / self.copies_bandwidth()
        } else {
            let bytes = if self.run.recipe.wide_gradients { 6.0 } else { 4.0 };
            let expert_copies = layout.expert_copies();
            let shared_experts = (expert_copies - 1.0) / expert_copies;
            bytes * weights * shared / self.copies_bandwidth()
                + bytes * expert_weights * shared_experts / self.expert_copies_bandwidth()
        };
        let seconds = exchanged * self.trained();
        let behind =
            if each_micro_batch { pipeline_seconds } else { pipeline_seconds / micro_batches };
        let exposed = if self.run.recipe.overlap { self.global.exposed_share } else { 1.0 };
        exposed * seconds.min(behind) + (seconds - behind).max(0.0)
    }

    /// Updating the weights.
    pub(super) fn optimizer(&self) -> f64 {
        let (weights, expert_weights) = self.local_weights();
        let held = match self.layout.sharding {
            Sharding::Replicated => weights,
            _ => weights / self.layout.copies(),
        };
        let updated = held + expert_weights / self.layout.expert_copies();
        OPTIMIZER_TRAFFIC * updated / (PLAIN_TRAFFIC * self.hardware.memory) * self.trained()
    }

    fn trained(&self) -> f64 {
        if self.run.lora { ADAPTERS } else { 1.0 }
    }

    /// What rings over the network reach of its line rate.
    fn network(&self) -> f64 {
        self.hardware.network * self.global.network_share
    }

    /// Weights on one accelerator before the copies divide them: outside of experts, and in them.
    fn local_weights(&self) -> (f64, f64) {
        let pipeline = f64::from(self.layout.pipeline);
        let outside = self.shape.total - self.shape.routed;
        (
            outside / (f64::from(self.layout.tensor) * pipeline),
            self.shape.routed / (pipeline * f64::from(self.layout.expert)),
        )
    }

    /// Between the copies: the links inside a domain, or as many network ports as copies share one.
    fn copies_bandwidth(&self) -> f64 {
        let copies = self.layout.copies();
        let in_domain = self.hardware.domain / f64::from(self.layout.tensor);
        if copies <= in_domain {
            return self.hardware.bus;
        }
        self.hardware.bus.min(self.network() * copies.min(in_domain).max(1.0))
    }

    fn expert_copies_bandwidth(&self) -> f64 {
        let expert = f64::from(self.layout.expert);
        let copies = self.layout.expert_copies();
        if copies * expert <= self.hardware.domain {
            return self.hardware.bus;
        }
        let ports = (self.hardware.domain / expert).max(1.0).min(copies);
        self.hardware.bus.min(self.hardware.network * ports)
    }
}
