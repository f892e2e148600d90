//! How many requests a gateway gives to an engine, and how many it keeps back: the same rules as the gateway's own.

use super::World;
use crate::seconds::Seconds;
use flyball_core::snapshot::ReplicaState;
use flyball_routing::fair::{AdmissionWindow, Reported};

/// Gateways look at the pages of engines about this often.
pub(super) const EVERY: Seconds = Seconds(0.5);

/// How long an engine may be busy with what it was given to read before more is kept back.
const AHEAD_S: f64 = 0.25;

/// Prompts that are let through whatever their length.
const PROMPTS: u32 = 2;

/// Tokens that may be unread while the speed of reading is not known.
const UNKNOWN_TOKENS: u64 = 8_192;

/// Fewer tokens say little about that speed.
const TELLING_TOKENS: u64 = 256;

/// What a gateway knows of how much more an engine may be given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    window: AdmissionWindow,
    /// Prompts that are not read.
    prompts: u32,
    /// Tokens read per second; zero if that is not known.
    speed: f64,
}

impl Default for Gate {
    fn default() -> Self {
        Self { window: AdmissionWindow::NEW, prompts: 0, speed: 0.0 }
    }
}

impl Gate {
    pub(super) fn begin(&mut self) {
        self.prompts += 1;
    }

    /// A prompt will never be read.
    pub(super) fn forget(&mut self) {
        self.prompts = self.prompts.saturating_sub(1);
    }

    /// A prompt was read, that was sent at a moment when so much was to be read.
    pub(super) fn read(&mut self, sent: Option<(Seconds, u64)>, at: Seconds) {
        self.forget();
        let Some((sent, tokens)) = sent.filter(|(_, tokens)| *tokens >= TELLING_TOKENS) else {
            return;
        };
        let sample = tokens as f64 / (at - sent).get().max(1e-6);
        // Up fast and down slowly: full batches make it look slower than it is.
        self.speed = match self.speed {
            none if none <= 0.0 => sample,
            before if sample > before => before + (sample - before) / 4.0,
            before => before - (before - sample) / 32.0,
        };
    }

    pub(super) fn has_room(&self, inside: usize, unread: u64) -> bool {
        let most = if self.speed > 0.0 { self.speed * AHEAD_S } else { UNKNOWN_TOKENS as f64 };
        let may_read = self.prompts < PROMPTS || (unread as f64) < most;
        inside < self.window.limit() as usize && may_read
    }
}

impl World<'_> {
    /// Takes in what engines tell of themselves, and hands on what they then have room for.
    pub(super) fn read_engine_loads(&mut self) {
        for place in 0..self.present.len() {
            let replica = self.present[place];
            if self.replicas[replica].inside.is_empty() {
                continue;
            }
            self.catch_up(replica);
            let there = &mut self.replicas[replica];
            let Some(engine) = &there.engine else { continue };
            let load = engine.load(self.now);
            there.gate.window = there.gate.window.after(&Reported {
                own: u32::try_from(there.inside.len()).unwrap_or(u32::MAX),
                running: load.running,
                waiting: load.waiting,
                kv_used_per_thousand: (load.used_share * 1e3) as u32,
            });
            self.plan_engine(replica);
        }
        // One that ended while it was looked at goes.
        for replica in self.present.clone() {
            if self.replicas[replica].state == ReplicaState::Draining {
                self.end_if_empty(replica);
            }
        }
        (0..self.models.len()).for_each(|model| self.hand_on_held(model));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_prompts_of_any_length_go_and_a_quarter_second_of_short_ones() {
        let mut gate = Gate::default();
        gate.begin();
        gate.read(Some((Seconds(0.0), 10_000)), Seconds(1.0));
        gate.begin();
        assert!(gate.has_room(1, 50_000));
        gate.begin();
        assert!(!gate.has_room(2, 100_000));
        assert!(gate.has_room(2, 2_400), "a quarter of what it reads in a second is 2,500");
        assert!(!gate.has_room(64, 0), "the window is full");
    }
}
