//! What a gateway knows of an engine.

use flyball_routing::ObservedMoment;

/// What gateways are told of an engine. Tokens that it has yet to read are not on vLLM's metrics
/// page; gateways may tell each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AffinityReport {
    /// Requests in its batch.
    pub running: u32,
    /// Requests before it.
    pub waiting: u32,
    /// Share of its cache that running requests hold.
    pub used_share: f64,
    /// Prompt tokens that all gateways together think it has yet to read.
    pub unread_tokens: u64,
}

/// One engine, as one gateway knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AffinityView {
    /// Requests of this gateway that are under way there.
    pub in_flight: u32,
    /// Those of them without a first token.
    pub unread: u32,
    /// Prompt tokens that these are thought to have yet to be read.
    pub unread_tokens: u64,
    /// Tokens that the others of them hold.
    pub held_tokens: u64,
    /// What it said last.
    pub report: AffinityReport,
    /// Requests of this gateway that were under way when it said that.
    pub in_flight_then: u32,
    /// Those of them without a first token.
    pub unread_then: u32,
    /// Their prompt tokens.
    pub unread_tokens_then: u64,
    /// What was not used there since this moment is gone, as far as its events tell.
    pub forgot: Option<ObservedMoment>,
}

impl AffinityView {
    /// Takes in a report.
    pub(super) fn reported(&mut self, report: AffinityReport) {
        self.report = report;
        self.in_flight_then = self.in_flight;
        self.unread_then = self.unread;
        self.unread_tokens_then = self.unread_tokens;
    }

    pub(super) fn sent(&mut self, to_read: u32) {
        self.in_flight += 1;
        self.unread += 1;
        self.unread_tokens += u64::from(to_read);
    }

    pub(super) fn first_token(&mut self, to_read: u32, prompt: u32, output: u32) {
        self.unread -= 1;
        self.unread_tokens -= u64::from(to_read);
        self.held_tokens += held(prompt, output);
    }

    pub(super) fn finished(&mut self, prompt: u32, output: u32) {
        self.in_flight -= 1;
        self.held_tokens -= held(prompt, output);
    }
}

/// What a request holds while it is answered: its prompt, and half of its answer on average.
fn held(prompt: u32, output: u32) -> u64 {
    u64::from(prompt) + u64::from(output) / 2
}
