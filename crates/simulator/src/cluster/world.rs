//! The state of a world, and the loop that moves it.

use super::account::{Account, AnsweredBy, ClusterRun};
use super::checks::BrokenInvariant;
use super::faults::Fault;
use super::gate::EVERY;
use super::metrics::Pipeline;
use super::nodes::{Node, NodeOrder};
use super::observe::LogEntry;
use super::queue::{Event, Queue};
use super::replicas::Replica;
use super::requests::Held;
use super::setup::{ModelSetup, Setup};
use crate::chance::{Chance, Purpose, stream};
use crate::policy::ScalingPolicy;
use crate::seconds::Seconds;
use flyball_core::decision::Previous;
use flyball_estimator::Estimator;
use flyball_routing::{Endpoint, ObservedEndpoints};

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

pub(super) struct World<'a> {
    pub(super) setup: &'a Setup,
    pub(super) now: Seconds,
    pub(super) queue: Queue,
    pub(super) events: u64,
    pub(super) models: Vec<ModelState>,
    pub(super) nodes: Vec<Node>,
    pub(super) orders: Vec<NodeOrder>,
    /// Every replica there ever was.
    pub(super) replicas: Vec<Replica>,
    /// Places of those that are there, in order of birth.
    pub(super) present: Vec<usize>,
    /// Every request that arrived.
    pub(super) requests: Vec<super::requests::Request>,
    pub(super) pipeline: Pipeline,
    pub(super) estimator: Estimator,
    /// Since when the process runs that decides.
    pub(super) decides_since: Seconds,
    /// How far the clock of whoever decides is wrong.
    pub(super) clock_error: f64,
    /// Places of the faults that are under way.
    pub(super) faults: Vec<usize>,
    /// Replicas that a fault slows, where it slows some.
    pub(super) slow: Vec<(usize, usize)>,
    pub(super) previous: Previous,
    pub(super) victims: Chance,
    pub(super) misfortune: Chance,
    pub(super) log: Vec<LogEntry>,
    pub(super) broken: Vec<BrokenInvariant>,
    /// Reused from request to request.
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) endpoint_replicas: Vec<usize>,
}

pub(super) struct ModelState {
    /// The place of the next request in its trace.
    pub(super) next_arrival: usize,
    pub(super) held: Held,
    /// What the router remembers of prompts.
    pub(super) seen: ObservedEndpoints,
    /// Replicas that each variant should have.
    pub(super) desired: Vec<u32>,
    pub(super) account: Account,
    /// Requests that arrived, and what became of them: checked to add up.
    pub(super) arrived: u64,
    pub(super) in_engines: u64,
    pub(super) ended: u64,
    /// Requests in engines whose clients are gone.
    pub(super) leaving: u64,
    /// Requests whose client waits for the network.
    pub(super) crossing: u64,
    /// Names given to replicas.
    pub(super) named: u32,
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
    pub(super) fn new(setup: &'a Setup) -> Self {
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
    pub(super) fn begin(&mut self, interval: Seconds) {
        let setup = self.setup;
        for (pool, have) in setup.pools.iter().enumerate() {
            for (purchase, count) in &have.nodes {
                (0..*count).for_each(|_| self.add_node(pool, *purchase, false));
            }
            for (at, _) in &have.stock {
                self.queue.plan(*at, Event::StockChanges { pool });
            }
        }
        for (model, wanted) in setup.models.iter().enumerate() {
            for (variant, details) in wanted.variants.iter().enumerate() {
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
        self.queue.plan(interval.min(setup.habits.first_look), Event::Tick);
        if setup.habits.gateways_tell.is_some() {
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
                self.hear_engines();
                self.again(EVERY, Event::Load);
            }
            Event::Report => {
                self.report();
                self.again(self.setup.habits.gateways_tell.unwrap_or(EVERY), Event::Report);
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
            | Fault::ToldCapacity { .. }
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
    pub(super) fn suffers(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(|fault| is(&self.setup.faults[*fault]))
    }

    fn nobody_inside(&self) -> bool {
        self.models.iter().all(|model| model.arrived == model.ended)
    }
}
