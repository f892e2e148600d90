//! What replicas of one size carry together, and how many it takes.

use flyball_core::pooling::Pooling;

/// Replicas of one size. Work is counted in what one of the yardstick carries alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fleet {
    /// What one carries alone.
    pub(crate) size: f64,
    pub(crate) pooling: Pooling,
    /// What the slow ones among those that serve lack together, in replicas.
    pub(crate) lacks: f64,
}

impl Fleet {
    /// What so many carry together.
    pub(crate) fn carries(&self, replicas: f64) -> f64 {
        self.size * self.pooling.carries((replicas - self.lacks).max(0.0))
    }

    /// How many carry so much; parts of one too.
    pub(crate) fn replicas(&self, work: f64) -> f64 {
        let lacks = if work > 0.0 { self.lacks } else { 0.0 };
        self.pooling.replicas(work / self.size) + lacks
    }
}
