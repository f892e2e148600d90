//! What a clairvoyant would have paid for a fluid world.
//!
//! Its need is the mean of each minute, rounded up to whole replicas: what it must have so that
//! nothing waits beyond the minute. It pays every start in full, as the policies do.

use flyball_simulator::clairvoyant::layers::{LayerRequest, cheapest};
use flyball_simulator::fluid::{FluidModel, FluidWorld};
use flyball_simulator::seconds::Seconds;

/// Hours of one model alone, over the scored part.
pub(super) fn alone(world: &FluidWorld) -> f64 {
    world.models.iter().map(|model| hours(&need(model, world), world)).sum()
}

/// Hours of all models together on accelerators that swap freely.
pub(super) fn pooled(world: &FluidWorld) -> f64 {
    hours(&sums(world), world)
}

/// The most that all models need together.
pub(super) fn pooled_peak(world: &FluidWorld) -> u32 {
    sums(world).into_iter().filter(|one| !one.is_nan()).fold(0.0, f64::max) as u32
}

/// Whole replicas of all models together, by minute; not a number where any is masked.
fn sums(world: &FluidWorld) -> Vec<f64> {
    let each: Vec<Vec<f64>> = world.models.iter().map(|model| need(model, world)).collect();
    let minutes = each.iter().map(Vec::len).min().unwrap_or(0);
    (0..minutes).map(|minute| each.iter().map(|model| model[minute].ceil()).sum()).collect()
}

/// Work of each scored minute, in replicas; not a number where it is masked.
fn need(model: &FluidModel, world: &FluidWorld) -> Vec<f64> {
    let load = &model.load;
    let steps = (60.0 / load.step.get()).round() as usize;
    let from = (world.unscored.get() / load.step.get()).round() as usize;
    let mask = load.mask();
    let minutes = load.work[from..].chunks(steps).zip(mask[from..].chunks(steps));
    let one = |(work, masked): (&[f32], &[bool])| {
        let sum: f64 = work.iter().map(|one| f64::from(*one)).sum();
        let seconds = load.step.get() * work.len() as f64;
        if masked.contains(&true) { f64::NAN } else { sum / seconds / model.per_replica }
    };
    minutes.map(one).collect()
}

fn hours(need: &[f64], world: &FluidWorld) -> f64 {
    let masked: Vec<bool> = need.iter().map(|one| one.is_nan()).collect();
    let whole: Vec<u32> = need.iter().map(|one| one.ceil().max(1.0) as u32).collect();
    let plan = cheapest(&LayerRequest {
        need: &whole,
        masked: &masked,
        step: Seconds::MINUTE,
        cold_start: world.cold_start.mean(),
        initial: whole.first().copied().unwrap_or(0),
        floor: 1,
    });
    plan.replica_seconds / 3600.0
}
