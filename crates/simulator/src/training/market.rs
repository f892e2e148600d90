//! What a run can buy: in which zones there were spot machines at each step, and what they cost.

use flyball_core::units::{Currency, Gpus, Micros, Money, Price, Timestamp};
use flyball_training::{SpotState, SpotZone, ZoneName};
use std::collections::BTreeMap;

use super::recording::SpotRecording;

/// Zones over time, all with the same steps.
#[derive(Clone, Debug)]
pub struct SpotMarket {
    /// What zones and prices come from, in a few words.
    pub name: String,
    /// When the first step begins.
    pub begins: Timestamp,
    /// How long a step is. Nothing changes within one.
    pub step: Micros,
    /// How many steps there are.
    pub steps: usize,
    /// What a GPU costs for an hour on demand.
    pub on_demand: Price,
    /// The zones, in order of name.
    pub zones: Vec<MarketZone>,
}

/// One zone over time.
#[derive(Clone, Debug)]
pub struct MarketZone {
    /// Its name.
    pub name: ZoneName,
    /// Whether the run could have all of its machines there, by step.
    pub available: Vec<bool>,
    /// The step at which that began to be so.
    since: Vec<u32>,
    /// What a GPU costs for an hour there, by day from the first step on; the last goes on.
    days: Vec<Price>,
}

/// What spot and on-demand machines cost.
#[derive(Clone, Debug)]
pub struct MarketPrices {
    /// A GPU for an hour on demand.
    pub on_demand: Price,
    /// The same on spot, by zone and day; a zone without any costs what `otherwise` says.
    pub spot: BTreeMap<ZoneName, Vec<Price>>,
    /// A GPU for an hour on spot where nothing else is known.
    pub otherwise: Price,
}

const DAY: u64 = 86_400_000_000;

impl SpotMarket {
    /// The market of these zones of a recording, for a run of so many machines. As long as its shortest zone.
    pub fn new(
        recording: &SpotRecording,
        zones: &[ZoneName],
        machines: u16,
        prices: &MarketPrices,
    ) -> Self {
        let chosen = recording.zones.iter().filter(|(name, _)| zones.contains(name));
        let steps = chosen.clone().map(|(_, nodes)| nodes.len()).min().unwrap_or(0);
        let zones = chosen.map(|(name, nodes)| {
            let available: Vec<bool> =
                nodes[..steps].iter().map(|nodes| *nodes >= machines).collect();
            let days = prices.spot.get(name).filter(|days| !days.is_empty()).cloned();
            let days = days.unwrap_or_else(|| vec![prices.otherwise]);
            MarketZone { name: name.clone(), since: since(&available), available, days }
        });
        Self {
            name: recording.name.clone(),
            begins: recording.begins,
            step: recording.step,
            steps,
            on_demand: prices.on_demand,
            zones: zones.collect(),
        }
    }

    /// When a step begins.
    pub fn at(&self, step: usize) -> Timestamp {
        self.begins.saturating_add(self.step.saturating_mul(step as u64))
    }

    /// What is known of the zones at a step: who has machines, since when, and at what price.
    pub fn seen_at(&self, step: usize) -> BTreeMap<ZoneName, SpotZone> {
        let seen = |zone: &MarketZone| {
            let since = self.at(zone.since[step] as usize);
            let state = match zone.available[step] {
                true => SpotState::Available(since),
                false => SpotState::Unavailable(since),
            };
            (zone.name.clone(), SpotZone { price: self.spot_price(zone, step), state })
        };
        self.zones.iter().map(seen).collect()
    }

    /// What a GPU costs for an hour in a zone at a step.
    pub fn spot_price(&self, zone: &MarketZone, step: usize) -> Price {
        let into_day = self.begins.as_micros() % DAY;
        let day = (into_day + self.step.get() * step as u64) / DAY;
        zone.days[(day as usize).min(zone.days.len() - 1)]
    }

    /// The zone of this name.
    pub fn zone(&self, name: &ZoneName) -> Option<&MarketZone> {
        self.zones.iter().find(|zone| zone.name == *name)
    }

    /// Part of all steps from `from` on in which this zone had machines.
    pub fn share(&self, zone: &MarketZone, from: usize) -> f64 {
        let there = zone.available[from..].iter().filter(|there| **there).count();
        there as f64 / (self.steps - from).max(1) as f64
    }
}

fn since(available: &[bool]) -> Vec<u32> {
    let mut begun = 0;
    let mut all = Vec::with_capacity(available.len());
    for (step, there) in available.iter().enumerate() {
        if step > 0 && available[step - 1] != *there {
            begun = step as u32;
        }
        all.push(begun);
    }
    all
}

/// So many dollars for a GPU-hour.
pub fn usd(dollars: f64) -> Price {
    let micros = (dollars.max(0.0) * 1e6).round() as i64;
    Price::per_gpu_hour(Money::from_micros(micros, Currency::USD))
        .unwrap_or_else(|_| unreachable!("it is not negative"))
}

/// What so many GPUs cost for so long, in dollars.
pub fn dollars(price: Price, gpus: Gpus, length: Micros) -> f64 {
    per_hour(price, gpus) * length.as_seconds() / 3_600.0
}

/// What so many GPUs cost for an hour, in dollars.
pub fn per_hour(price: Price, gpus: Gpus) -> f64 {
    price.amount().micros() as f64 / 1e6 * f64::from(gpus.get())
}
