//! From values to places and words: ranges, ticks at round numbers, readable units.

use super::Axis;

/// One axis, ready to draw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    unit: Unit,
    /// What stands at the axis: `TTFT p99 (ms)`.
    pub(super) title: String,
    pub(super) ticks: Vec<Tick>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// How values are written.
#[derive(Clone, Debug, PartialEq)]
enum Unit {
    /// A time, with the seconds that one unit of the values has.
    Time(f64),
    Money {
        per: String,
    },
    Other(String),
}

/// Names and seconds of the units of time, and from how many of them on they are used.
const TIMES: [(&str, f64, f64); 6] = [
    ("d", 86_400.0, 2.0),
    ("h", 3_600.0, 2.0),
    ("min", 60.0, 2.0),
    ("s", 1.0, 1.0),
    ("ms", 1e-3, 1.0),
    ("us", 1e-6, 0.0),
];

/// Whether a linear axis would hide the small values.
pub(super) fn spans_two_decades(values: &[f64]) -> bool {
    let (low, high) = ends(values);
    low > 0.0 && high / low > 100.0
}

fn ends(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

impl Scale {
    /// An axis that holds all values, with about this many ticks.
    pub(super) fn new(axis: &Axis, values: &[f64], about: usize) -> Scale {
        let (low, high) = ends(values);
        // A logarithm needs numbers above zero; the picture is still right on a linear axis.
        let log = axis.log && low > 0.0;
        let unit = Unit::read(&axis.unit);
        let mut scale = Scale { low, high, log, unit, title: String::new(), ticks: Vec::new() };
        // One unit for the whole axis, unless decades lie between its ends.
        let one = (!log).then(|| scale.unit.shown_in(high)).flatten();
        let factor = one.map_or(1.0, |(_, factor)| factor);
        let values = if log { scale.log_ticks(about) } else { scale.linear_ticks(factor, about) };
        let decimals = decimals(&values, factor);
        let label = |value: f64| match (&scale.unit, one) {
            (Unit::Time(own), None) => round_time(value, *own),
            _ => compact(value / factor, decimals, log),
        };
        scale.ticks = values.iter().map(|&value| Tick { value, label: label(value) }).collect();
        let unit = match (&scale.unit, one) {
            (Unit::Time(_), Some((name, _))) => name,
            (Unit::Time(_), None) => "",
            _ => axis.unit.as_str(),
        };
        scale.title = match unit {
            "" => axis.label.clone(),
            unit => format!("{} ({unit})", axis.label),
        };
        scale
    }

    /// 0 at the low end, 1 at the high end; what lies outside is moved to the end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// The value with its unit, as exact as a reader can use.
    pub(super) fn label(&self, value: f64) -> String {
        match &self.unit {
            Unit::Time(_) => {
                let (name, factor) = self.unit.shown_in(value).unwrap_or(("s", 1.0));
                format!("{} {name}", significant(value / factor))
            }
            Unit::Money { per } if value.abs() < 1_000.0 => format!("${value:.2}{per}"),
            Unit::Money { per } => format!("${}{per}", compact(value, 0, false)),
            Unit::Other(unit) if unit.is_empty() => significant(value),
            Unit::Other(unit) => format!("{} {unit}", significant(value)),
        }
    }

    fn linear_ticks(&mut self, factor: f64, about: usize) -> Vec<f64> {
        let (mut low, mut high) = (self.low / factor, self.high / factor);
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() / 10.0 };
            (low, high) = (low - room, high + room);
        }
        let room = (high - low) * 0.03;
        // Near enough to zero, an axis that starts there does not exaggerate.
        low = if low >= 0.0 && low < 0.2 * high { 0.0 } else { low - room };
        high += room;
        let step = round_step((high - low) / about.max(1) as f64);
        let first = (low / step).floor();
        let last = (high / step).ceil();
        (self.low, self.high) = (first * step * factor, last * step * factor);
        let count = (last - first) as usize;
        (0..=count).map(|index| (first + index as f64) * step * factor).collect()
    }

    /// 1, 2, 5, 10 ... or, on a long axis, powers of ten.
    fn log_ticks(&mut self, about: usize) -> Vec<f64> {
        // A little room, so that no point lies on the frame.
        let (low, high) = (self.low / 1.06, self.high * 1.06);
        let first = low.log10().floor() as i32;
        let last = high.log10().ceil() as i32;
        let all: Vec<f64> = (first..=last)
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
            .collect();
        let begin = all.iter().rposition(|value| *value <= low).unwrap_or(0);
        let end = all.iter().position(|value| *value >= high).unwrap_or(all.len() - 1);
        let ticks = &all[begin..=end];
        (self.low, self.high) = (ticks[0], ticks[ticks.len() - 1]);
        if ticks.len() <= 2 * about {
            return ticks.to_vec();
        }
        let every = 1 + (last - first - 1) / about.max(1) as i32;
        let powers = (first..=last).filter(|power| (power - first) % every == 0);
        let powers = powers.map(|power| 10_f64.powi(power));
        powers.filter(|value| (self.low..=self.high).contains(value)).collect()
    }
}

impl Unit {
    fn read(unit: &str) -> Unit {
        if let Some((_, seconds, _)) = TIMES.iter().find(|(name, ..)| *name == unit) {
            return Unit::Time(*seconds);
        }
        match unit.strip_prefix('$') {
            Some(per) => Unit::Money { per: per.to_owned() },
            None => Unit::Other(unit.to_owned()),
        }
    }

    /// The unit of time in which a value reads best, and how many units of the values it has.
    fn shown_in(&self, value: f64) -> Option<(&'static str, f64)> {
        let Unit::Time(own) = self else { return None };
        let seconds = value.abs() * own;
        // A hair less, so that 1 s does not become 1000 ms by rounding.
        let fits = |(_, length, from): &&(&str, f64, f64)| seconds / length >= from - 1e-9;
        let (name, length, _) = if seconds == 0.0 {
            TIMES.iter().find(|(_, length, _)| length == own)?
        } else {
            TIMES.iter().find(fits)?
        };
        Some((name, length / own))
    }
}

/// A tick of a logarithmic axis of times. It is round in its own unit and must stay so: 1000 s is
/// not 16.7 min.
fn round_time(value: f64, own: f64) -> String {
    let decimal = TIMES.iter().filter(|(_, length, _)| *length <= 1.0 && own <= 1.0);
    let fits = decimal.filter(|(_, length, _)| value * own / length >= 1.0 - 1e-9);
    let unit = fits.chain(TIMES.iter().filter(|(_, length, _)| *length == own)).next();
    let (name, length, _) = unit.unwrap_or(&TIMES[3]);
    format!("{} {name}", compact(value * own / length, 0, true))
}

/// 1, 2 or 5 times a power of ten, at least as large.
fn round_step(raw: f64) -> f64 {
    let power = 10_f64.powi(raw.log10().floor() as i32);
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= raw * 0.999);
    digit.unwrap_or(10.0) * power
}

/// How many decimals tell the ticks of a linear axis apart.
fn decimals(values: &[f64], factor: f64) -> usize {
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]) / factor);
    let step = steps.fold(f64::INFINITY, f64::min);
    if step.is_finite() && step > 0.0 {
        (-step.log10().floor()).clamp(0.0, 9.0) as usize
    } else {
        0
    }
}

/// `250`, `1.5`, `20k`, `3M`. On a logarithmic axis each number has the decimals it needs.
fn compact(value: f64, decimals: usize, free: bool) -> String {
    let (scaled, suffix) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    if free || !suffix.is_empty() {
        format!("{}{suffix}", significant(scaled))
    } else {
        format!("{scaled:.decimals$}")
    }
}

/// Three digits that matter, and no zeros after the point.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(unit: &str, log: bool, values: &[f64]) -> (String, Vec<String>) {
        let axis = Axis { log, ..Axis::new("a", unit) };
        let scale = Scale::new(&axis, values, 5);
        (scale.title, scale.ticks.into_iter().map(|tick| tick.label).collect())
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        for (low, high) in [(0.1, 0.9), (3.0, 17.0), (98.0, 102.0), (-5.0, 5.0), (1e-9, 2e9)] {
            let scale = Scale::new(&Axis::new("a", "x"), &[low, high], 6);
            assert!(scale.low <= low && scale.high >= high, "{scale:?}");
            assert!((3..=13).contains(&scale.ticks.len()), "{scale:?}");
            let mut labels: Vec<&str> = scale.ticks.iter().map(|t| t.label.as_str()).collect();
            labels.dedup();
            assert_eq!(labels.len(), scale.ticks.len(), "{scale:?}");
        }
        assert_eq!(labels("x", false, &[0.3, 1.9]).1, ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(labels("x", false, &[12_000.0, 58_000.0]).1[1..3], ["20k", "30k"]);
    }

    #[test]
    fn one_value_or_none_still_makes_an_axis() {
        for values in [&[][..], &[0.0], &[7.0], &[-7.0]] {
            for log in [false, true] {
                let axis = Axis { log, ..Axis::new("a", "x") };
                let scale = Scale::new(&axis, values, 5);
                assert!(scale.ticks.len() >= 2, "{scale:?}");
                assert!((0.0..=1.0).contains(&scale.place(values.first().copied().unwrap_or(0.5))));
            }
        }
    }

    #[test]
    fn times_are_in_the_unit_that_reads_best() {
        let (title, ticks) = labels("ms", false, &[200.0, 900.0]);
        assert_eq!((title.as_str(), ticks[1].as_str()), ("a (ms)", "200"));
        let (title, ticks) = labels("ms", false, &[500.0, 3_500.0]);
        assert_eq!((title.as_str(), ticks[1].as_str()), ("a (s)", "1"));
        assert_eq!(labels("s", false, &[3_600.0, 40_000.0]).0, "a (h)");
        let (title, ticks) = labels("ms", true, &[20.0, 900_000.0]);
        assert_eq!(title, "a");
        assert_eq!(ticks, ["10 ms", "100 ms", "1 s", "10 s", "100 s", "1000 s"]);
        let (_, ticks) = labels("ms", true, &[150.0, 1_500.0]);
        assert_eq!(ticks, ["100 ms", "200 ms", "500 ms", "1 s", "2 s"]);
    }

    #[test]
    fn values_are_said_with_their_unit() {
        let label = |unit, value| Scale::new(&Axis::new("a", unit), &[1.0], 5).label(value);
        assert_eq!(label("$/h", 31.638), "$31.64/h");
        assert_eq!(label("$", 12_345.0), "$12.3k");
        assert_eq!(label("ms", 430.4), "430 ms");
        assert_eq!(label("ms", 1_000.0), "1 s");
        assert_eq!(label("s", 0.0), "0 s");
        assert_eq!(label("tok/s", 0.25), "0.25 tok/s");
    }

    #[test]
    fn two_decades_are_the_border() {
        assert!(spans_two_decades(&[1.0, 101.0]));
        assert!(!spans_two_decades(&[1.0, 100.0]));
        assert!(!spans_two_decades(&[0.0, 1e9]));
        assert!(!spans_two_decades(&[]));
    }
}
