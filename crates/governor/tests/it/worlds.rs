//! Random snapshots, and a small world that carries decisions out.

use flyball_core::decision::{Action, Decision, Previous};
use flyball_core::ids::ReplicaId;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::{
    Capacity, Demand, Freshness, Misses, Observed, Replica, ReplicaState, Snapshot, Sources,
};
use flyball_core::testing::{
    ModelBuilder, VariantBuilder, at, model, pool, seen, seen_long_ago, snapshot, variant,
};
use flyball_core::units::{Gpus, Micros, Requests, Timestamp, Tokens, TokensPerSecond};
use flyball_governor::{Memory, Policy, decide};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// One model as random numbers.
#[derive(Clone, Debug)]
pub(crate) struct RandomModel {
    replicas: [(usize, usize, usize, usize); 2],
    failing: [(usize, usize, usize, usize); 2],
    gpus: [u32; 2],
    bounds: (u32, u32),
    pinned: Option<u32>,
    frozen: bool,
    may_sleep: bool,
    known: [bool; 2],
    freshness: usize,
    demand: (u64, u64, u64, u64),
    recommend: bool,
    silent: u32,
    /// Which namespace it is in.
    theirs: bool,
}

pub(crate) fn random_model() -> impl Strategy<Value = RandomModel> {
    let replicas = || (0_usize..5, 0_usize..3, 0_usize..3, 0_usize..3);
    let failing = || (0_usize..2, 0_usize..2, 0_usize..3, 0_usize..2);
    let counts = ([replicas(), replicas()], [failing(), failing()]);
    let numbers = (counts, [1_u32..5, 1..5], (0_u32..5, 0_u32..20));
    let orders = (prop::option::weighted(0.2, 0_u32..8), prop::bool::weighted(0.15), any::<bool>());
    let known = [prop::bool::weighted(0.9), prop::bool::weighted(0.9)];
    let tokens = || prop_oneof![Just(0_u64), 0_u64..200_000];
    let demand = (tokens(), tokens(), tokens(), tokens());
    let others = (any::<(bool, bool)>(), prop_oneof![3 => Just(0_u32), 1 => 1_u32..3]);
    (numbers, orders, known, 0_usize..5, demand, others).prop_map(
        |(
            ((replicas, failing), gpus, (min, more)),
            (pinned, frozen, may_sleep),
            known,
            freshness,
            demand,
            ((recommend, theirs), silent),
        )| {
            let bounds = (min, min + more);
            RandomModel {
                replicas,
                failing,
                gpus,
                bounds,
                pinned,
                frozen,
                may_sleep,
                known,
                freshness,
                demand,
                recommend,
                silent,
                theirs,
            }
        },
    )
}

impl RandomModel {
    fn build(&self, n: usize) -> ModelBuilder {
        let namespace = if self.theirs { "b" } else { "a" };
        let mut served = model(&format!("{namespace}/m{n}")).between(self.bounds.0, self.bounds.1);
        for (v, pool) in ["shared", "cloud"].into_iter().enumerate() {
            let (ready, starting, pending, draining) = self.replicas[v];
            let kind = variant(&format!("v{v}"), pool).gpus_per_replica(self.gpus[v]);
            let kind = if self.known[v] { kind } else { kind.capacity(Capacity::UNKNOWN) };
            let kind = kind.ready(ready).starting(starting).pending(pending).draining(draining);
            let (unready, failed, lost, leaving) = self.failing[v];
            let kind = kind
                .replicas(unready, ReplicaState::Unready, Observed::Missing)
                .replicas(failed, ReplicaState::Failed, Observed::Missing)
                .replicas(lost, ReplicaState::Lost, Observed::Missing)
                .replicas(leaving, ReplicaState::Leaving, seen(Requests::new(1)));
            served = served.variant(kind);
        }
        served = self.pinned.map_or(served.clone(), |replicas| served.pinned(replicas));
        served = if self.frozen { served.frozen() } else { served };
        served = if self.may_sleep { served.may_sleep() } else { served };
        served = if self.recommend { served.recommend() } else { served };
        let (prefill, decode, resident, backlog) = self.demand;
        let backlog = match Freshness::ALL.get(self.freshness) {
            Some(Freshness::Stale) => seen_long_ago(Tokens::new(backlog)),
            Some(Freshness::Missing) => Observed::Missing,
            _ => seen(Tokens::new(backlog)),
        };
        let resident = seen(Tokens::new(resident));
        let decode = if self.freshness == 4 {
            Observed::Missing
        } else {
            seen(TokensPerSecond::new(decode / 10))
        };
        let prefill = seen(TokensPerSecond::new(prefill));
        let sources = Sources { reporting: 1, silent: self.silent };
        let burst = Observed::Missing;
        served.demand(Demand { prefill, decode, resident, burst, backlog, sources })
    }
}

/// Two pools, two training runs and so many models.
pub(crate) fn random_world() -> impl Strategy<Value = Snapshot> {
    let models = prop::collection::vec(random_model(), 0..5);
    let gpus = prop::option::weighted(0.9, 0_u32..60);
    let others = prop_oneof![Just(0_u32), 0_u32..20];
    let share = || prop::option::of((0_u32..20, -1_i32..2));
    let shares = (share(), share());
    let run = (0_u32..8, (0_u32..8, any::<bool>(), prop::bool::weighted(0.8)));
    (models, gpus, prop::option::of(0_u32..60), run, 0_u32..3, others, shares).prop_map(
        |(models, gpus, limit, (run, (whole, holds, acts)), price, others, (a, b))| {
            let mut shared = pool("shared").held_by_others(others);
            for (namespace, share) in [("a", a), ("b", b)] {
                if let Some((guaranteed, priority)) = share {
                    shared = shared.share(namespace, guaranteed, priority);
                }
            }
            let shared = gpus.map_or(shared.clone().unknown(), |gpus| shared.gpus(gpus));
            let shared = limit.map_or(shared.clone(), |limit| shared.limit(limit));
            let shared = if price > 0 { shared.price_usd_cents(100 * price) } else { shared };
            let cloud = pool("cloud").can_grow().price_usd_cents(250);
            let mut world = snapshot().pool(shared).pool(cloud).run("ml/ft", "shared", run);
            for (n, random) in models.iter().enumerate() {
                world = world.model(random.build(n));
            }
            let mut world = world.run("ml/whole", "shared", whole).build();
            // One that has all that it needs or nothing.
            if let Some(run) = world.runs.values_mut().last() {
                run.least = run.most;
                run.acts = acts;
                run.gpus = if holds { run.most } else { Gpus::ZERO };
            }
            world
        },
    )
}

/// One model on one variant, whose decisions are carried out as they are made.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) now_s: u64,
    pub(crate) cold_start_s: u64,
    pub(crate) policy: Policy,
    pub(crate) previous: Previous,
    pub(crate) memory: Memory,
    pub(crate) replicas: Vec<(ReplicaId, Replica)>,
    pub(crate) misses: Misses,
    waiting: f64,
    named: u32,
    /// When replicas were asked for and taken away.
    pub(crate) starts: Vec<u64>,
    pub(crate) removals: Vec<u64>,
}

/// Seconds between two decisions.
pub(crate) const TICK_S: u64 = 15;
/// Prompt tokens per second that one replica reads.
pub(crate) const READS: f64 = 10_000.0;

impl Loop {
    pub(crate) fn new(cold_start_s: u64, ready: u32, policy: Policy) -> Self {
        let mut new = Self {
            now_s: 1_000_000,
            cold_start_s,
            policy,
            previous: Previous::none(),
            memory: Memory::new(),
            replicas: Vec::new(),
            misses: Misses::default(),
            waiting: 0.0,
            named: 0,
            starts: Vec::new(),
            removals: Vec::new(),
        };
        for _ in 0..ready {
            new.add(ReplicaState::Ready);
        }
        new
    }

    fn add(&mut self, state: ReplicaState) {
        let id = ReplicaId::new("a", &format!("m-x-{:05}", self.named))
            .expect("a test world is well formed");
        self.named += 1;
        let in_flight = seen(Requests::new(u64::from(state == ReplicaState::Ready)));
        let since = at(self.now_s);
        let nodes = BTreeSet::new();
        self.replicas.push((id, Replica { state, since, in_flight, nodes, purchase: None }));
    }

    pub(crate) fn ready(&self) -> usize {
        self.replicas.iter().filter(|(_, r)| r.state == ReplicaState::Ready).count()
    }

    pub(crate) fn target(&self) -> u32 {
        self.previous.targets.values().map(|last| last.replicas.get()).sum()
    }

    /// The world as it is seen, with so much work, in replicas.
    pub(crate) fn snapshot(&self, work: f64) -> Snapshot {
        let stated = Micros::from_seconds(self.cold_start_s);
        let kind: VariantBuilder = variant("x", "h100");
        let mut served = model("a/m").between(1, 200).variant(kind).build();
        served.demand.prefill = self
            .see(TokensPerSecond::from_sample(work * READS).expect("a test world is well formed"));
        served.demand.decode = self.see(TokensPerSecond::ZERO);
        served.demand.resident = self.see(Tokens::ZERO);
        served.demand.backlog =
            self.see(Tokens::from_sample(self.waiting).expect("a test world is well formed"));
        served.misses = self.see(self.misses);
        let kind = served.variants.values_mut().next().expect("a test world is well formed");
        kind.cold_start = Interval::exact(stated, Origin::Stated).ok();
        kind.replicas = self.replicas.iter().cloned().collect();
        let mut world = snapshot().pool(pool("h100").can_grow().price_usd_cents(200)).build();
        world.taken_at = at(self.now_s);
        world.models.insert("a/m".parse().expect("a test world is well formed"), served);
        world
    }

    fn see<T>(&self, value: T) -> Observed<T> {
        Observed::Fresh { value, at: at(self.now_s) }
    }

    /// Decides once, carries it out and lets one tick pass.
    pub(crate) fn tick(&mut self, work: f64) -> Decision {
        let decision = self.decide(&self.snapshot(work));
        self.pass(work);
        decision
    }

    /// Decides on what is seen, and carries it out.
    pub(crate) fn decide(&mut self, world: &Snapshot) -> Decision {
        let memory = std::mem::take(&mut self.memory);
        let (decision, memory) = decide(world, &self.policy, &self.previous, memory);
        self.previous = self.previous.after(&decision);
        self.memory = memory;
        self.carry_out(&decision);
        decision
    }

    fn carry_out(&mut self, decision: &Decision) {
        for action in &decision.models[0].targets[0].actions {
            match action {
                Action::Start { count, .. } => {
                    self.starts.push(self.now_s);
                    for _ in 0..count.get() {
                        self.add(ReplicaState::Pending);
                    }
                }
                Action::Drain { replica } => {
                    let found = self.replicas.iter_mut().find(|(id, _)| id == replica);
                    let (_, found) = found.expect("a replica that is there");
                    assert_eq!(found.state, ReplicaState::Ready);
                    found.state = ReplicaState::Draining;
                    found.in_flight = Observed::Fresh { value: Requests::ZERO, at: at(self.now_s) };
                    self.removals.push(self.now_s);
                }
                Action::Replace { .. } => unreachable!("every replica of this world comes up"),
                Action::Delete { replica } => {
                    let found = self.replicas.iter().position(|(id, _)| id == replica);
                    let (_, gone) = self.replicas.remove(found.expect("a replica that is there"));
                    assert_ne!(gone.state, ReplicaState::Ready);
                    if gone.state != ReplicaState::Draining {
                        self.removals.push(self.now_s);
                    }
                }
            }
        }
    }

    /// Lets one tick pass.
    pub(crate) fn pass(&mut self, work: f64) {
        let seconds = TICK_S as f64;
        let can = self.ready() as f64 * READS;
        let arrived = work * READS * seconds;
        self.waiting = (self.waiting + arrived - can * seconds).max(0.0);
        // A request is a thousand tokens; one that waits more than half a second misses.
        let requests = (arrived / 1_000.0) as u64;
        self.misses.requests = self.misses.requests.saturating_add(Requests::new(requests));
        if self.waiting > 0.5 * can {
            self.misses.missed = self.misses.missed.saturating_add(Requests::new(requests));
        }
        self.now_s += TICK_S;
        let now: Timestamp = at(self.now_s);
        for (_, replica) in &mut self.replicas {
            let starts = matches!(replica.state, ReplicaState::Pending | ReplicaState::Starting);
            let age = now.since(replica.since).unwrap_or_default();
            if starts && age >= Micros::from_seconds(self.cold_start_s) {
                (replica.state, replica.since) = (ReplicaState::Ready, now);
                replica.in_flight = Observed::Fresh { value: Requests::new(1), at: now };
            }
        }
    }
}
