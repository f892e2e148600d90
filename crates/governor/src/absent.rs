//! Replicas that were asked for and are not there, not even as pods that wait for a node: a
//! ResourceQuota or an admission policy refuses them. To take accelerators for them would leave
//! those idle that another served with.

use flyball_core::units::{Micros, Timestamp};

/// What is missing of one variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absent(Option<Missing>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Missing {
    since: Timestamp,
    /// How many were there.
    live: u32,
}

/// Pods are made within seconds of being asked for, and seen within a minute.
const WHILE: Micros = Micros::from_seconds(60);
/// As long as nothing tells that it is over. To forget it sooner would take and give back over and
/// over: once accelerators went elsewhere, nothing is missing any more.
const FORGOTTEN: Micros = Micros::from_seconds(24 * 3600);

impl Absent {
    /// Learns from one look.
    pub(crate) fn learn(&mut self, requested: Option<u32>, live: u32, now: Timestamp) {
        let short = requested.is_some_and(|requested| requested > live);
        let over = |missing: Missing| {
            let age = now.since(missing.since).unwrap_or_default();
            live > missing.live || age >= FORGOTTEN || (!short && age < WHILE)
        };
        if self.0.is_some_and(over) {
            self.0 = None;
        }
        if short && self.0.is_none() {
            self.0 = Some(Missing { since: now, live });
        }
    }

    /// Whether it has lasted for a while.
    pub(crate) fn lasts(&self, now: Timestamp) -> bool {
        let age = self.0.and_then(|missing| now.since(missing.since));
        age.is_some_and(|age| age >= WHILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::testing::at;

    #[test]
    fn what_does_not_come_within_a_minute_is_absent_until_more_come() {
        let mut absent = Absent::default();
        absent.learn(Some(4), 2, at(0));
        assert!(!absent.lasts(at(59)));
        absent.learn(Some(4), 2, at(60));
        assert!(absent.lasts(at(60)));
        // The target is lowered to what is there: that does not show that more would come.
        absent.learn(Some(2), 2, at(75));
        assert!(absent.lasts(at(75)));
        absent.learn(Some(4), 3, at(90));
        assert!(!absent.lasts(at(90)), "one came");
        absent.learn(Some(4), 3, at(150));
        assert!(absent.lasts(at(150)), "the next does not");
        absent.learn(Some(3), 3, at(150 + 24 * 3600));
        assert!(!absent.lasts(at(150 + 24 * 3600)), "it is worth another try");
    }

    #[test]
    fn what_comes_soon_was_never_absent() {
        let mut absent = Absent::default();
        absent.learn(Some(4), 2, at(0));
        absent.learn(Some(2), 2, at(30));
        absent.learn(Some(4), 2, at(70));
        assert!(!absent.lasts(at(129)));
        absent.learn(None, 2, at(80));
        assert_eq!(absent, Absent::default());
    }
}
