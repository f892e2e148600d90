//! The closed list of metrics.

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only rises. Its name ends in `_total`.
    Counter,
    /// Always 1, with text in labels. Its name ends in `_info`.
    Info,
}

impl Kind {
    /// How the name of such a metric ends.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
        }
    }
}

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things that are counted. The name says which.
    Count,
    /// Seconds. The name has `_seconds` before the suffix of its kind.
    Seconds,
}

/// Every metric Flyball writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// `flyball_build_info`
    BuildInfo,
    /// `flyball_invariant_violations_total`
    InvariantViolations,
}

impl Metric {
    /// Every metric.
    pub const ALL: &[Self] = &[Self::BuildInfo, Self::InvariantViolations];

    /// The full name, as queries write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BuildInfo => "flyball_build_info",
            Self::InvariantViolations => "flyball_invariant_violations_total",
        }
    }

    /// What it measures, in one sentence without a full stop; the text format adds one.
    pub const fn help(self) -> &'static str {
        match self {
            Self::BuildInfo => "The version of the running program, always 1",
            Self::InvariantViolations => "Decisions that broke a rule, by the id of the rule",
        }
    }

    /// What kind of number it is.
    pub const fn kind(self) -> Kind {
        match self {
            Self::BuildInfo => Kind::Info,
            Self::InvariantViolations => Kind::Counter,
        }
    }

    /// What it is measured in.
    pub const fn unit(self) -> Unit {
        match self {
            Self::BuildInfo | Self::InvariantViolations => Unit::Count,
        }
    }

    /// Its labels.
    pub const fn labels(self) -> &'static [&'static str] {
        match self {
            Self::BuildInfo => &["version"],
            Self::InvariantViolations => &["invariant"],
        }
    }

    /// The name without the suffix of its kind, which the text format adds again.
    pub(super) fn family_name(self) -> &'static str {
        self.name().strip_suffix(self.kind().suffix()).unwrap_or(self.name())
    }
}
