//! What the operator said last, and how it is carried out.
//!
//! It is kept as a whole and laid over the fleet anew whenever either of the two changes, so that an
//! engine that is listed again, or a model that comes later, goes by it too.

use crate::admit::{Objectives, Served};
use crate::live::Live;
use flyball_fleet::FleetEndpoint;
use flyball_resources::stream::{DrainMark, ModelOrders, Orders};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the operator said last.
#[derive(Debug, Default)]
pub(crate) struct Ordered(Mutex<Option<Held>>);

#[derive(Debug)]
struct Held {
    orders: Orders,
    /// When they came: promised times count from here.
    came: Instant,
    /// Names with orders for several models: that is complained about once.
    unclear: BTreeSet<String>,
}

/// Drain marks by what they name.
struct Marks<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a DrainMark>>,
    by_address: BTreeMap<&'a str, Vec<&'a DrainMark>>,
}

impl Ordered {
    /// These came.
    pub(crate) fn replace(&self, orders: Orders, came: Instant) {
        let mut held = self.lock();
        let unclear = held.take().map(|before| before.unclear).unwrap_or_default();
        *held = Some(Held { orders, came, unclear });
    }

    /// Nobody knows whether drain marks still hold.
    pub(crate) fn forget_drains(&self) {
        if let Some(held) = self.lock().as_mut() {
            held.orders.drains.clear();
        }
    }

    /// Sees to it that these go by what was said. Before anything was said they go by the settings.
    ///
    /// A model goes by the order for its namespace. Where an order for more than one would fit it goes by
    /// none: the objectives of another must not judge its requests.
    pub(crate) fn hold(&self, served: &Served, live: &Live) {
        let mut held = self.lock();
        let Some(Held { orders, came, unclear }) = held.as_mut() else {
            for model in served.models() {
                model.gate.judge.go_by(objectives(None, live, model.name()));
            }
            return;
        };
        let marks = Marks::of(&orders.drains);
        let endpoints = served.fleet().endpoints();
        endpoints.for_each(|endpoint| endpoint.drain(marks.has(endpoint)));
        let mut models: BTreeMap<&str, Vec<&ModelOrders>> = BTreeMap::new();
        for model in &orders.models {
            models.entry(&model.model).or_default().push(model);
        }
        let mut of_several = BTreeSet::new();
        for model in served.models() {
            let all = models.get(&**model.name()).into_iter().flatten().copied();
            let mut own_orders =
                all.filter(|own_orders| is_for(own_orders, live.namespace(model.name())));
            let mut one = own_orders.next();
            if own_orders.next().is_some() {
                one = None;
                of_several.insert(model.name().to_string());
            }
            model.gate.judge.go_by(objectives(one, live, model.name()));
            let eta = one.and_then(|own_orders| own_orders.wake_eta_ms).map(Duration::from_millis);
            model.gate.promise(eta.and_then(|eta| came.checked_add(eta)));
        }
        for model in of_several.difference(unclear) {
            let hint = "set service or pool, so that the namespace is known, or rename a model";
            tracing::warn!(
                model,
                hint,
                "several namespaces have a model of this name; ignoring directives for it"
            );
        }
        *unclear = of_several;
        live.splits.weigh(&weights(orders));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Marks<'a> {
    fn of(marks: &'a [DrainMark]) -> Self {
        let mut all = Self { by_name: BTreeMap::new(), by_address: BTreeMap::new() };
        for mark in marks {
            let (by, key) = match mark.name.is_empty() {
                false => (&mut all.by_name, mark.name.as_str()),
                true => (&mut all.by_address, mark.address.as_str()),
            };
            by.entry(key).or_default().push(mark);
        }
        all
    }

    fn has(&self, endpoint: &FleetEndpoint) -> bool {
        if self.by_name.is_empty() && self.by_address.is_empty() {
            return false;
        }
        let address = endpoint.address.to_string();
        let named = self.by_name.get(&*endpoint.name);
        let placed = self.by_address.get(address.as_str());
        let mut marks = named.into_iter().chain(placed).flatten();
        marks.any(|mark| mark.is_for(&endpoint.name, &address))
    }
}

/// Whether an order may be for a model whose engines are in this namespace. An operator of an older version
/// does not say where, and a gateway with fixed addresses does not know.
fn is_for(own_orders: &ModelOrders, namespace: Option<&str>) -> bool {
    own_orders.namespace.is_empty() || namespace.is_none_or(|own| own_orders.namespace == own)
}

/// What the operator says of a model, or else what the settings say.
fn objectives(own_orders: Option<&ModelOrders>, live: &Live, model: &str) -> Objectives {
    let time = |ms: Option<u64>| ms.map(Duration::from_millis);
    let (first_token, between_tokens) = match own_orders {
        Some(own_orders) => {
            (own_orders.first_token_ms.map(u64::from), own_orders.between_tokens_ms.map(u64::from))
        }
        None => {
            let own = live.models.get(model);
            (own.and_then(|own| own.first_token_ms), own.and_then(|own| own.between_tokens_ms))
        }
    };
    Objectives { first_token: time(first_token), between_tokens: time(between_tokens) }
}

fn weights(orders: &Orders) -> BTreeMap<&str, BTreeMap<&str, u32>> {
    orders
        .splits
        .iter()
        .map(|split| {
            let arms = split.arms.iter().map(|arm| (arm.model.as_str(), arm.weight));
            (split.split.as_str(), arms.collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{GatewaySettingsFile, ModelSettings};
    use flyball_engines::Engine;
    use flyball_fleet::{FoundEngines, Listing};
    use std::sync::Arc;

    fn found(name: &str, port: u16) -> FoundEngines {
        let (address, engine) = (([10, 0, 0, 1], port).into(), Engine::Vllm);
        FoundEngines { name: name.to_owned(), address, draining: false, engine, uid: None }
    }

    fn listing(engines: &[(&str, u16)]) -> Listing {
        let found = engines.iter().map(|(name, port)| found(name, *port)).collect();
        Listing { models: [("m".to_owned(), found)].into() }
    }

    /// Model `m`, with its engines behind this Service.
    fn live(service: Option<&str>) -> Live {
        let service = service.map(str::to_owned);
        let model = ModelSettings { name: "m".to_owned(), service, ..ModelSettings::default() };
        Live::new(
            &GatewaySettingsFile { models: vec![model], ..GatewaySettingsFile::default() },
            None,
        )
    }

    fn mark(name: &str, address: &str) -> DrainMark {
        DrainMark { name: name.to_owned(), address: address.to_owned(), since_ms: 1 }
    }

    /// What is served once these engines are listed.
    fn after(before: &Served, engines: &[(&str, u16)]) -> Served {
        before.after(Arc::new(before.fleet().after(&listing(engines))))
    }

    fn drained(served: &Served) -> Vec<&str> {
        let drained = served.fleet().endpoints().filter(|endpoint| endpoint.is_ordered_to_drain());
        drained.map(|endpoint| &*endpoint.name).collect()
    }

    #[test]
    fn marks_outlive_listings_and_meet_engines_that_come_later() {
        let (ordered, live) = (Ordered::default(), live(None));
        let first = after(&Served::default(), &[("a", 1), ("b", 2)]);
        ordered.hold(&first, &live);
        assert!(drained(&first).is_empty());
        let drains = vec![mark("a", ""), mark("", "10.0.0.1:3"), mark("b", "10.0.0.9:2")];
        ordered.replace(Orders { drains, ..Orders::default() }, Instant::now());
        ordered.hold(&first, &live);
        assert_eq!(drained(&first), ["a"], "b is meant elsewhere");
        assert!(!first.fleet().endpoints().next().unwrap().is_open());
        let second = after(&first, &[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(drained(&second), ["a"], "a listing does not touch it");
        ordered.hold(&second, &live);
        assert_eq!(drained(&second), ["a", "c"]);
        // Gone and back: it is another endpoint, and the mark still holds.
        let third = after(&after(&second, &[("b", 2)]), &[("a", 1), ("b", 2)]);
        ordered.hold(&third, &live);
        assert_eq!(drained(&third), ["a"]);
        ordered.forget_drains();
        ordered.hold(&third, &live);
        assert!(drained(&third).is_empty());
    }

    #[test]
    fn promises_and_objectives_reach_models_and_leave_them() {
        let (ordered, live) = (Ordered::default(), live(None));
        let served = after(&Served::default(), &[]);
        let model = ModelOrders {
            model: "m".to_owned(),
            first_token_ms: Some(500),
            wake_eta_ms: Some(40_000),
            ..ModelOrders::default()
        };
        let orders = Orders { models: vec![model], ..Orders::default() };
        let came = Instant::now();
        ordered.replace(orders, came);
        ordered.hold(&served, &live);
        let gate = &served.model("m").unwrap().gate;
        let eta = gate.promised().unwrap();
        let promised = Duration::from_secs(40);
        assert!(eta <= promised && eta + came.elapsed() >= promised, "{eta:?}");
        ordered.replace(Orders::default(), Instant::now());
        ordered.hold(&served, &live);
        assert_eq!(gate.promised(), None);
    }

    #[test]
    fn objectives_of_the_settings_hold_until_the_operator_says_others() {
        let model = ModelSettings {
            name: "m".to_owned(),
            first_token_ms: Some(700),
            ..ModelSettings::default()
        };
        let settings =
            GatewaySettingsFile { models: vec![model], ..GatewaySettingsFile::default() };
        let live = Live::new(&settings, None);
        let first =
            |own_orders: Option<&ModelOrders>| objectives(own_orders, &live, "m").first_token;
        assert_eq!(first(None), Some(Duration::from_millis(700)));
        let order = ModelOrders { first_token_ms: Some(500), ..ModelOrders::default() };
        assert_eq!(first(Some(&order)), Some(Duration::from_millis(500)));
        assert_eq!(first(Some(&ModelOrders::default())), None, "it says that there is none");
        assert_eq!(objectives(None, &live, "other"), Objectives::default());
    }

    #[test]
    fn an_order_is_for_the_model_of_its_namespace() {
        let order = |namespace: &str, eta: u64| ModelOrders {
            model: "m".to_owned(),
            namespace: namespace.to_owned(),
            wake_eta_ms: Some(eta * 1_000),
            ..ModelOrders::default()
        };
        let promised = |service: Option<&str>, models: Vec<ModelOrders>| {
            let ordered = Ordered::default();
            let served = after(&Served::default(), &[]);
            ordered.replace(Orders { models, ..Orders::default() }, Instant::now());
            ordered.hold(&served, &live(service));
            // In thousands of seconds: it does not matter how long this takes.
            let left = served.model("m").unwrap().gate.promised();
            left.map(|left| left.as_secs().div_ceil(1_000))
        };
        let (prod, staging) = (order("prod", 1_000), order("staging", 3_000));
        let both = || vec![prod.clone(), staging.clone()];
        let back = || vec![staging.clone(), prod.clone()];
        for orders in [both(), back()] {
            assert_eq!(promised(Some("prod/m:8000"), orders.clone()), Some(1));
            assert_eq!(promised(Some("staging/m:8000"), orders.clone()), Some(3));
            assert_eq!(promised(Some("other/m:8000"), orders.clone()), None);
            assert_eq!(promised(None, orders), None, "nobody knows whose it is");
        }
        assert_eq!(promised(None, vec![prod.clone()]), Some(1));
        // An operator of an older version does not say.
        assert_eq!(promised(Some("prod/m:8000"), vec![order("", 2_000)]), Some(2));
    }
}
