//! What stood in the caches before a run began: it decides which of two promises its minutes are.

use super::budget::Minutes;
use crate::figures::{self, FigureTarget, Op};
use crate::{cluster, tools};
use anyhow::Result;
use std::path::Path;

/// The caches of what always runs. Those of optional steps decide only whether they run.
pub(super) enum Caches {
    Warm,
    Cold,
    Partly,
}

impl Caches {
    pub(super) fn inspect(root: &Path) -> Result<Self> {
        // Said by `.ci/run`, because this very program was built into that folder.
        let target = std::env::var("FLYBALL_CI_TARGET").is_ok_and(|word| word == "warm");
        let parts = cluster::parts_are_cached(root)?;
        Ok(Self::of([parts, tools::nextest_is_cached()?, tools::helm_is_cached()?, target]))
    }

    fn of(parts: [bool; 4]) -> Self {
        match parts {
            [true, true, true, true] => Self::Warm,
            [false, false, false, false] => Self::Cold,
            _ => Self::Partly,
        }
    }

    pub(super) const fn are_warm(&self) -> bool {
        matches!(self, Self::Warm)
    }

    pub(super) const fn in_words(&self) -> &'static str {
        match self {
            Self::Warm => "warm (cluster parts, nextest, helm, target folder)",
            Self::Cold => "empty",
            Self::Partly => "partly filled, so that the minutes count neither as cold nor as warm",
        }
    }

    /// What a run may take, if nobody says: as much as is promised.
    pub(super) const fn budget(&self) -> Minutes {
        match self {
            Self::Warm => Minutes(12.0),
            Self::Cold | Self::Partly => Minutes(55.0),
        }
    }

    /// Writes the figure of this kind of run.
    pub(super) fn record(&self, minutes: Minutes) -> Result<()> {
        let Some(name) = self.figure() else { return Ok(()) };
        let target = FigureTarget { op: Op::AtMost, value: self.budget().0 };
        figures::write(name, minutes.0, "min", target, "FLYBALL_CI_FIGURE=true .ci/run").map(drop)
    }

    const fn figure(&self) -> Option<&'static str> {
        match self {
            Self::Warm => Some("ci.warm_minutes"),
            Self::Cold => Some("ci.cold_minutes"),
            Self::Partly => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_with_all_caches_or_none_is_held_to_a_promise() {
        let name = |parts| Caches::of(parts).figure();
        assert_eq!(name([true; 4]), Some("ci.warm_minutes"));
        assert_eq!(name([false; 4]), Some("ci.cold_minutes"));
        assert_eq!(name([true, true, false, true]), None);
        assert_eq!(name([false, false, false, true]), None);
    }
}
