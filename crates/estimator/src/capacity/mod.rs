//! What one replica can really do: the prediction is where it begins, and measurement can take it anywhere.
//!
//! A step of an engine takes `t = t0 + work in it`. So when a token takes `t` on the mean, `1 - t0 / t` of the time
//! is work, and where the objective is `T` the engine can do `(1 - t0 / T) / (1 - t0 / t)` times what it does now.
//! That shows at a fifth of its load, long before anybody waits. Three kinds of evidence, then:
//!
//! - *pace*: time per output token against that of an engine with next to nothing to do;
//! - *queue*: what is done while work waits is all that can be done;
//! - *floor*: what is done while nobody waits and nobody misses can be done at least.
//!
//! Work is counted in replicas as they were first thought to be ([`Baseline`]); what is learnt is one factor on it.

mod baseline;
mod line;
mod slowed;
#[cfg(test)]
mod tests;

use crate::reading::Paces;
use baseline::Baseline;
use flyball_core::interval::{Interval, Origin};
use flyball_core::snapshot::Capacity;
use flyball_core::units::{Micros, Timestamp, TokensPerSecond};
use line::Line;
use slowed::Slowed;

/// One moment, as far as it tells about the capacity of a replica.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Timestamp,
    /// Prompt and output tokens per second of one replica.
    pub(crate) each: (f64, f64),
    /// Replicas that served.
    pub(crate) replicas: f64,
    /// Seconds per output token, if any were written.
    pub(crate) pace: Option<f64>,
    /// How long tokens are expected to take.
    pub(crate) expected: Option<Paces>,
    /// Prompt tokens that must be read to an output token, of requests as they usually are, once that is known.
    pub(crate) reads_per_written: Option<f64>,
    /// Requests in one replica.
    pub(crate) running: Option<f64>,
    /// Prompt tokens that wait, for one replica.
    pub(crate) waiting: f64,
    /// Whether more than a few requests missed an objective since the last moment, if that is known.
    pub(crate) missed: Option<bool>,
    /// Seconds per token that the objective allows.
    pub(crate) allowed: Option<f64>,
    /// Whether the replicas that serve are the ones of a while ago, all of them warm.
    pub(crate) settled: bool,
}

/// What was measured of one variant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Learned {
    baseline: Option<Baseline>,
    seen_at: Option<Timestamp>,
    slow: Sums,
    quick: Sums,
    /// The same of engines that stood still in between: they can do at least that.
    light: Sums,
    /// How long tokens took by how much was done.
    line: Line,
    /// Time per token of an engine with nothing to do, as they last told it.
    fitted: Option<f64>,
    /// Time per token of an engine with next to nothing to do, as it was measured.
    idle_pace: Option<f64>,
    /// The shortest time per token that was seen.
    least_pace: Option<f64>,
    /// The most that was done while nobody waited and nobody missed.
    floor: f64,
    /// What was done while work waited, the last time that it did.
    ceiling: Option<f64>,
    /// What waits, in seconds of reading.
    queue: f64,
    /// Requests in one replica at the last moment.
    running: f64,
    /// Whether all of them became slower than they were first known to be.
    slowed: Slowed,
}

/// Seconds per token with as many requests inside as a replica carries, and the share of all its time that they take.
#[derive(Clone, Copy, Debug)]
struct Longest {
    pace: f64,
    share: f64,
}

/// Work as it is counted and as steps show it, both fading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    counted: f64,
    shown: f64,
    readings: f64,
}

/// What is remembered fades to a half in this time, and in the quick sums in that.
const HALF_LIFE_S: f64 = 1_800.0;
const QUICK_HALF_LIFE_S: f64 = 150.0;
/// Sums rest on so many readings before they are believed more than the prior.
const ENOUGH: f64 = 6.0;
/// And on so many before a change of speed is told by them.
const SETTLED: f64 = 12.0;
/// The quick sums and the slow ones differ by so much when something has changed.
const CHANGED: f64 = 0.15;
/// The prior stands where what is shown differs by no more.
const STANDS: f64 = 0.2;
/// Beyond this factor either way a measurement is wrong and not a replica.
const MOST: f64 = 20.0;
/// Prompt tokens to one output token from which on pace says little: of Azure's two hours, conversations have 5.5 and
/// code has 73, where the estimate was half of the truth.
const MOSTLY_READING: f64 = 30.0;
/// With so few requests inside, a step is hardly longer than with one.
const FEW: f64 = 2.0;
/// With so many inside at two looks, an engine did not stand still between them.
const BUSY: f64 = 4.0;
/// The time of an idle step is followed over so long.
const IDLE_S: f64 = 120.0;
/// Of the time per token that is seen, what an idle step takes at least and at most where its prediction was slower.
const REFUTED: (f64, f64) = (0.5, 0.8);
/// However light their steps look, replicas are not believed to do more than this times what one was seen to do: where
/// next to nothing is done, a tenth of a step more or less is a fleet of three or of fourteen.
const BEYOND: f64 = 5.0;
/// Of what pace shows of engines that stood still in between, the part that is relied on.
const LIGHT: f64 = 0.8;
/// Less work than this share of the time does not show above noise.
const LEAST_SHOWN: f64 = 0.03;
/// Of what steps could do at most, the part that requests which come at random leave usable.
const USABLE: f64 = 0.75;
/// How far off a measured capacity may be: as far as the estimate was in ten minutes of Azure's hours.
const DOUBT: f64 = 0.1;
/// How far off one may be of which little is known.
const FIRST_DOUBT: f64 = 0.5;

impl Sums {
    fn add(&mut self, counted: f64, shown: f64, seconds: f64, half_life_s: f64) {
        let left = (-seconds / half_life_s * std::f64::consts::LN_2).exp();
        self.counted = self.counted * left + counted * seconds;
        self.shown = self.shown * left + shown * seconds;
        self.readings = self.readings * left + 1.0;
    }

    /// What a replica does over what it was thought to.
    fn factor(&self, stated: bool) -> Option<f64> {
        let known = self.readings >= ENOUGH && self.shown > 0.0 && self.counted > 0.0;
        // Counted in the first work that was seen, a replica may be any number of it.
        let most = if stated { MOST } else { f64::MAX };
        known.then(|| (self.counted / self.shown).clamp(1.0 / most, most))
    }
}

impl Learned {
    /// Learns from one moment. `prior` is what is known without measuring.
    pub(crate) fn learn(&mut self, prior: &Capacity, moment: &Moment) {
        self.set_baseline(prior, moment);
        let before = self.seen_at.replace(moment.at);
        let seconds =
            before.and_then(|before| moment.at.since(before)).map_or(0.0, Micros::as_seconds);
        let Some(baseline) = self.baseline.filter(|_| seconds > 0.0 && moment.settled) else {
            return;
        };
        let seconds = seconds.min(60.0);
        let each = baseline.share(moment.each);
        // A second's reading of a replica is a queue, and stands if it is there twice; a tenth is noise.
        let queue = moment.waiting / self.reading_rate(&baseline);
        let before = std::mem::replace(&mut self.queue, queue);
        let fades = (-seconds / HALF_LIFE_S).exp();
        // One of many carries more than one alone does, and it is the latter that is told.
        let alone = each / prior.pooling().each(moment.replicas);
        self.ceiling = self.ceiling.map(|known| known / fades).filter(|known| alone <= *known);
        if queue.min(before) > 1.0 {
            let ceiling = self.ceiling.map_or(alone, |known| known + 0.3 * (alone - known));
            self.ceiling = Some(ceiling);
        } else if queue < 0.1 && moment.missed != Some(true) {
            self.floor = alone.max(self.floor * fades);
        }
        // Whoever misses while doing less can do no more: an engine that slowed down is not what it was seen to be.
        if moment.missed == Some(true) && alone < self.floor {
            self.floor += 0.3 * (alone - self.floor);
        }
        self.learn_pace(each, moment, seconds);
    }

    fn learn_pace(&mut self, each: f64, moment: &Moment, seconds: f64) {
        let Some(pace) = moment.pace.filter(|pace| *pace > 0.0 && pace.is_finite()) else { return };
        // Where next to all work is reading, few tokens are written, most of them while much is read: they do not
        // tell of the rest of the time.
        if moment.reads_per_written.is_some_and(|reads| reads > MOSTLY_READING) {
            return;
        }
        self.line.add(each, pace, seconds);
        let Some(idle) = self.idle(each, pace, moment, seconds) else { return };
        let Some(longest) = Self::longest(idle, moment) else { return };
        let shown = longest.share * (1.0 - idle / pace) / (1.0 - idle / longest.pace);
        // Tokens tell of the times in which they were written. Where an engine stands still in between, that is not
        // all of the time.
        let running = moment.running.unwrap_or(0.0);
        let before = std::mem::replace(&mut self.running, running);
        if shown < LEAST_SHOWN {
            return;
        }
        if running.min(before) < BUSY {
            self.light.add(each, shown, seconds, HALF_LIFE_S);
            return;
        }
        if self.follow_speed(each, (idle, pace), longest, moment, seconds) {
            return;
        }
        self.slow.add(each, shown, seconds, HALF_LIFE_S);
        self.quick.add(each, shown, seconds, QUICK_HALF_LIFE_S);
        let stated = self.is_stated();
        if let Some((slow, quick)) = self.slow.factor(stated).zip(self.quick.factor(stated))
            && (quick / slow).ln().abs() > CHANGED
        {
            self.slow = self.quick;
        }
    }

    /// Whether engines are what they were. If they are all slower or quicker, what is known of them is changed by that,
    /// and measured again from there.
    fn follow_speed(
        &mut self,
        each: f64,
        (idle, pace): (f64, f64),
        longest: Longest,
        moment: &Moment,
        seconds: f64,
    ) -> bool {
        let stated = self.is_stated();
        let Some(factor) = self.slow.factor(stated).filter(|_| self.slow.readings >= SETTLED)
        else {
            return false;
        };
        let of_all = |idle: f64, longest: Longest| (1.0 - idle / longest.pace) / longest.share;
        let done = each / factor * of_all(idle, longest);
        let Some(times) = self.slowed.observe(idle / pace + done, seconds) else { return false };
        self.idle_pace = self.idle_pace.map(|known| known * times);
        self.least_pace = Some(pace);
        self.fitted = self.fitted.map(|known| known * times);
        self.line = Line::default();
        // Engines too slow for the objective have no load at which they keep it: they do what is left of what they did.
        let left = Self::longest(idle * times, moment)
            .map_or(1.0, |now| of_all(idle * times, now) / of_all(idle, longest))
            / times;
        let since = Sums {
            counted: factor * left * ENOUGH * seconds,
            shown: ENOUGH * seconds,
            readings: ENOUGH,
        };
        (self.slow, self.quick) = (since, since);
        self.floor *= left.min(1.0);
        self.ceiling = None;
        true
    }

    /// How long tokens take with as many requests as a replica carries. Where that is not known: with as many as it can
    /// do at all it is as long as the objective allows.
    fn longest(idle: f64, moment: &Moment) -> Option<Longest> {
        let longest = match (moment.expected, moment.allowed) {
            (Some(paces), allowed) => {
                let times = idle / paces.idle;
                let same = times * paces.full;
                // Engines that are slower or quicker than they are said to be have the same objective.
                let usable = allowed.map_or(same, |allowed| USABLE * allowed);
                let pace = match times.ln() {
                    slower if slower > STANDS => same.min(usable.max(paces.full)),
                    quicker if quicker < -STANDS => same.max(usable.min(paces.full)),
                    _ => same,
                };
                Longest { pace, share: 1.0 }
            }
            (None, Some(allowed)) => Longest { pace: allowed, share: 1.0 / USABLE },
            (None, None) => return None,
        };
        (longest.pace > 1.05 * idle).then_some(longest)
    }

    /// Time per token of an engine with next to nothing to do: as it was measured while next to nothing ran, and else
    /// as it is expected, unless tokens were quicker than that.
    fn idle(&mut self, each: f64, pace: f64, moment: &Moment, seconds: f64) -> Option<f64> {
        let least = self.least_pace.map_or(pace, |least| least.min(pace));
        self.least_pace = Some(least);
        // So many wrote on the mean while these tokens were written: after a load that has just ended they are its own.
        let wrote = moment.each.1 * pace;
        if moment.running.is_some_and(|running| running.max(wrote) <= FEW) {
            let known = self.idle_pace.unwrap_or(pace);
            self.idle_pace = Some(known + (pace - known) * (seconds / IDLE_S).min(1.0));
        }
        // What was measured grows old where nothing is idle any more: then it is no longer than the shortest.
        let measured = self.idle_pace.map(|idle| idle.min(least));
        let expected = moment.expected.map(|paces| paces.idle * self.slowed.times);
        let expected = expected.filter(|idle| least > 0.95 * idle);
        // The prediction stands until loads that differ show it to be wrong by more than they can be.
        self.fitted = self.line.idle().or(self.fitted);
        let fitted = self.fitted.map(|idle| idle.min(least));
        let fitted = match (fitted, expected) {
            (Some(fitted), Some(idle)) if (fitted / idle).ln().abs() <= STANDS => Some(idle),
            (fitted, _) => fitted,
        };
        let refuted = moment.expected.map(|paces| self.refuted(each, paces, pace).min(least));
        measured.or(fitted).or(expected.map(|idle| idle.min(least))).or(refuted)
    }

    /// The time of an idle step whose prediction is slower than what was seen: its engines are so many times as quick as
    /// they are said to be, in all that they do.
    fn refuted(&self, each: f64, paces: Paces, pace: f64) -> f64 {
        let done = each * (1.0 - paces.idle / paces.full).max(0.0);
        let speed = if self.is_stated() { paces.idle / pace + done } else { f64::INFINITY };
        (paces.idle / speed).clamp(REFUTED.0 * pace, REFUTED.1 * pace)
    }

    /// Without a stated capacity, the first reading that is seen and the writing that goes with it: what is written in
    /// the first seconds is next to nothing, and counted in it all later work would be hundreds of replicas.
    fn set_baseline(&mut self, prior: &Capacity, moment: &Moment) {
        let stated = Baseline::of(prior);
        let seen = match (moment.reads_per_written, moment.each) {
            (Some(reads), (prefill, _)) if prefill >= 1.0 => Some((prefill, prefill / reads)),
            // Where caches have next to all of the prompts, writing is all the work that there is to count by.
            (Some(reads), (_, written)) => Some((written * reads, written)),
            // An engine that counts no requests (llama.cpp) tells of no shape. Once it has been at work for a while, what
            // it does is as good.
            (None, each) => moment.settled.then_some(each),
        };
        let seen = seen.filter(|(_, decode)| *decode >= 1.0 && decode.is_finite());
        let seen = seen.map(|(prefill, decode)| {
            let prefill = if prefill >= 1.0 { prefill } else { 1.0 };
            Baseline { prefill, decode, reading: None, stated: false }
        });
        match (self.baseline, stated) {
            (None, _) => self.baseline = stated.or(seen),
            (Some(known), Some(stated)) if known != stated => {
                // The same replica in other words: what was learnt is about the replica.
                let factor = stated.share((known.prefill, known.decode));
                self.rescale(if known.stated { 1.0 } else { factor });
                self.baseline = Some(stated);
            }
            _ => {}
        }
    }

    fn rescale(&mut self, factor: f64) {
        self.slow.counted *= factor;
        self.quick.counted *= factor;
        self.light.counted *= factor;
        self.line.rescale(factor);
        self.floor *= factor;
        self.ceiling = self.ceiling.map(|known| known * factor);
    }

    fn reading_rate(&self, baseline: &Baseline) -> f64 {
        (baseline.prefill * self.factor().unwrap_or(1.0)).max(1.0)
    }

    fn is_stated(&self) -> bool {
        self.baseline.is_some_and(|baseline| baseline.stated)
    }

    /// How many times as long everything takes as it did at first.
    pub(crate) const fn slowed_times(&self) -> f64 {
        self.slowed.times
    }

    /// Time per token of an engine with next to nothing to do, if it was measured.
    pub(crate) fn idle_pace(&self) -> Option<f64> {
        self.idle_pace.map(|idle| self.least_pace.map_or(idle, |least| idle.min(least)))
    }

    /// What a replica does at most over what it was thought to, if that was seen.
    fn shown(&self) -> Option<f64> {
        let stated = self.is_stated();
        match (self.slow.factor(stated), self.ceiling) {
            // What is done while work waits is all that can be done, whatever the pace says.
            (Some(paced), Some(ceiling)) => Some(paced.min(ceiling)),
            (Some(paced), None) => Some(paced),
            (None, Some(ceiling)) if stated => (ceiling < 1.0).then_some(ceiling),
            (None, Some(ceiling)) => Some(USABLE * ceiling),
            (None, None) => None,
        }
    }

    /// What a replica was seen to do at least: all of it at once, or with time to spare.
    fn floor(&self) -> f64 {
        let light = self.light.factor(self.is_stated()).map_or(0.0, |factor| LIGHT * factor);
        // Where engines are busy, their pace says it better.
        let light = if self.slow.readings >= ENOUGH { 0.0 } else { light };
        self.floor.max(light)
    }

    /// What a replica does over what it was thought to, if anything was measured.
    pub(crate) fn factor(&self) -> Option<f64> {
        let stated = self.is_stated();
        let floor = self.floor();
        let believed = |shown: f64| shown.min((BEYOND * floor).max(1.0));
        let shown = self.shown().map(|shown| if stated { believed(shown) } else { shown });
        match shown {
            // The prior stands until it is shown to be wrong by more than what is shown may be.
            Some(shown) if stated && (shown.max(floor) - 1.0).abs() <= STANDS => Some(1.0),
            Some(shown) => Some(shown.max(floor)),
            None => (floor > if stated { 1.0 } else { 0.0 }).then_some(floor),
        }
    }

    /// What one replica can do: the prior, corrected by what was measured.
    pub(crate) fn capacity(&self, prior: &Capacity) -> Capacity {
        let (Some(baseline), Some(factor)) = (self.baseline, self.factor()) else { return *prior };
        let unmeasured = prior.prefill.map_or(FIRST_DOUBT, |part| {
            let point = (part.point().get() as f64).max(1.0);
            1.0 - part.low().get() as f64 / point
        });
        let known = self.slow.readings >= ENOUGH && (factor - 1.0).abs() > STANDS;
        let doubt = if known { DOUBT } else { unmeasured };
        // That it was seen to do so much does not say how much more it can do.
        let at_least = !baseline.stated && self.shown().is_none();
        let origin = if at_least { Origin::Assumed } else { Origin::Measured };
        let rate = |tokens: f64| {
            let of = |share: f64| TokensPerSecond::from_sample(tokens * factor * share);
            let (low, point, high) = (of(1.0 - doubt)?, of(1.0)?, of(1.0 + doubt)?);
            Interval::new(low, point, high, origin).ok()
        };
        if baseline.stated && (factor - 1.0).abs() < f64::EPSILON {
            return Capacity { measured_per_million: Some(1_000_000), ..*prior };
        }
        Capacity {
            prefill: rate(baseline.prefill),
            decode: rate(baseline.decode),
            measured_per_million: baseline.stated.then(|| (factor * 1e6).round() as u32),
            ..*prior
        }
    }
}

/// How many numbers it is.
pub(crate) const NUMBERS: usize = 21 + line::NUMBERS + slowed::NUMBERS;

/// In place of a number that is not known.
const NOT_KNOWN: f64 = -1.0;

impl Learned {
    /// What was learnt, as numbers; `None` if nothing was.
    pub(crate) fn numbers(&self) -> Option<[f64; NUMBERS]> {
        let baseline = self.baseline?;
        let known = |number: Option<f64>| number.unwrap_or(NOT_KNOWN);
        let Sums { counted, shown, readings } = self.slow;
        let quick = self.quick;
        let [count, work, speed, squares, products] = self.line.numbers();
        let [times, follows, ticks] = self.slowed.numbers();
        let light = self.light;
        Some([
            baseline.prefill,
            baseline.decode,
            known(baseline.reading),
            f64::from(u8::from(baseline.stated)),
            counted,
            shown,
            readings,
            known(self.idle_pace),
            self.floor,
            known(self.ceiling),
            quick.counted,
            quick.shown,
            quick.readings,
            known(self.least_pace),
            self.queue,
            self.running,
            known(self.seen_at.map(|at| at.as_micros() as f64)),
            light.counted,
            light.shown,
            light.readings,
            known(self.fitted),
            count,
            work,
            speed,
            squares,
            products,
            times,
            follows,
            ticks,
        ])
    }

    /// The same back; `None` if it cannot be.
    pub(crate) fn restored(numbers: &[f64; NUMBERS]) -> Option<Self> {
        let [prefill, decode, reading, stated, counted, shown, readings, idle, floor, ceiling, ..] =
            *numbers;
        let (rest, slowed) = numbers.split_last_chunk()?;
        let (rest, line) = rest.split_last_chunk()?;
        let (rest, &[counted_light, shown_light, readings_light, fitted]) =
            rest.split_last_chunk()?;
        let &[.., quick_counted, quick_shown, quick_readings, least, queue, running, seen_at] =
            rest
        else {
            return None;
        };
        let light = Sums { counted: counted_light, shown: shown_light, readings: readings_light };
        let (line, slowed) = (Line::restored(*line)?, Slowed::restored(*slowed)?);
        let quick = Sums { counted: quick_counted, shown: quick_shown, readings: quick_readings };
        let sums = [counted, shown, readings, floor, queue, running];
        let quicks = [quick, light].map(|sums| [sums.counted, sums.shown, sums.readings]);
        let quicks = quicks.as_flattened();
        let sums = sums.iter().chain(quicks).all(|one| (0.0..1e9).contains(one));
        let baseline = [prefill, decode].iter().all(|rate| (1.0..1e12).contains(rate));
        let rest = [reading, idle, ceiling, least, fitted]
            .iter()
            .all(|one| (NOT_KNOWN..1e9).contains(one))
            && (NOT_KNOWN..9e15).contains(&seen_at);
        let known = |number: f64| (number >= 0.0).then_some(number);
        (sums && baseline && rest && reading <= 1.0).then(|| Self {
            baseline: Some(Baseline {
                prefill,
                decode,
                reading: known(reading),
                stated: stated > 0.5,
            }),
            slow: Sums { counted, shown, readings },
            quick,
            light,
            line,
            slowed,
            fitted: known(fitted),
            least_pace: known(least),
            queue,
            running,
            seen_at: known(seen_at).map(|at| Timestamp::from_micros(at as u64)),
            idle_pace: known(idle),
            floor,
            ceiling: known(ceiling),
        })
    }
}
