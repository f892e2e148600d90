//! From facts and signals to the Snapshot that the governor is given. Pure.

use super::demand::{self, Serving, Signals};
use super::facts::{Facts, PodFacts, Workload, WorkloadKey};
use super::failures::Failures;
use super::names::{Names, SharedName};
use super::nodes::Outlook;
use super::others::held_by_others;
use super::prior::Priors;
use super::replicas::{self, Trouble};
use super::starts::Starts;
use crate::time;
use crate::validate::{Drain, Wanted, drain, drain_of, validate};
use flyball_core::ids::{AcceleratorId, ModelId, PoolId, VariantId};
use flyball_core::invariants::Holding;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Model, Observed, Pool, Purchase, Snapshot, Variant};
use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_governor::Policy;
use flyball_resources::model_service::{TargetKind, Variant as VariantSpec};
use flyball_resources::{ModelService, Problem};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A start of which nothing is known is slow after twice this.
const SLOW_START: Micros = Micros::from_minutes(10);

/// A picture, and beside it what is needed to carry a decision out and to tell of it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The picture.
    pub snapshot: Snapshot,
    /// What owners want.
    pub policy: Policy,
    /// Every model, also those that nothing can be decided about.
    pub models: BTreeMap<ModelId, SeenModel>,
}

/// One model.
#[derive(Clone, Debug)]
pub struct SeenModel {
    /// As it is stored.
    pub service: Arc<ModelService>,
    /// What is wrong with its spec.
    pub problems: Vec<Problem>,
    /// The workload of each variant, by the variant's name.
    pub workloads: BTreeMap<String, WorkloadKey>,
    /// Workloads that it names and that do not exist.
    pub absent: Vec<WorkloadKey>,
    /// Who else sets replicas of one of its workloads.
    pub rival: Option<String>,
    /// Whether nobody can tell who else does.
    pub owners_unseen: bool,
    /// Gateways and engines that should tell of it and do not, the first few.
    pub silent: Vec<String>,
    /// Public names of it that other models have too.
    pub shared_names: Vec<SharedName>,
    /// Whether pods of its workloads get the time to finish.
    pub drains: Vec<(WorkloadKey, Drain)>,
    /// Whether each of its pods may be taken away, by name.
    pub holds: BTreeMap<String, Holding>,
    /// What a pod waits for that drains for long.
    pub waits: Option<String>,
    /// What is wrong with its pods.
    pub troubles: Vec<Trouble>,
    /// Pods whose node is lost or will be taken away.
    pub gone: BTreeSet<String>,
}

/// What is remembered from look to look.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// Cold starts.
    pub starts: Starts,
    /// Capacities.
    pub priors: Priors,
    /// On which nodes pods failed.
    pub failures: Failures,
}

/// Takes the picture of this moment.
pub fn look(
    facts: &Facts,
    signals: &Signals,
    learnt: &mut Learnt,
    (now, max_age): (Timestamp, Micros),
) -> Seen {
    let mut snapshot = Snapshot::empty(now, 0);
    let mut policy = Policy::default();
    let mut models = BTreeMap::new();
    let names = Names::of(&facts.models);
    for pool in &facts.pools {
        if let Some((id, pool)) = see_pool(facts, pool, now) {
            snapshot.pools.insert(id, pool);
        }
    }
    let rules = facts.rules();
    for service in &facts.models {
        let Ok(id) = service.id() else { continue };
        let mut seen = SeenModel {
            service: Arc::clone(service),
            problems: Vec::new(),
            workloads: BTreeMap::new(),
            absent: Vec::new(),
            rival: None,
            owners_unseen: facts.unseen_owners.contains(id.namespace().as_str()),
            silent: Vec::new(),
            shared_names: names.shared(&id, service),
            drains: Vec::new(),
            holds: BTreeMap::new(),
            waits: None,
            troubles: Vec::new(),
            gone: BTreeSet::new(),
        };
        match validate(service, &rules) {
            Err(problems) => seen.problems = problems,
            Ok(wanted) => {
                let look = Look { facts, signals, service, wanted: &wanted, time: (now, max_age) };
                let model = look.model(&mut seen, learnt);
                for variant in model.variants.values() {
                    let pool = || unpooled(now);
                    snapshot.pools.entry(variant.pool.clone()).or_insert_with(pool);
                }
                snapshot.models.insert(id.clone(), model);
                policy.models.insert(id.clone(), wanted.policy);
            }
        }
        models.insert(id, seen);
    }
    for (id, held) in held_by_others(facts, &models) {
        if let Some(pool) = snapshot.pools.get_mut(&id) {
            pool.held_by_others = held;
        }
    }
    let there: BTreeSet<VariantId> = snapshot.variants().map(|(id, _)| id).collect();
    learnt.starts.keep(&there);
    learnt.priors.keep(&there);
    learnt.failures.keep(&there);
    Seen { snapshot, policy, models }
}

/// One model while it is looked at.
struct Look<'a> {
    facts: &'a Facts,
    signals: &'a Signals,
    service: &'a ModelService,
    wanted: &'a Wanted,
    time: (Timestamp, Micros),
}

impl<'a> Look<'a> {
    fn model(&self, seen: &mut SeenModel, learnt: &mut Learnt) -> Model {
        let spec = &self.service.spec;
        let mut variants = BTreeMap::new();
        learnt.priors.recall(&self.wanted.id, self.service.status.as_ref());
        let namespace = self.wanted.id.namespace().as_str();
        let mut serving = Serving { namespace, pods: Vec::new(), lapsed: false };
        for (name, variant) in self.wanted.variants.iter().zip(&spec.variants) {
            let id = VariantId::new(self.wanted.id.clone(), name.clone());
            let key = workload_key(self.service, variant);
            let workload = self.facts.workloads.get(&key);
            let pods = self.pods(workload);
            let looks = self.inside(&pods);
            let drained = workload.map(|workload| drains(variant, workload));
            let cuts = matches!(drained, Some(Drain::Cuts(_)));
            let holds = looks.iter().map(|look| (look.pod.name.clone(), look.holding(cuts)));
            seen.holds.extend(holds);
            let mut waits =
                looks.iter().filter_map(|one| one.waits_for(&self.signals.in_flight, cuts));
            seen.waits = seen.waits.take().or_else(|| waits.next());
            let one = self.variant(&id, variant, &looks, learnt);
            self.troubles(&id, &one, &looks, seen, &mut learnt.failures);
            let room = one.capacity.resident;
            let is_lost = |pod: &PodFacts| matches!(self.facts.outlook(pod), Outlook::Lost { .. });
            let serves = |pod: &PodFacts| pod.ready.is_some() && !is_lost(pod);
            serving.lapsed |= pods.iter().any(|pod| pod.lapsed.is_some() || is_lost(pod));
            serving.pods.extend(pods.iter().filter(|pod| serves(pod)).map(|pod| (*pod, room)));
            match workload {
                None if variant.target_ref.is_some() => seen.absent.push(key),
                workload => {
                    seen.drains.extend(drained.map(|drained| (key.clone(), drained)));
                    seen.rival =
                        seen.rival.take().or(workload.and_then(|workload| workload.rival.clone()));
                    seen.workloads.insert(variant.name.clone(), key);
                }
            }
            variants.insert(name.clone(), one);
        }
        let asked = self.signals.asked.get(&self.wanted.id).copied();
        let known = demand::known(asked, &serving, self.signals, self.time);
        learnt.priors.learn(&self.wanted.id, known.shape);
        seen.silent = known.silent;
        Model {
            mode: spec.scaling.mode(),
            pinned: spec.pinned(),
            frozen: self.facts.frozen || self.service.is_frozen(time::date(self.time.0)),
            blocked: seen.rival.is_some() || seen.owners_unseen || seen.workloads.is_empty(),
            bounds: spec.scaling.bounds(),
            objectives: self.wanted.objectives,
            demand: known.demand,
            misses: known.misses,
            variants,
        }
    }

    fn pods(&self, workload: Option<&Workload>) -> Vec<&'a PodFacts> {
        let namespace = self.wanted.id.namespace().as_str();
        workload.map_or_else(Vec::new, |workload| {
            self.facts.pods_of(namespace, &workload.selector).collect()
        })
    }

    /// The pods of a workload, with what is inside.
    fn inside(&self, pods: &[&'a PodFacts]) -> Vec<replicas::Seen<'a>> {
        let namespace = self.wanted.id.namespace().as_str();
        let speaks = self.signals.in_flight.speaks(namespace, pods.iter().copied());
        let look = |pod: &&'a PodFacts| {
            let inside = self.signals.in_flight.of(namespace, pod, speaks, self.time);
            replicas::Seen { pod, inside, time: self.time }
        };
        pods.iter().map(look).collect()
    }

    /// Notes what is wrong with the pods of a variant.
    fn troubles(
        &self,
        id: &VariantId,
        variant: &Variant,
        pods: &[replicas::Seen<'_>],
        seen: &mut SeenModel,
        failures: &mut Failures,
    ) {
        let usual = variant.cold_start.map_or(SLOW_START, |start| start.high());
        let slow = usual.saturating_add(usual).saturating_add(Micros::from_seconds(30));
        for look in pods {
            if !matches!(self.facts.outlook(look.pod), Outlook::Stays) {
                seen.gone.insert(look.pod.name.clone());
            }
            let Some(mut trouble) = look.trouble(self.facts, slow) else {
                if look.pod.ready.is_some() {
                    failures.serves(id, look.pod);
                }
                continue;
            };
            if trouble.reason == Reason::ReplicaFailed {
                failures.failed(id, look.pod);
            }
            if let Some(count) = failures.on_node_of(id, look.pod) {
                trouble.text.push_str(&format!("; {count} pods of it failed there"));
            }
            seen.troubles.push(trouble);
        }
    }

    fn variant(
        &self,
        id: &VariantId,
        spec: &VariantSpec,
        pods: &[replicas::Seen<'_>],
        learnt: &mut Learnt,
    ) -> Variant {
        let status = self.service.status.iter().flat_map(|status| &status.variants);
        if let Some(status) = status.into_iter().find(|status| status.name == spec.name) {
            learnt.starts.recall(id, status);
        }
        learnt.starts.learn(id, pods.iter().map(|look| look.pod));
        let pool = spec.pool().unwrap_or_else(|_| unpooled_id());
        let accelerator = self.facts.pools.iter().find(|one| one.name_any() == pool.as_str());
        let capacity = learnt.priors.capacity(
            id,
            spec,
            self.service.spec.model.as_deref(),
            accelerator.map(|pool| pool.spec.accelerator.as_str()),
            &self.wanted.objectives,
        );
        let namespace = self.wanted.id.namespace().as_str();
        let replicas = pods.iter().filter_map(|look| look.replica(self.facts, namespace));
        Variant {
            pool,
            gpus_per_replica: Gpus::new(u32::try_from(spec.gpus_per_replica).unwrap_or(0)),
            capacity,
            cold_start: learnt.starts.of(id).or_else(|| spec.stated_cold_start()),
            replicas: replicas.collect(),
        }
    }
}

/// The workload that a variant is, or will be once Flyball has made it.
pub(crate) fn workload_key(service: &ModelService, variant: &VariantSpec) -> WorkloadKey {
    let namespace = service.namespace().unwrap_or_default();
    match &variant.target_ref {
        Some(to) => (namespace, to.kind, to.name.clone()),
        None => {
            let name = format!("{}-{}", service.name_any(), variant.name);
            (namespace, TargetKind::Deployment, name)
        }
    }
}

/// Whether pods of a variant's workload get the time to finish. Who names a program of their own is not
/// bound to what its kind does.
fn drains(variant: &VariantSpec, workload: &Workload) -> Drain {
    match &variant.engine {
        Some(engine) if engine.command.is_empty() => {
            drain_of(engine.kind, i64::from(engine.drain_seconds), workload)
        }
        _ => drain(workload),
    }
}

fn see_pool(
    facts: &Facts,
    pool: &flyball_resources::Pool,
    now: Timestamp,
) -> Option<(PoolId, Pool)> {
    let spec = &pool.spec;
    let mut gpus: BTreeMap<Purchase, u32> = BTreeMap::new();
    for node in facts.nodes.values().filter(|node| node.usable) {
        let Some(count) = node.gpus_of(spec) else { continue };
        *gpus.entry(replicas::purchase(&node.labels)).or_default() += count;
    }
    if gpus.is_empty() {
        gpus.insert(Purchase::OnDemand, 0);
    }
    let seen = |(purchase, gpus): (Purchase, u32)| {
        (purchase, Observed::Fresh { value: Gpus::new(gpus), at: now })
    };
    let pool_of = Pool {
        accelerator: AcceleratorId::new(&spec.accelerator).ok()?,
        allocatable: gpus.into_iter().map(seen).collect(),
        held_by_others: Gpus::ZERO,
        shares: spec.shares_of_core(),
        can_grow: spec.can_grow(),
        supply: None,
        limit: spec.limit.and_then(|limit| u32::try_from(limit).ok()).map(Gpus::new),
        prices: spec.prices_of_core().unwrap_or_default(),
    };
    Some((PoolId::new(&pool.name_any()).ok()?, pool_of))
}

/// A pool that nobody described: nothing is known to limit it, and no price is.
fn unpooled(now: Timestamp) -> Pool {
    let none = Observed::Fresh { value: Gpus::ZERO, at: now };
    Pool {
        accelerator: AcceleratorId::new("unknown").expect("a fixed name"),
        allocatable: [(Purchase::OnDemand, none)].into(),
        held_by_others: Gpus::ZERO,
        shares: BTreeMap::new(),
        can_grow: true,
        supply: None,
        limit: None,
        prices: BTreeMap::new(),
    }
}

fn unpooled_id() -> PoolId {
    PoolId::new("unpooled").expect("a fixed name")
}
