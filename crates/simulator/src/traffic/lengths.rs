//! How long prompts and answers are: drawn together from real requests, or from two tables.

use std::collections::BTreeMap;

use rand::RngExt;

use super::load_error::LoadError;
use crate::chance::Chance;

/// Tokens of prompts and answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Requests that were seen; a draw takes one of them, so long prompts keep their answers.
    Pairs(Vec<(u32, u32)>),
    /// Two tables, drawn from independently, because their source publishes no pairs.
    Tables {
        /// Of prompts.
        prompt: LengthQuantiles,
        /// Of answers.
        output: LengthQuantiles,
    },
}

impl Lengths {
    /// Tokens of one request: prompt, answer.
    pub fn draw(&self, chance: &mut Chance) -> (u32, u32) {
        match self {
            Self::Pairs(pairs) if pairs.is_empty() => (1, 1),
            Self::Pairs(pairs) => pairs[chance.random_range(0..pairs.len())],
            Self::Tables { prompt, output } => {
                let mut one = |table: &LengthQuantiles| table.at(chance.random::<f64>());
                // Half a token is none; nobody sends none or waits for none.
                let whole = |tokens: f64| tokens.round().max(1.0) as u32;
                (whole(one(prompt)), whole(one(output)))
            }
        }
    }

    /// Mean tokens of prompts and of answers.
    pub fn means(&self) -> (f64, f64) {
        match self {
            Self::Pairs(pairs) => {
                let count = pairs.len().max(1) as f64;
                let sum = |of: fn(&(u32, u32)) -> u32| {
                    pairs.iter().map(|pair| f64::from(of(pair))).sum::<f64>()
                };
                (sum(|pair| pair.0) / count, sum(|pair| pair.1) / count)
            }
            Self::Tables { prompt, output } => (prompt.mean(), output.mean()),
        }
    }

    /// Tokens below which this share of the prompts and of the answers lie.
    pub fn quantiles(&self, share: f64) -> (f64, f64) {
        match self {
            Self::Pairs(pairs) => {
                let of = |pick: fn(&(u32, u32)) -> u32| {
                    let mut values: Vec<u32> = pairs.iter().map(pick).collect();
                    values.sort_unstable();
                    let place = (values.len().saturating_sub(1)) as f64 * share;
                    values.get(place.round() as usize).copied().map_or(0.0, f64::from)
                };
                (of(|pair| pair.0), of(|pair| pair.1))
            }
            Self::Tables { prompt, output } => (prompt.at(share), output.at(share)),
        }
    }
}

/// Values by the share that lies below them; between two entries it is a straight line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LengthQuantiles {
    /// Share and value, both rising.
    points: Vec<(f64, f64)>,
}

impl LengthQuantiles {
    /// From shares between zero and one and their values, in any order.
    pub fn new(mut points: Vec<(f64, f64)>) -> Self {
        points.retain(|(share, value)| (0.0..=1.0).contains(share) && value.is_finite());
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Rounded sources may step back by a hair; a quantile never falls.
        let mut least = f64::NEG_INFINITY;
        for point in &mut points {
            least = least.max(point.1);
            point.1 = least;
        }
        Self { points }
    }

    /// From values that count more or less, such as means of windows with their requests.
    pub fn weighted(mut values: Vec<(f64, f64)>) -> Self {
        values.retain(|(value, weight)| value.is_finite() && *weight > 0.0);
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all: f64 = values.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let mut points = Vec::with_capacity(values.len());
        for (value, weight) in values {
            // The middle of its own weight, so that a single value stands for all shares.
            points.push(((below + weight / 2.0) / all, value));
            below += weight;
        }
        Self { points }
    }

    /// From a histogram: counts of values up to each bound, as Prometheus has them. The last
    /// bound may be endless; what lies beyond the one before it is taken as that bound, because
    /// nothing more is known.
    pub fn from_buckets(buckets: &[(f64, f64)]) -> Self {
        let all = buckets.last().map_or(0.0, |(_, count)| *count);
        if all <= 0.0 {
            return Self::default();
        }
        let mut points = vec![(0.0, 0.0)];
        for (bound, count) in buckets {
            let share = (count / all).clamp(0.0, 1.0);
            let last = points[points.len() - 1];
            if share > last.0 {
                points.push((share, if bound.is_finite() { *bound } else { last.1 }));
            } else if share == 0.0 && bound.is_finite() {
                // Nothing is so small: the first values start here.
                points[0].1 = *bound;
            }
        }
        Self { points }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The value below which this share lies.
    pub fn at(&self, share: f64) -> f64 {
        let above = self.points.partition_point(|(known, _)| *known < share);
        match (above.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(above)) {
            (Some(low), Some(high)) => {
                let part = (share - low.0) / (high.0 - low.0);
                low.1 + part * (high.1 - low.1)
            }
            (Some(only), None) | (None, Some(only)) => only.1,
            (None, None) => 0.0,
        }
    }

    /// The mean of draws.
    pub fn mean(&self) -> f64 {
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return 0.0;
        };
        let between: f64 = self
            .points
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0)
            .sum();
        first.0 * first.1 + between + (1.0 - last.0) * last.1
    }
}

/// Reads tables of quantiles: `model,kind,quantile,tokens`, with `p50` and the like as quantile
/// and `input_tokens` or `output_tokens` as kind. Other kinds and rows without a percentile (such
/// as `mean`) are left out.
pub fn tables(file: &str, text: &[u8]) -> Result<BTreeMap<String, Lengths>, LoadError> {
    let text = std::str::from_utf8(text)
        .map_err(|_| LoadError::new(file, "not a text file").hint(TABLE_HINT))?;
    let mut lines = text.lines();
    if lines.next().map(str::trim) != Some("model,kind,quantile,tokens") {
        let what = "expected a table of lengths with the header model,kind,quantile,tokens";
        return Err(LoadError::new(file, what).line(1).hint(TABLE_HINT));
    }
    let mut found: BTreeMap<&str, [Vec<(f64, f64)>; 2]> = BTreeMap::new();
    for (number, line) in lines.enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: String| LoadError::new(file, what).line(number as u64 + 2);
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [model, kind, quantile, tokens] = cells[..] else {
            return Err(wrong(format!("{} cells instead of 4", cells.len())).hint(TABLE_HINT));
        };
        let place = match kind {
            "input_tokens" => 0,
            "output_tokens" => 1,
            _ => continue,
        };
        let Some(percent) = quantile.strip_prefix('p') else { continue };
        let number = |text: &str| {
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
            value.ok_or_else(|| wrong(format!("{text:?} is not a number")).hint(TABLE_HINT))
        };
        let point = (number(percent)? / 100.0, number(tokens)?);
        found.entry(model).or_default()[place].push(point);
    }
    let lengths = found.into_iter().filter(|(_, [prompt, output])| {
        // One without the other says nothing about a request.
        !prompt.is_empty() && !output.is_empty()
    });
    Ok(lengths
        .map(|(model, [prompt, output])| {
            let (prompt, output) = (LengthQuantiles::new(prompt), LengthQuantiles::new(output));
            (model.to_owned(), Lengths::Tables { prompt, output })
        })
        .collect())
}

const TABLE_HINT: &str = "rows look like: language/m-large,input_tokens,p50,519";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::{Purpose, stream};

    #[test]
    fn a_table_is_read_and_drawn_from() {
        let text = b"model,kind,quantile,tokens\na,input_tokens,mean,50\na,input_tokens,p0,0\n\
                     a,input_tokens,p100,100\na,output_tokens,p0,10\na,output_tokens,p50,10\n\
                     a,output_tokens,p100,20\nb,image_tokens,p0,1\n";
        let tables = tables("t.csv", text).unwrap();
        assert_eq!(tables.len(), 1);
        let lengths = &tables["a"];
        // By hand: a line from 0 to 100; and 10 for one half, a line from 10 to 20 for the other.
        assert_eq!(lengths.means(), (50.0, 12.5));
        assert_eq!(lengths.quantiles(0.75), (75.0, 15.0));
        let mut chance = stream(7, Purpose::Lengths, 0);
        let draws: Vec<_> = (0..20_000).map(|_| lengths.draw(&mut chance)).collect();
        let (prompt, output) = Lengths::Pairs(draws).means();
        assert!((prompt - 50.0).abs() < 1.0 && (output - 12.5).abs() < 0.2, "{prompt} {output}");
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said_with_its_line() {
        let wrong = |text: &str| tables("t.csv", text.as_bytes()).unwrap_err().to_string();
        assert!(wrong("time,input\n").starts_with("t.csv line 1: expected a table of lengths"));
        let text = "model,kind,quantile,tokens\na,input_tokens,p50,many\n";
        assert_eq!(wrong(text), "t.csv line 2: \"many\" is not a number");
    }

    #[test]
    fn histograms_become_quantiles() {
        let buckets = [(10.0, 0.0), (20.0, 50.0), (50.0, 100.0), (f64::INFINITY, 100.0)];
        let table = LengthQuantiles::from_buckets(&buckets);
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|s| table.at(s)),
            [10.0, 15.0, 20.0, 35.0, 50.0]
        );
        assert!(LengthQuantiles::from_buckets(&[(1.0, 0.0)]).is_empty());
        let endless = LengthQuantiles::from_buckets(&[(10.0, 1.0), (f64::INFINITY, 2.0)]);
        assert_eq!(endless.at(1.0), 10.0);
    }

    #[test]
    fn weighted_values_stand_for_their_weight() {
        let one = LengthQuantiles::weighted(vec![(5.0, 3.0)]);
        assert_eq!((one.at(0.0), one.at(1.0), one.mean()), (5.0, 5.0, 5.0));
        let two = LengthQuantiles::weighted(vec![(10.0, 1.0), (20.0, 3.0), (f64::NAN, 9.0)]);
        // By hand: 10 up to 1/8, a line to 20 at 5/8, then 20.
        assert_eq!(two.mean(), 1.25 + 7.5 + 7.5);
    }
}
