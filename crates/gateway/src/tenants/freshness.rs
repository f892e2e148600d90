//! How old what is known of Tenants is. Pure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A gateway that starts with an older list is not ready: keys that were revoked since would be let in.
const READY: Duration = Duration::from_secs(24 * 60 * 60);

/// How old what is known of Tenants is. By a clock that nobody sets.
#[derive(Debug, Default)]
pub(crate) struct TenantFreshness {
    /// An age, and when it was so old; `None` if nothing is known.
    known: Mutex<Option<(Duration, Instant)>>,
    reached: AtomicBool,
}

impl TenantFreshness {
    /// The API server stands behind what is known.
    pub(crate) fn confirm(&self, now: Instant) {
        self.know(Duration::ZERO, now);
    }

    /// What is known is a list of this age; `None` if nobody can say how old it is.
    pub(crate) fn restore(&self, age: Option<Duration>, now: Instant) {
        self.know(age.unwrap_or(Duration::MAX), now);
    }

    /// The age at this moment; `None` if nobody can say it.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let age = known.map(|(age, at)| age.saturating_add(now.saturating_duration_since(at)))?;
        (age < Duration::MAX).then_some(age)
    }

    /// Whether requests may come. Once they may, no age takes that back.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        let young = || self.age(now).is_some_and(|age| age <= READY);
        let ready = self.reached.load(Ordering::Relaxed) || young();
        self.reached.store(ready, Ordering::Relaxed);
        ready
    }

    fn know(&self, age: Duration, now: Instant) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((age, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_a_day_makes_a_new_gateway_ready_and_an_older_one_does_not() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let restored = |age| {
            let freshness = TenantFreshness::default();
            assert!(!freshness.is_ready(start), "nothing is known");
            freshness.restore(age, start);
            freshness.is_ready(start)
        };
        assert!(restored(Some(Duration::ZERO)) && restored(Some(READY)));
        assert!(!restored(Some(READY + second)) && !restored(None));
    }

    #[test]
    fn who_was_ready_stays_so_and_its_age_grows_until_the_list_is_confirmed() {
        let (start, freshness) = (Instant::now(), TenantFreshness::default());
        freshness.restore(Some(READY), start);
        assert!(freshness.is_ready(start));
        let later = start + 3 * READY;
        assert!(freshness.is_ready(later));
        assert_eq!(freshness.age(later), Some(4 * READY));
        freshness.confirm(later);
        assert_eq!(freshness.age(later), Some(Duration::ZERO));
    }
}
