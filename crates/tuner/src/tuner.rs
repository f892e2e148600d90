//! Who decides for each model, and when that is looked at again.

use crate::laws::{Name, Running};
use crate::record::{Record, STEP_S};
use crate::trial::{LawTrial, TrialResult, TrialVerdict};
use flyball_core::decision::{ChosenLaw, Decision};
use flyball_core::ids::ModelId;
use flyball_core::snapshot::{Misses, Model, Snapshot};
use flyball_core::units::{Micros, Timestamp};
use flyball_governor::policy::{Aim, Law, ModelPolicy};
use flyball_governor::{MeasuredDemand, Memory, Policy};
use flyball_simulator::seconds::Seconds;
use std::collections::BTreeMap;

/// Before this much of a record a replay says little: of half an hour, half of the choices were worse than none.
const FIRST_S: f64 = 7_200.0;
/// Each trial is made when the record is twice as long as for the one before, and then daily.
const DAY_TICKS: u64 = (86_400.0 / STEP_S) as u64;
/// How long a law under which too many missed is set aside.
const BARRED: Micros = Micros::from_minutes(7 * 24 * 60);
/// Fewer misses than this show nothing.
const FEWEST_MISSED: f64 = 5.0;

/// Which law decides for each model.
#[derive(Default)]
pub struct Tuner {
    models: BTreeMap<ModelId, Tuned>,
}

/// What is known of one model.
#[derive(Default)]
struct Tuned {
    record: Record,
    choice: LawChoice,
    running: Option<Running>,
    began: Option<Timestamp>,
    /// Looks at the last trial, also one that is under way.
    tried_at: u64,
    /// Misses counted when the law began to decide, and at the last look.
    misses: Option<(Misses, Misses)>,
    barred: Vec<(Name, Timestamp)>,
}

/// The law that decides for a model, and the trial that chose it.
#[derive(Clone, Debug, PartialEq)]
pub struct LawChoice {
    /// Which law.
    pub law: Name,
    /// Since when; `None` from the beginning.
    pub since: Option<Timestamp>,
    /// The last trial.
    pub verdict: Option<TrialVerdict>,
}

impl Default for LawChoice {
    fn default() -> Self {
        Self { law: Name::OURS, since: None, verdict: None }
    }
}

impl Tuner {
    /// Takes a look down, and sets the law of every model that it knows in the policy of this look.
    pub fn observe(&mut self, snapshot: &Snapshot, memory: &Memory, policy: &mut Policy) {
        self.models.retain(|id, _| snapshot.models.contains_key(id));
        for (id, model) in &snapshot.models {
            let tuned = self.models.entry(id.clone()).or_default();
            let mut settings = policy.of(id).clone();
            let tunable = model.variants.len() == 1 && !matches!(settings.aim, Aim::MissCosts(_));
            if !tunable {
                continue;
            }
            settings.law = tuned.observe(id, model, snapshot.taken_at, memory, &settings);
            policy.models.insert(id.clone(), settings);
        }
    }

    /// A trial that is due, if one is; no other is due for this model before it was told of this one's end.
    pub fn due(
        &mut self,
        snapshot: &Snapshot,
        memory: &Memory,
        policy: &Policy,
    ) -> Option<LawTrial> {
        self.models.iter_mut().find_map(|(id, tuned)| {
            let count = tuned.record.count;
            let again = count >= 2 * tuned.tried_at || count >= tuned.tried_at + DAY_TICKS;
            (again && tuned.record.length().get() >= FIRST_S).then_some(())?;
            let model = snapshot.models.get(id)?;
            let measured = memory.measured(id, model)?;
            tuned.tried_at = count;
            Some(tuned.trial(id, model, measured, policy.of(id)))
        })
    }

    /// Takes what came of a trial; `now` is when.
    pub fn settle(&mut self, verdict: TrialVerdict, now: Timestamp) {
        let Some(tuned) = self.models.get_mut(&verdict.model) else { return };
        if verdict.law != tuned.choice.law {
            tuned.change(verdict.law, Some(now));
        }
        tuned.choice.verdict = Some(verdict);
    }

    /// Lets a law go on that decided before this process began. One that decides already stays.
    pub fn restore(&mut self, id: &ModelId, law: Name) {
        let tuned = self.models.entry(id.clone()).or_default();
        if tuned.choice == LawChoice::default() {
            tuned.change(law, None);
        }
    }

    /// Takes over the law by which another decides. Whoever only looks on has no choice of its own.
    pub fn follow(&mut self, id: &ModelId, law: Name) {
        let tuned = self.models.entry(id.clone()).or_default();
        if tuned.choice.law != law {
            tuned.change(law, None);
        }
    }

    /// Every model with the law that decides for it: what a status hands on.
    pub fn laws(&self) -> impl Iterator<Item = (&ModelId, Name)> {
        self.models.iter().map(|(id, tuned)| (id, tuned.choice.law))
    }

    /// The law that decides for a model.
    pub fn choice(&self, id: &ModelId) -> Option<&LawChoice> {
        self.models.get(id).map(|tuned| &tuned.choice)
    }

    /// Puts the laws into the receipts of a decision.
    pub fn sign(&self, decision: &mut Decision) {
        for entry in &mut decision.models {
            let choice = self.choice(&entry.model).filter(|choice| choice.has_trial());
            entry.receipt.law = choice.map(LawChoice::receipt);
        }
    }
}

impl LawChoice {
    /// Whether there is anything to tell: before the first trial there is not.
    fn has_trial(&self) -> bool {
        *self != Self::default()
    }

    fn receipt(&self) -> ChosenLaw {
        let verdict = self.verdict.as_ref();
        let tried = verdict.map_or(&[][..], |verdict| &verdict.tried);
        ChosenLaw {
            name: self.law.to_string(),
            since: self.since,
            replayed: verdict.map_or(Micros::ZERO, |verdict| verdict.replayed.to_micros()),
            tried: tried.iter().map(TrialResult::receipt).collect(),
        }
    }
}

impl Tuned {
    fn observe(
        &mut self,
        id: &ModelId,
        model: &Model,
        now: Timestamp,
        memory: &Memory,
        settings: &ModelPolicy,
    ) -> Law {
        self.barred.retain(|(_, until)| now < *until);
        let measured = memory.measured(id, model);
        if let Some(measured) = &measured {
            self.record.add(now, model, measured);
        }
        self.judge(model, now, measured.as_ref(), settings);
        if let (None, None, Some(measured)) = (self.choice.law.care(), &self.running, measured) {
            let facts = self.trial(id, model, measured, settings).facts();
            self.running = self.choice.law.rival(&facts).map(Running::new);
        }
        let since = Seconds::between(*self.began.get_or_insert(now), now);
        match (self.choice.law.care(), &mut self.running, measured) {
            (Some(care), _, _) => Law::Forecast { care },
            (None, Some(running), Some(measured)) => {
                Law::Stated(running.ask(since, model, &measured))
            }
            // What is not known is for the governor to judge.
            (None, _, _) => Law::default(),
        }
    }

    /// Sets a law aside under which more missed than may.
    fn judge(
        &mut self,
        model: &Model,
        now: Timestamp,
        measured: Option<&MeasuredDemand>,
        settings: &ModelPolicy,
    ) {
        let Some(seen) = model.misses.fresh() else { return };
        let (first, last) = self.misses.get_or_insert((*seen, *seen));
        if seen.requests < last.requests || seen.missed < last.missed {
            *first = *seen;
        }
        *last = *seen;
        let requests = (seen.requests.get() - first.requests.get()) as f64;
        let missed = (seen.missed.get() - first.missed.get()) as f64;
        // An hour's allowance may go at once: one burst says little of a law.
        let hour =
            measured.map_or(0.0, |now| 3_600.0 * now.work * now.requests_per_work.unwrap_or(0.0));
        let law = self.choice.law;
        let ours = law.care().is_some_and(|care| care >= 1.0);
        if !ours
            && missed > FEWEST_MISSED
            && missed > settings.may_miss(&model.objectives) * requests.max(hour)
        {
            self.barred.push((law, now.saturating_add(BARRED)));
            self.change(Name::OURS, Some(now));
        }
    }

    fn change(&mut self, law: Name, now: Option<Timestamp>) {
        (self.choice.law, self.choice.since) = (law, now);
        (self.running, self.misses) = (None, None);
    }

    fn trial(
        &self,
        id: &ModelId,
        model: &Model,
        measured: MeasuredDemand,
        policy: &ModelPolicy,
    ) -> LawTrial {
        LawTrial {
            model: id.clone(),
            record: self.record.clone(),
            measured,
            described: Box::new(Model { variants: BTreeMap::new(), ..model.clone() }),
            policy: policy.clone(),
            current: self.choice.law,
            barred: self.barred.iter().map(|(law, _)| *law).collect(),
        }
    }
}
