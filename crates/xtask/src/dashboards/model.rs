//! The board of one model: what is asked of it, what it can do, what it has, and why.

use super::board::{Board, Choice};
use super::panels::{Alarm, Panel, Row, lines, stat};

/// The whole board.
pub(super) fn board() -> Board {
    Board {
        file: "operator-model",
        uid: "flyball-model",
        title: "Flyball / Model",
        about: "One model: demand and forecast, capacity, replicas, objectives, cold starts, and why it has what it has.",
        choices: vec![
            Choice::one("target_namespace", "flyball_model_reason"),
            Choice::one("model", r#"flyball_model_reason{target_namespace="$target_namespace"}"#),
        ],
        rows: rows(),
    }
}

fn rows() -> Vec<Row> {
    let row = |title, panels| Row { title, panels };
    vec![
        row("Now", glance()),
        row("Demand", demand()),
        row("Capacity of one replica", capacity()),
        row("Replicas", replicas()),
        row("Objectives and cost", objectives()),
        row("Cold starts", starts()),
        row("Why", why()),
    ]
}

/// A gauge of the chosen model by labels; several operators say the same.
fn by(name: &str, more: &str, labels: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    let by = if labels.is_empty() { String::new() } else { format!(" by ({labels})") };
    format!(
        "max{by} (flyball_model_{name}{{target_namespace=\"$target_namespace\", model=\"$model\"{comma}{more}}})"
    )
}

fn of(name: &str, more: &str) -> String {
    by(name, more, "")
}

fn glance() -> Vec<Panel> {
    vec![
        stat(
            "Should have",
            "Replicas that Flyball decided or recommends.",
            "short",
            of("recommended_replicas", ""),
        ),
        stat("Ready", "Replicas that serve.", "short", of("replicas", "state=\"Ready\"")),
        stat(
            "On their way",
            "Replicas that were asked for and do not serve yet.",
            "short",
            format!(
                "{} + {}",
                of("replicas", "state=\"Pending\""),
                of("replicas", "state=\"Starting\"")
            ),
        ),
        stat(
            "In time",
            "Share of the last hour's requests that met the objectives.",
            "percentunit",
            of("attainment_ratio", "kind=\"met\""),
        ),
        stat(
            "Cold start",
            "From asking for a replica until it serves; the longest of the variants.",
            "s",
            of("cold_start_seconds", "end=\"point\""),
        ),
        stat(
            "Cost of an hour",
            "Of what runs; nothing if a price is not known.",
            "short",
            of("hourly_cost", ""),
        ),
    ]
}

fn demand() -> Vec<Panel> {
    vec![
        lines(
            "Work, in replicas",
            "From what the work of this moment takes (now) to what it will take at most before a replica asked for now has paid (forecast). Ready below now: requests wait.",
            "short",
            [
                (of("need_replicas", "kind=\"now\""), "now"),
                (of("need_replicas", "kind=\"ahead\""), "forecast"),
                (of("recommended_replicas", ""), "should have"),
                (of("replicas", "state=\"Ready\""), "ready"),
            ],
        )
        .filled("now", "forecast")
        .wide(12),
        lines("Tokens", "Tokens in a second: that arrive to be read (prefill), and that are written (decode).", "short", [(by("demand_tokens_per_second", "", "work"), "{{work}}")]).wide(6),
        lines("Backlog", "Tokens that wait to be started.", "short", [(of("backlog_tokens", ""), "tokens")]).wide(6),
    ]
}

fn capacity() -> Vec<Panel> {
    let work = |title, about, work: &str| {
        let end = |end: &str| {
            by("capacity_tokens_per_second", &format!("work=\"{work}\", end=\"{end}\""), "variant")
        };
        lines(
            title,
            about,
            "short",
            [
                (end("low"), "{{variant}}: low"),
                (end("point"), "{{variant}}"),
                (end("high"), "{{variant}}: high"),
            ],
        )
        .wide(12)
    };
    vec![
        work(
            "Reads",
            "Prompt tokens in a second within the objectives, with the interval that is believed. It narrows as engines are measured.",
            "prefill",
        ),
        work(
            "Writes",
            "Tokens of answers in a second within the objectives, with the interval that is believed.",
            "decode",
        ),
    ]
}

fn replicas() -> Vec<Panel> {
    let state = |state: &str| of("replicas", &format!("state=\"{state}\""));
    vec![
        lines("By state", "Pending: no node yet. Starting: a node, but not ready. Draining: finishes what it has.", "short", [(by("replicas", "", "state"), "{{state}}")]).stacked(),
        lines(
            "Wanted and there",
            "Wanted: what demand asks for. Should have: what pools, budgets and steps leave of it.",
            "short",
            [
                (of("wanted_replicas", ""), "wanted"),
                (of("recommended_replicas", ""), "should have"),
                (state("Ready"), "ready"),
                (by("allowed_replicas", "", "end"), "{{end}}"),
            ],
        ),
        lines("In doubt", "How far each signal is trusted: 0 fresh, 1 stale, 2 missing.", "short", [(by("signal_trust", "", "signal"), "{{signal}}")]),
    ]
}

fn objectives() -> Vec<Panel> {
    vec![
        lines(
            "In time",
            "Share of the last hour's requests that met the objectives, and the share that should.",
            "percentunit",
            [(by("attainment_ratio", "", "kind"), "{{kind}}")],
        )
        .zoomed()
        .wide(12),
        lines(
            "Cost of an hour",
            "Of what runs, and of what is recommended.",
            "short",
            [(of("hourly_cost", ""), "now"), (of("recommended_hourly_cost", ""), "recommended")],
        )
        .wide(12),
    ]
}

fn starts() -> Vec<Panel> {
    let end = |end: &str| by("cold_start_seconds", &format!("end=\"{end}\""), "variant");
    vec![
        lines("From asking to serving", "Measured on pods once three have started, stated before. High is the 95th of 100.", "s", [(end("low"), "{{variant}}: low"), (end("point"), "{{variant}}"), (end("high"), "{{variant}}: high")]).wide(12),
        lines("Oldest that does not serve", "How long the oldest replica has been in its state. Pending above a cold start: no room.", "s", [(by("oldest_replica_seconds", "", "state"), "{{state}}")]).wide(12),
    ]
}

fn why() -> Vec<Panel> {
    vec![
        lines(
            "Reason",
            "Which reason held when; `flyball why MODEL --at TIME` tells it in words.",
            "short",
            [(by("reason", "", "reason"), "{{reason}}")],
        )
        .in_bars(),
        lines(
            "Bound",
            "What set the number of replicas.",
            "short",
            [(by("bound", "", "bound"), "{{bound}}")],
        )
        .in_bars(),
        lines(
            "Conditions",
            "1: so, 0: not so.",
            "short",
            [(by("condition", "condition!~\"Reconciling|Stalled\"", "condition"), "{{condition}}")],
        )
        .in_bars()
        .red(Alarm::Below(1.0)),
    ]
}
