//! The requests inside, by place.

use super::Arrival;
use super::holding::Holding;
use std::collections::BTreeMap;

/// The place of a request; places are used again.
pub(super) type Slot = u32;

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody sits here, or who did has hung up while waiting.
    #[default]
    Gone,
    Waiting,
    /// Its prompt is being computed.
    Prefilling,
    /// Each step gives it a token.
    Decoding,
    /// Its last token is out, and its blocks are not back yet.
    Leaving,
}

/// One request.
#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) state: State,
    pub(super) prompt: u32,
    pub(super) output: u32,
    /// Tokens out and tokens in the cache; while decoding, those before step `since`.
    pub(super) emitted: u32,
    pub(super) computed: u32,
    pub(super) since: u64,
    /// The number of its turn to decode, in order; zero while it does not.
    pub(super) turn: u64,
    pub(super) holding: Holding,
}

impl Member {
    /// Tokens to compute before the next one comes out.
    pub(super) const fn target(&self) -> u32 {
        self.prompt + self.emitted
    }

    /// Tokens in the cache before this step.
    pub(super) const fn computed_at(&self, step: u64) -> u32 {
        match self.state {
            State::Decoding => self.computed + (step - self.since) as u32,
            _ => self.computed,
        }
    }

    /// Tokens out before this step.
    pub(super) const fn emitted_at(&self, step: u64) -> u32 {
        match self.state {
            State::Decoding => self.emitted + (step - self.since) as u32,
            _ => self.emitted,
        }
    }
}

/// All requests inside.
#[derive(Clone, Debug, Default)]
pub(super) struct Roster {
    members: Vec<Member>,
    spare: Vec<Slot>,
    by_id: BTreeMap<u64, Slot>,
}

impl Roster {
    pub(super) fn enter(&mut self, id: u64, arrival: &Arrival<'_>, names: &[u64]) -> Slot {
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.members.push(Member::default());
            self.members.len() as Slot - 1
        });
        let member = &mut self.members[slot as usize];
        member.id = id;
        member.state = State::Waiting;
        member.prompt = arrival.prompt.max(1);
        member.output = arrival.output.max(1);
        member.emitted = 0;
        member.computed = 0;
        member.holding.reset(names, arrival.name_tokens);
        self.by_id.insert(id, slot);
        slot
    }

    /// The request has ended and cannot be found any more; its slot is still taken.
    pub(super) fn strike(&mut self, slot: Slot) {
        self.by_id.remove(&self.members[slot as usize].id);
    }

    pub(super) fn leave(&mut self, slot: Slot) {
        self.members[slot as usize].state = State::Gone;
        self.spare.push(slot);
    }

    pub(super) fn slot(&self, id: u64) -> Option<Slot> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn get(&self, slot: Slot) -> &Member {
        &self.members[slot as usize]
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Member {
        &mut self.members[slot as usize]
    }

    /// Numbers of all requests that have not ended.
    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.by_id.keys().copied()
    }
}
