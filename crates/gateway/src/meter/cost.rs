//! What counting costs. Not part of a usual run: it needs an optimised build and a quiet machine.
//! `cargo test --release -p flyball-gateway --lib -- --ignored --nocapture meter::cost`

use super::tests::{request, settings};
use super::*;
use std::time::Instant;

/// What a whole request may cost is about 35 us; counting it may be this much of that.
const BUDGET: Duration = Duration::from_micros(2);

/// Requests come in bursts that fit into the log's buffer, with time to write between them: a line
/// that is dropped costs nothing, and would make the figure look good.
const BURSTS: u32 = 50;
const BURST: u32 = 500;
const PAUSE: Duration = Duration::from_millis(50);

#[test]
#[ignore = "measures time: needs an optimised build"]
#[expect(clippy::print_stdout, reason = "the figure is what this is for")]
fn counting_costs_less_than_two_microseconds_with_everything_on() {
    let mut settings = settings();
    let model =
        |n: u32| crate::settings::ModelSettings { name: format!("m{n}"), ..Default::default() };
    settings.models.extend((0..998).map(model));
    // Nothing listens there: spans are made and dropped, which costs what sending costs here.
    settings.telemetry.otlp = Some("http://127.0.0.1:9".to_owned());
    for (what, log, per_thousand) in
        [("metrics", false, 0), ("metrics and log", true, 0), ("and 1 % of spans", true, 10)]
    {
        settings.telemetry.access_log = log;
        settings.telemetry.sampled_per_thousand = per_thousand;
        let meter = Meter::start(&settings, "1.2.3", std::io::sink()).unwrap();
        for threads in [1, 2] {
            let took = on_threads(threads, &meter);
            assert_eq!(meter.log_dropped(), 0);
            println!("{what}, {threads} threads: {took:?} per request");
            assert!(took < BUDGET, "{what}: {took:?}");
        }
    }
}

/// The time of one request in the median burst of the busiest thread. The median, because a burst is
/// shorter than a slice of time, and whoever else runs here hits some bursts and not most.
fn on_threads(threads: u32, meter: &Meter) -> Duration {
    let work = &|thread: u32| {
        let ids: Vec<String> = (0..BURST).map(|n| format!("req-{thread}-{n}")).collect();
        let mut bursts: Vec<Duration> = (0..BURSTS)
            .map(|_| {
                let began = Instant::now();
                for id in &ids {
                    meter.finished(&Finished { request_id: id, ..request() });
                }
                let took = began.elapsed();
                std::thread::sleep(PAUSE);
                took / BURST
            })
            .collect();
        bursts.sort_unstable();
        bursts[bursts.len() / 2]
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || work(n))).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
    })
}
