//! Which machines there are for a run, at which price, and since when. Pure.
//!
//! Where nodes of a Pool are all there will be, spot machines of a zone are available while so many of their accelerators
//! are free as the run needs. Where an autoscaler adds nodes, they are taken for available unless a pod of the run has
//! waited there in vain: nobody knows before somebody asks.

use super::gang::Gang;
use super::marks::{CAPACITY_TYPE, ZONE};
use super::workload::gang_key;
use crate::observe::{GPU, NodeFacts, RunFacts, purchase};
use flyball_core::snapshot::Purchase;
use flyball_core::units::{Currency, Gpus, Micros, Price, Timestamp};
use flyball_resources::pool::{Growth, PurchaseSpec};
use flyball_resources::{Pool, TrainingRun};
use flyball_training::{SpotState, SpotZone, ZoneName};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};

/// A pod that waits so long for a node of a growing pool waits in vain: providers answer within minutes.
const IN_VAIN: Micros = Micros::from_minutes(10);

/// After such a wait nobody asks again for so long.
const ASK_AGAIN: Micros = Micros::from_minutes(30);

/// Since when zones have spot machines, or have none.
#[derive(Clone, Debug, Default)]
pub struct ZoneHistory {
    states: BTreeMap<(String, String), (bool, Timestamp)>,
    refused: BTreeMap<(String, String), Timestamp>,
}

impl ZoneHistory {
    /// Forgets Pools that are gone.
    pub fn keep(&mut self, pools: &BTreeSet<String>) {
        self.states.retain(|(pool, _), _| pools.contains(pool));
        self.refused.retain(|(pool, _), _| pools.contains(pool));
    }

    /// Since when it is so. `hint`: that it is so since then is known from elsewhere.
    fn since(
        &mut self,
        place: (String, String),
        available: bool,
        hint: Option<Timestamp>,
        now: Timestamp,
    ) -> Timestamp {
        let stands = self.states.get(&place).filter(|(was, _)| *was == available);
        let since = match stands {
            Some((_, since)) => *since,
            None if self.states.contains_key(&place) => now,
            None => hint.unwrap_or(now),
        };
        self.states.insert(place, (available, since));
        since
    }
}

/// The machines that a run may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Market {
    /// Its Pool.
    pub pool: Option<String>,
    /// How nodes count its accelerators.
    pub resource: String,
    /// Prices of one accelerator for an hour.
    pub prices: BTreeMap<Purchase, Price>,
    /// Currency of the prices.
    pub currency: Currency,
    /// Zones with spot machines that it may use.
    pub zones: BTreeMap<ZoneName, SpotZone>,
    /// Whether nodes that nobody takes away say so by a label.
    pub labelled: bool,
    /// Labels of the Pool's nodes.
    pub nodes: BTreeMap<String, String>,
    /// Whether the Pool lends.
    pub lends: bool,
}

impl Market {
    /// For a run with these pods.
    pub fn of(
        run: &TrainingRun,
        gang: &Gang,
        facts: &RunFacts,
        totals: &mut ZoneHistory,
        now: Timestamp,
    ) -> Self {
        let Some(pool) = pool(run, gang, facts) else {
            return Self {
                pool: None,
                resource: GPU.to_owned(),
                prices: BTreeMap::new(),
                currency: Currency::USD,
                zones: BTreeMap::new(),
                labelled: false,
                nodes: BTreeMap::new(),
                lends: false,
            };
        };
        let prices = pool.spec.prices_of_core().unwrap_or_default();
        let currency = pool.spec.currency.parse().unwrap_or(Currency::USD);
        let may_spot = run.spec.purchases.contains(&PurchaseSpec::Spot);
        let spot = prices.get(&Purchase::Spot).filter(|_| may_spot);
        let zones = spot.map(|price| zones(run, gang, (pool, *price), facts, totals, now));
        Self {
            pool: Some(pool.name_any()),
            resource: pool.spec.resource_name.clone(),
            prices,
            currency,
            zones: zones.unwrap_or_default(),
            labelled: facts.nodes.values().any(|node| {
                let of_pool = node.gpus_of(&pool.spec).is_some();
                of_pool && node.labels.get(CAPACITY_TYPE).is_some_and(|kind| kind == "on-demand")
            }),
            nodes: pool.spec.node_selector.clone(),
            lends: pool.spec.lending.is_some(),
        }
    }

    /// What the machines of a run cost for an hour, in millionths of the currency. `None` if a price is missing.
    pub fn hourly(&self, gang: &Gang) -> Option<i64> {
        let mut sum = 0_i64;
        for pod in gang.holding() {
            let gpus = pod.asks.get(&self.resource).copied().unwrap_or(0);
            let node = pod.node.as_ref().and_then(|name| gang.nodes.get(name))?;
            if gpus > 0 {
                let price = self.prices.get(&node.purchase)?.amount().micros();
                sum = sum.saturating_add(price.saturating_mul(i64::from(gpus)));
            }
        }
        Some(sum)
    }

    /// The price of machines that nobody takes away.
    pub fn safe_price(&self) -> Option<Price> {
        self.prices.get(&Purchase::OnDemand).copied()
    }
}

/// The Pool of a run: the named one, or that of the nodes which it has, or the only one. Where several select the same
/// nodes it is one with prices, and then the first by name, so that it does not change from round to round.
pub(super) fn pool<'a>(run: &TrainingRun, gang: &Gang, facts: &'a RunFacts) -> Option<&'a Pool> {
    let all = || facts.pools.iter().map(AsRef::as_ref);
    if let Some(name) = &run.spec.pool {
        return all().find(|pool: &&Pool| pool.name_any() == *name);
    }
    let has = |pool: &Pool| {
        let nodes = gang.nodes.keys().filter_map(|name| facts.nodes.get(name));
        let mut gpus = nodes.filter_map(|node| node.gpus_of(&pool.spec));
        gpus.any(|gpus| gpus > 0)
    };
    let unpriced = |pool: &&Pool| (pool.spec.prices.is_empty(), pool.name_any());
    let found = all().filter(|pool| has(pool)).min_by_key(unpriced);
    found.or_else(|| facts.pools.first().filter(|_| facts.pools.len() == 1).map(AsRef::as_ref))
}

fn zones(
    run: &TrainingRun,
    gang: &Gang,
    (pool, price): (&Pool, Price),
    facts: &RunFacts,
    totals: &mut ZoneHistory,
    now: Timestamp,
) -> BTreeMap<ZoneName, SpotZone> {
    let mut nodes: BTreeMap<String, Vec<(&String, &NodeFacts)>> = BTreeMap::new();
    for (name, node) in &facts.nodes {
        let of_pool = node.gpus_of(&pool.spec).is_some();
        if let Some(zone) = node.labels.get(ZONE).filter(|_| of_pool) {
            nodes.entry(zone.clone()).or_default().push((name, node));
        }
    }
    let allowed: BTreeSet<String> = match run.spec.zones.as_slice() {
        [] => nodes.keys().cloned().collect(),
        zones => zones.iter().cloned().collect(),
    };
    let need = Gpus::new(gang.gpus(&pool.spec.resource_name)).get().max(1);
    let own = gang_key(run);
    let zone = |zone: String| {
        let place = (pool.name_any(), zone.clone());
        let there = nodes.get(&zone).map_or(&[][..], Vec::as_slice);
        let spot = there.iter().filter(|(_, node)| purchase(&node.labels) == Purchase::Spot);
        // Where nodes are all there will be, a zone without any that are spot never has one.
        let never = pool.spec.growth == Growth::Fixed && spot.clone().next().is_none();
        if never && !totals.states.contains_key(&place) {
            return None;
        }
        let mut usable = spot.filter(|(_, node)| node.usable);
        let free =
            usable.clone().map(|(name, node)| free(name, node, pool, facts, &own)).sum::<u32>();
        let oldest = usable.next().map(|(_, node)| node.created);
        let available = match pool.spec.growth {
            Growth::Fixed => free >= need,
            Growth::Autoscaled => free >= need || !refused(gang, &place, totals, now),
        };
        let since = totals.since(place, available, oldest, now);
        let state =
            if available { SpotState::Available(since) } else { SpotState::Unavailable(since) };
        Some((ZoneName::new(&zone), SpotZone { price, state }))
    };
    allowed.into_iter().filter_map(zone).collect()
}

/// Accelerators of a node that others do not use.
pub(super) fn free(
    name: &str,
    node: &NodeFacts,
    pool: &Pool,
    facts: &RunFacts,
    own: &crate::observe::GangKey,
) -> u32 {
    let resource = &pool.spec.resource_name;
    let taken = facts.taken.get(name).and_then(|taken| taken.get(resource)).copied().unwrap_or(0);
    let ours = facts
        .gangs
        .get(own)
        .into_iter()
        .flatten()
        .filter(|pod| !pod.over && pod.node.as_deref() == Some(name));
    let ours: u32 = ours.map(|pod| pod.asks.get(resource).copied().unwrap_or(0)).sum();
    let all = node.gpus_of(&pool.spec).unwrap_or(0);
    all.saturating_sub(taken.saturating_sub(ours))
}

/// Whether a pod of the run has waited in vain for a machine, now or lately. Pods that wait do not say for which zone, so
/// that it counts for each.
fn refused(
    gang: &Gang,
    place: &(String, String),
    totals: &mut ZoneHistory,
    now: Timestamp,
) -> bool {
    let waits = gang.pods.iter().filter(|pod| pod.node.is_none() && !pod.over);
    let longest = waits.filter_map(|pod| now.since(pod.created)).max();
    if longest.is_some_and(|longest| longest >= IN_VAIN) {
        totals.refused.insert(place.clone(), now);
    }
    let last = totals.refused.get(place).and_then(|at| now.since(*at));
    last.is_some_and(|last| last < ASK_AGAIN)
}
