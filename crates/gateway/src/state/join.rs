//! Adds several gateways up.

use super::{
    CallerView, EngineView, GatewayStateView, Minute, ModelView, QueueView, Refusal, TenantsView,
    Times, TroubleView,
};
use std::collections::BTreeMap;

impl GatewayStateView {
    /// Takes in another gateway. Counts are added, quantiles are read anew from the joined spreads.
    pub fn join(&mut self, other: Self) {
        // The older of two looks says how old the sum is.
        if self.gateways == 0 || other.time < self.time {
            self.time = other.time;
        }
        self.version = self.version.max(other.version);
        self.gateways += other.gateways;
        self.connections += other.connections;
        self.requests += other.requests;
        self.held_bytes += other.held_bytes;
        joined(
            &mut self.troubles,
            other.troubles,
            |trouble| trouble.what.clone(),
            TroubleView::join,
        );
        joined(&mut self.models, other.models, |model| model.name.clone(), ModelView::join);
        joined(&mut self.callers, other.callers, |caller| caller.name.clone(), CallerView::join);
        joined(&mut self.refusals, other.refusals, |one| one.reason.clone(), Refusal::join);
        self.tenants = match (self.tenants.take(), other.tenants) {
            (Some(one), Some(other)) => Some(one.join(other)),
            (one, other) => one.or(other),
        };
        self.refusals.sort_by_key(|refusal| std::cmp::Reverse(refusal.count));
    }
}

impl TroubleView {
    /// Two gateways look at the same engines and models, and each has troubles of its own.
    fn join(&mut self, other: Self) {
        self.count = match self.what.as_str() {
            "silent-engines"
            | "unconfirmed-empty-models"
            | "name-conflicts"
            | "refused-tenants" => self.count.max(other.count),
            _ => self.count + other.count,
        };
    }
}

impl ModelView {
    fn join(&mut self, other: Self) {
        joined(&mut self.engines, other.engines, |engine| engine.name.clone(), EngineView::join);
        self.queue.join(&other.queue);
        self.requests_per_second += other.requests_per_second;
        self.last_minute.join(&other.last_minute);
        self.trouble = self.trouble.take().or(other.trouble);
    }
}

impl EngineView {
    /// Two gateways look at one engine: what each has there is added, what it says of itself is
    /// said once, and of two states the worse one is shown.
    fn join(&mut self, other: Self) {
        self.in_flight += other.in_flight;
        self.running = self.running.max(other.running);
        self.waiting = self.waiting.max(other.waiting);
        self.kv_used = larger(self.kv_used, other.kv_used);
        if worse(&other.state) > worse(&self.state) {
            self.state = other.state;
        }
    }
}

impl QueueView {
    fn join(&mut self, other: &Self) {
        self.waiting += other.waiting;
        self.held += other.held;
        self.backlog_tokens += other.backlog_tokens;
        self.backlog_cost += other.backlog_cost;
        self.oldest_seconds = self.oldest_seconds.max(other.oldest_seconds);
        self.wait_seconds = larger(self.wait_seconds, other.wait_seconds);
        self.eta_seconds = larger(self.eta_seconds, other.eta_seconds);
    }
}

impl Minute {
    fn join(&mut self, other: &Self) {
        self.answered += other.answered;
        self.refused += other.refused;
        self.failed += other.failed;
        self.broken += other.broken;
        self.cancelled += other.cancelled;
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.first_token.join(&other.first_token);
        self.per_token.join(&other.per_token);
    }
}

impl Times {
    fn join(&mut self, other: &Self) {
        let mut buckets: BTreeMap<u64, u64> = self.buckets.iter().copied().collect();
        for (end, count) in &other.buckets {
            *buckets.entry(*end).or_default() += count;
        }
        *self = Self::of(buckets.into_iter().collect());
    }
}

impl CallerView {
    fn join(&mut self, other: Self) {
        self.requests_per_second += other.requests_per_second;
        self.last_minute.join(&other.last_minute);
    }
}

impl TenantsView {
    /// Two gateways know the same Tenants; the one with the older list may know fewer, and is the one to look at.
    fn join(self, other: Self) -> Self {
        let age = |view: &Self| view.age_seconds.unwrap_or(f64::INFINITY);
        if age(&self) >= age(&other) { self } else { other }
    }
}

impl Refusal {
    fn join(&mut self, other: Self) {
        self.count += other.count;
    }
}

/// Joins what has the same name, and keeps everything in the order of names.
fn joined<T>(all: &mut Vec<T>, more: Vec<T>, name: fn(&T) -> String, join: fn(&mut T, T)) {
    let mut by_name: BTreeMap<String, T> = all.drain(..).map(|one| (name(&one), one)).collect();
    for one in more {
        match by_name.entry(name(&one)) {
            std::collections::btree_map::Entry::Occupied(mut same) => join(same.get_mut(), one),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(one);
            }
        }
    }
    all.extend(by_name.into_values());
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        _ => one.or(other),
    }
}

fn worse(state: &str) -> usize {
    ["open", "draining", "quarantined", "broken", "gone"]
        .iter()
        .position(|s| *s == state)
        .unwrap_or(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(first: (u64, u64), in_flight: u64, state: &str) -> GatewayStateView {
        GatewayStateView {
            version: super::super::VERSION,
            time: "2026-11-06T21:20:00Z".to_owned(),
            gateways: 1,
            requests: 3,
            models: vec![ModelView {
                name: "qwen".to_owned(),
                engines: vec![EngineView {
                    name: "e1".to_owned(),
                    state: state.to_owned(),
                    in_flight,
                    running: Some(7),
                    ..EngineView::default()
                }],
                queue: QueueView { waiting: 2, wait_seconds: Some(1.0), ..QueueView::default() },
                requests_per_second: 1.5,
                last_minute: Minute {
                    answered: first.1,
                    input_tokens: 100,
                    cached_tokens: 40,
                    first_token: Times::of(vec![first]),
                    ..Minute::default()
                },
                trouble: None,
            }],
            refusals: vec![Refusal { reason: "overloaded".to_owned(), count: 4 }],
            ..GatewayStateView::default()
        }
    }

    #[test]
    fn gateways_are_added_and_quantiles_are_those_of_all_requests() {
        let mut sum = GatewayStateView::default();
        sum.join(gateway((1_000, 90), 4, "open"));
        sum.join(gateway((1_000_000, 10), 5, "broken"));
        let model = &sum.models[0];
        assert_eq!((sum.gateways, sum.requests, sum.models.len()), (2, 6, 1));
        assert_eq!((model.queue.waiting, model.requests_per_second), (4, 3.0));
        let engine = &model.engines[0];
        assert_eq!((engine.in_flight, engine.running), (9, Some(7)));
        assert_eq!(engine.state, "broken");
        // 100 requests: the 50th took a millisecond, the 95th a second. A mean would say half of it.
        let first = &model.last_minute.first_token;
        assert_eq!((first.p50_seconds, first.p95_seconds), (Some(0.001), Some(1.0)));
        assert_eq!(model.last_minute.hit_rate(), Some(0.4));
        assert_eq!(sum.refusals[0].count, 8);
        assert_eq!(Minute::default().hit_rate(), None);
    }

    #[test]
    fn the_form_is_read_as_it_was_written() {
        let state = gateway((1_000, 90), 4, "open");
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<GatewayStateView>(&text).unwrap(), state);
    }
}
