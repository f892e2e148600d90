//! What a replica is said to carry, against what it carries when `flyball backtest` puts requests through it.

use super::orders;
use super::play::{Player, Question};
use super::verdict::LIMIT;
use super::world::{Engines, Recorded};
use super::written;
use anyhow::{Result, bail};
use flyball_simulator::traffic::Trace;
use std::path::Path;

/// Requests of each try: at one in a hundred missed, sixty misses say whether it is more or less. As many as what is said
/// rests on: close to what an engine can do at all, queues go on growing for hours, and 24,000 requests find a tenth less.
const REQUESTS: usize = 6_000;
/// Tries to either side; each halves what is open.
const TRIES: u32 = 6;
/// How far off what is said may be for this to find it.
const WIDE: f64 = 2.0;
/// A hundredth of what is said leaves an engine idle.
const IDLE: f64 = 0.01;
/// Seconds to the first token, of which the first that an idle engine keeps is asked for. Where none is in reach nothing
/// is carried, and there is no knee.
const FIRST_TOKEN: [u32; 7] = [3, 6, 12, 24, 48, 96, 192];

/// One trace on one model and accelerator.
pub(super) struct Knee {
    pub(super) name: String,
    /// Seconds to the first token that it keeps.
    pub(super) first_token: u32,
    /// Requests per second.
    pub(super) stated: f64,
    pub(super) found: f64,
}

impl Knee {
    pub(super) fn off_pct(&self) -> f64 {
        100.0 * (self.stated / self.found - 1.0).abs()
    }
}

/// Finds it, at the shortest time to the first token that an idle engine keeps.
pub(super) fn find(
    player: &Player,
    folder: &Path,
    (recorded, trace): (&Recorded, &Trace),
    engines: Engines,
) -> Result<Knee> {
    let name = format!("{} {} {}", recorded.name, engines.model, engines.gpu);
    for seconds in FIRST_TOKEN {
        let at = Replayed { player, folder, trace, engines, first_token: format!("{seconds}s") };
        let (_, stated) = at.rate(1.0)?;
        if at.rate(IDLE * stated)?.0 <= LIMIT {
            let found = bisected(&at, stated)?;
            return Ok(Knee { name, first_token: seconds, stated, found });
        }
    }
    bail!("{name}: an idle engine keeps no time to the first token")
}

fn bisected(at: &Replayed<'_>, stated: f64) -> Result<f64> {
    let (mut low, mut high) = (stated / WIDE, stated * WIDE);
    for _ in 0..TRIES {
        let middle = (low * high).sqrt();
        match at.rate(middle)?.0 <= LIMIT {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok((low * high).sqrt())
}

/// Requests of a trace at one replica.
struct Replayed<'a> {
    player: &'a Player,
    folder: &'a Path,
    trace: &'a Trace,
    engines: Engines,
    first_token: String,
}

impl Replayed<'_> {
    /// The share that misses at a rate, and the rate that a replica is said to carry.
    fn rate(&self, rate: f64) -> Result<(f64, f64)> {
        let even = orders::even(self.trace, rate, REQUESTS);
        let answered = self.player.ask(&Question {
            traffic: &written(self.folder, "even", even)?,
            engines: self.engines,
            cold_start: 5,
            most: 1,
            method: "requests",
            policies: &["static@1".to_owned()],
            more: &["--ttft", &self.first_token],
        })?;
        let missed = answered.came.iter().find(|one| one.policy == "static@1");
        Ok((missed.map_or(1.0, |one| one.missed), answered.per_replica))
    }
}
