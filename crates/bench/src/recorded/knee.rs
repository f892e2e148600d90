//! What a replica is said to carry, against what it carries when `flyball backtest` puts requests through it.

use super::orders;
use super::play::{Player, Question};
use super::world::{Engines, Recorded};
use super::written;
use anyhow::Result;
use flyball_simulator::traffic::Trace;
use std::path::Path;

/// Requests of each try: at one in a hundred missed, sixty misses say whether it is more or less.
const REQUESTS: usize = 6_000;
/// Tries to either side; each halves what is open.
const TRIES: u32 = 6;
/// How far off what is said may be for this to find it.
const WIDE: f64 = 2.0;

/// One trace on one model and accelerator.
pub(super) struct Knee {
    pub(super) name: String,
    /// Requests per second.
    pub(super) stated: f64,
    pub(super) found: f64,
}

impl Knee {
    pub(super) fn off_pct(&self) -> f64 {
        100.0 * (self.stated / self.found - 1.0).abs()
    }
}

/// Finds it.
pub(super) fn find(
    player: &Player,
    folder: &Path,
    (recorded, trace): (&Recorded, &Trace),
    engines: Engines,
) -> Result<Knee> {
    let at = |rate: f64| -> Result<(f64, f64)> {
        let even = orders::even(trace, rate, REQUESTS);
        let traffic = &written(folder, "even", even)?;
        let policies = &["static@1".to_owned()];
        let answered = player.ask(&Question {
            traffic,
            engines,
            cold_start: 5,
            most: 1,
            method: "requests",
            policies,
            more: &[],
        })?;
        let missed = answered.came.iter().find(|one| one.policy == "static@1");
        Ok((missed.map_or(1.0, |one| one.missed), answered.per_replica))
    };
    let (_, stated) = at(1.0)?;
    let (mut low, mut high) = (stated / WIDE, stated * WIDE);
    for _ in 0..TRIES {
        let middle = (low * high).sqrt();
        match at(middle)?.0 <= super::verdict::LIMIT {
            true => low = middle,
            false => high = middle,
        }
    }
    let name = format!("{} {} {}", recorded.name, engines.model, engines.gpu);
    Ok(Knee { name, stated, found: (low * high).sqrt() })
}
