//! The network between clients and replicas, as far as a request feels it.
//!
//! A world counts tokens and knows of an answer only its first token and its end, so that a break
//! behind the first token shows at the end.

use super::World;
use super::faults::Fault;
use super::queue::Event;
use super::requests::{AnsweredBy, Stage};
use crate::network::{Felt, NetworkShape};
use crate::seconds::Seconds;
use crate::traffic;

/// Bytes of a prompt's token: English text has about four.
const PROMPT_TOKEN_BYTES: u64 = 4;
/// Head and JSON around a prompt.
const REQUEST_HEAD_BYTES: u64 = 300;
/// Head of an answer that streams.
const ANSWER_HEAD_BYTES: u64 = 130;
/// One token as an event with its JSON and the frame of its chunk, as vLLM writes them.
const ANSWER_TOKEN_BYTES: u64 = 180;

impl World<'_> {
    /// What the network has in store for a request.
    pub(super) fn felt(&self, request: usize, traced: &traffic::Request) -> Felt {
        let script = self.setup.faults.iter().find_map(|fault| match fault {
            Fault::Network { script } => Some(script),
            _ => None,
        });
        let Some(script) = script else { return Felt::NOTHING };
        let shape = NetworkShape {
            request_bytes: REQUEST_HEAD_BYTES + PROMPT_TOKEN_BYTES * u64::from(traced.prompt),
            head_bytes: ANSWER_HEAD_BYTES,
            token_bytes: ANSWER_TOKEN_BYTES,
            tokens: u64::from(traced.output.max(1)),
        };
        script.fate(request as u64, self.now).of_request(&shape)
    }

    /// Sends a request that has just arrived over the network. False if it is across already.
    pub(super) fn meets_network(&mut self, request: usize) -> bool {
        let model = self.requests[request].model;
        match self.requests[request].felt {
            Felt::Refused => self.end_request(request, AnsweredBy::Refused),
            Felt::NotReceived { broken: true } => self.end_request(request, AnsweredBy::Killed),
            Felt::NotReceived { broken: false } => self.wait_in_vain(request),
            Felt::Answered { request_late, .. } if request_late > Seconds::ZERO => {
                self.requests[request].stage = Stage::Crossing;
                self.models[model].crossing += 1;
                self.queue.plan(self.now + request_late, Event::Crossed { request });
            }
            Felt::Answered { .. } | Felt::Stuck { .. } | Felt::Broken { .. } => return false,
        }
        true
    }

    pub(super) fn crossed(&mut self, request: usize) {
        if self.requests[request].stage == Stage::Crossing {
            self.models[self.requests[request].model].crossing -= 1;
            self.requests[request].stage = Stage::Held;
            self.take(request);
        }
    }

    /// The first token leaves its engine, and the network may break with it.
    pub(super) fn first_token_crosses(&mut self, request: usize) {
        if matches!(self.requests[request].felt, Felt::Broken { after_tokens: 0..=1 }) {
            // Later at the same moment: the engine is busy telling of its tokens.
            self.queue.plan(self.now, Event::LinkBreaks { request });
        }
    }

    /// The end of an answer leaves its engine. True if it does not come to the client.
    pub(super) fn end_is_lost(&mut self, request: usize) -> bool {
        match self.requests[request].felt {
            Felt::Broken { .. } => self.end_request(request, AnsweredBy::Killed),
            Felt::Stuck { .. } => self.wait_in_vain(request),
            _ => return false,
        }
        true
    }

    pub(super) fn end_crossing(&mut self, request: usize, answer: AnsweredBy) {
        self.models[self.requests[request].model].crossing -= 1;
        self.requests[request].stage = Stage::Held;
        self.end_request(request, answer);
    }

    /// A client waits until its patience ends, or until requests are held no longer.
    fn wait_in_vain(&mut self, request: usize) {
        let model = self.requests[request].model;
        self.requests[request].stage = Stage::Crossing;
        self.models[model].crossing += 1;
        self.queue.plan(self.now + self.setup.models[model].hold, Event::HoldOver { request });
    }
}
