//! Finding the serving coefficients.
//!
//! Latencies and saturated throughputs are fitted together: the first know the host's constants, the
//! second know what large batches reach. A series of many rows must not outvote one of few, so a row
//! weighs one over the root of the rows in its series.

use super::predict::Question;
use super::rows::Row;
use crate::fit::{Unknown, fit_weighted};
use flyball_perf::coefficients::Coefficients;
use flyball_perf::engine::Engine;
use flyball_perf::serving::factors::Factors;
use std::collections::{BTreeMap, BTreeSet};

/// A coefficient: name, start, bounds, and what it means.
pub(super) struct Meaning {
    pub(super) name: &'static str,
    start: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) what: &'static str,
}

const fn meaning(
    name: &'static str,
    start: f64,
    low: f64,
    high: f64,
    what: &'static str,
) -> Meaning {
    Meaning { name, start, low, high, what }
}

pub(super) const GLOBAL: [Meaning; 6] = [
    meaning(
        "expert_bandwidth",
        1.0,
        0.3,
        1.5,
        "bandwidth while reading experts, over that of dense weights",
    ),
    meaning("expert_flops", 1.0, 0.2, 4.0, "grouped products in serving, over their benchmark"),
    meaning(
        "cache_bandwidth",
        1.0,
        0.5,
        1.2,
        "bandwidth while reading the cache, over the kernel's",
    ),
    meaning("collectives", 1.0, 0.3, 3.0, "time of collectives over their measured curve"),
    meaning("step_seconds", 3e-4, 1e-6, 2e-2, "host time per step"),
    meaning("request_seconds", 1e-5, 1e-8, 3e-4, "host time per running request and step"),
];
pub(super) const ENGINE: [Meaning; 2] = [
    meaning(
        "floors",
        1.0,
        0.2,
        5.0,
        "time between and around kernels, over the sum of their floors",
    ),
    meaning(
        "launch_seconds",
        1.5e-4,
        1e-6,
        2e-3,
        "host time per layer of a step outside recorded graphs",
    ),
];
pub(super) const ACCELERATOR: [Meaning; 1] =
    [meaning("host", 1.0, 0.3, 3.0, "how slow the host is, over the usual one")];

/// Pull towards the start. Weak where the rows decide; strong for the host, because an accelerator
/// with few rows would otherwise take their noise.
const PULL: f64 = 0.005;
const HOST_PULL: f64 = 1.0;

/// A row with its question made ready, because a fit asks it thousands of times.
pub(super) struct RowQuestion {
    pub(super) row: Row,
    pub(super) question: Question,
}

impl RowQuestion {
    pub(super) fn new(row: Row) -> Self {
        Self { question: Question::new(&row), row }
    }

    /// What the model says with these coefficients.
    pub(super) fn answer(&self, coefficients: &Coefficients) -> Option<f64> {
        Some(self.question.answer(&self.factors(coefficients)?))
    }

    pub(super) fn factors(&self, coefficients: &Coefficients) -> Option<Factors> {
        Factors::of(coefficients, self.row.engine, self.row.part()).ok()
    }
}

/// Where each row finds its coefficients among the unknowns.
struct Places {
    engines: Vec<Engine>,
    accelerators: Vec<&'static str>,
}

impl Places {
    fn of(rows: &[&RowQuestion]) -> Self {
        let engines: BTreeSet<Engine> = rows.iter().map(|one| one.row.engine).collect();
        let accelerators: BTreeSet<&str> = rows.iter().map(|one| one.row.part()).collect();
        Self {
            engines: engines.into_iter().collect(),
            accelerators: accelerators.into_iter().collect(),
        }
    }

    fn unknowns(&self) -> Vec<Unknown> {
        let unknown = |one: &Meaning| Unknown { start: one.start, low: one.low, high: one.high };
        let engines = self.engines.iter().flat_map(|_| ENGINE.iter().map(unknown));
        let parts = self.accelerators.iter().flat_map(|_| ACCELERATOR.iter().map(unknown));
        GLOBAL.iter().map(unknown).chain(engines).chain(parts).collect()
    }

    fn pulls(&self) -> Vec<f64> {
        let weak = GLOBAL.len() + self.engines.len() * ENGINE.len();
        let hosts = self.accelerators.len() * ACCELERATOR.len();
        [vec![PULL; weak], vec![HOST_PULL; hosts]].concat()
    }

    /// Places of the row's engine and accelerator.
    fn owners(&self, row: &Row) -> (usize, usize) {
        let engine = self.engines.iter().position(|engine| *engine == row.engine);
        let part = self.accelerators.iter().position(|part| *part == row.part());
        let first_part = GLOBAL.len() + self.engines.len() * ENGINE.len();
        (
            GLOBAL.len() + engine.unwrap_or(0) * ENGINE.len(),
            first_part + part.unwrap_or(0) * ACCELERATOR.len(),
        )
    }

    fn coefficients(&self, values: &[f64]) -> Coefficients {
        let named = |list: &[Meaning], from: usize| -> BTreeMap<String, f64> {
            list.iter().zip(&values[from..]).map(|(one, at)| (one.name.to_owned(), *at)).collect()
        };
        let engine = |(place, engine): (usize, &Engine)| {
            let from = GLOBAL.len() + place * ENGINE.len();
            (engine.name().to_owned(), named(&ENGINE, from))
        };
        let first = GLOBAL.len() + self.engines.len() * ENGINE.len();
        let part = |(place, part): (usize, &&str)| {
            ((*part).to_owned(), named(&ACCELERATOR, first + place * ACCELERATOR.len()))
        };
        Coefficients {
            global: named(&GLOBAL, 0),
            engine: self.engines.iter().enumerate().map(engine).collect(),
            accelerator: self.accelerators.iter().enumerate().map(part).collect(),
        }
    }
}

/// The order of `GLOBAL`, `ENGINE` and `ACCELERATOR`.
fn factors(values: &[f64], (engine, part): (usize, usize)) -> Factors {
    Factors {
        expert_bandwidth: values[0],
        expert_flops: values[1],
        cache_bandwidth: values[2],
        collectives: values[3],
        step_seconds: values[4],
        request_seconds: values[5],
        floors: values[engine],
        launch_seconds: values[engine + 1],
        host: values[part],
    }
}

/// One over the root of the rows in a series, with mean 1 within each of the two kinds of row.
fn weights(rows: &[&RowQuestion]) -> Vec<f64> {
    let mut of_series: BTreeMap<(bool, &str), f64> = BTreeMap::new();
    let key = |one: &'_ &RowQuestion| (one.row.saturated(), one.row.series.clone());
    let keys: Vec<(bool, String)> = rows.iter().map(key).collect();
    for (kind, series) in &keys {
        *of_series.entry((*kind, series)).or_default() += 1.0;
    }
    let raw: Vec<f64> =
        keys.iter().map(|(kind, series)| of_series[&(*kind, series.as_str())].powf(-0.5)).collect();
    let mean = |saturated: bool| {
        let of = keys.iter().zip(&raw).filter(|((kind, _), _)| *kind == saturated);
        let (sum, count) = of.fold((0.0, 0.0), |(sum, count), (_, one)| (sum + one, count + 1.0));
        sum / f64::max(count, 1.0)
    };
    let means = [mean(false), mean(true)];
    keys.iter().zip(&raw).map(|((kind, _), one)| one / means[usize::from(*kind)]).collect()
}

/// The coefficients that these rows ask for.
pub(super) fn calibrate(rows: &[&RowQuestion]) -> Coefficients {
    let places = Places::of(rows);
    let owners: Vec<(usize, usize)> = rows.iter().map(|one| places.owners(&one.row)).collect();
    let logs: Vec<f64> = rows.iter().map(|one| one.row.measured.ln()).collect();
    let errors =
        |values: &[f64], out: &mut Vec<f64>| {
            out.extend(rows.iter().zip(&owners).zip(&logs).map(|((one, owners), log)| {
                one.question.answer(&factors(values, *owners)).ln() - log
            }));
        };
    let found = fit_weighted(&places.unknowns(), &places.pulls(), &weights(rows), &errors);
    places.coefficients(&found)
}
