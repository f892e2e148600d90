//! Replays every run under every policy, on all cores, and says how far it is.

use flyball_simulator::training::optimum::optimum;
use flyball_simulator::training::ours::{OurPolicy, watched};
use flyball_simulator::training::rivals::RunRival;
use flyball_simulator::training::{ReplayedRun, play};

use super::ground::TrainGround;
use crate::commands::backtest::replay::parallel;
use crate::output::{Exit, Failure, FailureCode, Progress};

/// Our own policy, as it is typed.
pub(super) const OURS: &str = "flyball";

/// A policy by name; no rival is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrainPolicy(Option<RunRival>);

impl TrainPolicy {
    pub(super) fn name(self) -> &'static str {
        self.0.map_or(OURS, RunRival::name)
    }
}

/// What came of all runs under one policy.
pub(super) struct TrainPlayed {
    pub(super) name: String,
    pub(super) runs: Vec<ReplayedRun>,
}

/// What came of everything.
pub(super) struct AllPlayed {
    /// What knowing the future would have cost, run by run; none where nobody could have been in time.
    pub(super) optimum: Vec<Option<f64>>,
    pub(super) policies: Vec<TrainPlayed>,
}

/// The policies that were typed.
pub(super) fn policies(names: &[String]) -> Result<Vec<TrainPolicy>, Failure> {
    let known = || {
        std::iter::once(TrainPolicy(None)).chain(RunRival::ALL.map(|one| TrainPolicy(Some(one))))
    };
    let read = |name: &String| {
        known().find(|policy| policy.name() == name).ok_or_else(|| {
            let names: Vec<&str> = known().map(TrainPolicy::name).collect();
            Failure::new(Exit::Usage, format!("no policy for training runs is called {name}"))
                .because(format!("there are {}", names.join(", ")))
                .hint("name one of them in --policy")
                .code(FailureCode::Policy)
        })
    };
    names.iter().map(read).collect()
}

/// One answer of a job.
enum Came {
    Optimum(Option<f64>),
    Run(Box<ReplayedRun>),
}

pub(super) fn all(
    ground: &TrainGround,
    policies: &[TrainPolicy],
    progress: &Progress,
) -> AllPlayed {
    let (market, players) = (&ground.market, policies.len() + 1);
    let came = parallel(players * ground.runs.len(), progress, "backtest train", |job| {
        let run = &ground.runs[job / players];
        let Some(policy) = (job % players).checked_sub(1).map(|at| policies[at]) else {
            return Came::Optimum(optimum(market, run));
        };
        let memory = watched(market, run, 0..run.start);
        Came::Run(Box::new(match policy.0 {
            None => play(market, run, &mut OurPolicy::with(memory)),
            Some(rival) => play(market, run, &mut rival.policy(run.work, run.allowed, memory)),
        }))
    });
    let mut all = AllPlayed {
        optimum: Vec::new(),
        policies: policies
            .iter()
            .map(|policy| TrainPlayed { name: policy.name().to_owned(), runs: Vec::new() })
            .collect(),
    };
    for (job, one) in came.into_iter().enumerate() {
        match one {
            Came::Optimum(cost) => all.optimum.push(cost),
            Came::Run(run) => all.policies[job % players - 1].runs.push(*run),
        }
    }
    all
}
