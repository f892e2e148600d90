//! One look at everything, for the admin address's `/state`.

use super::recent;
use super::spread::filled;
use super::{EngineNow, Meter, MeterNow, ModelNow, RequestOutcome, TenantsNow};
use crate::AdmittedDemand;
use crate::state::{self, GatewayStateView};
use std::cmp::Reverse;
use std::time::SystemTime;

/// Callers that are shown as the slowest, and as the heaviest.
const TOP: usize = 10;

/// Tenants that let nobody in, of which the reason is shown.
const SHOWN_TENANTS: usize = 20;

impl Meter {
    /// One look at everything.
    pub fn state(&self, at: SystemTime) -> GatewayStateView {
        let now = self.now.get().map(|read| read()).unwrap_or_default();
        let mut refusals: Vec<_> = self.totals.refused.recent(at);
        refusals.sort_by_key(|(_, count)| Reverse(*count));
        let refusal =
            |(reason, count): (&str, u64)| state::Refusal { reason: reason.into(), count };
        GatewayStateView {
            version: state::VERSION,
            time: jiff::Timestamp::try_from(at).unwrap_or_default().to_string(),
            gateways: 1,
            connections: now.connections,
            requests: now.requests,
            held_bytes: now.held_bytes,
            troubles: self.troubles(&now),
            models: now.models.iter().map(|model| self.model(model, at)).collect(),
            callers: self.callers_of_note(at),
            refusals: refusals.into_iter().map(refusal).collect(),
            tenants: now.tenants.as_ref().map(tenants),
        }
    }

    fn troubles(&self, now: &MeterNow) -> Vec<state::TroubleView> {
        [
            ("draining", usize::from(now.draining)),
            ("zombies", now.zombies),
            ("silent-engines", now.silent_engines),
            ("collector-unreachable", usize::from(now.collector_away)),
            ("operator-unreachable", usize::from(now.operator.away)),
            ("failing-watches", now.failing_watches),
            ("unconfirmed-empty-models", now.doubted_models),
            ("name-conflicts", now.model_names.left_out.iter().sum()),
            ("refused-tenants", now.tenants.as_ref().map_or(0, |tenants| tenants.report.refused)),
            ("reload-failed", usize::from(!self.reload.load().successful)),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| state::TroubleView { what: what.to_owned(), count })
        .collect()
    }

    fn model(&self, now: &ModelNow, at: SystemTime) -> state::ModelView {
        let names = self.names.load();
        // A model beyond the cap has no counts of its own; those of all others would mislead.
        let own = names.models.get(&*now.name);
        let minute = own.and_then(|model| model.recent.minute(at));
        state::ModelView {
            name: now.name.to_string(),
            engines: now.engines.iter().map(engine).collect(),
            queue: queue(&now.queue),
            requests_per_second: minute.as_ref().map_or(0.0, rate),
            last_minute: minute.as_ref().map(last_minute).unwrap_or_default(),
            trouble: now.trouble.clone(),
        }
    }

    /// The ten slowest and the ten heaviest, by name.
    fn callers_of_note(&self, at: SystemTime) -> Vec<state::CallerView> {
        let names = self.names.load();
        let mut all: Vec<state::CallerView> = names
            .callers
            .iter()
            .filter_map(|(name, caller)| {
                let minute = caller.recent.minute(at).filter(|minute| minute.all() > 0)?;
                Some(state::CallerView {
                    name: name.to_string(),
                    requests_per_second: rate(&minute),
                    last_minute: last_minute(&minute),
                })
            })
            .collect();
        all.sort_by_key(|caller| Reverse(caller.last_minute.tokens()));
        let mut of_note: Vec<_> = all.drain(..TOP.min(all.len())).collect();
        // The slowest of the rest: the slowest of all are among both.
        let slow = |caller: &state::CallerView| caller.last_minute.first_token.p95_seconds;
        all.sort_by(|a, b| slow(b).partial_cmp(&slow(a)).unwrap_or(std::cmp::Ordering::Equal));
        of_note.extend(all.into_iter().take(TOP));
        of_note.sort_by(|a, b| a.name.cmp(&b.name));
        of_note
    }
}

fn tenants(now: &TenantsNow) -> state::TenantsView {
    let report = &now.report;
    let troubles = report.troubles.iter().filter(|trouble| !trouble.accepted);
    let refused = troubles.map(|trouble| state::RefusedTenantView {
        tenant: trouble.tenant.clone(),
        reason: trouble.reason.clone(),
    });
    state::TenantsView {
        accepted: report.accepted,
        refused: report.refused,
        keys: report.keys,
        age_seconds: now.age.map(|age| age.as_secs_f64()),
        troubles: refused.take(SHOWN_TENANTS).collect(),
    }
}

fn engine(now: &EngineNow) -> state::EngineView {
    state::EngineView {
        name: now.name.to_string(),
        address: now.address.to_string(),
        state: now.state.name().to_owned(),
        in_flight: now.in_flight.into(),
        running: now.running,
        waiting: now.waiting,
        kv_used: now.kv_used_per_thousand.map(|thousandths| f64::from(thousandths) / 1_000.0),
    }
}

fn queue(now: &AdmittedDemand) -> state::QueueView {
    let seconds = |millis: u64| std::time::Duration::from_millis(millis).as_secs_f64();
    state::QueueView {
        waiting: now.waiting,
        held: now.held,
        backlog_tokens: now.backlog_tokens,
        backlog_cost: now.backlog_cost,
        oldest_seconds: seconds(now.oldest_ms),
        wait_seconds: now.wait_ms.map(seconds),
        eta_seconds: now.eta_ms.map(seconds),
    }
}

fn last_minute(minute: &recent::Minute) -> state::Minute {
    let [input_tokens, cached_tokens, output_tokens] = minute.tokens;
    state::Minute {
        answered: minute.of(RequestOutcome::Answered),
        refused: minute.of(RequestOutcome::Refused),
        failed: minute.of(RequestOutcome::Failed),
        broken: minute.of(RequestOutcome::Broken),
        cancelled: minute.of(RequestOutcome::Cancelled),
        input_tokens,
        cached_tokens,
        output_tokens,
        first_token: state::Times::of(filled(&minute.first)),
        per_token: state::Times::of(filled(&minute.per_token)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "requests of ten seconds are below 2^53")]
fn rate(minute: &recent::Minute) -> f64 {
    let (requests, over) = minute.rated;
    // A tenth more or less does not matter to a person, a long row of digits does.
    (requests as f64 / over.as_secs_f64().max(1.0) * 10.0).round() / 10.0
}
