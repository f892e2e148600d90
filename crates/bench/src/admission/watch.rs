//! Looking at gateways from outside while they work: what is under way, and the most that ever was.

use crate::programs::page::{json, total};
use crate::programs::running::get;
use anyhow::{Context, Result};
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// One look at a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct GatewaySample {
    pub(super) in_flight: f64,
    /// Requests in the queue; unknown if the gateway does not tell.
    pub(super) waiting: Option<f64>,
    /// Requests that wait for a model without an engine.
    pub(super) held: Option<f64>,
    pub(super) held_bytes: f64,
    pub(super) zombies: f64,
    /// Requests under way at engines.
    pub(super) at_engines: Option<f64>,
    /// Tokens that engines have not read yet, as the gateway counts them.
    pub(super) unread: Option<f64>,
    /// The sum of all counters that must never count.
    pub(super) invariants: f64,
}

/// Words in the names of counters that must stay 0.
const INVARIANTS: [&str; 2] = ["invariant", "leak"];

impl GatewaySample {
    pub(super) fn at(admin: SocketAddr) -> Result<Self> {
        let page = get(admin, "/metrics")?;
        let of = |name: &str| total(&page, name).with_context(|| format!("no metric {name}"));
        let mut sample = Self {
            in_flight: of("flyball_gateway_in_flight")?,
            held_bytes: of("flyball_gateway_held_bytes")?,
            zombies: of("flyball_gateway_zombies")?,
            invariants: invariants(&page),
            ..Self::default()
        };
        // Gateways from before it have no such page.
        if let Ok(state) = json(admin, "/state")
            && let Some(models) = state["models"].as_array()
        {
            let sum = |pick: &dyn Fn(&serde_json::Value) -> f64| models.iter().map(pick).sum();
            sample.waiting = Some(sum(&|model| number(&model["queue"]["waiting"])));
            sample.held = Some(sum(&|model| number(&model["queue"]["held"])));
            let at_engines = |name: &'static str| {
                let engines = models.iter().filter_map(|model| model["engines"].as_array());
                let counts = engines.flatten().filter_map(move |engine| engine[name].as_f64());
                counts.fold(None, |sum: Option<f64>, more| Some(sum.unwrap_or(0.0) + more))
            };
            sample.at_engines = at_engines("inFlight");
            sample.unread = at_engines("unreadTokens");
        }
        Ok(sample)
    }

    /// What is there although nothing is asked any more: each of these must be 0.
    pub(super) fn left_over(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("requests in flight", Some(self.in_flight)),
            ("requests that wait", self.waiting),
            ("requests that are held", self.held),
            ("bytes held", Some(self.held_bytes)),
            ("cancelled requests in engines", Some(self.zombies)),
            ("requests under way at engines", self.at_engines),
            ("unread tokens at engines", self.unread),
            ("broken invariants", Some(self.invariants)),
        ];
        all.into_iter()
            .filter_map(|(name, count)| Some((name, count.filter(|n| *n != 0.0)?)))
            .collect()
    }
}

/// The sum of all counters whose name says that they must never count.
fn invariants(page: &str) -> f64 {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let named = lines.filter(|line| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        INVARIANTS.iter().any(|word| name.contains(word))
    });
    named.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

fn number(value: &serde_json::Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Looks once a second until it is asked what it saw.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Most>,
}

/// The most of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Most {
    pub(super) in_flight: f64,
    pub(super) waiting: Option<f64>,
    pub(super) held_bytes: f64,
    pub(super) samples: u32,
    /// Looks that got no answer.
    pub(super) blind: u32,
}

impl Watch {
    pub(super) fn start(admin: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut most = Most::default();
            while !seen.load(Ordering::Relaxed) {
                most.see(GatewaySample::at(admin));
                std::thread::sleep(Duration::from_secs(1));
            }
            most
        });
        Self { over, thread }
    }

    pub(super) fn most(self) -> Result<Most> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the watch panicked"))
    }
}

impl Most {
    fn see(&mut self, sample: Result<GatewaySample>) {
        let Ok(sample) = sample else {
            self.blind += 1;
            return;
        };
        self.samples += 1;
        self.in_flight = self.in_flight.max(sample.in_flight);
        self.held_bytes = self.held_bytes.max(sample.held_bytes);
        if let Some(waiting) = sample.waiting {
            self.waiting = Some(self.waiting.unwrap_or(0.0).max(waiting));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_over_is_named() {
        let clean = GatewaySample { waiting: Some(0.0), ..GatewaySample::default() };
        assert_eq!(clean.left_over(), []);
        let left = GatewaySample { in_flight: 1.0, at_engines: Some(2.0), ..clean };
        let names: Vec<&str> = left.left_over().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["requests in flight", "requests under way at engines"]);
    }

    #[test]
    fn counters_that_must_not_count_are_found_by_name() {
        let page = "# HELP flyball_gateway_invariant_broken_total x 7\n\
                    flyball_gateway_invariant_broken_total{which=\"a\"} 2\n\
                    flyball_gateway_retries_total{model=\"invariant\"} 5\n";
        assert_eq!(invariants(page), 2.0);
    }
}
