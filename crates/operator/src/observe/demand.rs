//! What gateways and engines said at one moment, as the estimator takes it.

use super::in_flight::InFlight;
use flyball_core::ids::ModelId;
use flyball_core::units::Timestamp;
use flyball_estimator::reading::{EngineReading, GatewayReading};
use flyball_resources::rfc3339;
use std::collections::{BTreeMap, BTreeSet};

/// What gateways and engines said at one moment.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// What gateways count, by the model that it is about.
    pub gateways: BTreeMap<ModelId, Vec<GatewayReading>>,
    /// Models that somebody waits for and that have no engine.
    pub waited_for: BTreeSet<ModelId>,
    /// Gateways that had no room to tell of a model.
    pub left_out: BTreeMap<ModelId, u32>,
    /// By namespace and pod.
    pub engines: BTreeMap<(String, String), EngineReading>,
    /// Requests inside pods.
    pub in_flight: InFlight,
    /// Gateways that are known and told nothing lately.
    pub silent: Vec<Silent>,
    /// Those that exist and never told what they serve: it may be any model.
    pub unreported: u32,
}

/// Names of silent ones that a person is shown: the first few are where to begin.
const NAMES: usize = 3;

impl Signals {
    /// Counts gateways that exist and never told anything, once all that exist are known; `more` if there
    /// may be some that are not.
    pub fn count_unreported(&mut self, more: bool) {
        let silent = |name: &String| Silent { gateway: name.clone(), since: None };
        let unreported: Vec<Silent> = self.in_flight.unreported().map(silent).collect();
        let count = u32::try_from(unreported.len()).unwrap_or(u32::MAX);
        self.unreported = count.saturating_add(u32::from(more));
        self.silent.extend(unreported);
    }

    /// Gateways that did not say whether they serve a model.
    pub(super) fn silent_about(&self, id: &ModelId) -> u32 {
        self.unreported.saturating_add(self.left_out.get(id).copied().unwrap_or(0))
    }

    /// Gateways that should tell and do not, for people to read.
    pub(super) fn silent_names(&self) -> Vec<String> {
        let names: Vec<String> = self.silent.iter().take(NAMES).map(ToString::to_string).collect();
        if names.is_empty() {
            return vec!["gateways that may exist and have not connected".to_owned()];
        }
        names
    }
}

/// A gateway that is known and tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Its name.
    pub gateway: String,
    /// When it told something last, if ever.
    pub since: Option<Timestamp>,
}

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.since {
            Some(since) => write!(f, "gateway {} since {}", self.gateway, rfc3339(since)),
            None => write!(f, "gateway {}, no report yet", self.gateway),
        }
    }
}
