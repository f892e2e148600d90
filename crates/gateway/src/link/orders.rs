//! What the operator said last, and how it is carried out.
//!
//! It is kept as a whole and laid over the fleet anew whenever either of the two changes, so that an
//! engine that is listed again, or a model that comes later, goes by it too.

use crate::admit::Objectives;
use crate::fleet::{Endpoint, Fleet};
use crate::split::Splits;
use flyball_resources::stream::{DrainMark, ModelOrders, Orders};
use std::collections::BTreeMap;
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
}

/// Drain marks by what they name.
struct Marks<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a DrainMark>>,
    by_address: BTreeMap<&'a str, Vec<&'a DrainMark>>,
}

impl Ordered {
    /// These came.
    pub(crate) fn replace(&self, orders: Orders, came: Instant) {
        *self.lock() = Some(Held { orders, came });
    }

    /// Nobody knows whether drain marks still hold.
    pub(crate) fn forget_drains(&self) {
        if let Some(held) = self.lock().as_mut() {
            held.orders.drains.clear();
        }
    }

    /// Sees to it that these go by what was said. Nothing is touched before anything was said.
    pub(crate) fn hold(&self, fleet: &Fleet, splits: &Splits) {
        let held = self.lock();
        let Some(held) = held.as_ref() else { return };
        let marks = Marks::of(&held.orders.drains);
        fleet.endpoints().for_each(|endpoint| endpoint.drain(marks.has(endpoint)));
        let models: BTreeMap<&str, &ModelOrders> =
            held.orders.models.iter().map(|model| (model.model.as_str(), model)).collect();
        for model in fleet.models() {
            let said = models.get(&*model.name);
            model.gate.judge.go_by(said.map(|said| objectives(said)).unwrap_or_default());
            let eta = said.and_then(|said| said.wake_eta_ms).map(Duration::from_millis);
            model.gate.promise(eta.and_then(|eta| held.came.checked_add(eta)));
        }
        splits.weigh(&weights(&held.orders));
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

    fn has(&self, endpoint: &Endpoint) -> bool {
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

fn objectives(said: &ModelOrders) -> Objectives {
    let time = |ms: Option<u32>| ms.map(|ms| Duration::from_millis(ms.into()));
    Objectives {
        first_token: time(said.first_token_ms),
        between_tokens: time(said.between_tokens_ms),
    }
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
    use crate::fleet::{Found, Listing};
    use crate::settings::Engine;

    fn found(name: &str, port: u16) -> Found {
        let (address, engine) = (([10, 0, 0, 1], port).into(), Engine::Vllm);
        Found { name: name.to_owned(), address, draining: false, engine, uid: None }
    }

    fn listing(engines: &[(&str, u16)]) -> Listing {
        let found = engines.iter().map(|(name, port)| found(name, *port)).collect();
        Listing { models: [("m".to_owned(), found)].into() }
    }

    fn mark(name: &str, address: &str) -> DrainMark {
        DrainMark { name: name.to_owned(), address: address.to_owned(), since_ms: 1 }
    }

    fn drained(fleet: &Fleet) -> Vec<&str> {
        let drained = fleet.endpoints().filter(|endpoint| endpoint.is_told_to_drain());
        drained.map(|endpoint| &*endpoint.name).collect()
    }

    #[test]
    fn marks_outlive_listings_and_meet_engines_that_come_later() {
        let (ordered, splits) = (Ordered::default(), Splits::default());
        let first = Fleet::default().after(&listing(&[("a", 1), ("b", 2)]));
        ordered.hold(&first, &splits);
        assert!(drained(&first).is_empty());
        let drains = vec![mark("a", ""), mark("", "10.0.0.1:3"), mark("b", "10.0.0.9:2")];
        ordered.replace(Orders { drains, ..Orders::default() }, Instant::now());
        ordered.hold(&first, &splits);
        assert_eq!(drained(&first), ["a"], "b is meant elsewhere");
        assert!(!first.endpoints().next().unwrap().is_open());
        let second = first.after(&listing(&[("a", 1), ("b", 2), ("c", 3)]));
        assert_eq!(drained(&second), ["a"], "a listing does not touch it");
        ordered.hold(&second, &splits);
        assert_eq!(drained(&second), ["a", "c"]);
        // Gone and back: it is another endpoint, and the mark still holds.
        let third = second.after(&listing(&[("b", 2)])).after(&listing(&[("a", 1), ("b", 2)]));
        ordered.hold(&third, &splits);
        assert_eq!(drained(&third), ["a"]);
        ordered.forget_drains();
        ordered.hold(&third, &splits);
        assert!(drained(&third).is_empty());
    }

    #[test]
    fn promises_and_objectives_reach_models_and_leave_them() {
        let (ordered, splits) = (Ordered::default(), Splits::default());
        let fleet = Fleet::default().after(&listing(&[]));
        let model = ModelOrders {
            model: "m".to_owned(),
            first_token_ms: Some(500),
            between_tokens_ms: None,
            wake_eta_ms: Some(40_000),
        };
        let orders = Orders { models: vec![model], ..Orders::default() };
        let came = Instant::now();
        ordered.replace(orders, came);
        ordered.hold(&fleet, &splits);
        let gate = &fleet.model("m").unwrap().gate;
        let eta = gate.promised().unwrap();
        let promised = Duration::from_secs(40);
        assert!(eta <= promised && eta + came.elapsed() >= promised, "{eta:?}");
        ordered.replace(Orders::default(), Instant::now());
        ordered.hold(&fleet, &splits);
        assert_eq!(gate.promised(), None);
    }
}
