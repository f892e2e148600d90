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
        "The version of the running program, always 1";
    InvariantViolations, Every, Counter, Count, "flyball_invariant_violations_total", ["invariant"],
        "Decisions that broke a rule, by the id of the rule";
    GenAiRequestDuration, Gateway, Histogram, Seconds, "gen_ai_server_request_duration_seconds",
        ["gen_ai_operation_name", "gen_ai_request_model"],
        "From a request's head to the last byte of its answer, of answers that began without an error";
    GenAiTimeToFirstToken, Gateway, Histogram, Seconds, "gen_ai_server_time_to_first_token_seconds",
        ["gen_ai_operation_name", "gen_ai_request_model"],
        "From a request's head to the first event of its stream, or the first byte of another answer";
    GenAiTimePerOutputToken, Gateway, Histogram, Seconds,
        "gen_ai_server_time_per_output_token_seconds",
        ["gen_ai_operation_name", "gen_ai_request_model"],
        "Time of a stream after its first event, for each token after the first";
    GenAiTokenUsage, Gateway, Histogram, Count, "gen_ai_client_token_usage",
        ["gen_ai_operation_name", "gen_ai_request_model", "gen_ai_token_type"],
        "Tokens of a request: input, cached (the part of input that was found in a cache), output";
    GatewayRequests, Gateway, Counter, Count, "flyball_gateway_requests_total",
        ["model", "outcome", "status_class"],
        "Requests that are over, by how they ended";
    GatewayCallerRequests, Gateway, Counter, Count, "flyball_gateway_caller_requests_total",
        ["caller", "outcome"],
        "Requests that are over, by the name of the key that was shown";
    GatewayCallerTokens, Gateway, Counter, Count, "flyball_gateway_caller_tokens_total",
        ["caller", "token_type"],
        "Tokens used, by the name of the key that was shown";
    GatewayRetries, Gateway, Counter, Count, "flyball_gateway_retries_total", ["model"],
        "Times that another engine was tried";
    GatewayCopiesDropped, Gateway, Counter, Count, "flyball_gateway_copies_dropped_total", [],
        "Copies for a mirror that were not sent because there was no room";
    GatewayFinish, Gateway, Counter, Count, "flyball_gateway_finish_total", ["model", "reason"],
        "Answers that told why they ended: stop, length, tool_calls, content_filter, other";
    GatewaySplitRequests, Gateway, Counter, Count, "flyball_gateway_split_requests_total",
        ["split", "model"],
        "Requests for a name that stands for several models, by the model that got them";
    GatewayMirrored, Gateway, Counter, Count, "flyball_gateway_mirrored_total", ["model"],
        "Copies of requests, whose answers nobody gets, by the model that got them";
    GatewayQueueWait, Gateway, Histogram, Seconds, "flyball_gateway_queue_wait_seconds", ["model"],
        "How long requests waited for a turn, those that did not wait among them";
    GatewayHeldRequests, Gateway, Counter, Count, "flyball_gateway_held_requests_total", ["model"],
        "Requests that waited for a model which had no engine";
    GatewayHedged, Gateway, Counter, Count, "flyball_gateway_hedged_total", ["model"],
        "Requests for which a second engine was asked before the first had begun to answer";
    GatewayContinued, Gateway, Counter, Count, "flyball_gateway_continued_total", ["model"],
        "Times that another engine continued an answer which had broken off";
    GatewayKept, Gateway, Counter, Count, "flyball_gateway_kept_answers_total", ["model"],
        "Requests that got an answer which had been kept";
    GatewayQueued, Gateway, Gauge, Count, "flyball_gateway_queued", ["model"],
        "Requests that wait for a turn";
    GatewayHolding, Gateway, Gauge, Count, "flyball_gateway_holding", ["model"],
        "Requests that wait for a model which has no engine";
    GatewayBacklog, Gateway, Gauge, Count, "flyball_gateway_backlog_tokens", ["model"],
        "Prompt tokens of all requests that wait";
    GatewayOldestWait, Gateway, Gauge, Seconds, "flyball_gateway_oldest_wait_seconds", ["model"],
        "How long the oldest of those that wait has waited; 0 if none waits";
    GatewayBacklogCost, Gateway, Gauge, Count, "flyball_gateway_backlog_cost", ["model"],
        "What all requests that wait will probably cost, in the GPU time of a prompt token";
    GatewayWindow, Gateway, Gauge, Count, "flyball_gateway_window", ["model"],
        "Requests that this gateway may have at the model's engines at once, learned from their reports";
    GatewayArrived, Gateway, Counter, Count, "flyball_gateway_arrived_total", ["model"],
        "Requests that asked for a turn, whatever became of them";
    GatewayArrivedTokens, Gateway, Counter, Count, "flyball_gateway_arrived_tokens_total", ["model"],
        "Their prompt tokens, counted by us as engines were seen to count";
    GatewayUncachedTokens, Gateway, Counter, Count, "flyball_gateway_uncached_tokens_total", ["model"],
        "Those of them that engines had to read, because no cache had them";
    GatewayCost, Gateway, Counter, Count, "flyball_gateway_cost_total", ["model"],
        "What requests that ended have cost, in the GPU time of a prompt token";
    GatewayShed, Gateway, Counter, Count, "flyball_gateway_shed_total", ["model"],
        "Requests that were turned away at the queue, or had waited in vain";
    GatewayWakeCalls, Gateway, Counter, Count, "flyball_gateway_wake_calls_total", ["model"],
        "Calls to wake the model";
    GatewayJudged, Gateway, Counter, Count, "flyball_gateway_judged_total", ["model"],
        "Requests that were judged by the objectives that the operator tells";
    GatewayMissed, Gateway, Counter, Count, "flyball_gateway_missed_total", ["model"],
        "Judged requests that missed any objective, or got no answer for lack of room";
    GatewayMissedObjective, Gateway, Counter, Count, "flyball_gateway_missed_objective_total",
        ["model", "objective"],
        "Judged streams that missed an objective: first_token, between_tokens (on the mean of the answer)";
    GatewayInvariantBroken, Gateway, Counter, Count, "flyball_gateway_invariant_broken_total",
        ["invariant"],
        "Times that something did not hold which must; docs/invariants.md has the list";
    GatewayModelEngines, Gateway, Gauge, Count, "flyball_gateway_model_engines", ["model", "state"],
        "Engines of a model by state, as flyball_gateway_engines has them";
    GatewayDiscoveryFailing, Gateway, Gauge, Count, "flyball_gateway_model_discovery_failing", ["model"],
        "1 while engine discovery is not possible for this model; the log and /state say why and what to do";
    GatewayHedgesWon, Gateway, Counter, Count, "flyball_gateway_hedges_won_total", [],
        "Hedged requests whose answer came from the second engine";
    GatewayCachesHeard, Gateway, Gauge, Count, "flyball_gateway_caches_heard", [],
        "Engines whose events about their caches are heard";
    GatewayCacheEvents, Gateway, Counter, Count, "flyball_gateway_cache_events_total", [],
        "Batches of events about caches that engines sent";
    GatewayCacheEventsMissed, Gateway, Counter, Count,
        "flyball_gateway_cache_events_missed_total", [],
        "Batches of events about caches that did not arrive, by the gaps in their numbers";
    GatewayRefused, Gateway, Counter, Count, "flyball_gateway_refused_total", ["reason"],
        "Requests that got no whole answer of an engine, by the reason that `x-flyball-reason` says";
    GatewayChoices, Gateway, Counter, Count, "flyball_gateway_choices_total", ["by"],
        "Engines chosen, by what decided: affinity to a cached prefix, or load alone";
    GatewayChosen, Gateway, Histogram, Seconds, "flyball_gateway_chosen_seconds", [],
        "From a request's head to the choice of an engine: what the gateway itself and the body took";
    GatewayEstimated, Gateway, Counter, Count, "flyball_gateway_estimated_total", [],
        "Requests whose tokens the gateway counted because the answer did not tell";
    GatewayReceived, Gateway, Counter, Bytes, "flyball_gateway_received_bytes_total", [],
        "Bytes of request bodies";
    GatewaySent, Gateway, Counter, Bytes, "flyball_gateway_sent_bytes_total", [],
        "Bytes of answers";
    GatewayCancelToFree, Gateway, Histogram, Seconds, "flyball_gateway_cancel_to_free_seconds", [],
        "From a client's hang-up to the proof that the engine let go of its slot";
    GatewayCancelsIgnored, Gateway, Counter, Count, "flyball_gateway_cancels_ignored_total", [],
        "Hang-ups after which an engine kept its slot; it gets no new requests for a while";
    GatewayBreakerOpened, Gateway, Counter, Count, "flyball_gateway_breaker_opened_total", [],
        "Times that an engine was left alone because it kept failing";
    GatewayConnections, Gateway, Gauge, Count, "flyball_gateway_connections", [],
        "Connections of clients";
    GatewayInFlight, Gateway, Gauge, Count, "flyball_gateway_in_flight", [],
        "Requests under way";
    GatewayHeld, Gateway, Gauge, Bytes, "flyball_gateway_held_bytes", [],
        "Bytes of request bodies held in memory";
    GatewayKeptBytes, Gateway, Gauge, Bytes, "flyball_gateway_kept_bytes", [],
        "Bytes of kept answers";
    GatewayEngines, Gateway, Gauge, Count, "flyball_gateway_engines", ["state"],
        "Engines by state: open, draining, quarantined (ignores hang-ups), broken (breaker is open), gone (not listed any more, with requests under way)";
    GatewaySuspectPrompts, Gateway, Gauge, Count, "flyball_gateway_suspect_prompts", ["state"],
        "Prompts that engines died over in the last ten minutes and none has answered since: suspected (may be tried again), refused";
    GatewayDraining, Gateway, Gauge, Count, "flyball_gateway_draining", [],
        "1 from SIGTERM on, 0 before";
    GatewayZombies, Gateway, Gauge, Count, "flyball_gateway_zombies", [],
        "Requests in engines whose clients hung up more than a second ago";
    GatewaySilentEngines, Gateway, Gauge, Count, "flyball_gateway_silent_engines", [],
        "Engines without a load report of the last seconds; they are chosen by own counts";
    GatewayCollectorAway, Gateway, Gauge, Count, "flyball_gateway_collector_away", [],
        "1 if the collector named in the settings does not answer, 0 otherwise";
    GatewayOperatorAway, Gateway, Gauge, Count, "flyball_gateway_operator_away", [],
        "1 if the operator named in the settings is not heard, 0 otherwise";
    GatewayOperatorDrains, Gateway, Gauge, Count, "flyball_gateway_operator_drains", [],
        "Engines that get no new requests because the operator says so";
    GatewayOperatorTries, Gateway, Counter, Count, "flyball_gateway_operator_tries_total",
        ["outcome"],
        "Tries to talk to the operator: welcomed, unreachable, refused, incompatible";
    GatewayOperatorMessages, Gateway, Counter, Count, "flyball_gateway_operator_messages_total",
        ["direction"],
        "Messages on the stream to the operator: sent, received";
    GatewayFailingWatches, Gateway, Gauge, Count, "flyball_gateway_failing_watches", [],
        "Watches of the API server that fail; what they listed last is used on";
    GatewayDoubtedModels, Gateway, Gauge, Count, "flyball_gateway_doubted_models", [],
        "Models that seem to have lost all engines and keep them until that is confirmed";
    GatewayModelNames, Gateway, Gauge, Count, "flyball_gateway_model_service_names", ["state"],
        "Public names of ModelServices: served, or not from there because of settings, older, refused, limit, unreadable";
    GatewayReloadSuccessful, Gateway, Gauge, Count,
        "flyball_gateway_config_last_reload_successful", [],
        "1 if the settings file as it is now is in use, 0 if it was refused and an older one is";
    GatewayReloadTime, Gateway, Gauge, Seconds,
        "flyball_gateway_config_last_reload_success_timestamp_seconds", [],
        "When settings were last taken in, in seconds since 1970";
    GatewayLabelsCapped, Gateway, Counter, Count, "flyball_gateway_labels_capped_total", ["label"],
        "Requests counted under `other` because there are more names than the label may have";
    GatewayDropped, Gateway, Counter, Count, "flyball_gateway_telemetry_dropped_total", ["signal"],
        "Lines of the access log and spans that found their queue full";
    GatewayShadowRegret, Gateway, Gauge, Seconds, "flyball_gateway_shadow_regret_seconds",
        ["model", "policy"],
        "Seconds by which first tokens came later than they would have with this policy, on average";
    GatewayShadowRegretMargin, Gateway, Gauge, Seconds,
        "flyball_gateway_shadow_regret_margin_seconds", ["model", "policy"],
        "How far the regret may be off by chance alone, 19 times of 20";
    GatewayShadowFirst, Gateway, Gauge, Seconds, "flyball_gateway_shadow_ttft_seconds",
        ["model", "policy"],
        "Mean time to the first token as predicted with this policy";
    GatewayShadowHitShare, Gateway, Gauge, Count, "flyball_gateway_shadow_hit_share",
        ["model", "policy"],
        "Share of prompt tokens that would have been cached with this policy, as predicted";
    GatewayShadowError, Gateway, Gauge, Count, "flyball_gateway_shadow_prediction_error", ["model"],
        "Median of how far predictions of the live policy are off, as a part of what was measured";
    GatewayShadowDropped, Gateway, Counter, Count, "flyball_gateway_shadow_dropped_total", [],
        "Arrivals, first tokens and ends that shadow policies were not told of: their queue was full";
    ModelReplicas, Operator, Gauge, Count, "flyball_model_replicas",
        ["target_namespace", "model", "state"],
        "Replicas of a model, by where they are in their life";
    ModelRecommended, Operator, Gauge, Count, "flyball_model_recommended_replicas",
        ["target_namespace", "model"],
        "Replicas that a model should have";
    ModelNeed, Operator, Gauge, Count, "flyball_model_need_replicas",
        ["target_namespace", "model", "kind"],
        "Replicas that the work of this moment takes (now), and that it will take at most (ahead)";
    ModelWanted, Operator, Gauge, Count, "flyball_model_wanted_replicas",
        ["target_namespace", "model"],
        "Replicas that demand asks for, before pools, budgets and steps cut it down";
    ModelAllowed, Operator, Gauge, Count, "flyball_model_allowed_replicas",
        ["target_namespace", "model", "end"],
        "Fewest (min) and most (max) replicas that the owner of a model allows";
    ModelReason, Operator, Gauge, Count, "flyball_model_reason",
        ["target_namespace", "model", "reason"],
        "Always 1, with why the model has the replicas it has";
    ModelBound, Operator, Gauge, Count, "flyball_model_bound",
        ["target_namespace", "model", "bound"],
        "Always 1, with what set the number of replicas";
    ModelCondition, Operator, Gauge, Count, "flyball_model_condition",
        ["target_namespace", "model", "condition"],
        "1 if a condition of the model holds, 0 if not; absent while that is unknown";
    ModelDemand, Operator, Gauge, Count, "flyball_model_demand_tokens_per_second",
        ["target_namespace", "model", "work"],
        "Tokens that arrive to be read (prefill) and that are written (decode) in a second, as last seen";
    ModelBacklog, Operator, Gauge, Count, "flyball_model_backlog_tokens",
        ["target_namespace", "model"],
        "Tokens of work that wait to be started, as last seen";
    ModelCapacity, Operator, Gauge, Count, "flyball_model_capacity_tokens_per_second",
        ["target_namespace", "model", "variant", "work", "end"],
        "What one replica of a variant can read (prefill) and write (decode), with its interval: low, point, high";
    ModelColdStart, Operator, Gauge, Seconds, "flyball_model_cold_start_seconds",
        ["target_namespace", "model", "variant", "end"],
        "From asking for a replica until it serves, with its interval: low, point, high";
    ModelOldestWait, Operator, Gauge, Seconds, "flyball_model_oldest_replica_seconds",
        ["target_namespace", "model", "state"],
        "How long the oldest replica in a state has been in it, of those that do not serve";
    ModelAttainment, Operator, Gauge, Count, "flyball_model_attainment_ratio",
        ["target_namespace", "model", "kind"],
        "Part of the last hour's requests that met the objectives (met), and that should (wanted)";
    ModelHourlyCost, Operator, Gauge, Count, "flyball_model_hourly_cost",
        ["target_namespace", "model"],
        "What an hour of the replicas that run costs, in the currency of their pools";
    ModelRecommendedCost, Operator, Gauge, Count, "flyball_model_recommended_hourly_cost",
        ["target_namespace", "model"],
        "What an hour of the replicas that a model should have costs";
    ModelSignals, Operator, Gauge, Count, "flyball_model_signal_trust",
        ["target_namespace", "model", "signal"],
        "How far a signal is trusted: 0 fresh, 1 stale, 2 missing";
    ModelSignalAge, Operator, Gauge, Seconds, "flyball_model_oldest_signal_seconds",
        ["target_namespace", "model"],
        "Age of the oldest signal that the last decision was made on, of those that were ever seen";
    PoolGpus, Operator, Gauge, Count, "flyball_pool_gpus", ["pool", "kind"],
        "Accelerators of a pool: on nodes that can be used (there), held by pods (used), those of them that are no replicas (others), the most there may be (limit)";
    PoolHourlyCost, Operator, Gauge, Count, "flyball_pool_hourly_cost", ["pool"],
        "What an hour of the accelerators that are there costs, in the pool's currency";
    OperatorDecidedAt, Operator, Gauge, Seconds, "flyball_operator_last_decision_timestamp_seconds",
        [], "When the last decision was made, in seconds since 1970";
    OperatorHeardAt, Operator, Gauge, Seconds, "flyball_operator_last_heard_timestamp_seconds",
        ["input"],
        "When an input was last heard, in seconds since 1970: prometheus, gateway; absent if never";
    OperatorLeads, Operator, Gauge, Count, "flyball_operator_leads", [],
        "Whether this operator leads and writes";
    OperatorFrozen, Operator, Gauge, Count, "flyball_operator_frozen", [],
        "1 while a person has frozen everything, 0 otherwise";
    OperatorGateways, Operator, Gauge, Count, "flyball_operator_gateways", [],
        "Gateways that are connected";
    OperatorSilentGateways, Operator, Gauge, Count, "flyball_operator_silent_gateways", [],
        "Gateways that exist as far as is known and told nothing lately; nothing scales down on what they serve";
    OperatorTick, Operator, Gauge, Seconds, "flyball_operator_tick_seconds", [],
        "How far rounds should be apart";
    OperatorRound, Operator, Histogram, Seconds, "flyball_operator_round_seconds", [],
        "How long rounds took: a look, a decision, its writes";
    OperatorStepSeconds, Operator, Gauge, Seconds, "flyball_operator_step_seconds", ["step"],
        "How long a step of the last round took";
    OperatorDecisions, Operator, Counter, Count, "flyball_operator_decisions_total", ["reason"],
        "Decisions that were not like the one before, by reason";
    OperatorErrors, Operator, Counter, Count, "flyball_operator_errors_total", ["step", "error"],
        "Errors, by the step that failed and how: away, forbidden, moved, not-leading, refused";
    OperatorWrites, Operator, Counter, Count, "flyball_operator_writes_total", ["kind"],
        "Writes to the API server";
    OperatorWatchFailures, Operator, Counter, Count, "flyball_operator_watch_failures_total", [],
        "Watches of the API server that broke; they begin again by themselves";
}

impl Metric {
    /// The name without the suffix of its kind, which the text format adds again.
    pub(super) fn family_name(self) -> &'static str {
        self.name().strip_suffix(self.kind().suffix()).unwrap_or(self.name())
    }
}
