//! What a gateway and the collector say to each other, as JSON.
//!
//! Fields that one side does not know are passed over, so that the two may be of different
//! versions during an update. Times are told as ages: their clocks need not agree.

use super::page::ReportedLoad;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Where gateways talk to the collector.
pub(super) const PATH: &str = "/v1/loads";

/// The largest thing that either says: 32,768 engines with about 120 bytes each.
pub(super) const BYTES: usize = 4 << 20;

/// What a gateway says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// A name that no other gateway has, nor had before.
    pub(super) gateway: String,
    /// Its requests under way, by engine; those with none are left out.
    #[serde(default)]
    pub(super) in_flight: BTreeMap<SocketAddr, u32>,
    /// Engines at which its cancels are unproven.
    #[serde(default)]
    pub(super) cancels: BTreeSet<SocketAddr>,
    /// The revision that it has heard of; only what is newer is told.
    #[serde(default)]
    pub(super) since: u64,
    /// It goes. Its requests are over.
    #[serde(default)]
    pub(super) leaving: bool,
}

/// What the collector answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reply {
    /// For `since`, next time.
    pub(super) revision: u64,
    /// Cancels are unproven somewhere: every gateway's counts are needed soon.
    #[serde(default)]
    pub(super) hurry: bool,
    /// What is new, by engine.
    #[serde(default)]
    pub(super) engines: BTreeMap<SocketAddr, News>,
}

/// What is new of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct News {
    /// What it has to do; none if it does not tell any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) load: Option<ReportedLoad>,
    /// A report for which every gateway has said what it had there before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proof: Option<Proof>,
}

/// A report that cancels can be judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Proof {
    /// Requests that the engine had.
    pub(super) has: u32,
    /// Requests that all gateways had at it: for each the most of before and after.
    pub(super) known: u32,
    /// Milliseconds since it was asked.
    pub(super) sent_ago_ms: u64,
    /// Milliseconds since its answer was there.
    pub(super) came_ago_ms: u64,
}
