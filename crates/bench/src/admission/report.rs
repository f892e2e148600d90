//! What `proving-callers` prints, as far as it is needed here.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Report {
    pub(super) seconds: f64,
    pub(super) all: Account,
    pub(super) groups: BTreeMap<String, Account>,
    pub(super) callers: Vec<Account>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) whole: Counts,
    pub(super) windows: BTreeMap<String, Counts>,
    pub(super) series: Series,
    pub(super) unsent: u64,
    pub(super) models: BTreeMap<String, u64>,
    pub(super) sessions: usize,
    pub(super) mixed_sessions: usize,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) good: u64,
    pub(super) cancelled: u64,
    pub(super) shed: BTreeMap<String, u64>,
    pub(super) otherwise: BTreeMap<String, u64>,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) first_token: Quantiles,
    pub(super) shed_after: Quantiles,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Quantiles {
    pub(super) count: u64,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Series {
    pub(super) good_tokens: Vec<u64>,
    pub(super) first_token_p95_ms: Vec<Option<f64>>,
}

impl Account {
    /// Requests that were due in a window.
    pub(super) fn of(&self, window: &str) -> Counts {
        self.windows.get(window).cloned().unwrap_or_default()
    }

    /// Good tokens per second of those that ended in these seconds.
    pub(super) fn good_tokens_per_second(&self, seconds: Range<usize>) -> f64 {
        let sum: u64 = seconds.clone().filter_map(|at| self.series.good_tokens.get(at)).sum();
        sum as f64 / seconds.len().max(1) as f64
    }
}

impl Counts {
    /// Refused by status and reason, as a line says it.
    pub(super) fn refusals(&self) -> String {
        let all = self.shed.iter();
        let all = all.chain(self.otherwise.iter());
        let all: Vec<String> = all.map(|(name, count)| format!("{name}: {count}")).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(", ") }
    }

    pub(super) fn refused(&self) -> u64 {
        self.shed.values().sum()
    }
}
