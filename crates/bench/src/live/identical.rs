//! A recorded stream of readings on the operator's way and on the simulator's: the test of `proving` holds both, and
//! says how many pictures are the same.

use crate::figures::Op;
use crate::page::{Measured, measure as figure};
use crate::process;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

const TEST: &str = "readings::one_recorded_stream_gives_the_same_pictures_on_both_ways";

/// Runs the test, and reads what it counted.
pub(super) fn measure(root: &Path) -> Result<Measured> {
    let mut cargo = Command::new("cargo");
    // Everybody's tests, of which one is run: as CI builds them, and not once more with other features.
    cargo.current_dir(root).args(["test", "--locked", "--quiet", "--workspace", "--test", "it"]);
    cargo.args([TEST, "--", "--exact", "--nocapture"]);
    let printed = process::read(&mut cargo)?;
    let counts =
        printed.lines().find_map(counted).context("the test has not said what it counted")?;
    let percent = 100.0 * counts.0 / counts.1.max(1.0);
    let text = format!(
        "What an operator read of `live-step` on the cluster, look by look, as its setting `readings` writes it \
         (`crates/proving/tests/it/readings`). It goes through the operator's code to pictures, and through the \
         simulator's: {} of {} pictures are the same to the last digit.\n",
        counts.0, counts.1
    );
    Ok(Measured {
        text,
        figures: vec![figure("estimator.identical_pct", percent, "%", Op::AtLeast, 100.0)],
    })
}

/// `identical 60 of 61`.
fn counted(line: &str) -> Option<(f64, f64)> {
    let (same, all) = line.trim().strip_prefix("identical ")?.split_once(" of ")?;
    Some((same.parse().ok()?, all.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_test_counted_is_read() {
        assert_eq!(counted("identical 60 of 61"), Some((60.0, 61.0)));
        assert_eq!(counted("test result: ok"), None);
    }
}
