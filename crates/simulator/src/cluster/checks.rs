//! What must hold in every world after every event.
//!
//! Rules about decisions are `core`'s invariants and are checked with each decision. Those here are
//! about the world itself: if one breaks, the simulator is wrong, and no score of it can be trusted.

use super::World;
use crate::seconds::Seconds;
use std::fmt;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenInvariant {
    /// The seed of the world.
    pub seed: u64,
    /// The number of the event after which it was found.
    pub event: u64,
    /// When.
    pub at: Seconds,
    /// What is wrong.
    pub detail: String,
}

impl fmt::Display for BrokenInvariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, event, at, detail } = self;
        write!(f, "seed {seed}, event {event}, at {:.3} s: {detail}", at.get())
    }
}

/// More than this tells nothing new.
const MOST: usize = 100;

impl World<'_> {
    pub(super) fn note_broken(&mut self, detail: String) {
        if self.broken.len() < MOST {
            let (seed, event, at) = (self.setup.seed, self.events, self.now);
            self.broken.push(BrokenInvariant { seed, event, at, detail });
        }
    }

    /// Time never goes back.
    pub(super) fn check_time(&mut self, at: Seconds) {
        if at < self.now || at.get().is_nan() {
            self.note_broken(format!("an event of {} s comes at {} s", at.get(), self.now.get()));
        }
    }

    pub(super) fn check_world(&mut self) {
        self.check_requests();
        self.check_nodes();
    }

    /// No request is lost, and none is in two places.
    fn check_requests(&mut self) {
        for model in 0..self.models.len() {
            let inside: usize = self
                .present
                .iter()
                .map(|place| &self.replicas[*place])
                .filter(|replica| replica.model == model)
                .map(|replica| replica.inside.len())
                .sum();
            let state = &self.models[model];
            let held = state.held.queue.len() as u64;
            let open = state.arrived - state.ended;
            let (inside, counted, leaving) = (inside as u64, state.in_engines, state.leaving);
            let crossing = state.crossing;
            if inside != counted || open + leaving != held + counted + crossing {
                self.note_broken(format!(
                    "model {model}: {open} requests open, but {held} held, {crossing} on the network \
                     and {counted} in engines ({leaving} of them without a client), where {inside} \
                     are found"
                ));
            }
        }
    }

    /// Nobody has an accelerator that is not there, and none has two owners.
    fn check_nodes(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].gone.is_some() && self.nodes[node].used == 0 {
                continue;
            }
            let replicas = self.present.iter().map(|place| &self.replicas[*place]);
            let parts = replicas.flat_map(|replica| &replica.nodes);
            let found: u32 = parts.filter(|(at, _)| *at == node).map(|(_, gpus)| gpus).sum();
            let there = &self.nodes[node];
            let (used, gpus, gone) = (there.used, there.gpus, there.gone.is_some());
            if found != used || used > gpus || gone {
                self.note_broken(format!(
                    "node {node}: {used} accelerators in use and {found} found, of {gpus}{}",
                    if gone { ", and the node is gone" } else { "" }
                ));
            }
        }
    }
}
