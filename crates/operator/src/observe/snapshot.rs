//! From facts and signals to the readings that the estimator makes a Snapshot of. Pure.

use super::adopted::adopted;
use super::borrowed;
use super::chunk;
use super::demand::Signals;
use super::drain::{Drain, drain, drain_of};
use super::facts::{Facts, PodFacts, Workload};
use super::failures::Failures;
use super::names::Names;
use super::nodes::Outlook;
use super::others::held_by_others;
use super::replicas::{self, ReplicaTrouble};
use super::seen::{SeenModel, workload_key};
use super::served;
use crate::persist;
use crate::time;
use crate::validate::{ValidatedSpec, validate};
use flyball_core::ids::{AcceleratorId, ModelId, PoolId, ReplicaId, VariantId, VariantName};
use flyball_core::interval::{Interval, Origin};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Capacity, Observed, Pool, Purchase, Snapshot};
use flyball_core::units::{Gpus, Micros, Timestamp};
use flyball_estimator::reading::{EngineReading, ModelReading, PredictedReplica, VariantReading};
use flyball_estimator::{Estimator, KnownModel, Readings};
use flyball_governor::Policy;
use flyball_resources::ModelService;
use flyball_resources::model_service::{ModelServiceStatus, VariantSpec, VariantStatus};
use kube::ResourceExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A start of which nothing is known is slow after twice this.
const SLOW_START: Micros = Micros::from_minutes(10);

/// A picture, and beside it what is needed to carry a decision out and to tell of it.
#[derive(Clone, Debug)]
pub struct ObservedCluster {
    /// The picture.
    pub snapshot: Snapshot,
    /// What owners want.
    pub policy: Policy,
    /// Every model, also those that nothing can be decided about.
    pub models: BTreeMap<ModelId, SeenModel>,
}

/// What is remembered from look to look.
#[derive(Clone, Debug, Default)]
pub struct ObservedMemory {
    /// Demand, capacities and cold starts.
    pub estimator: Estimator,
    /// On which nodes pods failed.
    pub failures: Failures,
}

/// Takes the picture of this moment.
pub fn observe(
    facts: &Facts,
    signals: &Signals,
    learnt: &mut ObservedMemory,
    time: (Timestamp, Micros),
) -> ObservedCluster {
    observe_and_note(facts, signals, learnt, time, |_| {})
}

/// The same, and lets somebody note what was read.
pub fn observe_and_note(
    facts: &Facts,
    signals: &Signals,
    learnt: &mut ObservedMemory,
    (now, max_age): (Timestamp, Micros),
    note: impl FnOnce(&Readings),
) -> ObservedCluster {
    let mut pools = BTreeMap::new();
    let mut read = BTreeMap::new();
    let mut policy = Policy::default();
    let mut models = BTreeMap::new();
    let names = Names::of(&facts.models);
    for pool in &facts.pools {
        if let Some((id, pool)) = see_pool(facts, pool, now) {
            pools.insert(id, pool);
        }
        if let Ok(id) = PoolId::new(&pool.name_any()) {
            policy.pools.insert(id, borrowed::lending(pool.spec.lending.as_ref()));
        }
    }
    let rules = facts.rules();
    for service in &facts.models {
        let Ok(id) = service.id() else { continue };
        let mut seen = unlooked(facts, &names, &id, service);
        match validate(service, &rules) {
            Err(problems) => seen.problems = problems,
            Ok(validated) => {
                let observer = ModelObserver {
                    facts,
                    signals,
                    service,
                    validated: &validated,
                    time: (now, max_age),
                };
                let model = observer.model(&mut seen, learnt);
                for variant in model.variants.values() {
                    let pool = || unpooled(now);
                    pools.entry(variant.pool.clone()).or_insert_with(pool);
                }
                learnt.recall(&id, service.status.as_ref());
                read.insert(id.clone(), model);
                policy.models.insert(id.clone(), validated.policy);
            }
        }
        models.insert(id, seen);
    }
    for (id, held) in held_by_others(facts, &models) {
        if let Some(pool) = pools.get_mut(&id) {
            pool.held_by_others = held;
        }
    }
    let readings = Readings {
        taken_at: now,
        shard: 0,
        max_age,
        models: read,
        pools,
        runs: borrowed::runs(facts, now),
    };
    note(&readings);
    let (snapshot, known) = learnt.see(readings);
    for (id, known) in known {
        let silent = snapshot.models.get(&id).is_some_and(|one| one.demand.sources.silent > 0);
        if let Some(seen) = models.get_mut(&id) {
            seen.starts = known.starts;
            seen.silent = known.silent;
            let gateways = signals.gateways.contains_key(&id) || signals.silent_about(&id) > 0;
            if silent && gateways {
                seen.silent.extend(signals.silent_names());
            }
            let variants =
                snapshot.models.get(&id).into_iter().flat_map(|one| one.variants.values());
            let slow = variants.flat_map(|variant| variant.slow.keys());
            seen.troubles.extend(slow.map(|replica| ReplicaTrouble::slow(facts, replica)));
        }
    }
    let there: BTreeSet<VariantId> = snapshot.variants().map(|(id, _)| id).collect();
    learnt.failures.keep(&there);
    ObservedCluster { snapshot, policy, models }
}

/// A model before its variants are looked at.
fn unlooked(facts: &Facts, names: &Names, id: &ModelId, service: &Arc<ModelService>) -> SeenModel {
    SeenModel {
        service: Arc::clone(service),
        problems: Vec::new(),
        workloads: BTreeMap::new(),
        adopted: adopted(facts, service),
        absent: Vec::new(),
        rival: None,
        owners_unseen: facts.unseen_owners.contains(id.namespace().as_str()),
        silent: Vec::new(),
        shared_names: names.shared(id, service),
        drains: Vec::new(),
        holds: BTreeMap::new(),
        waits: None,
        troubles: Vec::new(),
        gone: BTreeSet::new(),
        starts: BTreeMap::new(),
    }
}

/// One model while it is looked at.
struct ModelObserver<'a> {
    facts: &'a Facts,
    signals: &'a Signals,
    service: &'a ModelService,
    validated: &'a ValidatedSpec,
    time: (Timestamp, Micros),
}

impl<'a> ModelObserver<'a> {
    fn model(&self, seen: &mut SeenModel, learnt: &mut ObservedMemory) -> ModelReading {
        let spec = &self.service.spec;
        let mut variants = BTreeMap::new();
        for (name, variant) in self.validated.variants.iter().zip(&spec.variants) {
            let id = VariantId::new(self.validated.id.clone(), name.clone());
            let key = workload_key(self.service, variant);
            let workload = self.facts.workloads.get(&key);
            let pods = self.pods(workload);
            let seen_pods = self.inside(&pods);
            let drained = workload.map(|workload| drains(variant, workload));
            let cuts = matches!(drained, Some(Drain::Cuts(_)));
            let holds = seen_pods
                .iter()
                .map(|seen_pod| (seen_pod.pod.name.clone(), seen_pod.holding(cuts)));
            seen.holds.extend(holds);
            let mut waits =
                seen_pods.iter().filter_map(|one| one.waits_for(&self.signals.in_flight, cuts));
            seen.waits = seen.waits.take().or_else(|| waits.next());
            let one = self.variant(variant, workload, &pods, &seen_pods);
            self.troubles(&id, variant, &seen_pods, seen, &mut learnt.failures);
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
        let id = &self.validated.id;
        ModelReading {
            mode: spec.scaling.mode(),
            pinned: spec.pinned(),
            frozen: self.facts.frozen || self.service.is_frozen(time::date(self.time.0)),
            blocked: seen.rival.is_some() || seen.owners_unseen || seen.workloads.is_empty(),
            bounds: spec.scaling.bounds(),
            objectives: self.validated.objectives,
            gateways: self.signals.gateways.get(id).cloned().unwrap_or_default(),
            silent_gateways: self.signals.silent_about(id),
            waited_for: self.signals.waited_for.contains(id),
            variants,
        }
    }

    fn pods(&self, workload: Option<&Workload>) -> Vec<&'a PodFacts> {
        let namespace = self.validated.id.namespace().as_str();
        workload.map_or_else(Vec::new, |workload| {
            self.facts.pods_of(namespace, &workload.selector).collect()
        })
    }

    /// The pods of a workload, with what is inside.
    fn inside(&self, pods: &[&'a PodFacts]) -> Vec<replicas::Seen<'a>> {
        let namespace = self.validated.id.namespace().as_str();
        let speaks = self.signals.in_flight.speaks(namespace, pods.iter().copied());
        let see_pod = |pod: &&'a PodFacts| {
            let inside = self.signals.in_flight.of(namespace, pod, speaks, self.time);
            replicas::Seen { pod, inside, time: self.time }
        };
        pods.iter().map(see_pod).collect()
    }

    /// Notes what is wrong with the pods of a variant.
    fn troubles(
        &self,
        id: &VariantId,
        variant: &VariantSpec,
        pods: &[replicas::Seen<'_>],
        seen: &mut SeenModel,
        failures: &mut Failures,
    ) {
        // As it was told last: this look's measure is made of this look's pods.
        let status = self.service.status.iter().flat_map(|status| &status.variants);
        let published = status.into_iter().find(|status| status.name == variant.name);
        let published = published.and_then(measured_start).map(|(span, _)| span);
        let start = published.or_else(|| variant.stated_cold_start());
        let usual = start.map_or(SLOW_START, |start| start.high());
        let slow = usual.saturating_add(usual).saturating_add(Micros::from_seconds(30));
        for seen_pod in pods {
            if !matches!(self.facts.outlook(seen_pod.pod), Outlook::Stays) {
                seen.gone.insert(seen_pod.pod.name.clone());
            }
            let Some(mut trouble) = seen_pod.trouble(self.facts, slow) else {
                if seen_pod.pod.ready.is_some() {
                    failures.serves(id, seen_pod.pod);
                }
                continue;
            };
            if trouble.reason == Reason::ReplicaFailed {
                failures.failed(id, seen_pod.pod);
            }
            if let Some(count) = failures.on_node_of(id, seen_pod.pod) {
                trouble.text.push_str(&format!("; {count} pods of it failed there"));
            }
            seen.troubles.push(trouble);
        }
    }

    fn variant(
        &self,
        spec: &VariantSpec,
        workload: Option<&Workload>,
        pods: &[&'a PodFacts],
        seen_pods: &[replicas::Seen<'_>],
    ) -> VariantReading {
        let pool = spec.pool().unwrap_or_else(|_| unpooled_id());
        let namespace = self.validated.id.namespace().as_str();
        let is_lost = |pod: &PodFacts| matches!(self.facts.outlook(pod), Outlook::Lost { .. });
        let replica = |pod: &PodFacts| ReplicaId::new(namespace, &pod.name).ok();
        let engines = pods.iter().filter(|pod| pod.ready.is_some() && !is_lost(pod));
        let engines = engines.filter_map(|pod| Some((replica(pod)?, self.engine(namespace, pod))));
        let lends = self
            .facts
            .pools
            .iter()
            .any(|one| one.name_any() == pool.as_str() && one.spec.lending.is_some());
        let started = pods.iter().filter_map(|pod| Some((replica(pod)?, took(pod, lends)?)));
        VariantReading {
            predicted: self.predicted(spec, workload, &pool),
            pool,
            gpus_per_replica: Gpus::new(u32::try_from(spec.gpus_per_replica).unwrap_or(0)),
            stated: spec.capacity.as_ref().map_or(Capacity::UNKNOWN, |stated| stated.of_core()),
            paces: None,
            cold_start: spec.stated_cold_start(),
            replicas: seen_pods
                .iter()
                .filter_map(|seen_pod| seen_pod.replica(self.facts, namespace))
                .collect(),
            started: started.collect(),
            engines: engines.collect(),
            lapsed: pods.iter().any(|pod| pod.lapsed.is_some() || is_lost(pod)),
        }
    }

    fn engine(&self, namespace: &str, pod: &PodFacts) -> EngineReading {
        let place = (namespace.to_owned(), pod.name.clone());
        let engine =
            self.signals.engines.get(&place).cloned().unwrap_or_else(EngineReading::unread);
        EngineReading { serves_since: pod.ready, ..engine }
    }

    /// What a replica is made of, where its model and its accelerator are known.
    fn predicted(
        &self,
        spec: &VariantSpec,
        workload: Option<&Workload>,
        pool: &PoolId,
    ) -> Option<PredictedReplica> {
        let accelerator = self.facts.pools.iter().find(|one| one.name_any() == pool.as_str())?;
        let tensor = u32::try_from(spec.gpus_per_replica.max(1)).unwrap_or(1);
        let read = || served::model(workload?, tensor);
        Some(PredictedReplica {
            model: self.service.spec.model.clone().or_else(read)?,
            step_tokens: chunk::of(spec, workload),
            accelerator: accelerator.spec.accelerator.clone(),
            tensor,
        })
    }
}

/// How long a pod took to its first readiness. One that restarted became ready again, and one that drains was ready
/// long ago. Where a pool lends, waiting for a loan to come back is counted apart, by its promise.
fn took(pod: &PodFacts, lends: bool) -> Option<Micros> {
    let ready = pod.ready.filter(|_| pod.restarts == 0 && pod.draining.is_none());
    let from = pod.scheduled.filter(|_| lends).unwrap_or(pod.created);
    ready.and_then(|ready| ready.since(from))
}

impl ObservedMemory {
    /// The picture that readings give, together with those before; and what is known of models beside it.
    pub fn see(&mut self, readings: Readings) -> (Snapshot, BTreeMap<ModelId, KnownModel>) {
        self.estimator.see(readings)
    }

    /// Begins with what stands in a status, where nothing else is known.
    fn recall(&mut self, id: &ModelId, status: Option<&ModelServiceStatus>) {
        let Some(status) = status else { return };
        let text = status.learnt.as_deref();
        let learnt = text.and_then(|text| persist::read(text).ok()).map(|read| read.estimated);
        let mut learnt = learnt.unwrap_or_default();
        let starts = status.variants.iter().filter_map(|variant| {
            Some((VariantName::new(&variant.name).ok()?, measured_start(variant)?))
        });
        learnt.starts.extend(starts);
        // What nobody can have learnt teaches nothing; the governor says so of the same text.
        let _ = self.estimator.restore(id, &learnt);
    }
}

/// How long starts took as a status has it, and how many were measured.
fn measured_start(status: &VariantStatus) -> Option<(Interval<Micros>, usize)> {
    let count = usize::try_from(status.starts_measured).ok()?;
    let span = status.cold_start_seconds.as_ref()?;
    let [low, point, high] = [span.low, span.point, span.high]
        .map(|seconds| Micros::from_seconds(u64::try_from(seconds).unwrap_or(0)));
    Some((Interval::new(low, point, high, Origin::Measured).ok()?, count))
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
    let id = PoolId::new(&pool.name_any()).ok()?;
    let lends = spec.lending.is_some();
    let pool_of = Pool {
        accelerator: AcceleratorId::new(&spec.accelerator).ok()?,
        allocatable: gpus.into_iter().map(seen).collect(),
        held_by_others: Gpus::ZERO,
        shares: spec.shares_of_core(),
        can_grow: spec.can_grow(),
        supply: None,
        take_back: facts.loans.promise(&id).filter(|_| lends),
        limit: spec.limit.and_then(|limit| u32::try_from(limit).ok()).map(Gpus::new),
        prices: spec.prices_of_core().unwrap_or_default(),
    };
    Some((id, pool_of))
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
        take_back: None,
        limit: None,
        prices: BTreeMap::new(),
    }
}

fn unpooled_id() -> PoolId {
    PoolId::new("unpooled").expect("a fixed name")
}
