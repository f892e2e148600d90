//! What writing a request down costs. Not part of a usual run: it needs an optimised build and a quiet machine.
//! `cargo test --release -p flyball-ledger --test it -- --ignored --nocapture cost::`

use crate::entries::{close, open};
use flyball_core::units::Timestamp;
use flyball_ledger::journal::{FolderDisk, Journal};
use flyball_resources::usage::{USAGE, UsageEntry};
use std::io::Write as _;
use std::time::Instant;

const BURSTS: usize = 400;
const BURST: u64 = 250;

/// The median: whoever else runs here hits some bursts and not most.
fn median(mut burst: impl FnMut(u64)) -> f64 {
    let mut times: Vec<f64> = (0..BURSTS as u64)
        .map(|number| {
            let began = Instant::now();
            burst(number * BURST);
            began.elapsed().as_secs_f64() * 1e6 / BURST as f64
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
#[ignore = "measures time: needs an optimised build"]
#[expect(clippy::print_stdout, reason = "the figure is what this is for")]
fn writing_a_request_down() {
    let folder = tempfile::tempdir().unwrap();
    let disk = FolderDisk::open(folder.path()).unwrap();
    let mut journal = Journal::new(disk, &USAGE, "gateway-a".parse().unwrap(), 7);
    let now = Timestamp::from_millis(1_795_000_000_000);
    let tenants: Vec<String> = (0..64).map(|number| format!("ml/org/team-{number}")).collect();
    let of = |number: u64| &tenants[number as usize % tenants.len()];
    let entries = |number: u64| -> [UsageEntry<'_>; 2] {
        let (tenant, key) = (of(number), "fb-8f3a91c2");
        [open(number, tenant, key, now), close(number, tenant, key, now)]
    };
    let request = median(|from| {
        for number in from..from + BURST {
            entries(number).iter().for_each(|entry| journal.append(entry).unwrap());
        }
    });
    let mut bytes = Vec::new();
    let encoded = median(|from| {
        for number in from..from + BURST {
            bytes.clear();
            entries(number).iter().for_each(|entry| entry.encode(&mut bytes));
        }
    });
    let mut file = std::fs::File::create(folder.path().join("alone")).unwrap();
    let write = median(|_| (0..BURST).for_each(|_| file.write_all(&bytes).unwrap()));
    println!("a request written down, us: {request:.3}");
    println!("of it encoded, us: {encoded:.3}");
    println!("a write of as many bytes alone, us: {write:.3}");
    println!("bytes of a request: {}", bytes.len());
}
