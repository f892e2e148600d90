//! Everything that the watches told, by model.

use super::mirror::{Mirror, Step};
use super::place::DiscoveryPlace;
use super::pods::{self, PodMember};
use super::pools::{self, Chosen};
use super::slices::{self, Slice};
use super::sources::Change;
use crate::fleet::FoundEngines;
use flyball_engines::Engine;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Everything that the watches told.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) places: BTreeMap<String, (DiscoveryPlace, Engine)>,
    slices: BTreeMap<String, Mirror<Slice>>,
    pools: BTreeMap<String, Mirror<Chosen>>,
    pods: BTreeMap<String, Mirror<PodMember>>,
    /// Pods of ModelServices.
    served: BTreeMap<String, Mirror<PodMember>>,
}

impl World {
    /// Nothing told yet.
    pub(super) fn new(places: BTreeMap<String, (DiscoveryPlace, Engine)>) -> Self {
        Self { places, ..Self::default() }
    }

    pub(super) fn take(&mut self, change: Change) -> bool {
        match change {
            Change::Slices(namespace, step) => {
                if matches!(step, Step::Done) {
                    tracing::debug!(namespace, "EndpointSlices listed");
                }
                self.slices.entry(namespace).or_default().take(step)
            }
            Change::Pools(namespace, step) => self.pools.entry(namespace).or_default().take(step),
            Change::Pods(namespace, step) => self.pods.entry(namespace).or_default().take(step),
            Change::Served(namespace, step) => self.served.entry(namespace).or_default().take(step),
        }
    }

    /// The engines of every model; None for those that were not listed yet.
    pub(super) fn findings(&self) -> BTreeMap<String, Option<Vec<FoundEngines>>> {
        // By Service once, because a thousand models in a namespace would each go through all.
        let mut by_service: BTreeMap<(&str, &str), Vec<&Slice>> = BTreeMap::new();
        for (namespace, mirror) in &self.slices {
            for slice in mirror.whole().into_iter().flat_map(BTreeMap::values) {
                by_service.entry((namespace, &slice.service)).or_default().push(slice);
            }
        }
        let found = |place: &DiscoveryPlace, engine| match place {
            DiscoveryPlace::Static(addresses) => Some(static_engines(addresses, engine)),
            DiscoveryPlace::Service(s) => {
                self.slices.get(&s.namespace)?.whole()?;
                let all = by_service.get(&(&*s.namespace, &*s.name));
                Some(slices::found(all.into_iter().flatten().copied(), &s.port, engine))
            }
            DiscoveryPlace::Pool(p) => {
                let Some(pool) = self.pools.get(&p.namespace)?.whole()?.get(&p.name) else {
                    return Some(Vec::new());
                };
                let pods = self.pods.get(&p.namespace)?.whole()?;
                Some(pools::found(pool, pods.values(), engine))
            }
            // Nobody watches for a model of which nothing is known yet.
            DiscoveryPlace::Pods(p) if p.variants.is_empty() => Some(Vec::new()),
            DiscoveryPlace::Pods(p) => {
                let pods = self.served.get(&p.namespace)?.whole()?;
                Some(pods::found(p, pods.values()))
            }
        };
        let models = self.places.iter();
        models.map(|(model, (place, engine))| (model.clone(), found(place, *engine))).collect()
    }

    /// Models whose Service has engines, but not on the port that was asked for, and its ports.
    pub(super) fn wrong_ports(&self) -> BTreeMap<String, String> {
        let mut wrong = BTreeMap::new();
        for (model, (place, _)) in &self.places {
            let DiscoveryPlace::Service(s) = place else { continue };
            let Some(all) = self.slices.get(&s.namespace).and_then(Mirror::whole) else { continue };
            let mut mine = all.values().filter(|slice| slice.service == s.name);
            if let Some(slice) = mine.find(|slice| slice.lacks(&s.port)) {
                wrong.insert(model.clone(), slice.ports_in_words());
            }
        }
        wrong
    }
}

fn static_engines(addresses: &[SocketAddr], engine: Engine) -> Vec<FoundEngines> {
    let unique: BTreeSet<_> = addresses.iter().copied().collect();
    let found = |address: SocketAddr| {
        let name = address.to_string();
        FoundEngines { name, address, uid: None, draining: false, engine }
    };
    unique.into_iter().map(found).collect()
}
