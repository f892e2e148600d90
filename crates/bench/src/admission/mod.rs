//! `cargo xtask bench admission`: whether callers who share engines are treated as promised.
//!
//! Callers are those of `crates/proving` (`proving-callers`), engines are emulated, gateways are the
//! real program. Sections in order: `fair` (one floods, nine chat), `overload` (three times what
//! the engines bear), `split` (canaries and mirrors), `soak` (everything at once, with faults, for
//! an hour), `batch` (what interactive callers feel of batch work beside them). Start at `rig.rs`, which starts what is needed; `report.rs` reads what callers found.

mod batch;
mod fair;
mod overload;
mod report;
mod rig;
mod soak;
mod split;
mod watch;

use crate::documents;
use crate::page::{Measured, MeasuredPage};
use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use rig::Rig;
use std::path::{Path, PathBuf};

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only these sections; without, all but the soak, which is an hour and must be named
    #[arg(long, value_delimiter = ',')]
    only: Vec<Name>,
    /// Shorter runs, nothing written; fails where a figure is worse than on record
    #[arg(long)]
    quick: bool,
    /// Write the figures and docs/benchmarks-admission.md
    #[arg(long, conflicts_with = "quick")]
    figure: bool,
    /// Measure the peers in the short form too
    #[arg(long)]
    peers: bool,
    /// Folder with `flyball` and the programs of `proving`; they are built if this is not given
    #[arg(long)]
    programs: Option<PathBuf>,
    /// Length of the soak
    #[arg(long)]
    minutes: Option<f64>,
    /// Seed of load and faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The sections, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Name {
    Fair,
    Overload,
    Split,
    Soak,
    Batch,
}

impl Name {
    const fn title(self) -> &'static str {
        match self {
            Self::Fair => "One caller floods, nine chat",
            Self::Overload => "Three times what the engines bear",
            Self::Split => "A split of 10 %, sticky sessions, a mirror",
            Self::Soak => "Mixed load with hang-ups and a fault a minute",
            Self::Batch => "Batch work beside interactive callers",
        }
    }
}

pub(super) fn run(root: &Path, args: &Args) -> Result<()> {
    let command = "cargo xtask bench admission --figure";
    let mut page = MeasuredPage::new(documents::ADMISSION, command, args.figure);
    let mut rig = Rig::new(root, args)?;
    for name in Name::value_variants().iter().copied() {
        let named = args.only.contains(&name);
        if !named && (name == Name::Soak || !args.only.is_empty()) {
            continue;
        }
        let measured = section(&mut rig, args, name)?;
        page.add(root, name as u8, name.title(), measured)?;
    }
    page.finish(root, args.quick)
}

fn section(rig: &mut Rig, args: &Args, name: Name) -> Result<Measured> {
    match name {
        Name::Fair => fair::measured(rig, args.peers || !args.quick),
        Name::Overload => overload::measured(rig),
        Name::Split => split::measured(rig),
        Name::Batch => batch::measured(rig),
        Name::Soak => {
            let usual = if args.quick { 2.0 } else { 60.0 };
            soak::measured(rig, args.minutes.unwrap_or(usual))
        }
    }
}
