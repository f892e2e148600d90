//! Public traces, read in place where they are; elsewhere these tests say so and are skipped.
//!
//! What they must say was measured independently, in Python, from the same files.

use std::path::PathBuf;

use super::load::{Loaded, Traffic, open};
use super::{Rates, Trace};

/// The file beside the checkout, or in the folder that `FLYBALL_SHARED` names.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn shared(file: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let folder = std::env::var_os("FLYBALL_SHARED").map_or(PathBuf::from(beside), PathBuf::from);
    let path = folder.join("traces").join(file);
    let there = path.exists();
    if !there {
        eprintln!("skipped: {} is not there", path.display());
    }
    there.then_some(path)
}

pub(crate) fn shared_trace(file: &str) -> Option<Trace> {
    let loaded = open(&shared(file)?).unwrap();
    match loaded.parts.into_iter().next().unwrap().traffic {
        Traffic::Trace(trace) => Some(trace),
        Traffic::Rates(_) => panic!("{file} has single requests"),
    }
}

pub(crate) fn shared_rates() -> Option<Loaded> {
    Some(open(&shared("servegen_rates.tar.gz")?).unwrap())
}

pub(crate) fn rates_of<'a>(loaded: &'a Loaded, model: &str) -> &'a Rates {
    match &loaded.part(Some(model)).unwrap().traffic {
        Traffic::Rates(rates) => rates,
        Traffic::Trace(_) => panic!("{model} has rates"),
    }
}

#[test]
fn servegen_has_the_gaps_that_were_counted() {
    let Some(loaded) = shared_rates() else { return };
    assert_eq!((loaded.parts.len(), loaded.tally.unread), (5, 0));
    // Near zero windows and their runs, counted with one fifth of the median as the limit.
    for (model, clients, windows, runs) in [
        ("language/m-large", 162, 0, 0),
        ("language/m-mid", 109, 102, 8),
        ("language/m-small", 43, 37, 12),
        ("reason/deepseek-r1", 73, 0, 0),
        ("multimodal/mm-image", 35, 0, 0),
    ] {
        let mut rates = rates_of(&loaded, model).clone();
        assert_eq!(rates.clients.len(), clients, "{model}");
        assert_eq!((rates.mask_gaps(), rates.gaps.len()), (windows, runs), "{model}");
    }
    let large = rates_of(&loaded, "language/m-large");
    let totals: Vec<f64> = (0..large.windows()).map(|window| large.total(window)).collect();
    let mean = totals.iter().sum::<f64>() / totals.len() as f64;
    let peak = totals.iter().copied().fold(0.0, f64::max);
    assert!((mean - 195.84).abs() < 0.01, "{mean}");
    assert!((peak / mean - 2.977).abs() < 0.001, "{peak}");
}

#[test]
fn no_public_trace_of_single_requests_has_a_gap() {
    for (file, requests) in [
        ("azure_llm_2023_conv.csv.gz", 19_366),
        ("azure_llm_2023_code.csv.gz", 8_819),
        ("mooncake_conversation.jsonl.gz", 12_031),
        ("mooncake_synthetic.jsonl.gz", 3_993),
    ] {
        let Some(mut trace) = shared_trace(file) else { return };
        assert_eq!((trace.requests.len(), trace.mask_gaps()), (requests, 0), "{file}");
    }
}
