//! What would be decided under hypothetical conditions: other demand, other prices, a pool gone, other specs.
//!
//! The last look is taken again with the changes, and the governor is asked as at the next look, with
//! what it remembers. Nothing is remembered of it and nothing is written. Forecasts rest on what was,
//! so that they follow later than a real change would show here. Pure.

use crate::decide::Brain;
use crate::observe::demand::Signals;
use crate::observe::{Facts, ObservedCluster, ObservedMemory, observe};
use flyball_core::decision::{Decision, ModelDecision};
use flyball_core::ids::{ModelId, PoolId, VariantId};
use flyball_core::snapshot::{Model, Observed, Purchase, Snapshot};
use flyball_core::units::{Currency, Gpus, Micros, Price, Replicas, Timestamp, TokensPerSecond};
use flyball_governor::explain::explain;
use flyball_governor::policy::{Law, ModelPolicy};
use flyball_resources::admin_api::{
    Changes, Imagined, OtherPrice, VariantCount, WhatIfOutcome, WhatIfSide,
};
use flyball_resources::model_service::ReceiptStatus;
use flyball_resources::{ModelService, Pool, decimal, rfc3339};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Work cannot be imagined to be more than this many times what it is.
const MOST_PERCENT: u32 = 100_000;

/// All that was known at the last look.
#[derive(Clone, Debug)]
pub struct WhatIfWorld {
    /// What the API server said.
    pub facts: Facts,
    /// What gateways and engines said.
    pub signals: Signals,
    /// What was remembered of earlier looks.
    pub learnt: ObservedMemory,
    /// Which law decides for each model.
    pub laws: BTreeMap<ModelId, Law>,
    /// When it was, and how old a signal may be.
    pub time: (Timestamp, Micros),
    /// How long until the next look.
    pub tick: Micros,
}

/// What would be decided with these changes, beside what would be without; or all that is wrong with
/// the question.
pub fn imagine(
    world: &WhatIfWorld,
    brain: &Brain,
    changes: &Changes,
) -> Result<WhatIfOutcome, Vec<String>> {
    let before = world.seen(&world.facts);
    let mut facts = world.facts.clone();
    replace(&mut facts, changes);
    let mut after = world.seen(&facts);
    let problems = change(&mut after.snapshot, changes);
    if !problems.is_empty() {
        return Err(problems);
    }
    let lost = |id: &VariantId| {
        let variant = after.snapshot.variant(id);
        variant.is_some_and(|variant| {
            changes.lost_pools.iter().any(|pool| pool == variant.pool.as_str())
        })
    };
    let decisions = [
        brain.imagine(&before.snapshot, &before.policy, |_| false),
        brain.imagine(&after.snapshot, &after.policy, lost),
    ];
    let requested = requested(changes);
    let ids: BTreeSet<&ModelId> = before.models.keys().chain(after.models.keys()).collect();
    let models = ids.into_iter().filter_map(|id| {
        let sides = [&decisions[0], &decisions[1]].map(|decision| side(decision, id));
        let named = requested.contains(&id.to_string());
        (named || sides[0] != sides[1]).then(|| model(id, sides, &after))
    });
    Ok(WhatIfOutcome { at: rfc3339(world.time.0), models: models.collect() })
}

impl WhatIfWorld {
    /// The picture that these facts give, as at the next look.
    fn seen(&self, facts: &Facts) -> ObservedCluster {
        let mut seen = observe(facts, &self.signals, &mut self.learnt.clone(), self.time);
        seen.snapshot.taken_at = seen.snapshot.taken_at.saturating_add(self.tick);
        for (id, law) in &self.laws {
            let settings = ModelPolicy { law: *law, ..seen.policy.of(id).clone() };
            seen.policy.models.insert(id.clone(), settings);
        }
        seen
    }
}

fn requested(changes: &Changes) -> BTreeSet<String> {
    let services = changes.model_services.iter().filter_map(|service| service.id().ok());
    services.map(|id| id.to_string()).chain(changes.model.clone()).collect()
}

/// Puts what is written anew in the place of what is there.
fn replace(facts: &mut Facts, changes: &Changes) {
    for service in &changes.model_services {
        let is_it = |one: &Arc<ModelService>| {
            one.name_any() == service.name_any() && one.namespace() == service.namespace()
        };
        match facts.models.iter_mut().find(|one| is_it(one)) {
            Some(place) => {
                let mut now = ModelService::clone(place);
                now.spec = service.spec.clone();
                now.annotations_mut().extend(service.annotations().clone());
                *place = Arc::new(now);
            }
            None => facts.models.push(Arc::new(service.clone())),
        }
    }
    for pool in &changes.pools {
        match facts.pools.iter_mut().find(|one| one.name_any() == pool.name_any()) {
            Some(place) => *place = Arc::new(Pool::clone(pool)),
            None => facts.pools.push(Arc::new(pool.clone())),
        }
    }
}

/// Changes the picture, or says all that cannot be.
fn change(snapshot: &mut Snapshot, changes: &Changes) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(name) = &changes.model {
        let model = name.parse::<ModelId>().ok().and_then(|id| snapshot.models.get_mut(&id));
        match model {
            Some(model) => problems.extend(change_model(model, changes)),
            None => problems.push(format!("the operator manages no model {name}")),
        }
    }
    for name in &changes.lost_pools {
        match PoolId::new(name).ok().filter(|id| snapshot.pools.contains_key(id)) {
            Some(id) => lose(snapshot, &id),
            None => problems.push(no_pool(snapshot, name)),
        }
    }
    for price in &changes.prices {
        problems.extend(set_price(snapshot, price));
    }
    problems
}

fn change_model(model: &mut Model, changes: &Changes) -> Option<String> {
    if let Some(min) = changes.min {
        model.bounds.min = Replicas::new(min);
    }
    if let Some(max) = changes.max {
        model.bounds.max = Replicas::new(max);
    }
    if model.bounds.min > model.bounds.max {
        return Some(format!(
            "min {} is above max {}: give both",
            model.bounds.min.get(),
            model.bounds.max.get()
        ));
    }
    let percent = changes.rate_percent?;
    if percent > MOST_PERCENT {
        return Some(format!("the rate must be at most {MOST_PERCENT} % of what it is"));
    }
    let times = |value: u64| value.saturating_mul(u64::from(percent)) / 100;
    let rate = |rate: TokensPerSecond| TokensPerSecond::new(times(rate.get()));
    let demand = &mut model.demand;
    demand.prefill = demand.prefill.map(rate);
    demand.decode = demand.decode.map(rate);
    demand.resident =
        demand.resident.map(|held| flyball_core::units::Tokens::new(times(held.get())));
    None
}

/// The pool has nothing any more and gets nothing, and what ran on it is gone.
fn lose(snapshot: &mut Snapshot, id: &PoolId) {
    let now = snapshot.taken_at;
    if let Some(pool) = snapshot.pools.get_mut(id) {
        for gpus in pool.allocatable.values_mut() {
            *gpus = Observed::Fresh { value: Gpus::ZERO, at: now };
        }
        pool.can_grow = false;
        pool.limit = Some(Gpus::ZERO);
    }
    let variants = snapshot.models.values_mut().flat_map(|model| model.variants.values_mut());
    for variant in variants.filter(|variant| variant.pool == *id) {
        variant.replicas.clear();
    }
}

fn set_price(snapshot: &mut Snapshot, other: &OtherPrice) -> Option<String> {
    let id = PoolId::new(&other.pool).ok();
    let Some(id) = id.filter(|id| snapshot.pools.contains_key(id)) else {
        return Some(no_pool(snapshot, &other.pool));
    };
    let currencies = snapshot.pools.values().flat_map(|pool| pool.prices.values());
    let currency = currencies.map(|price| price.amount().currency()).next();
    let currency = currency.unwrap_or(Currency::USD);
    let price = decimal::money(&other.per_gpu_hour, currency)
        .and_then(|amount| Price::per_gpu_hour(amount).ok());
    let Some(price) = price else {
        return Some(format!("a price is a decimal such as 2.50, not {:?}", other.per_gpu_hour));
    };
    let pool = snapshot.pools.get_mut(&id)?;
    match other.purchase {
        Some(purchase) => {
            pool.prices.insert(purchase.of_core(), price);
        }
        None if pool.prices.is_empty() => {
            pool.prices.insert(Purchase::OnDemand, price);
        }
        None => pool.prices.values_mut().for_each(|known| *known = price),
    }
    None
}

fn no_pool(snapshot: &Snapshot, name: &str) -> String {
    let known: Vec<&str> = snapshot.pools.keys().map(|id| id.as_str()).collect();
    match known.as_slice() {
        [] => format!("there is no pool {name}, nor any other"),
        known => format!("there is no pool {name}; there are {}", known.join(", ")),
    }
}

fn model(
    id: &ModelId,
    [before, after]: [Option<WhatIfSide>; 2],
    seen: &ObservedCluster,
) -> Imagined {
    let seen = seen.models.get(id);
    let problems = seen.into_iter().flat_map(|seen| &seen.problems).map(ToString::to_string);
    let absent = seen.into_iter().flat_map(|seen| &seen.absent);
    let absent = absent.map(|(namespace, kind, name)| {
        format!("{kind:?} {namespace}/{name} does not exist: nothing could be applied")
    });
    Imagined { model: id.to_string(), before, after, problems: problems.chain(absent).collect() }
}

fn side(decision: &Decision, id: &ModelId) -> Option<WhatIfSide> {
    let decided = decision.models.iter().find(|decided| decided.model == *id)?;
    let cost = decided.expected.hourly_cost.map(|cost| cost.point());
    let receipt = ReceiptStatus::of(decision.id, decided, explain(decided));
    let variants: Vec<VariantCount> = counts(decided);
    Some(WhatIfSide {
        replicas: variants.iter().map(|variant| variant.replicas).sum(),
        variants,
        hourly_cost: cost.map(|cost| decimal::text(cost.micros(), 2)),
        currency: cost.map(|cost| cost.currency().to_string()),
        reason: receipt.reason,
        bound: receipt.bound,
        message: receipt.message,
        candidates: receipt.candidates,
    })
}

fn counts(decided: &ModelDecision) -> Vec<VariantCount> {
    let count = |target: &flyball_core::decision::Target| VariantCount {
        variant: target.variant.name().to_string(),
        replicas: i32::try_from(target.replicas.get()).unwrap_or(i32::MAX),
    };
    decided.targets.iter().map(count).collect()
}

#[cfg(test)]
mod tests;
