//! The laws that may decide: the governor's own at several settings, and those of others that need no more than a
//! snapshot shows.

use crate::record::in_flight;
use flyball_core::snapshot::{Model, ReplicaState};
use flyball_core::units::Replicas;
use flyball_governor::policy::{Law, ModelPolicy};
use flyball_governor::{MeasuredDemand, Policy};
use flyball_simulator::policies::Governor;
use flyball_simulator::policy::{self, PolicyView, Reading, ScaleOrder};
use flyball_simulator::rivals::{self, RivalFacts, named};
use flyball_simulator::seconds::Seconds;
use std::fmt;
use std::str::FromStr;

/// Tokens of a request, where requests are counted in equals.
pub(crate) const TOKENS: f64 = 10_000.0;

/// A law that may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The governor's, with a miss taken so many tenths times as dear.
    Forecast(u32),
    /// Of [`rivals::NAMES`], with a share of what a replica carries, in percent.
    Rival(&'static str, u32),
}

impl Name {
    /// Where everything begins: the governor's own, as it is.
    pub const OURS: Self = Self(Kind::Forecast(10));

    /// All of them. Laws on percentiles of latency are left out: no snapshot has them. So is a fixed number, which
    /// no record can show to be enough for what is yet to come.
    pub const ALL: &[Self] = &[
        Self::OURS,
        Self(Kind::Forecast(3)),
        Self(Kind::Forecast(20)),
        Self(Kind::Forecast(40)),
        Self(Kind::Forecast(100)),
        Self(Kind::Rival("hpa-rate", 60)),
        Self(Kind::Rival("hpa-rate", 70)),
        Self(Kind::Rival("hpa-rate", 80)),
        Self(Kind::Rival("hpa-rate", 90)),
        Self(Kind::Rival("hpa-running", 80)),
        Self(Kind::Rival("keda", 100)),
        Self(Kind::Rival("ray", 70)),
        Self(Kind::Rival("kpa", 70)),
    ];

    /// How dear a miss is taken to be, where this is the governor's own.
    pub fn care(self) -> Option<f64> {
        match self.0 {
            Kind::Forecast(tenths) => Some(f64::from(tenths) / 10.0),
            Kind::Rival(..) => None,
        }
    }

    /// As a policy of a replay of one model: all that would decide, with this law in it.
    pub fn replayed(
        self,
        ours: &ModelPolicy,
        facts: &RivalFacts,
    ) -> Box<dyn policy::ScalingPolicy> {
        let running = self.rival(facts).map(Running::new);
        let care = self.care().unwrap_or(1.0);
        let default = ModelPolicy { law: Law::Forecast { care }, ..ours.clone() };
        let settings = Policy { default, ..Policy::default() };
        Box::new(Fixed { governor: Governor::new(settings.clone()), settings, running })
    }

    /// The law of somebody else; none for the governor's own.
    pub(crate) fn rival(self, facts: &RivalFacts) -> Option<Box<dyn rivals::RivalLaw>> {
        let Kind::Rival(name, percent) = self.0 else { return None };
        let share = f64::from(percent) / 100.0;
        let name = match name {
            "hpa-rate" | "kpa" => format!("{name}@{share}"),
            "hpa-running" | "ray" => format!("{name}@{}", (share * facts.max_running).max(1e-6)),
            other => other.to_owned(),
        };
        Some(named(&name, facts).ok()?.law())
    }
}

impl FromStr for Name {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|law| law.to_string() == text).ok_or(())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Forecast(10) => formatter.write_str("forecast"),
            Kind::Forecast(tenths) => write!(formatter, "forecast@{}", f64::from(tenths) / 10.0),
            Kind::Rival(name, 100) => formatter.write_str(name),
            Kind::Rival(name, percent) => write!(formatter, "{name}@{percent}%"),
        }
    }
}

/// The law of somebody else while it decides.
pub(crate) struct Running {
    law: Box<dyn rivals::RivalLaw>,
    ordered: Option<u32>,
    due: Seconds,
}

impl Running {
    pub(crate) fn new(law: Box<dyn rivals::RivalLaw>) -> Self {
        Self { law, ordered: None, due: Seconds::ZERO }
    }

    /// How many replicas it wants.
    pub(crate) fn ask(
        &mut self,
        now: Seconds,
        model: &Model,
        measured: &MeasuredDemand,
    ) -> Replicas {
        let reading = reading(now, model, measured);
        let current = self.ordered.unwrap_or(reading.ready + reading.starting);
        if now < self.due {
            return Replicas::new(current);
        }
        self.due = now + self.law.interval() * 0.99;
        let desired = self.law.desired(now, &reading, current);
        self.ordered = Some(desired);
        Replicas::new(desired)
    }
}

/// One law that decides all the time, through the same bounds and steps as any other.
struct Fixed {
    governor: Governor,
    settings: Policy,
    running: Option<Running>,
}

impl policy::ScalingPolicy for Fixed {
    fn name(&self) -> &str {
        self.governor.name()
    }

    fn interval(&self) -> Seconds {
        self.governor.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        if let Some(running) = &mut self.running {
            let mut settings = self.settings.clone();
            for (id, model) in &sight.snapshot.models {
                if let Some(measured) = self.governor.memory().measured(id, model) {
                    settings.default.law = Law::Stated(running.ask(sight.now, model, &measured));
                }
            }
            self.governor.follow(settings);
        }
        self.governor.decide(sight)
    }
}

/// What metrics would say of a model, in the unit of its replays: requests of equal work.
fn reading(now: Seconds, model: &Model, measured: &MeasuredDemand) -> Reading {
    let requests = measured.requests_per_work.unwrap_or(1.0);
    let count = |states: &[ReplicaState]| -> u32 {
        let each = model.variants.values();
        each.map(|variant| states.iter().map(|state| variant.count(*state).get()).sum::<u32>())
            .sum()
    };
    let (arriving, waiting) = (requests * measured.work, requests * measured.waiting);
    Reading {
        at: now,
        ready: count(&[ReplicaState::Ready]),
        starting: count(&[ReplicaState::Pending, ReplicaState::Starting]),
        draining: count(&[ReplicaState::Draining]),
        arrivals_per_second: Some(arriving),
        prompt_tokens_per_second: Some(TOKENS * arriving),
        waiting: Some(waiting),
        waiting_tokens: Some(TOKENS * waiting),
        running: Some(in_flight(model)),
        ..Reading::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_can_be_made_and_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<String> =
            Name::ALL.iter().map(Name::to_string).collect();
        assert_eq!(names.len(), Name::ALL.len());
        for law in Name::ALL {
            assert_eq!(law.care().is_none(), law.rival(&RivalFacts::default()).is_some(), "{law}");
        }
        assert_eq!(Name::ALL[0], Name::OURS);
        assert!(Name::ALL.iter().all(|law| law.to_string().parse() == Ok(*law)));
        assert!("forecast@7".parse::<Name>().is_err());
    }
}
