//! The status of a model. Pure.

use super::StatusContext;
use super::conditions::{conditions, serving};
use crate::time;
use flyball_core::ids::{ModelId, VariantId};
use flyball_core::snapshot::{Model, Pool, ReplicaState, Snapshot};
use flyball_core::units::{Micros, Money};
use flyball_governor::explain::explain;
use flyball_resources::conditions;
use flyball_resources::model_service::{
    Band, ModelServiceStatus, ReceiptStatus, SpanStatus, VariantStatus,
};
use flyball_resources::{decimal, labels, rfc3339};
use kube::ResourceExt as _;

/// The status of the model of this name.
pub fn status(id: &ModelId, context: &StatusContext<'_>) -> ModelServiceStatus {
    let service = &context.seen.service;
    let before = service.status.clone().unwrap_or_default();
    let now = time::date(context.snapshot.taken_at);
    let decided = context.decided;
    let recommended = decided
        .map(|decided| small(decided.targets.iter().map(|target| target.replicas.get()).sum()));
    let cost_now = context.model.and_then(|model| hourly_cost(context.snapshot, model));
    let cost_then =
        decided.and_then(|decided| decided.expected.hourly_cost).map(|cost| cost.point());
    let money = |money: Money| decimal::text(money.micros(), 2);
    let receipt = decided.map(|decided| {
        let receipt = ReceiptStatus::of(context.decision.id, decided, explain(decided));
        since(receipt, before.decision.as_ref(), recommended == before.recommended_replicas)
    });
    let work = decided.and_then(|decided| decided.receipt.work);
    ModelServiceStatus {
        observed_generation: service.metadata.generation,
        replicas: context.model.map(|model| small(live(model))),
        ready_replicas: context.model.map(|model| small(serving(model))),
        recommended_replicas: recommended,
        selector: Some(format!("{}={}", labels::MODEL, service.name_any())),
        attainment_percent: context
            .attained_per_million
            .map(|share| decimal::text(i64::from(share) * 100, 1)),
        hourly_cost: cost_now.map(money),
        recommended_hourly_cost: cost_then.map(money),
        currency: cost_now.or(cost_then).map(|money| money.currency().to_string()),
        forecast: work.map(|work| Band::of(&work)),
        variants: variants(id, context),
        adopted: context.seen.adopted.clone(),
        decision: receipt,
        learnt: context.learnt.clone().or(before.learnt),
        conditions: conditions::merge(
            &before.conditions,
            &conditions(id, context),
            service.metadata.generation,
            now,
        ),
    }
}

/// A decision that repeats the one before keeps that one's name and time.
fn since(
    receipt: ReceiptStatus,
    before: Option<&ReceiptStatus>,
    same_target: bool,
) -> ReceiptStatus {
    match before {
        Some(before)
            if same_target
                && before.reason == receipt.reason
                && before.bound == receipt.bound
                && receipt.steps.is_empty() =>
        {
            ReceiptStatus { id: before.id.clone(), at: before.at.clone(), ..receipt }
        }
        _ => receipt,
    }
}

fn variants(id: &ModelId, context: &StatusContext<'_>) -> Vec<VariantStatus> {
    let Some(model) = context.model else { return Vec::new() };
    let before = context.seen.service.status.iter().flat_map(|status| &status.variants);
    let before: Vec<&VariantStatus> = before.collect();
    let one =
        |(name, variant): (&flyball_core::ids::VariantName, &flyball_core::snapshot::Variant)| {
            let full = VariantId::new(id.clone(), name.clone());
            let targets = context.decided.into_iter().flat_map(|decided| &decided.targets);
            let target = targets.into_iter().find(|target| target.variant == full);
            let recommended = small(target.map_or(0, |target| target.replicas.get()));
            let same = before
                .iter()
                .find(|one| one.name == name.as_str() && one.recommended == recommended);
            let of = |state| small(variant.count(state).get());
            VariantStatus {
                name: name.to_string(),
                recommended,
                since: same
                    .and_then(|same| same.since.clone())
                    .or_else(|| Some(rfc3339(context.snapshot.taken_at))),
                pending: of(ReplicaState::Pending),
                starting: of(ReplicaState::Starting),
                ready: of(ReplicaState::Ready) + of(ReplicaState::Leaving),
                failing: of(ReplicaState::Unready)
                    + of(ReplicaState::Failed)
                    + of(ReplicaState::Lost),
                draining: of(ReplicaState::Draining),
                prefill_tokens_per_second: variant
                    .capacity
                    .prefill
                    .map(|part| SpanStatus::of(&part, |n| n.get())),
                decode_tokens_per_second: variant
                    .capacity
                    .decode
                    .map(|part| SpanStatus::of(&part, |n| n.get())),
                cold_start_seconds: variant
                    .cold_start
                    .map(|start| SpanStatus::of(&start, Micros::whole_seconds)),
                starts_measured: small(
                    context
                        .seen
                        .starts
                        .get(name)
                        .map_or(0, |count| u32::try_from(*count).unwrap_or(u32::MAX)),
                ),
            }
        };
    model.variants.iter().map(one).collect()
}

/// What an hour of what runs costs: of all of it or of nothing, because a part would look cheap.
pub(super) fn hourly_cost(snapshot: &Snapshot, model: &Model) -> Option<Money> {
    let mut sum: Option<Money> = None;
    for variant in model.variants.values() {
        let pool = snapshot.pools.get(&variant.pool)?;
        for replica in variant.replicas.values().filter(|replica| !replica.nodes.is_empty()) {
            let price = price_of(pool, replica.purchase)?;
            let cost = price.checked_mul(variant.gpus_per_replica.get()).ok()?;
            sum = Some(match sum {
                Some(sum) => sum.checked_add(cost).ok()?,
                None => cost,
            });
        }
    }
    sum
}

fn price_of(pool: &Pool, purchase: Option<flyball_core::snapshot::Purchase>) -> Option<Money> {
    purchase.and_then(|purchase| pool.prices.get(&purchase)).map(|price| price.amount())
}

fn live(model: &Model) -> u32 {
    model.variants.values().map(|variant| variant.live().get()).sum()
}

fn small(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
