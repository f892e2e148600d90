//! The time of one engine step.
//!
//! A step reads weights and cache and multiplies, whichever of reading and multiplying takes longer;
//! it exchanges activations between accelerators; and it has floors, because a kernel takes some
//! microseconds however little it does and the engine schedules and samples in between:
//!
//! ```text
//! step = max(read dense weights, multiply them) + max(read touched experts, multiply them)
//!      + max(read cache, score it) + prompt attention + all-reduces + kernel floors
//!      + one constant per step + one per request
//! ```
//!
//! On some parts reading weights does not hide behind multiplying; there the two join as the root of
//! the sum of their squares. And on some, a step that mixes prompts and decoding reads cached tokens
//! several times.
//!
//! A step with prompt tokens in it is not replayed from a recorded graph, so the host must launch
//! every kernel; host and device overlap, hence the root of the sum of squares.
//!
//! Everything that does not depend on the batch is folded when the model is made, so that a step
//! costs some forty operations: the emulator and the simulator ask millions of times.

use super::batch::{Batch, StepTime};

/// One replica, ready to be asked.
#[derive(Clone, Debug)]
pub struct StepModel {
    pub(super) copies: f64,
    pub(super) stages: f64,
    pub(super) dense: Roofline,
    pub(super) head_per_request: f64,
    pub(super) experts: Option<ExpertRoofline>,
    pub(super) cache: CacheTimes,
    /// Seconds per pair of a prompt token and a token it attends to.
    pub(super) pair: f64,
    pub(super) collective: Collective,
    pub(super) floors: f64,
    pub(super) per_step: f64,
    pub(super) per_request: f64,
    /// Seconds the host needs to launch a step with prompt tokens.
    pub(super) launch: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Roofline {
    pub(super) read: f64,
    pub(super) per_token: f64,
    pub(super) overlaps: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ExpertRoofline {
    /// Seconds to read every expert.
    pub(super) read_all: f64,
    /// Logarithm of the chance that one token leaves an expert alone.
    pub(super) log_missed: f64,
    pub(super) per_token: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CacheTimes {
    /// Seconds to read one cached token in all layers.
    pub(super) read: f64,
    /// The same beside prompt tokens, over that.
    pub(super) mixed: f64,
    /// Seconds to score it.
    pub(super) score: f64,
    /// Seconds to read one request's fixed state.
    pub(super) state: f64,
    /// Share of the layers that see only a window, and the window.
    pub(super) sliding: f64,
    pub(super) window: f64,
    /// Tokens that sparse attention reads at most.
    pub(super) top_k: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Collective {
    /// Times per step, start, and seconds per token in one and in two passes.
    pub(super) reduces: f64,
    pub(super) start: f64,
    pub(super) one_pass: f64,
    pub(super) two_pass_start: f64,
    pub(super) two_passes: f64,
    pub(super) exchanges: f64,
    pub(super) exchange_start: f64,
    pub(super) exchange_per_token: f64,
}

/// Where the time of a step goes, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServingStepParts {
    pub dense: f64,
    pub experts: f64,
    pub cache: f64,
    pub prompt_attention: f64,
    pub collectives: f64,
    pub floors: f64,
    pub engine: f64,
    /// What launching adds over the rest, in steps with prompt tokens.
    pub launches: f64,
}

impl ServingStepParts {
    /// Every part with its name, in the order of the formula.
    pub const fn named(&self) -> [(&'static str, f64); 8] {
        [
            ("dense weights", self.dense),
            ("experts", self.experts),
            ("cache", self.cache),
            ("prompt attention", self.prompt_attention),
            ("exchange", self.collectives),
            ("kernel floors", self.floors),
            ("engine", self.engine),
            ("launches", self.launches),
        ]
    }

    pub fn total(&self) -> f64 {
        self.dense
            + self.experts
            + self.cache
            + self.prompt_attention
            + self.collectives
            + self.floors
            + self.engine
            + self.launches
    }
}

impl StepModel {
    /// Where the time of this step goes.
    pub fn parts(&self, batch: &Batch) -> ServingStepParts {
        // A pipeline works on as many batches at once as it has stages, and a token passes them all.
        let ways = self.copies * self.stages;
        let decodes = batch.decodes / ways;
        let prompt = batch.prefill / ways;
        let tokens = decodes + prompt;
        let mut parts = ServingStepParts {
            dense: self
                .dense
                .seconds(self.dense.per_token * tokens + self.head_per_request * decodes),
            experts: self.experts.map_or(0.0, |experts| experts.seconds(tokens * self.copies)),
            cache: self.cache.seconds(decodes, batch),
            prompt_attention: self.prompt_attention(prompt, batch),
            collectives: self.collective.seconds(tokens),
            floors: self.floors,
            // One scheduler serves the batches of all stages, one after another.
            engine: self.stages * (self.per_step + self.per_request * decodes),
            launches: 0.0,
        };
        if prompt > 0.0 {
            let device = parts.total();
            parts.launches = device.hypot(self.launch) - device;
        }
        parts
    }

    fn prompt_attention(&self, prompt: f64, batch: &Batch) -> f64 {
        if prompt <= 0.0 {
            return 0.0;
        }
        let span = batch.pairs / batch.prefill;
        let seen =
            span * (1.0 - self.cache.sliding) + span.min(self.cache.window) * self.cache.sliding;
        prompt * seen * self.pair
    }
}

impl StepTime for StepModel {
    fn seconds(&self, batch: &Batch) -> f64 {
        self.parts(batch).total()
    }

    fn straight_until(&self, batch: &Batch) -> f64 {
        // Beside prompt tokens the host's launches bend it everywhere.
        if batch.prefill > 0.0 || batch.decodes <= 0.0 {
            return batch.cached;
        }
        batch.decodes * self.cache.next_bend(batch.cached / batch.decodes)
    }
}

impl Roofline {
    /// With so many seconds of multiplying.
    fn seconds(&self, multiply: f64) -> f64 {
        if self.overlaps { self.read.max(multiply) } else { self.read.hypot(multiply) }
    }
}

impl ExpertRoofline {
    fn seconds(&self, tokens: f64) -> f64 {
        let touched = 1.0 - (tokens * self.log_missed).exp();
        (self.read_all * touched).max(self.per_token * tokens)
    }
}

impl CacheTimes {
    fn seconds(&self, decodes: f64, batch: &Batch) -> f64 {
        if decodes <= 0.0 {
            return 0.0;
        }
        let context = batch.cached / batch.decodes;
        let seen = context * (1.0 - self.sliding) + context.min(self.window) * self.sliding;
        let seen = seen.min(self.top_k);
        let read = if batch.prefill > 0.0 { self.read * self.mixed } else { self.read };
        decodes * (read * seen + self.state).max(self.score * seen)
    }

    /// The next context, after this one, where the time bends: at the window, where sparse attention
    /// reads no more, and where scoring begins to take longer than reading.
    fn next_bend(&self, context: f64) -> f64 {
        let scored = if self.score > self.read {
            self.state / (self.score - self.read)
        } else {
            f64::INFINITY
        };
        let window = if self.sliding > 0.0 { self.window } else { f64::INFINITY };
        [window, self.context_of(self.top_k), self.context_of(scored)]
            .into_iter()
            .filter(|&bend| bend > context)
            .fold(f64::INFINITY, f64::min)
    }

    /// The context in which a request sees so many tokens on average over its layers.
    fn context_of(&self, seen: f64) -> f64 {
        if self.sliding <= 0.0 || seen <= self.window {
            seen
        } else if self.sliding < 1.0 {
            (seen - self.window * self.sliding) / (1.0 - self.sliding)
        } else {
            f64::INFINITY
        }
    }
}

impl Collective {
    fn seconds(&self, tokens: f64) -> f64 {
        let moved = (self.one_pass * tokens).min(self.two_pass_start + self.two_passes * tokens);
        self.reduces * (self.start + moved)
            + self.exchanges * (self.exchange_start + self.exchange_per_token * tokens)
    }

    /// The same collectives, each taking so much longer.
    pub(super) fn scaled(self, by: f64) -> Self {
        Self {
            start: self.start * by,
            one_pass: self.one_pass * by,
            two_pass_start: self.two_pass_start * by,
            two_passes: self.two_passes * by,
            exchange_start: self.exchange_start * by,
            exchange_per_token: self.exchange_per_token * by,
            ..self
        }
    }
}
