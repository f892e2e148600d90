//! The port against the numbers of the prototype.

use super::models::Names;
use super::rows;
use flyball_perf::catalog::Catalog;

/// Id and prediction in the row's unit.
const MEMORY: &str = include_str!("golden_memory.csv");

/// How far the two may differ. Training is the same arithmetic. Serving differs by facts: norms and
/// routers are on every rank here and split there, keys and values are copied where there are
/// fewer heads than ranks, the encoder is counted and not given, and usable memory is the
/// catalogue's (79.2 for 79.18 GiB on H100; 23.5 for 23.52 on RTX 4090).
fn tolerance(kind: &str) -> f64 {
    if kind == "training" { 1e-6 } else { 0.004 }
}

#[test]
fn memory_is_that_of_the_prototype() {
    let root = crate::checkout::root().unwrap();
    let read = |name: &str| std::fs::read_to_string(root.join("validation").join(name)).unwrap();
    let names = Names::read(&read("models.csv")).unwrap();
    let points = rows::read(&read("memory_points.csv")).unwrap();
    let catalog = Catalog::builtin();
    for line in MEMORY.lines().skip(1) {
        let (id, expected) = line.split_once(',').unwrap();
        let expected: f64 = expected.parse().unwrap();
        let row = points.iter().find(|row| row.id == id).unwrap();
        let predicted = row.predicted(&names, &catalog).unwrap().unwrap();
        let off = (predicted / expected - 1.0).abs();
        println!("{id} {predicted} {expected} {off:.6}");
        assert!(off < tolerance(&row.kind), "{id}: {predicted} {expected}");
    }
}
