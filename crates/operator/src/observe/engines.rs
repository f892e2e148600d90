//! All engines of a model together, as their series tell.

use super::demand::{Known, Means, Serving, Signals, Waiting};
use flyball_core::snapshot::{Demand, Observed, Sources};
use flyball_core::units::{Micros, Timestamp, Tokens, TokensPerSecond};

/// A pod that became ready this recently may not have been scraped yet.
const UNSCRAPED: Micros = Micros::from_seconds(60);

/// All engines of a model together.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// When the oldest of them was scraped.
    pub(super) at: Option<Timestamp>,
    /// When the youngest of those in which requests wait was.
    pub(super) waits_at: Option<Timestamp>,
    pub(super) prompt_rate: Part,
    pub(super) output_rate: Part,
    pub(super) resident: Part,
    pub(super) waiting: Part,
    pub(super) shape: Option<Means>,
    /// Engines that tell all, and lately.
    heard: u32,
    /// Engines whose series are old. They count with what they told last.
    pub(super) old: u32,
    /// Engines that do not tell all, or not lately, and names of the first few.
    silent: u32,
    pub(super) names: Vec<String>,
}

/// Names of silent ones that a person is shown: the first few are where to begin.
pub(super) const NAMES: usize = 3;

/// One number of all engines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Part {
    sum: Option<f64>,
    /// Whether an engine that should tell it does not.
    lacks: bool,
}

impl Part {
    fn add(&mut self, part: Option<f64>) {
        match part.filter(|part| part.is_finite()) {
            Some(part) => self.sum = Some(self.sum.unwrap_or(0.0) + part),
            None => self.lacks = true,
        }
    }

    /// The sum of those that tell, if any does.
    pub(super) fn known(self) -> Option<f64> {
        self.sum
    }

    /// The sum, if all tell.
    pub(super) fn whole(self) -> Option<f64> {
        self.sum.filter(|_| !self.lacks)
    }
}

impl Sum {
    pub(super) fn of(
        serving: &Serving<'_>,
        signals: &Signals,
        (now, max_age): (Timestamp, Micros),
    ) -> Self {
        let mut sum = Self::default();
        let (mut prompts, mut outputs, mut said) = (0.0, 0.0, 0.0);
        for (pod, room) in &serving.pods {
            let place = (serving.namespace.to_owned(), pod.name.clone());
            let Some(engine) = signals.engines.get(&place) else {
                let new = pod.ready.and_then(|ready| now.since(ready));
                if new.is_none_or(|age| age >= UNSCRAPED) {
                    sum.lack(&pod.name);
                }
                continue;
            };
            sum.at = Some(sum.at.map_or(engine.at, |at| at.min(engine.at)));
            let waiting = match engine.waiting {
                Some(waiting) if waiting <= 0.0 => Some(0.0),
                waiting => waiting.zip(engine.prompt_mean).map(|(count, mean)| count * mean),
            };
            if waiting.is_some_and(|tokens| tokens > 0.0) {
                sum.waits_at = sum.waits_at.max(Some(engine.at));
            }
            let held =
                engine.cache_used.zip(*room).map(|(used, room)| used * room.point().get() as f64);
            sum.resident.add(held);
            let tells = [engine.prompt_rate, engine.output_rate, waiting];
            sum.prompt_rate.add(engine.prompt_rate);
            sum.output_rate.add(engine.output_rate);
            sum.waiting.add(waiting);
            let old = now.apart(engine.at) > max_age;
            sum.old += u32::from(old);
            if old || !tells.into_iter().all(|one| one.is_some_and(f64::is_finite)) {
                sum.misses(&pod.name);
            } else {
                sum.heard += 1;
            }
            // An engine that answered nobody lately has a mean that is no number.
            if let (Some(prompt), Some(output)) = (engine.prompt_mean, engine.output_mean)
                && prompt.is_finite()
                && output.is_finite()
            {
                (prompts, outputs, said) = (prompts + prompt, outputs + output, said + 1.0);
            }
        }
        sum.shape = (said > 0.0).then(|| Means {
            prompt: prompts / said,
            output: outputs / said,
            // Of how many, series do not tell.
            answered: Means::SETTLED,
        });
        sum
    }

    /// An engine that should tell has no series at all.
    fn lack(&mut self, pod: &str) {
        for part in
            [&mut self.prompt_rate, &mut self.output_rate, &mut self.resident, &mut self.waiting]
        {
            part.lacks = true;
        }
        self.misses(pod);
    }

    fn misses(&mut self, pod: &str) {
        self.silent += 1;
        if self.names.len() < NAMES {
            self.names.push(format!("engine {pod}"));
        }
    }

    /// With nobody else to ask. No engine at all says nothing: whether anybody wants the model is then
    /// not known.
    pub(super) fn alone(self, time: (Timestamp, Micros)) -> Known {
        let (misses, (now, max_age)) = (Observed::Missing, time);
        let Some(at) = self.at else {
            return Known { demand: Demand::UNKNOWN, misses, shape: None, silent: self.names };
        };
        let rate = |part: Part| {
            let value = part.known().and_then(TokensPerSecond::from_sample);
            Observed::judge(value, at, now, max_age).partial_if(part.lacks)
        };
        let held = self.resident.known().and_then(Tokens::from_sample);
        let resident = Observed::judge(held, at, now, max_age);
        let waiting = Waiting {
            tokens: self.waiting.known(),
            seen_at: self.waits_at,
            at,
            partial: self.waiting.lacks,
        };
        let demand = Demand {
            prefill: rate(self.prompt_rate),
            decode: rate(self.output_rate),
            resident: resident.partial_if(self.resident.lacks),
            backlog: waiting.judge(time),
            sources: Sources { heard: self.heard, silent: self.silent },
        };
        Known { demand, misses, shape: self.shape, silent: self.names }
    }
}
