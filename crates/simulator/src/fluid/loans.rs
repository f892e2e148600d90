//! Training runs that borrow idle slots of a fixed pool: all that they need, or nothing.

use crate::seconds::Seconds;
use flyball_core::decision::Decision;
use flyball_core::ids::RunId;

/// A training run that borrows. There is always work left for it.
#[derive(Clone, Debug, PartialEq)]
pub struct FluidRun {
    /// Slots that it needs.
    pub slots: u32,
    /// From getting them until it trains.
    pub restart: Seconds,
    /// What of its training a take-back throws away, at most.
    pub lost: Seconds,
}

/// The runs of a replay.
#[derive(Clone, Debug, Default)]
pub(super) struct Loans {
    runs: Vec<Loan>,
    /// Slot time of training, without what was thrown away.
    useful: f64,
    /// Take-backs so far.
    pub(super) take_backs: u32,
}

#[derive(Clone, Debug)]
struct Loan {
    id: RunId,
    run: FluidRun,
    /// Since when it has its slots.
    since: Option<Seconds>,
}

impl Loans {
    pub(super) fn new(runs: &[FluidRun]) -> Self {
        let loan = |(number, run): (usize, &FluidRun)| Loan {
            id: RunId::new("training", &format!("run-{number:03}")).expect("words are names"),
            run: run.clone(),
            since: None,
        };
        let runs = runs.iter().enumerate().map(loan).collect();
        Self { runs, useful: 0.0, take_backs: 0 }
    }

    /// Whether runs borrow whole, and not slot by slot.
    pub(super) const fn are_whole(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Each with the slots that it needs and those that it has.
    pub(super) fn each(&self) -> impl Iterator<Item = (&RunId, u32, u32)> {
        let one = |loan: &'_ Loan| if loan.since.is_some() { loan.run.slots } else { 0 };
        self.runs.iter().map(move |loan| (&loan.id, loan.run.slots, one(loan)))
    }

    /// Gives and takes what was decided. `idle` slots can be given; returns how many were, and how many come back.
    pub(super) fn follow(
        &mut self,
        decision: &Decision,
        mut idle: u32,
        now: Seconds,
    ) -> (u32, u32) {
        let (mut given, mut back) = (0, 0);
        for loan in &mut self.runs {
            let decided = decision.runs.iter().find(|one| one.run == loan.id);
            let lent = decided.is_some_and(|one| !one.gpus.is_zero());
            match (lent, loan.since) {
                (true, None) if loan.run.slots <= idle => {
                    idle -= loan.run.slots;
                    given += loan.run.slots;
                    loan.since = Some(now);
                }
                (false, Some(since)) => {
                    loan.since = None;
                    back += loan.run.slots;
                    self.take_backs += 1;
                    let trained = (now - since - loan.run.restart).max(Seconds::ZERO);
                    self.useful -= f64::from(loan.run.slots) * trained.min(loan.run.lost).get();
                }
                _ => {}
            }
        }
        (given, back)
    }

    /// Lets those train that have their slots for long enough.
    pub(super) fn train(&mut self, now: Seconds, step: Seconds) {
        for loan in &self.runs {
            if loan.since.is_some_and(|since| since + loan.run.restart <= now) {
                self.useful += f64::from(loan.run.slots) * step.get();
            }
        }
    }

    /// Slot time of training so far, without what was thrown away.
    pub(super) const fn useful(&self) -> f64 {
        self.useful
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::decision::{RunAction, RunDecision};
    use flyball_core::ids::DecisionId;
    use flyball_core::reason::Reason;
    use flyball_core::units::{Gpus, Timestamp};

    fn decision(gpus: &[u32]) -> Decision {
        let run = |(number, gpus): (usize, &u32)| RunDecision {
            run: RunId::new("training", &format!("run-{number:03}")).unwrap(),
            gpus: Gpus::new(*gpus),
            reason: Reason::Steady,
            action: RunAction::Hold,
        };
        Decision {
            id: DecisionId::new(Timestamp::from_millis(0), 0),
            models: Vec::new(),
            runs: gpus.iter().enumerate().map(run).collect(),
            pools: Vec::new(),
        }
    }

    #[test]
    fn a_run_has_all_its_slots_or_none_and_a_restart_and_what_is_lost_are_no_training() {
        let run = |slots| FluidRun { slots, restart: Seconds(60.0), lost: Seconds(30.0) };
        let mut loans = Loans::new(&[run(4), run(2)]);
        assert_eq!(loans.follow(&decision(&[4, 2]), 5, Seconds(0.0)), (4, 0));
        assert_eq!(loans.each().map(|(_, _, has)| has).collect::<Vec<_>>(), [4, 0]);
        for step in 0..20 {
            loans.train(Seconds(5.0) * f64::from(step), Seconds(5.0));
        }
        // Forty seconds of four slots.
        assert_eq!(loans.useful(), 160.0);
        assert_eq!(loans.follow(&decision(&[0, 2]), 1, Seconds(100.0)), (0, 4));
        assert_eq!((loans.useful(), loans.take_backs), (40.0, 1));
    }
}
