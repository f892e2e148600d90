//! `cargo xtask bench wrong-capacity`: what becomes of a governor whose capacity is wrong or unknown, or whose
//! engines or requests change, beside one that knew, and beside rivals that know no capacity at all.
//!
//! `worlds` makes the worlds, `play` runs them, and `restart` replaces the process that decides, by the program
//! that users have. What comes in the first quarter of an hour after the beginning or the change is not judged.

mod play;
mod restart;
mod worlds;

use crate::documents;
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::parallel;
use anyhow::Result;
use clap::Args as ClapArgs;
use play::{Came, Player};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use worlds::{CASES, Case, MOST, WORLDS};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Write the figures and docs/benchmarks.md
    #[arg(long)]
    figure: bool,
    /// Seeds of each world
    #[arg(long, default_value_t = 3)]
    seeds: u64,
    /// The `flyball` that is restarted; built if not given
    #[arg(long, value_name = "PROGRAM")]
    flyball: Option<PathBuf>,
}

/// Its place in the page, after those of `backtest`.
const PLACE: u8 = 8;
const TITLE: &str = "Wrong and unknown capacity";

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let command = "cargo xtask bench wrong-capacity --figure";
    let mut page = MeasuredPage::new(documents::BACKTEST, command, args.figure);
    page.add(root, PLACE, TITLE, measured(root, args)?)?;
    page.finish(root, false)
}

fn measured(root: &Path, args: &Args) -> Result<Measured> {
    let mut jobs = Vec::new();
    for world in WORLDS {
        for case in CASES {
            for player in Player::ALL {
                jobs.push((world, *case, *player));
            }
        }
    }
    let came = parallel::map(&jobs, |(world, case, player)| {
        let seeds: Result<Vec<Came>> =
            (1..=args.seeds).map(|seed| play::play(world, *case, *player, seed)).collect();
        seeds.map(|seeds| Came::of(&seeds))
    });
    let mut rows: Vec<Row> = Vec::new();
    for ((world, case, player), came) in jobs.iter().zip(came) {
        let came = came?;
        if *player == Player::Knew {
            rows.push(Row { world: world.name, case: *case, knew: came, others: Vec::new() });
        } else if let Some(row) = rows.last_mut() {
            row.others.push((*player, came));
        }
    }
    let handed_on = restart::measured(root, args.flyball.as_deref())?;
    let missed = rows.iter().map(|row| row.governor().missed / play::ALLOWED).fold(0.0, f64::max);
    let cost = rows.iter().map(Row::cost_ratio).fold(0.0, f64::max);
    Ok(Measured {
        text: text(&rows, args.seeds, &handed_on),
        figures: vec![
            measure(
                "governor.wrong_capacity_missed_ratio",
                round(missed),
                "times",
                Op::AtMost,
                1.2,
            ),
            measure("governor.wrong_capacity_cost_ratio", round(cost), "times", Op::AtMost, 1.15),
            measure(
                "operator.restart_divergence",
                handed_on.divergence as f64,
                "decisions",
                Op::Exactly,
                0.0,
            ),
            measure(
                "governor.memory_bytes_per_model",
                handed_on.bytes as f64,
                "bytes",
                Op::AtMost,
                4096.0,
            ),
        ],
    })
}

/// One world and what went wrong in it.
struct Row {
    world: &'static str,
    case: Case,
    knew: Came,
    others: Vec<(Player, Came)>,
}

impl Row {
    fn governor(&self) -> Came {
        let own = self.others.iter().find(|(player, _)| *player == Player::Governor);
        own.map_or(self.knew, |(_, came)| *came)
    }

    fn cost_ratio(&self) -> f64 {
        self.governor().replica_hours / self.knew.replica_hours
    }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn text(rows: &[Row], seeds: u64, handed_on: &restart::HandedOn) -> String {
    let mut text = format!(
        "Traffic of some six replicas that grows to ten in an hour, request by request, {seeds} seeds; one request in \
         a hundred may miss. Judged is what comes a quarter of an hour after the beginning, or after the change. \
         \"knew\" is the governor that is told the right capacity, and at a change the new one. `hpa-running` is set \
         up with the requests that a replica really carries, and `llm-d-slo` follows latencies. \
         What {MOST} replicas miss, nobody can avoid. Missed / replica-hours.\n\n\
         | World | What is wrong | knew | governor | cost over knew | hpa-running | llm-d-slo | static@{MOST} |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    let show = |came: Came| format!("{:.2} % / {:.2}", 100.0 * came.missed, came.replica_hours);
    for row in rows {
        let rival = |player: Player| {
            let own = row.others.iter().find(|(other, _)| *other == player);
            own.map_or_else(String::new, |(_, came)| show(*came))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {:.2} | {} | {} | {} |",
            row.world,
            row.case.words(),
            show(row.knew),
            show(row.governor()),
            row.cost_ratio(),
            rival(Player::HpaRunning),
            rival(Player::LlmdSlo),
            rival(Player::Most),
        );
    }
    let _ = writeln!(
        text,
        "\nA restart in the middle of the wave (`scenarios/live-wave.toml`, {} moments): {} decisions of {} differ \
         from those without it. The longest `status.learnt` that was handed on, also at the end of these worlds: {} \
         bytes.",
        handed_on.moments, handed_on.divergence, handed_on.decisions, handed_on.bytes
    );
    text
}
