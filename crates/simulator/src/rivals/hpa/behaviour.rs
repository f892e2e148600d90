//! What an HPA remembers, and how fast it lets itself move.

use super::super::window::Window;
use crate::seconds::Seconds;

/// How an HPA moves in each direction: `spec.behavior`.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// On the way up.
    pub up: HpaRules,
    /// On the way down.
    pub down: HpaRules,
}

/// How it moves in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct HpaRules {
    /// Over how long the mildest proposal counts: `stabilizationWindowSeconds`.
    pub stabilisation: Seconds,
    /// How far it may move in how long. None means that nothing limits it.
    pub rates: Vec<Rate>,
    /// Which of them counts: `selectPolicy`.
    pub select: Select,
    /// How far the ratio may be from one before it acts: `tolerance`.
    pub tolerance: f64,
}

/// How far an HPA may move in a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many replicas.
    Pods {
        /// How many.
        value: u32,
        /// In how long.
        period: Seconds,
    },
    /// A share of the replicas at the start of the period.
    Percent {
        /// How many percent.
        value: u32,
        /// In how long.
        period: Seconds,
    },
}

/// Which of several rates counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// The one that allows the most.
    Max,
    /// The one that allows the least.
    Min,
    /// None: this direction is closed.
    Disabled,
}

impl Default for Behaviour {
    /// As documented: up by the larger of 100 % and 4 pods in 15 s at once, down by up to all pods
    /// in 15 s once every proposal of 300 s agrees; tolerance 0.1 (controller flag).
    fn default() -> Self {
        let period = Seconds(15.0);
        let percent = Rate::Percent { value: 100, period };
        let up = vec![percent, Rate::Pods { value: 4, period }];
        Self {
            up: HpaRules::new(Seconds::ZERO, up),
            down: HpaRules::new(Seconds(300.0), vec![percent]),
        }
    }
}

impl HpaRules {
    /// These rates, the most of which counts, with the usual tolerance.
    pub const fn new(stabilisation: Seconds, rates: Vec<Rate>) -> Self {
        Self { stabilisation, rates, select: Select::Max, tolerance: 0.1 }
    }
}

impl Rate {
    const fn period(self) -> Seconds {
        match self {
            Self::Pods { period, .. } | Self::Percent { period, .. } => period,
        }
    }

    /// Where it lets the number go up to.
    fn highest(self, at_start: f64) -> f64 {
        match self {
            Self::Pods { value, .. } => at_start + f64::from(value),
            Self::Percent { value, .. } => (at_start * (1.0 + f64::from(value) / 100.0)).ceil(),
        }
    }

    /// Where it lets the number go down to.
    fn lowest(self, at_start: f64) -> f64 {
        match self {
            Self::Pods { value, .. } => at_start - f64::from(value),
            Self::Percent { value, .. } => (at_start * (1.0 - f64::from(value) / 100.0)).trunc(),
        }
    }
}

/// Proposals and changes of the recent past.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    begun: bool,
    up: Window,
    down: Window,
    added: Window,
    removed: Window,
}

impl Memory {
    pub(super) fn new(behaviour: &Behaviour) -> Self {
        let rates = behaviour.up.rates.iter().chain(&behaviour.down.rates);
        let longest = rates.map(|rate| rate.period()).max().unwrap_or(Seconds::ZERO);
        Self {
            begun: false,
            up: Window::new(behaviour.up.stabilisation),
            down: Window::new(behaviour.down.stabilisation),
            added: Window::new(longest),
            removed: Window::new(longest),
        }
    }

    /// The first time, the replicas that are there count as a proposal: a controller that starts
    /// must not remove anything before it has watched for a while. Says whether it was the first.
    pub(super) fn begin(&mut self, now: Seconds, current: u32) -> bool {
        if self.begun {
            return false;
        }
        self.begun = true;
        self.up.push(now, f64::from(current));
        self.down.push(now, f64::from(current));
        true
    }

    /// The proposal, held back: up only as far as every recent one asked, down likewise.
    pub(super) fn stabilise(&mut self, now: Seconds, proposed: u32, current: u32) -> u32 {
        let value = f64::from(proposed);
        self.up.forget(now);
        self.down.forget(now);
        let upward = self.up.smallest().map_or(value, |least| least.min(value));
        let downward = self.down.largest().map_or(value, |most| most.max(value));
        self.up.push(now, value);
        self.down.push(now, value);
        let raised = f64::from(current).max(upward);
        raised.min(downward) as u32
    }

    /// The number, at most as far from `current` as the rates allow.
    pub(super) fn limit(
        &mut self,
        now: Seconds,
        desired: u32,
        current: u32,
        behaviour: &Behaviour,
    ) -> u32 {
        self.added.forget(now);
        self.removed.forget(now);
        let here = f64::from(current);
        let at_start = |rate: &Rate| {
            here - self.added.total(now, rate.period()) + self.removed.total(now, rate.period())
        };
        let bounds = |rules: &HpaRules, edge: fn(Rate, f64) -> f64| -> Vec<f64> {
            rules.rates.iter().map(|rate| edge(*rate, at_start(rate))).collect()
        };
        if desired > current {
            let highest = bounds(&behaviour.up, Rate::highest);
            let limit =
                chosen(&highest, behaviour.up.select, true).map_or(f64::MAX, |up| up.max(here));
            return if behaviour.up.select == Select::Disabled {
                current
            } else {
                f64::from(desired).min(limit) as u32
            };
        }
        if desired < current {
            let lowest = bounds(&behaviour.down, Rate::lowest);
            let limit =
                chosen(&lowest, behaviour.down.select, false).map_or(0.0, |down| down.min(here));
            return if behaviour.down.select == Select::Disabled {
                current
            } else {
                f64::from(desired).max(limit) as u32
            };
        }
        desired
    }

    pub(super) fn note_change(&mut self, now: Seconds, current: u32, desired: u32) {
        let change = f64::from(desired) - f64::from(current);
        if change > 0.0 {
            self.added.push(now, change);
        } else if change < 0.0 {
            self.removed.push(now, -change);
        }
    }
}

/// The bound that counts. The one that allows most is the largest on the way up and the smallest
/// on the way down.
fn chosen(bounds: &[f64], select: Select, up: bool) -> Option<f64> {
    let sorted = bounds.iter().copied();
    if (select == Select::Max) == up {
        sorted.max_by(f64::total_cmp)
    } else {
        sorted.min_by(f64::total_cmp)
    }
}
