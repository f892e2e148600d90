//! Holds what people wrote against what can be: from a ModelService to what the governor is told.
//!
//! The schema refused most mistakes already. A model with a problem left is not decided about, and its
//! condition says why. `engine` knows what the parsers of engines refuse, `overlay` which fields of a
//! pod owners may set, `standard` what no pod may be. Pure.

mod engine;
mod overlay;
mod standard;
#[cfg(test)]
mod tests;

pub(crate) use overlay::ENGINE;
pub(crate) use standard::beyond;

use flyball_core::ids::{ModelId, VariantName};
use flyball_core::snapshot::Objectives;
use flyball_core::units::{Micros, Replicas, Timestamp};
use flyball_governor::policy::{Aim, Floor, ModelPolicy, Spot, When};
use flyball_resources::model_service::{CalendarEntry, VariantSpec, Weekday, Weekly};
use flyball_resources::{ConversionProblem, ModelService};
use std::collections::BTreeSet;

/// A model as its owner wants it.
#[derive(Clone, Debug)]
pub struct ValidatedSpec {
    /// Its name.
    pub id: ModelId,
    /// Its variants' names, in the order of the spec.
    pub variants: Vec<VariantName>,
    /// How fast it should answer.
    pub objectives: Objectives,
    /// What the governor is told.
    pub policy: ModelPolicy,
}

/// What whoever runs the cluster has set, and owners of models must keep to.
#[derive(Clone, Debug, Default)]
pub struct ValidationRules<'a> {
    /// Resources that are accelerators: a replica gets them by `gpusPerReplica` only.
    pub accelerators: BTreeSet<&'a str>,
    /// Service accounts that engines' pods may use.
    pub accounts: &'a [String],
}

/// Everything that is wanted of a model, or everything that is wrong with it.
pub fn validate(
    model: &ModelService,
    rules: &ValidationRules<'_>,
) -> Result<ValidatedSpec, Vec<ConversionProblem>> {
    let mut problems = Vec::new();
    let mut or_note = |problem: ConversionProblem| problems.push(problem);
    let id = model.id().map_err(&mut or_note).ok();
    let objectives = model.spec.objectives.of_core().map_err(&mut or_note).ok();
    let names = model.spec.variants.iter().map(|variant| variant.id());
    let variants: Vec<_> = names.filter_map(|name| name.map_err(&mut or_note).ok()).collect();
    for variant in &model.spec.variants {
        let _ = variant.pool().map_err(&mut or_note);
    }
    let scaling = &model.spec.scaling;
    let money = |money: &Option<flyball_resources::model_service::MoneySpec>, field: &str| {
        money.as_ref().map(|money| money.of_core(field)).transpose()
    };
    let miss = money(&scaling.miss_cost, "spec.scaling.missCost").map_err(&mut or_note).ok();
    let budget =
        money(&scaling.hourly_budget, "spec.scaling.hourlyBudget").map_err(&mut or_note).ok();
    let floors = scaling.calendar.iter().map(floor);
    let calendar: Vec<_> = floors.filter_map(|floor| floor.map_err(&mut or_note).ok()).collect();
    problems.extend(engine::problems(model));
    problems.extend(overlays(model, rules));
    let (Some(id), Some(objectives), true) = (id, objectives, problems.is_empty()) else {
        return Err(problems);
    };
    let policy = ModelPolicy {
        aim: miss.flatten().map_or(Aim::Objectives, Aim::MissCosts),
        calendar,
        hourly_budget: budget.flatten(),
        spot: Spot {
            most_percent: u32::try_from(scaling.spot_percent).unwrap_or(0),
            ..Spot::default()
        },
        ..ModelPolicy::default()
    };
    Ok(ValidatedSpec { id, variants, objectives, policy })
}

fn overlays(model: &ModelService, rules: &ValidationRules<'_>) -> Vec<ConversionProblem> {
    let of_variant = |variant: &VariantSpec| {
        let overlay = variant.engine.as_ref()?.pod_overlay.as_ref()?;
        let place = format!("spec.variants[{}].engine.podOverlay", variant.name);
        Some(overlay::problems(&place, overlay, rules))
    };
    model.spec.variants.iter().filter_map(of_variant).flatten().collect()
}

fn floor(entry: &CalendarEntry) -> Result<Floor, ConversionProblem> {
    let wrong = |what: &str| ConversionProblem {
        field: "spec.scaling.calendar".to_owned(),
        what: what.to_owned(),
    };
    let when = match (&entry.weekly, &entry.once) {
        (Some(weekly), None) => {
            weekly_when(weekly).ok_or_else(|| wrong("must have a time of day such as \"08:30\""))?
        }
        (None, Some(once)) => {
            let moment = |text: &str| {
                let at = text.parse::<jiff::Timestamp>().ok()?;
                Some(Timestamp::from_micros(u64::try_from(at.as_microsecond()).ok()?))
            };
            let ends = moment(&once.from).zip(moment(&once.until));
            let (from, until) = ends.ok_or_else(|| {
                wrong("must have moments since 1970 such as \"2026-11-20T18:00:00Z\"")
            })?;
            When::Once { from, until }
        }
        _ => return Err(wrong("must have exactly one of `weekly` and `once`")),
    };
    Ok(Floor { when, replicas: Replicas::new(u32::try_from(entry.replicas).unwrap_or(0)) })
}

fn weekly_when(weekly: &Weekly) -> Option<When> {
    let (hours, minutes) = weekly.from.split_once(':')?;
    let day = match weekly.day {
        Weekday::Monday => 0,
        Weekday::Tuesday => 1,
        Weekday::Wednesday => 2,
        Weekday::Thursday => 3,
        Weekday::Friday => 4,
        Weekday::Saturday => 5,
        Weekday::Sunday => 6,
    };
    let minutes = day * 1_440 + hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    Some(When::Weekly {
        from: Micros::from_minutes(minutes),
        length: Micros::from_minutes(u64::try_from(weekly.minutes).ok()?),
    })
}
