//! What gateways and the operator say to each other about limits and budgets of Tenants.
//!
//! All counts only rise, so that a message may be lost, doubled or late. `values` turns messages into the values of
//! `flyball_quota` and back, with bounds.

mod values;

pub use values::{
    BudgetSpending, EmptyLease, LeaseRequest, MAX_ENTRIES, MAX_SCOPE, QuotaExcess, QuotaReply,
    QuotaReport, ReplyGrant, ShareChange,
};

/// Tenant quotas in use at a gateway.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ReportedQuota {
    /// ID of these accounts, new with each process of the gateway. Another ID under the same gateway name means that the
    /// accounts before are lost.
    #[prost(string, tag = "1")]
    pub accounts: String,
    /// Whether the gateway is a pod: it is gone when its pod is.
    #[prost(bool, tag = "2")]
    pub is_pod: bool,
    /// Whether every account and share has been reported in this term, in this message and those before. Later messages
    /// have what changed.
    #[prost(bool, tag = "3")]
    pub complete: bool,
    /// Budget leases.
    #[prost(message, repeated, tag = "4")]
    pub leases: Vec<ReportedLease>,
    /// Requests for more.
    #[prost(message, repeated, tag = "5")]
    pub asks: Vec<LeaseAsk>,
    /// Shares of rate limits.
    #[prost(message, repeated, tag = "6")]
    pub shares: Vec<ReportedShare>,
    /// Number of the last recall of this term that was carried out; 0 if none.
    #[prost(uint64, tag = "7")]
    pub recalled: u64,
    /// Term of the operator that the gateway has last heard of; 0 if none.
    #[prost(uint64, tag = "8")]
    pub term: u64,
}

/// Pico-dollars or tokens, up to 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct WideAmount {
    /// The upper 64 bits.
    #[prost(uint64, tag = "1")]
    pub high: u64,
    /// The lower 64 bits.
    #[prost(uint64, tag = "2")]
    pub low: u64,
}

/// Unit of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum LeaseUnit {
    /// A unit that this version does not know.
    Unknown = 0,
    /// Pico-dollars.
    Money = 1,
    /// Tokens.
    Tokens = 2,
}

/// Totals of one lease since the accounts began.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ReportedLease {
    /// Path of the caller.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Unit.
    #[prost(enumeration = "LeaseUnit", tag = "2")]
    pub unit: i32,
    /// Total: granted by operators.
    #[prost(message, optional, tag = "3")]
    pub granted: Option<WideAmount>,
    /// Total: given back unspent.
    #[prost(message, optional, tag = "4")]
    pub returned: Option<WideAmount>,
    /// Total: spent.
    #[prost(message, optional, tag = "5")]
    pub spent: Option<WideAmount>,
    /// Currently paid ahead by requests in flight.
    #[prost(message, optional, tag = "6")]
    pub reserved: Option<WideAmount>,
}

/// A request for a larger lease.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct LeaseAsk {
    /// Path of the caller.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Unit.
    #[prost(enumeration = "LeaseUnit", tag = "2")]
    pub unit: i32,
    /// What the request that waits lacks.
    #[prost(message, optional, tag = "3")]
    pub lacking: Option<WideAmount>,
    /// What the gateway spends of it in a second.
    #[prost(message, optional, tag = "4")]
    pub pace: Option<WideAmount>,
    /// Number of this ask. It increases with each one of the process.
    #[prost(uint64, tag = "5")]
    pub number: u64,
}

/// What a rate limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ShareKind {
    /// A kind that this version does not know.
    Unknown = 0,
    /// Requests per minute.
    Requests = 1,
    /// Prompt tokens per minute.
    InputTokens = 2,
    /// Output tokens per minute.
    OutputTokens = 3,
    /// Requests in flight.
    Concurrency = 4,
}

/// One gateway's share of a rate limit, in permits.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ReportedShare {
    /// Path of the Tenant with the limit.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Kind of the limit.
    #[prost(enumeration = "ShareKind", tag = "2")]
    pub kind: i32,
    /// Total: granted by operators.
    #[prost(uint64, tag = "3")]
    pub granted: u64,
    /// Total: given back.
    #[prost(uint64, tag = "4")]
    pub returned: u64,
    /// Currently in use.
    #[prost(uint64, tag = "5")]
    pub used: u64,
    /// Currently waited for.
    #[prost(uint64, tag = "6")]
    pub waiting: u64,
}

/// The operator's answers about Tenant quotas.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct QuotaOrders {
    /// Term of the operator. Messages of an earlier term are void, and everything is reported again in a later one.
    #[prost(uint64, tag = "1")]
    pub term: u64,
    /// Larger leases.
    #[prost(message, repeated, tag = "2")]
    pub grants: Vec<LeaseGrant>,
    /// Leases whose idle part must be given back.
    #[prost(message, repeated, tag = "3")]
    pub recalls: Vec<LeaseRecall>,
    /// Number of this recall, to be reported when it is carried out; 0 if there is none.
    #[prost(uint64, tag = "4")]
    pub recall: u64,
    /// Asks that no budget covers.
    #[prost(message, repeated, tag = "5")]
    pub empty: Vec<EmptyBudget>,
    /// Changes of shares.
    #[prost(message, repeated, tag = "6")]
    pub shares: Vec<ShareOrder>,
    /// Budgets above leases of this gateway of which more is spent than it was told.
    #[prost(message, repeated, tag = "7")]
    pub spent: Vec<SpentBudget>,
}

/// What all gateways together have spent of a budget.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct SpentBudget {
    /// Path of the Tenant with the budget.
    #[prost(string, tag = "1")]
    pub budget_scope: String,
    /// Name of the budget.
    #[prost(string, tag = "2")]
    pub budget: String,
    /// Spent in this period.
    #[prost(message, optional, tag = "3")]
    pub spent: Option<WideAmount>,
    /// Time of the next reset, in milliseconds since 1970; absent without a period.
    #[prost(uint64, optional, tag = "4")]
    pub resets_at_ms: Option<u64>,
}

/// A larger lease.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct LeaseGrant {
    /// Path of the caller.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Unit.
    #[prost(enumeration = "LeaseUnit", tag = "2")]
    pub unit: i32,
    /// Total granted since the accounts began.
    #[prost(message, optional, tag = "3")]
    pub granted: Option<WideAmount>,
    /// No budget applies to the caller; `granted` is absent then.
    #[prost(bool, tag = "4")]
    pub unlimited: bool,
}

/// A lease whose idle part must be given back.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct LeaseRecall {
    /// Path of the caller.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Unit.
    #[prost(enumeration = "LeaseUnit", tag = "2")]
    pub unit: i32,
}

/// An ask that a budget does not cover.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct EmptyBudget {
    /// Path of the caller.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Unit.
    #[prost(enumeration = "LeaseUnit", tag = "2")]
    pub unit: i32,
    /// Number of the ask.
    #[prost(uint64, tag = "3")]
    pub number: u64,
    /// Path of the Tenant with the budget.
    #[prost(string, tag = "4")]
    pub budget_scope: String,
    /// Name of the budget.
    #[prost(string, tag = "5")]
    pub budget: String,
    /// The budget.
    #[prost(message, optional, tag = "6")]
    pub limit: Option<WideAmount>,
    /// Spent in this period.
    #[prost(message, optional, tag = "7")]
    pub spent: Option<WideAmount>,
    /// Time of the next reset, in milliseconds since 1970; absent without a period.
    #[prost(uint64, optional, tag = "8")]
    pub resets_at_ms: Option<u64>,
}

/// A change of one gateway's share of a rate limit.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ShareOrder {
    /// Path of the Tenant with the limit.
    #[prost(string, tag = "1")]
    pub scope: String,
    /// Kind of the limit.
    #[prost(enumeration = "ShareKind", tag = "2")]
    pub kind: i32,
    /// Total granted since the accounts began; absent if unchanged.
    #[prost(uint64, optional, tag = "3")]
    pub granted: Option<u64>,
    /// Free permits are to be given back until so many are in all; absent if unchanged.
    #[prost(uint64, optional, tag = "4")]
    pub returned: Option<u64>,
}
