//! Random worlds under the operator's own code, by the thousand.

use crate::compile;
use crate::figures::{self, FigureTarget, Op};
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The test that runs them, and where.
const TEST: &str = "worlds::tests::no_rule_breaks_in_random_worlds";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Worlds
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// Write `trust.fault_seeds`: the worlds in which no rule broke
    #[arg(long)]
    figure: bool,
}

pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let mut nextest =
        compile::nextest(root, &format!("package(flyball-operator) and test(={TEST})"))?;
    nextest.env("FLYBALL_WORLD_SEEDS", args.seeds.to_string()).arg("--no-capture");
    let output = nextest.output().context("starting nextest")?;
    let printed = String::from_utf8_lossy(&output.stdout);
    print!("{printed}");
    let Some((tried, broken)) = printed.lines().find_map(counts) else {
        bail!("the worlds did not run:\n{}", String::from_utf8_lossy(&output.stderr));
    };
    if args.figure {
        let target = FigureTarget { op: Op::AtLeast, value: 1_000.0 };
        let command = "cargo xtask trust worlds --figure";
        figures::write("trust.fault_seeds", (tried - broken) as f64, "worlds", target, command)?;
    }
    if broken > 0 {
        bail!("{broken} of {tried} worlds broke a rule");
    }
    Ok(())
}

/// Worlds that were tried, and those in which a rule broke.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (tried, rest) = line.strip_prefix("worlds: ")?.split_once(" tried, ")?;
    Some((tried.parse().ok()?, rest.split_once(" broken")?.0.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_read_from_the_last_line() {
        assert_eq!(counts("worlds: 1000 tried, 3 broken; 200000 looks"), Some((1_000, 3)));
        assert_eq!(counts("seed 7: nothing"), None);
    }
}
