//! The brain: how many replicas of which variant each model should have, and why.
//!
//! [`decide`] is a plain function of a snapshot, a policy, the previous decision and what was
//! learnt. The operator calls it with a real cluster's snapshot and the simulator with a virtual
//! one's; nothing here can tell which.
//!
//! The modules are its steps, in order: look ([`memory`], `variant_state`, `model_state`), learn (`starts`, `absent`,
//! `demand`, `forecast`, `feedback`), recommendation (`recommendations`, `scale`, `mix`, `zero`), hold back (`bounds`,
//! `pool`, `share`), lend (`lend`), hold ahead (`hold`), carry out (`steps`), account (`receipt`, [`explain`]). [`policy`] is what owners
//! set, and [`GovernorMemory`] what outlives a process.
//!
//! It does no I/O and knows no clock, no randomness and no serialised form. Start at [`decide`].

#![deny(missing_docs)]

mod absent;
mod bounds;
mod demand;
pub mod explain;
mod feedback;
mod fleet;
mod forecast;
mod hold;
mod learnt;
mod lend;
pub mod memory;
mod mix;
mod model_state;
pub mod policy;
mod pool;
mod receipt;
mod recommendations;
mod scale;
mod share;
mod starts;
mod steps;
mod variant_state;
mod zero;

pub use learnt::GovernorMemory;
pub use memory::{MeasuredDemand, Memory};
pub use policy::Policy;

use flyball_core::decision::{Decision, Previous};
use flyball_core::snapshot::Snapshot;
use model_state::ModelState;

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
    let mut states = Vec::with_capacity(snapshot.models.len());
    for (id, model) in &snapshot.models {
        if !memory.models.contains_key(id) {
            memory.models.insert(id.clone(), Default::default());
        }
        let learnt = memory.models.get_mut(id).expect("it was just put there");
        let mut state = ModelState::observe(id, model, policy.of(id), snapshot, previous, learnt);
        scale::want(&mut state, learnt);
        bounds::apply(&mut state, learnt);
        states.push(state);
    }
    // What one pool could not give may be what another model then has to do without, so this goes
    // on until nothing moves; four rounds were always enough, and the last word is the pool's.
    let mut rounds = 0;
    while pool::ration(&mut states, snapshot, previous, policy)
        && rounds < 4
        && fall_through(&mut states)
    {
        rounds += 1;
    }
    pool::spare(&mut states, snapshot, previous);
    let runs = lend::lend(&states, snapshot, previous, policy, &mut memory.lent_at);
    let pools = hold::hold(&states, snapshot, &mut memory.held);
    let models = states.into_iter().map(|state| {
        let learnt = memory.models.get_mut(state.id).expect("every state has a memory");
        receipt::decided(state, learnt)
    });
    let models = models.collect();
    (Decision { id: snapshot.decision_id(), models, runs, pools }, memory)
}

/// What one variant could not get is asked of the next. Returns whether any was.
fn fall_through(states: &mut [ModelState<'_>]) -> bool {
    let mut moved = false;
    for state in states {
        let granted: Vec<_> = state.variants.iter().map(|variant| variant.granted).collect();
        let known = state.variants.iter().filter(|variant| variant.known).count();
        let short = granted.iter().any(Option::is_some) && known > 1;
        let Some(goal) = state.goal.filter(|_| short) else { continue };
        let before: Vec<u32> = state.variants.iter().map(|variant| variant.target).collect();
        scale::spread(state, goal, &granted);
        bounds::again(state);
        moved |=
            state.variants.iter().zip(before).any(|(variant, before)| variant.target != before);
    }
    moved
}
