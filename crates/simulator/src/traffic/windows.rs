//! Rates at points in time become windows of one length.

use std::collections::BTreeMap;

use super::gaps;
use super::lengths::{LengthQuantiles, Lengths};
use super::load_error::LoadError;
use super::loaded::{LoadedPart, Traffic};
use super::{TrafficRates, TrafficWindow};
use crate::seconds::Seconds;
use flyball_core::quantile::median;

/// The rate of one client from one moment on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Start of the window in seconds, from wherever the source counts.
    pub(crate) at: f64,
    pub(crate) client: String,
    /// Requests per second; nothing where the source has no data.
    pub(crate) rate: Option<f64>,
    pub(crate) variation: Option<f64>,
    /// Mean tokens.
    pub(crate) prompt: Option<f64>,
    pub(crate) output: Option<f64>,
}

/// Where the first window starts, and the rates of each model from there on.
pub(crate) fn parts(
    file: &str,
    models: BTreeMap<String, Vec<Point>>,
) -> Result<(f64, Vec<LoadedPart>), LoadError> {
    let zero = models.values().flatten().map(|point| point.at).min_by(f64::total_cmp);
    let zero = zero.unwrap_or(0.0);
    let length = step(models.values().flatten().map(|point| point.at)).ok_or_else(|| {
        LoadError::new(file, "one window is not enough to know how long a window is")
            .hint("give at least two rows with different times")
    })?;
    let place = |at: f64| ((at - zero) / length).round() as usize;
    let last = models.values().flatten().map(|point| place(point.at)).max().unwrap_or(0);
    // A stray time far away would ask for more windows than there is memory.
    if last > MOST_WINDOWS {
        let what = format!("the times span {last} windows of {length} s");
        return Err(LoadError::new(file, what).hint("check for a wrong time, or one in ms"));
    }
    let parts = models.into_iter().map(|(model, points)| {
        let lengths = means(&points);
        let mut known = vec![false; last + 1];
        let mut clients: BTreeMap<String, Vec<TrafficWindow>> = BTreeMap::new();
        for point in points {
            let Some(rate) = point.rate else { continue };
            let series = clients
                .entry(point.client)
                .or_insert_with(|| vec![TrafficWindow::default(); last + 1]);
            // Without a word about it, requests come independently of each other.
            let variation = point.variation.unwrap_or(1.0);
            series[place(point.at)] = TrafficWindow { rate, variation };
            known[place(point.at)] = true;
        }
        let rates = TrafficRates {
            window: Seconds(length),
            clients: clients.into_values().collect(),
            gaps: gaps::runs(known.iter().map(|known| !known)),
        };
        let model = Some(model).filter(|name| !name.is_empty());
        LoadedPart { model, traffic: Traffic::Rates(rates), lengths }
    });
    Ok((zero, parts.collect()))
}

/// Windows of one second for four months.
const MOST_WINDOWS: usize = 10_000_000;

/// The usual distance of two neighbouring times.
fn step(times: impl Iterator<Item = f64>) -> Option<f64> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut apart: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_by(f64::total_cmp);
    median(&apart).filter(|step| *step > 0.0)
}

/// Means of windows stand for the requests in them. Single requests spread wider.
fn means(points: &[Point]) -> Option<Lengths> {
    let of = |pick: fn(&Point) -> Option<f64>| {
        let values = points.iter().filter_map(|point| Some((pick(point)?, point.rate?)));
        LengthQuantiles::weighted(values.collect())
    };
    let (prompt, output) = (of(|point| point.prompt), of(|point| point.output));
    (!prompt.is_empty() && !output.is_empty()).then_some(Lengths::Tables { prompt, output })
}
