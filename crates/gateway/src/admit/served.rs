//! Models as they are served: engines and queue.
//!
//! Engines come and go with every listing, and a queue stays for as long as its model is served. Both
//! are found in one look, so that nobody finds engines without their queue.

use super::demand::ModelNow;
use super::gate::Gate;
use super::prompt::Prompt;
use crate::scan::Scanned;
use flyball_fleet::{Fleet, FleetEndpoint, FleetModel, Millis};
use flyball_routing::RoutingPolicy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Part of an engine's context that an answer may take at least, if nobody says how long it may be.
const LEAST_OUTPUT: u64 = 8;

/// All models by name. Replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct Served {
    fleet: Arc<Fleet>,
    models: BTreeMap<String, Arc<ServedModel>>,
}

/// A model.
#[derive(Debug)]
pub(crate) struct ServedModel {
    pub(crate) engines: Arc<FleetModel>,
    /// Where requests wait for a turn.
    pub(crate) gate: Arc<Gate>,
}

impl Served {
    /// The same with these engines. Models that stay keep their queue.
    pub(crate) fn after(&self, fleet: Arc<Fleet>) -> Self {
        let model = |engines: &Arc<FleetModel>| {
            let before = self.models.get(&*engines.name);
            let gate =
                before.map_or_else(|| Arc::new(Gate::new()), |model| Arc::clone(&model.gate));
            let served = ServedModel { engines: Arc::clone(engines), gate };
            (engines.name.to_string(), Arc::new(served))
        };
        let models = fleet.models().map(model).collect();
        Self { fleet, models }
    }

    /// Tells every queue where its engines are. To be called once this is in use: whoever is let go by
    /// it looks for an engine here.
    pub(crate) fn open(&self) {
        self.models().for_each(|model| model.gate.list(model.engines.endpoints.clone()));
    }

    /// The engines of all models.
    pub(crate) const fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// The model of this name.
    pub(crate) fn model(&self, name: &str) -> Option<&Arc<ServedModel>> {
        self.models.get(name)
    }

    /// All models, by name.
    pub(crate) fn models(&self) -> impl Iterator<Item = &Arc<ServedModel>> {
        self.models.values()
    }

    /// What is known of the engines of these models, and who waits for them.
    pub(crate) fn glance<'a>(
        &self,
        now: Millis,
        models: impl Iterator<Item = &'a str>,
    ) -> Vec<ModelNow> {
        let mut gone: BTreeMap<&str, Vec<Arc<FleetEndpoint>>> = BTreeMap::new();
        let left = self.fleet.gone();
        left.for_each(|(model, endpoint)| gone.entry(model).or_default().push(endpoint));
        models
            .map(|name| {
                let served = self.model(name);
                let listed = served.into_iter().flat_map(|model| &model.engines.endpoints);
                let gone = gone.get(name).map_or(&[][..], |gone| gone);
                let mut queue = served.map(|model| model.gate.demand(name)).unwrap_or_default();
                queue.in_flight += gone.iter().map(|one| u64::from(one.in_flight())).sum::<u64>();
                let engines = listed.chain(gone).map(|endpoint| endpoint.glance(now)).collect();
                ModelNow { name: name.into(), engines, queue, trouble: None }
            })
            .collect()
    }
}

impl ServedModel {
    /// Model name in client requests.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.engines.name
    }

    /// The longest answer to this that any of its engines takes, as far as they say how much their context holds: those that
    /// do refuse a request whose answer might not fit. How long the prompt is nobody has counted yet; so that a guess that
    /// is too high leaves an answer at all, it gets a part of the context whatever that guess is.
    pub(crate) fn longest_output(&self, scanned: &Scanned) -> Option<u64> {
        let contexts =
            self.engines.endpoints.iter().filter_map(|endpoint| endpoint.context_tokens());
        let context = contexts.min()?;
        let prompt = self.gate.scale.at_most(self.gate.scale.prompt(scanned, 0).tokens);
        Some(context.saturating_sub(prompt).max(context / LEAST_OUTPUT))
    }

    /// A prompt that came, before an engine has counted it.
    pub(crate) fn prompt_of(&self, scanned: &Scanned, policy: RoutingPolicy) -> Prompt {
        let known = self.engines.known_blocks(&scanned.prefixes, policy);
        self.gate.scale.prompt(scanned, known)
    }
}
