//! The board of the gateway: first whether all is well, then each part in the order in which a
//! request meets it.

use super::board::{Board, Choice};
use super::panels::{Panel, Row, lines, stat};

/// The series of the chosen models and gateways.
const CHOSEN: &str = r#"{model=~"$model", instance=~"$instance"}"#;
const GEN_AI: &str = r#"gen_ai_request_model=~"$model", instance=~"$instance""#;
const ANY: &str = r#"{instance=~"$instance"}"#;

/// The whole board.
pub(super) fn board() -> Board {
    Board {
        file: "gateway",
        uid: "flyball-gateway",
        title: "Flyball / Gateway",
        about: "What Flyball's gateways do: requests, waits, engines, splits, callers.",
        choices: vec![
            Choice::several("instance", "flyball_gateway_in_flight"),
            Choice::several("model", "flyball_gateway_requests_total"),
        ],
        rows: rows(),
    }
}

fn rows() -> Vec<Row> {
    let row = |title, panels| Row { title, panels };
    vec![
        row("Is all well?", glance()),
        row("Requests", requests()),
        row("Waiting", waiting()),
        row("Engines", engines()),
        row("Splits: which arm is better", splits()),
        row("Second chances", recovery()),
        row("Callers", callers()),
        row("The gateway itself", itself()),
    ]
}

fn glance() -> Vec<Panel> {
    vec![
        stat("Requests", "Requests that end each second.", "reqps", rate("requests_total")),
        stat(
            "Bad",
            "Share of requests without a whole answer, mistakes of clients and hang-ups left out.",
            "percentunit",
            "max(flyball:gateway_bad:ratio_rate5m)",
        ),
        stat(
            "First token, p95",
            "95 of 100 answers begin at least this soon.",
            "s",
            quantile("0.95", "gen_ai_server_time_to_first_token_seconds", ""),
        ),
        stat("Waiting", "Requests that wait for a turn.", "short", sum("queued")),
        stat("Held", "Requests that wait for a model without an engine.", "short", sum("holding")),
        stat(
            "Engines open",
            "Engines that may get requests; each counted once, by the gateway that sees most.",
            "short",
            r#"max(flyball_gateway_engines{state="open"})"#,
        ),
    ]
}

fn requests() -> Vec<Panel> {
    vec![
        lines(
            "By outcome",
            "Refused: before an engine saw it. Failed: no engine answered. Broken: the answer broke off. Cancelled: the client hung up.",
            "reqps",
            [(by("requests_total", "outcome"), "{{outcome}}")],
        )
        .stacked(),
        lines(
            "Not answered, by reason",
            "The reasons that x-flyball-reason says.",
            "reqps",
            [(
                format!("sum by (reason) (rate(flyball_gateway_refused_total{ANY}[$__rate_interval])) > 0"),
                "{{reason}}",
            )],
        )
        .stacked(),
        lines("By model", "Requests that end each second.", "reqps", [(by("requests_total", "model"), "{{model}}")]),
        lines(
            "Time to first token, p95",
            "From a request's head to the first event of its answer.",
            "s",
            [(quantile("0.95", "gen_ai_server_time_to_first_token_seconds", "gen_ai_request_model"), "{{gen_ai_request_model}}")],
        ),
        lines(
            "Time per output token, p95",
            "How fast answers flow once they have begun.",
            "s",
            [(quantile("0.95", "gen_ai_server_time_per_output_token_seconds", "gen_ai_request_model"), "{{gen_ai_request_model}}")],
        ),
        lines(
            "Tokens",
            "Tokens each second; cached ones are part of input.",
            "short",
            [(
                format!("sum by (gen_ai_token_type) (rate(gen_ai_client_token_usage_sum{{{GEN_AI}}}[$__rate_interval]))"),
                "{{gen_ai_token_type}}",
            )],
        ),
    ]
}

fn waiting() -> Vec<Panel> {
    vec![
        lines(
            "In the queue",
            "Requests that wait for a turn.",
            "short",
            [(now("queued", "model", "sum"), "{{model}}")],
        ),
        lines(
            "Oldest",
            "How long the oldest request has waited. Rising in a straight line: nothing is taken from the queue.",
            "s",
            [(now("oldest_wait_seconds", "model", "max"), "{{model}}")],
        ),
        lines(
            "Wait for a turn, p95",
            "Requests that did not wait are among them.",
            "s",
            [(
                format!(
                    "histogram_quantile(0.95, sum by (le, model) (rate(flyball_gateway_queue_wait_seconds_bucket{CHOSEN}[$__rate_interval])))"
                ),
                "{{model}}",
            )],
        ),
        lines(
            "Backlog",
            "Prompt tokens of all that wait: the demand that an autoscaler sees.",
            "short",
            [(now("backlog_tokens", "model", "sum"), "{{model}}")],
        ),
        lines(
            "Held",
            "Requests that wait for a model without an engine.",
            "short",
            [(now("holding", "model", "sum"), "{{model}}")],
        ),
        lines(
            "Turned away",
            "Requests for which there was no room.",
            "reqps",
            [(
                r#"sum by (reason) (rate(flyball_gateway_refused_total{reason=~"overloaded|queue_full|queue_timeout|wake_timeout|gateway_full", instance=~"$instance"}[$__rate_interval]))"#,
                "{{reason}}",
            )],
        ),
    ]
}

fn engines() -> Vec<Panel> {
    vec![
        lines(
            "By state",
            "As the gateway that sees most of them sees them. Quarantined: ignores hang-ups. Broken: keeps failing.",
            "short",
            [(format!("max by (state) (flyball_gateway_engines{ANY})"), "{{state}}")],
        )
        .stacked(),
        lines(
            "Open, by model",
            "Engines that may get requests.",
            "short",
            [(
                r#"max by (model) (flyball_gateway_model_engines{state="open", model=~"$model", instance=~"$instance"})"#,
                "{{model}}",
            )],
        ),
        lines(
            "Prefix hits",
            "Share of prompt tokens that engines found in their caches.",
            "percentunit",
            [(
                format!(
                    "sum by (gen_ai_request_model) (rate(gen_ai_client_token_usage_sum{{gen_ai_token_type=\"cached\", {GEN_AI}}}[$__rate_interval])) / \
                     (sum by (gen_ai_request_model) (rate(gen_ai_client_token_usage_sum{{gen_ai_token_type=\"input\", {GEN_AI}}}[$__rate_interval])) > 0)"
                ),
                "{{gen_ai_request_model}}",
            )],
        ),
        lines(
            "Chosen by",
            "Affinity: an engine that may have the prompt cached. Load: none had, or all that had were too busy.",
            "reqps",
            [(format!("sum by (by) (rate(flyball_gateway_choices_total{ANY}[$__rate_interval]))"), "{{by}}")],
        )
        .stacked(),
        lines(
            "From a hang-up to a free slot, p99",
            "Proven with the engine's own counts. 250 ms is what we promise.",
            "s",
            [(
                format!("histogram_quantile(0.99, sum by (le) (rate(flyball_gateway_cancel_to_free_seconds_bucket{ANY}[$__rate_interval])))"),
                "p99",
            )],
        ),
        lines(
            "Regret of the policy",
            "Seconds by which first tokens come later than with a policy that only watches; below its margin it may be chance.",
            "s",
            [
                (now("shadow_regret_seconds", "model, policy", "max"), "{{model}}: {{policy}}"),
                (
                    now("shadow_regret_margin_seconds", "model, policy", "max"),
                    "{{model}}: {{policy}}, margin",
                ),
            ],
        ),
        lines(
            "Trouble",
            "Zombies: requests whose clients are gone. Silent: engines without a report of their load.",
            "short",
            [
                (format!("sum(flyball_gateway_zombies{ANY})"), "zombies"),
                (format!("max(flyball_gateway_silent_engines{ANY})"), "silent"),
                (format!("sum(increase(flyball_gateway_breaker_opened_total{ANY}[$__rate_interval]))"), "breakers opened"),
            ],
        ),
    ]
}

fn splits() -> Vec<Panel> {
    vec![
        lines(
            "Share of each arm",
            "What each model behind a name gets of its requests; compare it with the weights.",
            "percentunit",
            [(
                "sum by (split, model) (rate(flyball_gateway_split_requests_total[$__rate_interval])) / ignoring (model) group_left () \
                 (sum by (split) (rate(flyball_gateway_split_requests_total[$__rate_interval])) > 0)",
                "{{split}}: {{model}}",
            )],
        ),
        lines(
            "Bad, by model",
            "Share of requests without a whole answer.",
            "percentunit",
            [(r#"flyball:gateway_bad:ratio_rate5m{model=~"$model"}"#, "{{model}}")],
        ),
        lines(
            "How answers end",
            "A canary that stops at its limit more often, or calls tools less, has changed.",
            "percentunit",
            [(
                format!(
                    "sum by (model, reason) (rate(flyball_gateway_finish_total{CHOSEN}[$__rate_interval])) / ignoring (reason) group_left () \
                     (sum by (model) (rate(flyball_gateway_finish_total{CHOSEN}[$__rate_interval])) > 0)"
                ),
                "{{model}}: {{reason}}",
            )],
        ),
        lines(
            "Length of answers",
            "Output tokens, median and p95.",
            "short",
            [
                (tokens("0.5"), "p50 {{gen_ai_request_model}}"),
                (tokens("0.95"), "p95 {{gen_ai_request_model}}"),
            ],
        ),
        lines(
            "Time to first token, p50",
            "The typical request: where an arm is slower without being overloaded.",
            "s",
            [(
                quantile(
                    "0.5",
                    "gen_ai_server_time_to_first_token_seconds",
                    "gen_ai_request_model",
                ),
                "{{gen_ai_request_model}}",
            )],
        ),
        lines(
            "Copies",
            "Mirrored requests, whose answers nobody gets.",
            "reqps",
            [(by("mirrored_total", "model"), "{{model}}")],
        ),
    ]
}

fn recovery() -> Vec<Panel> {
    vec![
        lines(
            "Tried again",
            "Another engine was asked because one failed.",
            "reqps",
            [(by("retries_total", "model"), "{{model}}")],
        ),
        lines(
            "Hedged and continued",
            "A second engine because the first was slow; another because one broke off.",
            "reqps",
            [
                (by("hedged_total", "model"), "hedged {{model}}"),
                (by("continued_total", "model"), "continued {{model}}"),
            ],
        ),
        lines(
            "Kept answers",
            "Requests that no engine worked for.",
            "reqps",
            [(by("kept_answers_total", "model"), "{{model}}")],
        ),
    ]
}

fn callers() -> Vec<Panel> {
    vec![
        lines(
            "Most requests",
            "The ten callers with the most.",
            "reqps",
            [(
                format!(
                    "topk(10, sum by (caller) (rate(flyball_gateway_caller_requests_total{ANY}[$__rate_interval])))"
                ),
                "{{caller}}",
            )],
        ),
        lines(
            "Most tokens",
            "The ten callers with the most, input and output.",
            "short",
            [(
                r#"topk(10, sum by (caller) (rate(flyball_gateway_caller_tokens_total{token_type=~"input|output", instance=~"$instance"}[$__rate_interval])))"#,
                "{{caller}}",
            )],
        ),
        lines(
            "Refused",
            "Callers that were refused: wrong bodies, rates, no room.",
            "reqps",
            [(
                r#"topk(10, sum by (caller) (rate(flyball_gateway_caller_requests_total{outcome="refused", instance=~"$instance"}[$__rate_interval])))"#,
                "{{caller}}",
            )],
        ),
    ]
}

fn itself() -> Vec<Panel> {
    vec![
        lines(
            "Under way",
            "Requests and connections.",
            "short",
            [
                (format!("sum(flyball_gateway_in_flight{ANY})"), "requests"),
                (format!("sum(flyball_gateway_connections{ANY})"), "connections"),
            ],
        ),
        lines(
            "Until an engine is chosen, p99",
            "What the gateway, the body and the queue take.",
            "s",
            [(
                format!(
                    "histogram_quantile(0.99, sum by (le) (rate(flyball_gateway_chosen_seconds_bucket{ANY}[$__rate_interval])))"
                ),
                "p99",
            )],
        ),
        lines(
            "Bytes",
            "Bodies that come and answers that go each second, and bodies held in memory.",
            "bytes",
            [
                (
                    format!(
                        "sum(rate(flyball_gateway_received_bytes_total{ANY}[$__rate_interval]))"
                    ),
                    "received",
                ),
                (
                    format!("sum(rate(flyball_gateway_sent_bytes_total{ANY}[$__rate_interval]))"),
                    "sent",
                ),
                (format!("sum(flyball_gateway_held_bytes{ANY})"), "held"),
            ],
        ),
        lines(
            "Should be zero",
            "Refused settings, a collector or an operator that is away, watches that fail, models in doubt, lost log lines and spans.",
            "short",
            [
                (
                    format!("sum(1 - flyball_gateway_config_last_reload_successful{ANY})"),
                    "settings refused",
                ),
                (format!("sum(flyball_gateway_collector_away{ANY})"), "collector away"),
                (format!("sum(flyball_gateway_operator_away{ANY})"), "operator away"),
                (format!("sum(flyball_gateway_failing_watches{ANY})"), "watches fail"),
                (format!("sum(flyball_gateway_doubted_models{ANY})"), "models in doubt"),
                (
                    format!(
                        "sum(increase(flyball_gateway_telemetry_dropped_total{ANY}[$__rate_interval]))"
                    ),
                    "telemetry dropped",
                ),
                (
                    format!(
                        "sum(increase(flyball_gateway_cancels_ignored_total{ANY}[$__rate_interval]))"
                    ),
                    "cancels ignored",
                ),
            ],
        ),
    ]
}

/// A counter of the gateway per second, all models together.
fn rate(name: &str) -> String {
    format!("sum(rate(flyball_gateway_{name}{CHOSEN}[$__rate_interval]))")
}

/// A counter of the gateway per second, by a label.
fn by(name: &str, label: &str) -> String {
    format!("sum by ({label}) (rate(flyball_gateway_{name}{CHOSEN}[$__rate_interval]))")
}

/// A gauge of the gateway, added up.
fn sum(name: &str) -> String {
    format!("sum(flyball_gateway_{name}{CHOSEN})")
}

fn now(name: &str, label: &str, how: &str) -> String {
    format!("{how} by ({label}) (flyball_gateway_{name}{CHOSEN})")
}

fn quantile(quantile: &str, name: &str, label: &str) -> String {
    let labels = if label.is_empty() { "le".to_owned() } else { format!("le, {label}") };
    format!(
        "histogram_quantile({quantile}, sum by ({labels}) (rate({name}_bucket{{{GEN_AI}}}[$__rate_interval])))"
    )
}

fn tokens(at: &str) -> String {
    format!(
        "histogram_quantile({at}, sum by (le, gen_ai_request_model) (rate(gen_ai_client_token_usage_bucket{{gen_ai_token_type=\"output\", {GEN_AI}}}[$__rate_interval])))"
    )
}
