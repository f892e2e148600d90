//! Finds the one known metric inside a PromQL query, and what is done to it.
//!
//! Sums, means, rates, percentiles and arithmetic with numbers are followed. Anything else is
//! refused: a query that is half understood would replay another policy.

use super::super::RivalMetric;
use super::super::hpa::Over;

/// What a query asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) metric: RivalMetric,
    pub(super) over: Over,
    pub(super) factor: f64,
    /// What it shows where there is no data, if it says so.
    pub(super) missing: Option<f64>,
    pub(super) notes: Vec<String>,
}

/// Why a query cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// This metric is not known.
    Metric(String),
    /// Something is done to it that is not known.
    Shape(String),
}

/// Reads a query.
pub(super) fn read(query: &str) -> Result<Found, Bad> {
    let tokens = tokens(query)?;
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, notes: Vec::new() };
    let term = reader.either()?;
    if let Some(token) = reader.peek() {
        return Err(shape(format!("`{}` is not understood there", token.text())));
    }
    match term {
        Term::Series(Series { metric, over, factor, missing }) => {
            let over = over.unwrap_or(Over::Sum);
            Ok(Found { metric, over, factor, missing, notes: reader.notes })
        }
        Term::Number(_) | Term::Count => Err(shape("it has no metric".to_owned())),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number(f64),
    /// A range such as `[5m]`, in seconds.
    Range(f64),
    Mark(char),
}

#[derive(Clone, Copy, Debug)]
enum Term {
    Number(f64),
    /// How many series there are, as `count()` says.
    Count,
    Series(Series),
}

#[derive(Clone, Copy, Debug)]
struct Series {
    metric: RivalMetric,
    over: Option<Over>,
    factor: f64,
    missing: Option<f64>,
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: u32,
    notes: Vec<String>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, expected: &Token) -> bool {
        let found = self.peek() == Some(expected);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), Bad> {
        if self.take(&Token::Mark(mark)) {
            Ok(())
        } else {
            Err(shape(format!("a `{mark}` is missing")))
        }
    }

    /// One bracket deeper, as far as anybody writes by hand.
    fn either(&mut self) -> Result<Term, Bad> {
        const DEEPEST: u32 = 32;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(shape("it is nested too deeply".to_owned()));
        }
        let term = self.alternatives();
        self.depth -= 1;
        term
    }

    /// `a or vector(0)`.
    fn alternatives(&mut self) -> Result<Term, Bad> {
        let mut term = self.sum()?;
        while self.take(&Token::Name("or".to_owned())) {
            if self.take(&Token::Name("on".to_owned())) {
                self.labels()?;
            }
            term = match (term, self.sum()?) {
                (Term::Series(series), Term::Number(missing)) => {
                    Term::Series(Series { missing: Some(missing), ..series })
                }
                _ => return Err(shape("`or` is followed only before a number".to_owned())),
            };
        }
        Ok(term)
    }

    fn sum(&mut self) -> Result<Term, Bad> {
        let mut term = self.product()?;
        while self.take(&Token::Mark('+')) {
            term = add(term, self.product()?)?;
        }
        Ok(term)
    }

    fn product(&mut self) -> Result<Term, Bad> {
        let mut term = self.part()?;
        loop {
            if self.take(&Token::Mark('*')) {
                term = match (term, self.part()?) {
                    (Term::Number(a), Term::Number(b)) => Term::Number(a * b),
                    (Term::Series(series), Term::Number(by))
                    | (Term::Number(by), Term::Series(series)) => {
                        Term::Series(Series { factor: series.factor * by, ..series })
                    }
                    _ => return Err(shape("two metrics are multiplied".to_owned())),
                };
            } else if self.take(&Token::Mark('/')) {
                term = match (term, self.part()?) {
                    (Term::Number(a), Term::Number(b)) => Term::Number(a / b),
                    (Term::Series(series), Term::Number(by)) if by != 0.0 => {
                        Term::Series(Series { factor: series.factor / by, ..series })
                    }
                    (Term::Series(series), Term::Count) if series.over != Some(Over::Mean) => {
                        Term::Series(Series { over: Some(Over::Mean), ..series })
                    }
                    _ => return Err(shape("metrics are divided by each other".to_owned())),
                };
            } else {
                return Ok(term);
            }
        }
    }

    fn part(&mut self) -> Result<Term, Bad> {
        let token = self.peek().cloned().ok_or_else(|| shape("it ends early".to_owned()))?;
        self.at += 1;
        match token {
            Token::Number(number) => Ok(Term::Number(number)),
            Token::Mark('(') => {
                let term = self.either()?;
                self.expect(')')?;
                Ok(term)
            }
            Token::Name(name) => {
                let grouped = self.grouping()?;
                if grouped || self.peek() == Some(&Token::Mark('(')) {
                    return self.call(&name);
                }
                let metric = RivalMetric::from_prometheus(&name).ok_or(Bad::Metric(name))?;
                Ok(Term::Series(Series { metric, over: None, factor: 1.0, missing: None }))
            }
            other => Err(shape(format!("`{}` is not understood there", other.text()))),
        }
    }

    fn call(&mut self, name: &str) -> Result<Term, Bad> {
        self.expect('(')?;
        let mut arguments = vec![self.argument(name)?];
        while self.take(&Token::Mark(',')) {
            arguments.push(self.argument(name)?);
        }
        self.expect(')')?;
        self.grouping()?;
        let range = arguments.iter().find_map(|(_, range)| *range);
        let terms: Vec<Term> = arguments.into_iter().map(|(term, _)| term).collect();
        self.apply(name, &terms, range)
    }

    fn argument(&mut self, name: &str) -> Result<(Term, Option<f64>), Bad> {
        // `count(up{...})` counts replicas, whatever it is that it counts.
        let term = match (name, self.peek()) {
            ("count", Some(Token::Name(_))) => {
                self.at += 1;
                Term::Count
            }
            _ => self.either()?,
        };
        let range = match self.peek() {
            Some(Token::Range(seconds)) => Some(*seconds),
            _ => None,
        };
        self.at += usize::from(range.is_some());
        Ok((term, range))
    }

    fn apply(&mut self, name: &str, terms: &[Term], range: Option<f64>) -> Result<Term, Bad> {
        let over = |over| match terms {
            [Term::Series(series)] => {
                Ok(Term::Series(Series { over: series.over.or(Some(over)), ..*series }))
            }
            _ => Err(shape(format!("`{name}` is not of one metric"))),
        };
        match name {
            "sum" => over(Over::Sum),
            "avg" => over(Over::Mean),
            "max" | "min" | "quantile" => {
                self.notes.push(format!("`{name}` over replicas is read as their mean"));
                over(Over::Mean)
            }
            "count" => Ok(Term::Count),
            "rate" | "irate" => Ok(terms[0]),
            "increase" => match (terms[0], range) {
                (Term::Series(series), Some(range)) => {
                    Ok(Term::Series(Series { factor: series.factor * range, ..series }))
                }
                _ => Err(shape("`increase` has no range".to_owned())),
            },
            "avg_over_time" | "max_over_time" | "min_over_time" => {
                self.notes
                    .push(format!("`{name}` is not applied: a replay shows the newest value"));
                Ok(terms[0])
            }
            "ceil" | "floor" | "round" | "scalar" | "vector" => Ok(terms[0]),
            "histogram_quantile" => match terms {
                [Term::Number(quantile), Term::Series(series)] => {
                    if *quantile != 0.9 {
                        self.notes.push(format!(
                            "quantile {quantile} is read as 0.9, which a replay shows"
                        ));
                    }
                    Ok(Term::Series(Series { over: Some(Over::Mean), ..*series }))
                }
                _ => Err(shape("`histogram_quantile` is not of a number and a metric".to_owned())),
            },
            other => Err(shape(format!("`{other}` is not followed"))),
        }
    }

    /// `by (le)` or `without (pod)`, which stand on either side of what they group.
    fn grouping(&mut self) -> Result<bool, Bad> {
        let found =
            ["by", "without"].iter().any(|word| self.take(&Token::Name((*word).to_owned())));
        if found {
            self.labels()?;
        }
        Ok(found)
    }

    fn labels(&mut self) -> Result<(), Bad> {
        self.expect('(')?;
        while matches!(self.peek(), Some(Token::Name(_) | Token::Mark(','))) {
            self.at += 1;
        }
        self.expect(')')
    }
}

impl Token {
    fn text(&self) -> String {
        match self {
            Self::Name(name) => name.clone(),
            Self::Number(number) => number.to_string(),
            Self::Range(seconds) => format!("[{seconds}s]"),
            Self::Mark(mark) => mark.to_string(),
        }
    }
}

/// Requests that wait and requests that run make those in flight; numbers add up.
fn add(first: Term, second: Term) -> Result<Term, Bad> {
    match (first, second) {
        (Term::Number(a), Term::Number(b)) => Ok(Term::Number(a + b)),
        (Term::Series(a), Term::Series(b)) => {
            let pair = [a.metric, b.metric];
            let both = pair.contains(&RivalMetric::Waiting) && pair.contains(&RivalMetric::Running);
            if both && a.over == b.over && a.factor == b.factor {
                return Ok(Term::Series(Series { metric: RivalMetric::WaitingPlusRunning, ..a }));
            }
            Err(shape("metrics other than waiting and running requests are added".to_owned()))
        }
        _ => Err(shape("a number is added to a metric".to_owned())),
    }
}

fn tokens(query: &str) -> Result<Vec<Token>, Bad> {
    let mut tokens = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
        let length = match first {
            '{' => closing(rest, '}')?,
            '[' => {
                let length = closing(rest, ']')?;
                let text = rest[1..length - 1].split(':').next().unwrap_or("");
                tokens.push(Token::Range(
                    seconds(text).ok_or_else(|| shape(format!("the range `{text}`")))?,
                ));
                length
            }
            letter if letter.is_whitespace() => letter.len_utf8(),
            letter if letter.is_ascii_digit() || letter == '.' => {
                let end =
                    rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '.'));
                let end = end.unwrap_or(rest.len());
                let number = rest[..end]
                    .parse()
                    .map_err(|_| shape(format!("the number `{}`", &rest[..end])))?;
                tokens.push(Token::Number(number));
                end
            }
            letter if is_name(letter) => {
                let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
                tokens.push(Token::Name(rest[..end].to_owned()));
                end
            }
            letter => {
                tokens.push(Token::Mark(letter));
                letter.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// How long a bracket and what is in it are. A brace inside quotes does not close.
fn closing(text: &str, close: char) -> Result<usize, Bad> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if "\"'`".contains(letter) => quote = Some(letter),
            None if letter == close => return Ok(at + letter.len_utf8()),
            None => {}
        }
    }
    Err(shape(format!("a `{close}` is missing")))
}

/// A length of time such as `5m`.
fn seconds(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        'd' => 86_400.0,
        _ => return None,
    };
    text[..text.len() - 1].parse::<f64>().ok().map(|count| count * unit)
}

const fn shape(why: String) -> Bad {
    Bad::Shape(why)
}

#[cfg(test)]
mod tests {
    use super::{Bad, Found, Over, RivalMetric, read};

    fn found(query: &str) -> Found {
        read(query).expect(query)
    }

    #[test]
    fn sums_means_and_rates_are_followed() {
        for (query, metric, over) in [
            ("vllm:num_requests_waiting", RivalMetric::Waiting, Over::Sum),
            ("sum(vllm:num_requests_waiting{model_name=\"a}b\"})", RivalMetric::Waiting, Over::Sum),
            ("avg(vllm:gpu_cache_usage_perc)", RivalMetric::CacheUsed, Over::Mean),
            (
                "sum by (model) (rate(vllm:request_success_total[1m]))",
                RivalMetric::ArrivalsPerSecond,
                Over::Sum,
            ),
            (
                "sum(rate(vllm:prompt_tokens_total[1m])) by (job)",
                RivalMetric::PromptTokensPerSecond,
                Over::Sum,
            ),
            (
                "sum(vllm:num_requests_running) / count(up{job=\"x\"})",
                RivalMetric::Running,
                Over::Mean,
            ),
            (
                "sum(vllm:num_requests_waiting) + sum(vllm:num_requests_running)",
                RivalMetric::WaitingPlusRunning,
                Over::Sum,
            ),
            (
                "histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))",
                RivalMetric::FirstTokenP90,
                Over::Mean,
            ),
        ] {
            let one = found(query);
            assert_eq!((one.metric, one.over), (metric, over), "{query}");
            assert_eq!((one.factor, one.missing), (1.0, None), "{query}");
        }
    }

    #[test]
    fn the_query_of_the_llm_d_guide_is_followed() {
        let query = "(\n sum(llm_d_epp_inflight_tokens{namespace=\"a\",\n producer_name=\"p\"}) / 15928\n\
                     ) or vector(0)\n";
        let one = found(query);
        assert_eq!(one.metric, RivalMetric::WaitingTokens);
        assert_eq!(one.factor, 1.0 / 15_928.0);
        assert_eq!(one.missing, Some(0.0));
    }

    #[test]
    fn increase_over_a_range_is_a_rate_times_its_length() {
        assert_eq!(found("sum(increase(vllm:request_success_total[2m]))").factor, 120.0);
    }

    #[test]
    fn what_is_only_nearly_the_same_is_noted() {
        let p95 = "histogram_quantile(0.95, rate(vllm:time_to_first_token_seconds_bucket[5m]))";
        assert_eq!(found(p95).notes.len(), 1);
        assert_eq!(found("max(vllm:num_requests_waiting)").notes.len(), 1);
        assert_eq!(found("avg_over_time(vllm:num_requests_waiting[1m])").notes.len(), 1);
    }

    #[test]
    fn an_unknown_metric_is_named() {
        let unknown = Bad::Metric("DCGM_FI_DEV_GPU_UTIL".to_owned());
        assert_eq!(read("avg(DCGM_FI_DEV_GPU_UTIL)"), Err(unknown));
    }

    #[test]
    fn a_query_nested_without_end_is_refused() {
        let deep =
            format!("{}vllm:num_requests_waiting{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(matches!(read(&deep), Err(Bad::Shape(_))));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for query in [
            "",
            "3",
            "sum(vllm:num_requests_waiting) > 0",
            "sum(vllm:num_requests_waiting) / sum(vllm:num_requests_running)",
            "sum(vllm:num_requests_waiting) + sum(vllm:gpu_cache_usage_perc)",
            "predict_linear(vllm:num_requests_waiting[5m], 60)",
            "sum(vllm:num_requests_waiting",
            "sum(vllm:num_requests_waiting{a=\"b)",
            "vllm:num_requests_waiting - 3",
        ] {
            assert!(matches!(read(query), Err(Bad::Shape(_))), "{query}: {:?}", read(query));
        }
    }
}
