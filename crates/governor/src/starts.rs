//! How long a replica takes from being asked for to serving, as seen.
//!
//! It spans four seconds to an hour between variants, so it is learnt, as a distribution. A
//! replica that takes far longer is not coming: no exit when capacity does not exist kept a
//! planner "observing" for an hour (ai-dynamo/dynamo#14251).

use flyball_core::ids::ReplicaId;
use flyball_core::interval::Interval;
use flyball_core::snapshot::{Replica, ReplicaState, Variant};
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
    /// Those of them that are so late that they cannot be counted on, in order.
    late: Vec<ReplicaId>,
    /// Those that nobody had a node for, which is why less is asked for.
    short: Vec<ReplicaId>,
    /// Not asked again before this, because nobody could provide them.
    back_off_until: Option<Timestamp>,
    back_off_s: f64,
    /// The last that was replaced because it did not come up, and when.
    replaced: Option<(ReplicaId, Timestamp)>,
    replace_after_s: f64,
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
/// Between two that are replaced, at first: as long as Kubernetes waits at most before it starts a crashed
/// container again.
const REPLACE_AFTER_S: f64 = 300.0;
/// One that crashes and that another makes up for is replaced after this long, if it is still there.
const CRASHES_FOR: Micros = Micros::from_minutes(15);
/// One that does not crash may load for very long; after an hour it is replaced.
const STARTS_FOR: Micros = Micros::HOUR;

impl Starts {
    /// How long a start may take: nineteen of twenty are faster.
    pub(crate) fn long_s(&self, stated: Option<Interval<Micros>>) -> f64 {
        if self.seen.len() >= ENOUGH {
            return self.long_s;
        }
        let stated = stated.map_or(ASSUMED_S, |stated| stated.high().as_seconds());
        self.seen.iter().fold(stated, |long, seen| long.max(f64::from(*seen))).max(1.0)
    }

    /// How long a start usually takes.
    pub(crate) fn usual_s(&self, stated: Option<Interval<Micros>>) -> f64 {
        if self.seen.len() >= ENOUGH {
            return self.usual_s;
        }
        stated.map_or(ASSUMED_S, |stated| stated.point().as_seconds()).max(1.0)
    }

    /// Whether asking for more is useless for now.
    pub(crate) fn backs_off(&self, now: Timestamp) -> bool {
        self.back_off_until.is_some_and(|until| now < until)
    }

    /// Seconds until each replica that starts is expected to serve.
    pub(crate) fn arrivals(&self, now: Timestamp, usual_s: f64) -> impl Iterator<Item = f64> {
        self.coming.iter().filter(|(id, _)| !self.is_late(id)).map(move |(_, since)| {
            let age_s = now.since(*since).map_or(0.0, Micros::as_seconds);
            (usual_s - age_s).max(0.0)
        })
    }

    /// Whether a replica starts and is so late that it cannot be counted on.
    pub(crate) fn is_late(&self, id: &ReplicaId) -> bool {
        self.late.binary_search(id).is_ok()
    }

    /// Learns from one look at the replicas.
    ///
    /// What has no node for so long shows that nobody can provide more, and less is asked for a while. The same
    /// replica shows it once: it may be the only one that no node is right for, and its wait must not hold up
    /// the others for good. What has a node and does not come up says nothing about the next. `back_s`: how long a loan of
    /// the pool takes to come back.
    pub(crate) fn learn(&mut self, variant: &Variant, back_s: f64, now: Timestamp) {
        self.finish(variant);
        let long = self.long_s(variant.cold_start);
        // Twice the long start and half a minute: below that, one in a hundred is merely slow.
        let late = Micros::from_millis(((2.0 * long + 30.0 + back_s) * 1000.0) as u64);
        self.late.clear();
        let mut short = Vec::new();
        for (id, replica) in &variant.replicas {
            if !matches!(replica.state, ReplicaState::Pending | ReplicaState::Starting) {
                continue;
            }
            if let Err(index) = self.coming.binary_search_by(|(known, _)| known.cmp(id)) {
                self.coming.insert(index, (id.clone(), replica.since));
            }
            if now.since(replica.since).is_some_and(|age| age > late) {
                self.late.push(id.clone());
                if replica.state == ReplicaState::Pending {
                    short.push(id.clone());
                }
            }
        }
        if short.iter().any(|id| !self.short.contains(id)) && !self.backs_off(now) {
            self.back_off_s = (2.0 * self.back_off_s).clamp(long, LONGEST_BACK_OFF_S.max(long));
            let wait = Micros::from_millis((self.back_off_s * 1000.0) as u64);
            self.back_off_until = Some(now.saturating_add(wait));
        }
        self.short = short;
    }

    /// The one of these sick replicas that is to be replaced now, if any: one at a time and ever more rarely, until
    /// one comes up. `left_over`: there are more of them than others make up for.
    pub(crate) fn replace<'a>(
        &mut self,
        sick: impl Iterator<Item = (&'a ReplicaId, &'a Replica)>,
        left_over: bool,
        now: Timestamp,
    ) -> Option<ReplicaId> {
        let age = |replica: &Replica| now.since(replica.since).unwrap_or(Micros::ZERO);
        let is_due = |replica: &Replica| match replica.state {
            ReplicaState::Failed => left_over || age(replica) >= CRASHES_FOR,
            ReplicaState::Starting => age(replica) >= STARTS_FOR,
            _ => false,
        };
        let due: Vec<_> = sick.filter(|(_, replica)| is_due(replica)).collect();
        // It may not have gone yet: a budget for disruptions can stand in the way.
        let last = self.replaced.as_ref();
        if let Some((id, _)) = last.filter(|(last, _)| due.iter().any(|(id, _)| *id == last)) {
            return Some(id.clone());
        }
        let waits = last.is_some_and(|(_, at)| {
            now.since(*at).is_none_or(|age| age.as_seconds() < self.replace_after_s)
        });
        let (id, _) = due.into_iter().filter(|_| !waits).min_by_key(|(_, one)| one.since)?;
        self.replace_after_s =
            (2.0 * self.replace_after_s).clamp(REPLACE_AFTER_S, LONGEST_BACK_OFF_S);
        self.replaced = Some((id.clone(), now));
        Some(id.clone())
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
            Some(replica) => {
                matches!(replica.state, ReplicaState::Pending | ReplicaState::Starting)
            }
            None => false,
        });
        for time in took {
            self.add(time.as_seconds());
        }
    }

    fn add(&mut self, took_s: f64) {
        (self.back_off_until, self.back_off_s) = (None, 0.0);
        self.replace_after_s = 0.0;
        if self.seen.len() < SEEN {
            self.seen.push(took_s as f32);
        } else {
            self.seen[self.next] = took_s as f32;
        }
        self.next = (self.next + 1) % SEEN;
        let mut sorted = self.seen.clone();
        sorted.sort_by(f32::total_cmp);
        // Not the rank of `core`: this takes the slower of two neighbours, and decisions depend on it.
        let at =
            |share: f64| f64::from(sorted[((sorted.len() - 1) as f64 * share).ceil() as usize]);
        (self.usual_s, self.long_s) = (at(0.5).max(1.0), at(0.95).max(1.0));
    }
}

pub(crate) fn length(seconds: f64) -> Micros {
    Micros::from_millis((seconds * 1000.0).clamp(0.0, 1e15) as u64)
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
        starts.learn(&seen, 0.0, at(10));
        let id = seen.replicas.keys().next().unwrap().clone();
        let replica = seen.replicas.get_mut(&id).unwrap();
        (replica.state, replica.since) = (ReplicaState::Starting, at(40));
        starts.learn(&seen, 0.0, at(50));
        let replica = seen.replicas.get_mut(&id).unwrap();
        (replica.state, replica.since) = (ReplicaState::Ready, at(90));
        starts.learn(&seen, 0.0, at(100));
        assert_eq!(starts.seen, [90.0]);
        assert!(starts.coming.is_empty());
    }

    #[test]
    fn a_start_that_finds_no_node_backs_off_once_and_each_further_one_longer() {
        let mut starts = Starts::default();
        let mut seen = variant("x", "h100").pending(2).build("a/m");
        seen.cold_start = stated(60, 100, 100);
        let late = |starts: &Starts, seen: &Variant| {
            seen.replicas.keys().filter(|id| starts.is_late(id)).count()
        };
        starts.learn(&seen, 0.0, at(230));
        assert_eq!(late(&starts, &seen), 0);
        assert!(!starts.backs_off(at(230)));
        // Twice 100 s and 30 s are over.
        starts.learn(&seen, 0.0, at(231));
        assert_eq!(late(&starts, &seen), 2);
        assert_eq!(starts.arrivals(at(231), 100.0).count(), 0);
        assert!(starts.backs_off(at(330)) && !starts.backs_off(at(331)));
        starts.learn(&seen, 0.0, at(331));
        assert!(!starts.backs_off(at(331)), "the same two show nothing new");
        // Another was asked for then, and does not come either.
        let mut third = variant("y", "h100").pending(1).build("a/m").replicas;
        third.values_mut().for_each(|replica| replica.since = at(331));
        seen.replicas.extend(third);
        starts.learn(&seen, 0.0, at(561));
        assert!(!starts.backs_off(at(561)));
        starts.learn(&seen, 0.0, at(562));
        assert!(starts.backs_off(at(761)) && !starts.backs_off(at(762)), "twice as long");
    }

    #[test]
    fn one_that_has_a_node_and_does_not_come_up_backs_nobody_off() {
        let mut starts = Starts::default();
        let mut seen = variant("x", "h100").starting(1).build("a/m");
        seen.cold_start = stated(60, 100, 100);
        starts.learn(&seen, 0.0, at(7_200));
        assert!(starts.is_late(seen.replicas.keys().next().unwrap()));
        assert!(!starts.backs_off(at(7_200)));
    }

    #[test]
    fn the_sick_are_replaced_one_by_one_and_ever_more_rarely() {
        let mut starts = Starts::default();
        let missing = flyball_core::snapshot::Observed::Missing;
        let seen = variant("x", "h100").replicas(2, ReplicaState::Failed, missing).build("a/m");
        let one = |starts: &mut Starts, gone: usize, now: u64, left_over: bool| {
            let sick = seen.replicas.iter().skip(gone);
            starts.replace(sick, left_over, at(now)).map(|id| id.name().to_owned())
        };
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(one(&mut starts, 0, 10, false), None, "another makes up for it");
        assert_eq!(one(&mut starts, 0, 10, true), name("m-x-0"));
        assert_eq!(one(&mut starts, 0, 20, true), name("m-x-0"), "it is still there");
        assert_eq!(one(&mut starts, 1, 309, true), None);
        assert_eq!(one(&mut starts, 1, 310, true), name("m-x-1"));
        assert_eq!(starts.replace_after_s, 600.0);
        starts.add(50.0);
        assert_eq!(starts.replace_after_s, 0.0, "one came up");
        // Made up for, and still there after a quarter of an hour.
        assert_eq!(one(&mut Starts::default(), 0, 899, false), None);
        assert_eq!(one(&mut Starts::default(), 0, 900, false), name("m-x-0"));
    }

    #[test]
    fn one_that_loads_for_long_is_left_alone_for_an_hour() {
        let seen = variant("x", "h100").starting(1).build("a/m");
        let replaced = |now| Starts::default().replace(seen.replicas.iter(), true, at(now));
        assert_eq!(replaced(3_599), None);
        assert!(replaced(3_600).is_some());
    }
}
