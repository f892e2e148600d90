//! Plays a plan, second by second.

use super::cluster::{Cluster, Pod};
use super::dice::Dice;
use super::gateways::{self, Gateway};
use super::mind::{Mind, Series, Turn};
use super::plan::{Fault, Plan, Sickness};
use super::rules::{Broken, Rules, View};
use super::{Second, clock, moment, objects};
use crate::build::Write;
use flyball_core::ids::ModelId;
use flyball_core::units::Timestamp;
use flyball_estimator::reading::{CacheUsed, EngineCounts, EngineReading};
use flyball_resources::stream::Orders;
use flyball_resources::{ModelService, Pool};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Engines are scraped so often, and what they said last is known for so long.
const SCRAPED: Second = 15;
const REMEMBERED: Second = 300;

/// What happened in a world.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    pub(super) ticks: u64,
    pub(super) drains: u64,
    pub(super) replaced: u64,
    pub(super) revived: u64,
    pub(super) ups: u64,
    pub(super) downs: u64,
    pub(super) woken: u64,
    pub(super) answered: u64,
    /// Looks while a gateway that the operator knows said nothing.
    pub(super) silent: u64,
    /// Seconds of pods that were sick.
    pub(super) sick: u64,
}

impl Stats {
    pub(super) const fn with(self, other: &Self) -> Self {
        Self {
            ticks: self.ticks + other.ticks,
            drains: self.drains + other.drains,
            replaced: self.replaced + other.replaced,
            revived: self.revived + other.revived,
            ups: self.ups + other.ups,
            downs: self.downs + other.downs,
            woken: self.woken + other.woken,
            answered: self.answered + other.answered,
            silent: self.silent + other.silent,
            sick: self.sick + other.sick,
        }
    }
}

/// Plays a world to its end. What broke comes with what happened.
pub(super) fn play(plan: &Plan) -> (Stats, Vec<Broken>) {
    let mut world = World::new(plan);
    for now in 1..=plan.length {
        world.second(now);
    }
    (world.stats, world.rules.broken)
}

struct World<'a> {
    plan: &'a Plan,
    cluster: Cluster<'a>,
    gateways: Vec<Gateway<'a>>,
    mind: Mind,
    services: Vec<Arc<ModelService>>,
    pools: Vec<Arc<Pool>>,
    series: BTreeMap<(String, String), EngineReading>,
    orders: Option<Orders>,
    arrivals: Dice,
    chance: Dice,
    waited_for: usize,
    rules: Rules,
    stats: Stats,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            cluster: Cluster::new(plan),
            gateways: Gateway::all(plan),
            mind: Mind::new(),
            services: objects::services(plan),
            pools: objects::pools(plan),
            series: BTreeMap::new(),
            orders: None,
            arrivals: Dice::new(plan.seed, 1),
            chance: Dice::new(plan.seed, 2),
            waited_for: 0,
            rules: Rules::new(plan),
            stats: Stats::default(),
        }
    }

    fn second(&mut self, now: Second) {
        for fault in &self.plan.faults {
            self.suffer(fault, now);
        }
        self.cluster.step(now);
        for cut in std::mem::take(&mut self.cluster.cuts) {
            self.rules.cut(cut, now);
        }
        for (model, stream) in std::mem::take(&mut self.cluster.ended) {
            self.stats.answered += 1;
            if let Some(gateway) = stream.gateway {
                self.gateways[gateway].ended(model, &stream);
            }
        }
        gateways::arrive(&mut self.gateways, &mut self.cluster, &mut self.arrivals, now);
        for me in 0..self.gateways.len() {
            if self.gateways[me].dead.is_none() {
                self.gateways[me].step(me, &mut self.cluster, now);
            }
        }
        self.scrape(now);
        self.talk(now);
        let sick = self.cluster.pods.iter().filter(|pod| pod.sick.is_some());
        self.stats.sick += sick.count() as u64;
        // Whoever waits for a first replica does not wait for a tick besides.
        let waited_for = self.mind.book.waited_for(clock(now)).len();
        if now.is_multiple_of(self.plan.tick_every) || waited_for > self.waited_for {
            self.tick(now);
        }
        self.waited_for = waited_for;
    }

    fn suffer(&mut self, fault: &Fault, now: Second) {
        match fault {
            Fault::SilentGateway { gateway, from, until } => {
                let gateway = &mut self.gateways[*gateway];
                if now == *from {
                    (gateway.silent, gateway.talk) = (Some(now), None);
                } else if now == *until {
                    gateway.silent = None;
                }
            }
            Fault::DeadGateway { gateway, at, .. } => {
                if now == *at {
                    let dead = &mut self.gateways[*gateway];
                    (dead.dead, dead.talk) = (Some(now), None);
                    for pod in &mut self.cluster.pods {
                        pod.streams.retain(|stream| stream.gateway != Some(*gateway));
                    }
                    dead.models.values_mut().for_each(|served| served.waiting.clear());
                }
            }
            Fault::LostNode { node, at, back } => {
                if now == *at {
                    self.cluster.nodes[*node].lost = Some(now);
                } else if *back == Some(now) {
                    self.cluster.nodes[*node].lost = None;
                }
            }
            Fault::Sick { model, from, until, kind } => {
                self.sicken(*model, *kind, (*from, *until), now)
            }
            Fault::Failover { at, within } => {
                if now == *at {
                    self.fail_over(*within, now);
                }
            }
            Fault::NoSeries { .. } | Fault::NoWrites { .. } => {}
        }
    }

    fn sicken(
        &mut self,
        model: usize,
        kind: Sickness,
        (from, until): (Second, Second),
        now: Second,
    ) {
        let ours = |pod: &&mut Pod| pod.model == Some(model);
        if now == from {
            self.cluster.sickness.insert(model, kind);
            let mut serving = self.cluster.pods.iter_mut().filter(ours).filter(|pod| pod.ready);
            if let Some(pod) = serving.next().filter(|_| kind == Sickness::Lapses) {
                pod.sick = Some(kind);
            }
        } else if now == until {
            self.cluster.sickness.remove(&model);
            // What lapsed recovers; what never worked does not.
            let lapsed = |pod: &&mut Pod| pod.sick == Some(Sickness::Lapses);
            self.cluster
                .pods
                .iter_mut()
                .filter(ours)
                .filter(lapsed)
                .for_each(|pod| pod.sick = None);
        }
    }

    /// Another operator leads. It knows what stands in objects, and gateways come to it one by one.
    fn fail_over(&mut self, within: Second, now: Second) {
        self.mind = Mind::new();
        self.orders = None;
        self.rules.forget();
        for gateway in &mut self.gateways {
            (gateway.talk, gateway.last_seen) = (None, None);
            gateway.returns = now + self.chance.whole(0, within);
        }
    }

    fn scrape(&mut self, now: Second) {
        if !now.is_multiple_of(SCRAPED) {
            return;
        }
        let old = moment(now.saturating_sub(REMEMBERED));
        self.series.retain(|_, engine| engine.at().is_some_and(|at| at > old));
        for pod in &self.cluster.pods {
            let Some(model) = pod.model.filter(|_| self.cluster.runs(pod)) else { continue };
            let plan = &self.plan.models[model];
            let running = pod.streams.len() as f64;
            let (prompt, output) = (f64::from(plan.prompt), f64::from(plan.output));
            let place = (plan.namespace.clone(), pod.name.clone());
            let before = self.series.remove(&place);
            let counted = before.as_ref().and_then(|engine| engine.counts.last());
            let counted = counted.map_or(0.0, |(_, counts)| counts.answered);
            // So many requests have ended since the last scrape as would if as many had run all the time.
            let answered = counted + running * SCRAPED as f64 / plan.seconds() as f64;
            let counts = EngineCounts {
                prompt_tokens: answered * prompt,
                output_tokens: answered * output,
                answered,
                ..EngineCounts::UNKNOWN
            };
            let mut engine = before.unwrap_or_else(|| EngineReading::counted(moment(now), counts));
            engine.counts.add(moment(now), Timestamp::default(), counts);
            let cache_used = CacheUsed::Share(running / f64::from(plan.slots));
            let (running, waiting) = (Some(running), Some(0.0));
            self.series.insert(place, EngineReading { running, waiting, cache_used, ..engine });
        }
    }

    /// Gateways that can, talk to the operator.
    fn talk(&mut self, now: Second) {
        for (me, gateway) in self.gateways.iter_mut().enumerate() {
            if gateway.dead.is_some() || gateway.silent.is_some() || now < gateway.returns {
                continue;
            }
            if gateway.talk.is_none() {
                gateway.talk = self.mind.book.open(&gateway.hello(), clock(now)).ok();
            }
            let Some(talk) = gateway.talk else { continue };
            if let Some(orders) = &self.orders {
                gateway.receive(orders);
            }
            let message = gateway.message(me, &self.cluster);
            if self.mind.book.receive(&gateway.plan.name, talk, message, clock(now)).is_ok() {
                gateway.last_seen = Some(now);
            }
        }
        if now.is_multiple_of(60) {
            self.mind.book.sweep(clock(now));
        }
    }

    fn tick(&mut self, now: Second) {
        let pods = self.gateway_pods(now);
        let facts =
            objects::facts(&self.cluster, (self.services.clone(), self.pools.clone()), &pods, now);
        let turn = self.mind.turn(&facts, self.series(now), now);
        self.stats.ticks += 1;
        let gateways = &self.gateways;
        let there = |name: &str| pods.iter().any(|pod| pod.name == name);
        let view = View { cluster: &self.cluster, gateways, there: &there, now };
        self.stats.silent += u64::from(self.rules.check(&view, &turn));
        let made = self.carry_out(&turn, now);
        let view = View { cluster: &self.cluster, gateways: &self.gateways, there: &there, now };
        self.rules.wrote(&view);
        let mut orders = self.mind.orders(&facts, &turn, &made);
        orders.sequence = self.orders.as_ref().map_or(1, |orders| orders.sequence + 1);
        self.orders = Some(orders);
        for service in &mut self.services {
            let Ok(id) = service.id() else { continue };
            let status = self.mind.status(&id, &turn);
            Arc::make_mut(service).status = Some(status);
        }
    }

    fn series(&self, now: Second) -> Series {
        let away = self.plan.faults.iter().any(|fault| {
            matches!(fault, Fault::NoSeries { from, until } if (*from..*until).contains(&now))
        });
        match (self.plan.prometheus, away) {
            (false, _) => Series::NotRequested,
            (true, true) => Series::Away,
            (true, false) => Series::Answered(self.series.clone()),
        }
    }

    /// Makes the writes as the API server would, and says which were made.
    fn carry_out(&mut self, turn: &Turn, now: Second) -> Vec<(ModelId, Write)> {
        let away = self.plan.faults.iter().any(|fault| {
            matches!(fault, Fault::NoWrites { from, until } if (*from..*until).contains(&now))
        });
        let mut made = Vec::new();
        for (id, writes) in turn.writes.iter().filter(|_| !away) {
            for write in writes {
                if !self.write(id, write, now) {
                    break;
                }
                made.push((id.clone(), write.clone()));
            }
        }
        made
    }

    fn write(&mut self, id: &ModelId, write: &Write, now: Second) -> bool {
        let is_it = |namespace: &str, name: &str| {
            self.plan.models.iter().position(|one| one.namespace == namespace && one.name == name)
        };
        let namespace = id.namespace().as_str();
        let Some(model) = is_it(namespace, id.name()) else { return false };
        if let Write::Scale { workload, from, to } = write {
            let Some(model) = is_it(&workload.0, &workload.2) else { return false };
            let replicas = &mut self.cluster.replicas[model];
            if *replicas != *from {
                return false;
            }
            self.stats.ups += u64::from(to > from);
            self.stats.downs += u64::from(to < from);
            self.stats.woken += u64::from(*from == 0 && to > from);
            *replicas = *to;
            return true;
        }
        let (Write::Mark { pod, .. }
        | Write::Unmark { pod }
        | Write::Cost { pod, .. }
        | Write::Replace { pod, .. }) = write
        else {
            return false;
        };
        let ours = |one: &Pod| one.model == Some(model) && one.name == *pod;
        let Some(n) = self.cluster.pods.iter().position(ours) else { return false };
        if matches!(write, Write::Replace { .. }) {
            self.stats.replaced += 1;
            self.cluster.end(n, now);
            return true;
        }
        let pod = &mut self.cluster.pods[n];
        match write {
            Write::Mark { since, .. } => {
                self.stats.drains += 1;
                pod.draining = Some(*since);
            }
            Write::Unmark { .. } => {
                self.stats.revived += 1;
                (pod.draining, pod.cost) = (None, None);
            }
            Write::Cost { cost, .. } => pod.cost = Some(*cost),
            _ => {}
        }
        true
    }

    /// Pods of gateways whose objects are there.
    fn gateway_pods(&self, now: Second) -> Vec<objects::GatewayPod> {
        let stays = |n: usize| {
            self.plan.faults.iter().find_map(|fault| match fault {
                Fault::DeadGateway { gateway, at, stays } if *gateway == n => Some(at + stays),
                _ => None,
            })
        };
        let gateways = self.gateways.iter().enumerate();
        let there = gateways.filter(|(n, one)| one.dead.is_none() || stays(*n) > Some(now));
        there
            .map(|(n, one)| objects::GatewayPod {
                name: one.plan.name.clone(),
                node: format!("cpu-{n}"),
                lost: one.dead,
            })
            .collect()
    }
}
