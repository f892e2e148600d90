//! Why a row is left out, by numbered rule.

/// Why a line is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    S7,
    S8,
    S9,
}

impl Scope {
    pub(super) const ALL: [Self; 9] =
        [Self::S1, Self::S2, Self::S3, Self::S4, Self::S5, Self::S6, Self::S7, Self::S8, Self::S9];

    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::S1 => {
                "S1: the catalogue has no such model or accelerator (Mamba hybrids among them)"
            }
            Self::S2 => "S2: one deployment, and over how many GPUs it is split is not said",
            Self::S3 => {
                "S3: not 1, 2, 4 or 8 GPUs abreast, or a decode worker beyond its fast links"
            }
            Self::S4 => {
                "S4: disaggregated, and the decode workers are not described or contradict the load"
            }
            Self::S5 => "S5: open loop without a rate or without lengths",
            Self::S6 => "S6: the weights do not fit the GPUs that are named",
            Self::S7 => "S7: the same measurement again (the first counts)",
            Self::S8 => {
                "S8: implies more operations per second than the datasheet's peak, so replicas or a cached prefix are hidden"
            }
            Self::S9 => {
                "S9: a token takes less time than reading weights and cache once at the datasheet's bandwidth, so speculation or GPUs are not stated"
            }
        }
    }

    /// The planner could not answer, which is its own lack and not the line's.
    pub(super) const fn ours(self) -> bool {
        matches!(self, Self::S1 | Self::S3)
    }
}
