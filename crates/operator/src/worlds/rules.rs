//! What must hold, whatever breaks: checked after every look and with every pod that goes.

use super::Second;
use super::cluster::{Cluster, Pod};
use super::gateways::Gateway;
use super::mind::{MAX_AGE, Turn};
use super::plan::{Fault, Plan};
use crate::build::Write;
use flyball_core::decision::{Decision, ModelDecision};
use flyball_core::ids::ModelId;
use flyball_core::snapshot::{Demand, Mode};
use flyball_core::units::{Tokens, TokensPerSecond};
use std::fmt;

/// Looks within which a model that somebody waits for is woken.
const WAKES_WITHIN: u32 = 3;

/// What rules look at beside a turn.
pub(super) struct View<'a> {
    pub(super) cluster: &'a Cluster<'a>,
    pub(super) gateways: &'a [Gateway<'a>],
    /// Whether the pod of a gateway is there.
    pub(super) there: &'a dyn Fn(&str) -> bool,
    pub(super) now: Second,
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// Decisions break no invariant.
    Invariants,
    /// Nothing is written for a model in Recommend mode.
    OnlyActs,
    /// What a model in Recommend mode wants makes no difference to those in Act mode.
    Neighbours,
    /// Nothing shrinks while a gateway that is known says nothing.
    Silence,
    /// A model that somebody waits for at a gateway that is heard gets a first replica.
    Wakes,
    /// A model with a long queue and room to grow grows, whatever its pods suffer from.
    Growth,
    /// A model that nobody asks for anything does not grow.
    Names,
    /// What Flyball adds fits beside what others hold.
    Gpus,
    /// No stream is cut because Flyball made a workload smaller.
    Streams,
}

/// A rule that was broken.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) rule: Rule,
    at: Second,
    what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {} s: {}", self.rule, self.at, self.what)
    }
}

/// What was broken, and what is remembered to tell.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) broken: Vec<Broken>,
    /// By model: looks for which somebody has waited for a first replica in vain.
    asleep: Vec<u32>,
    /// By model: since when too little was there, with as many replicas as then.
    short: Vec<Option<(Second, u32)>>,
    /// By pool: accelerators that the last look wanted reserved.
    reserved: Vec<u32>,
    /// By model: the most pods that failed at a time.
    failing: Vec<u32>,
}

impl Rules {
    pub(super) fn new(plan: &Plan) -> Self {
        let models = plan.models.len();
        Self {
            broken: Vec::new(),
            asleep: vec![0; models],
            short: vec![None; models],
            reserved: Vec::new(),
            failing: vec![0; models],
        }
    }

    /// Another operator leads, and begins to count anew.
    pub(super) fn forget(&mut self) {
        self.asleep.fill(0);
        self.short.fill(None);
        self.reserved.clear();
    }

    pub(super) fn cut(&mut self, cut: String, now: Second) {
        self.note(now, Rule::Streams, cut);
    }

    /// Before the writes of a look are made. Whether a gateway was silent.
    pub(super) fn check(&mut self, view: &View<'_>, turn: &Turn) -> bool {
        for violation in &turn.broken {
            self.note(view.now, Rule::Invariants, violation.to_string());
        }
        self.only_those_that_act(view, turn);
        self.recommend_moves_nobody(view, turn);
        self.sleepers_wake(view);
        self.growth_is_not_blocked(view, turn);
        self.gpus_are_there(view, turn);
        self.silence_takes_nothing(view, turn)
    }

    /// After its writes were made.
    pub(super) fn wrote(&mut self, view: &View<'_>) {
        for (n, plan) in view.cluster.plan.models.iter().enumerate() {
            let replicas = view.cluster.replicas[n];
            let failing = view.cluster.pods_of(n).filter(|pod| view.fails(pod)).count() as u32;
            self.failing[n] = self.failing[n].max(failing);
            // What does not serve is made up for, and what makes up for it stays where nobody knows that
            // less would do.
            let needed = plan.initial.max(plan.min) + self.failing[n];
            if !plan.is_requested() && replicas > needed {
                let what = format!("model {n} has {replicas} replicas, and nobody asks for it");
                self.note(view.now, Rule::Names, what);
            }
        }
    }

    fn note(&mut self, at: Second, rule: Rule, what: String) {
        // The first of each kind tells most.
        if !self.broken.iter().any(|broken| broken.rule == rule) {
            self.broken.push(Broken { rule, at, what });
        }
    }

    fn only_those_that_act(&mut self, view: &View<'_>, turn: &Turn) {
        let models = &turn.seen.snapshot.models;
        if let Some((id, _)) = turn.writes.iter().find(|(id, _)| models[id].mode != Mode::Act) {
            self.note(view.now, Rule::OnlyActs, format!("{id} was written to"));
        }
    }

    fn recommend_moves_nobody(&mut self, view: &View<'_>, turn: &Turn) {
        let models = &turn.seen.snapshot.models;
        if models.values().all(|model| model.mode == Mode::Act) {
            return;
        }
        let mut seen = turn.seen.clone();
        for model in seen.snapshot.models.values_mut() {
            if model.mode == Mode::Recommend {
                model.demand = none_of(&model.demand);
            }
        }
        let without = turn.before.clone().decide(&seen).decision;
        let acting = |decision: &Decision| -> Vec<ModelDecision> {
            let acts = |one: &&ModelDecision| models[&one.model].mode == Mode::Act;
            decision.models.iter().filter(acts).cloned().collect()
        };
        for (with, without) in acting(&turn.decision).iter().zip(acting(&without)) {
            if with.targets != without.targets {
                let (id, with, without) = (&with.model, &with.targets, &without.targets);
                let what = format!("{id} gets {with:?} and not {without:?}");
                self.note(view.now, Rule::Neighbours, what);
            }
        }
    }

    fn silence_takes_nothing(&mut self, view: &View<'_>, turn: &Turn) -> bool {
        let silent = |gateway: &&Gateway<'_>| {
            let old = gateway.last_seen.is_some_and(|seen| view.now > seen + MAX_AGE);
            old && (view.there)(&gateway.plan.name)
        };
        let silent: Vec<&Gateway<'_>> = view.gateways.iter().filter(silent).collect();
        for gateway in &silent {
            for model in &gateway.plan.models {
                let plan = view.cluster.model(*model);
                let mut writes = turn.writes.iter().filter(|(id, _)| is_of(id, plan));
                // Those that drained before may go.
                let drained = view.cluster.pods_of(*model).filter(|pod| pod.draining.is_some());
                let drained = drained.count() as u32;
                let shrinks = |write: &Write| match write {
                    Write::Mark { .. } => true,
                    Write::Scale { from, to, .. } => to + drained < *from,
                    _ => false,
                };
                if writes.any(|(_, writes)| writes.iter().any(shrinks)) {
                    let name = &gateway.plan.name;
                    let what = format!("model {model} shrinks while {name} is silent");
                    self.note(view.now, Rule::Silence, what);
                }
            }
        }
        !silent.is_empty()
    }

    fn sleepers_wake(&mut self, view: &View<'_>) {
        for model in 0..self.asleep.len() {
            let asleep = view.cluster.replicas[model] == 0 && view.cluster.model(model).acts;
            let in_vain =
                asleep && view.can_write() && view.waiting(model) > 0 && view.has_room(model);
            self.asleep[model] = if in_vain { self.asleep[model] + 1 } else { 0 };
            if self.asleep[model] == WAKES_WITHIN {
                let what = format!("model {model} sleeps while requests wait");
                self.note(view.now, Rule::Wakes, what);
            }
        }
    }

    fn growth_is_not_blocked(&mut self, view: &View<'_>, turn: &Turn) {
        for model in 0..self.short.len() {
            let plan = view.cluster.model(model);
            let replicas = view.cluster.replicas[model];
            let known = plan.stated.is_some_and(|off| (0.7..=1.3).contains(&off));
            let queue = view.waiting(model) > plan.slots as usize;
            let may = plan.acts && known && replicas < plan.max && replicas > 0;
            let alone = !others_want(view, turn, model);
            let short = may && queue && alone && view.has_room(model) && view.can_write();
            self.short[model] = match self.short[model] {
                Some((since, count)) if short && replicas <= count => Some((since, count)),
                _ => short.then_some((view.now, replicas)),
            };
            // Twice the longest start that is usual, as long as a start may take, and then some looks.
            let patience = 4 * (plan.start + 1) + 30 + 90;
            if let Some((since, _)) = self.short[model]
                && view.now > since + patience
            {
                let what =
                    format!("model {model} has {replicas} replicas and a queue since {since} s");
                self.note(view.now, Rule::Growth, what);
            }
        }
    }

    fn gpus_are_there(&mut self, view: &View<'_>, turn: &Turn) {
        let plan = view.cluster.plan;
        let mut reserved = vec![0; plan.pools];
        for (n, model) in plan.models.iter().enumerate() {
            let decided = turn.decision.models.iter().find(|one| is_of(&one.model, model));
            let targets = decided.into_iter().flat_map(|one| &one.targets);
            let target: u32 = targets.map(|target| target.replicas.get()).sum();
            let replicas = if model.acts { target } else { view.cluster.replicas[n] };
            reserved[model.pool] += replicas * model.gpus;
        }
        let before = std::mem::replace(&mut self.reserved, reserved.clone());
        for (pool, (after, before)) in reserved.iter().zip(&before).enumerate() {
            let (all, others) = view.cluster.gpus(pool, view.now);
            if after > before && after + others > all {
                let what =
                    format!("pool {pool}: from {before} to {after} of {all}, others hold {others}");
                self.note(view.now, Rule::Gpus, what);
            }
        }
    }
}

impl View<'_> {
    /// Whether a pod does not serve, and will not soon.
    fn fails(&self, pod: &Pod) -> bool {
        let lost = pod.node.is_some_and(|node| self.cluster.nodes[node].lost.is_some());
        lost || pod.sick.is_some() || !pod.ready
    }

    /// Requests that wait at gateways that are heard.
    fn waiting(&self, model: usize) -> usize {
        let reporting = self.gateways.iter().filter(|one| one.last_seen == Some(self.now));
        reporting.filter_map(|one| one.models.get(&model)).map(|served| served.waiting.len()).sum()
    }

    /// Whether the API server takes writes.
    fn can_write(&self) -> bool {
        !self.cluster.plan.faults.iter().any(|fault| {
            matches!(fault, Fault::NoWrites { from, until } if (*from..*until).contains(&self.now))
        })
    }

    /// Whether a node could take another replica, and nobody waits for one.
    fn has_room(&self, model: usize) -> bool {
        let plan = self.cluster.model(model);
        let pending = self.cluster.pods.iter().any(|pod| pod.node.is_none());
        !pending
            && self.cluster.free(plan.pool, self.now) >= plan.gpus
            && self.cluster.fits(plan.pool, plan.gpus, self.now)
    }
}

fn is_of(id: &ModelId, plan: &super::plan::ModelPlan) -> bool {
    id.namespace().as_str() == plan.namespace && id.name() == plan.name
}

/// Whether another model wants more of the same pool than it has.
fn others_want(view: &View<'_>, turn: &Turn, model: usize) -> bool {
    let (models, pool) = (&view.cluster.plan.models, view.cluster.model(model).pool);
    let mut others = models.iter().enumerate().filter(|(n, one)| *n != model && one.pool == pool);
    others.any(|(n, one)| {
        let decided = turn.decision.models.iter().find(|decided| is_of(&decided.model, one));
        let targets = decided.into_iter().flat_map(|decided| &decided.targets);
        targets.map(|target| target.unconstrained.get()).sum::<u32>() > view.cluster.replicas[n]
    })
}

/// The same signals, of nothing.
fn none_of(demand: &Demand) -> Demand {
    Demand {
        prefill: demand.prefill.map(|_| TokensPerSecond::ZERO),
        decode: demand.decode.map(|_| TokensPerSecond::ZERO),
        resident: demand.resident.map(|_| Tokens::ZERO),
        burst: demand.burst.map(|_| TokensPerSecond::ZERO),
        backlog: demand.backlog.map(|_| Tokens::ZERO),
        sources: demand.sources,
    }
}
