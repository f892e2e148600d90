//! `cargo xtask models`: how many shapes of public models come with the program.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use flyball_perf::architecture::{Architecture, Stored};
use flyball_perf::models;
use flyball_perf::precision::Dtype;

use crate::figures::{self, FigureTarget, Op};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write `plan.models` to docs/figures
    #[arg(long)]
    figure: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut shapes = BTreeSet::new();
    let mut families: BTreeMap<String, usize> = BTreeMap::new();
    for known in models::all() {
        let model = Architecture::from_config(known.config)
            .with_context(|| format!("reading {}", known.name))?;
        // One that is only stored otherwise is not another model.
        let shape = Architecture { stored: Stored::uniform(Dtype::Bf16), ..model };
        if shapes.insert(format!("{shape:?}")) {
            *families.entry(shape.family).or_default() += 1;
        }
    }
    for (family, count) in &families {
        println!("{count:4}  {family}");
    }
    let aliases: usize = models::all().iter().map(|known| known.aliases.len()).sum();
    println!("{} shapes of {} families, {aliases} more ids", shapes.len(), families.len());
    if args.figure {
        let target = FigureTarget { op: Op::AtLeast, value: 120.0 };
        let command = "cargo xtask models --figure";
        figures::write("plan.models", shapes.len() as f64, "shapes", target, command)?;
    }
    Ok(())
}
