//! The queue.

use super::Cost;
use std::collections::{BTreeMap, VecDeque};

/// Cost that a caller of weight 1 may spend per round: a usual chat request or two, so that most
/// turns go around one by one.
const QUANTUM: i64 = 4_096;

/// The most that a caller can owe: some 64 rounds. Who was far off with a guess pays for a while, not
/// for ever.
const MOST_OWED: i64 = 64 * QUANTUM;

/// Callers that owe something and have nothing waiting.
const DEBTORS: usize = 4_096;

/// Strict priority: nobody of a later class gets a turn while one of an earlier class can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Before all others.
    High,
    /// As usual.
    Normal,
    /// What can wait.
    Low,
    /// What runs on capacity that nobody else wants: a turn only while no other class waits, and only where
    /// [`super::BatchRoom`] has one.
    Batch,
}

impl Class {
    /// All of them, in the order of their turns.
    pub const ALL: [Self; 4] = [Self::High, Self::Normal, Self::Low, Self::Batch];

    /// Whether it runs on capacity that nobody else wants.
    pub const fn is_batch(self) -> bool {
        matches!(self, Self::Batch)
    }
}

/// Who asks for a turn, and for how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedRequest {
    /// Its class.
    pub class: Class,
    /// A number of the caller's own.
    pub caller: u64,
    /// The caller's part.
    pub weight: u32,
    /// What it will probably cost.
    pub cost: Cost,
}

/// Where something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    flow: Key,
    number: u64,
}

type Key = (Class, u64);

/// A queue of many callers.
#[derive(Debug)]
pub struct FairQueue<T> {
    flows: BTreeMap<Key, Flow<T>>,
    /// Flows with something waiting, by class, in the order of their turns.
    turns: [VecDeque<Key>; 4],
    debts: BTreeMap<Key, i64>,
    waiting: usize,
    /// Those of them of the class batch.
    batch: usize,
    cost: u64,
    next_number: u64,
}

#[derive(Debug)]
struct Flow<T> {
    weight: u32,
    deficit: i64,
    cost: u64,
    items: VecDeque<Item<T>>,
}

#[derive(Debug)]
struct Item<T> {
    number: u64,
    cost: Cost,
    what: T,
}

impl<T> FairQueue<T> {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            flows: BTreeMap::new(),
            turns: [const { VecDeque::new() }; 4],
            debts: BTreeMap::new(),
            waiting: 0,
            batch: 0,
            cost: 0,
            next_number: 0,
        }
    }

    /// How many wait.
    pub const fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nobody waits.
    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many wait of the class batch.
    pub const fn batch(&self) -> usize {
        self.batch
    }

    /// How many wait of all other classes: while it is not zero, no batch has a turn.
    pub const fn urgent(&self) -> usize {
        self.waiting - self.batch
    }

    /// What all that wait will probably cost.
    pub const fn cost(&self) -> Cost {
        Cost(self.cost)
    }

    /// Waits behind what the same caller has waiting in the same class.
    pub fn push(&mut self, request: &QueuedRequest, what: T) -> Ticket {
        self.stand(request, what, VecDeque::push_back)
    }

    /// Waits again, before what the same caller has waiting in the same class. Its turn is paid for already: with a cost
    /// of nothing it is not paid twice.
    pub fn put_back(&mut self, request: &QueuedRequest, what: T) -> Ticket {
        self.stand(&QueuedRequest { cost: Cost(0), ..*request }, what, VecDeque::push_front)
    }

    fn stand(
        &mut self,
        request: &QueuedRequest,
        what: T,
        place: fn(&mut VecDeque<Item<T>>, Item<T>),
    ) -> Ticket {
        let key = (request.class, request.caller);
        let number = self.next_number;
        self.next_number += 1;
        let flow = self.flows.entry(key).or_insert_with(|| {
            self.turns[request.class as usize].push_back(key);
            let deficit = self.debts.remove(&key).unwrap_or(0);
            Flow { weight: 1, deficit, cost: 0, items: VecDeque::new() }
        });
        flow.weight = request.weight.max(1);
        flow.cost += request.cost.0;
        place(&mut flow.items, Item { number, cost: request.cost, what });
        self.waiting += 1;
        self.batch += usize::from(request.class.is_batch());
        self.cost += request.cost.0;
        Ticket { flow: key, number }
    }

    /// Takes out the next whose turn it is among those that can go. Who cannot go does not lose its
    /// turn and does not save any up. None of the class batch.
    pub fn next(&mut self, mut can_go: impl FnMut(u64, &T) -> bool) -> Option<(QueuedRequest, T)> {
        let mut urgent = Class::ALL.into_iter().filter(|class| !class.is_batch());
        urgent.find_map(|class| self.next_of(class, &mut can_go))
    }

    /// Takes out the next of the class batch; `None` while anybody else waits, also one that cannot go.
    pub fn next_batch(&mut self) -> Option<(QueuedRequest, T)> {
        if self.urgent() > 0 {
            return None;
        }
        self.next_of(Class::Batch, &mut |_, _| true)
    }

    /// Takes out one that does not want to wait any more; `None` if it is not there.
    pub fn remove(&mut self, ticket: Ticket) -> Option<T> {
        let flow = self.flows.get_mut(&ticket.flow)?;
        let place = flow.items.iter().position(|item| item.number == ticket.number)?;
        let item = flow.items.remove(place)?;
        self.left(ticket.flow, item.cost);
        Some(item.what)
    }

    /// Takes out all that do not want to wait any more.
    pub fn remove_where(&mut self, mut is_over: impl FnMut(&T) -> bool) -> Vec<T> {
        let over: Vec<Ticket> = self
            .flows
            .iter()
            .flat_map(|(key, flow)| flow.items.iter().map(move |item| (*key, item)))
            .filter(|(_, item)| is_over(&item.what))
            .map(|(flow, item)| Ticket { flow, number: item.number })
            .collect();
        over.into_iter().filter_map(|ticket| self.remove(ticket)).collect()
    }

    /// Whether something of this caller waits that is not of the class batch.
    pub fn has(&self, caller: u64) -> bool {
        let mut urgent = Class::ALL.into_iter().filter(|class| !class.is_batch());
        urgent.any(|class| self.flows.contains_key(&(class, caller)))
    }

    /// All that wait.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.flows.values().flat_map(|flow| &flow.items).map(|item| &item.what)
    }

    /// What all that wait will probably cost, batch aside.
    pub fn urgent_cost(&self) -> Cost {
        let flows = self.flows.range(..(Class::Batch, 0));
        Cost(flows.map(|(_, flow)| flow.cost).sum())
    }

    /// What will probably be served before a new request of this kind gets its turn, itself
    /// included: all of earlier classes, and of its own class what others spend in as many rounds as
    /// it needs.
    pub fn ahead(&self, request: &QueuedRequest) -> Cost {
        let key = (request.class, request.caller);
        let earlier =
            self.flows.range(..(request.class, 0)).map(|(_, flow)| flow.cost).sum::<u64>();
        let own = self.flows.get(&key);
        let owed = own.map_or_else(|| self.debts.get(&key).copied().unwrap_or(0), |f| f.deficit);
        let mine = own.map_or(0, |flow| flow.cost) + request.cost.0 + owed.min(0).unsigned_abs();
        let weight = u64::from(request.weight.max(1));
        let class = (request.class, 0)..=(request.class, u64::MAX);
        let others =
            self.flows.range(class).filter(|(other, _)| **other != key).map(|(_, flow)| {
                let meanwhile = mine.saturating_mul(u64::from(flow.weight)) / weight;
                flow.cost.min(meanwhile)
            });
        Cost(earlier + mine + others.sum::<u64>())
    }

    /// A request has ended, and cost so much instead of what was thought. Only who waits or owes is
    /// charged: where nobody waits, nothing was taken from anybody.
    pub fn charge(&mut self, class: Class, caller: u64, thought: Cost, actual: Cost) {
        let more = i64::try_from(actual.0).unwrap_or(MOST_OWED).min(MOST_OWED)
            - i64::try_from(thought.0).unwrap_or(MOST_OWED).min(MOST_OWED);
        let key = (class, caller);
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.deficit = (flow.deficit - more).clamp(-MOST_OWED, MOST_OWED);
        } else if more > 0 && self.waiting > 0 {
            self.owe(key, -more);
        }
    }

    /// Some time has passed: halves what is owed by callers that have nothing waiting.
    pub fn forgive(&mut self) {
        self.debts.values_mut().for_each(|debt| *debt /= 2);
        self.debts.retain(|_, debt| *debt < -QUANTUM / 8);
    }

    fn next_of(
        &mut self,
        class: Class,
        can_go: &mut impl FnMut(u64, &T) -> bool,
    ) -> Option<(QueuedRequest, T)> {
        let mut least_rounds = None;
        for _ in 0..self.turns[class as usize].len() {
            let key = *self.turns[class as usize].front()?;
            let flow = self.flows.get_mut(&key)?;
            let head = flow.items.front()?;
            if can_go(key.1, &head.what) {
                let cost = i64::try_from(head.cost.0).unwrap_or(MOST_OWED);
                if flow.deficit >= cost {
                    return self.take(key);
                }
                flow.deficit += QUANTUM * i64::from(flow.weight);
                let missing = (cost - flow.deficit).max(0);
                let rounds = (missing as u64).div_ceil((QUANTUM * i64::from(flow.weight)) as u64);
                least_rounds = Some(least_rounds.unwrap_or(u64::MAX).min(rounds));
            }
            self.turns[class as usize].rotate_left(1);
        }
        // Nobody could pay for its head in this round: as many more as the first to be able needs.
        let rounds = i64::try_from(least_rounds?).unwrap_or(i64::MAX);
        let mut first = None;
        for _ in 0..self.turns[class as usize].len() {
            let key = *self.turns[class as usize].front()?;
            let flow = self.flows.get_mut(&key)?;
            let head = flow.items.front()?;
            if can_go(key.1, &head.what) {
                let earned = rounds.saturating_mul(QUANTUM * i64::from(flow.weight));
                flow.deficit = flow.deficit.saturating_add(earned);
                let cost = i64::try_from(head.cost.0).unwrap_or(MOST_OWED);
                if first.is_none() && flow.deficit >= cost {
                    first = Some(key);
                }
            }
            self.turns[class as usize].rotate_left(1);
        }
        let first = first?;
        while self.turns[class as usize].front() != Some(&first) {
            self.turns[class as usize].rotate_left(1);
        }
        self.take(first)
    }

    /// Takes out the head of a flow, whose turn goes on while it can pay.
    fn take(&mut self, key: Key) -> Option<(QueuedRequest, T)> {
        let flow = self.flows.get_mut(&key)?;
        let item = flow.items.pop_front()?;
        flow.deficit -= i64::try_from(item.cost.0).unwrap_or(MOST_OWED);
        let request =
            QueuedRequest { class: key.0, caller: key.1, weight: flow.weight, cost: item.cost };
        self.left(key, item.cost);
        Some((request, item.what))
    }

    fn left(&mut self, key: Key, cost: Cost) {
        self.waiting -= 1;
        self.batch -= usize::from(key.0.is_batch());
        self.cost -= cost.0;
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.cost -= cost.0;
        if flow.items.is_empty() {
            let deficit = flow.deficit;
            self.flows.remove(&key);
            self.turns[key.0 as usize].retain(|other| *other != key);
            // What was saved up is lost, what is owed is not: else a caller that always has but one
            // request waiting would never pay.
            self.owe(key, deficit);
        }
    }

    fn owe(&mut self, key: Key, deficit: i64) {
        if deficit < 0 && (self.debts.len() < DEBTORS || self.debts.contains_key(&key)) {
            let debt = self.debts.entry(key).or_default();
            *debt = (*debt + deficit).max(-MOST_OWED);
        }
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}
