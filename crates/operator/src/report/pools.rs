//! What there is of a pool, as its status says it. Pure.

use crate::observe::{Borrower, Facts, NodeFacts, purchase};
use crate::time;
use flyball_core::decision::Decision;
use flyball_core::ids::{Namespace, PoolId, RunId, VariantId};
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Purchase, Snapshot};
use flyball_core::units::{Gpus, Money, Replicas};
use flyball_resources::conditions::{self, ConditionKind, ConditionValue};
use flyball_resources::pool::{LendingStatus, LoanStatus, NamespaceUse};
use flyball_resources::{Pool, PoolStatus, decimal};
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What one more or one less used accelerator is written after: `kubectl get pools` need not be newer.
const NUMBERS: Duration = Duration::from_secs(15);

/// A pool and what is seen of it.
#[derive(Clone, Debug)]
pub struct SeenPool {
    /// Its name.
    pub name: String,
    /// As it is stored.
    pub pool: Arc<Pool>,
    /// The most accelerators that there may be.
    pub limit: Option<i32>,
    /// What an hour of what is there costs, if every price is known.
    pub cost: Option<f64>,
    /// What its status should say.
    pub status: PoolStatus,
}

/// Every pool as it is now.
pub fn pools(facts: &Facts, snapshot: &Snapshot, decision: &Decision) -> Vec<SeenPool> {
    facts.pools.iter().map(|pool| seen(facts, pool, snapshot, decision)).collect()
}

/// Whether a status is worth a write, `since` the last one.
pub fn is_news(before: Option<&PoolStatus>, now: &PoolStatus, since: Option<Duration>) -> bool {
    let essence = |status: &PoolStatus| {
        let mut status = PoolStatus {
            used: None,
            used_by_others: None,
            namespaces: Vec::new(),
            ..status.clone()
        };
        for run in status.lending.iter_mut().flat_map(|lending| &mut lending.runs) {
            (run.take_back_gpu_seconds, run.take_back_cost) = (None, None);
        }
        status.conditions.iter_mut().for_each(|one| one.message.clear());
        status
    };
    let Some(before) = before else { return true };
    let due = since.is_none_or(|since| since >= NUMBERS);
    essence(before) != essence(now) || (before != now && due)
}

fn seen(facts: &Facts, pool: &Arc<Pool>, snapshot: &Snapshot, decision: &Decision) -> SeenPool {
    let spec = &pool.spec;
    let offers = |node: &NodeFacts| node.gpus_of(spec).filter(|count| *count > 0);
    let (mut nodes, mut away) = (0_u32, 0_u32);
    let mut gpus: BTreeMap<Purchase, u32> = BTreeMap::new();
    for node in facts.nodes.values() {
        let Some(count) = offers(node) else { continue };
        if !node.usable {
            away += 1;
            continue;
        }
        nodes += 1;
        *gpus.entry(purchase(&node.labels)).or_default() += count;
    }
    let on = |name: &String| facts.nodes.get(name).and_then(offers).is_some();
    let pods = facts.pods.values().flatten();
    let pods = pods.filter(|pod| !pod.over && pod.node.as_ref().is_some_and(on));
    let used = pods.map(|pod| pod.asks.get(&spec.resource_name).copied().unwrap_or(0)).sum::<u32>();
    let there = gpus.values().sum::<u32>();
    let cost = hourly(pool, &gpus);
    let id = PoolId::new(&pool.name_any()).ok();
    let known = id.as_ref().and_then(|id| Some((id, snapshot.pools.get(id)?)));
    let others = known.map_or(0, |(_, known)| known.held_by_others.get());
    let namespaces = known.map_or_else(Vec::new, |(id, known)| uses(id, known, snapshot, decision));
    let counts = Counts { nodes, away, there, used, others };
    let before = pool.status.iter().flat_map(|status| &status.conditions);
    let before: Vec<_> = before.cloned().collect();
    let conditions = [condition(pool, &counts)];
    let status = PoolStatus {
        observed_generation: pool.metadata.generation,
        nodes: Some(small(nodes)),
        gpus: Some(small(there)),
        used: Some(small(used)),
        used_by_others: Some(small(others)),
        namespaces,
        lending: id.as_ref().and_then(|id| lending(facts, pool, id, decision)),
        hourly_cost: cost.map(|cost| decimal::text(cost.micros(), 2)),
        currency: cost.map(|cost| cost.currency().to_string()),
        conditions: conditions::merge(
            &before,
            &conditions,
            pool.metadata.generation,
            time::date(snapshot.taken_at),
        ),
    };
    SeenPool {
        name: pool.name_any(),
        pool: Arc::clone(pool),
        limit: spec.limit,
        cost: cost.map(|cost| cost.micros() as f64 / 1e6),
        status,
    }
}

/// What is lent of a pool that lends.
fn lending(facts: &Facts, pool: &Pool, id: &PoolId, decision: &Decision) -> Option<LendingStatus> {
    pool.spec.lending.as_ref()?;
    let of_pool = facts.borrowers().filter(|(_, borrower, _)| borrower.pool == *id);
    let decided = |run: &RunId| decision.runs.iter().find(|one| one.run == *run);
    let row = |(run, borrower, pool): (&RunId, &Borrower, &Pool)| {
        let held = facts.held_by(borrower, pool);
        let lent = decided(run).is_some_and(|decided| !decided.gpus.is_zero());
        let state = match (borrower.acts, lent, held.is_zero()) {
            (false, ..) => "Shown",
            (true, true, _) => "Lent",
            (true, false, false) => "Returning",
            (true, false, true) => "Waiting",
        };
        let seconds = borrower.thrown_away.whole_seconds();
        let holds = borrower.acts && !held.is_zero();
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let cost = borrower.hourly_micros.map(|hourly| {
            let cost = i128::from(hourly) * i128::from(seconds) / 3_600;
            decimal::text(i64::try_from(cost).unwrap_or(i64::MAX), 2)
        });
        LoanStatus {
            namespace: run.namespace().to_string(),
            name: run.name().to_owned(),
            state: state.to_owned(),
            gpus: small(held.get()),
            needed_gpus: small(borrower.gpus.get()),
            take_back_gpu_seconds: holds
                .then(|| whole(seconds.saturating_mul(u64::from(held.get())))),
            take_back_cost: cost.filter(|_| holds),
        }
    };
    let runs: Vec<LoanStatus> = of_pool.map(row).collect();
    let lent = runs.iter().filter(|run| run.state != "Shown").map(|run| run.gpus);
    let take_backs = facts.loans.take_backs.get(id).cloned().unwrap_or_default();
    let promise = facts.loans.promise(id);
    Some(LendingStatus {
        lent_gpus: lent.fold(0, i32::saturating_add),
        promise_seconds: promise.map(|promise| i64::try_from(promise.whole_seconds()).unwrap_or(0)),
        take_backs: take_backs.count,
        late_take_backs: take_backs.late,
        last_seconds: take_backs.seconds,
        runs,
    })
}

/// What models of each namespace hold of a pool and want of it.
fn uses(
    id: &PoolId,
    pool: &flyball_core::snapshot::Pool,
    snapshot: &Snapshot,
    decision: &Decision,
) -> Vec<NamespaceUse> {
    let mut uses: BTreeMap<&Namespace, (Gpus, Gpus)> =
        pool.shares.keys().map(|namespace| (namespace, (Gpus::ZERO, Gpus::ZERO))).collect();
    let targets = decision.models.iter().flat_map(|model| &model.targets);
    let unconstrained: BTreeMap<&VariantId, Replicas> =
        targets.map(|target| (&target.variant, target.unconstrained)).collect();
    for (variant_id, variant) in snapshot.variants().filter(|(_, variant)| &variant.pool == id) {
        let unconstrained =
            unconstrained.get(&variant_id).copied().unwrap_or_else(|| variant.live());
        let gpus = |replicas| Gpus::for_replicas(variant.gpus_per_replica, replicas);
        let model = snapshot.models.get_key_value(variant_id.model());
        let Some((model, _)) = model else { continue };
        let (used, wants) = uses.entry(model.namespace()).or_default();
        *used = used.saturating_add(gpus(variant.live()));
        *wants = wants.saturating_add(gpus(unconstrained));
    }
    let row = |(namespace, (used, unconstrained)): (&Namespace, (Gpus, Gpus))| NamespaceUse {
        namespace: namespace.to_string(),
        used: small(used.get()),
        wanted: small(unconstrained.get()),
        guaranteed: small(pool.share_of(namespace).guaranteed.get()),
    };
    uses.into_iter().map(row).collect()
}

struct Counts {
    nodes: u32,
    away: u32,
    there: u32,
    used: u32,
    others: u32,
}

fn condition(pool: &Pool, counts: &Counts) -> ConditionValue {
    let ready = |so, reason, message: String| ConditionValue {
        kind: ConditionKind::Ready,
        so: Some(so),
        reason,
        message,
    };
    if let Err(problem) = pool.spec.prices_of_core() {
        return ready(false, Reason::SpecRefused, problem.to_string());
    }
    let Counts { nodes, away, there, used, others } = counts;
    let some =
        |count: u32, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let aside = match away {
        0 => String::new(),
        _ => format!("; {} cannot be used: cordoned or not ready", some(*away, "more node")),
    };
    if *there == 0 && !pool.spec.can_grow() {
        let message = format!(
            "no usable node matches nodeSelector and offers {}{aside}",
            pool.spec.resource_name
        );
        return ready(false, Reason::CapacityUnavailable, message);
    }
    let of_others = match others {
        0 => String::new(),
        _ => format!(", {others} of them by pods that Flyball does not manage"),
    };
    let nodes = some(*nodes, "node");
    let message = format!("{used} of {there} accelerators on {nodes} are used{of_others}{aside}");
    ready(true, Reason::Steady, message)
}

/// What an hour of these costs: of all of them or of nothing, because a part would look cheap.
fn hourly(pool: &Pool, gpus: &BTreeMap<Purchase, u32>) -> Option<Money> {
    let prices = pool.spec.prices_of_core().ok()?;
    let mut sum: Option<Money> = None;
    for (purchase, count) in gpus {
        let part = prices.get(purchase)?.amount().checked_mul(*count).ok()?;
        sum = Some(match sum {
            Some(sum) => sum.checked_add(part).ok()?,
            None => part,
        });
    }
    sum
}

fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::demand::Signals;
    use crate::observe::{JobKind, ObservedMemory, PodFacts, observe};
    use flyball_core::decision::Previous;
    use flyball_core::testing::{hold, model, pool, snapshot, variant};
    use flyball_core::units::{Micros, Timestamp};
    use serde_json::{Value, json};

    fn facts(spec: &Value) -> Facts {
        let pool = json!({
            "apiVersion": "flyball.dev/v1alpha1", "kind": "Pool",
            "metadata": {"name": "h100", "generation": 3}, "spec": spec,
        });
        let node = |gpus: u32, usable: bool, kind: &str| NodeFacts {
            labels: [("karpenter.sh/capacity-type".to_owned(), kind.to_owned())].into(),
            allocatable: [("nvidia.com/gpu".to_owned(), gpus)].into(),
            usable,
            ..NodeFacts::default()
        };
        let pod = |node: &str, gpus: u32, over: bool| PodFacts {
            node: Some(node.to_owned()),
            asks: [("nvidia.com/gpu".to_owned(), gpus)].into(),
            over,
            ..PodFacts::default()
        };
        let pods =
            vec![pod("a", 4, false), pod("b", 2, false), pod("a", 8, true), pod("x", 8, false)];
        Facts {
            pools: vec![Arc::new(serde_json::from_value(pool).unwrap())],
            nodes: [
                ("a".to_owned(), node(8, true, "spot")),
                ("b".to_owned(), node(4, true, "on-demand")),
                ("c".to_owned(), node(8, false, "spot")),
                ("cpu".to_owned(), node(0, true, "on-demand")),
            ]
            .into(),
            pods: [("m".to_owned(), pods)].into(),
            ..Facts::default()
        }
    }

    fn only(spec: &Value) -> SeenPool {
        let facts = facts(spec);
        let time = (Timestamp::from_millis(1_700_000_000_000), Micros::from_seconds(60));
        let seen = observe(&facts, &Signals::default(), &mut ObservedMemory::default(), time);
        let decision = hold(&seen.snapshot, &Previous::none());
        pools(&facts, &seen.snapshot, &decision).remove(0)
    }

    #[test]
    fn nodes_accelerators_and_their_cost_are_counted() {
        let prices = json!([
            {"purchase": "Spot", "perGpuHour": "2.50"}, {"purchase": "OnDemand", "perGpuHour": "6"}]);
        let seen = only(&json!({"accelerator": "h100-sxm-80gb", "prices": prices, "limit": 16}));
        let status = &seen.status;
        assert_eq!((status.nodes, status.gpus, status.used), (Some(2), Some(12), Some(6)));
        assert_eq!(status.used_by_others, Some(6), "no model names the pool");
        assert_eq!(status.hourly_cost.as_deref(), Some("44.00"));
        assert_eq!(status.observed_generation, Some(3));
        let ready = &status.conditions[0];
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Steady"));
        assert_eq!(
            ready.message,
            "6 of 12 accelerators on 2 nodes are used, 6 of them by pods that Flyball does not manage; \
             1 more node cannot be used: cordoned or not ready"
        );
        let unknown = only(&json!({"accelerator": "h100-sxm-80gb", "prices": [prices[0]]}));
        assert_eq!(unknown.status.hourly_cost, None, "a part would look cheap");
    }

    #[test]
    fn a_pool_without_nodes_is_ready_only_if_it_grows() {
        let ready = |growth: &str| {
            let seen = only(&json!({
                "accelerator": "h100-sxm-80gb", "growth": growth, "nodeSelector": {"a": "b"}}));
            assert_eq!((seen.status.gpus, seen.status.used), (Some(0), Some(0)));
            seen.status.conditions[0].clone()
        };
        assert_eq!(ready("Autoscaled").status, "True");
        let fixed = ready("Fixed");
        assert_eq!(
            (fixed.status.as_str(), fixed.reason.as_str()),
            ("False", "CapacityUnavailable")
        );
    }

    #[test]
    fn what_namespaces_hold_and_want_is_told() {
        let (h100, kind) =
            (pool("h100").gpus(16).share("b", 8, 0).share("c", 4, 0), variant("x", "h100"));
        let on = |id: &str, each: u32, ready: usize| {
            model(id).variant(kind.clone().gpus_per_replica(each).ready(ready).draining(1))
        };
        let world = snapshot()
            .pool(h100)
            .model(on("a/m", 1, 2))
            .model(on("b/m", 2, 1))
            .model(on("b/n", 2, 2));
        let world = world.build();
        let mut decision = hold(&world, &Previous::none());
        decision.models[2].targets[0].unconstrained = Replicas::new(5);
        let (id, known) = world.pools.first_key_value().unwrap();
        let row =
            |one: &NamespaceUse| (one.namespace.clone(), one.used, one.wanted, one.guaranteed);
        let rows: Vec<_> = uses(id, known, &world, &decision).iter().map(row).collect();
        let expected = [("a", 2, 2, 0), ("b", 6, 12, 8), ("c", 0, 0, 4)];
        assert_eq!(rows, expected.map(|(name, a, b, c)| (name.to_owned(), a, b, c)));
    }

    #[test]
    fn what_is_lent_to_whom_and_what_taking_it_back_would_cost_is_told() {
        let spec = json!({"accelerator": "h100-sxm-80gb", "lending": {"keepFree": 1}});
        let mut facts = facts(&spec);
        let set = |name: &str| ("m".to_owned(), JobKind::JobSet, name.to_owned());
        let borrower = |name: &str, acts: bool, thrown_away: u64| Borrower {
            gang: set(name),
            pool: "h100".parse().unwrap(),
            gpus: Gpus::new(4),
            acts,
            stopped: false,
            deadline: None,
            last_saved: None,
            save: Some(Micros::from_seconds(5)),
            grace: Micros::from_seconds(30),
            thrown_away: Micros::from_seconds(thrown_away),
            hourly_micros: (thrown_away > 0).then_some(14_400_000),
            value: None,
        };
        let runs = [
            ("m/ft", borrower("ft", true, 900)),
            ("m/later", borrower("later", true, 0)),
            ("m/shown", borrower("shown", false, 0)),
        ];
        facts.loans.borrowers = runs.map(|(id, run)| (id.parse().unwrap(), run)).into();
        for pod in facts.pods.values_mut().flatten() {
            let label = ("jobset.sigs.k8s.io/jobset-name".to_owned(), "ft".to_owned());
            pod.labels.extend((pod.node.as_deref() == Some("a")).then_some(label));
        }
        let time = (Timestamp::from_millis(1_700_000_000_000), Micros::from_seconds(60));
        let seen = observe(&facts, &Signals::default(), &mut ObservedMemory::default(), time);
        let known = &seen.snapshot.pools[&"h100".parse().unwrap()];
        assert_eq!(known.held_by_others.get(), 2, "its four are lent, and no others'");
        assert_eq!(known.take_back, Some(Micros::from_seconds(65)));
        let held = |id: &str| seen.snapshot.runs[&id.parse().unwrap()].gpus.get();
        assert_eq!((held("m/ft"), held("m/later"), held("m/shown")), (4, 0, 0));
        let mut decision = hold(&seen.snapshot, &Previous::none());
        let told = |decision: &Decision| {
            let status = pools(&facts, &seen.snapshot, decision).remove(0).status;
            assert_eq!(status.used_by_others, Some(2));
            status.lending.unwrap()
        };
        let lending = told(&decision);
        assert_eq!((lending.lent_gpus, lending.promise_seconds), (4, Some(65)));
        let states: Vec<_> = lending.runs.iter().map(|run| run.state.as_str()).collect();
        assert_eq!(states, ["Lent", "Waiting", "Shown"]);
        let first = &lending.runs[0];
        assert_eq!(first.take_back_gpu_seconds, Some(3_600));
        assert_eq!(first.take_back_cost.as_deref(), Some("3.60"));
        decision.runs[0].gpus = Gpus::ZERO;
        assert_eq!(told(&decision).runs[0].state, "Returning");
    }

    #[test]
    fn what_is_used_is_written_now_and_then_and_the_rest_at_once() {
        let before = only(&json!({"accelerator": "h100-sxm-80gb"})).status;
        let mut now = before.clone();
        let (soon, late) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(60)));
        assert!(is_news(None, &now, None));
        assert!(!is_news(Some(&before), &now, late));
        now.used = Some(7);
        assert!(!is_news(Some(&before), &now, soon));
        assert!(is_news(Some(&before), &now, late));
        now.gpus = Some(20);
        assert!(is_news(Some(&before), &now, soon));
    }
}
