//! The flow of one model: work arrives, waits in order of arrival, and is done.

use super::Model;
use crate::seconds::Seconds;

/// What waits, and what was done since metrics were last scraped.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Requests per second of one replica.
    per_replica: f64,
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
    pub(super) fn new(model: &Model) -> Self {
        Self {
            per_replica: model.at_most,
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
        let rate = f64::from(ready) * self.per_replica;
        let before = self.waiting;
        let done = (before + work).min(rate * step.get());
        // Whoever would wait beyond patience hangs up and leaves no work. With no replica at all
        // nobody knows how long the wait is; what one replica could do in time is held for it.
        let held = if ready == 0 { self.per_replica } else { rate } * self.patience;
        self.waiting = (before + work - done).min(held);
        let wait = |waiting: f64| if ready == 0 { self.patience } else { waiting / rate };
        let waits = (wait(before), wait(self.waiting));
        let missed = requests * share_above(self.slack, waits);
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
    fn without_a_replica_everybody_misses() {
        let mut queue = queue();
        assert_eq!(queue.step(10.0, 10.0, 0, Seconds(5.0), false).missed, 10.0);
        assert_eq!(queue.step(0.0, 0.0, 0, Seconds(5.0), false).missed, 0.0);
    }
}
