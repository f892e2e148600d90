//! Usage as it is written down: what a journal has, entry by entry, and the columns of the tables that come of it.
//!
//! A gateway writes an [`UsageOpen`] when a request goes to an engine and a [`UsageRecord`] before the last byte of its answer
//! leaves; the operator writes a [`GpuTimeRecord`] for each stretch of GPU time. The bytes of an entry are in `bytes`, about
//! 100 of them; whoever writes them to disk adds length and checksum. The ledger adds entries up to rows of the tables
//! [`USAGE`] and [`GPU_TIME`]. Names of columns are those of FOCUS 1.4, and ours begin with `x_`.
//!
//! Start at [`UsageEntry`], then [`USAGE`].

mod bytes;
mod columns;
#[cfg(test)]
mod tests;

pub use bytes::UsageProblem;
pub use columns::{
    CHARGE_PERIOD_END, CHARGE_PERIOD_START, ESTIMATED, GPU_TIME, LedgerTable, MeasureColumn,
    MeasureUnit, TextColumn, USAGE, gpu_time_measure, usage_measure,
};

use flyball_core::units::Timestamp;

/// The version of entries. A reader knows all versions up to its own.
pub const VERSION: u8 = 1;

/// Bytes of a name in an entry: no path of a Tenant and no name of a model is longer. What is longer is cut.
pub const MAX_NAME: usize = 1_024;

/// No count of an entry is above this: what one engine says cannot overflow a row, and 10^5 GPUs fit for five minutes.
pub const MAX_COUNT: u64 = 1 << 48;

/// One entry of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageEntry<'a> {
    /// What the journal is: its first entry.
    Begin(JournalStart<'a>),
    /// A request went to an engine.
    Open(UsageOpen<'a>),
    /// A request is over.
    Close(UsageRecord<'a>),
    /// A stretch of GPU time.
    GpuTime(GpuTimeRecord<'a>),
    /// Entries that could not be written one by one, added up.
    Row(UsageRow<'a>),
    /// The number of a request that is over, and whose record is in a row.
    Ended(u64),
}

/// Where a journal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalStart<'a> {
    /// Its table.
    pub table: &'a str,
    /// Who writes it.
    pub source: &'a str,
    /// Its place among those of the source, from 1.
    pub sequence: u64,
    /// Which start of the machine it was written in: after another one, the last second may lack.
    pub boot: u64,
}

/// Whose request it is, and at what. All of it becomes columns of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageParties<'a> {
    /// The path of the Tenant.
    pub tenant: &'a str,
    /// What may be shown of the key; empty if there was none.
    pub key: &'a str,
    /// The ModelService.
    pub model: &'a str,
    /// Its variant; empty if it has none.
    pub variant: &'a str,
    /// The class of the queue.
    pub class: UsageClass,
}

/// The class of a request in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageClass {
    /// Before all others.
    High,
    /// As usual.
    #[default]
    Normal,
    /// What can wait.
    Low,
    /// What runs on capacity that nobody else wants.
    Batch,
}

impl UsageClass {
    /// All of them, by their numbers in entries.
    pub const ALL: [Self; 4] = [Self::High, Self::Normal, Self::Low, Self::Batch];

    /// Its name in columns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
            Self::Batch => "batch",
        }
    }
}

/// Whether a request kept the objectives of its model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judged {
    /// The model has none, or the request never came so far.
    #[default]
    Not,
    /// It kept them.
    Met,
    /// It broke one.
    Missed,
}

/// A request that went to an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageOpen<'a> {
    /// Its number, unique within a source.
    pub request: u64,
    /// Whose, and at what.
    pub parties: UsageParties<'a>,
    /// When its head had arrived.
    pub started: Timestamp,
}

/// A request that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageRecord<'a> {
    /// Its number, unique within a source.
    pub request: u64,
    /// Whose, and at what.
    pub parties: UsageParties<'a>,
    /// When its head had arrived.
    pub started: Timestamp,
    /// When its last byte left.
    pub ended: Timestamp,
    /// Tokens of the prompt, those from a cache included.
    pub input_tokens: u64,
    /// Of these, tokens that the engine had cached.
    pub cached_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Whether tokens were counted by us, because the engine did not say.
    pub estimated: bool,
    /// Whether it kept the objectives.
    pub judged: Judged,
    /// What it cost, in the unit of the fair queue.
    pub cost_units: u64,
    /// Its price by the price list, in millionths of a millionth of the currency; absent if the model has no price.
    pub list_pico: Option<i64>,
    /// The currency of the price list, three letters.
    pub currency: &'a str,
}

/// A stretch of GPU time, as the operator knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuTimeRecord<'a> {
    /// The Pool.
    pub pool: &'a str,
    /// The accelerator, as the catalogue names it.
    pub accelerator: &'a str,
    /// `spot` or `on-demand`; empty where nobody knows.
    pub purchase: &'a str,
    /// What the GPUs did: useful work, or a cause why not.
    pub used_for: &'a str,
    /// The ModelService or TrainingRun; empty for GPUs that nobody has.
    pub resource: &'a str,
    /// The variant of a ModelService.
    pub variant: &'a str,
    /// The path of the Tenant, where one Tenant has them.
    pub tenant: &'a str,
    /// When the stretch began.
    pub started: Timestamp,
    /// When it ended. The row of the bucket in which it ended gets all of it.
    pub ended: Timestamp,
    /// Microseconds times GPUs.
    pub gpu_micros: u64,
    /// Microseconds times replicas.
    pub replica_micros: u64,
    /// Steps of a run that count.
    pub steps: u64,
    /// Steps that had been made before and were lost.
    pub repeated_steps: u64,
    /// Its price by the Pool, in millionths of a millionth of the currency; absent if the Pool has no price.
    pub list_pico: Option<i64>,
    /// The currency of the price, three letters.
    pub currency: &'a str,
}

/// A row of a table, by the places of its columns in [`LedgerTable`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageRow<'a> {
    /// Microseconds since 1970.
    pub start: i64,
    /// Microseconds since 1970.
    pub end: i64,
    /// Whether it is estimated.
    pub estimated: bool,
    /// The texts.
    pub texts: Vec<&'a str>,
    /// The measures.
    pub measures: Vec<i64>,
}
