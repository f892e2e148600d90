//! The engines, as this gateway knows them: who they are, what they have to do, how they behave.
//!
//! A [`Fleet`] is a table that is replaced as a whole when engines come and go; a [`FleetEndpoint`]
//! lives through such replacements and carries the live counts. Counts are atomics: every thread
//! reads and writes them without waiting. `discover` brings [`Listing`]s, `collect` brings
//! [`FleetReport`]s, and whoever sends a request counts it with a [`Flight`].
//!
//! `endpoint` is one engine and what it has to do (`reading`, `window`, `breaker`), `model` those of one model
//! and how they answer (`pace`). Start at [`Fleet`].

mod breaker;
mod endpoint;
mod flight;
mod model;
mod moment;
mod now;
mod pace;
mod reading;
#[cfg(test)]
mod tests;
mod window;

pub use breaker::Breaker;
pub use endpoint::{FleetEndpoint, FleetReport, Load};
pub use flight::Flight;
pub use model::FleetModel;
pub use moment::{Millis, Time};
pub use now::{EngineNow, EngineState, Engines};
pub use pace::AnswerPace;

use crate::invariants::GatewayInvariant;
use flyball_engines::Engine;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

/// All engines by model. Replaced as a whole.
#[derive(Debug, Default)]
pub struct Fleet {
    models: BTreeMap<String, Arc<FleetModel>>,
    gone: Vec<Gone>,
}

/// An engine that discovery does not list any more: its pod is not ready, or leaves. As long as
/// requests are under way at it, they are reported, and who has one holds it.
#[derive(Clone, Debug)]
struct Gone {
    model: Arc<str>,
    endpoint: Weak<FleetEndpoint>,
}

/// What discovery found: every model with all its engines. A whole, not a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// By model.
    pub models: BTreeMap<String, Vec<FoundEngines>>,
}

/// An engine that was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundEngines {
    /// The same on every gateway: `namespace/pod`, or the address where there is no name.
    pub name: String,
    /// Where it answers.
    pub address: SocketAddr,
    /// Its pod's own id: another pod may get the same name and address.
    pub uid: Option<String>,
    /// Whether it is to finish what it has and get nothing new (a pod that is being deleted).
    pub draining: bool,
    /// What it is.
    pub engine: Engine,
}

impl Fleet {
    /// The fleet after a listing. Engines that stay keep their counts, and so do those that come back.
    pub fn after(&self, listing: &Listing) -> Self {
        let known: Vec<(Arc<str>, Arc<FleetEndpoint>)> = self.known().collect();
        let mut by_name: BTreeMap<(&str, &str), Vec<&Arc<FleetEndpoint>>> = BTreeMap::new();
        for (model, endpoint) in &known {
            by_name.entry((model, &endpoint.name)).or_default().push(endpoint);
        }
        let models = listing.models.iter().map(|(name, found)| {
            let before = self.models.get(name);
            let known_one = |f: &FoundEngines| {
                let old = by_name.get(&(name, &f.name))?.iter().find(|e| e.is(f))?;
                old.listed(f.draining);
                Some(Arc::clone(old))
            };
            let endpoints = found
                .iter()
                .map(|f| known_one(f).unwrap_or_else(|| Arc::new(FleetEndpoint::new(f))))
                .collect();
            let model = FleetModel::after(before, name, endpoints);
            (name.clone(), Arc::new(model))
        });
        let mut after = Self { models: models.collect(), gone: Vec::new() };
        after.gone = after.gone_of(&known);
        let listed: BTreeSet<u32> = after.known().map(|(_, endpoint)| endpoint.slot).collect();
        let is_reported = |old: &FleetEndpoint| old.in_flight() == 0 || listed.contains(&old.slot);
        GatewayInvariant::Reported.hold(known.iter().all(|(_, old)| is_reported(old)));
        after
    }

    /// Engines that are not listed any more and have requests under way, with their model's name.
    pub fn gone(&self) -> impl Iterator<Item = (&str, Arc<FleetEndpoint>)> {
        let there = |gone: &Gone| gone.endpoint.upgrade().filter(|one| one.in_flight() > 0);
        self.gone.iter().filter_map(move |gone| Some((&*gone.model, there(gone)?)))
    }

    /// All engines that somebody may have a request at, with their model's name.
    fn known(&self) -> impl Iterator<Item = (Arc<str>, Arc<FleetEndpoint>)> {
        let listed = self.models.values().flat_map(|model| {
            model.endpoints.iter().map(|endpoint| (Arc::clone(&model.name), Arc::clone(endpoint)))
        });
        let gone = self.gone.iter();
        listed.chain(gone.filter_map(|g| Some((Arc::clone(&g.model), g.endpoint.upgrade()?))))
    }

    /// Those of the engines known before that are not listed here. Whether a request is under way at
    /// one is not asked: somebody may have chosen it a moment ago.
    fn gone_of(&self, known: &[(Arc<str>, Arc<FleetEndpoint>)]) -> Vec<Gone> {
        let listed: BTreeSet<u32> = self.endpoints().map(|endpoint| endpoint.slot).collect();
        let left = known.iter().filter(|(_, endpoint)| !listed.contains(&endpoint.slot));
        left.map(|(model, endpoint)| {
            endpoint.leave();
            Gone { model: Arc::clone(model), endpoint: Arc::downgrade(endpoint) }
        })
        .collect()
    }

    /// The model of this name.
    pub fn model(&self, name: &str) -> Option<&Arc<FleetModel>> {
        self.models.get(name)
    }

    /// All models, by name.
    pub fn models(&self) -> impl Iterator<Item = &Arc<FleetModel>> {
        self.models.values()
    }

    /// All engines of all models.
    pub fn endpoints(&self) -> impl Iterator<Item = &Arc<FleetEndpoint>> {
        self.models.values().flat_map(|model| &model.endpoints)
    }
}
