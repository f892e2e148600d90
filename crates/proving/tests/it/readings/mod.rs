//! What an operator read on a live cluster, look by look, on the operator's way to a picture and on the simulator's.
//!
//! Both ways end in the estimator, so that one look by itself cannot differ. What can is all around it, and is what this
//! finds: a line that loses a digit or a kind of missing number when it is written and read, memory that one of the two
//! keeps from look to look and the other forgets, and anything that one of them adds to a picture before a policy sees it.

use flate2::read::GzDecoder;
use flyball_operator::observe::{ObservedMemory, record};
use flyball_simulator::cluster;
use std::io::Read as _;

/// As the operator of `cargo xtask bench live` wrote it: `live-step` under the governor, with everything from the quiet
/// before the step to the replicas that it asked for.
const RECORDED: &[u8] = include_bytes!("live-step.jsonl.gz");

fn lines() -> Vec<String> {
    let mut text = String::new();
    GzDecoder::new(RECORDED).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn one_recorded_stream_gives_the_same_pictures_on_both_ways() {
    let lines = lines();
    let read = || lines.iter().map(|line| record::read(line).unwrap());
    let mut operator = ObservedMemory::default();
    let there = read().map(|readings| operator.see(readings).0);
    let here = cluster::snapshots(read());
    // As text, in which every number stands with all its digits.
    let text = |snapshot: &_| format!("{snapshot:?}");
    let same = there.zip(&here).filter(|(there, here)| text(there) == text(here)).count();
    println!("identical {same} of {}", lines.len());
    assert_eq!((same, here.len()), (lines.len(), lines.len()));
    // A stream in which nothing happens would prove nothing.
    let all = |of: fn(&flyball_core::snapshot::Snapshot) -> usize| {
        let mut all: Vec<usize> = here.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let replicas = |one: &flyball_core::snapshot::Snapshot| {
        one.variants().map(|(_, variant)| variant.replicas.len()).sum::<usize>()
    };
    assert!(lines.len() >= 30 && all(replicas) >= 3, "replicas come and go in it");
}

#[test]
fn a_line_is_written_again_as_it_was() {
    for line in lines() {
        assert_eq!(record::line(&record::read(&line).unwrap()).unwrap(), line);
    }
}

#[test]
fn memory_from_look_to_look_matters_to_this_stream() {
    let lines = lines();
    let remembered = cluster::snapshots(lines.iter().map(|line| record::read(line).unwrap()));
    let forgotten =
        lines.iter().map(|line| ObservedMemory::default().see(record::read(line).unwrap()).0);
    let differ = forgotten.zip(&remembered).filter(|(one, other)| one != *other).count();
    assert!(differ > 0, "or a way that forgets would pass");
}
