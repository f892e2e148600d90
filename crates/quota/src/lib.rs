//! How much tenants may use: budgets that hold across gateways, through any crash.
//!
//! A gateway spends from a slice of a budget that the operator has granted to it, and asks for another before the
//! slice is empty: no request waits for a network as long as there is money. What is granted never exceeds the
//! budget, so that what is spent does not either, whoever dies.
//!
//! `amount` is what is counted, `scope` who, `period` for how long; `account` is the gateway's side, `bank` the
//! operator's, `record` what the bank leaves for its successor. Pure: time and messages are arguments, and the same code
//! runs in the operator, in gateways and in the random worlds of the tests.

mod account;
mod amount;
mod bank;
mod period;
mod record;
mod scope;

pub use account::{LeaseAccount, LeaseCounts};
pub use amount::{Amount, BudgetUnit, TokenPrices, TokenUsage};
pub use bank::{Answer, Ask, Bank, BudgetSpec, BudgetStatus};
pub use period::{Period, PeriodId};
pub use record::{BankRecord, BudgetRecord};
pub use scope::{BudgetKey, GatewayId, LeaseKey, Scope};
