//! A request that limits and budgets of its Tenants let in.

use super::Phase;
use super::aimed::Aimed;
use super::open::Open;
use crate::admit::BATCH_RETRY_S;
use crate::aim::Job;
use crate::answer::Problem;
use crate::finished::{Finished, RequestOutcome};
use crate::identify::Caller;
use crate::quota::{AHEAD, QuotaEstimate, QuotaTicket};
use crate::scan::Scanned;
use crate::settings::RequestLimits;
use crate::sse::Usage;
use crate::surface::Surface;
use crate::urgency;
use flyball_fleet::Time;
use flyball_quota::TokenUsage;
use flyball_routing::fair::Class;
use std::sync::Arc;

/// A request that may go on as far as limits and budgets are concerned.
pub(crate) struct Granted {
    pub(super) aimed: Aimed,
    /// What it pays with; `None` if nothing is counted, and when it is settled.
    ticket: Option<QuotaTicket>,
    /// How urgent it is. What no budget pays for is batch.
    class: Class,
    /// Whether its engine says what its stream came to, and its client did not ask for that.
    hides_usage: bool,
}

impl Open<Aimed> {
    /// Pays ahead. A request waits a quarter of a second for permits, and two seconds for money where an operator is there.
    pub(crate) async fn grant(self, job: &Job) -> Result<Open<Granted>, Problem> {
        let Some(own) = &self.caller().access else { return Ok(self.granted(None, job)) };
        let (access, quota) = (Arc::clone(&own.access), Arc::clone(&self.head().shared.quota));
        let estimate = self.estimate(job);
        let whole = (!job.scanned.stream).then(|| answers(&job.scanned));
        let admitted = quota.admit(&access, estimate).await;
        let admitted = admitted.map_err(|why| why.problem(&estimate, whole));
        let (aimed, ticket) = self.or_refuse(admitted)?;
        Ok(aimed.granted(ticket, job))
    }

    fn granted(self, ticket: Option<QuotaTicket>, job: &Job) -> Open<Granted> {
        let class = match ticket.as_ref().is_some_and(QuotaTicket::is_idle) {
            true => Class::Batch,
            false => urgency::class(&job.headers, &job.scanned, self.caller()),
        };
        let hides_usage = job.hides_usage;
        self.then(|aimed| Granted { aimed, ticket, class, hides_usage })
    }

    fn estimate(&self, job: &Job) -> QuotaEstimate {
        let (scale, scanned) = (&job.model.gate.scale, &job.scanned);
        let input = scale.prompt(scanned, 0).tokens;
        let live = self.head().shared.live();
        let prices = live.models.get(&**job.model.name()).and_then(|model| model.prices);
        let output = match (self.head().surface, scanned.stream) {
            (Surface::Embeddings, _) => 0,
            (_, true) => scanned.most_output.map_or(AHEAD, |most| most.min(AHEAD)),
            (_, false) => scanned.most_output.unwrap_or(AHEAD),
        };
        QuotaEstimate {
            input,
            input_at_most: scale.at_most(input),
            output: output.saturating_mul(answers(scanned)),
            can_stop: scanned.stream,
            prices,
        }
    }
}

/// All answers that a request asks for.
fn answers(scanned: &Scanned) -> u64 {
    scanned.answers.unwrap_or(1).max(1).saturating_mul(scanned.prompts.max(1))
}

impl Granted {
    /// Of a copy, which nobody pays for.
    pub(super) const fn free(aimed: Aimed) -> Self {
        Self { aimed, ticket: None, class: Class::Normal, hides_usage: false }
    }

    /// Who asks.
    pub(crate) const fn caller(&self) -> &Arc<Caller> {
        self.aimed.caller()
    }

    /// How urgent it is.
    pub(crate) const fn class(&self) -> Class {
        self.class
    }

    /// Takes a place among those for batch, of which there are fewer than for all.
    pub(crate) fn take_batch_place(&mut self, limits: &RequestLimits) -> Result<(), Problem> {
        let fits = self.aimed.reading.place.be_batch(limits);
        fits.then_some(()).ok_or(Problem::QueueFull { retry_after_s: BATCH_RETRY_S })
    }

    /// Whether its engine says what its stream came to, and its client did not ask for that.
    pub(crate) const fn hides_usage(&self) -> bool {
        self.hides_usage
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
        finished.batch = self.class.is_batch();
    }

    fn settle(&mut self, _: RequestOutcome, _: Time) {
        self.release();
    }
}
