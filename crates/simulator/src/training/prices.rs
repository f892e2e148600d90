//! Recorded prices of machines: CSV with the columns `day_utc,instance,az_id,ondemand_usd_h,spot_usd_h_timeweighted`, one
//! row per day, kind of machine and zone.
//!
//! Clouds name a zone differently for each account (`us-east-1a`) and the same for all (`use1-az4`); a recording has the
//! first and prices have the second, and nobody outside the account knows which is which. The zones of a region are
//! therefore matched in order of their names: each zone then has the prices of one real zone of its region.

use std::collections::BTreeMap;
use std::path::Path;

use flyball_core::units::{Price, Timestamp};
use flyball_training::ZoneName;
use serde::Deserialize;

use super::market::{MarketPrices, usd};
use crate::traffic::load::{LoadError, bytes};

/// Prices of one kind of machine, by zone and day.
#[derive(Clone, Debug, PartialEq)]
pub struct SpotPrices {
    /// Days since the epoch, by id of the zone.
    zones: BTreeMap<String, BTreeMap<i64, f64>>,
    on_demand: BTreeMap<i64, f64>,
}

#[derive(Deserialize)]
struct PriceRow {
    day_utc: jiff::civil::Date,
    instance: String,
    az_id: String,
    ondemand_usd_h: Option<f64>,
    spot_usd_h_timeweighted: Option<f64>,
}

const HINT: &str =
    "it should have the columns day_utc,instance,az_id,ondemand_usd_h,spot_usd_h_timeweighted";

/// Reads the prices of this machine; gzipped or not.
pub fn open(path: &Path, instance: &str) -> Result<SpotPrices, LoadError> {
    read(&path.display().to_string(), &bytes(path)?, instance)
}

fn read(name: &str, content: &[u8], instance: &str) -> Result<SpotPrices, LoadError> {
    let mut prices = SpotPrices { zones: BTreeMap::new(), on_demand: BTreeMap::new() };
    let mut kinds = BTreeMap::new();
    for (row, line) in csv::Reader::from_reader(content).deserialize::<PriceRow>().zip(2u64..) {
        let row =
            row.map_err(|error| LoadError::new(name, error.to_string()).line(line).hint(HINT))?;
        if row.instance != instance {
            *kinds.entry(row.instance).or_insert(0u32) += 1;
            continue;
        }
        let epoch = jiff::civil::date(1970, 1, 1);
        let day = row.day_utc.since(epoch).map_or(0, |span| i64::from(span.get_days()));
        if let Some(spot) = row.spot_usd_h_timeweighted {
            prices.zones.entry(row.az_id).or_default().insert(day, spot);
        }
        if let Some(on_demand) = row.ondemand_usd_h {
            let most = prices.on_demand.entry(day).or_insert(on_demand);
            *most = most.max(on_demand);
        }
    }
    if prices.zones.is_empty() || prices.on_demand.is_empty() {
        let kinds = kinds.into_keys().collect::<Vec<_>>().join(", ");
        let what = format!("no prices of {instance}");
        let hint = if kinds.is_empty() { HINT.to_owned() } else { format!("it has {kinds}") };
        return Err(LoadError::new(name, what).hint(hint));
    }
    Ok(prices)
}

impl SpotPrices {
    /// Prices of these zones from a day on, for so many days, where a machine has so many GPUs.
    pub fn market(
        &self,
        zones: &[ZoneName],
        begins: Timestamp,
        days: i64,
        gpus_per_machine: u32,
    ) -> MarketPrices {
        let first = (begins.as_micros() / 86_400_000_000) as i64;
        let each = |dollars: f64| usd(dollars / f64::from(gpus_per_machine.max(1)));
        let mut spot = BTreeMap::new();
        let mut of_region: BTreeMap<String, Vec<&ZoneName>> = BTreeMap::new();
        for zone in zones {
            of_region.entry(short(zone.as_str())).or_default().push(zone);
        }
        for (region, mut names) in of_region {
            names.sort();
            let ids = || self.zones.iter().filter(|(id, _)| id.starts_with(&format!("{region}-")));
            // Zones that had prices in those days come first: a zone opened later had none.
            let known = ids().filter(|(_, prices)| prices.range(..=first).next_back().is_some());
            let known: Vec<_> = known.map(|(_, prices)| prices).collect();
            for (name, prices) in names.iter().zip(known.iter().cycle()) {
                let by_day: Vec<Price> =
                    (first..first + days.max(1)).map(|day| each(on(prices, day))).collect();
                spot.insert((*name).clone(), by_day);
            }
        }
        let all: Vec<f64> = self.zones.values().map(|prices| on(prices, first)).collect();
        let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
        let on_demand = each(on(&self.on_demand, first));
        MarketPrices { on_demand, spot, otherwise: each(mean) }
    }
}

/// The price of a day: the last that was known then, else the first.
fn on(prices: &BTreeMap<i64, f64>, day: i64) -> f64 {
    let last = prices.range(..=day).next_back().or_else(|| prices.iter().next());
    last.map_or(0.0, |(_, price)| *price)
}

/// `us-east-1a` is in the region `use1`.
fn short(zone: &str) -> String {
    let region = zone.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let parts: Vec<&str> = region.split('-').collect();
    let [area, side, number] = parts.as_slice() else { return region.to_owned() };
    format!("{area}{}{number}", side.chars().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "day_utc,instance,az_id,ondemand_usd_h,spot_usd_h_timeweighted\n\
        2023-02-15,p3.2xlarge,use1-az1,3.06,1.0\n\
        2023-02-15,p3.2xlarge,use1-az4,3.06,1.2\n\
        2023-02-16,p3.2xlarge,use1-az1,3.06,1.1\n\
        2023-02-15,g5.xlarge,use1-az1,1.0,0.3\n";

    #[test]
    fn zones_of_a_region_are_matched_in_order() {
        let prices = read("x", ROWS.as_bytes(), "p3.2xlarge").unwrap();
        let zones = ["us-east-1a", "us-east-1c", "eu-west-1a"].map(ZoneName::new);
        let begins = Timestamp::from_millis(19_403 * 86_400_000);
        let market = prices.market(&zones, begins, 2, 1);
        assert_eq!(market.spot[&zones[0]], [usd(1.0), usd(1.1)]);
        assert_eq!(market.spot[&zones[1]], [usd(1.2), usd(1.2)]);
        assert!(!market.spot.contains_key(&zones[2]));
        assert_eq!((market.on_demand, market.otherwise), (usd(3.06), usd(1.1)));
    }

    #[test]
    fn an_absent_machine_names_those_that_are_there() {
        let error = read("x", ROWS.as_bytes(), "p5.48xlarge").unwrap_err();
        assert_eq!(error.hint, "it has g5.xlarge, p3.2xlarge");
        let error = read("x", b"a,b\n1,2\n", "p3.2xlarge").unwrap_err();
        assert!(error.hint.contains("day_utc"), "{error:?}");
    }
}
