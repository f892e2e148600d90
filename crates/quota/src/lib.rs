//! How much tenants may use: budgets that hold across gateways, through any crash.
//!
//! A gateway spends from a slice of a budget that the operator has granted to it, and asks for another before the
//! slice is empty: no request waits for a network as long as there is money. What is granted never exceeds the
//! budget, so that what is spent does not either, whoever dies.
//!
//! `amount` is what is counted, `scope` who, `period` for how long; `account` is the gateway's side, `balance` and
//! `bank` the operator's, `record` what the bank leaves for its successor. Rates are divided another way: `rate_share` is a
//! gateway's part of what may be used in a minute (`window`), `rate_split` how the operator divides it. Pure: time and
//! messages are arguments, and the same code runs in the operator, in gateways and in the random worlds of the tests.

mod account;
mod amount;
mod balance;
mod bank;
mod period;
mod rate_share;
mod rate_split;
mod record;
mod scope;
mod window;

pub use account::{LeaseAccount, LeaseCounts};
pub use amount::{Amount, BudgetUnit, TokenPrices, TokenUsage};
pub use balance::BudgetSpec;
pub use bank::{Answer, Ask, Bank, BudgetStatus};
pub use period::{Period, PeriodId};
pub use rate_share::{RateShare, ShareCounts};
pub use rate_split::{RATE_LEASE, RateKey, RateKind, RateOrder, RateSplit};
pub use record::{BankRecord, BudgetRecord};
pub use scope::{BudgetKey, GatewayId, LeaseKey, Scope};
pub use window::SlidingWindow;
