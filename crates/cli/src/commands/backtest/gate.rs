//! `--fail-if 'missed>1%'`: what must not come out, in a form for somebody's own CI.
//!
//! A rule is `[POLICY:]FIGURE>LIMIT`. Without a name it holds for every policy but the
//! clairvoyant and the one that `--against` names, because those are there to compare with.

use super::answer::{GateView, PolicyView};
use super::words;

/// One rule, as typed and as understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gate {
    /// As typed, without blanks.
    pub(super) text: String,
    policy: Option<String>,
    figure: Figure,
    over: bool,
    or_equal: bool,
    limit: f64,
}

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Missed,
    WorstFiveMinutes,
    Cost,
    GpuHours,
    TimesOptimum,
    FirstTokenP99,
    Starts,
    Reversals,
    Killed,
}

const FIGURES: [(&str, Figure); 9] = [
    ("missed", Figure::Missed),
    ("worst-5min", Figure::WorstFiveMinutes),
    ("cost", Figure::Cost),
    ("gpu-hours", Figure::GpuHours),
    ("x-optimum", Figure::TimesOptimum),
    ("ttft-p99", Figure::FirstTokenP99),
    ("starts", Figure::Starts),
    ("reversals", Figure::Reversals),
    ("killed", Figure::Killed),
];

impl Gate {
    /// Reads `missed>1%`, `hpa:ttft-p99 >= 3s`, `cost > 100`.
    pub(super) fn read(text: &str) -> Result<Gate, String> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let at = text
            .find(['>', '<'])
            .ok_or_else(|| "write it as missed>1%, cost>100 or ttft-p99>3s".to_owned())?;
        let (left, right) = text.split_at(at);
        let over = right.starts_with('>');
        let or_equal = right[1..].starts_with('=');
        let limit = &right[if or_equal { 2 } else { 1 }..];
        let (policy, name) = match left.rsplit_once(':') {
            Some((policy, name)) => (Some(policy.to_owned()), name),
            None => (None, left),
        };
        let figure = FIGURES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, figure)| *figure)
            .ok_or_else(|| {
                let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
                format!("no figure is called {name:?}; there are {}", names.join(", "))
            })?;
        let limit = figure.limit(limit)?;
        Ok(Gate { text, policy, figure, over, or_equal, limit })
    }

    /// The policy that the rule names, if it does.
    pub(super) fn names(&self) -> Option<&str> {
        self.policy.as_deref()
    }

    /// Holds the rule against what came out.
    pub(super) fn judge(&self, policies: &[PolicyView], against: Option<&str>) -> GateView {
        let meant = |policy: &&PolicyView| match &self.policy {
            Some(name) => policy.name == *name,
            None => !policy.clairvoyant && Some(policy.name.as_str()) != against,
        };
        let mut because = Vec::new();
        for policy in policies.iter().filter(meant) {
            match self.figure.of(policy) {
                Some(value) if self.breaks(value) => {
                    because.push(format!("{}: {}", policy.name, self.figure.label(value)));
                }
                Some(_) => {}
                // Unknown is not "yes, it holds": a gate that cannot be judged must not let pass.
                None => because.push(format!("{}: not known", policy.name)),
            }
        }
        GateView { rule: self.text.clone(), broken: !because.is_empty(), because }
    }

    fn breaks(&self, value: f64) -> bool {
        let beyond = if self.over { value > self.limit } else { value < self.limit };
        beyond || (self.or_equal && value == self.limit)
    }
}

impl Figure {
    /// Reads the limit in the unit of the figure.
    fn limit(self, text: &str) -> Result<f64, String> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        match self {
            Figure::Missed | Figure::WorstFiveMinutes => match text.strip_suffix('%') {
                Some(percent) => number(percent).map(|percent| percent / 100.0),
                None => number(text).filter(|share| *share <= 1.0),
            }
            .ok_or_else(|| "write a share as in 1% or 0.01".to_owned()),
            Figure::FirstTokenP99 => crate::flags::time(text).map(|time| time.as_secs_f64()),
            Figure::Cost => number(text.trim_start_matches('$'))
                .ok_or_else(|| "write dollars as in 100".to_owned()),
            Figure::TimesOptimum => number(text.trim_end_matches('x'))
                .ok_or_else(|| "write a multiple as in 1.3".to_owned()),
            _ => number(text).ok_or_else(|| "write a number as in 0 or 100".to_owned()),
        }
    }

    fn of(self, policy: &PolicyView) -> Option<f64> {
        Some(match self {
            Figure::Missed => policy.missed.mean,
            Figure::WorstFiveMinutes => policy.worst.missed,
            Figure::Cost => policy.usd?.mean,
            Figure::GpuHours => policy.gpu_hours.mean,
            Figure::TimesOptimum => policy.times_optimum?.mean,
            Figure::FirstTokenP99 => policy.ttft_p99_seconds?.mean,
            Figure::Starts => policy.starts.mean,
            Figure::Reversals => policy.reversals.mean,
            Figure::Killed => policy.killed.mean,
        })
    }

    fn label(self, value: f64) -> String {
        match self {
            Figure::Missed => format!("{} missed", words::percent(value)),
            Figure::WorstFiveMinutes => {
                format!("{} missed in the worst five minutes", words::percent(value))
            }
            Figure::Cost => format!("${}", words::grouped(value)),
            Figure::GpuHours => format!("{} GPU-hours", words::grouped(value)),
            Figure::TimesOptimum => format!("{value:.2} x the optimum"),
            Figure::FirstTokenP99 => format!("TTFT p99 of {}", words::seconds(value)),
            Figure::Starts => format!("{} starts", words::count(value)),
            Figure::Reversals => format!("{} reversals", words::count(value)),
            Figure::Killed => format!("{} killed", words::count(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::made_up;
    use super::*;

    #[test]
    fn rules_are_read_and_nonsense_is_refused() {
        let read = |text: &str| Gate::read(text).map(|gate| (gate.figure, gate.limit));
        assert_eq!(read("missed > 1%"), Ok((Figure::Missed, 0.01)));
        assert_eq!(read("missed>0.01"), Ok((Figure::Missed, 0.01)));
        assert_eq!(read("cost>$100"), Ok((Figure::Cost, 100.0)));
        assert_eq!(read("x-optimum>1.3"), Ok((Figure::TimesOptimum, 1.3)));
        assert_eq!(read("killed>0"), Ok((Figure::Killed, 0.0)));
        assert_eq!(read("TTFT-p99>=3s"), Ok((Figure::FirstTokenP99, 3.0)));
        assert_eq!(Gate::read("hpa:missed<1%").expect("a rule").names(), Some("hpa"));
        for wrong in ["missed", "misses>1%", "missed>", "missed>2", "ttft-p99>3", "cost>-1", ">1"] {
            assert!(Gate::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rule_spares_what_is_only_compared_with() {
        let policies = made_up().policies;
        let judged = |rule: &str, against: Option<&str>| {
            Gate::read(rule).expect("a rule").judge(&policies, against)
        };
        // The made-up HPA misses 1.9 %, the governor 0.38 %.
        assert!(judged("missed>1%", None).broken);
        assert!(!judged("missed>1%", Some("hpa")).broken);
        assert!(judged("hpa:missed>1%", Some("hpa")).broken);
        assert!(!judged("governor:missed>1%", None).broken);
        assert_eq!(judged("missed>1%", None).because, ["hpa: 1.92 % missed"]);
    }

    #[test]
    fn what_is_not_known_does_not_pass() {
        let mut policies = made_up().policies;
        policies.retain(|policy| policy.name == "governor");
        policies[0].usd = None;
        let judged = Gate::read("cost>100").expect("a rule").judge(&policies, None);
        assert_eq!((judged.broken, judged.because), (true, vec!["governor: not known".to_owned()]));
    }
}
