//! What traffic looks like: how much, how uneven, over which time.

use super::lengths::Lengths;
use super::{Trace, TrafficRates};
use crate::seconds::Seconds;

/// The outline of some traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficShape {
    /// Requests; of rates what they add up to.
    pub requests: f64,
    /// From the first request to the last, or all windows; gaps are in it.
    pub span: Seconds,
    /// Time without data in it.
    pub gap: Seconds,
    /// Requests per second where there is data.
    pub mean_rate: f64,
    /// Requests per second in the busiest window of the series.
    pub peak_rate: f64,
    /// Standard deviation of the distance between requests over its mean; of rates the mean of
    /// what the clients have, by their requests. Nothing if there are too few.
    pub variation: Option<f64>,
    /// The rate over time.
    pub series: RateSeries,
}

/// Rates of windows; nothing where there is no data.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSeries {
    /// Length of a window.
    pub window: Seconds,
    /// Requests per second.
    pub rates: Vec<Option<f64>>,
}

impl RateSeries {
    /// The peak of a window is looked at by the minute: shorter peaks are the variation's.
    const WINDOW: Seconds = Seconds::MINUTE;

    /// Of a trace. The last window is left out unless it is the only one, because it is cut off.
    pub fn of_trace(trace: &Trace, window: Seconds) -> Self {
        let span = trace.span();
        let whole = ((span.get() / window.get()).floor() as usize).max(1);
        let mut counts = vec![0.0; whole];
        for request in &trace.requests {
            if let Some(count) = counts.get_mut((request.at.get() / window.get()) as usize) {
                *count += 1.0;
            }
        }
        let length = if whole == 1 { span.min(window) } else { window };
        let rates = counts.iter().enumerate().map(|(place, count)| {
            let begin = window * place as f64;
            let known = length - trace.gap_within(begin, begin + length);
            // Of a window that is mostly gap the rest says little.
            (known.get() * 2.0 > length.get()).then(|| count / known.get().max(1e-9))
        });
        Self { window, rates: rates.collect() }
    }

    /// Of rates: their own windows.
    pub fn of_rates(rates: &TrafficRates) -> Self {
        let total = |window| (!rates.is_gap(window)).then(|| rates.total(window));
        Self { window: rates.window, rates: (0..rates.windows()).map(total).collect() }
    }

    fn peak(&self) -> f64 {
        self.rates.iter().flatten().copied().fold(0.0, f64::max)
    }
}

impl TrafficShape {
    /// Of single requests.
    pub fn of_trace(trace: &Trace) -> Self {
        let (span, requests) = (trace.span(), trace.requests.len() as f64);
        let gap = trace.gap_within(Seconds::ZERO, span);
        let series = RateSeries::of_trace(trace, RateSeries::WINDOW);
        let known = (span - gap).get().max(1e-9);
        let mean_rate = if requests < 2.0 { 0.0 } else { requests / known };
        Self {
            requests,
            span,
            gap,
            mean_rate,
            peak_rate: series.peak().max(mean_rate),
            variation: variation(&trace.distances()),
            series,
        }
    }

    /// Of rates.
    pub fn of_rates(rates: &TrafficRates) -> Self {
        let series = RateSeries::of_rates(rates);
        let known = series.rates.iter().flatten();
        let (sum, count) = (known.clone().sum::<f64>(), known.count());
        let windows = rates.clients.iter().flatten().filter(|window| window.variation > 0.0);
        let (weighted, weight) = windows.fold((0.0, 0.0), |(value, weight), window| {
            (value + window.variation * window.rate, weight + window.rate)
        });
        Self {
            requests: sum * rates.window.get(),
            span: rates.window * rates.windows() as f64,
            gap: rates.window * (rates.windows() - count) as f64,
            mean_rate: sum / count.max(1) as f64,
            peak_rate: series.peak(),
            variation: (weight > 0.0).then(|| weighted / weight),
            series,
        }
    }
}

impl Trace {
    /// When the last request comes; traces start at zero.
    pub fn span(&self) -> Seconds {
        self.requests.last().map_or(Seconds::ZERO, |request| request.at)
    }

    /// Time without data between two points.
    pub fn gap_within(&self, begin: Seconds, end: Seconds) -> Seconds {
        let overlap = |gap: &std::ops::Range<Seconds>| {
            (gap.end.min(end) - gap.start.max(begin)).max(Seconds::ZERO)
        };
        self.gaps.iter().map(overlap).fold(Seconds::ZERO, |sum, part| sum + part)
    }

    /// Distances between neighbours, without those over a gap.
    pub fn distances(&self) -> Vec<f64> {
        let pairs = self.requests.windows(2).map(|pair| (pair[0].at, pair[1].at));
        let known = pairs.filter(|(a, b)| self.gap_within(*a, *b) == Seconds::ZERO);
        known.map(|(a, b)| (b - a).get()).collect()
    }

    /// The lengths of all requests.
    pub fn lengths(&self) -> Lengths {
        Lengths::Pairs(self.requests.iter().map(|one| (one.prompt, one.output)).collect())
    }
}

/// Standard deviation over mean.
pub(crate) fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (values.len() > 1 && mean > 0.0).then(|| spread.sqrt() / mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{Request, TrafficWindow};

    fn trace(times: impl IntoIterator<Item = f64>) -> Trace {
        let request =
            |at| Request { at: Seconds(at), prompt: 1, output: 1, blocks: 0..0, patience: None };
        Trace { requests: times.into_iter().map(request).collect(), ..Trace::default() }
    }

    #[test]
    fn gaps_are_in_the_span_and_in_nothing_else() {
        // One a second for two minutes, nothing for three, one a second for two.
        let mut trace = trace((0..=120).chain(300..=420).map(f64::from));
        trace.gaps = vec![Seconds(120.0)..Seconds(300.0)];
        let shape = TrafficShape::of_trace(&trace);
        assert_eq!((shape.span, shape.gap), (Seconds(420.0), Seconds(180.0)));
        assert!((shape.mean_rate - 242.0 / 240.0).abs() < 1e-9);
        assert_eq!(shape.variation, Some(0.0));
        let known: Vec<bool> = shape.series.rates.iter().map(Option::is_some).collect();
        assert_eq!(known, [true, true, false, false, false, true, true]);
    }

    #[test]
    fn rates_add_up_without_gaps() {
        let window = |rate| TrafficWindow { rate, variation: 2.0 };
        let clients = vec![vec![window(1.0), window(0.0), window(3.0)], vec![window(1.0); 3]];
        let mut rates = TrafficRates { window: Seconds(10.0), clients, gaps: Vec::new() };
        rates.gaps.push(1..2);
        let shape = TrafficShape::of_rates(&rates);
        assert_eq!((shape.mean_rate, shape.peak_rate, shape.requests), (3.0, 4.0, 60.0));
        assert_eq!((shape.gap, shape.variation), (Seconds(10.0), Some(2.0)));
    }
}
