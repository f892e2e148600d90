//! What a policy gets to see: the snapshot that an operator would take, and readings of metrics.

use super::World;
use super::faults::Fault;
use super::metrics::Scrape;
use super::replicas::{Replica, State};
use crate::policy::Reading;
use crate::seconds::Seconds;
use flyball_core::decision::ModelDecision;
use flyball_core::ids::{NodeName, ReplicaId};
use flyball_core::snapshot::{self, Mode, Observed, Pool, Purchase, Snapshot};
use flyball_core::units::{Gpus, Requests, Timestamp};
use flyball_estimator::reading::{EngineReading, ModelReading, VariantReading};
use flyball_estimator::{Estimator, Readings};
use std::collections::BTreeMap;

/// What was decided for a model at one moment, and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// When.
    pub at: Seconds,
    /// The place of the model.
    pub model: usize,
    /// What its metrics said.
    pub reading: Reading,
    /// Replicas that it should have from now on, over all variants.
    pub ordered: u32,
    /// The decision, of policies that explain themselves.
    pub decision: Option<ModelDecision>,
}

/// The pictures that policies are shown of readings that somebody took elsewhere, one after the other.
pub fn snapshots(readings: impl IntoIterator<Item = Readings>) -> Vec<Snapshot> {
    let mut estimator = Estimator::default();
    readings.into_iter().map(|readings| show(&mut estimator, readings)).collect()
}

/// The one way from readings to what a policy is shown.
fn show(estimator: &mut Estimator, readings: Readings) -> Snapshot {
    estimator.see(readings).0
}

impl World<'_> {
    /// The time that whoever decides believes it is.
    pub(super) fn believed_now(&self) -> Seconds {
        self.now + Seconds(self.clock_error)
    }

    fn believed_date(&self) -> Timestamp {
        let (date, error) = (self.now.after(self.setup.start), Seconds(self.clock_error.abs()));
        match self.clock_error < 0.0 {
            true => date.saturating_sub(error.to_micros()),
            false => date.saturating_add(error.to_micros()),
        }
    }

    pub(super) fn observe(&mut self) -> (Snapshot, Vec<Reading>) {
        let taken_at = self.believed_date();
        let scrape = self.pipeline.read(self.now).cloned();
        let models = (0..self.models.len()).map(|model| {
            let id = self.setup.models[model].id.clone();
            (id, self.read_model(model, taken_at, scrape.as_ref()))
        });
        let pools = (0..self.setup.pools.len())
            .map(|pool| (self.setup.pools[pool].id.clone(), self.see_pool(pool, taken_at)));
        let readings = Readings {
            taken_at,
            shard: 0,
            max_age: self.setup.metrics.max_age.to_micros(),
            models: models.collect(),
            pools: pools.collect(),
            runs: BTreeMap::new(),
        };
        let snapshot = show(&mut self.estimator, readings);
        let readings = (0..self.models.len()).map(|model| self.reading(model, scrape.as_ref()));
        (snapshot, readings.collect())
    }

    fn read_model(&self, model: usize, now: Timestamp, scrape: Option<&Scrape>) -> ModelReading {
        let setup = &self.setup.models[model];
        let variants = (0..setup.variants.len()).map(|variant| {
            let name = setup.variants[variant].name.clone();
            (name, self.read_variant(model, variant, now, scrape))
        });
        let is_reachable = !self.suffers(|fault| matches!(fault, Fault::NoGateway { .. }));
        let gateway = match self.setup.habits.report_every {
            Some(_) => self.pipeline.reported(model).cloned(),
            None => scrape.and_then(|scrape| scrape.gateways[model].clone()),
        };
        let gateway = gateway.filter(|_| is_reachable);
        ModelReading {
            mode: Mode::Act,
            pinned: None,
            frozen: false,
            blocked: false,
            bounds: setup.bounds,
            objectives: setup.objectives,
            gateways: gateway.into_iter().collect(),
            silent_gateways: self.silent_gateways(),
            waited_for: false,
            variants: variants.collect(),
        }
    }

    fn read_variant(
        &self,
        model: usize,
        variant: usize,
        now: Timestamp,
        scrape: Option<&Scrape>,
    ) -> VariantReading {
        let setup = &self.setup.models[model].variants[variant];
        let of = |place: &&usize| {
            let replica = &self.replicas[**place];
            (replica.model, replica.variant) == (model, variant)
        };
        let replicas = self.present.iter().filter(of).map(|place| {
            let replica = &self.replicas[*place];
            (replica.id.clone(), self.see_replica(*place, replica, now, scrape))
        });
        let started = self.present.iter().filter(of).filter_map(|place| {
            let replica = &self.replicas[*place];
            let served = replica.served?;
            // What served from the beginning was started before it, where anything was.
            let took = match replica.ordered > Seconds::ZERO {
                true => served - replica.ordered,
                false if self.setup.habits.predicts => setup.cold_start.median(),
                false => return None,
            };
            Some((replica.id.clone(), took.to_micros()))
        });
        let (stated, paces) = self.stated(model, variant);
        VariantReading {
            pool: self.setup.pools[setup.pool].id.clone(),
            gpus_per_replica: Gpus::new(setup.gpus_per_replica),
            stated,
            predicted: setup.predicted.clone().filter(|_| self.setup.habits.predicts),
            paces,
            cold_start: self.stated_start(setup),
            replicas: replicas.collect(),
            started: started.collect(),
            engines: self.read_engines(model, variant, scrape),
            lapsed: false,
        }
    }

    /// Engines, where nobody hears a gateway. Elsewhere gateways tell all that engines would, and whoever asks a
    /// Prometheus reads both.
    fn read_engines(
        &self,
        model: usize,
        variant: usize,
        scrape: Option<&Scrape>,
    ) -> BTreeMap<ReplicaId, EngineReading> {
        let is_reachable = !self.suffers(|fault| matches!(fault, Fault::NoGateway { .. }));
        if is_reachable && !self.setup.habits.engines_beside {
            return BTreeMap::new();
        }
        // What scrapes cannot find of gateways they cannot find of engines either.
        let found = scrape.filter(|scrape| scrape.gateways[model].is_some());
        let found = found.map(|scrape| scrape.at.after(self.setup.start));
        let serving = self.present.iter().filter(|place| {
            let replica = &self.replicas[**place];
            (replica.model, replica.variant) == (model, variant) && replica.state == State::Ready
        });
        serving
            .map(|place| (self.replicas[*place].id.clone(), self.read_engine(*place, found)))
            .collect()
    }

    fn see_replica(
        &self,
        place: usize,
        replica: &Replica,
        now: Timestamp,
        scrape: Option<&Scrape>,
    ) -> snapshot::Replica {
        let names = replica.nodes.iter().filter_map(|(node, _)| {
            let pool = &self.setup.pools[self.nodes[*node].pool].id;
            NodeName::new(&format!("{pool}-{node}")).ok()
        });
        snapshot::Replica {
            state: replica.state,
            since: replica.since.after(self.setup.start),
            in_flight: self.see_in_flight(place, replica, now, scrape),
            nodes: names.collect(),
            purchase: Some(replica.purchase),
        }
    }

    fn see_in_flight(
        &self,
        place: usize,
        replica: &Replica,
        now: Timestamp,
        scrape: Option<&Scrape>,
    ) -> Observed<Requests> {
        if replica.served.is_none() {
            // Nothing was ever sent to it, which takes no metric to know.
            return Observed::Fresh { value: Requests::ZERO, at: now };
        }
        let Some(scrape) = scrape else { return Observed::Missing };
        // A count from before the drain says nothing about who came in between.
        if replica.state == State::Draining && scrape.at <= replica.since {
            return Observed::Missing;
        }
        let value = scrape.in_flight.iter().find(|(seen, _)| *seen == place);
        let value = value.and_then(|(_, count)| count.and_then(Requests::from_sample));
        let at = scrape.at.after(self.setup.start);
        Observed::judge(value, at, now, self.setup.metrics.max_age.to_micros())
    }

    fn see_pool(&self, pool: usize, now: Timestamp) -> Pool {
        let setup = &self.setup.pools[pool];
        let mut gpus: BTreeMap<Purchase, u32> = setup.nodes.keys().map(|p| (*p, 0)).collect();
        for node in self.nodes.iter().filter(|n| n.pool == pool && n.is_there() && !n.leaving) {
            *gpus.entry(node.purchase).or_default() += node.gpus;
        }
        if gpus.is_empty() {
            gpus.insert(Purchase::OnDemand, 0);
        }
        let seen = |(purchase, gpus): (Purchase, u32)| {
            (purchase, Observed::Fresh { value: Gpus::new(gpus), at: now })
        };
        Pool {
            accelerator: setup.accelerator.clone(),
            allocatable: gpus.into_iter().map(seen).collect(),
            held_by_others: Gpus::ZERO,
            shares: BTreeMap::new(),
            can_grow: setup.can_grow,
            supply: None,
            take_back: None,
            limit: setup.limit,
            prices: setup.prices.clone(),
        }
    }

    fn reading(&self, model: usize, scrape: Option<&Scrape>) -> Reading {
        // How many replicas there are comes from the API server, which is up to date.
        let standing = self.standing(model);
        let counts = Reading {
            ready: standing.ready,
            starting: standing.pending + standing.starting,
            draining: standing.draining,
            ..Reading::default()
        };
        let Some(scrape) = scrape else { return counts };
        let seen = &scrape.models[model];
        Reading {
            at: scrape.at,
            arrivals_per_second: seen.arrivals,
            prompt_tokens_per_second: seen.prompt_tokens,
            output_tokens_per_second: seen.output_tokens,
            waiting: seen.waiting,
            waiting_tokens: seen.waiting_tokens,
            running: seen.running,
            cache_used: seen.cache_used,
            first_token_p90: seen.first_token_p90.map(Seconds),
            between_tokens_p90: seen.between_tokens_p90.map(Seconds),
            ..counts
        }
    }
}
