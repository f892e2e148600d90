//! What a policy gets to see: the snapshot that an operator would take, and readings of metrics.

use super::metrics::Scrape;
use super::replicas::{Replica, State};
use super::world::World;
use crate::policy::Reading;
use crate::seconds::Seconds;
use flyball_core::decision::ModelDecision;
use flyball_core::ids::NodeName;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    self, Demand, Misses, Mode, Model, Observed, Pool, Purchase, Snapshot, Sources,
};
use flyball_core::units::{Gpus, Micros, Requests, Timestamp, Tokens, TokensPerSecond};
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

/// Cold starts that are remembered for a variant.
const REMEMBERED: usize = 50;

/// Cold starts after which measured ones are believed more than stated ones.
const ENOUGH: usize = 5;

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
            (id, self.see_model(model, taken_at, scrape.as_ref()))
        });
        let pools = (0..self.setup.pools.len())
            .map(|pool| (self.setup.pools[pool].id.clone(), self.see_pool(pool, taken_at)));
        let snapshot = Snapshot {
            taken_at,
            shard: 0,
            models: models.collect(),
            pools: pools.collect(),
            runs: BTreeMap::new(),
        };
        let readings = (0..self.models.len()).map(|model| self.reading(model, scrape.as_ref()));
        (snapshot, readings.collect())
    }

    fn see_model(&self, model: usize, now: Timestamp, scrape: Option<&Scrape>) -> Model {
        let setup = &self.setup.models[model];
        let variants = (0..setup.variants.len()).map(|variant| {
            let name = setup.variants[variant].name.clone();
            (name, self.see_variant(model, variant, now, scrape))
        });
        Model {
            mode: Mode::Act,
            pinned: None,
            frozen: false,
            blocked: false,
            bounds: setup.bounds,
            objectives: setup.objectives,
            demand: self.demand(model, now, scrape),
            misses: self.misses(model, now, scrape),
            variants: variants.collect(),
        }
    }

    fn demand(&self, model: usize, now: Timestamp, scrape: Option<&Scrape>) -> Demand {
        let Some(scrape) = scrape else { return Demand::UNKNOWN };
        let (seen, at) = (&scrape.models[model], scrape.at.after(self.setup.start));
        let max_age = self.setup.metrics.max_age.to_micros();
        let rate = |value: Option<f64>| {
            Observed::judge(value.and_then(TokensPerSecond::from_sample), at, now, max_age)
        };
        let count = |value: Option<f64>| {
            Observed::judge(value.and_then(Tokens::from_sample), at, now, max_age)
        };
        Demand {
            prefill: rate(seen.prompt_tokens),
            // The operator hears of demand from gateways first.
            decode: rate(seen.answered_tokens),
            resident: count(seen.resident),
            backlog: count(seen.waiting_tokens),
            sources: Sources::default(),
        }
    }

    fn misses(&self, model: usize, now: Timestamp, scrape: Option<&Scrape>) -> Observed<Misses> {
        let Some(scrape) = scrape else { return Observed::Missing };
        let seen = &scrape.models[model];
        let count = |value: Option<f64>| value.and_then(Requests::from_sample);
        let counted = count(seen.judged).zip(count(seen.missed));
        let counted = counted.map(|(requests, missed)| Misses { requests, missed });
        let at = scrape.at.after(self.setup.start);
        Observed::judge(counted, at, now, self.setup.metrics.max_age.to_micros())
    }

    fn see_variant(
        &self,
        model: usize,
        variant: usize,
        now: Timestamp,
        scrape: Option<&Scrape>,
    ) -> snapshot::Variant {
        let setup = &self.setup.models[model].variants[variant];
        let of = |place: &&usize| {
            let replica = &self.replicas[**place];
            (replica.model, replica.variant) == (model, variant)
        };
        let replicas = self.present.iter().filter(of).map(|place| {
            let replica = &self.replicas[*place];
            (replica.id.clone(), self.see_replica(*place, replica, now, scrape))
        });
        snapshot::Variant {
            pool: self.setup.pools[setup.pool].id.clone(),
            gpus_per_replica: Gpus::new(setup.gpus_per_replica),
            capacity: setup.capacity,
            cold_start: self.learnt_cold_start(model, variant),
            replicas: replicas.collect(),
        }
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

    /// Measured once there are enough of them, and before that what the parts say.
    fn learnt_cold_start(&self, model: usize, variant: usize) -> Option<Interval<Micros>> {
        let all = self.models[model].account.cold_starts.iter().rev();
        let mut seen: Vec<Seconds> =
            all.filter(|(of, _)| *of == variant).map(|(_, took)| *took).take(REMEMBERED).collect();
        if seen.len() < ENOUGH {
            let setup = &self.setup.models[model].variants[variant];
            return setup.cold_start.expected(&self.setup.pools[setup.pool].node_supply);
        }
        seen.sort();
        let at = |share: f64| seen[((seen.len() - 1) as f64 * share).round() as usize].to_micros();
        Interval::new(at(0.1), at(0.5), at(0.95), Origin::Measured).ok()
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
