//! How a training run is spread over accelerators.

use flyball_core::units::Gpus;
use std::fmt;

/// The degrees of a run, and what each accelerator keeps of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrainingLayout {
    /// Each matrix is split over so many accelerators.
    pub tensor: u32,
    /// Consecutive groups of layers are on so many accelerators.
    pub pipeline: u32,
    /// Groups of layers that one accelerator has, taken in turn; 1 without interleaving.
    pub interleave: u32,
    /// Each sequence is split over so many accelerators.
    pub context: u32,
    /// Copies of all that, each on its own sequences.
    pub data: u32,
    /// Over how many accelerators the experts of one layer are spread. They are taken from the ones
    /// above and do not add to them.
    pub expert: u32,
    /// Sequences that go through the pipeline together.
    pub micro_batch: u32,
    pub sharding: Sharding,
    pub recompute: Recompute,
    /// What is not split by `tensor` is split along the sequence instead.
    pub sequence_parallel: bool,
}

/// What the data-parallel copies divide among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sharding {
    /// Nothing.
    Replicated,
    /// The optimizer's state: ZeRO-1, Megatron's distributed optimizer.
    OptimizerOnly,
    /// Gradients too; weights stay gathered after the forward pass: ZeRO-2, `SHARD_GRAD_OP`.
    Gradients,
    /// Weights too: ZeRO-3, FSDP.
    Full,
}

impl Sharding {
    /// Whether weights are gathered as they are needed.
    pub const fn gathers(self) -> bool {
        matches!(self, Self::Gradients | Self::Full)
    }
}

/// What is thrown away in the forward pass and computed again in the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recompute {
    None,
    /// What is large and quick to compute; which that is depends on the framework.
    Selective,
    /// Everything but the input of each layer.
    Full,
}

impl TrainingLayout {
    /// One accelerator, one sequence at a time.
    pub const ONE: Self = Self {
        tensor: 1,
        pipeline: 1,
        interleave: 1,
        context: 1,
        data: 1,
        expert: 1,
        micro_batch: 1,
        sharding: Sharding::Replicated,
        recompute: Recompute::None,
        sequence_parallel: false,
    };

    /// Accelerators of the run.
    pub const fn gpus(&self) -> Gpus {
        Gpus::new(self.tensor * self.pipeline * self.context * self.data)
    }

    /// Over how many accelerators the optimizer and gradients are divided or summed.
    pub(crate) fn copies(&self) -> f64 {
        f64::from(self.data) * f64::from(self.context)
    }

    /// The same for the weights of experts, which are in fewer places.
    pub(crate) fn expert_copies(&self) -> f64 {
        (self.copies() * f64::from(self.tensor) / f64::from(self.expert)).max(1.0)
    }

    /// Micro-batches of one step.
    pub(crate) fn micro_batches(&self, global_batch: f64) -> f64 {
        (global_batch / (f64::from(self.data) * f64::from(self.micro_batch))).max(1.0)
    }

    /// Tokens of one micro-batch that one group of `tensor` accelerators works on.
    pub(crate) fn tokens(&self, sequence: f64) -> f64 {
        f64::from(self.micro_batch) * sequence / f64::from(self.context)
    }
}

impl fmt::Display for TrainingLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TP{}", self.tensor)?;
        if self.pipeline > 1 {
            write!(f, " PP{}", self.pipeline)?;
            if self.interleave > 1 {
                write!(f, "x{}", self.interleave)?;
            }
        }
        for (name, degree) in [("CP", self.context), ("EP", self.expert)] {
            if degree > 1 {
                write!(f, " {name}{degree}")?;
            }
        }
        write!(f, " DP{} MB{}", self.data, self.micro_batch)?;
        match self.sharding {
            Sharding::Replicated => {}
            Sharding::OptimizerOnly => f.write_str(" ZeRO-1")?,
            Sharding::Gradients => f.write_str(" ZeRO-2")?,
            Sharding::Full => f.write_str(" FSDP")?,
        }
        match self.recompute {
            Recompute::None => {}
            Recompute::Selective => f.write_str(" selective recompute")?,
            Recompute::Full => f.write_str(" full recompute")?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_written_the_way_people_write_it() {
        let layout = TrainingLayout {
            tensor: 4,
            pipeline: 8,
            interleave: 2,
            data: 16,
            sharding: Sharding::OptimizerOnly,
            recompute: Recompute::Full,
            ..TrainingLayout::ONE
        };
        assert_eq!(layout.to_string(), "TP4 PP8x2 DP16 MB1 ZeRO-1 full recompute");
        assert_eq!(layout.gpus(), Gpus::new(512));
        assert_eq!(TrainingLayout::ONE.to_string(), "TP1 DP1 MB1");
    }

    #[test]
    fn experts_have_fewer_copies() {
        let layout =
            TrainingLayout { tensor: 2, data: 32, expert: 8, context: 2, ..TrainingLayout::ONE };
        assert_eq!((layout.copies(), layout.expert_copies()), (64.0, 16.0));
        assert_eq!(layout.micro_batches(128.0), 4.0);
        assert_eq!(layout.tokens(4096.0), 2048.0);
    }
}
