//! A request that limits and budgets of its Tenants let in.

use super::Phase;
use super::aimed::Aimed;
use super::open::Open;
use crate::aim::Job;
use crate::answer::Problem;
use crate::edit::Edits;
use crate::finished::{Finished, RequestOutcome};
use crate::identify::Caller;
use crate::quota::{AHEAD, QuotaEstimate, QuotaTicket};
use crate::sse::Usage;
use crate::surface::Surface;
use flyball_fleet::Time;
use flyball_quota::TokenUsage;
use std::sync::Arc;

/// The longest answer of a request that says no `max_tokens`, if its budget is a hard one and it does not stream: it cannot
/// be stopped, so it is paid as a whole before it begins. Answers of reasoning models are seldom longer.
const UNSTATED_OUTPUT: u64 = 16_384;

/// A request that may go on as far as limits and budgets are concerned.
pub(crate) struct Granted {
    pub(super) aimed: Aimed,
    /// What it pays with; `None` if nothing is counted, and when it is settled.
    ticket: Option<QuotaTicket>,
    /// Whether a budget is exhausted and it runs on what nobody else wants.
    is_idle: bool,
}

impl Open<Aimed> {
    /// Pays ahead. A request waits for that at most a quarter of a second.
    pub(crate) async fn grant(self, job: &mut Job) -> Result<Open<Granted>, Problem> {
        let Some(own) = &self.caller().access else { return Ok(self.granted(None)) };
        let (access, quota) = (Arc::clone(&own.access), Arc::clone(&self.head().shared.quota));
        if !job.scanned.stream && quota.is_bounded(&access) {
            bound(job, self.head().surface);
        }
        let estimate = self.estimate(job);
        let admitted = quota.admit(&access, estimate).await;
        let admitted = admitted.map_err(|why| why.problem(&estimate, !job.scanned.stream));
        let (aimed, ticket) = self.or_refuse(admitted)?;
        Ok(aimed.granted(ticket))
    }

    fn granted(self, ticket: Option<QuotaTicket>) -> Open<Granted> {
        let is_idle = ticket.as_ref().is_some_and(QuotaTicket::is_idle);
        self.then(|aimed| Granted { aimed, ticket, is_idle })
    }

    fn estimate(&self, job: &Job) -> QuotaEstimate {
        let (scale, scanned) = (&job.model.gate.scale, &job.scanned);
        let input = scale.prompt(scanned, 0).tokens;
        let live = self.head().shared.live();
        let prices = live.models.get(&**job.model.name()).and_then(|model| model.prices);
        let output = match (self.head().surface, scanned.stream) {
            (Surface::Embeddings, _) => 0,
            (_, true) => scanned.max_tokens.map_or(AHEAD, |most| most.min(AHEAD)),
            (_, false) => scanned.max_tokens.unwrap_or(AHEAD),
        };
        QuotaEstimate {
            input,
            input_at_most: scale.at_most(input),
            output: output.saturating_mul(scanned.answers.unwrap_or(1).max(1)),
            can_stop: scanned.stream,
            prices,
        }
    }
}

/// Says how long an answer may be that cannot be stopped, if its client does not.
fn bound(job: &mut Job, surface: Surface) {
    let key = match surface {
        Surface::Embeddings => return,
        Surface::Responses => "max_output_tokens",
        Surface::Chat | Surface::Completions | Surface::Messages => "max_tokens",
    };
    if job.scanned.max_tokens.is_none() {
        let mut edits = Edits::new(&job.scanned.marks);
        edits.most_output(key, UNSTATED_OUTPUT);
        job.pieces = edits.on(&job.pieces);
        job.scanned.max_tokens = Some(UNSTATED_OUTPUT);
    }
}

impl Granted {
    /// Of a copy, which nobody pays for.
    pub(super) const fn free(aimed: Aimed) -> Self {
        Self { aimed, ticket: None, is_idle: false }
    }

    /// Who asks.
    pub(crate) const fn caller(&self) -> &Arc<Caller> {
        self.aimed.caller()
    }

    /// Whether a budget is exhausted and it runs on what nobody else wants.
    pub(crate) const fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// What it pays with, if anything is counted.
    pub(crate) const fn ticket(&mut self) -> &mut Option<QuotaTicket> {
        &mut self.ticket
    }

    /// It is over before an engine did anything for it, or nothing came of that.
    pub(crate) fn release(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.release();
        }
    }

    /// Its client hung up after it went to an engine and before an answer began: its prompt is spent.
    pub(crate) fn hang_up(&mut self) {
        if let Some(mut ticket) = self.ticket.take() {
            ticket.begin();
        }
    }

    /// It is over, and came to this; `estimated` if no engine said so.
    pub(crate) fn pay(&mut self, usage: Usage, estimated: bool, is_stream: bool) {
        let Some(ticket) = self.ticket.take() else { return };
        let input = if usage.input > 0 { usage.input } else { ticket.estimated_input() };
        let output = match estimated && !is_stream {
            // Whatever it was, it was not more.
            true => ticket.reserved_output(),
            false => usage.output,
        };
        let cached_input = usage.cached.unwrap_or(0);
        ticket.settle(TokenUsage { input, cached_input, output });
    }
}

impl Phase for Granted {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.aimed.describe(finished);
    }

    fn settle(&mut self, _: RequestOutcome, _: Time) {
        self.release();
    }
}
