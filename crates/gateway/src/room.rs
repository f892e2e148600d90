//! Room inside the gateway: requests at once, bytes held at once, of all callers and of each. What does
//! not fit is refused at once.
//!
//! A caller may have as much as is left for others, so that one alone gets half, two that want all a third
//! each, and whoever comes next finds room, however many there are. (Choudhury and Hahne's dynamic
//! thresholds, 1998, as switches share their buffers: nothing to set, and nothing lies idle while few
//! ask.) It comes before the fair queue, which shares engines and sees only requests that have been read.

use crate::answer::Problem;
use crate::settings::RequestLimits;
use flyball_fleet::invariants::{GatewayInvariant, give_back};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is held at once, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Room {
    all: Share,
    /// Those of them of the class batch.
    batch: Share,
}

/// Requests and bytes of all, or of one caller.
#[derive(Debug, Default)]
pub(crate) struct Share {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// A place for one request and its bytes; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    /// Its caller's, where there are others.
    caller: Option<Arc<Share>>,
    bytes: usize,
    /// Whether it is one of those for batch.
    batch: bool,
}

/// The part of all places and bytes that batch may have: it waits for minutes, and its caller has as much again for
/// what is more urgent.
const BATCH_PART: usize = 4;

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The gateway holds as much as it may.
    Gateway,
    /// The caller holds as much as is left for others.
    Caller,
}

impl From<NoRoom> for Problem {
    fn from(why: NoRoom) -> Self {
        match why {
            NoRoom::Gateway => Self::Full,
            NoRoom::Caller => Self::CallerFull,
        }
    }
}

impl Room {
    /// Requests that are inside.
    pub(crate) fn requests(&self) -> usize {
        self.all.requests.load(Ordering::Relaxed)
    }

    /// Bytes of bodies that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.all.bytes.load(Ordering::Relaxed)
    }
}

impl Place {
    /// A place among those that there may be. Without a share there is one caller, who may have all.
    pub(crate) fn take(
        room: Arc<Room>,
        caller: Option<Arc<Share>>,
        limits: &RequestLimits,
    ) -> Result<Self, NoRoom> {
        let all = room.all.requests.fetch_add(1, Ordering::Relaxed);
        let own = caller.as_ref().map(|share| share.requests.fetch_add(1, Ordering::Relaxed));
        // From here on it is given back by dropping it.
        let place = Self { room, caller, bytes: 0, batch: false };
        fits(all, own, 1, limits.in_flight, 1).map(|()| place)
    }

    /// Holds so many bytes more. What does not fit is given back with the place.
    pub(crate) fn hold(&mut self, bytes: usize, limits: &RequestLimits) -> Result<(), NoRoom> {
        self.bytes += bytes;
        let all = self.room.all.bytes.fetch_add(bytes, Ordering::Relaxed);
        let own = self.caller.as_ref().map(|share| share.bytes.fetch_add(bytes, Ordering::Relaxed));
        // One body of its own is nobody's flood, however little there is.
        fits(all, own, bytes, limits.held_bytes, limits.body_bytes)
    }

    /// Becomes one of those for batch. Whether it fits there; if not, it is as before.
    pub(crate) fn be_batch(&mut self, limits: &RequestLimits) -> bool {
        let Share { requests, bytes } = &self.room.batch;
        let before = requests.fetch_add(1, Ordering::Relaxed);
        let held = bytes.fetch_add(self.bytes, Ordering::Relaxed);
        self.batch = before < limits.in_flight.div_ceil(BATCH_PART)
            && (held == 0 || held + self.bytes <= limits.held_bytes / BATCH_PART);
        if !self.batch {
            give_back!(requests, 1, GatewayInvariant::Requests);
            give_back!(bytes, self.bytes, GatewayInvariant::Bytes);
        }
        self.batch
    }

    /// Its bytes are not held any more.
    pub(crate) fn let_go(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if self.batch {
            give_back!(self.room.batch.bytes, bytes, GatewayInvariant::Bytes);
        }
        give_back!(self.room.all.bytes, bytes, GatewayInvariant::Bytes);
        if let Some(caller) = &self.caller {
            give_back!(caller.bytes, bytes, GatewayInvariant::Shares);
        }
    }
}

/// Whether `more` fits where all hold `all` of at most `most`, and the caller `own`. It may have as much
/// as is then left, and `least` in any case.
fn fits(
    all: usize,
    own: Option<usize>,
    more: usize,
    most: usize,
    least: usize,
) -> Result<(), NoRoom> {
    let left = most.checked_sub(all + more).ok_or(NoRoom::Gateway)?;
    match own {
        Some(own) if own + more > left.max(least) => Err(NoRoom::Caller),
        _ => Ok(()),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.let_go();
        give_back!(self.room.all.requests, 1, GatewayInvariant::Requests);
        if self.batch {
            give_back!(self.room.batch.requests, 1, GatewayInvariant::Requests);
        }
        if let Some(caller) = &self.caller {
            give_back!(caller.requests, 1, GatewayInvariant::Shares);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(in_flight: usize, held_bytes: usize) -> RequestLimits {
        RequestLimits { in_flight, held_bytes, body_bytes: 10, ..RequestLimits::default() }
    }

    #[test]
    fn what_is_taken_comes_back_also_when_it_was_too_much() {
        let (room, limits) = (Arc::new(Room::default()), limits(2, 100));
        let take = || Place::take(Arc::clone(&room), None, &limits);
        let (first, mut second) = (take().expect("room"), take().expect("room"));
        assert_eq!(take().unwrap_err(), NoRoom::Gateway);
        assert_eq!(second.hold(60, &limits), Ok(()));
        assert_eq!(second.hold(60, &limits), Err(NoRoom::Gateway));
        drop((first, second));
        assert_eq!((room.requests(), room.bytes()), (0, 0));
    }

    #[test]
    fn one_caller_has_half_and_those_who_come_share_what_is_left() {
        let (room, limits) = (Arc::new(Room::default()), limits(60, 600));
        let [one, two, three] = [(); 3].map(|()| Arc::<Share>::default());
        let fill = |share: &Arc<Share>| {
            let take = || Place::take(Arc::clone(&room), Some(Arc::clone(share)), &limits).ok();
            std::iter::from_fn(take).collect::<Vec<_>>()
        };
        let first = fill(&one);
        assert_eq!(first.len(), 30);
        let refused = Place::take(Arc::clone(&room), Some(Arc::clone(&one)), &limits).unwrap_err();
        assert_eq!(refused, NoRoom::Caller);
        let (second, third) = (fill(&two), fill(&three));
        assert_eq!((second.len(), third.len()), (15, 7));
        // Who comes last finds room, and who lets go leaves more to the others.
        assert_eq!(fill(&Arc::default()).len(), 4);
        drop(first);
        assert!(fill(&two).len() > 5);
        drop((second, third));
        assert_eq!(room.requests(), 0);
    }

    #[test]
    fn batch_has_a_quarter_and_gives_back_what_did_not_fit() {
        let (room, limits) = (Arc::new(Room::default()), limits(8, 100));
        let take = |bytes| {
            let mut place = Place::take(Arc::clone(&room), None, &limits).unwrap();
            place.hold(bytes, &limits).unwrap();
            place
        };
        let mut places = [20, 6, 5, 0].map(take);
        let fits = places.each_mut().map(|place| place.be_batch(&limits));
        assert_eq!(fits, [true, false, true, false], "25 bytes, two requests");
        places[0].let_go();
        drop(places);
        let Share { requests, bytes } = &room.batch;
        assert_eq!((requests.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed)), (0, 0));
        assert_eq!((room.requests(), room.bytes()), (0, 0));
    }

    #[test]
    fn one_body_is_held_however_little_there_is() {
        let (room, limits) = (Arc::new(Room::default()), limits(10, 12));
        let share = || Some(Arc::<Share>::default());
        let mut body = Place::take(Arc::clone(&room), share(), &limits).unwrap();
        for _ in 0..10 {
            assert_eq!(body.hold(1, &limits), Ok(()));
        }
        assert_eq!(body.hold(1, &limits), Err(NoRoom::Caller));
    }

    /// What one of three callers does: comes, holds more, or goes.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Come(usize),
        Hold(usize, usize),
        Go(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..3_usize).prop_map(Act::Come),
            (any::<usize>(), 1..200_usize).prop_map(|(which, bytes)| Act::Hold(which, bytes)),
            any::<usize>().prop_map(Act::Go),
        ]
    }

    proptest! {
        /// Whatever three callers do, sums are those of what is there, no limit is passed, and a fourth
        /// who holds nothing finds room.
        #[test]
        fn whoever_holds_nothing_finds_room(acts in prop::collection::vec(act(), 0..200)) {
            let (room, limits) = (Arc::new(Room::default()), limits(40, 1_000));
            let shares = [(); 3].map(|()| Arc::<Share>::default());
            let mut places: Vec<Place> = Vec::new();
            for act in acts {
                match act {
                    Act::Come(who) => {
                        let share = Some(Arc::clone(&shares[who]));
                        places.extend(Place::take(Arc::clone(&room), share, &limits));
                    }
                    Act::Hold(which, bytes) if !places.is_empty() => {
                        let place = which % places.len();
                        if places[place].hold(bytes, &limits).is_err() {
                            drop(places.swap_remove(place));
                        }
                    }
                    Act::Go(which) if !places.is_empty() => {
                        drop(places.swap_remove(which % places.len()));
                    }
                    Act::Hold(..) | Act::Go(_) => {}
                }
                prop_assert!(room.requests() <= limits.in_flight);
                prop_assert!(room.bytes() <= limits.held_bytes);
                prop_assert_eq!(room.requests(), places.len());
                let held: usize =
                    shares.iter().map(|share| share.bytes.load(Ordering::Relaxed)).sum();
                prop_assert_eq!(room.bytes(), held);
                let newcomer = Place::take(Arc::clone(&room), Some(Arc::default()), &limits);
                let mut newcomer = newcomer.expect("room for one more");
                prop_assert_eq!(newcomer.hold(limits.body_bytes, &limits), Ok(()));
            }
            places.clear();
            prop_assert_eq!((room.requests(), room.bytes()), (0, 0));
        }
    }
}
