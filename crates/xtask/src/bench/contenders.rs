//! Who competes: the governor, and every rival at its defaults and over its grid of settings.

use flyball_simulator::fluid::World;
use flyball_simulator::policies::Governor;
use flyball_simulator::policy::Policy;
use flyball_simulator::rivals::{Facts, Fleet, NAMES, Settings, grid, named};
use flyball_simulator::seconds::Seconds;
use flyball_simulator::tune::Candidate;

pub(super) const GOVERNOR: &str = "governor";

/// The rivals of one world.
pub(super) struct Rivals {
    /// Each at its published defaults.
    pub(super) defaults: Vec<Candidate>,
    /// The settings worth trying, one list per rival.
    pub(super) tuned: Vec<Vec<Candidate>>,
}

/// The rivals, told what an operator would know after the training week. They see nothing of the
/// test week.
pub(super) fn rivals(training: &World) -> Rivals {
    let facts = facts(training);
    let models = training.models.len();
    let default = |name: &&str| Some(candidate(name, named(name, &facts).ok()?, models));
    let tuned = |name: &&str| -> Vec<Candidate> {
        grid(name, &facts).into_iter().map(|one| candidate(name, one, models)).collect()
    };
    Rivals {
        defaults: NAMES.iter().filter_map(default).collect(),
        tuned: NAMES.iter().map(tuned).filter(|list| !list.is_empty()).collect(),
    }
}

/// The governor with an empty memory.
pub(super) fn governor(_world: &World) -> Box<dyn Policy> {
    Box::new(Governor::new(flyball_governor::Policy::default()))
}

fn candidate(name: &str, settings: Settings, models: usize) -> Candidate {
    let (policy, label) = (name.to_owned(), settings.label());
    let make =
        move || -> Box<dyn Policy> { Box::new(Fleet::uniform(policy.clone(), &settings, models)) };
    Candidate { policy: name.to_owned(), setting: label, make: Box::new(make) }
}

/// What an operator knows. In a world of several models, of the first: they are scaled so that a
/// replica of each has the same share of its traffic.
fn facts(world: &World) -> Facts {
    let model = &world.models[0];
    let (prompt, _) = model.tokens;
    let minute = (60.0 / model.load.step.get()).round() as usize;
    let week: Vec<(Seconds, f64)> = (0..)
        .zip(model.load.requests.chunks(minute))
        .map(|(index, chunk)| {
            let sum: f64 = chunk.iter().map(|one| f64::from(*one)).sum();
            (Seconds(60.0 * f64::from(index)), sum / (chunk.len() as f64 * model.load.step.get()))
        })
        .collect();
    Facts {
        replica_per_second: model.per_replica,
        prompt_tokens_per_second: model.per_replica * prompt,
        prompt_tokens: prompt,
        max_running: model.per_replica * model.service.get(),
        first_token: model.first_token_objective,
        between_tokens: model.between_tokens_objective,
        cold_start: world.cold_start.quantile(0.5),
        min: model.bounds.min.get(),
        max: model.bounds.max.get(),
        ..Facts::default()
    }
    .with_week(&week)
}
