//! The thread: takes messages, keeps a trial per model, and writes down what they say.

use super::{Known, Line};
use crate::choose::BLOCK_TOKENS;
use flyball_core::units::Tokens;
use flyball_fleet::{Fleet, FleetModel};
use flyball_routing::shadow::{Listed, ShadowArrival, ShadowTrial};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between two looks at settings and engines, which report as often, and two reports.
const TICK: Duration = Duration::from_millis(500);

/// Something that happened to a request.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) at: Instant,
    pub(super) model: Arc<str>,
    pub(super) number: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Arrived {
        prefixes: Box<[u64]>,
        block_tokens: u32,
        prompt: Tokens,
        output: Tokens,
        key: u64,
        engine: u64,
    },
    First,
    End {
        output: Option<u64>,
    },
}

/// What the thread has.
pub(super) struct Desk {
    known: Arc<Known>,
    began: Instant,
    fleet: Arc<Fleet>,
    trials: BTreeMap<Arc<str>, Running>,
}

struct Running {
    line: Arc<Line>,
    trial: ShadowTrial,
    listed: Vec<Listed>,
}

impl Desk {
    pub(super) fn new(known: Arc<Known>, began: Instant) -> Self {
        Self { known, began, fleet: Arc::default(), trials: BTreeMap::new() }
    }

    /// Works until nobody can send any more.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut updated = None::<Instant>;
        loop {
            let message = messages.recv_timeout(TICK);
            if updated.is_none_or(|at| at.elapsed() >= TICK) || self.is_old() {
                self.update();
                updated = Some(Instant::now());
            }
            match message {
                Ok(message) => self.take(&message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes in one message.
    pub(super) fn take(&mut self, message: &Message) {
        let Some(running) = self.trials.get_mut(&message.model) else { return };
        let at = message.at.saturating_duration_since(self.began);
        let (number, trial) = (message.number, &mut running.trial);
        match &message.what {
            What::Arrived { prefixes, block_tokens, prompt, output, key, engine } => {
                let arrival = ShadowArrival {
                    prefixes,
                    block_tokens: *block_tokens,
                    prompt: *prompt,
                    output: *output,
                    key: *key,
                };
                trial.arrive(at, number, &arrival, *engine);
            }
            What::First => trial.first(at, number),
            What::End { output } => trial.end(at, number, *output),
        }
    }

    /// Follows settings and engines, and writes down how things stand.
    pub(super) fn update(&mut self) {
        let scored = self.known.scored.load_full();
        self.fleet = self.known.fleet.load_full();
        // A trial with other policies is another trial.
        self.trials.retain(|model, running| scored.get(model) == Some(&running.line));
        for (model, line) in scored.iter() {
            let running =
                self.trials.entry(Arc::clone(model)).or_insert_with(|| Running::new(line));
            if let Some(model) = self.fleet.model(model) {
                running.update(model);
            }
        }
        let judged = self.trials.iter().map(|(model, one)| (Arc::clone(model), one.trial.judge()));
        let reports = judged.collect();
        *self.known.reports() = reports;
    }

    /// Whether there are other engines than at the last look.
    fn is_old(&self) -> bool {
        !Arc::ptr_eq(&self.fleet, &self.known.fleet.load())
    }
}

impl Running {
    fn new(line: &Arc<Line>) -> Self {
        let trial = ShadowTrial::new(line.live, &line.others, BLOCK_TOKENS);
        Self { line: Arc::clone(line), trial, listed: Vec::new() }
    }

    fn update(&mut self, model: &FleetModel) {
        let listed = model.endpoints.iter().map(|e| Listed { key: e.key, open: e.is_open() });
        let listed: Vec<Listed> = listed.collect();
        if listed != self.listed {
            self.trial.list(&listed);
            self.listed = listed;
        }
        for endpoint in &model.endpoints {
            if let Some(used) = endpoint.kv_used_per_thousand() {
                self.trial.report(endpoint.key, used);
            }
        }
    }
}
