//! What an engine works on in one step.

/// One step's work, as sums over its requests. Sums are enough: the time of a step does not depend
/// on how its cached tokens are divided among requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Batch {
    /// Requests that each get their next token.
    pub decodes: f64,
    /// Cached tokens that those requests read, together.
    pub cached: f64,
    /// Prompt tokens computed in this step.
    pub prefill: f64,
    /// Pairs of a prompt token and a token that it attends to.
    pub pairs: f64,
}

impl Batch {
    /// Requests that decode at a mean context, and no prompt.
    pub fn decoding(requests: f64, context: f64) -> Self {
        Self { decodes: requests, cached: requests * context, ..Self::default() }
    }

    /// The same with prompt tokens beside it, of prompts of a mean length: a prompt token in the
    /// middle of its prompt attends to half of it.
    #[must_use]
    pub fn with_prompt(self, tokens: f64, prompt: f64) -> Self {
        Self { prefill: tokens, pairs: tokens * prompt / 2.0, ..self }
    }
}

/// Something that takes time for a batch: the model, or a table in a test.
pub trait StepTime {
    /// Seconds for one step. Never falls when the batch grows.
    fn seconds(&self, batch: &Batch) -> f64;

    /// Cached tokens up to which the time grows along a straight line if nothing else changes, so
    /// that many steps can be summed at once. The batch's own by default: nothing is promised.
    fn straight_until(&self, batch: &Batch) -> f64 {
        batch.cached
    }
}

impl<F: Fn(&Batch) -> f64> StepTime for F {
    fn seconds(&self, batch: &Batch) -> f64 {
        self(batch)
    }
}
