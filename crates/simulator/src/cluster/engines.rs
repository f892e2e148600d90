//! What the engine of one replica counts, as a Prometheus that scrapes it reads it.

use super::World;
use flyball_core::units::Timestamp;
use flyball_estimator::CounterWindow;
use flyball_estimator::reading::{CacheUsed, EngineCounts, EngineReading};

/// What one engine has counted, and what it showed when it was last scraped.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    prompt_tokens: u64,
    answered: u64,
    paced_tokens: u64,
    paced_seconds: f64,
    counts: CounterWindow<EngineCounts>,
    running: f64,
    waiting: f64,
    used: f64,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            prompt_tokens: 0,
            answered: 0,
            paced_tokens: 0,
            paced_seconds: 0.0,
            counts: CounterWindow::of(EngineReading::WINDOW),
            running: 0.0,
            waiting: 0.0,
            used: 0.0,
        }
    }
}

impl Counted {
    pub(super) fn read(&mut self, prompt: u32) {
        self.prompt_tokens += u64::from(prompt);
    }

    /// An answer ended whose tokens after the first took so long.
    pub(super) fn answered(&mut self, tokens: u32, seconds: f64) {
        self.answered += 1;
        self.paced_tokens += u64::from(tokens.saturating_sub(1));
        self.paced_seconds += seconds;
    }
}

impl World<'_> {
    /// Scrapes the engine of every replica that serves.
    pub(super) fn scrape_engines(&mut self) {
        let (at, start) = (self.now.after(self.setup.start), self.setup.start);
        for place in 0..self.present.len() {
            let replica = &mut self.replicas[self.present[place]];
            let Some(engine) = &replica.engine else { continue };
            let load = engine.load(self.now);
            // Tokens count when they are there, and not when their answer ends.
            let under_way = replica.inside.iter().filter_map(|request| {
                let first = self.requests[*request].first_token?;
                let tokens = engine.emitted(*request as u64)?.saturating_sub(1);
                Some((f64::from(tokens), (self.now - first).get()))
            });
            let under_way = under_way.fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
            let counted = &mut replica.counted;
            let counts = EngineCounts {
                prompt_tokens: counted.prompt_tokens as f64,
                cached_tokens: 0.0,
                output_tokens: load.generated as f64,
                answered: counted.answered as f64,
                paced_tokens: counted.paced_tokens as f64 + under_way.0,
                paced_seconds: counted.paced_seconds + under_way.1,
            };
            counted.counts.add(at, start, counts);
            counted.running = f64::from(load.running);
            counted.waiting = f64::from(load.waiting);
            counted.used = load.used_share;
        }
    }

    /// The engine of a replica as it was last scraped; nothing of it where scrapes find nothing.
    pub(super) fn read_engine(&self, replica: usize, scraped: Option<Timestamp>) -> EngineReading {
        let there = &self.replicas[replica];
        let serves_since = there.served.map(|since| since.after(self.setup.start));
        let counted = &there.counted;
        if scraped.is_none() || counted.counts.last().is_none() {
            return EngineReading { serves_since, ..EngineReading::unread() };
        }
        let settings = &self.setup.models[there.model].variants[there.variant].speed.settings;
        let room = f64::from(settings.blocks) * f64::from(settings.block_tokens);
        EngineReading {
            serves_since,
            counts: counted.counts.clone(),
            running: Some(counted.running),
            waiting: Some(counted.waiting),
            cache_used: CacheUsed::Share(counted.used),
            cache_tokens: Some(room),
        }
    }
}
