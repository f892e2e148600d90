//! The same scenario in the simulator, as a series that is scored alike.

use super::arm::Ruler;
use super::series::{Got, Look, Series};
use super::world::World;
use crate::bench::contenders;
use anyhow::{Context, Result};
use flyball_simulator::cluster::{Answer, History, run};
use flyball_simulator::policy::Policy;
use flyball_simulator::rivals::{Facts, Fleet, named};
use flyball_simulator::seconds::Seconds;

/// Plays it.
pub(super) fn play(world: &World, ruler: Ruler) -> Result<Series> {
    let mut setup = world.setup.clone();
    let mut policy = policy(world, ruler)?;
    if ruler == Ruler::Static {
        setup.models[0].variants[0].initial = world.max;
    }
    let run = run(&setup, policy.as_mut());
    let history = run.histories.first().context("a world without a model")?;
    Ok(Series { looks: looks(history), got: got(history) })
}

fn policy(world: &World, ruler: Ruler) -> Result<Box<dyn Policy>> {
    let facts = Facts {
        first_token: Seconds(world.first_token_ms / 1e3),
        between_tokens: Seconds(world.between_tokens_ms / 1e3),
        cold_start: Seconds(f64::from(world.warm_up_seconds)),
        min: world.min,
        max: world.max,
        ..Facts::default()
    };
    Ok(match ruler {
        Ruler::Governor => contenders::governor(),
        Ruler::Hpa => {
            let law = named("llm-d-slo", &facts).map_err(|refused| anyhow::anyhow!("{refused}"))?;
            Box::new(Fleet::uniform("llm-d-slo", &law, 1))
        }
        // A model without a law keeps what it has.
        Ruler::Static => Box::new(Fleet::new("static", Vec::new())),
    })
}

fn looks(history: &History) -> Vec<Look> {
    let look = |standing: &flyball_simulator::cluster::Standing| Look {
        at: standing.at.get(),
        ready: standing.ready,
        starting: standing.pending + standing.starting,
        draining: standing.draining,
        // A Deployment does not count pods that end.
        replicas: standing.pending + standing.starting + standing.ready,
    };
    history.standings.iter().map(look).collect()
}

fn got(history: &History) -> Vec<Got> {
    let each = history.answers.iter().zip(&history.ends).map(|((at, _), end)| {
        let times = match end {
            Answer::Finished { first, between } => {
                Some(((*first - *at).get() * 1e3, between.get() * 1e3))
            }
            Answer::Killed | Answer::Refused | Answer::HungUp => None,
        };
        Got { at: at.get(), times }
    });
    each.collect()
}
