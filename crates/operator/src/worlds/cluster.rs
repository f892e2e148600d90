//! Kubernetes and engines, as far as they matter: ReplicaSets, a scheduler, kubelets, nodes that are
//! lost, pods with streams inside.

use super::plan::{ModelPlan, Plan, Sickness};
use super::{Second, moment};
use flyball_core::units::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// From the loss of a node until it is seen to be lost, and from then until its pods are told to end.
pub(super) const UNSEEN: Second = 40;
pub(super) const TOLERATED: Second = 300;

/// Kubernetes' default; an engine that finishes its streams gets so long.
pub(super) const GRACE: Second = 30;

/// A crashed container begins again after so long.
const CRASH_EVERY: Second = 20;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) lost: Option<Second>,
}

#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) ip: String,
    /// The model that it serves; none of ours if absent.
    pub(super) model: Option<usize>,
    pub(super) gpus: u32,
    pub(super) node: Option<usize>,
    pub(super) created: Second,
    pub(super) scheduled: Option<Second>,
    /// When its container began last.
    pub(super) began: Option<Second>,
    pub(super) ready: bool,
    /// When `ready` changed last.
    pub(super) changed: Second,
    pub(super) restarts: i32,
    pub(super) draining: Option<Timestamp>,
    pub(super) cost: Option<i32>,
    pub(super) ending: Option<Second>,
    pub(super) sick: Option<Sickness>,
    pub(super) streams: Vec<Stream>,
}

/// A request that is being answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// Whose; none if the client goes around gateways.
    pub(super) gateway: Option<usize>,
    pub(super) ends: Second,
    /// Seconds that it waited before.
    pub(super) waited: Second,
}

/// What is told of streams that ended early, if any did that should not. Who goes around gateways hears of
/// no drain: after ten minutes a pod's grace period must do for them.
fn cut(pod: &Pod, now: Second) -> Option<String> {
    let (name, streams) = (&pod.name, pod.streams.len());
    let drained = pod.draining.and_then(|since| moment(now).since(since));
    let drained = drained.map(|age| age.whole_seconds());
    let from: BTreeSet<Option<usize>> = pod.streams.iter().map(|stream| stream.gateway).collect();
    let around = from.iter().all(Option::is_none) && drained.is_some_and(|age| age >= 600);
    (streams > 0 && !around).then(|| {
        let (ready, sick) = (pod.ready, pod.sick);
        format!("{name} had {streams} streams of {from:?} (ready: {ready}, {sick:?}, drained: {drained:?} s)")
    })
}

#[derive(Debug)]
pub(super) struct Cluster<'a> {
    pub(super) plan: &'a Plan,
    pub(super) nodes: Vec<Node>,
    /// Replicas of each model's Deployment.
    pub(super) replicas: Vec<u32>,
    pub(super) pods: Vec<Pod>,
    /// What a shrinking ReplicaSet cut off since it was last asked.
    pub(super) cuts: Vec<String>,
    /// Streams that ended well since they were last asked for: gateway, model, and the stream.
    pub(super) ended: Vec<(usize, Stream)>,
    /// What pods that are made now suffer from, by model.
    pub(super) sickness: BTreeMap<usize, Sickness>,
    made: u32,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let nodes = plan.nodes.iter().map(|_| Node { lost: None }).collect();
        let replicas = plan.models.iter().map(|model| model.initial).collect();
        let mut cluster = Self {
            plan,
            nodes,
            replicas,
            pods: Vec::new(),
            cuts: Vec::new(),
            ended: Vec::new(),
            sickness: BTreeMap::new(),
            made: 0,
        };
        // What was there before was ready before.
        cluster.replicate(0);
        cluster.schedule(0);
        for pod in cluster.pods.iter_mut().filter(|pod| pod.node.is_some()) {
            (pod.began, pod.ready) = (Some(0), true);
        }
        cluster
    }

    /// One second passes.
    pub(super) fn step(&mut self, now: Second) {
        self.finish_streams(now);
        self.lose_nodes(now);
        self.run_pods(now);
        self.others(now);
        self.replicate(now);
        self.schedule(now);
        self.end_pods(now);
    }

    pub(super) fn model(&self, model: usize) -> &'a ModelPlan {
        &self.plan.models[model]
    }

    pub(super) fn pods_of(&self, model: usize) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(move |pod| pod.model == Some(model))
    }

    /// Whether a pod's engine runs.
    pub(super) fn runs(&self, pod: &Pod) -> bool {
        let there = pod.node.is_some_and(|node| self.nodes[node].lost.is_none());
        there && pod.began.is_some()
    }

    /// Whether a node is seen to be lost.
    pub(super) fn is_seen_lost(&self, node: usize, now: Second) -> bool {
        self.nodes[node].lost.is_some_and(|at| now >= at + UNSEEN)
    }

    /// Accelerators of a pool on nodes that can be used, and those of them that pods of others hold.
    pub(super) fn gpus(&self, pool: usize, now: Second) -> (u32, u32) {
        let usable =
            |node: usize| self.plan.nodes[node].pool == pool && !self.is_seen_lost(node, now);
        let all = (0..self.nodes.len()).filter(|node| usable(*node));
        let others = self.pods.iter().filter(|pod| pod.model.is_none());
        let others = others.filter(|pod| pod.node.is_some_and(usable));
        (all.map(|node| self.plan.nodes[node].gpus).sum(), others.map(|pod| pod.gpus).sum())
    }

    /// Accelerators of a pool that nobody holds or waits for.
    pub(super) fn free(&self, pool: usize, now: Second) -> u32 {
        let (all, others) = self.gpus(pool, now);
        let models = (0..self.plan.models.len()).filter(|n| self.model(*n).pool == pool);
        let ours = models.map(|n| {
            let there = self.pods_of(n).count() as u32;
            there.max(self.replicas[n]) * self.model(n).gpus
        });
        all.saturating_sub(others).saturating_sub(ours.sum())
    }

    /// Whether a node of a pool could take a pod of so many accelerators.
    pub(super) fn fits(&self, pool: usize, gpus: u32, now: Second) -> bool {
        let fits = |node: usize| {
            self.plan.nodes[node].pool == pool
                && !self.is_seen_lost(node, now)
                && self.room(node) >= gpus
        };
        (0..self.nodes.len()).any(fits)
    }

    fn finish_streams(&mut self, now: Second) {
        for pod in &mut self.pods {
            let Some(model) = pod.model else { continue };
            let ended = pod.streams.iter().filter(|stream| stream.ends <= now);
            self.ended.extend(ended.map(|stream| (model, *stream)));
            pod.streams.retain(|stream| stream.ends > now);
        }
    }

    /// Engines on lost nodes are gone at once; that their pods are not ready is seen later.
    fn lose_nodes(&mut self, now: Second) {
        for node in 0..self.nodes.len() {
            let Some(lost) = self.nodes[node].lost else { continue };
            for pod in self.pods.iter_mut().filter(|pod| pod.node == Some(node)) {
                pod.streams.clear();
                if now >= lost + UNSEEN && pod.ready {
                    (pod.ready, pod.changed) = (false, now);
                }
                if now >= lost + UNSEEN + TOLERATED {
                    pod.ending.get_or_insert(now);
                }
            }
        }
    }

    fn run_pods(&mut self, now: Second) {
        let lost: Vec<bool> = self.nodes.iter().map(|node| node.lost.is_some()).collect();
        for pod in &mut self.pods {
            let (Some(node), Some(scheduled), Some(model)) = (pod.node, pod.scheduled, pod.model)
            else {
                continue;
            };
            if lost[node] || pod.ending.is_some() {
                continue;
            }
            let began = *pod.began.get_or_insert(scheduled + 1);
            if pod.sick == Some(Sickness::Crashes) && now >= began + CRASH_EVERY {
                pod.streams.clear();
                pod.restarts += 1;
                pod.began = Some(now);
                if pod.ready {
                    (pod.ready, pod.changed) = (false, now);
                }
                continue;
            }
            let up = now >= began + self.plan.models[model].start;
            let ready = up && !matches!(pod.sick, Some(Sickness::NeverReady | Sickness::Lapses));
            if ready != pod.ready {
                (pod.ready, pod.changed) = (ready, now);
            }
        }
    }

    /// Pods of others come and go.
    fn others(&mut self, now: Second) {
        let plan = self.plan;
        for (n, other) in plan.others.iter().enumerate() {
            let name = format!("other-{n}");
            let there = self.pods.iter().any(|pod| pod.name == name);
            if now >= other.until {
                self.pods.retain(|pod| pod.name != name);
            } else if now >= other.from && !there && self.room(other.node) >= other.gpus {
                let pod = self.made(name, None, other.gpus, now);
                self.pods.push(Pod {
                    node: Some(other.node),
                    scheduled: Some(now),
                    began: Some(now),
                    ready: true,
                    ..pod
                });
            }
        }
    }

    /// Each ReplicaSet makes what is missing and removes what is too much.
    fn replicate(&mut self, now: Second) {
        for model in 0..self.plan.models.len() {
            let active = self.pods_of(model).filter(|pod| pod.ending.is_none()).count() as u32;
            for _ in active..self.replicas[model] {
                self.made += 1;
                let plan = self.model(model);
                let name = format!("{}-{:03}", plan.name, self.made);
                let sick = self.sickness.get(&model).copied();
                let sick = sick.filter(|sick| *sick != Sickness::Lapses);
                let pod = Pod { sick, ..self.made(name, Some(model), plan.gpus, now) };
                self.pods.push(pod);
            }
            for _ in self.replicas[model]..active {
                self.remove_one(model, now);
            }
        }
    }

    /// The pod that a ReplicaSet takes first: without a node, not ready, of the lowest cost, of a crowded
    /// node, ready for the shortest time, restarted most, made last.
    fn remove_one(&mut self, model: usize, now: Second) {
        let crowd = |node: Option<usize>| {
            self.pods_of(model).filter(|pod| pod.node == node && pod.ending.is_none()).count()
        };
        let chosen = self
            .pods
            .iter()
            .enumerate()
            .filter(|(_, pod)| pod.model == Some(model) && pod.ending.is_none())
            .min_by_key(|(_, pod)| {
                let ready = if pod.ready { pod.changed } else { 0 };
                (
                    (pod.node.is_some(), pod.began.is_some(), pod.ready),
                    pod.cost.unwrap_or(0),
                    Reverse(crowd(pod.node)),
                    (Reverse(ready), Reverse(pod.restarts), Reverse(pod.created)),
                )
            })
            .map(|(n, _)| n);
        if let Some(n) = chosen {
            self.end(n, now);
        }
    }

    /// A pod of ours is told to end.
    pub(super) fn end(&mut self, n: usize, now: Second) {
        let cuts = self.pods[n].model.is_some_and(|model| self.model(model).cuts);
        let pod = &mut self.pods[n];
        pod.ending = Some(now);
        if cuts {
            self.cuts.extend(cut(pod, now));
            pod.streams.clear();
        }
    }

    fn schedule(&mut self, now: Second) {
        for n in 0..self.pods.len() {
            let (Some(model), None) = (self.pods[n].model, self.pods[n].node) else { continue };
            let (pool, gpus) = (self.model(model).pool, self.pods[n].gpus);
            let fits = |node: &usize| {
                self.plan.nodes[*node].pool == pool
                    && !self.is_seen_lost(*node, now)
                    && self.room(*node) >= gpus
            };
            let node = (0..self.nodes.len()).find(fits);
            if let Some(node) = node {
                (self.pods[n].node, self.pods[n].scheduled) = (Some(node), Some(now));
                self.pods[n].changed = now;
            }
        }
    }

    fn room(&self, node: usize) -> u32 {
        let held = self.pods.iter().filter(|pod| pod.node == Some(node)).map(|pod| pod.gpus);
        self.plan.nodes[node].gpus.saturating_sub(held.sum())
    }

    /// Pods that were told to end are gone when they are empty, or at the end of their grace period. On
    /// a lost node nobody ends them.
    fn end_pods(&mut self, now: Second) {
        let mut cuts = Vec::new();
        let nodes = &self.nodes;
        self.pods.retain(|pod| {
            let Some(since) = pod.ending else { return true };
            if pod.node.is_some_and(|node| nodes[node].lost.is_some()) {
                return true;
            }
            let late = now >= since + GRACE;
            if late {
                cuts.extend(cut(pod, now));
            }
            !pod.streams.is_empty() && !late
        });
        self.cuts.extend(cuts);
    }

    fn made(&self, name: String, model: Option<usize>, gpus: u32, now: Second) -> Pod {
        // An address is given again long after its pod is gone.
        let ip = format!("10.0.{}.{}", self.made / 250, self.made % 250 + 1);
        Pod {
            name,
            ip,
            model,
            gpus,
            node: None,
            created: now,
            scheduled: None,
            began: None,
            ready: false,
            changed: now,
            restarts: 0,
            draining: None,
            cost: None,
            ending: None,
            sick: None,
            streams: Vec::new(),
        }
    }
}
