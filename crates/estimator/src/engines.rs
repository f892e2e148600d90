//! All engines of a model together: counts into rates, and sums over those that tell.

use crate::reading::{CacheUsed, EngineCounts, EngineReading};
use crate::shape::Means;
use flyball_core::ids::ReplicaId;
use flyball_core::interval::Interval;
use flyball_core::units::{Micros, Timestamp, Tokens};

/// A replica that began to serve this recently may not have been scraped yet.
const UNSCRAPED: Micros = Micros::from_seconds(60);

/// Names of silent ones that a person is shown: the first few are where to begin.
pub(crate) const NAMES: usize = 3;

/// An engine that serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serving<'a> {
    pub(crate) id: &'a ReplicaId,
    pub(crate) engine: &'a EngineReading,
    /// What it can hold.
    pub(crate) room: Option<Interval<Tokens>>,
    /// Whether it is slower than others: how long its tokens take says nothing about those.
    pub(crate) is_slow: bool,
}

/// All engines of a model together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    /// When the oldest of them was scraped.
    pub(crate) at: Option<Timestamp>,
    /// When the youngest of those in which requests wait was.
    pub(crate) waits_at: Option<Timestamp>,
    pub(crate) prompt_rate: Part,
    pub(crate) output_rate: Part,
    pub(crate) resident: Part,
    pub(crate) waiting: Part,
    pub(crate) running: Part,
    pub(crate) shape: Option<Means>,
    /// Tokens after first ones, and seconds that they took, in the window.
    pub(crate) paced: (f64, f64),
    /// The part of prompt tokens that had to be read, where engines tell what their caches had.
    pub(crate) uncached: Option<f64>,
    /// Engines that tell all, and lately.
    pub(crate) reporting: u32,
    /// Engines whose readings are old. They count with what they told last.
    pub(crate) old: u32,
    /// Engines that do not tell all, or not lately, and names of the first few.
    pub(crate) silent: u32,
    pub(crate) names: Vec<String>,
}

/// One number of all engines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    sum: Option<f64>,
    /// Whether an engine that should tell it does not.
    pub(crate) lacks: bool,
}

impl Part {
    pub(crate) fn add(&mut self, part: Option<f64>) {
        match part.filter(|part| part.is_finite()) {
            Some(part) => self.sum = Some(self.sum.unwrap_or(0.0) + part),
            None => self.lacks = true,
        }
    }

    /// The sum of those that tell, if any does.
    pub(crate) fn known(self) -> Option<f64> {
        self.sum
    }

    /// The sum, if all tell.
    pub(crate) fn whole(self) -> Option<f64> {
        self.sum.filter(|_| !self.lacks)
    }
}

/// Mean tokens of requests, added up over engines.
#[derive(Default)]
struct Shapes {
    prompts: f64,
    outputs: f64,
    answered: f64,
    caches: Caches,
}

/// What caches had of the prompts that engines were given: of the window, and since they began.
#[derive(Default)]
struct Caches {
    window: (f64, f64),
    ever: (f64, f64),
}

impl Caches {
    fn add(&mut self, window: Option<(f64, f64)>, ever: &EngineCounts) {
        let all = ever.prompt_tokens + ever.cached_tokens;
        if !all.is_finite() {
            return;
        }
        let plus = |sum: (f64, f64), more: (f64, f64)| (sum.0 + more.0, sum.1 + more.1);
        self.window = plus(self.window, window.unwrap_or_default());
        self.ever = plus(self.ever, (ever.cached_tokens, ever.prompt_tokens));
    }

    /// The part that they did not have, if anybody tells. A cache counts a prompt when it is looked up, and an engine
    /// when it has read it, so that one may be ahead of the other.
    fn lacked(&self) -> Option<f64> {
        let mut counted = [self.window, self.ever].into_iter().filter(|(_, all)| *all > 0.0);
        counted.next().map(|(cached, all)| 1.0 - (cached / all).clamp(0.0, 1.0))
    }
}

/// All that serve together. A prompt and an answer have so many tokens where an engine that answered nobody lately
/// cannot tell.
pub(crate) fn sum(
    serving: &[Serving<'_>],
    usual: (f64, f64),
    (now, max_age): (Timestamp, Micros),
) -> Sum {
    let (mut sum, mut shapes) = (Sum::default(), Shapes::default());
    for one in serving {
        let Serving { id, engine, .. } = one;
        let Some((at, _)) = engine.counts.last() else {
            let new = engine.serves_since.and_then(|since| now.since(since));
            if new.is_none_or(|age| age >= UNSCRAPED) {
                sum.lack(id);
            }
            continue;
        };
        sum.at = Some(sum.at.map_or(at, |all| all.min(at)));
        let reports = sum.add(one, at, usual, &mut shapes);
        let old = now.apart(at) > max_age;
        sum.old += u32::from(old);
        if reports && !old { sum.reporting += 1 } else { sum.misses(id) }
    }
    sum.uncached = shapes.caches.lacked();
    sum.shape = (shapes.answered > 0.0).then(|| Means {
        prompt: shapes.prompts / shapes.answered,
        output: shapes.outputs / shapes.answered,
        // Of how many in all, a window does not tell.
        answered: Means::SETTLED,
    });
    sum
}

impl Sum {
    /// Adds one engine. Returns whether it tells all.
    fn add(
        &mut self,
        &Serving { engine, room, is_slow, .. }: &Serving<'_>,
        at: Timestamp,
        usual: (f64, f64),
        shapes: &mut Shapes,
    ) -> bool {
        let span = engine.counts.span();
        let grown = |count: fn(&EngineCounts) -> f64| {
            span.map(|span| span.grown(count)).filter(|grown| grown.is_finite())
        };
        let rate = |count: fn(&EngineCounts) -> f64| span.map(|span| span.rate(count));
        let (prompts, outputs) = (grown(|one| one.prompt_tokens), grown(|one| one.output_tokens));
        let answered = grown(|one| one.answered).filter(|count| *count > 0.0);
        let mean = prompts.zip(answered).map_or(usual.0, |(tokens, count)| tokens / count);
        let cached = grown(|one| one.cached_tokens).zip(prompts);
        let ever = engine.counts.last().map(|(_, last)| *last).unwrap_or(EngineCounts::UNKNOWN);
        let mut caches = Caches::default();
        caches.add(cached, &ever);
        shapes.caches.add(cached, &ever);
        // What a cache has of a prompt does not wait to be read; but for its last token.
        let unread = (mean * caches.lacked().unwrap_or(1.0)).max(1.0);
        let waiting = engine.waiting.map(|count| count * unread);
        if engine.waiting.is_some_and(|waiting| waiting > 0.0) {
            self.waits_at = self.waits_at.max(Some(at));
        }
        let bounded = room.map(|room| room.point()).filter(|room| *room < Tokens::MAX);
        let holds = engine.cache_tokens.or_else(|| bounded.map(|room| room.get() as f64));
        // Half of an answer is there on the mean.
        let reckoned = || engine.running.map(|count| count * (usual.0 + usual.1 / 2.0));
        self.resident.add(match (engine.cache_used, holds) {
            (CacheUsed::Missing, _) => None,
            (CacheUsed::Share(used), Some(room)) => Some(used * room),
            (CacheUsed::Share(used), None) if used.is_nan() => None,
            // A share of nobody knows what.
            (CacheUsed::Share(_), None) | (CacheUsed::Untold, _) => reckoned(),
        });
        // A cache that is ahead of what was read makes nothing unread.
        let reads = rate(EngineCounts::read_tokens).map(|rate| if rate < 0.0 { 0.0 } else { rate });
        let rates = (reads, rate(|one| one.output_tokens));
        self.prompt_rate.add(rates.0);
        self.output_rate.add(rates.1);
        self.waiting.add(waiting);
        self.running.add(engine.running);
        if let Some(((prompts, outputs), answered)) = prompts.zip(outputs).zip(answered) {
            shapes.prompts += prompts;
            shapes.outputs += outputs;
            shapes.answered += answered;
        }
        let paced = grown(|one| one.paced_tokens).zip(grown(|one| one.paced_seconds));
        if let Some(paced) = paced.filter(|_| !is_slow) {
            self.paced = (self.paced.0 + paced.0, self.paced.1 + paced.1);
        }
        [rates.0, rates.1, waiting].into_iter().all(|one| one.is_some_and(f64::is_finite))
    }

    /// An engine that should tell says nothing at all.
    fn lack(&mut self, id: &ReplicaId) {
        for part in
            [&mut self.prompt_rate, &mut self.output_rate, &mut self.resident, &mut self.waiting]
        {
            part.lacks = true;
        }
        self.misses(id);
    }

    fn misses(&mut self, id: &ReplicaId) {
        self.silent += 1;
        if self.names.len() < NAMES {
            self.names.push(format!("engine {}", id.name()));
        }
    }
}
