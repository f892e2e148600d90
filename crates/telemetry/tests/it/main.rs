//! Boards and alert rules against the metrics that exist.
//!
//! They rot without a sound: a metric is renamed, and a panel shows "No data" for a year. Here every name and label in a
//! query must be in the closed list of metrics. `boards` reads what Grafana loads, `rules` the alert rules and their tests,
//! `query` finds names in PromQL, `registry` knows which exist.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod boards;
mod query;
mod registry;
mod rules;
