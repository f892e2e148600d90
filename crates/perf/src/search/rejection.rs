//! Why a layout is not among the answers.

use flyball_core::units::Bytes;
use std::fmt;

/// What ruled a layout out, with the numbers behind it.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// Weights, cache for one request and workspace do not fit.
    Memory { needed: Bytes, usable: Bytes },
    /// It may fit, or not: too close to promise.
    Tight { needed: Bytes, usable: Bytes },
    /// Heads, layers or experts do not divide by a degree.
    Indivisible { what: &'static str, count: u32, by: u32 },
    /// The exchange between accelerators takes most of the time.
    Link { layout: String, link: String, share: f64 },
    /// Even an idle replica misses the target.
    Latency { which: Latency, best: f64, target: f64 },
    /// No price is known, and the objective needs one.
    NoPrice,
    /// It costs more than the budget.
    OverBudget { usd: f64, budget: f64 },
    /// It ends after the deadline.
    TooLate { seconds: f64, deadline: f64 },
    /// The part has no such number format.
    Format { what: String },
    /// More accelerators than the question allows.
    TooMany { gpus: u32, most: u32 },
}

/// Which latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    FirstToken,
    BetweenTokens,
}

impl Rejection {
    /// One word for tables and programs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Memory { .. } => "memory",
            Self::Tight { .. } => "tight",
            Self::Indivisible { .. } => "indivisible",
            Self::Link { .. } => "link",
            Self::Latency { which: Latency::FirstToken, .. } => "ttft",
            Self::Latency { which: Latency::BetweenTokens, .. } => "itl",
            Self::NoPrice => "price",
            Self::OverBudget { .. } => "budget",
            Self::TooLate { .. } => "deadline",
            Self::Format { .. } => "format",
            Self::TooMany { .. } => "too-many",
        }
    }

    /// How close it came: rejections that got furthest are the ones to show first.
    const fn closeness(&self) -> u8 {
        match self {
            Self::OverBudget { .. } | Self::TooLate { .. } => 5,
            Self::Latency { .. } => 4,
            Self::Link { .. } | Self::Tight { .. } => 3,
            Self::NoPrice | Self::TooMany { .. } => 2,
            Self::Memory { .. } => 1,
            Self::Indivisible { .. } | Self::Format { .. } => 0,
        }
    }
}

impl Rejection {
    /// How far it missed, as a ratio: 1 is not at all. For comparing rejections of one kind.
    pub fn distance(&self) -> f64 {
        let ratio = |needed: &Bytes, usable: &Bytes| needed.get() as f64 / usable.get() as f64;
        match self {
            Self::Memory { needed, usable } | Self::Tight { needed, usable } => {
                ratio(needed, usable)
            }
            Self::Link { share, .. } => *share,
            Self::Latency { best, target, .. } => best / target,
            Self::OverBudget { usd, budget } => usd / budget,
            Self::TooLate { seconds, deadline } => seconds / deadline,
            Self::TooMany { gpus, most } => f64::from(*gpus) / f64::from(*most),
            Self::Indivisible { .. } | Self::NoPrice | Self::Format { .. } => 1.0,
        }
    }

    /// Closest first: by kind, then by how far it missed.
    pub fn by_closeness(&self, other: &Self) -> std::cmp::Ordering {
        let kind = other.closeness().cmp(&self.closeness());
        kind.then(self.distance().total_cmp(&other.distance()))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gb = |bytes: &Bytes| bytes.get() as f64 / 1e9;
        match self {
            Self::Memory { needed, usable } => {
                write!(f, "needs {:.1} GB per GPU, has {:.1} GB", gb(needed), gb(usable))
            }
            Self::Tight { needed, usable } => write!(
                f,
                "may need up to {:.1} GB per GPU of {:.1} GB: too close to promise",
                gb(needed),
                gb(usable)
            ),
            Self::Indivisible { what, count, by } => {
                write!(f, "{count} {what} do not divide by {by}")
            }
            Self::Link { layout, link, share } => {
                write!(
                    f,
                    "{layout} over {link}: all-reduce takes {:.0} % of the step",
                    share * 100.0
                )
            }
            Self::Latency { which, best, target } => {
                let name = match which {
                    Latency::FirstToken => "TTFT",
                    Latency::BetweenTokens => "ITL",
                };
                let (best, target) = (best * 1e3, target * 1e3);
                write!(f, "{name} up to {best:.0} ms even when idle, target {target:.0} ms")
            }
            Self::NoPrice => f.write_str("no price known"),
            Self::OverBudget { usd, budget } => {
                // Cents count where an hour is asked for, and not in a run of weeks.
                let cents = if *budget < 100.0 { 2 } else { 0 };
                write!(f, "may cost ${usd:.cents$}, budget ${budget:.cents$}")
            }
            Self::TooLate { seconds, deadline } => {
                let days = |seconds: f64| seconds / 86_400.0;
                write!(f, "may take {:.1} days, deadline {:.1}", days(*seconds), days(*deadline))
            }
            Self::Format { what } => write!(f, "has no {what}"),
            Self::TooMany { gpus, most } => write!(f, "needs {gpus} GPUs, at most {most}"),
        }
    }
}
