//! What gateways said together, in the form of this command.

use flyball_gateway::state::{self, GatewayStateView};
use schemars::JsonSchema;
use serde::Serialize;

/// Callers that are shown, of each kind.
const CALLERS: usize = 10;

/// Live traffic of gateways.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Top {
    /// Time of the oldest sample, RFC 3339.
    pub(super) time: String,
    /// The queried gateways.
    pub(super) gateways: Vec<Asked>,
    /// Client connections.
    pub(super) connections: usize,
    /// Requests in flight.
    pub(super) requests: usize,
    /// Problems of the gateways themselves.
    pub(super) troubles: Vec<Trouble>,
    /// Models, by name.
    pub(super) models: Vec<Model>,
    /// Engines, by model and name.
    pub(super) engines: Vec<Engine>,
    /// Callers by 95th percentile of TTFT, slowest first.
    pub(super) slowest_callers: Vec<Caller>,
    /// Callers with the most tokens, heaviest first.
    pub(super) heaviest_callers: Vec<Caller>,
    /// Requests without a response from an engine in the last minute, most frequent first.
    pub(super) refusals: Vec<Refusal>,
}

/// A queried gateway.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Asked {
    /// Its admin address.
    pub(super) url: String,
    /// Why it is missing from the sums, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// A problem of a gateway.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Trouble {
    /// What it is.
    pub(super) what: String,
    /// How many.
    pub(super) count: usize,
}

/// One model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Model {
    /// Model name in client requests.
    pub(super) name: String,
    /// Engines that accept requests.
    pub(super) open_engines: usize,
    /// All engines.
    pub(super) engines: usize,
    /// Requests in the queue.
    pub(super) queued: usize,
    /// Requests that wait for a model without engines.
    pub(super) held: usize,
    /// Prompt tokens of all queued requests.
    pub(super) backlog_tokens: u64,
    /// Age of the oldest queued request, in seconds.
    pub(super) oldest_wait_seconds: f64,
    /// Expected wait of a new request, in seconds.
    pub(super) expected_wait_seconds: Option<f64>,
    /// Expected time until an engine is ready, in seconds.
    pub(super) wake_seconds: Option<f64>,
    /// Requests per second of the last ten seconds.
    pub(super) requests_per_second: f64,
    /// What happened in the last minute.
    pub(super) last_minute: Minute,
    /// Why engine discovery fails and what to do, if it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
}

/// One engine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Engine {
    /// The model that it serves.
    pub(super) model: String,
    /// Its name.
    pub(super) name: String,
    /// Address of the engine.
    pub(super) address: String,
    /// `open`, `draining`, `quarantined` or `broken`.
    pub(super) state: String,
    /// Requests in flight from these gateways.
    pub(super) in_flight: u64,
    /// Running requests as the engine reports them.
    pub(super) running: Option<u32>,
    /// Queued requests as the engine reports them.
    pub(super) waiting: Option<u32>,
    /// Share of its KV cache in use, 0 to 1.
    pub(super) kv_used: Option<f64>,
}

/// One caller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Caller {
    /// The name of its key.
    pub(super) name: String,
    /// Requests per second of the last ten seconds.
    pub(super) requests_per_second: f64,
    /// What happened in the last minute.
    pub(super) last_minute: Minute,
}

/// What happened in the last minute.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Minute {
    /// Finished requests.
    pub(super) requests: u64,
    /// Of those, refused before they reached an engine.
    pub(super) refused: u64,
    /// Of those, failed: no engine responded, or the response broke off.
    pub(super) failed: u64,
    /// Of those, cancelled by the client.
    pub(super) cancelled: u64,
    /// Prompt tokens.
    pub(super) input_tokens: u64,
    /// Output tokens.
    pub(super) output_tokens: u64,
    /// Share of prompt tokens found in a cache, 0 to 1.
    pub(super) prefix_hit_rate: Option<f64>,
    /// TTFT in seconds, median.
    pub(super) first_token_p50_seconds: Option<f64>,
    /// TTFT in seconds, 95th percentile.
    pub(super) first_token_p95_seconds: Option<f64>,
    /// Time per output token in seconds, median.
    pub(super) per_token_p50_seconds: Option<f64>,
    /// Time per output token in seconds, 95th percentile.
    pub(super) per_token_p95_seconds: Option<f64>,
}

/// Requests without a response from an engine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Refusal {
    /// The reason in `x-flyball-reason`.
    pub(super) reason: String,
    /// How many in the last minute.
    pub(super) count: u64,
}

impl Top {
    pub(super) fn new(gateways: Vec<Asked>, sum: GatewayStateView) -> Top {
        let engines = sum
            .models
            .iter()
            .flat_map(|model| model.engines.iter().map(|engine| Engine::new(&model.name, engine)));
        let callers = |before: fn(&Caller) -> f64| {
            let mut all: Vec<Caller> = sum.callers.iter().map(Caller::new).collect();
            all.sort_by(|a, b| before(b).total_cmp(&before(a)));
            all.truncate(CALLERS);
            all
        };
        let trouble =
            |one: &state::TroubleView| Trouble { what: one.what.clone(), count: one.count };
        let refusal =
            |one: &state::Refusal| Refusal { reason: one.reason.clone(), count: one.count };
        Top {
            time: sum.time.clone(),
            gateways,
            connections: sum.connections,
            requests: sum.requests,
            troubles: sum.troubles.iter().map(trouble).collect(),
            models: sum.models.iter().map(Model::new).collect(),
            engines: engines.collect(),
            // Whoever got no token yet is not slow, as far as anybody knows.
            slowest_callers: callers(|c| c.last_minute.first_token_p95_seconds.unwrap_or(-1.0)),
            heaviest_callers: callers(|c| c.last_minute.tokens() as f64),
            refusals: sum.refusals.iter().map(refusal).collect(),
        }
    }

    /// Gateways that did not answer.
    pub(super) fn silent(&self) -> impl Iterator<Item = (&str, &str)> {
        self.gateways.iter().filter_map(|one| Some((one.url.as_str(), one.problem.as_deref()?)))
    }
}

impl Model {
    fn new(model: &state::ModelView) -> Model {
        let open = model.engines.iter().filter(|engine| engine.state == "open").count();
        let state::QueueView { waiting, held, backlog_tokens, .. } = model.queue;
        Model {
            name: model.name.clone(),
            open_engines: open,
            engines: model.engines.len(),
            queued: waiting,
            held,
            backlog_tokens,
            oldest_wait_seconds: model.queue.oldest_seconds,
            expected_wait_seconds: model.queue.wait_seconds,
            wake_seconds: model.queue.eta_seconds,
            requests_per_second: model.requests_per_second,
            last_minute: Minute::new(&model.last_minute),
            trouble: model.trouble.clone(),
        }
    }

    /// Whether somebody should look at it.
    pub(super) fn needs_attention(&self) -> bool {
        let is_used = self.last_minute.requests > 0 || self.queued + self.held > 0;
        (self.open_engines == 0 && (self.engines > 0 || is_used))
            || self.last_minute.refused > 0
            || self.last_minute.failed > 0
            || self.trouble.is_some()
    }
}

impl Engine {
    fn new(model: &str, engine: &state::EngineView) -> Engine {
        Engine {
            model: model.to_owned(),
            name: engine.name.clone(),
            address: engine.address.clone(),
            state: engine.state.clone(),
            in_flight: engine.in_flight,
            running: engine.running,
            waiting: engine.waiting,
            kv_used: engine.kv_used,
        }
    }

    pub(super) fn needs_attention(&self) -> bool {
        self.state != "open"
    }
}

impl Caller {
    fn new(caller: &state::CallerView) -> Caller {
        Caller {
            name: caller.name.clone(),
            requests_per_second: caller.requests_per_second,
            last_minute: Minute::new(&caller.last_minute),
        }
    }
}

impl Minute {
    fn new(minute: &state::Minute) -> Minute {
        Minute {
            requests: minute.requests(),
            refused: minute.refused,
            failed: minute.failed + minute.broken,
            cancelled: minute.cancelled,
            input_tokens: minute.input_tokens,
            output_tokens: minute.output_tokens,
            prefix_hit_rate: minute.hit_rate(),
            first_token_p50_seconds: minute.first_token.p50_seconds,
            first_token_p95_seconds: minute.first_token.p95_seconds,
            per_token_p50_seconds: minute.per_token.p50_seconds,
            per_token_p95_seconds: minute.per_token.p95_seconds,
        }
    }

    pub(super) fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}
