//! What each law would have cost on the traffic that came, and which one should decide.

use crate::laws::{Name, TOKENS};
use crate::record::Record;
use flyball_core::decision::TriedLaw;
use flyball_core::ids::ModelId;
use flyball_core::snapshot::Model;
use flyball_core::units::{Replicas, Timestamp};
use flyball_governor::MeasuredDemand;
use flyball_governor::policy::ModelPolicy;
use flyball_simulator::cold_start::ColdStart;
use flyball_simulator::fluid::{self, FluidWorld, Keep};
use flyball_simulator::rivals::RivalFacts;
use flyball_simulator::seconds::Seconds;
use flyball_simulator::tune;

/// Of the misses that are allowed, so much may be used in a replay, by the governor's own law and by others: a flow knows
/// nothing of single long prompts, and what was recorded is smoother than what came. The governor's own law goes by what
/// really misses; nobody corrects the others.
const MARGIN: f64 = 0.95;
const MARGIN_OF_OTHERS: f64 = 0.3;
/// Another law takes over only if it is so much cheaper: each change throws away what windows have seen.
const WORTH_IT: f64 = 0.95;
/// What nobody says.
const FIRST_TOKEN_S: f64 = 2.0;
const BETWEEN_TOKENS_S: f64 = 0.1;
const SERVICE_S: f64 = 10.0;
/// A client hangs up after so many times the objective.
const PATIENCE: f64 = 10.0;

/// One replay of a model's past under every law. It owns what it needs, so that it can run anywhere.
#[derive(Clone, Debug)]
pub struct LawTrial {
    /// The model.
    pub model: ModelId,
    pub(crate) record: Record,
    pub(crate) measured: MeasuredDemand,
    pub(crate) described: Box<Model>,
    pub(crate) policy: ModelPolicy,
    pub(crate) current: Name,
    /// Laws under which too many missed.
    pub(crate) barred: Vec<Name>,
}

/// What a law came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialResult {
    /// Which.
    pub law: Name,
    /// Hours that replicas were paid for.
    pub replica_hours: f64,
    /// Share of requests that missed.
    pub missed: f64,
}

impl TrialResult {
    pub(crate) fn receipt(&self) -> TriedLaw {
        TriedLaw {
            name: self.law.to_string(),
            replica_time: Seconds(3_600.0 * self.replica_hours).to_micros(),
            missed_per_million: (1e6 * self.missed).round() as u32,
        }
    }
}

/// What a trial came to.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialVerdict {
    /// The model.
    pub model: ModelId,
    /// The law that should decide.
    pub law: Name,
    /// What each came to, in the order of [`Name::ALL`].
    pub tried: Vec<TrialResult>,
    /// How much traffic was replayed.
    pub replayed: Seconds,
}

impl LawTrial {
    /// Replays the past under every law. A plain function of the trial.
    pub fn run(&self) -> TrialVerdict {
        let (world, facts) = (self.world(), self.facts());
        let tried = Name::ALL.iter().map(|law| {
            let mut policy = law.replayed(&self.policy, &facts);
            let outcome = tune::TuneResult::of(&fluid::run(&world, policy.as_mut()));
            TrialResult { law: *law, replica_hours: outcome.gpu_hours, missed: outcome.missed }
        });
        let tried: Vec<TrialResult> = tried.collect();
        let real = self.record.missed(world.unscored);
        let law = choose(&tried, self, real, self.policy.may_miss(&self.described.objectives));
        TrialVerdict { model: self.model.clone(), law, tried, replayed: self.record.length() }
    }

    fn requests_per_work(&self) -> f64 {
        self.measured.requests_per_work.filter(|rate| *rate > 0.0).unwrap_or(1.0)
    }

    /// Requests per second that one replica carries alone.
    fn per_replica(&self) -> f64 {
        self.measured.size * self.requests_per_work()
    }

    fn service(&self) -> Seconds {
        let of_work = self.record.service().unwrap_or(Seconds(SERVICE_S));
        Seconds((of_work.get() / self.requests_per_work()).clamp(0.1, 600.0))
    }

    fn objectives(&self) -> (Seconds, Seconds) {
        let objectives = &self.described.objectives;
        let or = |given: Option<_>, otherwise: f64| given.map_or(Seconds(otherwise), Seconds::from);
        (or(objectives.first_token, FIRST_TOKEN_S), or(objectives.between_tokens, BETWEEN_TOKENS_S))
    }

    fn world(&self) -> FluidWorld {
        let (first_token_objective, between_tokens_objective) = self.objectives();
        let bounds = self.described.bounds;
        let begins_at =
            self.measured.pooling.replicas(self.record.begins_at() / self.measured.size);
        let initial = (1.2 * begins_at).ceil().max(1.0) as u32;
        let initial = initial.clamp(bounds.min.get(), bounds.max.get().max(bounds.min.get()));
        let length = self.record.length();
        let model = fluid::FluidModel {
            id: self.model.clone(),
            load: self.record.load(self.requests_per_work()),
            per_replica: self.per_replica(),
            pooling: self.measured.pooling,
            at_most: self.per_replica() * self.measured.pooling.ratio(),
            reading_per_million: None,
            first_token: Seconds::ZERO,
            first_token_objective,
            between_tokens_objective,
            patience: first_token_objective * PATIENCE,
            service: self.service(),
            tokens: (TOKENS, TOKENS),
            gpus: flyball_core::units::Gpus::new(1),
            bounds,
            initial: Replicas::new(initial),
            attainment_per_million: self.described.objectives.attainment_per_million,
        };
        FluidWorld {
            start: Timestamp::from_millis(0),
            models: vec![model],
            cold_start: ColdStart::Constant(Seconds(self.measured.cold_start_s)),
            pool: None,
            price: None,
            // What every law needs to see first.
            unscored: Seconds(length.get() / 3.0).min(Seconds::HOUR),
            gaps_are_outages: false,
            seed: 1,
            keep: Keep::default(),
        }
    }

    /// What whoever set up the rival would have known.
    pub(crate) fn facts(&self) -> RivalFacts {
        let (first_token, between_tokens) = self.objectives();
        let replicas = self.measured.pooling.replicas(self.record.mean() / self.measured.size);
        let each = self.per_replica() * self.measured.pooling.each(replicas.ceil());
        let bounds = self.described.bounds;
        RivalFacts {
            replica_per_second: each,
            prompt_tokens_per_second: TOKENS * each,
            prompt_tokens: TOKENS,
            max_running: (each * self.service().get()).max(1.0),
            first_token,
            between_tokens,
            cold_start: Seconds(self.measured.cold_start_s),
            min: bounds.min.get(),
            max: bounds.max.get().max(bounds.min.get()),
            ..RivalFacts::default()
        }
    }
}

/// The cheapest law that keeps the limit with a margin, if that is worth a change; where none does, the one that
/// decides stays, since nothing was shown to be better. It stays too where the replay says of it what did not happen: who
/// is wrong about the law that decided is not to be believed about others.
fn choose(tried: &[TrialResult], trial: &LawTrial, real: Option<f64>, allowed: f64) -> Name {
    let current = trial.current;
    let keeps = |one: &&TrialResult| {
        let margin = if one.law.care().is_some() { MARGIN } else { MARGIN_OF_OTHERS };
        one.missed <= margin * allowed && !trial.barred.contains(&one.law)
    };
    let cheapest = tried.iter().filter(keeps);
    let cheapest = cheapest.min_by(|a, b| a.replica_hours.total_cmp(&b.replica_hours));
    let now = tried.iter().find(|one| one.law == current);
    let wrong = |now: &TrialResult| real.is_none_or(|real| (now.missed - real).abs() > allowed);
    if now.is_none_or(wrong) {
        return current;
    }
    match (cheapest, now) {
        (None, _) => current,
        (Some(best), Some(now)) if real.is_none_or(|real| real <= allowed) => {
            let worth_it = best.replica_hours < WORTH_IT * now.replica_hours;
            if worth_it { best.law } else { current }
        }
        (Some(best), _) => best.law,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(all: &[(Name, f64, f64)]) -> Vec<TrialResult> {
        let one = |(law, replica_hours, missed): &(Name, f64, f64)| TrialResult {
            law: *law,
            replica_hours: *replica_hours,
            missed: *missed,
        };
        all.iter().map(one).collect()
    }

    fn trial(current: Name, barred: &[Name]) -> LawTrial {
        let model = flyball_core::testing::model("a/m");
        LawTrial {
            model: "a/m".parse().unwrap(),
            record: Record::default(),
            measured: MeasuredDemand {
                work: 1.0,
                size: 1.0,
                pooling: flyball_core::pooling::Pooling::NONE,
                waiting: 0.0,
                requests_per_work: None,
                cold_start_s: 100.0,
            },
            described: Box::new(model.build()),
            policy: ModelPolicy::default(),
            current,
            barred: barred.to_vec(),
        }
    }

    #[test]
    fn a_law_takes_over_if_it_keeps_the_limit_with_a_margin_for_clearly_less() {
        let (ours, other, third) = (Name::OURS, Name::ALL[5], Name::ALL[6]);
        let chosen = |all: &[(Name, f64, f64)], current, barred: &[Name], real| {
            choose(&tried(all), &trial(current, barred), Some(real), 0.01)
        };
        let all = [(ours, 100.0, 0.005), (other, 98.0, 0.0), (third, 80.0, 0.009)];
        assert_eq!(chosen(&all, ours, &[], 0.005), ours, "2 % are not worth it");
        let all = [(ours, 100.0, 0.005), (other, 94.0, 0.0), (third, 80.0, 0.004)];
        assert_eq!(chosen(&all, ours, &[], 0.005), other, "the third has no margin");
        assert_eq!(chosen(&all, ours, &[other], 0.005), ours);
        let all = [(ours, 100.0, 0.05), (other, 196.0, 0.0), (third, 80.0, 0.09)];
        assert_eq!(chosen(&all, ours, &[], 0.05), other, "it costs more and keeps the limit");
        let all = [(ours, 100.0, 0.05), (other, 96.0, 0.04), (third, 80.0, 0.09)];
        assert_eq!(chosen(&all, third, &[], 0.09), third, "nobody keeps it");
    }

    #[test]
    fn a_replay_that_is_wrong_about_what_happened_changes_nothing() {
        let (ours, other) = (Name::OURS, Name::ALL[5]);
        let all = tried(&[(ours, 100.0, 0.05), (other, 50.0, 0.0)]);
        assert_eq!(choose(&all, &trial(ours, &[]), Some(0.0), 0.01), ours);
        assert_eq!(choose(&all, &trial(ours, &[]), None, 0.01), ours, "nobody counted");
        assert_eq!(choose(&all, &trial(ours, &[]), Some(0.045), 0.01), other);
    }
}
