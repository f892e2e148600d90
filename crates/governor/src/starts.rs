//! How long a replica takes from being asked for to serving, as seen.
//!
//! It spans four seconds to an hour between variants, so it is learnt, as a distribution. A
//! replica that takes far longer is not coming: no exit when capacity does not exist kept a
//! planner "observing" for an hour (ai-dynamo/dynamo#14251).

use flyball_core::ids::ReplicaId;
use flyball_core::interval::Interval;
use flyball_core::snapshot::{ReplicaState, Variant};
use flyball_core::units::{Micros, Timestamp};

/// Cold starts of one variant.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Starts {
    /// The last cold starts, in seconds; a ring.
    seen: Vec<f32>,
    next: usize,
    /// Usual and long, of those seen; worked out when one is added.
    usual_s: f64,
    long_s: f64,
    /// Replicas that start now, and since when.
    coming: Vec<(ReplicaId, Timestamp)>,
    /// Not asked again before this, because nobody could provide them.
    back_off_until: Option<Timestamp>,
    back_off_s: f64,
}

/// The last so many are remembered: enough for a 95th percentile, and few enough to follow a
/// change of image within a day.
const SEEN: usize = 64;
/// From so many on, what was seen replaces what was stated.
const ENOUGH: usize = 5;
/// Assumed where nobody knows: a large model from warm nodes takes 85 to 135 s (llm-d), and to
/// think it shorter than it is costs misses while to think it longer costs little.
const ASSUMED_S: f64 = 180.0;
/// An hour: waiting longer would outlast most shortages.
const LONGEST_BACK_OFF_S: f64 = 3600.0;

impl Starts {
    /// How long a start may take: nineteen of twenty are faster.
    pub(crate) fn long_s(&self, stated: Option<Interval<Micros>>) -> f64 {
        if self.seen.len() >= ENOUGH {
            return self.long_s;
        }
        let stated = stated.map_or(ASSUMED_S, |stated| seconds(stated.high()));
        self.seen.iter().fold(stated, |long, seen| long.max(f64::from(*seen))).max(1.0)
    }

    /// How long a start usually takes.
    pub(crate) fn usual_s(&self, stated: Option<Interval<Micros>>) -> f64 {
        if self.seen.len() >= ENOUGH {
            return self.usual_s;
        }
        stated.map_or(ASSUMED_S, |stated| seconds(stated.point())).max(1.0)
    }

    /// Whether asking for more is useless for now.
    pub(crate) fn backs_off(&self, now: Timestamp) -> bool {
        self.back_off_until.is_some_and(|until| now < until)
    }

    /// Seconds until each replica that starts is expected to serve.
    pub(crate) fn arrivals(&self, now: Timestamp, usual_s: f64) -> impl Iterator<Item = f64> {
        self.coming.iter().map(move |(_, since)| {
            let age_s = now.since(*since).map_or(0.0, seconds);
            (usual_s - age_s).max(0.0)
        })
    }

    /// Learns from one look at the replicas, and returns how many of those that start are so late
    /// that they cannot be counted on.
    pub(crate) fn learn(&mut self, variant: &Variant, now: Timestamp) -> u32 {
        self.finish(variant);
        let long = self.long_s(variant.cold_start);
        // Twice the long start and half a minute: below that, one in a hundred is merely slow.
        let late = Micros::from_millis(((2.0 * long + 30.0) * 1000.0) as u64);
        let mut overdue = 0;
        for (id, replica) in &variant.replicas {
            if !matches!(replica.state, ReplicaState::Pending | ReplicaState::Starting) {
                continue;
            }
            let since = match self.coming.binary_search_by(|(known, _)| known.cmp(id)) {
                Ok(index) => self.coming[index].1,
                Err(index) => {
                    self.coming.insert(index, (id.clone(), replica.since));
                    replica.since
                }
            };
            overdue += u32::from(now.since(since).is_some_and(|age| age > late));
        }
        if overdue > 0 && !self.backs_off(now) {
            self.back_off_s = (2.0 * self.back_off_s).clamp(long, LONGEST_BACK_OFF_S.max(long));
            let wait = Micros::from_millis((self.back_off_s * 1000.0) as u64);
            self.back_off_until = Some(now.saturating_add(wait));
        }
        overdue
    }

    /// Replicas that started to serve are samples; those that went away are forgotten.
    fn finish(&mut self, variant: &Variant) {
        if self.coming.is_empty() {
            return;
        }
        let mut took = Vec::new();
        self.coming.retain(|(id, since)| match variant.replicas.get(id) {
            Some(replica) if replica.state == ReplicaState::Ready => {
                took.extend(replica.since.since(*since));
                false
            }
            Some(replica) => replica.state != ReplicaState::Draining,
            None => false,
        });
        for time in took {
            self.add(seconds(time));
        }
    }

    fn add(&mut self, took_s: f64) {
        (self.back_off_until, self.back_off_s) = (None, 0.0);
        if self.seen.len() < SEEN {
            self.seen.push(took_s as f32);
        } else {
            self.seen[self.next] = took_s as f32;
        }
        self.next = (self.next + 1) % SEEN;
        let mut sorted = self.seen.clone();
        sorted.sort_by(f32::total_cmp);
        let at =
            |share: f64| f64::from(sorted[((sorted.len() - 1) as f64 * share).ceil() as usize]);
        (self.usual_s, self.long_s) = (at(0.5).max(1.0), at(0.95).max(1.0));
    }
}

pub(crate) fn seconds(time: Micros) -> f64 {
    time.get() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::interval::Origin;
    use flyball_core::testing::{at, variant};

    fn stated(low: u64, point: u64, high: u64) -> Option<Interval<Micros>> {
        let [low, point, high] = [low, point, high].map(Micros::from_seconds);
        Interval::new(low, point, high, Origin::Stated).ok()
    }

    #[test]
    fn what_is_stated_holds_until_enough_was_seen() {
        let mut starts = Starts::default();
        assert_eq!(starts.long_s(None), ASSUMED_S);
        assert_eq!(starts.long_s(stated(60, 100, 140)), 140.0);
        assert_eq!(starts.usual_s(stated(60, 100, 140)), 100.0);
        for took in [200.0, 50.0, 50.0, 50.0] {
            starts.add(took);
        }
        assert_eq!(starts.long_s(stated(60, 100, 140)), 200.0);
        starts.add(50.0);
        // Five seen: 50 50 50 50 200. Half are at most 50, and the last of five is the 95th.
        assert_eq!((starts.usual_s(None), starts.long_s(None)), (50.0, 200.0));
    }

    #[test]
    fn a_start_is_counted_from_when_it_was_asked_for() {
        let mut starts = Starts::default();
        let mut seen = variant("x", "h100").pending(1).build("a/m");
        starts.learn(&seen, at(10));
        let id = seen.replicas.keys().next().unwrap().clone();
        let replica = seen.replicas.get_mut(&id).unwrap();
        (replica.state, replica.since) = (ReplicaState::Starting, at(40));
        starts.learn(&seen, at(50));
        let replica = seen.replicas.get_mut(&id).unwrap();
        (replica.state, replica.since) = (ReplicaState::Ready, at(90));
        starts.learn(&seen, at(100));
        assert_eq!(starts.seen, [90.0]);
        assert!(starts.coming.is_empty());
    }

    #[test]
    fn a_start_that_does_not_come_is_not_counted_on_and_backs_off_ever_longer() {
        let mut starts = Starts::default();
        let mut seen = variant("x", "h100").pending(2).build("a/m");
        seen.cold_start = stated(60, 100, 100);
        assert_eq!(starts.learn(&seen, at(230)), 0);
        assert!(!starts.backs_off(at(230)));
        // Twice 100 s and 30 s are over.
        assert_eq!(starts.learn(&seen, at(231)), 2);
        assert!(starts.backs_off(at(330)) && !starts.backs_off(at(331)));
        assert_eq!(starts.learn(&seen, at(331)), 2);
        assert!(starts.backs_off(at(530)) && !starts.backs_off(at(531)));
    }
}
