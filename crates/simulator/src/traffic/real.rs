//! Public traces, read in place where they are; elsewhere these tests say so and are skipped.
//!
//! What they must say was measured independently, in Python, from the same files.

use std::path::PathBuf;

use super::fit::fit;
use super::generate::generate;
use super::load::{Loaded, Traffic, open};
use super::reuse::Reuse;
use super::shape::TrafficShape;
use super::{Trace, TrafficRates};

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

pub(crate) fn rates_of<'a>(loaded: &'a Loaded, model: &str) -> &'a TrafficRates {
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

#[test]
fn traces_have_the_shapes_that_were_measured() {
    // Rate, variation, prompt median and 99th percentile, output likewise, share of block hits.
    for (file, rate, variation, lengths, hits) in [
        ("azure_llm_2023_conv.csv.gz", 5.5, 1.094, [1020.0, 4142.0, 129.0, 601.0], None),
        ("azure_llm_2023_code.csv.gz", 2.6, 13.151, [1469.0, 7436.0, 13.0, 249.0], None),
        (
            "mooncake_conversation.jsonl.gz",
            3.4,
            3.034,
            [6909.0, 85_399.0, 350.0, 1115.0],
            Some(0.3664),
        ),
        ("mooncake_synthetic.jsonl.gz", 3.9, 1.011, [0.0; 4], Some(0.6396)),
    ] {
        let Some(trace) = shared_trace(file) else { return };
        let shape = TrafficShape::of_trace(&trace);
        assert!((shape.mean_rate - rate).abs() < 0.06, "{file} {}", shape.mean_rate);
        assert!((shape.variation.unwrap() - variation).abs() < 0.001, "{file} {shape:?}");
        let found = trace.lengths();
        let (half, most) = (found.quantiles(0.5), found.quantiles(0.99));
        for (found, expected) in [half.0, most.0, half.1, most.1].into_iter().zip(lengths) {
            // Percentiles between two requests are taken in one of several ways.
            assert!(expected == 0.0 || (found / expected - 1.0).abs() < 0.015, "{file} {found}");
        }
        let reuse = Reuse::of(&trace).map(|reuse| reuse.hit_share);
        let apart = reuse.unwrap_or(0.0) - hits.unwrap_or(0.0);
        assert!(apart.abs() < 1e-4, "{file} {reuse:?}");
        assert_eq!(reuse.is_some(), hits.is_some());
    }
}

#[test]
fn generated_traces_are_like_their_source() {
    for file in [
        "azure_llm_2023_conv.csv.gz",
        "azure_llm_2023_code.csv.gz",
        "mooncake_conversation.jsonl.gz",
        "mooncake_synthetic.jsonl.gz",
    ] {
        let Some(trace) = shared_trace(file) else { return };
        let fitted = fit(&trace);
        let made = generate(&fitted, 11, trace.span());
        assert_eq!(made, generate(&fitted, 11, trace.span()), "{file}: the same seed");
        assert_ne!(made, generate(&fitted, 12, trace.span()), "{file}: another seed");
        let (was, is) = (TrafficShape::of_trace(&trace), TrafficShape::of_trace(&made));
        // Of so few requests with such bursts the count itself varies: a variation of 6 over 8,819
        // requests makes 6 % one standard deviation of it.
        assert!((is.mean_rate / was.mean_rate - 1.0).abs() < 0.12, "{file} {}", is.mean_rate);
        let cv = is.variation.unwrap() / was.variation.unwrap();
        assert!((cv - 1.0).abs() < 0.20, "{file} {:?}", is.variation);
        for share in [0.1, 0.5, 0.9, 0.99] {
            let (was, is) = (trace.lengths().quantiles(share), made.lengths().quantiles(share));
            assert!((is.0 / was.0 - 1.0).abs() < 0.12, "{file} p{share} {is:?} {was:?}");
            assert!((is.1 / was.1 - 1.0).abs() < 0.12, "{file} p{share} {is:?} {was:?}");
        }
        let (was, is) = (Reuse::of(&trace), Reuse::of(&made));
        assert_eq!(was.is_some(), is.is_some(), "{file}");
        let (Some(was), Some(is)) = (was, is) else { continue };
        assert!((is.hit_share - was.hit_share).abs() < 0.02, "{file} {is:?} {was:?}");
        assert!((is.request_share - was.request_share).abs() < 0.02, "{file} {is:?} {was:?}");
        assert!((is.depth / was.depth - 1.0).abs() < 0.05, "{file} {is:?} {was:?}");
    }
}
