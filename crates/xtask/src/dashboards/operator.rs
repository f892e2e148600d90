//! The board of the operator itself: who leads, how rounds go, what is written, and what it hears.

use super::board::{Board, Choice};
use super::panels::{Alarm, Panel, Row, lines, stat};

const ANY: &str = r#"{instance=~"$instance"}"#;

/// The whole board.
pub(super) fn board() -> Board {
    Board {
        file: "operator",
        uid: "flyball-operator",
        title: "Flyball / Operator",
        about: "The operator itself: leadership, rounds, writes and their errors, broken rules, inputs.",
        choices: vec![Choice::several("instance", "flyball_operator_leads")],
        rows: rows(),
    }
}

fn rows() -> Vec<Row> {
    let row = |title, panels| Row { title, panels };
    vec![
        row("Is all well?", glance()),
        row("Rounds", rounds()),
        row("Writes", writes()),
        row("Inputs", inputs()),
        row("Should be zero", should_be_zero()),
    ]
}

fn rate(name: &str, labels: &str) -> String {
    format!("sum by ({labels}) (rate(flyball_operator_{name}{ANY}[$__rate_interval]))")
}

fn quantile(at: &str) -> String {
    format!(
        "histogram_quantile({at}, sum by (le) (rate(flyball_operator_round_seconds_bucket{ANY}[$__rate_interval])))"
    )
}

fn glance() -> Vec<Panel> {
    vec![
        stat(
            "Leaders",
            "Should be 1. With 0 nothing is written; several cannot be for longer than a lease.",
            "short",
            "sum(flyball_operator_leads)",
        )
        .red(Alarm::Below(1.0)),
        stat(
            "Last decision",
            "How long ago; should be about a tick.",
            "s",
            "time() - max(flyball_operator_last_decision_timestamp_seconds)",
        )
        .red(Alarm::From(120.0)),
        stat(
            "Models",
            "ModelServices that are looked after.",
            "short",
            r#"count(max by (target_namespace, model) (flyball_model_condition{condition="Ready"}))"#,
        ),
        stat(
            "Gateways",
            "Connected to the operator that leads.",
            "short",
            "max(flyball_operator_gateways)",
        ),
        stat(
            "Frozen",
            "1 while a person has frozen everything.",
            "short",
            "max(flyball_operator_frozen)",
        )
        .red(Alarm::From(1.0)),
        stat(
            "Rules broken",
            "Decisions of the last day that broke a rule. Should be 0.",
            "short",
            "sum(increase(flyball_invariant_violations_total[1d]))",
        )
        .red(Alarm::From(1.0)),
    ]
}

fn rounds() -> Vec<Panel> {
    vec![
        lines(
            "How long a round takes",
            "A look, a decision, its writes. Above the tick, decisions come late.",
            "s",
            [
                (quantile("0.5"), "p50"),
                (quantile("0.99"), "p99"),
                (format!("max(flyball_operator_tick_seconds{ANY})"), "tick"),
            ],
        ),
        lines(
            "By step",
            "The last round's steps.",
            "s",
            [(format!("max by (step) (flyball_operator_step_seconds{ANY})"), "{{step}}")],
        )
        .stacked(),
        lines(
            "Leads",
            "Which operator leads.",
            "short",
            [(format!("max by (instance) (flyball_operator_leads{ANY})"), "{{instance}}")],
        )
        .in_bars(),
    ]
}

fn writes() -> Vec<Panel> {
    vec![
        lines(
            "Writes",
            "To the API server, each second, by kind.",
            "cps",
            [(rate("writes_total", "kind"), "{{kind}}")],
        )
        .stacked(),
        lines(
            "Errors",
            "Moved: the world changed meanwhile, the next round sees it. Forbidden: the chart gave no right to act.",
            "cps",
            [(format!("{} > 0", rate("errors_total", "step, error")), "{{step}}: {{error}}")],
        ),
        lines(
            "Decisions",
            "That were not like the one before, by reason.",
            "cps",
            [(format!("{} > 0", rate("decisions_total", "reason")), "{{reason}}")],
        )
        .stacked(),
    ]
}

fn inputs() -> Vec<Panel> {
    vec![
        lines(
            "Last heard",
            "Seconds since each input was last heard.",
            "s",
            [(
                "time() - max by (input) (flyball_operator_last_heard_timestamp_seconds)",
                "{{input}}",
            )],
        ),
        lines(
            "Gateways",
            "Connected, by operator. Gateways talk to the one that leads.",
            "short",
            [(format!("max by (instance) (flyball_operator_gateways{ANY})"), "{{instance}}")],
        ),
        lines(
            "Oldest signals",
            "The ten models with the oldest.",
            "s",
            [(
                "topk(10, max by (target_namespace, model) (flyball_model_oldest_signal_seconds))",
                "{{target_namespace}}/{{model}}",
            )],
        ),
    ]
}

fn should_be_zero() -> Vec<Panel> {
    vec![
        lines(
            "Rules broken",
            "Decisions that broke a rule of docs/invariants.md, by its id.",
            "short",
            [(
                "sum by (invariant) (increase(flyball_invariant_violations_total[$__rate_interval]))",
                "{{invariant}}",
            )],
        ),
        lines(
            "Watches that broke",
            "They begin again by themselves; what was listed last is used meanwhile.",
            "short",
            [(
                format!(
                    "sum(increase(flyball_operator_watch_failures_total{ANY}[$__rate_interval]))"
                ),
                "watches",
            )],
        ),
        lines(
            "Models in doubt",
            "Models of which a signal is stale or missing.",
            "short",
            [(
                "count(max by (target_namespace, model) (flyball_model_signal_trust) > 0) or vector(0)",
                "models",
            )],
        ),
    ]
}
