//! HTTP/1.1 in front of one engine.
//!
//! `connections` accepts and keeps them, `routes` says what each path does, [`body`] lets tokens
//! leave when the engine says so. A connection that closes drops its body, the body its ticket, and
//! that is how the engine hears of it.
//!
//! What it does not know: how long anything takes. Start reading at `routes`.

pub(crate) mod body;
mod connections;
mod routes;

pub(crate) use connections::{Phase, accept};

use crate::engine::Core;
use crate::faults::Switch;
use crate::settings::EmulatorSettings;
use std::sync::Arc;
use std::time::Instant;

/// What all connections of one engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) faults: Switch,
    pub(crate) settings: EmulatorSettings,
    /// Tokens of prompt and answer together.
    longest: u32,
    start: Instant,
}

impl Shared {
    pub(crate) fn new(settings: EmulatorSettings) -> Self {
        let engine = &settings.speed.settings;
        let room = engine.blocks.saturating_mul(engine.block_tokens);
        let (speed_up, together) = (settings.speed_up, settings.stream_interval);
        let core = Core::new(&settings.speed, speed_up, together, settings.log);
        core.change_speed(settings.faults.speed);
        Self {
            core: Arc::new(core),
            faults: Switch::new(settings.faults, settings.seed),
            longest: settings.longest.map_or(room, |longest| longest.min(room)),
            start: Instant::now(),
            settings,
        }
    }

    /// Whether its slow start, if it has one, is over.
    fn is_up(&self) -> bool {
        self.start.elapsed().as_secs_f64() >= self.faults.get().slow_start_seconds
    }
}
