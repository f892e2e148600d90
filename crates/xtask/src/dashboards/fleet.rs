//! The board of all models: what they have, what they should have, what holds them up, what it costs.
//!
//! Every operator shows every model, so that each query takes the largest of what they say.

use super::board::{Board, Choice};
use super::panels::{Alarm, Panel, Row, lines, stat, table};

/// The whole board.
pub(super) fn board() -> Board {
    Board {
        file: "operator-fleet",
        uid: "flyball-fleet",
        title: "Flyball / Fleet",
        about: "All models that Flyball looks after: replicas, reasons, cost, and what is held up.",
        choices: vec![Choice::several("target_namespace", "flyball_model_reason")],
        rows: rows(),
    }
}

fn rows() -> Vec<Row> {
    let row = |title, panels| Row { title, panels };
    vec![
        row("Is all well?", glance()),
        row("Each model", vec![each()]),
        row("Replicas", replicas()),
        row("Why", why()),
        row("What is held up", held_up()),
        row("Money", money()),
        row("Pools", pools()),
    ]
}

/// A gauge of each model, as the operator that says most says it; `more` are further matchers.
fn of(name: &str, more: &str) -> String {
    by(name, more, "target_namespace, model")
}

fn by(name: &str, more: &str, labels: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!(
        "max by ({labels}) (flyball_model_{name}{{target_namespace=~\"$target_namespace\"{comma}{more}}})"
    )
}

fn sum(name: &str, more: &str) -> String {
    format!("sum({})", of(name, more))
}

/// Models of which a condition is so (1) or not so (0); none is 0.
fn count(condition: &str, so: u8) -> String {
    let matcher = format!("condition=\"{condition}\"");
    format!("count({} == {so}) or vector(0)", of("condition", &matcher))
}

fn state(state: &str) -> String {
    format!("state=\"{state}\"")
}

fn glance() -> Vec<Panel> {
    vec![
        stat(
            "Models",
            "ModelServices that are looked after.",
            "short",
            format!("count({})", of("condition", "condition=\"Ready\"")),
        ),
        stat("Not ready", "Models whose condition Ready is False.", "short", count("Ready", 0))
            .red(Alarm::From(1.0)),
        stat(
            "Stalled",
            "Models that a person must help: a wrong spec, no workload, a rival.",
            "short",
            count("Stalled", 1),
        )
        .red(Alarm::From(1.0)),
        stat("Replicas that serve", "Of all models.", "short", sum("replicas", &state("Ready"))),
        stat(
            "Replicas that should serve",
            "What Flyball decided or recommends.",
            "short",
            sum("recommended_replicas", ""),
        ),
        stat(
            "Cost of an hour",
            "Of what runs, where prices are known; in the currency of the pools.",
            "short",
            sum("hourly_cost", ""),
        ),
    ]
}

fn each() -> Panel {
    table(
        "Models",
        "One row each. The name leads to the model's own board.",
        [
            (by("reason", "", "target_namespace, model, reason"), ""),
            (of("recommended_replicas", ""), "should have"),
            (of("replicas", &state("Ready")), "ready"),
            (of("replicas", &state("Starting")), "starting"),
            (of("replicas", &state("Pending")), "pending"),
            (of("replicas", &state("Draining")), "draining"),
            (format!("100 * {}", of("attainment_ratio", "kind=\"met\"")), "in time, %"),
            (of("hourly_cost", ""), "cost/h"),
            (of("recommended_hourly_cost", ""), "recommended/h"),
        ],
    )
}

fn replicas() -> Vec<Panel> {
    vec![
        lines(
            "Wanted and there",
            "Wanted: what demand asks for. Should have: what pools, budgets and steps leave of it. Ready below that for longer than a cold start: something is held up.",
            "short",
            [
                (sum("wanted_replicas", ""), "wanted"),
                (sum("recommended_replicas", ""), "should have"),
                (sum("replicas", &state("Ready")), "ready"),
            ],
        ),
        lines(
            "By state",
            "Pending: no node yet. Starting: a node, but not ready. Draining: finishes what it has.",
            "short",
            [(format!("sum by (state) ({})", by("replicas", "", "target_namespace, model, state")), "{{state}}")],
        )
        .stacked(),
        lines(
            "Furthest behind",
            "The ten models that lack most of what they should have.",
            "short",
            [(
                format!(
                    "topk(10, {} - on (target_namespace, model) {} > 0)",
                    of("recommended_replicas", ""),
                    of("replicas", &state("Ready"))
                ),
                "{{target_namespace}}/{{model}}",
            )],
        ),
    ]
}

fn why() -> Vec<Panel> {
    let models = |name: &str| {
        format!("count by ({name}) ({})", by(name, "", &format!("target_namespace, model, {name}")))
    };
    vec![
        lines("Models by reason", "Why models have the replicas they have; `flyball explain REASON` tells more.", "short", [(models("reason"), "{{reason}}")]).stacked(),
        lines("Models by bound", "What set the number of replicas.", "short", [(models("bound"), "{{bound}}")]).stacked(),
        lines(
            "Decisions",
            "Decisions in a minute that were not like the one before.",
            "short",
            [("60 * sum by (reason) (rate(flyball_operator_decisions_total[$__rate_interval])) > 0", "{{reason}}")],
        )
        .stacked(),
    ]
}

fn held_up() -> Vec<Panel> {
    vec![
        lines(
            "Conditions that do not hold",
            "Models of which each is False.",
            "short",
            [(
                format!(
                    "count by (condition) ({} == 0)",
                    by(
                        "condition",
                        "condition!~\"Reconciling|Stalled\"",
                        "target_namespace, model, condition"
                    )
                ),
                "{{condition}}",
            )],
        ),
        lines(
            "Waits longest for a node",
            "The ten models whose oldest pending replica waits longest.",
            "s",
            [(
                format!("topk(10, {})", of("oldest_replica_seconds", &state("Pending"))),
                "{{target_namespace}}/{{model}}",
            )],
        ),
        lines(
            "Signals in doubt",
            "Models with a stale or missing signal. Their scale-down is paused.",
            "short",
            [(
                format!(
                    "count by (signal) ({} > 0)",
                    by("signal_trust", "", "target_namespace, model, signal")
                ),
                "{{signal}}",
            )],
        ),
    ]
}

fn money() -> Vec<Panel> {
    vec![
        lines(
            "Now and recommended",
            "What an hour costs, of models whose prices are known.",
            "short",
            [(sum("hourly_cost", ""), "now"), (sum("recommended_hourly_cost", ""), "recommended")],
        ),
        lines(
            "Dearest",
            "The ten models that cost most.",
            "short",
            [(format!("topk(10, {})", of("hourly_cost", "")), "{{target_namespace}}/{{model}}")],
        ),
        lines(
            "Could be saved",
            "What an hour costs now above what is recommended: the ten models with most.",
            "short",
            [(
                format!(
                    "topk(10, {} - on (target_namespace, model) {} > 0)",
                    of("hourly_cost", ""),
                    of("recommended_hourly_cost", "")
                ),
                "{{target_namespace}}/{{model}}",
            )],
        ),
    ]
}

fn pools() -> Vec<Panel> {
    let gpus = |kind: &str| format!("max by (pool) (flyball_pool_gpus{{kind=\"{kind}\"}})");
    vec![
        lines(
            "Accelerators",
            "There: on nodes that can be used. Used: held by pods.",
            "short",
            [
                (gpus("there"), "{{pool}}: there"),
                (gpus("used"), "{{pool}}: used"),
                (gpus("limit"), "{{pool}}: limit"),
            ],
        ),
        lines(
            "Used",
            "Share of the accelerators that are there.",
            "percentunit",
            [(format!("{} / ({} > 0)", gpus("used"), gpus("there")), "{{pool}}")],
        ),
        lines(
            "Cost of an hour",
            "Of the accelerators that are there, used or not.",
            "short",
            [("max by (pool) (flyball_pool_hourly_cost)", "{{pool}}")],
        ),
    ]
}
