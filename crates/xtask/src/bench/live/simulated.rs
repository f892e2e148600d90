//! The same scenario in the simulator, as a series that is scored alike.

use super::arm::Ruler;
use super::series::{Got, Look, Series};
use super::world::World;
use crate::bench::contenders;
use anyhow::{Context, Result};
use flyball_core::units::Replicas;
use flyball_simulator::cluster::{Answer, History, StartParts, run};
use flyball_simulator::policy::{Order, Policy, Sight};
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
    Ok(Series { looks: looks(history), got: got(history) }.from(world.before))
}

/// Plays it with the replicas that served on the cluster, at the moments at which they did: what then
/// differs is not due to decisions, nor to the chance in them.
pub(super) fn follow(world: &World, live: &Series) -> Result<Series> {
    let mut setup = world.setup.clone();
    setup.models[0].variants[0].cold_start = StartParts::constant(0.0);
    let run = run(&setup, &mut Follows { live, before: world.before });
    let history = run.histories.first().context("a world without a model")?;
    Ok(Series { looks: looks(history), got: got(history) }.from(world.before))
}

/// Wants what served on the cluster.
struct Follows<'a> {
    live: &'a Series,
    before: f64,
}

impl Policy for Follows<'_> {
    fn name(&self) -> &str {
        "as on the cluster"
    }

    fn interval(&self) -> Seconds {
        Seconds(1.0)
    }

    fn decide(&mut self, sight: &Sight<'_>) -> Order {
        let now = sight.now.get() - self.before;
        let until_now = self.live.looks.iter().take_while(|look| look.at <= now);
        let look = until_now.last().or(self.live.looks.first());
        Order::Scale(look.map(|look| Replicas::new(look.ready)).into_iter().collect())
    }
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
