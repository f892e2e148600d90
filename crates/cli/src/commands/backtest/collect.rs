//! From what the simulator scored to what is shown: means and intervals over the seeds, causes of
//! cost, and time series short enough to draw.

use flyball_simulator::score::{ModelOutcome, Outcome, TimelineMoment};

use super::answer::{
    CausesView, ComparisonView, DecisionView, HullView, ModelView, PolicyModelView, PolicyView,
    Spread, TimelineView, WorstView, tidy,
};

/// As many steps as a picture has room for: two pixels each.
const STEPS: usize = 480;
/// Moments of a timeline in five minutes.
const FIVE_MINUTES: usize = 5;
const HOUR: f64 = 3_600.0;

/// One policy and what came of it, seed by seed.
#[derive(Clone, Debug, Default)]
pub(in crate::commands) struct Played {
    pub(in crate::commands) name: String,
    pub(in crate::commands) clairvoyant: bool,
    /// In the order of the seeds; the first one has timelines.
    pub(in crate::commands) outcomes: Vec<Outcome>,
    /// Of the first seed.
    pub(in crate::commands) decisions: Vec<DecisionView>,
}

/// What somebody who knew the future would have paid: without misses, seed by seed, and what misses would have saved.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Bound<'a> {
    pub(in crate::commands) played: &'a Played,
    /// Cheapest first.
    pub(in crate::commands) hull: &'a [HullView],
}

impl Bound<'_> {
    /// The part of what it costs to miss nothing that it costs at least to miss this share. A policy that misses half
    /// of all requests is not better than an optimum that misses none.
    fn saved(&self, missed: f64) -> f64 {
        let Some(whole) = self.hull.last().filter(|last| last.gpu_hours > 0.0) else { return 1.0 };
        let corners = self.hull.windows(2).find(|pair| pair[1].missed <= missed);
        let least = match (corners, self.hull.first()) {
            (_, Some(first)) if missed >= first.missed => first.gpu_hours,
            (Some([cheap, dear]), _) if cheap.missed > dear.missed => {
                let part = (missed - dear.missed) / (cheap.missed - dear.missed);
                dear.gpu_hours + part * (cheap.gpu_hours - dear.gpu_hours)
            }
            _ => whole.gpu_hours,
        };
        least / whole.gpu_hours
    }
}

/// What is shown of a policy.
pub(in crate::commands) fn policy(
    played: &Played,
    optimum: Option<Bound<'_>>,
    models: &[ModelView],
    usd_per_gpu_hour: Option<f64>,
) -> PolicyView {
    let over = |of: &dyn Fn(&Outcome) -> f64| {
        Spread::of(&played.outcomes.iter().map(of).collect::<Vec<_>>())
    };
    let summed = |of: fn(&ModelOutcome) -> f64| {
        over(&|outcome: &Outcome| outcome.models.iter().map(of).sum())
    };
    let times_optimum = optimum.map(|optimum| {
        let pairs = played.outcomes.iter().zip(&optimum.played.outcomes);
        let ratios = pairs.map(|(own, best)| {
            own.gpu_seconds / (best.gpu_seconds * optimum.saved(own.missed_share()))
        });
        Spread::of(&ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>())
    });
    let first_token = over(&|outcome| {
        let all = outcome.models.iter().map(|model| model.first_token_p99.get());
        all.filter(|p99| p99.is_finite()).fold(0.0, f64::max)
    });
    let between_tokens = over(&|outcome| {
        let all = outcome.models.iter().map(|model| model.between_tokens_p99.get());
        all.filter(|p99| p99.is_finite()).fold(0.0, f64::max)
    });
    PolicyView {
        name: played.name.clone(),
        clairvoyant: played.clairvoyant,
        gpu_hours: over(&|outcome| outcome.gpu_seconds / HOUR),
        times_optimum,
        missed: over(&Outcome::missed_share),
        // No request waits for no time at all: zero is "not measured".
        ttft_p99_seconds: Some(first_token).filter(|spread| spread.mean > 0.0),
        tpot_p99_seconds: Some(between_tokens).filter(|spread| spread.mean > 0.0),
        starts: summed(|model| f64::from(model.starts)),
        reversals: summed(|model| f64::from(model.reversals)),
        killed: summed(|model| model.killed),
        usd: usd_per_gpu_hour.map(|usd| over(&|outcome| outcome.gpu_seconds / HOUR * usd)),
        worst: played.outcomes.first().map(worst).unwrap_or_default(),
        gpu_hours_by_cause: causes(&played.outcomes, models),
        models: played.outcomes.first().map(|first| of_models(first, models)).unwrap_or_default(),
        decisions: played.decisions.clone(),
    }
}

/// One policy against another. Both saw the same chance, so they are compared seed by seed.
pub(in crate::commands) fn compare(policy: &Played, against: &Played) -> ComparisonView {
    let pairs = || policy.outcomes.iter().zip(&against.outcomes);
    let cost = pairs().map(|(own, other)| own.gpu_seconds / other.gpu_seconds - 1.0);
    let missed = pairs().map(|(own, other)| own.missed_share() - other.missed_share());
    ComparisonView {
        policy: policy.name.clone(),
        against: against.name.clone(),
        cost: Spread::of(&cost.filter(|ratio| ratio.is_finite()).collect::<Vec<_>>()),
        missed: Spread::of(&missed.collect::<Vec<_>>()),
    }
}

fn causes(outcomes: &[Outcome], models: &[ModelView]) -> CausesView {
    let mut sum = CausesView::default();
    for outcome in outcomes {
        let of = |seconds: fn(&ModelOutcome) -> f64| -> f64 {
            let gpus = models.iter().map(|model| f64::from(model.gpus_per_replica));
            outcome.models.iter().zip(gpus).map(|(model, gpus)| seconds(model) * gpus).sum()
        };
        let (useful, starting) = (of(|m| m.useful_seconds), of(|m| m.starting_seconds));
        let (draining, lent) = (of(|m| m.draining_seconds), outcome.lent_gpu_seconds);
        // Engines beyond their targets do more than "capacity", and nobody uses more than is paid.
        let useful = useful.min((outcome.gpu_seconds - starting - draining - lent).max(0.0));
        sum.useful += useful;
        sum.starting += starting;
        sum.draining += draining;
        sum.lent += lent;
        sum.idle += (outcome.gpu_seconds - useful - starting - draining - lent).max(0.0);
    }
    let mean = |seconds: f64| tidy(seconds / HOUR / outcomes.len().max(1) as f64);
    CausesView {
        useful: mean(sum.useful),
        idle: mean(sum.idle),
        starting: mean(sum.starting),
        draining: mean(sum.draining),
        lent: mean(sum.lent),
    }
}

fn of_models(outcome: &Outcome, models: &[ModelView]) -> Vec<PolicyModelView> {
    let both = outcome.models.iter().zip(models);
    both.map(|(came, model)| PolicyModelView {
        model: model.name.clone(),
        gpu_hours: tidy(came.replica_seconds * f64::from(model.gpus_per_replica) / HOUR),
        missed: tidy(came.missed_share()),
        timeline: timeline(&came.timeline),
    })
    .collect()
}

/// The worst five minutes of the model that had the worst.
fn worst(outcome: &Outcome) -> WorstView {
    let by_share = |a: &&ModelOutcome, b: &&ModelOutcome| {
        a.worst_five_minutes.total_cmp(&b.worst_five_minutes)
    };
    let Some(model) = outcome.models.iter().max_by(by_share) else { return WorstView::default() };
    let share = |window: &[TimelineMoment]| {
        let requests: f64 = window.iter().map(|moment| moment.requests).sum();
        let missed: f64 = window.iter().map(|moment| moment.missed).sum();
        if requests > 0.0 { missed / requests } else { 0.0 }
    };
    let windows = model.timeline.windows(FIVE_MINUTES);
    let first_worst = windows.fold(None, |best: Option<(f64, f64)>, window| {
        let (share, at) = (share(window), window[0].at.get());
        if best.is_some_and(|(most, _)| most >= share) { best } else { Some((share, at)) }
    });
    let missed = tidy(model.worst_five_minutes);
    let at_seconds = first_worst.map(|(_, at)| at).filter(|_| missed > 0.0);
    WorstView { missed, at_seconds }
}

/// At most [`STEPS`] steps. A step that lies in a gap for more than half is a gap.
fn timeline(moments: &[TimelineMoment]) -> TimelineView {
    let Some(first) = moments.first() else { return TimelineView::default() };
    let length = moments.get(1).map_or(60.0, |second| second.at.get() - first.at.get());
    let each = moments.len().div_ceil(STEPS).max(1);
    let mut view = TimelineView {
        begins_seconds: first.at.get(),
        step_seconds: length * each as f64,
        ..TimelineView::default()
    };
    for moments in moments.chunks(each) {
        let seen: Vec<&TimelineMoment> = moments.iter().filter(|moment| !moment.masked).collect();
        let known = 2 * seen.len() >= moments.len() && !seen.is_empty();
        let sum =
            |of: fn(&TimelineMoment) -> f64| seen.iter().map(|moment| of(moment)).sum::<f64>();
        let mean =
            |of: fn(&TimelineMoment) -> f64| known.then(|| tidy(sum(of) / seen.len() as f64));
        view.demand.push(mean(|moment| moment.demand));
        view.ready.push(mean(|moment| moment.ready));
        view.starting.push(mean(|moment| moment.starting));
        view.draining.push(mean(|moment| moment.draining));
        let most = seen.iter().map(|moment| moment.waiting).fold(0.0, f64::max);
        view.waiting.push(known.then(|| tidy(most)));
        view.requests.push(known.then(|| tidy(sum(|moment| moment.requests))));
        view.missed.push(known.then(|| tidy(sum(|moment| moment.missed))));
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_simulator::seconds::Seconds;

    fn moment(minute: usize, demand: f64, masked: bool) -> TimelineMoment {
        let at = Seconds(60.0 * minute as f64);
        TimelineMoment {
            at,
            demand,
            requests: 10.0,
            missed: demand,
            masked,
            ..TimelineMoment::default()
        }
    }

    #[test]
    fn a_long_timeline_is_thinned_and_gaps_stay_gaps() {
        // Two minutes per step; the third step is a gap, the fourth is half one.
        let count = 2 * STEPS;
        let gap = |minute| (4..7).contains(&minute);
        let moments: Vec<TimelineMoment> =
            (0..count).map(|minute| moment(minute, (minute % 2) as f64, gap(minute))).collect();
        let view = timeline(&moments);
        assert_eq!((view.demand.len(), view.step_seconds), (STEPS, 120.0));
        assert_eq!(view.demand[..4], [Some(0.5), Some(0.5), None, Some(1.0)]);
        assert_eq!(view.requests[..4], [Some(20.0), Some(20.0), None, Some(10.0)]);
    }

    #[test]
    fn no_policy_is_below_an_optimum_that_misses_as_many() {
        let corner = |gpu_hours, missed| HullView { gpu_hours, missed };
        let hull = [corner(2.0, 0.5), corner(6.0, 0.1), corner(10.0, 0.0)];
        let bound = Bound { played: &Played::default(), hull: &hull };
        let saved = [0.0, 0.05, 0.1, 0.3, 0.5, 0.9].map(|missed| bound.saved(missed));
        assert_eq!(saved, [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]);
        assert_eq!(Bound { hull: &[], ..bound }.saved(0.4), 1.0, "nobody asked what misses save");
    }

    #[test]
    fn the_causes_add_up_to_what_was_paid() {
        let model = ModelOutcome {
            replica_seconds: 3_600.0,
            starting_seconds: 360.0,
            draining_seconds: 36.0,
            useful_seconds: 1_800.0,
            ..ModelOutcome::default()
        };
        let outcome = Outcome { models: vec![model], gpu_seconds: 14_400.0, ..Outcome::default() };
        let models = super::super::tests::models(&[("m", 4)]);
        let causes = causes(&[outcome.clone(), outcome], &models);
        assert_eq!((causes.useful, causes.starting, causes.draining), (2.0, 0.4, 0.04));
        assert!((causes.idle - 1.56).abs() < 1e-9, "{causes:?}");
    }

    #[test]
    fn the_worst_five_minutes_are_found() {
        let mut moments: Vec<TimelineMoment> =
            (0..60).map(|minute| moment(minute, 0.0, false)).collect();
        for moment in &mut moments[20..25] {
            moment.missed = 5.0;
        }
        let model =
            ModelOutcome { worst_five_minutes: 0.5, timeline: moments, ..ModelOutcome::default() };
        let outcome = Outcome { models: vec![model], ..Outcome::default() };
        assert_eq!(worst(&outcome), WorstView { missed: 0.5, at_seconds: Some(1_200.0) });
    }
}
