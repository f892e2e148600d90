//! A request from its arrival to its end.

use super::World;
use super::engine::{EngineWork, Happening};
use super::queue::Event;
use super::replicas::State;
use crate::network::Felt;
use crate::seconds::Seconds;
use flyball_core::units::Tokens;
use flyball_routing::{Availability, Endpoint, Ring, RoutingRequest, Weights, choose};
use std::collections::VecDeque;

/// A request that arrived.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) model: usize,
    /// Its place in the model's trace.
    pub(super) place: usize,
    pub(super) at: Seconds,
    pub(super) first_token: Option<Seconds>,
    pub(super) stage: Stage,
    /// What the network does to it.
    pub(super) felt: Felt,
    /// When an engine was given it, and the prompt tokens that this engine then had to read.
    pub(super) sent: Option<(Seconds, u64)>,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its client waits for the network.
    Crossing,
    /// Before the replicas.
    Held,
    /// In one.
    In(usize),
    /// Its client is gone, and the engine has not noticed.
    Leaving(usize),
    /// It has ended, one way or another.
    Ended,
}

/// What a request got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnsweredBy {
    /// All of its answer.
    Finished {
        /// When the first token came.
        first: Seconds,
        /// Mean time between tokens.
        between: Seconds,
    },
    /// Its replica went with it inside.
    Killed,
    /// It waited too long before any replica, or fits none.
    Refused,
    /// Its client hung up.
    HungUp,
}

/// Requests that no replica has taken, in order of arrival, and their prompt tokens.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) queue: VecDeque<usize>,
    pub(super) tokens: u64,
}

impl World<'_> {
    pub(super) fn plan_arrival(&mut self, model: usize) {
        let next = self.setup.models[model].trace.requests.get(self.models[model].next_arrival);
        if let Some(at) = next.map(|request| request.at).filter(|at| *at < self.setup.length) {
            self.queue.plan(at, Event::Arrival { model });
        }
    }

    pub(super) fn arrival(&mut self, model: usize) {
        let place = self.models[model].next_arrival;
        self.models[model].next_arrival += 1;
        self.plan_arrival(model);
        let traced = &self.setup.models[model].trace.requests[place];
        let request = self.requests.len();
        self.requests.push(Request {
            model,
            place,
            at: self.now,
            first_token: None,
            stage: Stage::Held,
            felt: self.felt(request, traced),
            sent: None,
        });
        self.models[model].arrived += 1;
        let at = (self.setup.start, self.now.after(self.setup.start));
        self.pipeline.arrived(model, traced, at);
        if let Some(patience) = traced.patience {
            self.queue.plan(self.now + patience, Event::HangUp { request });
        }
        if !self.meets_network(request) {
            self.take(request);
        }
    }

    /// Hands a request on, or holds it.
    pub(super) fn take(&mut self, request: usize) {
        let Request { model, place, .. } = self.requests[request];
        let prompt = self.setup.models[model].trace.requests[place].prompt;
        // Who comes later does not pass those who wait.
        if !self.models[model].held.queue.is_empty() || !self.hand_on(request) {
            self.models[model].held.queue.push_back(request);
            self.models[model].held.tokens += u64::from(prompt);
            let deadline = self.now + self.setup.models[model].hold;
            self.queue.plan(deadline, Event::HoldOver { request });
        }
    }

    /// Gives held requests to replicas, as far as these take them.
    pub(super) fn hand_on_held(&mut self, model: usize) {
        while let Some(request) = self.models[model].held.queue.front().copied() {
            if !self.hand_on(request) {
                return;
            }
            self.models[model].held.queue.pop_front();
            let prompt = self.traced(request).prompt;
            self.models[model].held.tokens -= u64::from(prompt);
        }
    }

    fn traced(&self, request: usize) -> &crate::traffic::Request {
        let Request { model, place, .. } = self.requests[request];
        &self.setup.models[model].trace.requests[place]
    }

    /// Gives a request to the replica that the router chooses. False if no replica can take it.
    fn hand_on(&mut self, request: usize) -> bool {
        let setup = self.setup;
        let Request { model, place, .. } = self.requests[request];
        let trace = &setup.models[model].trace;
        let traced = &trace.requests[place];
        let blocks = trace
            .blocks
            .get(traced.blocks.start as usize..traced.blocks.end as usize)
            .unwrap_or(&[]);
        self.list_endpoints(model);
        if !self.endpoints.iter().any(Endpoint::serves) {
            return false;
        }
        let ask = RoutingRequest {
            prefixes: blocks,
            block_tokens: trace.block_tokens,
            past: self.models[model].seen.past_of(blocks, self.endpoints.len()),
            prompt: Tokens::new(traced.prompt.into()),
            key: request as u64,
        };
        let ring = Ring::new(self.endpoints.iter().map(|endpoint| endpoint.key));
        let endpoint = |place: usize| self.endpoints[place];
        let Some(choice) = choose(&ring, endpoint, &ask, &Weights::DEFAULT) else { return false };
        let replica = self.endpoint_replicas[choice.endpoint];
        self.models[model].seen.sent(blocks, replica as u64);
        let work = EngineWork {
            prompt: traced.prompt,
            output: traced.output.max(1),
            blocks,
            block_tokens: trace.block_tokens,
        };
        self.catch_up(replica);
        let now = self.now;
        let taken = self.replicas[replica]
            .engine
            .as_mut()
            .is_some_and(|engine| engine.submit(request as u64, now, &work));
        if !taken {
            // It can never fit: whoever holds it any longer only lets it wait.
            self.end_request(request, AnsweredBy::Refused);
            return true;
        }
        let there = &mut self.replicas[replica];
        there.inside.push(request);
        there.unread += u64::from(traced.prompt);
        there.gate.begin();
        self.requests[request].sent = Some((now, there.unread));
        self.requests[request].stage = Stage::In(replica);
        self.models[model].in_engines += 1;
        self.plan_engine(replica);
        true
    }

    fn list_endpoints(&mut self, model: usize) {
        let most = self.setup.models[model].admit.map_or(usize::MAX, |most| most as usize);
        self.endpoints.clear();
        self.endpoint_replicas.clear();
        for replica in &self.present {
            let there = &self.replicas[*replica];
            if there.model != model || there.engine.is_none() || there.inside.len() >= most {
                continue;
            }
            let (inside, unread) = (there.inside.len(), there.unread);
            if self.setup.habits.keeps_back && !there.gate.has_room(inside, unread) {
                continue;
            }
            let serves = there.state == State::Ready;
            self.endpoint_replicas.push(*replica);
            self.endpoints.push(Endpoint {
                key: *replica as u64,
                availability: if serves { Availability::Serving } else { Availability::Draining },
                unread: Tokens::new(there.unread),
                held: Tokens::new(there.held),
                kv_used_per_thousand: 0,
                cached_blocks: 0,
                speed_per_thousand: 1_000,
            });
        }
    }

    pub(super) fn engine_event(&mut self, replica: usize, plan: u32) {
        if self.replicas[replica].plan == plan && self.replicas[replica].gone.is_none() {
            self.catch_up(replica);
            self.plan_engine(replica);
            self.end_if_empty(replica);
            if self.replicas[replica].state == State::Ready {
                self.hand_on_held(self.replicas[replica].model);
            }
        }
    }

    /// Lets an engine's time come up to now, and notes what happened in it.
    pub(super) fn catch_up(&mut self, replica: usize) {
        let Some(mut engine) = self.replicas[replica].engine.take() else { return };
        let now = self.now;
        engine.advance(now, &mut |happening| match happening {
            Happening::FirstToken { id, at } => self.first_token(id as usize, replica, at),
            Happening::Finished { id, at } => self.left_engine(id as usize, replica, Some(at)),
            Happening::Aborted { id } => self.left_engine(id as usize, replica, None),
        });
        self.replicas[replica].engine = Some(engine);
    }

    pub(super) fn plan_engine(&mut self, replica: usize) {
        let there = &mut self.replicas[replica];
        there.plan += 1;
        if let Some(at) = there.engine.as_ref().and_then(|engine| engine.next_event()) {
            let at = at.max(self.now);
            self.queue.plan(at, Event::Engine { replica, plan: there.plan });
        }
    }

    fn first_token(&mut self, request: usize, replica: usize, at: Seconds) {
        // After a preemption a request may report a first token again; the client saw only one.
        if self.requests[request].first_token.is_some() {
            return;
        }
        self.requests[request].first_token = Some(at);
        let traced = self.traced(request);
        let (prompt, held) = (u64::from(traced.prompt), tokens_held(traced));
        let there = &mut self.replicas[replica];
        there.unread = there.unread.saturating_sub(prompt);
        there.gate.read(self.requests[request].sent, at);
        there.held += held;
        there.counted.read(u32::try_from(prompt).unwrap_or(u32::MAX));
        let Request { model, at: arrived, .. } = self.requests[request];
        self.pipeline.first_token(model, at - arrived);
        self.first_token_crosses(request);
    }

    /// A request is no longer in its engine: finished at that time, or given up.
    fn left_engine(&mut self, request: usize, replica: usize, finished: Option<Seconds>) {
        let traced = self.traced(request);
        let (prompt, held, output) = (u64::from(traced.prompt), tokens_held(traced), traced.output);
        let there = &mut self.replicas[replica];
        let Some(place) = there.inside.iter().position(|inside| *inside == request) else {
            self.note_broken(format!("request {request} ended in an engine that it is not in"));
            return;
        };
        there.inside.swap_remove(place);
        match self.requests[request].first_token {
            Some(_) => there.held = there.held.saturating_sub(held),
            None => {
                there.unread = there.unread.saturating_sub(prompt);
                there.gate.forget();
            }
        }
        let Request { model, first_token, stage, .. } = self.requests[request];
        self.models[model].in_engines -= 1;
        match (stage, finished) {
            (Stage::In(_), Some(_)) if self.end_is_lost(request) => {}
            (Stage::In(_), Some(at)) => {
                let first = first_token.unwrap_or(at) + self.requests[request].felt.answer_late();
                let between = (at - first) / f64::from(output.max(2) - 1);
                let further = f64::from(output.max(1) - 1);
                self.replicas[replica].counted.answered(output, between.get() * further);
                let waited = first - self.requests[request].at;
                self.pipeline.answered(model, output, waited, between);
                self.end_request(request, AnsweredBy::Finished { first, between });
            }
            // The client was gone already and has been counted.
            (Stage::Leaving(_), _) => {
                self.requests[request].stage = Stage::Ended;
                self.models[model].leaving -= 1;
            }
            (stage, _) => {
                self.note_broken(format!("request {request} left an engine as {stage:?}"))
            }
        }
    }

    pub(super) fn hang_up(&mut self, request: usize) {
        self.leave(request, AnsweredBy::HungUp);
    }

    /// A client goes, wherever its request is.
    pub(super) fn leave(&mut self, request: usize, answer: AnsweredBy) {
        match self.requests[request].stage {
            Stage::Held => {
                self.drop_held(request);
                self.end_request(request, answer);
            }
            Stage::Crossing => self.end_crossing(request, answer),
            Stage::In(replica) => {
                self.catch_up(replica);
                if self.requests[request].stage != Stage::In(replica) {
                    self.plan_engine(replica);
                    return;
                }
                self.end_request(request, answer);
                self.requests[request].stage = Stage::Leaving(replica);
                self.models[self.requests[request].model].leaving += 1;
                let now = self.now;
                if let Some(engine) = &mut self.replicas[replica].engine {
                    engine.abort(request as u64, now);
                }
                self.plan_engine(replica);
            }
            Stage::Leaving(_) | Stage::Ended => {}
        }
    }

    pub(super) fn hold_over(&mut self, request: usize) {
        match self.requests[request].stage {
            Stage::Held => {
                self.drop_held(request);
                self.end_request(request, AnsweredBy::Refused);
            }
            // A slow network's request may still come; one that cannot is given up.
            Stage::Crossing if self.requests[request].felt.is_stuck() => {
                self.end_crossing(request, AnsweredBy::Refused);
            }
            _ => {}
        }
    }

    fn drop_held(&mut self, request: usize) {
        let prompt = u64::from(self.traced(request).prompt);
        let held = &mut self.models[self.requests[request].model].held;
        let before = held.queue.len();
        held.queue.retain(|waiting| *waiting != request);
        if held.queue.len() < before {
            held.tokens -= prompt;
        }
    }

    /// Its replica went with it inside.
    pub(super) fn request_killed(&mut self, request: usize) {
        let model = &mut self.models[self.requests[request].model];
        model.in_engines -= 1;
        match self.requests[request].stage {
            Stage::In(_) => self.end_request(request, AnsweredBy::Killed),
            Stage::Leaving(_) => {
                model.leaving -= 1;
                self.requests[request].stage = Stage::Ended;
            }
            stage => self.note_broken(format!("request {request} killed as {stage:?}")),
        }
    }

    /// The one place where a request ends for its client.
    pub(super) fn end_request(&mut self, request: usize, answer: AnsweredBy) {
        let Request { model, stage, .. } = self.requests[request];
        if matches!(stage, Stage::Ended | Stage::Leaving(_)) {
            self.note_broken(format!("request {request} ended twice"));
            return;
        }
        self.requests[request].stage = Stage::Ended;
        self.models[model].ended += 1;
        self.note_answer(request, answer);
    }
}

/// What a request holds while it is answered: its prompt, and half of its answer on average.
fn tokens_held(traced: &crate::traffic::Request) -> u64 {
    u64::from(traced.prompt) + u64::from(traced.output) / 2
}
