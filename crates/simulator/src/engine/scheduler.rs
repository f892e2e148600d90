//! What is in a step.
//!
//! Requests that decode are not looked at one by one: all of them read one token more in each step,
//! those that end are in a heap by step, and those that need a block are counted by the remainder of
//! their length.

use super::blocks::{BlockChange, Pool};
use super::roster::{Member, Roster, Slot, State};
use super::{Arrival, EngineSettings, EngineTally, Event, SimulatedLoad, TooLong, What};
use crate::seconds::Seconds;
use flyball_perf::serving::batch::Batch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Decides which requests are in the next step. Knows the order of steps, not their time.
#[derive(Clone, Debug)]
pub struct Scheduler {
    settings: EngineSettings,
    pool: Pool,
    roster: Roster,
    /// In order of admission. All decode, but those that leave and perhaps the last.
    running: Vec<Slot>,
    /// May hold slots of requests that are gone.
    waiting: VecDeque<Slot>,
    waiting_count: u32,
    waiting_tokens: u64,
    /// Number of the next step, or of the one under way.
    step: u64,
    decodes: u64,
    cached: u64,
    /// Decoding requests by the step, modulo the block, in which they need a new block.
    needs: Vec<u32>,
    /// The step whose end is the end of a request, and the turn that says whether it still is.
    ends: BinaryHeap<Reverse<(u64, u64, Slot)>>,
    /// Turns to decode that were given.
    turns: u64,
    /// The one request whose prompt was cut by the budget; the last of those that run.
    partial: Option<Slot>,
    /// Whose prompt this step completes.
    completing: Vec<Slot>,
    leaving: Vec<Slot>,
    batch: Batch,
    /// Whether the step changes who runs, so that the next one may differ.
    changing: bool,
    tally: EngineTally,
}

impl Scheduler {
    /// An empty one. No more requests run than a step has tokens.
    pub fn new(settings: EngineSettings) -> Self {
        let token_budget = settings.token_budget.max(1);
        let settings = EngineSettings {
            token_budget,
            max_running: settings.max_running.clamp(1, token_budget),
            block_tokens: settings.block_tokens.max(1),
            ..settings
        };
        Self {
            pool: Pool::new(settings.blocks),
            needs: vec![0; settings.block_tokens as usize],
            settings,
            roster: Roster::default(),
            running: Vec::new(),
            waiting: VecDeque::new(),
            waiting_count: 0,
            waiting_tokens: 0,
            step: 0,
            decodes: 0,
            cached: 0,
            ends: BinaryHeap::new(),
            turns: 0,
            partial: None,
            completing: Vec::new(),
            leaving: Vec::new(),
            batch: Batch::default(),
            changing: false,
            tally: EngineTally::default(),
        }
    }

    /// Whether a request could ever run.
    pub fn fits(&self, arrival: &Arrival<'_>) -> Result<(), TooLong> {
        let tokens = u64::from(arrival.prompt.max(1)) + u64::from(arrival.output.max(1));
        let room = u64::from(self.settings.blocks) * u64::from(self.settings.block_tokens);
        if tokens > room { Err(TooLong { tokens, room }) } else { Ok(()) }
    }

    /// A request waits. It must fit.
    pub fn queue(&mut self, id: u64, arrival: &Arrival<'_>) {
        let names = if self.settings.prefix_caching { arrival.names } else { &[] };
        let slot = self.roster.enter(id, arrival, names);
        self.waiting.push_back(slot);
        self.waiting_count += 1;
        self.waiting_tokens += u64::from(self.roster.get(slot).prompt);
    }

    /// A client has hung up. Nothing happens if its request has ended.
    pub fn abort(&mut self, id: u64, now: Seconds, sink: &mut impl FnMut(Event)) {
        let Some(slot) = self.roster.slot(id) else { return };
        match self.roster.get(slot).state {
            State::Waiting => {
                self.waiting_count -= 1;
                self.waiting_tokens -= u64::from(self.roster.get(slot).target());
                self.roster.get_mut(slot).state = State::Gone;
            }
            State::Prefilling | State::Decoding => {
                self.stop(slot);
                self.unseat(slot);
            }
            State::Leaving | State::Gone => return,
        }
        self.roster.strike(slot);
        sink(Event { id, at: now, what: What::Aborted });
    }

    /// Puts the next step together, at its start. None if there is nothing to do.
    pub fn compose(&mut self, now: Seconds, sink: &mut impl FnMut(Event)) -> Option<Batch> {
        let need = self.needed(self.step);
        let mut preempted = false;
        if need <= self.pool.free() {
            self.pool.take(need);
        } else {
            preempted = self.grow_in_order(now, sink);
        }
        self.batch =
            Batch { decodes: self.decodes as f64, cached: self.cached as f64, ..Batch::default() };
        let mut budget = self.settings.token_budget - self.decodes as u32;
        self.changing = preempted || self.partial.is_some();
        if let Some(slot) = self.partial {
            let member = self.roster.get(slot);
            let chunk = budget.min(member.target() - member.computed);
            if self.blocks_for(member, chunk) <= self.pool.free() {
                budget -= chunk;
                self.compute(slot, chunk);
            } else {
                self.preempt(slot, now, sink);
                preempted = true;
            }
        }
        if !preempted {
            self.admit(budget, now, sink);
        }
        let work = self.batch.decodes > 0.0 || self.batch.prefill > 0.0;
        work.then_some(self.batch)
    }

    /// The step, and as many like it as make `steps`, end now. More than one only after
    /// [`Self::steady_steps`] has allowed it.
    pub fn complete(&mut self, steps: u64, now: Seconds, sink: &mut impl FnMut(Event)) {
        if steps > 1 {
            let more = self.needed_in(self.step + 1, steps - 1);
            self.pool.take(more as u32);
        }
        self.step += steps;
        self.cached += self.decodes * steps;
        self.tally.steps += steps;
        self.tally.generated += self.decodes * steps + self.completing.len() as u64;
        while let Some(&Reverse((end, turn, slot))) = self.ends.peek() {
            if end >= self.step {
                break;
            }
            self.ends.pop();
            if self.roster.get(slot).turn == turn {
                self.finish(slot, now, sink);
            }
        }
        for index in 0..self.completing.len() {
            self.hand_out(self.completing[index], now, sink);
        }
        self.completing.clear();
        if !self.settings.ahead {
            self.release_leaving();
        }
    }

    /// Gives back what requests held whose last token is out.
    pub fn release_leaving(&mut self) {
        while let Some(slot) = self.leaving.pop() {
            self.unseat(slot);
        }
    }

    /// Steps from the one just put together on, all with the same requests, the first included:
    /// until somebody ends, or blocks run out, or somebody new may come in.
    pub fn steady_steps(&mut self) -> u64 {
        // Those who leave make room for the next step, which somebody may be waiting for.
        let room_comes = !self.leaving.is_empty() && self.waiting_count > 0;
        if self.changing || room_comes || !self.completing.is_empty() {
            return 1;
        }
        while let Some(&Reverse((end, turn, slot))) = self.ends.peek() {
            if self.roster.get(slot).turn == turn {
                return self.covered(end + 1 - self.step);
            }
            self.ends.pop();
        }
        1
    }

    /// Whether a request that comes now has to wait for the end of another.
    pub fn is_blocked(&self) -> bool {
        self.waiting_count > 0 || self.running.len() >= self.settings.max_running as usize
    }

    /// Whether nobody is inside.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting_count == 0
    }

    /// Numbers of all requests that have not ended.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.roster.ids()
    }

    /// Tokens that are out of a request that has not ended.
    pub fn emitted(&self, id: u64) -> Option<u32> {
        let member = self.roster.get(self.roster.slot(id)?);
        Some(member.emitted_at(self.step))
    }

    /// What is seen from outside, when so many of the steps under way have begun.
    pub fn load(&self, begun: u64) -> SimulatedLoad {
        let later = if begun > 1 { self.needed_in(self.step + 1, begun - 1) as u32 } else { 0 };
        let free = self.pool.free() - later.min(self.pool.free());
        let partial = self.partial.map_or(0, |slot| {
            let member = self.roster.get(slot);
            u64::from(member.target() - member.computed)
        });
        let blocks = self.settings.blocks;
        SimulatedLoad {
            running: (self.running.len() - self.leaving.len()) as u32,
            waiting: self.waiting_count,
            waiting_tokens: self.waiting_tokens + partial,
            free_blocks: free,
            used_share: f64::from(blocks - free) / f64::from(blocks.max(1)),
            generated: self.tally.generated + self.decodes * begun,
        }
    }

    /// Named blocks that were stored and forgotten since the last call, in order; from the first
    /// call on. For whoever tells others about the cache.
    pub fn changes(&mut self) -> Vec<BlockChange> {
        self.pool.changes()
    }

    /// Counts since the start.
    pub const fn tally(&self) -> EngineTally {
        self.tally
    }

    /// Limits in force.
    pub const fn settings(&self) -> &EngineSettings {
        &self.settings
    }

    /// Blocks that decoding requests need in a step.
    fn needed(&self, step: u64) -> u32 {
        self.needs[(step % self.needs.len() as u64) as usize]
    }

    /// The same for several steps.
    fn needed_in(&self, from: u64, steps: u64) -> u64 {
        let period = self.needs.len() as u64;
        let rest: u32 = (from..from + steps % period).map(|step| self.needed(step)).sum();
        steps / period * self.decodes + u64::from(rest)
    }

    /// How many of so many steps the free blocks are enough for. The first has its blocks.
    fn covered(&self, steps: u64) -> u64 {
        let free = u64::from(self.pool.free());
        let period = self.needs.len() as u64;
        if steps <= 1 || (steps / period + 1) * self.decodes <= free {
            return steps.max(1);
        }
        let rounds = free / self.decodes.max(1);
        let mut left = free - rounds * self.decodes;
        let mut covered = 1 + rounds * period;
        while covered < steps && u64::from(self.needed(self.step + covered)) <= left {
            left -= u64::from(self.needed(self.step + covered));
            covered += 1;
        }
        covered.min(steps)
    }

    /// New blocks for the next tokens of a prompt.
    const fn blocks_for(&self, member: &Member, chunk: u32) -> u32 {
        let block = self.settings.block_tokens;
        (member.computed + chunk).div_ceil(block) - member.computed.div_ceil(block)
    }

    /// Blocks for decoding requests when there are too few: in order, the last one gives way.
    fn grow_in_order(&mut self, now: Seconds, sink: &mut impl FnMut(Event)) -> bool {
        let block = self.settings.block_tokens;
        let mut preempted = false;
        let mut index = 0;
        while let Some(&slot) = self.running.get(index) {
            index += 1;
            let member = self.roster.get(slot);
            let full = member.computed_at(self.step).is_multiple_of(block);
            if member.state != State::Decoding || !full {
                continue;
            }
            while self.pool.free() == 0 {
                let last = self.running.iter().rev().copied();
                let victim = last.into_iter().find(|&s| self.roster.get(s).state != State::Leaving);
                let Some(victim) = victim else { break };
                self.preempt(victim, now, sink);
                preempted = true;
                if victim == slot {
                    return true;
                }
            }
            self.pool.take(1);
        }
        preempted
    }

    /// Takes in waiting requests, in order, while there is room.
    fn admit(&mut self, mut budget: u32, now: Seconds, sink: &mut impl FnMut(Event)) {
        let block = self.settings.block_tokens;
        while budget > 0 && self.running.len() < self.settings.max_running as usize {
            let Some(&slot) = self.waiting.front() else { break };
            let member = self.roster.get(slot);
            if member.state == State::Gone {
                self.waiting.pop_front();
                self.roster.leave(slot);
                continue;
            }
            let target = member.target();
            // The last token must be computed, for it gives the next one.
            let hit =
                member.holding.look_up(&self.pool, member.prompt, (target - 1) / block, block);
            // The whole prompt must fit, though only a chunk of it comes now.
            if target.div_ceil(block) - hit.blocks + hit.from_free > self.pool.free() {
                break;
            }
            self.waiting.pop_front();
            self.waiting_count -= 1;
            self.waiting_tokens -= u64::from(target);
            self.running.push(slot);
            self.changing = true;
            let member = self.roster.get_mut(slot);
            member.state = State::Prefilling;
            member.computed = hit.blocks * block;
            member.holding.take(&mut self.pool, hit, block);
            let (id, cached) = (member.id, member.computed);
            self.tally.cached_tokens += u64::from(cached);
            sink(Event { id, at: now, what: What::Scheduled { cached } });
            let chunk = budget.min(target - cached);
            budget -= chunk;
            self.compute(slot, chunk);
        }
    }

    /// Puts tokens of a prompt into the step.
    fn compute(&mut self, slot: Slot, chunk: u32) {
        let block = self.settings.block_tokens;
        let blocks = self.blocks_for(self.roster.get(slot), chunk);
        self.pool.take(blocks);
        let member = self.roster.get_mut(slot);
        let (before, tokens) = (f64::from(member.computed), f64::from(chunk));
        self.batch.prefill += tokens;
        self.batch.pairs += tokens * before + tokens * (tokens + 1.0) / 2.0;
        self.tally.computed_tokens += u64::from(chunk);
        member.computed += chunk;
        if self.settings.prefix_caching {
            member.holding.name(&mut self.pool, member.computed, member.prompt, block);
        }
        if member.computed == member.target() {
            self.completing.push(slot);
            self.partial = None;
        } else {
            self.partial = Some(slot);
        }
    }

    /// The prompt is computed: a token comes out, and the request decodes from now on.
    fn hand_out(&mut self, slot: Slot, now: Seconds, sink: &mut impl FnMut(Event)) {
        let member = self.roster.get_mut(slot);
        member.emitted += 1;
        if member.emitted == 1 {
            sink(Event { id: member.id, at: now, what: What::FirstToken });
        }
        if member.emitted == member.output {
            self.finish(slot, now, sink);
            return;
        }
        member.state = State::Decoding;
        member.since = self.step;
        let end = self.step - 1 + u64::from(member.output - member.emitted);
        self.turns += 1;
        let turn = self.turns;
        member.turn = turn;
        let computed = member.computed;
        self.decodes += 1;
        self.cached += u64::from(computed);
        let phase = self.phase(computed, self.step);
        self.needs[phase] += 1;
        self.ends.push(Reverse((end, turn, slot)));
    }

    fn finish(&mut self, slot: Slot, now: Seconds, sink: &mut impl FnMut(Event)) {
        self.stop(slot);
        self.roster.get_mut(slot).state = State::Leaving;
        self.roster.strike(slot);
        self.leaving.push(slot);
        sink(Event { id: self.roster.get(slot).id, at: now, what: What::Finished });
    }

    /// A running request gives its blocks back and waits, before all others.
    fn preempt(&mut self, slot: Slot, now: Seconds, sink: &mut impl FnMut(Event)) {
        self.stop(slot);
        let block = self.settings.block_tokens;
        let member = self.roster.get_mut(slot);
        if self.settings.prefix_caching {
            member.holding.park(&mut self.pool, member.computed, block);
        } else {
            member.holding.release(&mut self.pool, member.computed, block);
        }
        member.state = State::Waiting;
        member.computed = 0;
        self.waiting_tokens += u64::from(member.target());
        self.waiting_count += 1;
        self.tally.preemptions += 1;
        sink(Event { id: member.id, at: now, what: What::Preempted });
        self.remove(slot);
        self.waiting.push_front(slot);
    }

    /// Takes a request out of the sums.
    fn stop(&mut self, slot: Slot) {
        let step = self.step;
        let member = self.roster.get_mut(slot);
        let computed = member.computed_at(step);
        if member.state == State::Decoding {
            member.emitted += (step - member.since) as u32;
            member.computed = computed;
            member.turn = 0;
            self.decodes -= 1;
            self.cached -= u64::from(computed);
            let phase = self.phase(computed, step);
            self.needs[phase] -= 1;
        }
        if self.partial == Some(slot) {
            self.partial = None;
        }
    }

    /// A running request is gone, and so are its blocks.
    fn unseat(&mut self, slot: Slot) {
        let block = self.settings.block_tokens;
        let member = self.roster.get_mut(slot);
        member.holding.release(&mut self.pool, member.computed, block);
        self.remove(slot);
        self.roster.leave(slot);
    }

    fn remove(&mut self, slot: Slot) {
        if let Some(place) = self.running.iter().rposition(|&other| other == slot) {
            self.running.remove(place);
        }
    }

    /// The step, modulo the block, in which a request with so many tokens before `step` needs a
    /// new block.
    fn phase(&self, computed: u32, step: u64) -> usize {
        let block = u64::from(self.settings.block_tokens);
        let missing = (block - u64::from(computed) % block) % block;
        ((step + missing) % block) as usize
    }
}

#[cfg(test)]
impl Scheduler {
    /// Free blocks, blocks in held groups, and own blocks of all who run.
    pub(super) fn blocks_by_kind(&self) -> (u32, u32, u32) {
        let own = |&slot: &Slot| {
            let member = self.roster.get(slot);
            member.holding.own(member.computed_at(self.step), self.settings.block_tokens)
        };
        assert_eq!(self.pool.free(), self.pool.queued());
        (self.pool.free(), self.pool.held(), self.running.iter().map(own).sum())
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }
}
