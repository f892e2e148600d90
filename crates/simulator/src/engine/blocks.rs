//! The blocks of the cache: which are free, and which of the free ones still hold something.
//!
//! Blocks have no numbers of their own. What counts is how many there are of a kind, and in which
//! order free ones are taken: the longest unused first, the end of a prompt before its beginning.

use std::collections::{BTreeMap, VecDeque};

/// The place of a group.
pub(super) type Place = u32;

/// A group that may have been taken apart since, told by the stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    place: Place,
    stamp: u32,
}

/// The blocks of one replica.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    free: u32,
    /// Free blocks in the order in which they will be taken. May hold stale entries.
    queue: VecDeque<Entry>,
    groups: Vec<Group>,
    spare: Vec<Place>,
    by_key: BTreeMap<u64, Place>,
    /// What was stored and forgotten since somebody looked, if anybody looks.
    changes: Option<Vec<BlockChange>>,
}

/// What became of a named block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockChange {
    /// It is in the cache from now on.
    Stored(u64),
    /// It is not any more.
    Removed(u64),
}

/// Changes that are kept for somebody who looks: a step stores a few hundred.
const CHANGES: usize = 65_536;

/// Some free blocks: without content, or those of a group.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Empty(u32),
    Cached(Handle),
}

/// Blocks with content that belong together: those under one name, or those of a preempted request.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    key: Option<u64>,
    present: u32,
    holders: u32,
    /// Changes whenever an entry in the queue is no longer true.
    stamp: u32,
}

impl Pool {
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            free: blocks,
            queue: VecDeque::from([Entry::Empty(blocks)]),
            groups: Vec::new(),
            spare: Vec::new(),
            by_key: BTreeMap::new(),
            changes: None,
        }
    }

    /// What was stored and forgotten since the last call; from the first call on.
    pub(super) fn changes(&mut self) -> Vec<BlockChange> {
        self.changes.replace(Vec::new()).unwrap_or_default()
    }

    fn changed(&mut self, change: BlockChange) {
        if let Some(changes) = self.changes.as_mut().filter(|changes| changes.len() < CHANGES) {
            changes.push(change);
        }
    }

    /// Blocks that can be had.
    pub(super) const fn free(&self) -> u32 {
        self.free
    }

    /// Takes free blocks; what they held is forgotten. The caller has looked that there are so many.
    pub(super) fn take(&mut self, mut count: u32) {
        debug_assert!(count <= self.free, "{count} of {}", self.free);
        self.free -= count;
        while count > 0 {
            match self.queue.front_mut() {
                Some(Entry::Empty(there)) => {
                    let some = count.min(*there);
                    *there -= some;
                    count -= some;
                    if *there == 0 {
                        self.queue.pop_front();
                    }
                }
                Some(&mut Entry::Cached(handle)) => {
                    let group = &mut self.groups[handle.place as usize];
                    if group.stamp == handle.stamp {
                        let some = count.min(group.present);
                        group.present -= some;
                        count -= some;
                        if group.present > 0 {
                            continue;
                        }
                        self.forget(handle.place);
                    }
                    self.queue.pop_front();
                }
                None => break,
            }
        }
    }

    /// Gives back blocks without content.
    pub(super) fn give(&mut self, count: u32) {
        if count == 0 {
            return;
        }
        self.free += count;
        if let Some(Entry::Empty(there)) = self.queue.back_mut() {
            *there += count;
        } else {
            self.queue.push_back(Entry::Empty(count));
        }
    }

    /// Gives back blocks which their owner may want again.
    pub(super) fn park(&mut self, count: u32) -> Option<Handle> {
        if count == 0 {
            return None;
        }
        self.free += count;
        let place = self.create(None, count);
        let handle = Handle { place, stamp: self.groups[place as usize].stamp };
        self.enqueue(handle);
        Some(handle)
    }

    /// Parked blocks that are still there.
    pub(super) fn parked(&self, handle: Handle) -> u32 {
        let group = &self.groups[handle.place as usize];
        if group.stamp == handle.stamp { group.present } else { 0 }
    }

    /// Takes parked blocks back, with what they hold.
    pub(super) fn unpark(&mut self, handle: Handle) -> u32 {
        let count = self.parked(handle);
        if count > 0 {
            self.free -= count;
            self.forget(handle.place);
        }
        count
    }

    /// The group under a key, the blocks it has, and whether these count as free.
    pub(super) fn find(&self, key: u64) -> Option<(Place, u32, bool)> {
        let place = *self.by_key.get(&key)?;
        let group = &self.groups[place as usize];
        Some((place, group.present, group.holders == 0))
    }

    /// A group that somebody begins to fill.
    pub(super) fn begin(&mut self, key: u64) -> Place {
        let place = self.create(Some(key), 0);
        self.groups[place as usize].holders = 1;
        self.by_key.insert(key, place);
        self.changed(BlockChange::Stored(key));
        place
    }

    pub(super) fn present(&self, place: Place) -> u32 {
        self.groups[place as usize].present
    }

    /// Blocks that the caller held for itself now belong to the group.
    pub(super) fn extend(&mut self, place: Place, count: u32) {
        self.groups[place as usize].present += count;
    }

    /// Holds the first `keep` blocks of a group. Where nobody else does, the others are forgotten,
    /// so that no request ever takes more than its own length.
    pub(super) fn hold(&mut self, place: Place, keep: u32) {
        let group = &mut self.groups[place as usize];
        group.holders += 1;
        if group.holders == 1 {
            group.stamp = group.stamp.wrapping_add(1);
            let others = group.present.saturating_sub(keep);
            self.free -= group.present;
            group.present -= others;
            self.give(others);
        }
    }

    pub(super) fn release(&mut self, place: Place) {
        let group = &mut self.groups[place as usize];
        group.holders -= 1;
        if group.holders == 0 {
            self.free += group.present;
            let handle = Handle { place, stamp: group.stamp };
            self.enqueue(handle);
        }
    }

    /// Blocks in groups that somebody holds.
    #[cfg(test)]
    pub(super) fn held(&self) -> u32 {
        self.groups.iter().filter(|group| group.holders > 0).map(|group| group.present).sum()
    }

    /// Blocks in the queue, which must be those that are free.
    #[cfg(test)]
    pub(super) fn queued(&self) -> u32 {
        let blocks = |entry: &Entry| match *entry {
            Entry::Empty(count) => count,
            Entry::Cached(handle) => self.parked(handle),
        };
        self.queue.iter().map(blocks).sum()
    }

    fn create(&mut self, key: Option<u64>, present: u32) -> Place {
        let place = self.spare.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() as Place - 1
        });
        let group = &mut self.groups[place as usize];
        *group = Group { key, present, holders: 0, stamp: group.stamp.wrapping_add(1) };
        place
    }

    fn forget(&mut self, place: Place) {
        let group = &mut self.groups[place as usize];
        group.stamp = group.stamp.wrapping_add(1);
        group.present = 0;
        if let Some(key) = group.key.take() {
            self.by_key.remove(&key);
            self.changed(BlockChange::Removed(key));
        }
        self.spare.push(place);
    }

    fn enqueue(&mut self, handle: Handle) {
        // Stale entries leave at the front; where nothing is ever taken they would pile up.
        if self.queue.len() > 2 * self.groups.len() + 64 {
            let groups = &self.groups;
            self.queue.retain(|entry| match *entry {
                Entry::Empty(_) => true,
                Entry::Cached(handle) => groups[handle.place as usize].stamp == handle.stamp,
            });
        }
        self.queue.push_back(Entry::Cached(handle));
    }
}
