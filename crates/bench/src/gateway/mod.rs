//! `cargo xtask bench gateway`: what a request costs here and elsewhere, and what faults do to it.
//!
//! Programs are started as processes and watched from outside: load and bare upstream are those of
//! `crates/proving`, CPU time and memory are what the kernel says. Sections in order: `small` and
//! `large` (CPU per request), `chunks` (CPU per streamed chunk), `latency`, `streams` (10,000 at
//! once), `affinity`, `faults`, `emulator` (against the simulator), `regret` (of shadow policies).
//! Start at `cost.rs`; `contenders.rs` says who is measured, and the templates how each is set up.

mod affinity;
mod bench;
mod contenders;
mod cost;
mod emulator;
mod faults;
mod latency;
mod regret;
mod streams;

use crate::documents;
use crate::page::{Measured, MeasuredPage};
use crate::programs::{kernel, peers, running};
use anyhow::Result;
use bench::Bench;
use clap::{Args as ClapArgs, ValueEnum};
use cost::Shape;
use std::path::{Path, PathBuf};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only these sections
    #[arg(long, value_delimiter = ',')]
    only: Vec<Name>,
    /// Shorter rounds, nothing written; fails where a figure is worse than on record
    #[arg(long)]
    quick: bool,
    /// Write the figures and docs/benchmarks-gateway.md
    #[arg(long, conflicts_with = "quick")]
    figure: bool,
    /// Only install the peers into the cache folder
    #[arg(long)]
    peers: bool,
    /// Folder with `flyball` and the programs of `proving`; they are built if this is not given
    #[arg(long)]
    programs: Option<PathBuf>,
    /// An earlier `flyball`, measured beside this one in the same turns
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// More settings for a second gateway of this version, measured beside the first: Tenants of a cluster, say
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// Seed of the faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The sections, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Name {
    Small,
    Large,
    Chunks,
    Latency,
    Streams,
    Affinity,
    Faults,
    Emulator,
    Regret,
}

impl Name {
    const fn title(self) -> &'static str {
        match self {
            Self::Small => "CPU per request of 1 KB",
            Self::Large => "CPU per request of 400 KB",
            Self::Chunks => "CPU per streamed chunk",
            Self::Latency => "Added latency at half load",
            Self::Streams => "10,000 streams at once",
            Self::Affinity => "Prompts that find their beginnings cached",
            Self::Faults => "Faults under load",
            Self::Emulator => "The emulator against the simulator",
            Self::Regret => "Which policy would have been better",
        }
    }
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    if args.peers {
        peers::Peers::new()?.install();
        return Ok(());
    }
    let command = "cargo xtask bench gateway --figure";
    let mut page = MeasuredPage::new(documents::GATEWAY, command, args.figure);
    let mut bench = None;
    for name in Name::value_variants().iter().copied() {
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        let measured = section(root, &mut bench, args, name)?;
        page.add(root, name as u8, name.title(), measured)?;
    }
    page.finish(root, args.quick)
}

fn section(root: &Path, bench: &mut Option<Bench>, args: &Args, name: Name) -> Result<Measured> {
    let ready = || match bench {
        Some(bench) => Ok(bench),
        none => Bench::new(root, args).map(|made| none.insert(made)),
    };
    match name {
        Name::Small => cost::measured(ready()?, Shape::Small),
        Name::Large => cost::measured(ready()?, Shape::Large),
        Name::Chunks => cost::measured(ready()?, Shape::Stream),
        Name::Latency => latency::measured(ready()?),
        Name::Streams => streams::measured(ready()?),
        Name::Affinity => affinity::measured(ready()?, root),
        Name::Faults => faults::measured(ready()?, args.seed),
        Name::Regret => regret::measured(ready()?, root),
        // It needs none of the programs.
        Name::Emulator => emulator::run(root, args.quick),
    }
}
