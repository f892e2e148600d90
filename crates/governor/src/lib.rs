//! The brain: how many replicas of which variant each model should have, and why.
//!
//! [`decide`] is a plain function of a snapshot, a policy, the previous decision and what was
//! learnt. The operator calls it with a real cluster's snapshot and the simulator with a virtual
//! one's; nothing here can tell which.
//!
//! The modules are its steps, in order: look ([`memory`], `lane`, `seat`), learn (`starts`, `absent`, `demand`,
//! `forecast`, `feedback`), wish (`scale`, `mix`, `zero`), hold back (`rails`, `pool`, `share`), hold ahead (`hold`), carry out (`steps`), account (`receipt`, [`explain`]). [`policy`] is
//! what owners set, and [`Learnt`] what outlives a process.
//!
//! It does no I/O and knows no clock, no randomness and no serialised form. Start at [`decide`].

#![deny(missing_docs)]

mod absent;
mod demand;
pub mod explain;
mod feedback;
mod fleet;
mod forecast;
mod hold;
mod lane;
mod learnt;
pub mod memory;
mod mix;
pub mod policy;
mod pool;
mod rails;
mod receipt;
mod scale;
mod seat;
mod share;
mod starts;
mod steps;
mod zero;

pub use learnt::Learnt;
pub use memory::{Measured, Memory};
pub use policy::Policy;

use flyball_core::decision::{Decision, Previous};
use flyball_core::snapshot::Snapshot;
use seat::Seat;

/// What to do about everything in the snapshot, and what was learnt from it.
///
/// `now` is when the snapshot was taken. Deciding twice on one snapshot changes nothing.
pub fn decide(
    snapshot: &Snapshot,
    policy: &Policy,
    previous: &Previous,
    mut memory: Memory,
) -> (Decision, Memory) {
    memory.forget(snapshot);
    let mut seats = Vec::with_capacity(snapshot.models.len());
    for (id, model) in &snapshot.models {
        if !memory.models.contains_key(id) {
            memory.models.insert(id.clone(), Default::default());
        }
        let learnt = memory.models.get_mut(id).expect("it was just put there");
        let mut seat = Seat::see(id, model, policy.of(id), snapshot, previous, learnt);
        scale::want(&mut seat, learnt);
        rails::apply(&mut seat, learnt);
        seats.push(seat);
    }
    // What one pool could not give may be what another model then has to do without, so this goes
    // on until nothing moves; four rounds were always enough, and the last word is the pool's.
    let mut rounds = 0;
    while pool::ration(&mut seats, snapshot, previous, &policy.lending)
        && rounds < 4
        && fall_through(&mut seats)
    {
        rounds += 1;
    }
    pool::spare(&mut seats, snapshot, previous);
    let runs = pool::lend(&seats, snapshot, previous, &policy.lending, &mut memory.lent_at);
    let pools = hold::hold(&seats, snapshot, &mut memory.held);
    let models = seats.into_iter().map(|seat| {
        let learnt = memory.models.get_mut(seat.id).expect("every seat has a memory");
        receipt::decided(seat, learnt)
    });
    let models = models.collect();
    (Decision { id: snapshot.decision_id(), models, runs, pools }, memory)
}

/// What one variant could not get is asked of the next. Returns whether any was.
fn fall_through(seats: &mut [Seat<'_>]) -> bool {
    let mut moved = false;
    for seat in seats {
        let granted: Vec<_> = seat.lanes.iter().map(|lane| lane.granted).collect();
        let known = seat.lanes.iter().filter(|lane| lane.known).count();
        let short = granted.iter().any(Option::is_some) && known > 1;
        let Some(goal) = seat.goal.filter(|_| short) else { continue };
        let before: Vec<u32> = seat.lanes.iter().map(|lane| lane.target).collect();
        scale::spread(seat, goal, &granted);
        rails::again(seat);
        moved |= seat.lanes.iter().zip(before).any(|(lane, before)| lane.target != before);
    }
    moved
}
