//! A cluster in virtual time: nodes, replicas, requests, metrics, and what goes wrong with them.
//!
//! A [`Setup`] says what there is, what traffic comes and what breaks. [`run`] plays it event by
//! event, asks a policy as often as that wants to be asked, carries out its orders as Kubernetes
//! would, and gives back a [`ClusterRun`]: the score, every decision, and every rule that was broken.
//! Rules are checked after every event.
//!
//! It does not know how an engine computes (that is [`ReplicaEngine`]), nor how a policy decides,
//! and a policy sees of it only what `crate::policy::Sight` shows.
//!
//! Start at `setup.rs`, then here, where the state and the loop are. One file per subject, each with its part of `World`:
//! `nodes` (accelerators and where they come from), `replicas` (their lives), `requests` (from
//! arrival to answer), `gate` (which engine has room for another), `links` (the network between), `speed` (engines that
//! slow down), `metrics`, `histogram`, `engines`, `told` and `observe` (what is seen of it all), `orders` (what is done),
//! `checks` (what must hold), `account` (the score), `fuzz` (small random worlds by the thousand).

mod account;
mod checks;
mod engine;
mod engines;
mod faults;
mod fuzz;
mod gate;
mod histogram;
mod links;
mod metrics;
mod nodes;
mod observe;
mod orders;
mod queue;
mod replicas;
mod requests;
mod setup;
mod speed;
mod stages;
mod start;
mod stated;
#[cfg(test)]
mod tests;

pub use account::{ClusterRun, ReplicaCounts, ReplicaHistory};
pub use checks::BrokenInvariant;
pub use engine::{
    Changed, EngineLoad, EngineWork, Happening, LinearEngine, ReplicaEngine, Speed, StepSpeed,
};
pub use faults::{Fault, StatedCapacity};
pub use fuzz::{Failure, Stats, capacity_of, fuzz, random_world};
pub use observe::{LogEntry, snapshots};
pub use requests::AnsweredBy;
pub use setup::{Habits, MetricsSetup, ModelSetup, PoolSetup, Setup, VariantSetup, Victim};
pub use stages::{Spacing, StageTokens, Stages, TrafficStage};
pub use start::StartParts;
pub use stated::stated;

use crate::chance::{Chance, Purpose, stream};
use crate::policy::ScalingPolicy;
use crate::seconds::Seconds;
use account::Account;
use flyball_core::decision::Previous;
use flyball_estimator::Estimator;
use flyball_routing::{Endpoint, ObservedEndpoints};
use gate::EVERY;
use metrics::Pipeline;
use nodes::{Node, NodeOrder};
use queue::{Event, Queue};
use replicas::Replica;
use requests::{Held, Request};

/// How long requests that are inside at the end are waited for. A request of a thousand tokens at a
/// tenth of a second each takes under two minutes, and what is not served in ten more has missed.
const AFTERMATH: Seconds = Seconds(720.0);

/// Plays a world to its end under a policy.
pub fn run(setup: &Setup, policy: &mut dyn ScalingPolicy) -> ClusterRun {
    let mut world = World::new(setup);
    world.begin(policy.interval());
    let last = setup.length + AFTERMATH;
    while let Some((at, event)) = world.queue.next() {
        if at > last || (at > setup.length && world.nobody_inside()) {
            break;
        }
        world.step(at, event, policy);
    }
    world.finish()
}

/// A world while it is played.
struct World<'a> {
    setup: &'a Setup,
    now: Seconds,
    queue: Queue,
    events: u64,
    models: Vec<ModelState>,
    nodes: Vec<Node>,
    orders: Vec<NodeOrder>,
    /// Every replica there ever was.
    replicas: Vec<Replica>,
    /// Places of those that are there, in order of birth.
    present: Vec<usize>,
    /// Every request that arrived.
    requests: Vec<Request>,
    pipeline: Pipeline,
    estimator: Estimator,
    /// Since when the process runs that decides.
    decides_since: Seconds,
    /// How far the clock of whoever decides is wrong.
    clock_error: f64,
    /// Places of the faults that are under way.
    faults: Vec<usize>,
    /// Replicas that a fault slows, where it slows some.
    slow: Vec<(usize, usize)>,
    previous: Previous,
    victims: Chance,
    misfortune: Chance,
    log: Vec<LogEntry>,
    broken: Vec<BrokenInvariant>,
    /// Reused from request to request.
    endpoints: Vec<Endpoint>,
    endpoint_replicas: Vec<usize>,
}

/// One model of it.
struct ModelState {
    /// The place of the next request in its trace.
    next_arrival: usize,
    held: Held,
    /// What the router remembers of prompts.
    seen: ObservedEndpoints,
    /// Replicas that each variant should have.
    desired: Vec<u32>,
    account: Account,
    /// Requests that arrived, and what became of them: checked to add up.
    arrived: u64,
    in_engines: u64,
    ended: u64,
    /// Requests in engines whose clients are gone.
    leaving: u64,
    /// Requests whose client waits for the network.
    crossing: u64,
    /// Names given to replicas.
    named: u32,
}

/// Prefixes that the router remembers of a model: a thousand conversations.
const REMEMBERED: usize = 16_384;

impl ModelState {
    fn new(setup: &ModelSetup) -> Self {
        Self {
            next_arrival: 0,
            held: Held::default(),
            seen: ObservedEndpoints::new(REMEMBERED),
            desired: setup.variants.iter().map(|variant| variant.initial).collect(),
            account: Account::default(),
            arrived: 0,
            in_engines: 0,
            ended: 0,
            leaving: 0,
            crossing: 0,
            named: 0,
        }
    }
}

impl<'a> World<'a> {
    fn new(setup: &'a Setup) -> Self {
        Self {
            setup,
            now: Seconds::ZERO,
            queue: Queue::default(),
            events: 0,
            models: setup.models.iter().map(ModelState::new).collect(),
            nodes: Vec::new(),
            orders: Vec::new(),
            replicas: Vec::new(),
            present: Vec::new(),
            requests: Vec::new(),
            pipeline: Pipeline::new(setup.models.len(), setup.habits.uncached),
            estimator: Estimator::default(),
            decides_since: Seconds::ZERO,
            clock_error: 0.0,
            faults: Vec::new(),
            slow: Vec::new(),
            previous: Previous::none(),
            victims: stream(setup.seed, Purpose::Victims, 0),
            misfortune: stream(setup.seed, Purpose::Faults, 0),
            log: Vec::new(),
            broken: Vec::new(),
            endpoints: Vec::new(),
            endpoint_replicas: Vec::new(),
        }
    }

    /// Puts up what is there at first and plans what will come.
    fn begin(&mut self, interval: Seconds) {
        let setup = self.setup;
        for (pool, have) in setup.pools.iter().enumerate() {
            for (purchase, count) in &have.nodes {
                (0..*count).for_each(|_| self.add_node(pool, *purchase, false));
            }
            for (at, _) in &have.stock {
                self.queue.plan(*at, Event::StockChanges { pool });
            }
        }
        for (model, served) in setup.models.iter().enumerate() {
            for (variant, details) in served.variants.iter().enumerate() {
                (0..details.initial).for_each(|_| self.begin_ready(model, variant));
            }
            self.plan_arrival(model);
        }
        for (fault, details) in setup.faults.iter().enumerate() {
            let during = details.during();
            self.queue.plan(during.start, Event::FaultBegins { fault });
            self.queue.plan(during.end, Event::FaultEnds { fault });
        }
        self.queue.plan(setup.habits.first_scrape, Event::Scrape);
        // Who is asked once an hour does not wait an hour for the first time.
        self.queue.plan(interval.min(setup.habits.first_tick), Event::Tick);
        if setup.habits.report_every.is_some() {
            self.queue.plan(Seconds::ZERO, Event::Report);
        }
        if setup.habits.keeps_back {
            self.queue.plan(Seconds::ZERO, Event::Load);
        }
        (0..self.models.len()).for_each(|model| self.note_standing(model));
    }

    fn step(&mut self, at: Seconds, event: Event, policy: &mut dyn ScalingPolicy) {
        self.events += 1;
        self.check_time(at);
        self.now = self.now.max(at);
        match event {
            Event::NodeComes { order } => self.node_comes(order),
            Event::NodeIdles { node, since_use } => self.node_idles(node, since_use),
            Event::NodeGoes { node } => self.node_goes(node),
            Event::FaultBegins { fault } => self.fault_begins(fault, policy),
            Event::FaultEnds { fault } => self.fault_ends(fault),
            Event::StockChanges { pool } => self.order_nodes(pool),
            Event::Ready { replica } => self.replica_ready(replica),
            Event::StopBegins { replica } => self.end_if_empty(replica),
            Event::GraceOver { replica } => self.grace_over(replica),
            Event::Engine { replica, plan } => self.engine_event(replica, plan),
            Event::Arrival { model } => self.arrival(model),
            Event::HangUp { request } => self.hang_up(request),
            Event::HoldOver { request } => self.hold_over(request),
            Event::Crossed { request } => self.crossed(request),
            Event::LinkBreaks { request } => self.leave(request, AnsweredBy::Killed),
            Event::Scrape => {
                self.scrape();
                self.again(self.setup.metrics.every, Event::Scrape);
            }
            Event::Load => {
                self.read_engine_loads();
                self.again(EVERY, Event::Load);
            }
            Event::Report => {
                self.report();
                self.again(self.setup.habits.report_every.unwrap_or(EVERY), Event::Report);
            }
            Event::Tick => {
                self.tick(policy);
                self.again(policy.interval(), Event::Tick);
            }
        }
        self.check_world();
    }

    fn again(&mut self, after: Seconds, event: Event) {
        let at = self.now + after.max(Seconds(0.01));
        if at <= self.setup.length {
            self.queue.plan(at, event);
        }
    }

    fn fault_begins(&mut self, fault: usize, policy: &mut dyn ScalingPolicy) {
        self.faults.push(fault);
        match &self.setup.faults[fault] {
            Fault::Reclaim { pool, nodes, notice, .. } => self.reclaim(*pool, *nodes, *notice),
            Fault::NodeLoss { pool, nodes, .. } => self.lose_nodes(*pool, *nodes),
            Fault::ClockJump { by, .. } => self.clock_error += by,
            Fault::EngineSlows { .. } => {
                self.choose_slow(fault);
                self.change_speeds();
            }
            Fault::OperatorRestart { .. } => {
                policy.restart(&mut self.estimator);
                self.decides_since = self.now;
            }
            Fault::StockOut { .. }
            | Fault::StatedCapacity { .. }
            | Fault::NoGateway { .. }
            | Fault::BadStarts { .. }
            | Fault::StaleMetrics { .. }
            | Fault::MissingMetrics { .. }
            | Fault::NotANumber { .. }
            | Fault::Network { .. } => {}
        }
    }

    fn fault_ends(&mut self, fault: usize) {
        self.faults.retain(|under_way| *under_way != fault);
        match self.setup.faults[fault] {
            Fault::StockOut { pool, .. } => self.order_nodes(pool),
            Fault::EngineSlows { .. } => self.change_speeds(),
            _ => {}
        }
    }

    /// Whether a fault that `is` like this is under way.
    fn suffers(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(|fault| is(&self.setup.faults[*fault]))
    }

    fn nobody_inside(&self) -> bool {
        self.models.iter().all(|model| model.arrived == model.ended)
    }
}
