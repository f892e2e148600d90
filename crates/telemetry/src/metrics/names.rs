//! The closed list of metrics.

use MetricKind::{Counter, Gauge, Histogram, Info};
use MetricPart::{Every, Gateway, Operator};
use Unit::{Bytes, Count, Seconds};

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises. Its name ends in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by size. Queries add `_bucket`, `_sum` and `_count` to its name.
    Histogram,
    /// Always 1, with text in labels. Its name ends in `_info`.
    Info,
}

impl MetricKind {
    /// How the name of such a metric ends.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Info => "_info",
            Self::Gauge | Self::Histogram => "",
        }
    }

    /// Its name in the text format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things that are counted. The name says which.
    Count,
    /// Seconds. The name has `_seconds` before the suffix of its kind.
    Seconds,
    /// Bytes. The name has `_bytes` before the suffix of its kind.
    Bytes,
}

/// Which processes write a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricPart {
    /// All of them.
    Every,
    /// `flyball gateway`.
    Gateway,
    /// `flyball operator`.
    Operator,
}

/// Declares the list: one row per metric, so that nothing about one can be forgotten.
macro_rules! metrics {
    ($($metric:ident, $part:ident, $kind:ident, $unit:ident, $name:literal, [$($label:literal),*], $help:literal;)*) => {
        /// Every metric Flyball writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = concat!("`", $name, "`")] $metric,)*
        }

        impl Metric {
            /// Every metric.
            pub const ALL: &[Self] = &[$(Self::$metric,)*];

            /// The full name, as queries write it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$metric => $name,)* }
            }

            /// What it measures, in one sentence without a full stop; the text format adds one.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$metric => $help,)* }
            }

            /// What kind of number it is.
            pub const fn kind(self) -> MetricKind {
                match self { $(Self::$metric => $kind,)* }
            }

            /// What it is measured in.
            pub const fn unit(self) -> Unit {
                match self { $(Self::$metric => $unit,)* }
            }

            /// Which processes write it.
            pub const fn part(self) -> MetricPart {
                match self { $(Self::$metric => $part,)* }
            }

            /// Its labels, in the order in which their values are given.
            pub const fn labels(self) -> &'static [&'static str] {
                match self { $(Self::$metric => &[$($label),*],)* }
            }
        }
    };
}

// The `gen_ai_` names and labels are those of OpenTelemetry's GenAI conventions as Prometheus
// spells them, so that dashboards made for engines and other gateways work unchanged.
metrics! {
    BuildInfo, Every, Info, Count, "flyball_build_info", ["version"],
        "Version of the running program, always 1";
    InvariantViolations, Every, Counter, Count, "flyball_invariant_violations_total", ["invariant"],
        "Decisions that violated an invariant, by its id";
    GenAiRequestDuration, Gateway, Histogram, Seconds, "gen_ai_server_request_duration_seconds",
        ["gen_ai_operation_name", "gen_ai_request_model"],
        "Time from the request head to the last byte of the response, for responses that began without an error";
    GenAiTimeToFirstToken, Gateway, Histogram, Seconds, "gen_ai_server_time_to_first_token_seconds",
        ["gen_ai_operation_name", "gen_ai_request_model"],
        "Time from the request head to the first event of a stream, or to the first byte of another response";
    GenAiTimePerOutputToken, Gateway, Histogram, Seconds,
        "gen_ai_server_time_per_output_token_seconds",
        ["gen_ai_operation_name", "gen_ai_request_model"],
        "Time of a stream after its first event, per output token after the first";
    GenAiTokenUsage, Gateway, Histogram, Count, "gen_ai_client_token_usage",
        ["gen_ai_operation_name", "gen_ai_request_model", "gen_ai_token_type"],
        "Tokens of a request: input, cached (the part of input that was in a cache), output";
    GatewayRequests, Gateway, Counter, Count, "flyball_gateway_requests_total",
        ["model", "outcome", "status_class"],
        "Finished requests, by outcome";
    GatewayCallerRequests, Gateway, Counter, Count, "flyball_gateway_caller_requests_total",
        ["caller", "outcome"],
        "Finished requests, by the name of the caller's key";
    GatewayCallerTokens, Gateway, Counter, Count, "flyball_gateway_caller_tokens_total",
        ["caller", "token_type"],
        "Tokens used, by the name of the caller's key";
    GatewayRetries, Gateway, Counter, Count, "flyball_gateway_retries_total", ["model"],
        "Retries on another engine";
    GatewayCopiesDropped, Gateway, Counter, Count, "flyball_gateway_mirror_dropped_total", [],
        "Mirrored requests that were dropped because the gateway was at its limits";
    GatewayFinish, Gateway, Counter, Count, "flyball_gateway_finish_total", ["model", "reason"],
        "Responses with a finish reason: stop, length, tool_calls, content_filter, other";
    GatewaySplitRequests, Gateway, Counter, Count, "flyball_gateway_split_requests_total",
        ["split", "model"],
        "Requests for a split, by the model that served them";
    GatewayMirrored, Gateway, Counter, Count, "flyball_gateway_mirrored_total", ["model"],
        "Mirrored requests, whose responses are discarded, by the model that received them";
    GatewayQueueWait, Gateway, Histogram, Seconds, "flyball_gateway_queue_wait_seconds", ["model"],
        "Time in the queue, including requests that did not wait";
    GatewayHeldRequests, Gateway, Counter, Count, "flyball_gateway_held_requests_total", ["model"],
        "Requests that waited for a model without engines";
    GatewayHedged, Gateway, Counter, Count, "flyball_gateway_hedged_total", ["model"],
        "Requests sent to a second engine before the first began to respond";
    GatewayContinued, Gateway, Counter, Count, "flyball_gateway_continued_total", ["model"],
        "Broken responses that another engine continued";
    GatewayPreempted, Gateway, Counter, Count, "flyball_gateway_preempted_total", ["model"],
        "Times that batch requests were stopped to make room for others, and continued or began again later";
    GatewayCacheHits, Gateway, Counter, Count, "flyball_gateway_response_cache_hits_total", ["model"],
        "Requests served from the response cache";
    GatewayQueued, Gateway, Gauge, Count, "flyball_gateway_queued", ["model"],
        "Requests in the queue, batch aside";
    GatewayBatch, Gateway, Gauge, Count, "flyball_gateway_batch", ["model", "state"],
        "Batch requests: waiting in the queue, or running at engines";
    GatewayHolding, Gateway, Gauge, Count, "flyball_gateway_holding", ["model"],
        "Requests that wait for a model without engines";
    GatewayBacklog, Gateway, Gauge, Count, "flyball_gateway_backlog_tokens", ["model"],
        "Prompt tokens of all queued requests";
    GatewayOldestWait, Gateway, Gauge, Seconds, "flyball_gateway_oldest_wait_seconds", ["model"],
        "Age of the oldest queued request; 0 if the queue is empty";
    GatewayBacklogCost, Gateway, Gauge, Count, "flyball_gateway_backlog_cost", ["model"],
        "Expected cost of all queued requests, in units of the GPU time of one prompt token";
    GatewayWindow, Gateway, Gauge, Count, "flyball_gateway_window", ["model"],
        "Requests that this gateway may have in flight at the model's engines, learned from their reports";
    GatewayArrived, Gateway, Counter, Count, "flyball_gateway_arrived_total", ["model"],
        "Requests that reached the queue, whatever their outcome";
    GatewayArrivedTokens, Gateway, Counter, Count, "flyball_gateway_arrived_tokens_total", ["model"],
        "Prompt tokens of requests that reached the queue, estimated as the engines count";
    GatewayUncachedTokens, Gateway, Counter, Count, "flyball_gateway_uncached_tokens_total", ["model"],
        "Prompt tokens that engines had to compute because no cache had them";
    GatewayCost, Gateway, Counter, Count, "flyball_gateway_cost_total", ["model"],
        "Cost of finished requests, in units of the GPU time of one prompt token";
    GatewayShed, Gateway, Counter, Count, "flyball_gateway_shed_total", ["model"],
        "Requests refused at the queue, or that timed out in it";
    GatewayWakeCalls, Gateway, Counter, Count, "flyball_gateway_wake_calls_total", ["model"],
        "Calls to wake the model";
    GatewayJudged, Gateway, Counter, Count, "flyball_gateway_judged_total", ["model"],
        "Requests that were checked against their objectives";
    GatewayMissed, Gateway, Counter, Count, "flyball_gateway_missed_total", ["model"],
        "Checked requests that missed an objective or were refused for lack of capacity";
    GatewayMissedObjective, Gateway, Counter, Count, "flyball_gateway_missed_objective_total",
        ["model", "objective"],
        "Checked streams that missed an objective: first_token, between_tokens (mean over the response)";
    GatewayInvariantBroken, Gateway, Counter, Count, "flyball_gateway_invariant_broken_total",
        ["invariant"],
        "Invariant violations; docs/invariants.md lists the invariants";
    GatewayModelEngines, Gateway, Gauge, Count, "flyball_gateway_model_engines", ["model", "state"],
        "Engines of a model, by state as in flyball_gateway_engines";
    GatewayDiscoveryFailing, Gateway, Gauge, Count, "flyball_gateway_model_discovery_failing", ["model"],
        "1 while engine discovery fails for this model; the log and /state say why and what to do";
    GatewayHedgesWon, Gateway, Counter, Count, "flyball_gateway_hedges_won_total", [],
        "Hedged requests that the second engine answered first";
    GatewayCacheEventStreams, Gateway, Gauge, Count, "flyball_gateway_cache_event_streams", [],
        "Engines whose KV cache events the gateway receives";
    GatewayCacheEvents, Gateway, Counter, Count, "flyball_gateway_cache_events_total", [],
        "Batches of KV cache events received from engines";
    GatewayCacheEventsMissed, Gateway, Counter, Count,
        "flyball_gateway_cache_events_missed_total", [],
        "Batches of KV cache events that were lost, by gaps in their sequence numbers";
    GatewayRefused, Gateway, Counter, Count, "flyball_gateway_refused_total", ["reason"],
        "Requests without a complete response from an engine, by the reason in `x-flyball-reason`";
    GatewayChoices, Gateway, Counter, Count, "flyball_gateway_choices_total", ["by"],
        "Routing decisions, by what decided: affinity to a cached prefix, or load alone";
    GatewayChosen, Gateway, Histogram, Seconds, "flyball_gateway_routing_seconds", [],
        "Time from the request head to the choice of an engine, including the upload of the body";
    GatewayEstimated, Gateway, Counter, Count, "flyball_gateway_usage_estimated_total", [],
        "Requests whose tokens the gateway estimated because the response had no usage";
    GatewayReceived, Gateway, Counter, Bytes, "flyball_gateway_received_bytes_total", [],
        "Bytes of request bodies";
    GatewaySent, Gateway, Counter, Bytes, "flyball_gateway_sent_bytes_total", [],
        "Bytes of responses";
    GatewayCancelToFree, Gateway, Histogram, Seconds, "flyball_gateway_cancel_to_free_seconds", [],
        "Time from a client's disconnect until the engine verifiably freed the slot";
    GatewayCancelsIgnored, Gateway, Counter, Count, "flyball_gateway_cancels_ignored_total", [],
        "Disconnects after which an engine did not free the slot; it gets no new requests for a while";
    GatewayBreakerOpened, Gateway, Counter, Count, "flyball_gateway_breaker_opened_total", [],
        "Times that a circuit breaker opened because an engine kept failing";
    GatewayConnections, Gateway, Gauge, Count, "flyball_gateway_connections", [],
        "Client connections";
    GatewayInFlight, Gateway, Gauge, Count, "flyball_gateway_in_flight", [],
        "Requests in flight";
    GatewayHeld, Gateway, Gauge, Bytes, "flyball_gateway_held_bytes", [],
        "Bytes of request bodies in memory";
    GatewayCacheBytes, Gateway, Gauge, Bytes, "flyball_gateway_response_cache_bytes", [],
        "Bytes of cached responses";
    GatewayEngines, Gateway, Gauge, Count, "flyball_gateway_engines", ["state"],
        "Engines by state: open, draining, quarantined (ignores cancellation), broken (circuit breaker is open), gone (no longer listed, with requests in flight)";
    GatewaySuspectPrompts, Gateway, Gauge, Count, "flyball_gateway_suspect_prompts", ["state"],
        "Prompts that crashed engines in the last ten minutes and have not been answered since: suspected (may be tried again), refused";
    GatewayDraining, Gateway, Gauge, Count, "flyball_gateway_draining", [],
        "1 after SIGTERM, 0 before";
    GatewayZombies, Gateway, Gauge, Count, "flyball_gateway_zombies", [],
        "Requests in engines whose clients disconnected more than a second ago";
    GatewaySilentEngines, Gateway, Gauge, Count, "flyball_gateway_silent_engines", [],
        "Engines without a recent load report; the gateway routes by its own counts";
    GatewayCollectorAway, Gateway, Gauge, Count, "flyball_gateway_collector_unreachable", [],
        "1 if the configured collector does not answer, 0 otherwise";
    GatewayOperatorAway, Gateway, Gauge, Count, "flyball_gateway_operator_unreachable", [],
        "1 if the configured operator does not answer, 0 otherwise";
    GatewayOperatorDrains, Gateway, Gauge, Count, "flyball_gateway_operator_drains", [],
        "Engines that get no new requests because the operator drains them";
    GatewayOperatorTries, Gateway, Counter, Count, "flyball_gateway_operator_connection_attempts_total",
        ["outcome"],
        "Attempts to connect to the operator: accepted, unreachable, refused, incompatible";
    GatewayOperatorMessages, Gateway, Counter, Count, "flyball_gateway_operator_messages_total",
        ["direction"],
        "Messages on the stream to the operator: sent, received";
    GatewayFailingWatches, Gateway, Gauge, Count, "flyball_gateway_failing_watches", [],
        "API server watches that fail; the gateway uses their last known state";
    GatewayDoubtedModels, Gateway, Gauge, Count, "flyball_gateway_unconfirmed_empty_models", [],
        "Models that seem to have lost all engines; they keep them until the loss is confirmed";
    GatewayModelNames, Gateway, Gauge, Count, "flyball_gateway_model_service_names", ["state"],
        "Public names of ModelServices: served, or not because of settings, older, refused, limit, unreadable";
    GatewayTenants, Gateway, Gauge, Count, "flyball_gateway_tenants", ["state"],
        "Tenants: accepted, refused; absent if they are not watched";
    GatewayTenantKeys, Gateway, Gauge, Count, "flyball_gateway_tenant_keys", ["state"],
        "Keys of Tenants, whatever their time: accepted, refused; absent if Tenants are not watched";
    GatewayTenantsAge, Gateway, Gauge, Seconds, "flyball_gateway_tenants_list_age_seconds", [],
        "Time since the API server confirmed the list of Tenants; absent if it is unknown or Tenants are not watched";
    GatewayKeysRefused, Gateway, Counter, Count, "flyball_gateway_keys_refused_total", ["reason"],
        "Requests answered with 401: missing, unknown, pending, expired, disabled, refused (its Tenant is refused, or another key has its id or hash); of tokens also token_invalid, token_issuer (not trusted), token_key (not known for its issuer), token_audience, no_member (of no Tenant, or not of the one named), several_tenants (none named)";
    GatewayKeySetAge, Gateway, Gauge, Seconds, "flyball_gateway_key_set_age_seconds", ["source"],
        "Time since the oldest key set of token issuers was fetched: url, file, kubernetes; tokens are refused after a day. Absent if none was";
    GatewayKeySetFetches, Gateway, Counter, Count, "flyball_gateway_key_set_fetches_total", ["source", "outcome"],
        "Fetches of key sets of token issuers: taken, unreachable, status (not 200), late, refused (no key set that is used)";
    GatewayReloadSuccessful, Gateway, Gauge, Count,
        "flyball_gateway_config_last_reload_successful", [],
        "1 if the current settings file is in use, 0 if it was refused and the previous settings stay";
    GatewayReloadTime, Gateway, Gauge, Seconds,
        "flyball_gateway_config_last_reload_success_timestamp_seconds", [],
        "Time of the last successful reload, in seconds since 1970";
    GatewayLabelsCapped, Gateway, Counter, Count, "flyball_gateway_labels_capped_total", ["label"],
        "Requests counted under `other` because the label has too many names";
    GatewayDropped, Gateway, Counter, Count, "flyball_gateway_telemetry_dropped_total", ["signal"],
        "Access log lines and spans dropped because their queue was full";
    GatewayShadowRegret, Gateway, Gauge, Seconds, "flyball_gateway_shadow_regret_seconds",
        ["model", "policy"],
        "Mean time by which first tokens came later than with this policy";
    GatewayShadowRegretMargin, Gateway, Gauge, Seconds,
        "flyball_gateway_shadow_regret_margin_seconds", ["model", "policy"],
        "95 % confidence margin of the regret";
    GatewayShadowFirst, Gateway, Gauge, Seconds, "flyball_gateway_shadow_ttft_seconds",
        ["model", "policy"],
        "Mean time to first token as predicted with this policy";
    GatewayShadowHitShare, Gateway, Gauge, Count, "flyball_gateway_shadow_hit_share",
        ["model", "policy"],
        "Share of prompt tokens that would have been cached with this policy, as predicted";
    GatewayShadowError, Gateway, Gauge, Count, "flyball_gateway_shadow_prediction_error", ["model"],
        "Median relative error of predictions for the live policy";
    GatewayShadowDropped, Gateway, Counter, Count, "flyball_gateway_shadow_dropped_total", [],
        "Arrivals, first tokens and ends that shadow policies missed because their queue was full";
    ModelReplicas, Operator, Gauge, Count, "flyball_model_replicas",
        ["target_namespace", "model", "state"],
        "Replicas of a model, by state";
    ModelRecommended, Operator, Gauge, Count, "flyball_model_recommended_replicas",
        ["target_namespace", "model"],
        "Recommended replicas of a model";
    ModelNeed, Operator, Gauge, Count, "flyball_model_need_replicas",
        ["target_namespace", "model", "kind"],
        "Replicas that current demand needs (now), and the most that it is expected to need (ahead)";
    ModelUnconstrained, Operator, Gauge, Count, "flyball_model_unconstrained_replicas",
        ["target_namespace", "model"],
        "Replicas that demand needs, before limits of pools, budgets and steps";
    ModelAllowed, Operator, Gauge, Count, "flyball_model_allowed_replicas",
        ["target_namespace", "model", "end"],
        "Minimum (min) and maximum (max) replicas of a model";
    ModelReason, Operator, Gauge, Count, "flyball_model_reason",
        ["target_namespace", "model", "reason"],
        "Always 1, with the reason for the number of replicas";
    ModelBound, Operator, Gauge, Count, "flyball_model_bound",
        ["target_namespace", "model", "bound"],
        "Always 1, with the bound that set the number of replicas";
    ModelCondition, Operator, Gauge, Count, "flyball_model_condition",
        ["target_namespace", "model", "condition"],
        "1 if a condition of the model is true, 0 if false; absent if unknown";
    ModelDemand, Operator, Gauge, Count, "flyball_model_demand_tokens_per_second",
        ["target_namespace", "model", "work"],
        "Last observed prompt tokens (prefill) and output tokens (decode) per second";
    ModelBacklog, Operator, Gauge, Count, "flyball_model_backlog_tokens",
        ["target_namespace", "model"],
        "Last observed tokens of queued work";
    ModelCapacity, Operator, Gauge, Count, "flyball_model_capacity_tokens_per_second",
        ["target_namespace", "model", "variant", "work", "end"],
        "Capacity of one replica of a variant, prompt tokens (prefill) and output tokens (decode), with its interval: low, point, high";
    ModelColdStart, Operator, Gauge, Seconds, "flyball_model_cold_start_seconds",
        ["target_namespace", "model", "variant", "end"],
        "Time from requesting a replica until it is ready, with its interval: low, point, high";
    ModelOldestWait, Operator, Gauge, Seconds, "flyball_model_oldest_replica_seconds",
        ["target_namespace", "model", "state"],
        "Time that the oldest replica in a state has been in it, for replicas that are not ready";
    ModelAttainment, Operator, Gauge, Count, "flyball_model_attainment_ratio",
        ["target_namespace", "model", "kind"],
        "Share of the last hour's requests that met the objectives (met), and the share that should (objective)";
    ModelHourlyCost, Operator, Gauge, Count, "flyball_model_hourly_cost",
        ["target_namespace", "model"],
        "Hourly cost of the running replicas, in the currency of their pools";
    ModelRecommendedCost, Operator, Gauge, Count, "flyball_model_recommended_hourly_cost",
        ["target_namespace", "model"],
        "Hourly cost of the recommended replicas";
    ModelSignals, Operator, Gauge, Count, "flyball_model_signal_trust",
        ["target_namespace", "model", "signal"],
        "Freshness of a signal: 0 fresh, 1 stale, 2 missing";
    ModelSignalAge, Operator, Gauge, Seconds, "flyball_model_oldest_signal_seconds",
        ["target_namespace", "model"],
        "Age of the oldest signal behind the last decision, of those ever observed";
    PoolGpus, Operator, Gauge, Count, "flyball_pool_gpus", ["pool", "kind"],
        "Accelerators of a pool: on usable nodes (schedulable), held by pods (used), held by pods that are not replicas (others), by training runs that borrow (lent), the maximum (limit)";
    PoolHourlyCost, Operator, Gauge, Count, "flyball_pool_hourly_cost", ["pool"],
        "Hourly cost of the accelerators on usable nodes, in the pool's currency";
    PoolTakeBackPromise, Operator, Gauge, Seconds, "flyball_pool_take_back_promise_seconds", ["pool"],
        "Time within which all accelerators that a pool lends are promised back; absent while no run borrows; the leader knows it";
    PoolTakeBacks, Operator, Counter, Count, "flyball_pool_take_backs_total", ["pool", "result"],
        "Loans that a pool took back, within the promised time (in-time) or later (late); the leader knows them";
    TenantBudgetSpent, Operator, Gauge, Count, "flyball_tenant_budget_spent_ratio",
        ["tenant", "budget"],
        "Share of a budget that a Tenant and those below it have spent, 1 if it is exhausted; the leader knows it";
    TenantBudgetEnds, Operator, Gauge, Seconds, "flyball_tenant_budget_exhausted_timestamp_seconds",
        ["tenant", "budget"],
        "Time at which a budget will be exhausted at its present rate, in seconds since 1970; absent if it lasts until it resets";
    TrainingRuns, Operator, Gauge, Count, "flyball_training_runs", ["state"],
        "Training runs: complete, failed, missing (no workload), progressing, stalled, waiting; the leader knows them";
    TrainingStep, Operator, Gauge, Count, "flyball_training_step", ["target_namespace", "run"],
        "Last step that a training run reported";
    TrainingUnsaved, Operator, Gauge, Seconds, "flyball_training_unsaved_seconds",
        ["target_namespace", "run"],
        "Time of the steps since the last checkpoint of a training run: what a reclaim now would throw away";
    TrainingSlack, Operator, Gauge, Seconds, "flyball_training_slack_seconds",
        ["target_namespace", "run"],
        "Time that a training run can still lose without being late; negative if it will be late by so much";
    TrainingGoodput, Operator, Gauge, Count, "flyball_training_goodput_ratio",
        ["target_namespace", "run"],
        "Share of a training run's time on machines that became steps which were not lost";
    TrainingState, Operator, Gauge, Count, "flyball_training_state",
        ["target_namespace", "run", "state"],
        "1 for the state of a training run: complete, failed, missing, progressing, stalled, waiting";
    TrainingPods, Operator, Gauge, Count, "flyball_training_pods",
        ["target_namespace", "run", "kind"],
        "Pods of a training run: needed to make steps (wanted), that hold a node (placed), that run (running)";
    TrainingHourlyCost, Operator, Gauge, Count, "flyball_training_hourly_cost",
        ["target_namespace", "run"],
        "Hourly cost of the accelerators that a training run holds, in the currency of its pool";
    TrainingRound, Operator, Gauge, Seconds, "flyball_training_round_seconds", ["step"],
        "Duration of a step of the last round over training runs: observe (heartbeats), decide, write";
    TrainingSuggestedSave, Operator, Gauge, Seconds, "flyball_training_suggested_save_seconds",
        ["target_namespace", "run"],
        "Suggested time between checkpoints of a training run on the machines that it has";
    OperatorDecidedAt, Operator, Gauge, Seconds, "flyball_operator_last_decision_timestamp_seconds",
        [], "Time of the last decision, in seconds since 1970";
    OperatorLastInputAt, Operator, Gauge, Seconds, "flyball_operator_last_input_timestamp_seconds",
        ["input"],
        "Time of the last data from an input, in seconds since 1970: prometheus, gateway; absent if none arrived";
    OperatorLeads, Operator, Gauge, Count, "flyball_operator_leads", [],
        "1 if this operator is the leader, 0 otherwise";
    OperatorFrozen, Operator, Gauge, Count, "flyball_operator_frozen", [],
        "1 while all changes are frozen, 0 otherwise";
    OperatorGateways, Operator, Gauge, Count, "flyball_operator_gateways", [],
        "Connected gateways";
    OperatorSilentGateways, Operator, Gauge, Count, "flyball_operator_silent_gateways", [],
        "Known gateways without a recent report; models they serve do not scale down";
    OperatorTick, Operator, Gauge, Seconds, "flyball_operator_tick_seconds", [],
        "Configured interval between reconciles";
    OperatorRound, Operator, Histogram, Seconds, "flyball_operator_reconcile_seconds", [],
        "Duration of a reconcile: observe, decide, write";
    OperatorStepSeconds, Operator, Gauge, Seconds, "flyball_operator_step_seconds", ["step"],
        "Duration of a step in the last reconcile";
    OperatorDecisions, Operator, Counter, Count, "flyball_operator_decisions_total", ["reason"],
        "Decisions that differ from the previous one, by reason";
    OperatorErrors, Operator, Counter, Count, "flyball_operator_errors_total", ["step", "error"],
        "Errors, by step and kind: unreachable, forbidden, conflict, not-leading, refused";
    OperatorWrites, Operator, Counter, Count, "flyball_operator_writes_total", ["kind"],
        "Writes to the API server";
    OperatorWatchFailures, Operator, Counter, Count, "flyball_operator_watch_failures_total", [],
        "Broken API server watches; they restart by themselves";
}

impl Metric {
    /// The name without the suffix of its kind, which the text format adds again.
    pub(super) fn family_name(self) -> &'static str {
        self.name().strip_suffix(self.kind().suffix()).unwrap_or(self.name())
    }
}
