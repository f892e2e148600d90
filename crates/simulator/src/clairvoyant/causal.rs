//! What somebody would have paid who knows how the load moves, and not what comes next.
//!
//! At each step it sees the load of that step, and knows from the whole recording which loads follow it one cold
//! start later and how often. It orders what is best for these on average, and each order serves once it has
//! started. Starts and stops cost it nothing beyond that, so it is a little better off than any policy that looks
//! at the load alone; one that reads more out of the past may be better still. A yardstick, not a bound.

use super::sizing::SizedLoad;
use super::{ClairvoyantPlan, paid, stretches};

/// With fewer cases that are alike it would know each by heart, and with it the future.
const FEWEST: usize = 10;
/// Levels of load that it tells apart, where the recording is long enough for so many.
const LEVELS: usize = 40;

/// The plan of least `replica seconds + price x missed requests` for who orders `ahead` steps before they serve.
pub fn best(load: &SizedLoad<'_>, ahead: usize, price_of_a_miss: f64) -> ClairvoyantPlan {
    let masked = |step: usize| load.masked.get(step) == Some(&true);
    let mut replicas: Vec<u32> = load.need();
    replicas.iter_mut().take(ahead).for_each(|first| *first = load.initial.max(load.floor));
    let mut seen: Vec<usize> = (0..load.requests.len().saturating_sub(ahead))
        .filter(|step| !masked(*step) && !masked(step + ahead))
        .collect();
    seen.sort_by(|a, b| load.requests[*a].total_cmp(&load.requests[*b]));
    for alike in alike(&seen) {
        let order = order(load, alike, ahead, price_of_a_miss);
        alike.iter().for_each(|step| replicas[step + ahead] = order);
    }
    let stretches = stretches(load.requests.len(), load.masked);
    let (replica_seconds, starts) = paid(&replicas, &stretches, load.step.get(), 0.0, load.initial);
    let scored = stretches.iter().flat_map(|stretch| stretch.steps.clone());
    let over = |t: usize| load.requests[t] - f64::from(replicas[t]) * load.served_per_step;
    let missed = scored.map(|t| over(t).max(0.0)).sum();
    ClairvoyantPlan { replicas, replica_seconds, starts, missed }
}

/// Neighbours by load; the last few join those before them.
fn alike(sorted: &[usize]) -> Vec<&[usize]> {
    let each = FEWEST.max(sorted.len() / LEVELS);
    let groups = (sorted.len() / each).max(1);
    let bounds = |group: usize| match group + 1 == groups {
        true => group * each..sorted.len(),
        false => group * each..(group + 1) * each,
    };
    (0..groups).map(|group| &sorted[bounds(group)]).filter(|group| !group.is_empty()).collect()
}

/// One more replica for as long as the misses that it saves are worth its time.
fn order(load: &SizedLoad<'_>, alike: &[usize], ahead: usize, price_of_a_miss: f64) -> u32 {
    let time = load.step.get() * alike.len() as f64;
    let mut replicas = load.floor;
    loop {
        let below = f64::from(replicas) * load.served_per_step;
        let further =
            |step: &usize| (load.requests[step + ahead] - below).clamp(0.0, load.served_per_step);
        let saved: f64 = alike.iter().map(further).sum();
        // Nothing is worth nothing, whatever the price: infinite times zero is not a number.
        if saved <= 1e-9 || price_of_a_miss * saved <= time {
            return replicas;
        }
        replicas += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clairvoyant::hull;
    use crate::seconds::Seconds;

    fn load(requests: &[f64]) -> SizedLoad<'_> {
        SizedLoad {
            requests,
            masked: &[],
            step: Seconds(60.0),
            served_per_step: 10.0,
            cold_start: Seconds(60.0),
            initial: 1,
            floor: 1,
        }
    }

    /// Every fifth minute a burst.
    fn bursts() -> Vec<f64> {
        (0..200).map(|minute| if minute % 5 == 4 { 40.0 } else { 5.0 }).collect()
    }

    #[test]
    fn who_cannot_see_a_burst_come_holds_for_it_or_misses_it() {
        let bursts = bursts();
        let load = load(&bursts);
        let safe = best(&load, 1, f64::INFINITY);
        // After a quiet minute a burst may follow, after a burst none does.
        assert_eq!(safe.missed, 0.0);
        assert_eq!(safe.replicas[2], 4);
        assert!(safe.replica_seconds > 60.0 * 200.0 * 3.0);
        let careless = best(&load, 1, 0.0);
        assert_eq!((careless.replicas[2], careless.missed), (1, 40.0 * 30.0));
    }

    #[test]
    fn what_serves_before_anything_can_have_started_is_what_was_there() {
        let flood = vec![100.0; 40];
        let plan = best(&load(&flood), 5, f64::INFINITY);
        assert_eq!(plan.replicas[..6], [1, 1, 1, 1, 1, 10]);
        assert_eq!(plan.missed, 5.0 * 90.0);
    }

    #[test]
    fn nobody_who_knows_the_future_pays_more_for_the_same_misses() {
        let bursts = bursts();
        let mut load = load(&bursts);
        // Starts are free here, so they are for both.
        load.cold_start = Seconds(0.0);
        let causal = hull::narrow(0.01 * load.total(), |price| {
            let plan = best(&load, 1, price);
            (plan.replica_seconds, plan.missed)
        });
        assert!(causal.cost >= hull::at_budget(&load, 0.01).cost);
    }

    #[test]
    fn gaps_are_free_and_nothing_is_learnt_from_them() {
        let bursts = bursts();
        let masked: Vec<bool> = (0..200).map(|minute| (50..100).contains(&minute)).collect();
        let load = SizedLoad { masked: &masked, ..load(&bursts) };
        let plan = best(&load, 1, f64::INFINITY);
        assert_eq!(plan.missed, 0.0);
        assert!(
            plan.replica_seconds
                <= best(&SizedLoad { masked: &[], ..load }, 1, f64::INFINITY).replica_seconds
        );
    }
}
