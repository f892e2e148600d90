//! What replicas of one size carry together, and how many it takes.

use flyball_core::pooling::Pooling;

/// Replicas of one size. Work is counted in what one of the yardstick carries alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    /// What one carries alone.
    pub(crate) size: f64,
    pub(crate) pooling: Pooling,
}

impl Fleet {
    /// What so many carry together.
    pub(crate) fn carries(&self, replicas: f64) -> f64 {
        self.size * self.pooling.carries(replicas)
    }

    /// How many carry so much; parts of one too.
    pub(crate) fn replicas(&self, work: f64) -> f64 {
        self.pooling.replicas(work / self.size)
    }
}
