//! One world under one policy.

use super::worlds::{Case, MOST, World};
use anyhow::{Result, ensure};
use flyball_simulator::cluster;
use flyball_simulator::policies::Governor;
use flyball_simulator::policy::ScalingPolicy;
use flyball_simulator::rivals::{RivalFleet, named};
use flyball_simulator::scenario::facts;

/// Share of requests that may miss.
pub(super) const ALLOWED: f64 = 0.01;

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Player {
    /// The governor, told what is right.
    Knew,
    Governor,
    HpaRunning,
    LlmdSlo,
    /// As many replicas as there can be, always.
    Most,
}

impl Player {
    pub(super) const ALL: &[Self] =
        &[Self::Knew, Self::Governor, Self::HpaRunning, Self::LlmdSlo, Self::Most];
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    /// Share of requests.
    pub(super) missed: f64,
    pub(super) replica_hours: f64,
}

impl Came {
    /// The mean.
    pub(super) fn of(seeds: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| seeds.iter().map(of).sum::<f64>() / seeds.len() as f64;
        Self { missed: mean(|one| one.missed), replica_hours: mean(|one| one.replica_hours) }
    }
}

pub(super) fn play(world: &World, case: Case, player: Player, seed: u64) -> Result<Came> {
    let setup = match player {
        Player::Knew => world.known(case, seed)?,
        _ => world.setup(case, seed)?,
    };
    let rival = |name: &str| -> Result<Box<dyn ScalingPolicy>> {
        Ok(Box::new(RivalFleet::uniform(name, &named(name, &facts(&setup, 0))?, 1)))
    };
    let mut policy: Box<dyn ScalingPolicy> = match player {
        Player::Knew | Player::Governor => {
            Box::new(Governor::new(flyball_governor::Policy::default()))
        }
        Player::HpaRunning => rival("hpa-running")?,
        Player::LlmdSlo => rival("llm-d-slo")?,
        Player::Most => rival(&format!("static@{MOST}"))?,
    };
    let run = cluster::run(&setup, policy.as_mut());
    ensure!(run.broken.is_empty(), "{}: {}", world.name, run.broken[0]);
    if std::env::var_os("FLYBALL_BENCH_MINUTES").is_some() {
        show(world, case, player, seed, &run);
    }
    let model = &run.outcome.models[0];
    Ok(Came { missed: run.outcome.missed_share(), replica_hours: model.replica_seconds / 3_600.0 })
}

/// Every minute, to look into one of them.
fn show(world: &World, case: Case, player: Player, seed: u64, run: &cluster::ClusterRun) {
    for moment in &run.outcome.models[0].timeline {
        println!(
            "{} | {} | {player:?} | {seed} | {:5.0} s: demand {:5.2}, ready {:2}, starting {:2}, waiting {:4}",
            world.name,
            case.words(),
            moment.at.get(),
            moment.demand,
            moment.ready,
            moment.starting,
            moment.waiting,
        );
    }
}
