//! Conditions: what is so about a model, and why. Pure.

use super::StatusContext;
use crate::observe::Drain;
use flyball_core::decision::Bound;
use flyball_core::ids::ModelId;
use flyball_core::reason::Reason;
use flyball_core::snapshot::{Freshness, Mode, Model, ReplicaState, Variant};
use flyball_resources::conditions::{ConditionKind, ConditionValue};

/// Everything that is said about a model.
pub(super) fn conditions(id: &ModelId, context: &StatusContext<'_>) -> Vec<ConditionValue> {
    let mut all = vec![target(context), signals(context), capacity(context), objectives(context)];
    let stalled = stalled(context).or_else(|| held(id, context));
    let reconciling = reconciling(context);
    all.insert(0, ready(context, &all, stalled.as_ref()));
    all.extend(drains(context));
    all.extend(names(context));
    all.extend(healthy(context));
    all.extend(known(context));
    all.extend(reachable(context));
    all.extend(reconciling);
    all.extend(stalled);
    all
}

fn one(
    kind: ConditionKind,
    so: Option<bool>,
    reason: Reason,
    message: impl Into<String>,
) -> ConditionValue {
    ConditionValue { kind, so, reason, message: message.into() }
}

fn target(context: &StatusContext<'_>) -> ConditionValue {
    match context.seen.absent.first() {
        None => one(
            ConditionKind::TargetFound,
            Some(true),
            Reason::Steady,
            "all target workloads exist",
        ),
        Some((namespace, kind, name)) => one(
            ConditionKind::TargetFound,
            Some(false),
            Reason::TargetNotFound,
            format!("{kind:?} {namespace}/{name} does not exist"),
        ),
    }
}

fn signals(context: &StatusContext<'_>) -> ConditionValue {
    let Some(model) = context.model else {
        return one(ConditionKind::SignalsFresh, None, Reason::SignalsMissing, "not observed yet");
    };
    let mut bad: Vec<String> = model
        .demand
        .signals()
        .into_iter()
        .filter(|(_, freshness)| *freshness != Freshness::Fresh)
        .map(|(signal, freshness)| format!("{signal} is {}", freshness.name().to_lowercase()))
        .collect();
    bad.extend(context.seen.silent.iter().map(|who| format!("silent: {who}")));
    match model.demand.freshness() {
        Freshness::Fresh => {
            one(ConditionKind::SignalsFresh, Some(true), Reason::Steady, "all signals are fresh")
        }
        Freshness::Stale => one(
            ConditionKind::SignalsFresh,
            Some(false),
            Reason::SignalsStale,
            format!("{}; scale-down paused", bad.join(", ")),
        ),
        Freshness::Missing => one(
            ConditionKind::SignalsFresh,
            Some(false),
            Reason::SignalsMissing,
            format!("{}; scale-down paused", bad.join(", ")),
        ),
    }
}

fn capacity(context: &StatusContext<'_>) -> ConditionValue {
    let Some(decided) = context.decided else {
        return one(
            ConditionKind::CapacityAvailable,
            None,
            Reason::SignalsMissing,
            "no decision yet",
        );
    };
    let short = match decided.bound {
        Bound::Capacity => Reason::CapacityUnavailable,
        Bound::PoolLimit => Reason::LimitReached,
        Bound::Budget => Reason::BudgetReached,
        _ => {
            let message = "the desired capacity is available";
            return one(ConditionKind::CapacityAvailable, Some(true), Reason::Steady, message);
        }
    };
    one(ConditionKind::CapacityAvailable, Some(false), short, short.summary())
}

fn objectives(context: &StatusContext<'_>) -> ConditionValue {
    let (Some(model), Some(met)) = (context.model, context.attained_per_million) else {
        // Without a gateway nobody judges requests, and no signal is missing for that.
        let fresh = |model: &Model| model.demand.freshness() == Freshness::Fresh;
        let reason = match context.decided {
            Some(decided) if context.model.is_some_and(fresh) => decided.reason,
            _ => Reason::SignalsMissing,
        };
        let message = "no request was checked in the last hour";
        return one(ConditionKind::ObjectivesMet, None, reason, message);
    };
    let required = model.objectives.attainment_per_million;
    let percent = |share: u32| format!("{}.{:02} %", share / 10_000, share % 10_000 / 100);
    let message = format!(
        "{} of the last hour's requests met the objectives; the objective is {}",
        percent(met),
        percent(required)
    );
    let reason = context.decided.map_or(Reason::Steady, |decided| decided.reason);
    one(ConditionKind::ObjectivesMet, Some(met >= required), reason, message)
}

/// Says nothing about engines that are not known.
fn drains(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let cuts =
        context.seen.drains.iter().find_map(|((namespace, kind, name), drain)| match drain {
            Drain::Cuts(why) => Some(format!("{kind:?} {namespace}/{name}: {why}")),
            Drain::Finishes | Drain::Unknown => None,
        });
    if let Some(message) = cuts {
        return Some(one(ConditionKind::DrainsSafely, Some(false), Reason::DrainTooShort, message));
    }
    let known = context.seen.drains.iter().any(|(_, drain)| *drain == Drain::Finishes);
    let message = "pods have enough time to drain";
    known.then(|| one(ConditionKind::DrainsSafely, Some(true), Reason::Steady, message))
}

/// Says nothing about names that are nobody else's.
fn names(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let shared = context.seen.shared_names.first()?;
    let more = match shared.with.len() {
        0 | 1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    let message = format!(
        "{} is also a public name of {}{more}: change one of them in spec.names. Requests are \
         counted only for the namespace that gateways send them to",
        shared.name, shared.with[0]
    );
    Some(one(ConditionKind::NamesUnique, Some(false), Reason::NameConflict, message))
}

/// Names a replica that is not well, and says how many more are not. Nothing is said while all are.
fn healthy(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let troubles = &context.seen.troubles;
    let first = troubles.first()?;
    let message = match troubles.len() {
        1 => first.text.clone(),
        count => format!("{}; {} more", first.text, count - 1),
    };
    Some(one(ConditionKind::ReplicasHealthy, Some(false), first.reason, message))
}

/// Says nothing where it is known what a replica of every variant that runs carries.
fn known(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let mut runs = context.model?.variants.values().filter(|variant| !variant.live().is_zero());
    let unknown = |one: &&Variant| !one.capacity.is_known() || one.capacity.is_at_least();
    let capacity = runs.find(unknown)?.capacity;
    let message = match (capacity.prefill, capacity.decode) {
        (Some(read), Some(written)) => format!(
            "a replica was observed at {} prompt and {} output tokens per second; its capacity is \
             at least that, and more traffic will measure it",
            read.point().get(),
            written.point().get()
        ),
        _ => "the capacity of a replica is unknown: replicas do not change until there are some \
              minutes of traffic"
            .to_owned(),
    };
    Some(one(ConditionKind::CapacityKnown, Some(false), Reason::CapacityUnknown, message))
}

/// Says nothing where some number of replicas would do.
fn reachable(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let unreachable = context.model?.unreachable?;
    let message = format!("{unreachable}: no replicas are added for it");
    let reason = Reason::ObjectiveUnreachable;
    Some(one(ConditionKind::ObjectivesReachable, Some(false), reason, message))
}

fn stalled(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let stalled = |reason, message| Some(one(ConditionKind::Stalled, Some(true), reason, message));
    if !context.seen.problems.is_empty() {
        let all: Vec<String> = context.seen.problems.iter().map(ToString::to_string).collect();
        return stalled(Reason::SpecRefused, all.join("; "));
    }
    if let Some((namespace, kind, name)) = context.seen.absent.first() {
        let message =
            format!("{kind:?} {namespace}/{name} does not exist: create it, or correct the name");
        return stalled(Reason::TargetNotFound, message);
    }
    let acts = context.model.is_some_and(|model| model.mode == Mode::Act);
    if !acts {
        return None;
    }
    if let Some(rival) = &context.seen.rival {
        let message = format!(
            "HorizontalPodAutoscaler {rival} sets the same replicas: delete it, or set scaling.mode to Recommend"
        );
        return stalled(Reason::ReplicasOwnedByOther, message);
    }
    if !context.seen.owners_unseen {
        return None;
    }
    let message = "the operator cannot list HorizontalPodAutoscalers here, and one may set the same \
                   replicas: allow it to list and watch horizontalpodautoscalers.autoscaling";
    stalled(Reason::PermissionMissing, message.to_owned())
}

/// What was decided, or was to be written, would break a rule.
fn held(id: &ModelId, context: &StatusContext<'_>) -> Option<ConditionValue> {
    let broken = context.broken.iter().find(|broken| broken.models.contains(id))?;
    Some(one(ConditionKind::Stalled, Some(true), Reason::DecisionHeld, broken.to_string()))
}

fn reconciling(context: &StatusContext<'_>) -> Option<ConditionValue> {
    let (model, decided) = (context.model?, context.decided?);
    let desired: u32 = decided.targets.iter().map(|target| target.replicas.get()).sum();
    let ready = serving(model);
    let waits = context.seen.waits.as_ref();
    if model.mode != Mode::Act || (desired == ready && waits.is_none()) {
        return None;
    }
    let message = format!("{ready} of {desired} replicas are ready");
    let (reason, message) = match waits {
        Some(waits) => (Reason::Draining, format!("{message}; {waits}")),
        None => (decided.reason, message),
    };
    Some(one(ConditionKind::Reconciling, Some(true), reason, message))
}

fn ready(
    context: &StatusContext<'_>,
    parts: &[ConditionValue],
    stalled: Option<&ConditionValue>,
) -> ConditionValue {
    let Some(model) = context.model else {
        let message = stalled.map_or("not observed yet", |stalled| stalled.message.as_str());
        return one(ConditionKind::Ready, Some(false), Reason::SpecRefused, message);
    };
    let unmet =
        |kind: ConditionKind| parts.iter().find(|part| part.kind == kind && part.so == Some(false));
    let wrong = stalled
        .or_else(|| unmet(ConditionKind::TargetFound))
        .or_else(|| unmet(ConditionKind::ObjectivesMet));
    if let Some(wrong) = wrong {
        return one(ConditionKind::Ready, Some(false), wrong.reason, wrong.message.clone());
    }
    let reason = context.decided.map_or(Reason::Steady, |decided| decided.reason);
    match serving(model) {
        0 if model.bounds.may_sleep && reason == Reason::Sleeping => {
            one(ConditionKind::Ready, Some(true), reason, "sleeping; a request wakes it")
        }
        0 => one(ConditionKind::Ready, Some(false), reason, "no replica is ready"),
        1 => one(ConditionKind::Ready, Some(true), reason, "1 replica is ready"),
        ready => {
            one(ConditionKind::Ready, Some(true), reason, format!("{ready} replicas are ready"))
        }
    }
}

/// Replicas that serve, for however long.
pub(super) fn serving(model: &Model) -> u32 {
    let count = |state| model.variants.values().map(|one| one.count(state).get()).sum::<u32>();
    count(ReplicaState::Ready) + count(ReplicaState::Leaving)
}
