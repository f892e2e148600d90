//! The runs that are replayed: every recorded zone with GPUs, sets of three regions, and all zones of a recording, at six
//! slacks, from starts spread over the part that is judged.

use crate::sources;
use anyhow::{Result, anyhow};
use flyball_core::units::{Gpus, Micros};
use flyball_simulator::training::market::MarketPrices;
use flyball_simulator::training::recording::SpotRecording;
use flyball_simulator::training::{RunToReplay, SpotMarket, prices, recording};
use flyball_training::ZoneName;
use std::collections::BTreeMap;
use std::path::Path;

/// Deadline over work.
pub(super) const SLACKS: [f64; 6] = [1.05, 1.1, 1.25, 1.5, 2.0, 3.0];

/// What decisions may know of hazards before they see a zone is the first half of this recording, so that only the rest of
/// it is judged.
const PRIOR: &str = "availability/1-node/aws-02-15-2023 v100_1";

/// Machines with a V100 are the ones whose zones were recorded the most, and whose prices are known from those days.
const INSTANCE: &str = "p3.2xlarge";

/// From asking for machines to the first new step: what the field's own replays took.
pub(super) const RESTART: Micros = Micros::from_minutes(13);
/// A run of one machine of 8 GPUs; the number only scales dollars, which are compared as shares.
const GPUS: Gpus = Gpus::new(8);

/// How many zones a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    One,
    ThreeRegions,
    AllOfARecording,
}

impl Reach {
    pub(super) const ALL: [Self; 3] = [Self::One, Self::ThreeRegions, Self::AllOfARecording];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::One => "one zone",
            Self::ThreeRegions => "one zone in each of three regions",
            Self::AllOfARecording => "all zones of a recording",
        }
    }
}

/// A set of zones, with the machines that a run there needs at once.
pub(super) struct ZoneSet {
    pub(super) name: String,
    pub(super) reach: Reach,
    pub(super) market: SpotMarket,
    /// The first step that is judged; what comes before is only watched.
    pub(super) from: usize,
    work: Micros,
}

/// One run of one cell.
pub(super) struct World<'a> {
    pub(super) set: &'a ZoneSet,
    pub(super) slack: f64,
    pub(super) run: RunToReplay,
}

/// All sets of zones.
pub(super) fn sets(root: &Path) -> Result<Vec<ZoneSet>> {
    let shared = sources::shared(root)?;
    let failed = |error: flyball_simulator::traffic::load::LoadError| anyhow!("{error}");
    let recordings = recording::open(&shared.join("traces/spot_availability.tar.gz"));
    let known = prices::open(&shared.join("data/spot_aws_us_daily.csv.gz"), INSTANCE);
    let known = known.map_err(failed)?;
    let mut sets = Vec::new();
    for recording in recordings.map_err(failed)?.iter().filter(|one| has_gpus(one)) {
        let names: Vec<ZoneName> = recording.zones.iter().map(|(name, _)| name.clone()).collect();
        let prices = known.market(&names, recording.begins, DAYS, 1);
        for machines in gangs(recording) {
            of_recording(recording, machines, &prices, &mut sets);
        }
    }
    Ok(sets)
}

/// Longer than any recording.
const DAYS: i64 = 60;

fn has_gpus(recording: &SpotRecording) -> bool {
    recording.name.contains("v100") || recording.name.contains("k80")
}

/// All machines that were asked for at once, and half of them where there were sixteen.
fn gangs(recording: &SpotRecording) -> Vec<u16> {
    let most = recording.zones.iter().flat_map(|(_, nodes)| nodes).max().copied().unwrap_or(1);
    if most > 8 { vec![most, most / 2] } else { vec![most] }
}

fn of_recording(
    recording: &SpotRecording,
    machines: u16,
    prices: &MarketPrices,
    sets: &mut Vec<ZoneSet>,
) {
    let names: Vec<ZoneName> = recording.zones.iter().map(|(name, _)| name.clone()).collect();
    let mut regions: BTreeMap<&str, Vec<&ZoneName>> = BTreeMap::new();
    for name in &names {
        let letters = |letter: char| letter.is_ascii_lowercase();
        regions.entry(name.as_str().trim_end_matches(letters)).or_default().push(name);
    }
    let mut add = |zones: &[ZoneName], reach: Reach| {
        let market = SpotMarket::new(recording, zones, machines, prices);
        let from = if recording.name == PRIOR { market.steps / 2 } else { market.steps / 8 };
        let shown: Vec<&str> = zones.iter().map(ZoneName::as_str).collect();
        let day = recording.name.rsplit('/').next().unwrap_or_default();
        let name = format!("{day} x{machines} {}", shown.join("+"));
        // Days of half a minute's steps are few, so that runs there are shorter.
        let hours = if market.step < Micros::from_minutes(1) { 24 } else { 48 };
        let work = Micros::from_minutes(60 * hours);
        sets.push(ZoneSet { name, reach, market, from, work });
    };
    for name in &names {
        add(std::slice::from_ref(name), Reach::One);
    }
    if let [first, second, third] = regions.values().collect::<Vec<_>>()[..] {
        for one in first {
            for two in second {
                for three in third {
                    let zones = [one, two, three].map(|zone| (**zone).clone());
                    add(&zones, Reach::ThreeRegions);
                }
            }
        }
    }
    if names.len() > 3 || regions.len() < 3 {
        add(&names, Reach::AllOfARecording);
    }
}

impl ZoneSet {
    /// Runs at one slack, from so many starts; none if the recording is too short.
    pub(super) fn worlds(&self, slack: f64, starts: usize, save: Micros) -> Vec<World<'_>> {
        let allowed = Micros::new((self.work.get() as f64 * slack) as u64);
        let steps = allowed.get().div_ceil(self.market.step.get()) as usize;
        let Some(room) = self.market.steps.checked_sub(self.from + steps) else {
            return Vec::new();
        };
        let world = |index: usize| {
            let start = self.from + room * index / starts.saturating_sub(1).max(1);
            let (work, restart, gpus) = (self.work, RESTART, GPUS);
            let run = RunToReplay { start, work, allowed, restart, save, gpus };
            World { set: self, slack, run }
        };
        (0..starts).map(world).collect()
    }
}
