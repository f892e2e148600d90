//! The columns of the ledger's tables.

/// When a row's time begins.
pub const CHARGE_PERIOD_START: &str = "ChargePeriodStart";

/// When a row's time ends.
pub const CHARGE_PERIOD_END: &str = "ChargePeriodEnd";

/// Whether a row was not written by who knew, but by who last knew of it.
pub const ESTIMATED: &str = "x_Estimated";

/// A table: rows that differ in time, texts and [`ESTIMATED`], with measures that add up.
#[derive(Debug, PartialEq, Eq)]
pub struct LedgerTable {
    /// Its name and its folder.
    pub name: &'static str,
    /// What rows are told apart by.
    pub texts: &'static [TextColumn],
    /// What adds up.
    pub measures: &'static [MeasureColumn],
}

/// A column by which rows are told apart.
#[derive(Debug, PartialEq, Eq)]
pub struct TextColumn {
    /// Its name.
    pub name: &'static str,
    /// What it has.
    pub about: &'static str,
}

/// A column that adds up.
#[derive(Debug, PartialEq, Eq)]
pub struct MeasureColumn {
    /// Its name.
    pub name: &'static str,
    /// What is counted.
    pub unit: MeasureUnit,
    /// What it has.
    pub about: &'static str,
}

/// What a measure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureUnit {
    /// Whole things.
    Count,
    /// Money: millionths of a millionth, which files have as decimals with twelve places.
    Money,
}

impl LedgerTable {
    /// Both of them.
    pub const ALL: [&'static Self; 2] = [&USAGE, &GPU_TIME];

    /// The place of a text column.
    pub fn text(&self, name: &str) -> Option<usize> {
        self.texts.iter().position(|column| column.name == name)
    }

    /// The place of a measure.
    pub fn measure(&self, name: &str) -> Option<usize> {
        self.measures.iter().position(|column| column.name == name)
    }
}

const fn text(name: &'static str, about: &'static str) -> TextColumn {
    TextColumn { name, about }
}

const fn count(name: &'static str, about: &'static str) -> MeasureColumn {
    MeasureColumn { name, unit: MeasureUnit::Count, about }
}

const fn money(name: &'static str, about: &'static str) -> MeasureColumn {
    MeasureColumn { name, unit: MeasureUnit::Money, about }
}

/// Requests, by gateways.
pub const USAGE: LedgerTable = LedgerTable {
    name: "usage",
    texts: &[
        text("SubAccountId", "path of the Tenant"),
        text("x_CredentialId", "what may be shown of the key"),
        text("ResourceId", "the ModelService"),
        text("x_Variant", "its variant"),
        text("x_Class", "class in the queue"),
        text("BillingCurrency", "currency of the price list; empty without a price"),
        text("x_Source", "who counted; empty once rows of several are merged"),
    ],
    measures: &[
        count("x_Requests", "requests that are over"),
        count("x_RequestsMet", "of these, within the objectives"),
        count("x_RequestsMissed", "of these, with an objective broken"),
        count("x_RequestsUnpriced", "of these, without a price"),
        count("x_RequestsTokensEstimated", "of these, with tokens counted by the gateway"),
        count(
            "x_RequestsUnclosed",
            "requests whose end nobody saw, because the gateway died; not in x_Requests",
        ),
        count("x_InputTokens", "tokens of prompts, those from caches included"),
        count("x_CachedTokens", "of these, from caches"),
        count("x_OutputTokens", "tokens of answers"),
        count("x_OutputTokensMet", "of these, of requests within the objectives"),
        count("x_CostUnits", "cost in the fair queue's unit"),
        count("x_CostUnitsMet", "of these, of requests within the objectives"),
        count("x_RequestMicros", "microseconds of requests, added up"),
        count("x_UnsureMicros", "microseconds of which requests may lack, because a machine died"),
        money("ListCost", "price by the price list"),
    ],
};

/// The places of [`USAGE`]'s measures.
#[expect(missing_docs, reason = "the table above says what each is")]
pub mod usage_measure {
    pub const REQUESTS: usize = 0;
    pub const MET: usize = 1;
    pub const MISSED: usize = 2;
    pub const UNPRICED: usize = 3;
    pub const TOKENS_ESTIMATED: usize = 4;
    pub const UNCLOSED: usize = 5;
    pub const INPUT_TOKENS: usize = 6;
    pub const CACHED_TOKENS: usize = 7;
    pub const OUTPUT_TOKENS: usize = 8;
    pub const OUTPUT_TOKENS_MET: usize = 9;
    pub const COST_UNITS: usize = 10;
    pub const COST_UNITS_MET: usize = 11;
    pub const REQUEST_MICROS: usize = 12;
    pub const UNSURE_MICROS: usize = 13;
    pub const LIST_COST: usize = 14;
}

/// GPU time, by the operator.
pub const GPU_TIME: LedgerTable = LedgerTable {
    name: "gpu_time",
    texts: &[
        text("SubAccountId", "path of the Tenant, where one has the GPUs"),
        text("ResourceId", "the ModelService or TrainingRun; empty for GPUs that nobody has"),
        text("x_Variant", "variant of a ModelService"),
        text("x_Pool", "the Pool"),
        text("x_Accelerator", "the accelerator"),
        text("x_Purchase", "spot or on-demand"),
        text("x_UsedFor", "what the GPUs did: useful work, or a cause why not"),
        text("BillingCurrency", "currency of the Pool's price; empty without a price"),
        text("x_Source", "who counted; empty once rows of several are merged"),
    ],
    measures: &[
        count("x_GpuMicros", "microseconds times GPUs"),
        count("x_GpuMicrosUnpriced", "of these, without a price"),
        count("x_ReplicaMicros", "microseconds times replicas"),
        count("x_Steps", "steps of runs that count"),
        count("x_RepeatedSteps", "steps that had been made before and were lost"),
        count("x_UnsureMicros", "microseconds of which time may lack, because a machine died"),
        money("ListCost", "price by the Pool"),
    ],
};

/// The places of [`GPU_TIME`]'s measures.
#[expect(missing_docs, reason = "the table above says what each is")]
pub mod gpu_time_measure {
    pub const GPU_MICROS: usize = 0;
    pub const GPU_MICROS_UNPRICED: usize = 1;
    pub const REPLICA_MICROS: usize = 2;
    pub const STEPS: usize = 3;
    pub const REPEATED_STEPS: usize = 4;
    pub const UNSURE_MICROS: usize = 5;
    pub const LIST_COST: usize = 6;
}
