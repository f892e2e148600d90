//! Gateways: requests wait in them, streams run through them, and each second they say how things stand.

use super::cluster::{Cluster, Pod, Stream};
use super::dice::Dice;
use super::plan::{GatewayPlan, Plan};
use super::{BEGIN, Second};
use flyball_resources::stream::{
    EndpointLoad, EndpointState, Hello, ModelDemand, Orders, Protocol, ReportedDemand, Up,
};
use std::collections::{BTreeMap, VecDeque};

/// Clients hang up after so long.
const PATIENCE: Second = 300;

/// One gateway.
#[derive(Debug)]
pub(super) struct Gateway<'a> {
    pub(super) plan: &'a GatewayPlan,
    /// Since when its node is lost, and it with it.
    pub(super) dead: Option<Second>,
    /// Since when it has said nothing, though it lives.
    pub(super) silent: Option<Second>,
    /// Its connection, by the number that the operator gave it.
    pub(super) talk: Option<u64>,
    /// When the operator that leads heard it last.
    pub(super) last_seen: Option<Second>,
    /// When it comes back to the operator, if it must.
    pub(super) returns: Second,
    pub(super) models: BTreeMap<usize, Served>,
    orders: Orders,
}

/// What a gateway knows of one model.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// When each that waits came.
    pub(super) waiting: VecDeque<Second>,
    arrived: u64,
    ended: u64,
    missed: u64,
    /// Requests at engines.
    in_flight: u64,
}

impl<'a> Gateway<'a> {
    pub(super) fn all(plan: &'a Plan) -> Vec<Self> {
        let one = |gateway: &'a GatewayPlan| Self {
            plan: gateway,
            dead: None,
            silent: None,
            talk: None,
            last_seen: None,
            returns: 0,
            models: gateway.models.iter().map(|model| (*model, Served::default())).collect(),
            orders: Orders::default(),
        };
        plan.gateways.iter().map(one).collect()
    }

    pub(super) fn hello(&self) -> Hello {
        let protocol = match self.plan.understood {
            true => Protocol::OURS,
            false => Protocol { major: Protocol::OURS.major + 1, minor: 0 },
        };
        Hello {
            protocol: Some(protocol),
            gateway: self.plan.name.clone(),
            program: "test".to_owned(),
            started_ms: BEGIN * 1_000,
        }
    }

    pub(super) fn receive(&mut self, orders: &Orders) {
        self.orders = orders.clone();
    }

    pub(super) fn ended(&mut self, model: usize, stream: &Stream) {
        let Some(served) = self.models.get_mut(&model) else { return };
        served.ended += 1;
        served.missed += u64::from(stream.waited > 2);
    }

    /// One second passes: some hang up, and whoever has its turn begins.
    pub(super) fn step(&mut self, me: usize, cluster: &mut Cluster<'_>, now: Second) {
        for (model, served) in &mut self.models {
            while served.waiting.front().is_some_and(|came| now >= came + PATIENCE) {
                served.waiting.pop_front();
                served.missed += 1;
            }
            let plan = &cluster.plan.models[*model];
            let open = match served.waiting.is_empty() {
                true => Vec::new(),
                false => open_pods(cluster, *model, &self.orders),
            };
            while let Some(came) = served.waiting.front().copied() {
                let least = open.iter().copied().min_by_key(|n| cluster.pods[*n].streams.len());
                let room = |n: &usize| cluster.pods[*n].streams.len() < plan.slots as usize;
                let Some(pod) = least.filter(room) else { break };
                served.waiting.pop_front();
                cluster.pods[pod].streams.push(Stream {
                    gateway: Some(me),
                    ends: now + plan.seconds(),
                    waited: now - came,
                });
            }
            let inside = |pod: &Pod| count_of(pod, me);
            served.in_flight = cluster.pods_of(*model).map(inside).sum();
        }
    }

    /// How things stand.
    pub(super) fn message(&self, me: usize, cluster: &Cluster<'_>) -> Up {
        let models = self.models.iter().map(|(model, served)| {
            let plan = &cluster.plan.models[*model];
            let engines = open_pods(cluster, *model, &self.orders).len() as u32;
            let waiting = served.waiting.len() as u64;
            let held = if engines == 0 { waiting } else { 0 };
            ModelDemand {
                model: plan.public.clone(),
                namespace: plan.namespace.clone(),
                engines,
                waiting,
                held,
                waking: held > 0,
                backlog_tokens: waiting * u64::from(plan.prompt),
                in_flight: served.in_flight,
                held_tokens: served.in_flight * u64::from(plan.prompt + plan.output / 2),
                arrived: served.arrived,
                arrived_tokens: served.arrived * u64::from(plan.prompt),
                uncached_tokens: Some(served.arrived * u64::from(plan.prompt)),
                output_tokens: served.ended * u64::from(plan.output),
                judged: served.ended,
                missed: served.missed.min(served.ended),
                ..ModelDemand::default()
            }
        });
        let demand = ReportedDemand {
            models: models.collect(),
            endpoints: self.endpoints(me, cluster),
            orders: self.orders.sequence,
            ..ReportedDemand::default()
        };
        Up { demand: Some(demand), ..Up::default() }
    }

    /// Engines that it knows: those of its list, and those that left it with its streams inside.
    fn endpoints(&self, me: usize, cluster: &Cluster<'_>) -> Vec<EndpointLoad> {
        let mut all = Vec::new();
        for model in self.models.keys() {
            let plan = &cluster.plan.models[*model];
            for pod in cluster.pods_of(*model) {
                let (listed, in_flight) = (is_listed(pod), count_of(pod, me));
                if !listed && in_flight == 0 {
                    continue;
                }
                let state = if !listed {
                    EndpointState::Gone
                } else if is_drained(&self.orders, &plan.namespace, pod) {
                    EndpointState::Draining
                } else {
                    EndpointState::Open
                };
                all.push(EndpointLoad {
                    name: format!("{}/{}", plan.namespace, pod.name),
                    address: address(pod),
                    model: plan.public.clone(),
                    in_flight: in_flight as u32,
                    state: state as i32,
                    uid: if listed { String::new() } else { pod.name.clone() },
                });
            }
        }
        all
    }
}

/// Requests come: through gateways that live, and around them.
pub(super) fn arrive(
    gateways: &mut [Gateway<'_>],
    cluster: &mut Cluster<'_>,
    dice: &mut Dice,
    now: Second,
) {
    for (n, plan) in cluster.plan.models.iter().enumerate() {
        let serves =
            |gateway: &&mut Gateway<'_>| gateway.dead.is_none() && gateway.models.contains_key(&n);
        let mut doors: Vec<&mut Gateway<'_>> = gateways.iter_mut().filter(serves).collect();
        for _ in 0..dice.arrivals(plan.rate(now)) {
            let door = dice.index(doors.len().max(1));
            let Some(served) = doors.get_mut(door).and_then(|one| one.models.get_mut(&n)) else {
                continue;
            };
            served.arrived += 1;
            served.waiting.push_back(now);
        }
        for _ in 0..dice.arrivals(plan.bypass) {
            let ready = |pod: &&mut Pod| {
                pod.model == Some(n) && is_listed(pod) && pod.streams.len() < plan.slots as usize
            };
            if let Some(pod) = cluster.pods.iter_mut().find(ready) {
                let stream = Stream { gateway: None, ends: now + plan.seconds(), waited: 0 };
                pod.streams.push(stream);
            }
        }
    }
}

/// Whether a Service lists a pod.
fn is_listed(pod: &Pod) -> bool {
    pod.ready && pod.ending.is_none()
}

fn is_drained(orders: &Orders, namespace: &str, pod: &Pod) -> bool {
    if orders.drains.is_empty() {
        return false;
    }
    let name = format!("{namespace}/{}", pod.name);
    orders.drains.iter().any(|mark| mark.is_for(&name, &address(pod)))
}

/// Pods that may get requests, by index. An engine on a lost node does not answer.
fn open_pods(cluster: &Cluster<'_>, model: usize, orders: &Orders) -> Vec<usize> {
    let namespace = &cluster.plan.models[model].namespace;
    let open = |pod: &Pod| {
        pod.model == Some(model)
            && is_listed(pod)
            && cluster.runs(pod)
            && !is_drained(orders, namespace, pod)
    };
    let pods = cluster.pods.iter().enumerate();
    pods.filter(|(_, pod)| open(pod)).map(|(n, _)| n).collect()
}

fn address(pod: &Pod) -> String {
    format!("{}:8000", pod.ip)
}

fn count_of(pod: &Pod, gateway: usize) -> u64 {
    pod.streams.iter().filter(|stream| stream.gateway == Some(gateway)).count() as u64
}
