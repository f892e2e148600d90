//! What a watch has told, and whether it is whole.
//!
//! A list is swapped in when it is complete, so that a reader never sees half of one.

use std::collections::BTreeMap;

/// Objects of one kind in one namespace. More than this many are not kept: 10^4 engines with a few
/// slices or pods each are far below, and a namespace gone mad must not eat the gateway's memory.
pub(super) const OBJECTS: usize = 65_536;

/// One kind of object in one namespace, by name.
#[derive(Debug)]
pub(super) struct Mirror<T> {
    now: BTreeMap<String, T>,
    next: Option<BTreeMap<String, T>>,
    listed: bool,
}

/// What a watch tells.
#[derive(Clone, Debug)]
pub(super) enum Step<T> {
    /// A list begins.
    Start,
    /// An object is there; none if it is there but says nothing of use.
    Put(String, Option<T>),
    /// An object is gone.
    Drop(String),
    /// The list is whole.
    Done,
    /// Another question is asked from now on: what is here does not answer it.
    Stale,
}

impl<T> Default for Mirror<T> {
    fn default() -> Self {
        Self { now: BTreeMap::new(), next: None, listed: false }
    }
}

impl<T: PartialEq> Mirror<T> {
    /// Takes in a step and says whether readers could see a difference.
    pub(super) fn take(&mut self, step: Step<T>) -> bool {
        match step {
            Step::Start => {
                self.next = Some(BTreeMap::new());
                false
            }
            Step::Put(name, object) => match &mut self.next {
                Some(next) => {
                    put(next, name, object);
                    false
                }
                None => put(&mut self.now, name, object),
            },
            Step::Drop(name) => match &mut self.next {
                Some(next) => {
                    next.remove(&name);
                    false
                }
                None => self.now.remove(&name).is_some(),
            },
            Step::Done => {
                let Some(next) = self.next.take() else { return false };
                let changed = !self.listed || self.now != next;
                self.now = next;
                self.listed = true;
                changed
            }
            Step::Stale => {
                self.listed = false;
                false
            }
        }
    }

    /// All objects; none before the first whole list.
    pub(super) fn whole(&self) -> Option<&BTreeMap<String, T>> {
        self.listed.then_some(&self.now)
    }
}

fn put<T: PartialEq>(into: &mut BTreeMap<String, T>, name: String, object: Option<T>) -> bool {
    let Some(object) = object else { return into.remove(&name).is_some() };
    if into.get(&name) == Some(&object) || (into.len() >= OBJECTS && !into.contains_key(&name)) {
        return false;
    }
    into.insert(name, object);
    true
}
