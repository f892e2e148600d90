//! Room inside the gateway: requests at once, bytes held at once. What does not fit is refused at
//! once.

use crate::invariants::{Invariant, give_back};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is held at once, by all threads.
#[derive(Debug, Default)]
pub(crate) struct Room {
    requests: AtomicUsize,
    bytes: AtomicUsize,
}

/// A place for one request and its bytes; given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    /// Requests that are inside.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Bytes of bodies that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Place {
    /// A place among at most so many.
    pub(crate) fn take(room: Arc<Room>, most: usize) -> Option<Self> {
        let before = room.requests.fetch_add(1, Ordering::Relaxed);
        let place = Self { room, bytes: 0 };
        (before < most).then_some(place)
    }

    /// Holds so many bytes more; false if that is more than there may be.
    pub(crate) fn hold(&mut self, bytes: usize, most: usize) -> bool {
        self.bytes += bytes;
        let before = self.room.bytes.fetch_add(bytes, Ordering::Relaxed);
        before + bytes <= most
    }

    /// Its bytes are not held any more.
    pub(crate) fn let_go(&mut self) {
        give_back!(self.room.bytes, std::mem::take(&mut self.bytes), Invariant::Bytes);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.let_go();
        give_back!(self.room.requests, 1, Invariant::Requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_also_when_it_was_too_much() {
        let room = Arc::new(Room::default());
        let first = Place::take(Arc::clone(&room), 2).expect("room");
        let mut second = Place::take(Arc::clone(&room), 2).expect("room");
        assert!(Place::take(Arc::clone(&room), 2).is_none());
        assert!(second.hold(60, 100));
        assert!(!second.hold(60, 100));
        drop((first, second));
        assert_eq!((room.requests(), room.bytes()), (0, 0));
    }
}
