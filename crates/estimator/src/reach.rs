//! Objectives that no number of replicas reaches: a request that is alone on one misses them already.

use flyball_core::snapshot::{Misses, Objective, Objectives, Unreachable};
use flyball_core::units::Micros;

/// What a request takes that is alone on a replica, in seconds, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Alone {
    /// Per token, as it is predicted.
    pub(crate) pace: Option<f64>,
    /// Per token, as it was measured.
    pub(crate) measured_pace: Option<f64>,
    /// To the first token, as it is predicted: on the mean, and of one prompt in twenty at least.
    pub(crate) first_token: Option<(f64, f64)>,
}

/// How far over an objective what was measured must be: less is noise.
const MEASURED_OVER: f64 = 1.05;
/// The same of what is predicted: predictions are up to 25 % off.
const PREDICTED_OVER: f64 = 1.25;
/// Where fewer than this share may miss, it is the long prompts that count.
const LONG_PROMPTS: f64 = 0.05;

impl Alone {
    /// The same on engines that take so many times as long as predicted, for everything.
    pub(crate) fn slowed(self, times: f64) -> Self {
        let first_token = self.first_token.map(|(mean, long)| (mean * times, long * times));
        Self { pace: self.pace.map(|pace| pace * times), first_token, ..self }
    }

    /// The objective that it misses, the time between tokens first: that cannot be told from the prompt.
    pub(crate) fn unreachable(&self, objectives: &Objectives) -> Option<Unreachable> {
        let pace = match self.measured_pace {
            Some(measured) => Some((measured, MEASURED_OVER)),
            None => self.pace.map(|predicted| (predicted, PREDICTED_OVER)),
        };
        let may_miss = 1.0 - f64::from(objectives.attainment_per_million) / 1e6;
        let first = self.first_token.map(|(mean, long)| {
            (if may_miss < LONG_PROMPTS { long } else { mean }, PREDICTED_OVER)
        });
        over(Objective::BetweenTokens, objectives.between_tokens, pace)
            .or_else(|| over(Objective::FirstToken, objectives.first_token, first))
    }

    /// The objectives without those that it misses.
    pub(crate) fn reachable(&self, objectives: &Objectives) -> Objectives {
        let mut left = *objectives;
        while let Some(unreachable) = self.unreachable(&left) {
            match unreachable.objective {
                Objective::FirstToken => left.first_token = None,
                Objective::BetweenTokens => left.between_tokens = None,
            }
        }
        left
    }
}

fn over(
    objective: Objective,
    limit: Option<Micros>,
    takes: Option<(f64, f64)>,
) -> Option<Unreachable> {
    let (limit, (takes, least)) = limit.zip(takes)?;
    let takes_micros = takes * 1e6;
    let over = takes_micros.is_finite() && takes_micros > limit.get() as f64 * least;
    over.then(|| Unreachable { objective, limit, takes: Micros::new(takes_micros as u64) })
}

/// Requests that were judged lately, and those of them that missed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Judged {
    requests: f64,
    missed: f64,
}

/// So many are enough to say what requests reach; of more, the older half is forgotten.
const ENOUGH: f64 = 200.0;

impl Judged {
    pub(crate) fn learn(&mut self, new: Option<Misses>) {
        let Some(new) = new else { return };
        self.requests += new.requests.get() as f64;
        self.missed += new.missed.get() as f64;
        if self.requests > 2.0 * ENOUGH {
            let left = ENOUGH / self.requests;
            (self.requests, self.missed) = (ENOUGH, self.missed * left);
        }
    }

    /// Whether requests are seen to meet the objectives, whatever is thought of that.
    pub(crate) fn are_met(&self, objectives: &Objectives) -> bool {
        let may_miss = 1.0 - f64::from(objectives.attainment_per_million) / 1e6;
        self.requests >= ENOUGH && self.missed <= may_miss * self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::units::Requests;

    const CHAT: Objectives = Objectives {
        first_token: Some(Micros::from_millis(500)),
        between_tokens: Some(Micros::from_millis(40)),
        attainment_per_million: 990_000,
    };

    fn missed(alone: Alone, objectives: &Objectives) -> Option<Objective> {
        alone.unreachable(objectives).map(|one| one.objective)
    }

    #[test]
    fn an_objective_is_out_of_reach_where_a_request_alone_misses_it() {
        let slow = Alone { measured_pace: Some(0.055), ..Alone::default() };
        let found = slow.unreachable(&CHAT).expect("out of reach");
        let text = "a token of a request alone on a replica takes 55 ms; the objective is 40 ms";
        assert_eq!(found.to_string(), text);
        let quick = Alone { measured_pace: Some(0.041), ..Alone::default() };
        assert_eq!(missed(quick, &CHAT), None, "within what a measurement may be off by");
        assert_eq!(missed(Alone::default(), &CHAT), None, "nothing is known");
        let unasked = Objectives { between_tokens: None, ..CHAT };
        assert_eq!(missed(slow, &unasked), None, "nobody asks for it");
    }

    #[test]
    fn what_is_measured_is_believed_more_than_what_is_predicted() {
        let predicted = Alone { pace: Some(0.06), ..Alone::default() };
        assert_eq!(missed(predicted, &CHAT), Some(Objective::BetweenTokens));
        let measured = Alone { measured_pace: Some(0.03), ..predicted };
        assert_eq!(missed(measured, &CHAT), None);
        let near = Alone { pace: Some(0.048), ..Alone::default() };
        assert_eq!(missed(near, &CHAT), None, "predictions are off by as much");
    }

    #[test]
    fn engines_that_became_slower_than_predicted_may_miss_what_they_met() {
        let first_token = Some((0.2, 0.4));
        let predicted = Alone { pace: Some(0.02), first_token, ..Alone::default() };
        assert_eq!(missed(predicted, &CHAT), None);
        assert_eq!(missed(predicted.slowed(2.0), &CHAT), Some(Objective::FirstToken));
        assert_eq!(missed(predicted.slowed(4.0), &CHAT), Some(Objective::BetweenTokens));
    }

    #[test]
    fn long_prompts_count_where_few_may_miss() {
        let alone = Alone { first_token: Some((0.3, 0.9)), ..Alone::default() };
        assert_eq!(missed(alone, &CHAT), Some(Objective::FirstToken));
        let most = Objectives { attainment_per_million: 900_000, ..CHAT };
        assert_eq!(missed(alone, &most), None);
        let reachable = alone.reachable(&CHAT);
        assert_eq!((reachable.first_token, reachable.between_tokens), (None, CHAT.between_tokens));
    }

    #[test]
    fn requests_that_are_in_time_show_that_it_can_be_reached() {
        let met = |requests, missed| {
            let mut judged = Judged::default();
            let (requests, missed) = (Requests::new(requests), Requests::new(missed));
            judged.learn(Some(Misses { requests, missed }));
            judged.are_met(&CHAT)
        };
        assert!(met(1_000, 5));
        assert!(!met(1_000, 20), "too many missed");
        assert!(!met(100, 0), "too few to tell");
    }
}
