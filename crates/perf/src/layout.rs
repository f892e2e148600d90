//! How one copy of a model is spread over accelerators.

use flyball_core::units::Gpus;
use std::fmt;

/// How an engine spreads one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServingLayout {
    /// Each matrix is split over so many accelerators.
    pub tensor: u32,
    /// Consecutive groups of layers are on so many accelerators, each `tensor` wide.
    pub pipeline: u32,
    /// Attention runs in so many copies, each on its own requests, around shared experts.
    pub attention_copies: u32,
    /// Whole experts are spread over all accelerators instead of splitting each.
    pub whole_experts: bool,
}

impl ServingLayout {
    /// One accelerator.
    pub const ONE: Self =
        Self { tensor: 1, pipeline: 1, attention_copies: 1, whole_experts: false };

    /// Splitting matrices only.
    pub const fn tensor(tensor: u32) -> Self {
        Self { tensor, ..Self::ONE }
    }

    /// Accelerators of one replica.
    pub const fn gpus(&self) -> Gpus {
        Gpus::new(self.tensor * self.pipeline * self.attention_copies)
    }

    /// Accelerators that work on the same layer at the same time.
    pub const fn abreast(&self) -> u32 {
        self.tensor * self.attention_copies
    }
}

impl fmt::Display for ServingLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tensor, self.attention_copies) {
            (tensor, 1) => write!(f, "TP{tensor}")?,
            (1, copies) => write!(f, "DP{copies}")?,
            (tensor, copies) => write!(f, "TP{tensor} DP{copies}")?,
        }
        if self.pipeline > 1 {
            write!(f, " PP{}", self.pipeline)?;
        }
        if self.whole_experts {
            write!(f, " EP{}", self.abreast())?;
        }
        Ok(())
    }
}
