//! The flow of one model: work arrives, waits in order of arrival, and is done.

use super::FluidModel;
use crate::seconds::Seconds;
use flyball_core::pooling::Pooling;

/// What waits, and what was done since metrics were last scraped.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Requests per second that one replica carries alone, and how much more many do.
    per_replica: f64,
    pooling: Pooling,
    /// Misses at what replicas carry, as a logarithm.
    at_capacity: f64,
    /// Work per second of the last minute or so.
    usual: f64,
    slack: f64,
    patience: f64,
    /// Waiting work, in mean requests.
    waiting: f64,
    /// Since the last scrape.
    since: Since,
}

/// Sums since the last scrape.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Since {
    pub(super) seconds: f64,
    pub(super) requests: f64,
    pub(super) work: f64,
    pub(super) done: f64,
    /// Longest wait of an arrival.
    pub(super) wait: f64,
    pub(super) missed: f64,
    pub(super) blind: bool,
}

impl Since {
    /// Whether a rate can be told.
    pub(super) fn is_counted(&self) -> bool {
        !self.blind && self.seconds > 0.0
    }
}

/// What one step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Served {
    /// Requests that arrived.
    pub(super) requests: f64,
    /// Those of them that waited too long.
    pub(super) missed: f64,
    /// Work that arrived, in mean requests.
    pub(super) work: f64,
    /// Work that was done.
    pub(super) done: f64,
    /// How long arrivals waited at its start and at its end.
    pub(super) waits: (f64, f64),
}

impl Queue {
    pub(super) fn new(model: &FluidModel) -> Self {
        Self {
            per_replica: model.per_replica,
            pooling: model.pooling,
            at_capacity: (1.0 - f64::from(model.attainment_per_million) / 1e6).max(1e-6).ln(),
            usual: 0.0,
            slack: model.slack().get(),
            patience: model.patience.get().max(model.slack().get()),
            waiting: 0.0,
            since: Since::default(),
        }
    }

    /// Waiting work, in mean requests.
    pub(super) const fn waiting(&self) -> f64 {
        self.waiting
    }

    /// What happened since this was last asked.
    pub(super) fn scrape(&mut self) -> Since {
        std::mem::take(&mut self.since)
    }

    /// One step. `blind` is a step in which no metric is seen.
    pub(super) fn step(
        &mut self,
        requests: f64,
        work: f64,
        ready: u32,
        step: Seconds,
        blind: bool,
    ) -> Served {
        let rate = self.most() * f64::from(ready);
        let before = self.waiting;
        self.usual += (step.get() / MINUTE_S).min(1.0) * (work / step.get() - self.usual);
        let done = (before + work).min(rate * step.get());
        // Whoever would wait beyond patience hangs up and leaves no work. With no replica at all
        // nobody knows how long the wait is; what one replica could do in time is held for it.
        let held = if ready == 0 { self.per_replica } else { rate } * self.patience;
        self.waiting = (before + work - done).min(held);
        let wait = |waiting: f64| if ready == 0 { self.patience } else { waiting / rate };
        let waits = (wait(before), wait(self.waiting));
        let missed = requests * share_above(self.slack, waits).max(self.by_chance(ready));
        let since = &mut self.since;
        since.seconds += step.get();
        since.requests += requests;
        since.work += work;
        since.done += done;
        since.missed += missed;
        since.wait = since.wait.max(waits.0).max(waits.1);
        since.blind |= blind;
        Served { requests, missed, work, done, waits }
    }
}

impl Queue {
    /// Requests per second that none of very many replicas exceeds.
    fn most(&self) -> f64 {
        self.per_replica * self.pooling.ratio()
    }

    /// Share of arrivals that miss although no queue stands, since requests come at random: what is allowed where so
    /// many replicas have all that they carry, all of them at what they do at most, and a straight line of its
    /// logarithm between and beyond.
    fn by_chance(&self, ready: u32) -> f64 {
        let replicas = f64::from(ready);
        let unused = |rate: f64| 1.0 - rate / (self.most() * replicas);
        let at_capacity = unused(self.per_replica * self.pooling.carries(replicas));
        if ready == 0 || at_capacity < 1e-6 {
            return 0.0;
        }
        (self.at_capacity * unused(self.usual) / at_capacity).exp().min(1.0)
    }
}

/// What comes at random is told from what is usual over so long.
const MINUTE_S: f64 = 60.0;

/// Share of arrivals that wait longer than the slack, when waits go evenly from one to the other.
fn share_above(slack: f64, (from, to): (f64, f64)) -> f64 {
    let (low, high) = if from < to { (from, to) } else { (to, from) };
    if high <= slack {
        0.0
    } else if low >= slack {
        1.0
    } else {
        (high - slack) / (high - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue {
        Queue {
            per_replica: 2.0,
            pooling: Pooling::NONE,
            at_capacity: 0.01_f64.ln(),
            usual: 0.0,
            slack: 3.0,
            patience: 30.0,
            waiting: 0.0,
            since: Since::default(),
        }
    }

    #[test]
    fn what_fits_is_done_at_once() {
        let mut queue = queue();
        let served = queue.step(40.0, 40.0, 4, Seconds(5.0), false);
        assert_eq!((served.done, served.missed, queue.waiting()), (40.0, 0.0, 0.0));
    }

    #[test]
    fn what_does_not_fit_waits_and_misses_once_the_wait_is_too_long() {
        let mut queue = queue();
        // 60 arrive, 40 are done, 20 wait 2.5 s at 8 per second: nobody waits longer than 3 s yet.
        assert_eq!(queue.step(60.0, 60.0, 4, Seconds(5.0), false).missed, 0.0);
        // The wait grows from 2.5 to 5 s: four fifths of it lie above 3 s.
        let served = queue.step(60.0, 60.0, 4, Seconds(5.0), false);
        assert!((served.missed - 60.0 * 0.8).abs() < 1e-9, "{served:?}");
    }

    #[test]
    fn nobody_waits_beyond_patience() {
        let mut queue = queue();
        for _ in 0..100 {
            queue.step(100.0, 100.0, 1, Seconds(5.0), false);
        }
        assert_eq!(queue.waiting(), 60.0);
    }

    #[test]
    fn what_replicas_carry_misses_what_is_allowed_though_no_queue_stands() {
        let mut queue = Queue { pooling: Pooling::new(1.5), ..queue() };
        for replicas in [1, 4, 9] {
            let carried = 2.0 * queue.pooling.carries(f64::from(replicas));
            let mut at = |share: f64| {
                let work = share * carried * 5.0;
                (0..200)
                    .map(|_| queue.step(work, work, replicas, Seconds(5.0), false).missed / work)
                    .last()
                    .unwrap()
            };
            assert!((at(1.0) - 0.01).abs() < 1e-6);
            assert!(at(0.8) < 0.005 && at(1.05) > 0.012);
        }
    }

    #[test]
    fn without_a_replica_everybody_misses() {
        let mut queue = queue();
        assert_eq!(queue.step(10.0, 10.0, 0, Seconds(5.0), false).missed, 10.0);
        assert_eq!(queue.step(0.0, 0.0, 0, Seconds(5.0), false).missed, 0.0);
    }
}
