//! What was seen of an arm, live or simulated, and what it scores.

use super::world::World;
use anyhow::{Context, Result};
use flyball_figures::quantile::median;
use std::fmt::Write as _;
use std::path::Path;

/// One look at the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ReplicaSample {
    /// Seconds after the first request.
    pub(super) at: f64,
    /// Pods that serve and take new requests.
    pub(super) ready: u32,
    /// Pods that will.
    pub(super) starting: u32,
    /// Pods that finish what they have; they hold their accelerators.
    pub(super) draining: u32,
    /// As the Deployment's status counts them, which is what llm-d's guide scores.
    pub(super) replicas: u32,
}

/// What one request got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Got {
    /// Seconds after the first request.
    pub(super) at: f64,
    /// Milliseconds to the first token and between tokens; nothing if it was not answered whole.
    pub(super) times: Option<(f64, f64)>,
}

/// An arm as it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Series {
    pub(super) samples: Vec<ReplicaSample>,
    pub(super) got: Vec<Got>,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Score {
    /// Share of requests that met both objectives, in percent.
    pub(super) attained_percent: f64,
    /// Mean of the Deployment's replicas from the first request until, after the last one, they are
    /// back at the floor.
    pub(super) replicas: f64,
    /// Accelerator-hours held over the same time, by pods that drain too.
    pub(super) gpu_hours: f64,
    /// How long that was.
    pub(super) seconds: f64,
    /// Requests without a whole answer.
    pub(super) unanswered: usize,
}

impl Series {
    /// Scores it up to `end`, or to its own end of the episode.
    pub(super) fn score(&self, world: &World, end: Option<f64>) -> Score {
        let end = end.unwrap_or_else(|| self.episode_end(world));
        let mean = |of: &dyn Fn(&ReplicaSample) -> f64| {
            let nexts = self.samples.iter().skip(1).map(|sample| sample.at).chain([end]);
            let parts = self.samples.iter().zip(nexts).map(|(sample, next)| {
                of(sample) * (next.min(end) - sample.at.clamp(0.0, end)).max(0.0)
            });
            parts.sum::<f64>()
        };
        let held = mean(&|sample| f64::from(sample.ready + sample.starting + sample.draining));
        let attained = self.got.iter().filter(|got| got.met(world)).count();
        Score {
            attained_percent: 100.0 * attained as f64 / self.got.len().max(1) as f64,
            replicas: mean(&|sample| f64::from(sample.replicas)) / end.max(1.0),
            gpu_hours: held * f64::from(world.gpus) / 3_600.0,
            seconds: end,
            unanswered: self.got.iter().filter(|got| got.times.is_none()).count(),
        }
    }

    /// The median request's mean time per token.
    pub(super) fn between_tokens_ms(&self) -> f64 {
        median(self.got.iter().filter_map(|got| got.times.map(|(_, between)| between)))
    }

    /// The first moment after the last request at which no more replicas are there than the fewest
    /// allowed; the last look if there is none.
    fn episode_end(&self, world: &World) -> f64 {
        let last = world.last_request();
        let back =
            self.samples.iter().find(|sample| sample.at >= last && sample.replicas <= world.min);
        back.or(self.samples.last()).map_or(last, |sample| sample.at)
    }

    /// The same, counted from a moment so many seconds later.
    pub(super) fn from(mut self, later: f64) -> Self {
        self.samples.iter_mut().for_each(|sample| sample.at -= later);
        self.got.iter_mut().for_each(|got| got.at -= later);
        self
    }

    /// Both as CSV files, by which the pictures can be drawn again.
    pub(super) fn keep(&self, folder: &Path, name: &str) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut samples = "at_seconds,ready,starting,draining,replicas\n".to_owned();
        for ReplicaSample { at, ready, starting, draining, replicas } in &self.samples {
            let _ = writeln!(samples, "{at:.1},{ready},{starting},{draining},{replicas}");
        }
        let mut got = "at_seconds,first_ms,between_ms\n".to_owned();
        for Got { at, times } in &self.got {
            let _ = match times {
                Some((first, between)) => writeln!(got, "{at:.2},{first:.0},{between:.1}"),
                None => writeln!(got, "{at:.2},,"),
            };
        }
        std::fs::write(folder.join(format!("{name}-replicas.csv")), samples)?;
        std::fs::write(folder.join(format!("{name}-requests.csv")), got)?;
        Ok(())
    }

    /// Whether they were kept: not every run plays every arm.
    pub(super) fn is_stored(folder: &Path, name: &str) -> bool {
        ["replicas", "requests"]
            .iter()
            .all(|part| folder.join(format!("{name}-{part}.csv")).exists())
    }

    /// Reads both again.
    pub(super) fn stored(folder: &Path, name: &str) -> Result<Self> {
        let rows = |part: &str| -> Result<Vec<Vec<String>>> {
            let path = folder.join(format!("{name}-{part}.csv"));
            let mut reader = csv::Reader::from_path(&path)
                .with_context(|| format!("reading {}", path.display()))?;
            reader.records().map(|row| Ok(row?.iter().map(str::to_owned).collect())).collect()
        };
        let mut series = Self::default();
        for row in rows("replicas")? {
            let count = |place: usize| row[place].parse::<u32>();
            series.samples.push(ReplicaSample {
                at: row[0].parse()?,
                ready: count(1)?,
                starting: count(2)?,
                draining: count(3)?,
                replicas: count(4)?,
            });
        }
        for row in rows("requests")? {
            let times = (row[1].parse().ok()).zip(row[2].parse().ok());
            series.got.push(Got { at: row[0].parse()?, times });
        }
        Ok(series)
    }
}

impl Got {
    pub(super) fn met(&self, world: &World) -> bool {
        self.times.is_some_and(|(first, between)| {
            first <= world.first_token_ms && between <= world.between_tokens_ms
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> World {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        World::read(&root, super::super::SCENARIOS[0]).unwrap()
    }

    fn sample(at: f64, replicas: u32) -> ReplicaSample {
        ReplicaSample { at, replicas, ready: replicas, starting: 0, draining: 1 }
    }

    #[test]
    fn an_episode_ends_when_the_floor_is_reached_after_the_last_request() {
        let world = world();
        let last = world.last_request();
        let samples =
            vec![sample(0.0, 3), sample(last, 5), sample(last + 100.0, 3), sample(last + 200.0, 3)];
        let got = vec![
            Got { at: 0.0, times: Some((100.0, 20.0)) },
            Got { at: 1.0, times: Some((100.0, 200.0)) },
            Got { at: 2.0, times: Some((9_000.0, 20.0)) },
            Got { at: 3.0, times: None },
        ];
        let score = Series { samples, got }.score(&world, None);
        assert!((score.seconds - last - 100.0).abs() < 1e-9);
        let mean = (3.0 * last + 5.0 * 100.0) / (last + 100.0);
        assert!((score.replicas - mean).abs() < 1e-9, "{score:?}");
        assert!((score.attained_percent - 25.0).abs() < 1e-9);
        assert_eq!(score.unanswered, 1);
        let hours = (4.0 * last + 6.0 * 100.0) * 2.0 / 3_600.0;
        assert!((score.gpu_hours - hours).abs() < 1e-9);
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let got = vec![Got { at: 1.25, times: Some((100.0, 20.5)) }, Got { at: 2.5, times: None }];
        let series = Series { samples: vec![sample(0.0, 3), sample(5.0, 4)], got };
        series.keep(folder.path(), "a").unwrap();
        assert_eq!(Series::stored(folder.path(), "a").unwrap(), series);
    }
}
