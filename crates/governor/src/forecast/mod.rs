//! What is to be expected once a replica asked for now would serve.
//!
//! A [`Forecaster`] follows the level of the work and its noise, and keeps how far the level moved
//! within one look-ahead in the past, in units of how far it was thought to move. An [`Outlook`]
//! turns that into one question: how much work would miss its objective with so much capacity?
//! Price against misses then gives the number of replicas: [`Weighing`].
//!
//! It knows no replicas, no pools and no money. Start at [`Outlook`].

mod hindsight;
mod moves;
mod numbers;
mod queue;
mod rise;
#[cfg(test)]
mod tests;
mod weighing;

pub(crate) use hindsight::NUMBERS as HINDSIGHT_NUMBERS;
pub(crate) use moves::BINS;
pub(crate) use numbers::{MOVES_NUMBERS, NUMBERS};
pub(crate) use weighing::Weighing;

use flyball_core::units::Timestamp;
use hindsight::Hindsight;
use moves::Moves;
use queue::Queue;
use std::collections::VecDeque;

/// What is to be expected over one look-ahead. Work is counted in replicas of the yardstick.
#[derive(Clone, Debug)]
pub(crate) struct Outlook {
    /// The work to be expected, from little to much, each with the chance of its cell.
    work: [f64; CELLS],
    level: f64,
    noise: f64,
    /// Work that will still wait when a new replica could serve.
    pub(crate) queue: f64,
    /// The wait that misses the objective.
    pub(crate) slack_s: f64,
    /// Cold start, and the time after it in which the queue is judged.
    pub(crate) horizon_s: f64,
}

impl Outlook {
    /// Work per second that misses its objective with this capacity.
    pub(crate) fn misses(&self, capacity: f64) -> f64 {
        let (start, variance) = (self.queue, self.noise);
        let cells = self.work.iter().zip(&WEIGHTS).map(|(work, weight)| {
            let queue = Queue { start, drift: work - capacity, variance };
            weight * work * queue.exceeds(self.slack_s * capacity, self.horizon_s)
        });
        cells.sum()
    }

    /// The work that is not exceeded with this probability.
    #[cfg(test)]
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut at = 0.0;
        for (work, weight) in self.work.iter().zip(&WEIGHTS) {
            at += weight;
            if at >= share {
                return *work;
            }
        }
        self.work[CELLS - 1]
    }

    /// The chance that the work exceeds this capacity.
    pub(crate) fn exceeds(&self, capacity: f64) -> f64 {
        let over = self.work.iter().zip(&WEIGHTS).filter(|(work, _)| **work > capacity);
        over.map(|(_, weight)| weight).sum()
    }
}

/// Follows the work of one model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forecaster {
    seen: Option<(Timestamp, f64)>,
    level: f64,
    level_doubt: f64,
    /// Variance of the work per second as it is now, in this minute, and over hours.
    noise: f64,
    quick_noise: f64,
    slow_noise: f64,
    /// The level as a logarithm, slowly followed.
    usual: f64,
    spread: f64,
    change: f64,
    minute: Minute,
    /// One entry per minute: work, level and spread, the first two as logarithms. A ring.
    past: Vec<[f32; 3]>,
    /// The most work of each minute of the last hours, as logarithms in [`GRAINS`].
    bursts: VecDeque<u16>,
    /// How much of what a minute needs is still needed after the look-ahead, from 0 to 1.
    lasts: f64,
    /// From 0, where minutes differ as chance has it, to 1, where they are bursts.
    bursty: f64,
    /// The largest rise that lasted.
    rise: f64,
    /// How far work moved within the look-ahead, in spreads.
    moves: Moves,
    minutes_seen: usize,
    /// Minutes that what was restored rests on.
    minutes_before: i64,
    ahead: usize,
    table: [f64; CELLS],
    /// What fixed capacities would have missed.
    hindsight: Hindsight,
}

/// Work added up over the present minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Minute {
    number: u64,
    sum: f64,
    count: f64,
    most: f64,
}

/// Cells of the distribution of moves; finer towards the end that hurts.
const CELLS: usize = 24;
const EDGES: [f64; CELLS + 1] = [
    0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.77, 0.83, 0.87, 0.9, 0.92, 0.935, 0.95, 0.96, 0.967,
    0.974, 0.98, 0.985, 0.989, 0.992, 0.994, 0.996, 0.998, 1.0,
];
const WEIGHTS: [f64; CELLS] = {
    let mut weights = [0.0; CELLS];
    let mut cell = 0;
    while cell < CELLS {
        weights[cell] = EDGES[cell + 1] - EDGES[cell];
        cell += 1;
    }
    weights
};
/// Work is held against what it was so many minutes ago.
const RECENT: usize = 10;
/// Minutes that are remembered one by one: a day.
const PAST: usize = 1440;
/// Scale of the moves that are assumed before enough were seen.
const PRIOR: f64 = 0.7;
/// Moves that are enough: six hours of minutes, a few of them forgotten.
const ENOUGH: f64 = 350.0;
/// Added to work before its logarithm is taken. Large services move by shares of what they do, small
/// ones by single users: from one replica to two is no sign that twenty become forty.
const FEW: f64 = 1.0;
/// The least level of work, so that its logarithm is not infinitely far away.
const QUIET: f64 = 0.05;

impl Default for Forecaster {
    fn default() -> Self {
        // Until enough was seen: the two-sided exponential distribution.
        let table = std::array::from_fn(|cell| {
            let share = f64::midpoint(EDGES[cell], EDGES[cell + 1]);
            short(
                PRIOR * if share < 0.5 { (2.0 * share).ln() } else { -(2.0 * (1.0 - share)).ln() },
            )
        });
        Self {
            seen: None,
            level: 0.0,
            level_doubt: 0.0,
            noise: 0.0,
            quick_noise: 0.0,
            slow_noise: 0.0,
            usual: 0.0,
            spread: 0.1,
            change: 0.01,
            minute: Minute::default(),
            past: Vec::new(),
            bursts: VecDeque::new(),
            lasts: LASTS.0,
            bursty: 0.0,
            rise: 0.0,
            moves: Moves::default(),
            minutes_seen: 0,
            minutes_before: 0,
            ahead: 1,
            table,
            hindsight: Hindsight::default(),
        }
    }
}

impl Forecaster {
    /// Learns the work of a moment and of its busiest seconds; `cold_start_s` is how far ahead will be asked.
    pub(crate) fn learn(
        &mut self,
        work: f64,
        burst: f64,
        now: Timestamp,
        cold_start_s: f64,
        slack_s: f64,
    ) {
        let Some((before, last)) = self.seen.replace((now, work)) else {
            (self.level, self.level_doubt) = (work.max(QUIET), 0.01 * work * work);
            if self.noise <= 0.0 {
                self.noise = (0.01 * work * work).max(1e-6);
                (self.quick_noise, self.slow_noise) = (self.noise, self.noise);
                self.usual = self.level.ln();
            }
            return;
        };
        let seconds = now.since(before).map_or(0.0, |time| time.as_seconds());
        let ticks = (seconds / TICK_S).clamp(0.01, 20.0);
        // Two readings of one level differ by twice the noise of one. A jump of the level is not
        // noise, so that no single reading counts more than nine times what is usual.
        let change = (work - last) * (work - last) * (TICK_S * ticks.min(1.0)) / 2.0;
        let least = 1e-3 * self.level + 1e-6;
        let follow = |noise: f64, gain: f64| {
            (noise + (gain * ticks).min(1.0) * (change.min(9.0 * noise) - noise)).max(least)
        };
        self.noise = follow(self.noise, NOISE_GAIN);
        self.quick_noise = follow(self.quick_noise, QUICK_NOISE_GAIN);
        self.slow_noise += (SLOW_NOISE_GAIN * ticks).min(1.0) * (self.noise - self.slow_noise);
        self.follow(work, ticks);
        self.hindsight.learn(work, burst, seconds.min(60.0), slack_s);
        self.count(work, burst, now, cold_start_s);
    }

    /// The level follows the work as a Kalman filter that opens up when it is surprised.
    fn follow(&mut self, work: f64, ticks: f64) {
        let reading = self.noise / TICK_S;
        let wander = LEVEL_WANDER * self.level;
        self.level_doubt += wander * wander * 0.05 * ticks;
        let miss = work - self.level;
        let expected = self.level_doubt + reading;
        if miss * miss > SURPRISE * expected {
            self.level_doubt += miss * miss - expected;
        }
        let gain = self.level_doubt / (self.level_doubt + reading);
        self.level = (self.level + gain * miss).max(QUIET);
        self.level_doubt *= 1.0 - gain;
    }

    /// Closes the minute when it is over.
    fn count(&mut self, work: f64, burst: f64, now: Timestamp, cold_start_s: f64) {
        let number = now.as_micros() / 60_000_000;
        if self.minute.count > 0.0 && number != self.minute.number {
            let mean = self.minute.sum / self.minute.count;
            self.close(mean, self.minute.most, cold_start_s);
            self.minute = Minute::default();
        }
        self.minute.number = number;
        self.minute.sum += work;
        self.minute.count += 1.0;
        self.minute.most = self.minute.most.max(burst);
    }

    fn close(&mut self, mean: f64, most: f64, cold_start_s: f64) {
        let ahead = (((cold_start_s + 15.0) / 60.0).round() as usize).clamp(1, PAST - 1);
        let now = (mean + FEW).ln();
        if let Some(earlier) = self.at(RECENT - 1) {
            let change = now - f64::from(earlier[0]);
            self.change += (change * change - self.change) / CHANGE_MINUTES;
        }
        let noise = 2.0 * self.noise / 60.0 / (self.level + FEW).powi(2);
        self.spread = (self.change + noise + LEAST_SPREAD).sqrt();
        let minutes = (f64::from(self.minutes()) + 1.0).min(USUAL_MINUTES);
        self.usual += (self.level.ln() - self.usual) / minutes;
        let expected = (self.expected() + FEW).ln();
        self.push([now as f32, expected as f32, self.spread as f32]);
        let grains = ((most + FEW).ln() * GRAINS).round().clamp(0.0, f64::from(MOST_GRAINS));
        self.bursts.push_back(grains as u16);
        if self.bursts.len() > HELD_MINUTES {
            self.bursts.pop_front();
        }
        let work = |back| self.at(back).map(|entry| f64::from(entry[0]).exp() - FEW);
        self.rise = rise::largest(self.rise, work, ahead, 2.0 * self.slow_noise / 60.0);
        self.count_bursts(ahead);
        if ahead == self.ahead {
            self.add_move(0);
        } else {
            // Another look-ahead, other moves: they are worked out again from what is remembered.
            self.ahead = ahead;
            self.moves = Moves::default();
            for back in (0..self.past.len()).rev() {
                self.add_move(back);
            }
        }
        if self.moves.count() >= ENOUGH {
            self.table = self.moves.table();
        }
    }

    /// How long what is needed lasts.
    fn count_bursts(&mut self, ahead: usize) {
        let all: Vec<f64> = self.bursts.iter().map(|grains| f64::from(*grains) / GRAINS).collect();
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / count;
        let pairs = all.iter().zip(all.iter().skip(ahead));
        let shared: f64 = pairs.map(|(now, then)| (now - mean) * (then - mean)).sum();
        let seen = all.len().saturating_sub(ahead) as f64;
        // What is thought before anything was seen weighs as much as some minutes.
        let (thought, weight) = LASTS;
        let known = if variance > 0.0 { shared / variance } else { thought * seen };
        self.bursty = ((variance.sqrt() - STEADY) / (BURSTS - STEADY)).clamp(0.0, 1.0);
        self.lasts = ((known + thought * weight) / (seen + weight)).clamp(0.0, 1.0);
    }

    /// The move that ended so many minutes ago.
    fn add_move(&mut self, back: usize) {
        let (Some(end), Some(start)) = (self.at(back), self.at(back + self.ahead)) else { return };
        self.moves.add(f64::from((end[0] - start[1]) / start[2]));
    }

    fn push(&mut self, entry: [f32; 3]) {
        if self.past.len() < PAST {
            self.past.push(entry);
        } else {
            self.past[self.minutes_seen % PAST] = entry;
        }
        self.minutes_seen += 1;
    }

    /// The entry of so many minutes before the last.
    fn at(&self, back: usize) -> Option<[f32; 3]> {
        if back >= self.past.len() {
            return None;
        }
        self.past.get((self.minutes_seen - 1 - back) % PAST).copied()
    }

    /// What is to be expected.
    ///
    /// The noise that will be there after a cold start is that of now for a short one, and more
    /// and more that of these hours for a long one.
    pub(crate) fn outlook(&self, queue: f64, slack_s: f64, cold_start_s: f64) -> Outlook {
        let hours = cold_start_s / (cold_start_s + NOISE_LASTS_S);
        let now = self.noise.max(self.quick_noise).max(1e-6);
        let noise = ((1.0 - hours) * now.ln() + hours * self.slow_noise.max(1e-6).ln()).exp();
        let horizon_s = horizon_s(cold_start_s);
        let level = self.expected().max(QUIET);
        Outlook {
            work: self
                .table
                .map(|moves| ((level + FEW) * (self.spread * moves).exp() - FEW).max(0.0)),
            level,
            noise,
            queue,
            slack_s,
            horizon_s,
        }
    }

    /// The level of the work.
    pub(crate) fn level(&self) -> f64 {
        self.level
    }

    /// The level as far as it lasts until a replica asked for now would serve.
    pub(crate) fn lasting(&self) -> f64 {
        self.returned(self.fleeting())
    }

    /// What lasts with the largest rise that was seen on top, until moves tell how often one comes. Work that begins has
    /// risen from nothing, so that no rise counts for more than the level.
    pub(crate) fn after_a_rise(&self) -> f64 {
        let known = self.moves.count() >= ENOUGH;
        let rise = if known { 0.0 } else { self.rise.min(self.level) };
        self.lasting() + rise * (1.0 - self.fleeting())
    }

    /// What to have for the next burst: where bursts are over before a replica asked for now would serve, only what
    /// stands ready helps. The least that would have been enough so far, and some more, since the largest burst is yet
    /// to come; the more so the less was seen. Where too many missed already it is that least, burst or not.
    ///
    /// `allowed` is the share of the work that may miss, and `overdrawn` from 0 to 1, where more than that did.
    pub(crate) fn standby(&self, allowed: f64, overdrawn: f64) -> f64 {
        let first = FIRST_MINUTES / (FIRST_MINUTES + f64::from(self.minutes()));
        let bursts = (self.fleeting() / SURELY_FLEETING).min(1.0) * (MARGIN + first);
        overdrawn.max(bursts) * self.hindsight.enough(allowed)
    }

    /// What the level is expected to be: a little closer to what it usually is, and the more so the less it lasts.
    fn expected(&self) -> f64 {
        self.returned(RETURN.max(self.fleeting()))
    }

    /// The level, so much of the way back to what it usually is.
    fn returned(&self, share: f64) -> f64 {
        self.level * (-share * (self.level.ln() - self.usual)).exp()
    }

    /// From 0, where what is needed lasts, to 1, where it is over in no time.
    fn fleeting(&self) -> f64 {
        (1.0 - self.lasts / LASTING).max(0.0) * self.bursty
    }
}

/// As many digits as are written down, so that who goes on from there goes on with the same.
fn short(number: f64) -> f64 {
    f64::from(number as f32)
}

/// How much of what a minute needs is thought to last, and the minutes that this weighs as much as: fewer let one quiet
/// start decide (in experiments on recorded hours 1 to 3 cost 30 to 100 % more).
const LASTS: (f64, f64) = (0.8, 6.0);
/// What lasts by so much is followed and not stood by for.
const LASTING: f64 = 0.5;
/// Deviations of the logarithm of what minutes need: below the first it is chance that some need more, and above the
/// second there are bursts. A few dozen requests in five seconds vary by a fifth by chance.
const STEADY: f64 = 0.15;
const BURSTS: f64 = 0.4;
/// From so much on all of it is stood by for: of recorded bursts in any order it was 0.6 to 0.8.
const SURELY_FLEETING: f64 = 0.5;
/// What stands by over what would have been enough: a quarter more when much was seen, and as much again at first, of
/// which half is left after a quarter of an hour. Found on four orders of the bursts of one recorded hour.
const MARGIN: f64 = 1.25;
const FIRST_MINUTES: f64 = 15.0;
/// Bursts of the last four hours are remembered: of two to four hours the best was kept on bursts in other orders.
const HELD_MINUTES: usize = 240;
/// Bursts are remembered as logarithms in grains of a hundredth or so, the most as two letters of a text.
const GRAINS: f64 = 64.0;
const MOST_GRAINS: u16 = 4_095;
/// Seconds between two readings that the gains below are stated for.
const TICK_S: f64 = 15.0;
/// The variance of demand is an exponentially weighted mean with this gain per reading (a time constant of three minutes),
/// and a quick one (one minute): the larger of the two counts, so that a burst is believed at once and forgotten slowly.
const NOISE_GAIN: f64 = 1.0 / 12.0;
const QUICK_NOISE_GAIN: f64 = 0.25;
const SLOW_NOISE_GAIN: f64 = 0.002;
/// Noise lasts about ten minutes.
const NOISE_LASTS_S: f64 = 600.0;
/// How far the level wanders between readings, as a share of it.
const LEVEL_WANDER: f64 = 0.1;
/// A reading further off than three deviations is a jump.
const SURPRISE: f64 = 9.0;
/// Changes over ten minutes are averaged over so many minutes.
const CHANGE_MINUTES: f64 = 20.0;
/// A level that never moved may still move by a hundredth.
const LEAST_SPREAD: f64 = 1e-4;
/// What a level usually is, over half an hour, and how much of the way back it goes.
const USUAL_MINUTES: f64 = 30.0;
const RETURN: f64 = 0.1;

/// How long after the order the queue is judged: three quarters of the cold start and a tick.
pub(crate) fn horizon_s(cold_start_s: f64) -> f64 {
    0.75 * cold_start_s + 15.0
}
