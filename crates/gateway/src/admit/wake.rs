//! Whether a model without engines was called, and how long it takes to come.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Wakings that are remembered.
const PAST: usize = 8;

/// The waking of one model.
#[derive(Debug, Default)]
pub(super) struct Wake {
    /// When somebody first wanted it while it had no engine.
    since: Option<Instant>,
    called_at: Option<Instant>,
    /// How long the last ones took.
    past: VecDeque<Duration>,
    /// By when the operator says that an engine will be up.
    promised: Option<Instant>,
}

impl Wake {
    /// Somebody wants the model, and it has no engine. Whether it is to be called now: once, and
    /// again only if nothing came of it for so long.
    pub(super) fn call_due(&mut self, now: Instant, again: Duration) -> bool {
        self.since.get_or_insert(now);
        let due = self
            .called_at
            .is_none_or(|called_at| now.saturating_duration_since(called_at) >= again);
        if due {
            self.called_at = Some(now);
        }
        due
    }

    /// It has an engine. How long that took, if somebody had waited for it.
    pub(super) fn came(&mut self, now: Instant) -> Option<Duration> {
        let took = now.saturating_duration_since(self.since.take()?);
        self.called_at = None;
        if self.past.len() == PAST {
            self.past.pop_front();
        }
        self.past.push_back(took);
        Some(took)
    }

    /// It will have one by then, as somebody says who knows.
    pub(super) const fn promise(&mut self, by: Option<Instant>) {
        self.promised = by;
    }

    /// How long it is until then. A promise that was not kept is none.
    pub(super) fn promised(&self, now: Instant) -> Option<Duration> {
        let left = self.promised?.checked_duration_since(now)?;
        (!left.is_zero()).then(|| left.max(Duration::from_secs(1)))
    }

    /// When it will probably have one: as promised, or else the slowest of late, less what has passed.
    /// At least a second while it has not come. `None` if nothing was promised or measured.
    pub(super) fn eta(&self, now: Instant) -> Option<Duration> {
        if let Some(promised) = self.promised(now) {
            return Some(promised);
        }
        let slowest = self.past.iter().max()?;
        let passed =
            self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        Some(slowest.saturating_sub(passed).max(Duration::from_secs(1)))
    }

    /// Whether it was called and has not come.
    pub(super) const fn is_waking(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_called_once_until_it_comes_or_too_much_time_has_passed() {
        let (start, minute) = (Instant::now(), Duration::from_mins(1));
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut wake = Wake::default();
        let calls = (0..59).filter(|second| wake.call_due(at(*second), minute)).count();
        assert_eq!(calls, 1);
        assert!(wake.call_due(at(60), minute));
        assert_eq!(wake.eta(at(60)), None);
        assert_eq!(wake.came(at(90)), Some(Duration::from_secs(90)));
        assert_eq!(wake.came(at(91)), None);
        assert!(wake.call_due(at(200), minute));
        assert_eq!(wake.eta(at(230)), Some(Duration::from_mins(1)));
        assert_eq!(wake.eta(at(900)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_promise_comes_before_what_was_learned_until_it_is_broken() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut wake = Wake::default();
        wake.call_due(at(0), Duration::MAX);
        wake.came(at(90));
        wake.call_due(at(100), Duration::MAX);
        wake.promise(Some(at(120)));
        assert_eq!(wake.eta(at(100)), Some(Duration::from_secs(20)));
        assert_eq!(wake.eta(at(121)), Some(Duration::from_secs(69)), "as learned");
        wake.promise(None);
        assert_eq!(wake.eta(at(100)), Some(Duration::from_secs(90)));
    }
}
