//! `bench recorded`: recorded hours request by request, under the governor and under every rival, as a user would ask:
//! by `flyball backtest`.
//!
//! [`world`] lists them, [`play`] asks, [`verdict`] judges, [`table`] shows; [`mod@orders`] makes other orders of the same
//! requests, on which [`held_out`] judges again, and [`knee`] asks whether what a replica is said to carry is what it
//! carries.

mod held_out;
mod knee;
mod orders;
mod play;
mod table;
mod verdict;
mod world;

use crate::documents::{RECORDED, listed, typed};
use crate::figures::Op;
use crate::page::{Measured, MeasuredPage, measure};
use crate::{programs, sources};
use anyhow::{Result, ensure};
use clap::{Args as ClapArgs, ValueEnum};
use flyball_simulator::traffic::load::{LoadedPart, Traffic};
use flyball_simulator::traffic::{Trace, write};
use knee::Knee;
use play::Player;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use verdict::{Verdict, all};
use world::{Engines, MODELS, TRACES, World};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only worlds whose name contains this, as in `code 32b` or `@100`
    #[arg(long)]
    only: Option<String>,
    /// Only these traces: conv, code, mooncake, synthetic
    #[arg(long, value_delimiter = ',')]
    traces: Vec<String>,
    /// Only these parts of the page
    #[arg(long, value_delimiter = ',', value_enum)]
    parts: Vec<Part>,
    /// The folder with flyball; it is built if none is given
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Write the figures and docs/benchmarks-recorded.md
    #[arg(long, conflicts_with = "only")]
    figure: bool,
}

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Recorded hours as they were
    Worlds,
    /// The same requests in other orders
    Orders,
    /// What a replica is said to carry
    Capacity,
}

impl Part {
    const fn title(self) -> &'static str {
        match self {
            Self::Worlds => "Recorded hours, request by request",
            Self::Orders => "The same requests in other orders",
            Self::Capacity => "What a replica is said to carry",
        }
    }
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let traces = sources::shared(root)?.join("traces");
    let flyball = programs::flyball(root, args.bin.as_deref())?.join("flyball");
    let player = Player { flyball, traces };
    let mut page = MeasuredPage::new(RECORDED, &command(args), args.figure);
    for part in Part::value_variants().iter().copied() {
        if !args.parts.is_empty() && !args.parts.contains(&part) {
            continue;
        }
        let measured = match part {
            Part::Worlds => worlds(&player, args)?,
            Part::Orders => orders(&player)?,
            Part::Capacity => capacity(&player, args)?,
        };
        page.add(root, part as u8, part.title(), measured)?;
    }
    page.finish(root, false)
}

fn command(args: &Args) -> String {
    let options = [("--traces", args.traces.join(",")), ("--parts", listed(&args.parts))];
    typed("cargo xtask bench recorded", &options)
}

fn worlds(player: &Player, args: &Args) -> Result<Measured> {
    let is_chosen = |world: &World| {
        let only = |only: &String| world.to_string().contains(only.as_str());
        traced(args, world.trace.name) && args.only.as_ref().is_none_or(only)
    };
    let worlds: Vec<World> = world::all().into_iter().filter(is_chosen).collect();
    ensure!(!worlds.is_empty(), "no world is called so; hint: `conv 70b h100 @100` is one");
    let mut verdicts = Vec::new();
    for (n, world) in worlds.iter().enumerate() {
        let verdict =
            Verdict::of(world, &player.whole(world)?, &player.halves(world)?, &player.flow(world)?);
        println!("{}/{} {}", n + 1, worlds.len(), table::line(&verdict));
        verdicts.push(verdict);
    }
    let sums = all(&verdicts);
    let figures = vec![
        measure("sim.methods_agree_pct", sums.agree_pct, "%", Op::AtLeast, 95.0),
        measure("sim.below_clairvoyant", sums.below_clairvoyant, "replays", Op::Exactly, 0.0),
        measure("governor.worlds_kept_pct", sums.within_limit_pct, "%", Op::AtLeast, 100.0),
        measure("governor.worlds_cheapest_pct", sums.cheapest_pct, "%", Op::AtLeast, 90.0),
        measure("governor.worlds_worst_pct", sums.worst_pct, "%", Op::AtMost, 3.0),
    ];
    Ok(Measured { text: table::markdown(&verdicts, &sums), figures })
}

fn orders(player: &Player) -> Result<Measured> {
    let folder = programs::scratch("orders")?;
    let all = held_out::all(player, &folder, &|line| println!("{line}"))?;
    std::fs::remove_dir_all(folder)?;
    Ok(Measured { text: held_out::markdown(&all), figures: Vec::new() })
}

fn capacity(player: &Player, args: &Args) -> Result<Measured> {
    let folder = programs::scratch("knees")?;
    let mut knees: Vec<Knee> = Vec::new();
    for recorded in TRACES.iter().filter(|recorded| traced(args, recorded.name)) {
        let trace = held_out::trace(&player.traces.join(recorded.file))?;
        for model in &MODELS {
            for gpu in model.gpus {
                let engines = Engines { model: model.model, tensor: model.tensor, gpu };
                let knee = knee::find(player, &folder, (recorded, &trace), engines)?;
                let Knee { name, first_token, stated, found } = &knee;
                println!("{name} at {first_token} s: said {stated:.3}/s, found {found:.3}/s");
                knees.push(knee);
            }
        }
    }
    std::fs::remove_dir_all(folder)?;
    let off = knees.iter().map(Knee::off_pct).fold(0.0, f64::max);
    let figures = vec![measure("sim.capacity_vs_knee_pct", off, "%", Op::AtMost, 10.0)];
    Ok(Measured { text: table::knees(&knees), figures })
}

fn traced(args: &Args, name: &str) -> bool {
    args.traces.is_empty() || args.traces.iter().any(|one| one == name)
}

/// A trace as a file that `flyball backtest` reads.
fn written(folder: &Path, name: &str, trace: Trace) -> Result<PathBuf> {
    let path = folder.join(format!("{name}.jsonl"));
    let part = LoadedPart { model: None, traffic: Traffic::Trace(trace), lengths: None };
    write::jsonl(&[part], None, &mut BufWriter::new(File::create(&path)?))?;
    Ok(path)
}
