//! Gateways and engines that count steadily, for tests.

use flyball_core::units::{Micros, Timestamp};
use flyball_estimator::CounterWindow;
use flyball_estimator::reading::{
    CacheUsed, EngineCounts, EngineReading, GatewayCounts, GatewayReading,
};

/// Requests per second, and mean tokens of a prompt and of an answer.
pub(crate) type Traffic = (f64, f64, f64);

/// Half a minute earlier.
fn before(seen: Timestamp) -> Timestamp {
    seen.saturating_sub(Micros::from_seconds(30))
}

/// An engine that was scraped at this moment and half a minute before.
pub(crate) fn engine(seen: Timestamp, (per_second, prompt, output): Traffic) -> EngineReading {
    let counts = |at: Timestamp| {
        let answered = per_second * (at.as_micros() / 1_000_000) as f64;
        EngineCounts {
            prompt_tokens: answered * prompt,
            output_tokens: answered * output,
            answered,
            ..EngineCounts::UNKNOWN
        }
    };
    let mut engine = EngineReading::counted(before(seen), counts(before(seen)));
    engine.counts.add(seen, Timestamp::default(), counts(seen));
    EngineReading {
        running: Some(3.0),
        waiting: Some(2.0),
        cache_used: CacheUsed::Share(0.5),
        ..engine
    }
}

/// What a gateway counted that spoke at this moment and half a minute before.
pub(crate) fn gateway(seen: Timestamp, (per_second, prompt, output): Traffic) -> GatewayReading {
    let counts = |at: Timestamp| {
        let arrived = (per_second * (at.as_micros() / 1_000_000) as f64).round() as u64;
        GatewayCounts {
            arrived,
            prompt_tokens: arrived * prompt as u64,
            answered: arrived,
            output_tokens: arrived * output as u64,
            judged: arrived,
            ..GatewayCounts::default()
        }
    };
    let mut window = CounterWindow::of(GatewayReading::WINDOW);
    for moment in [before(seen), seen] {
        window.add(moment, Timestamp::default(), counts(moment));
    }
    GatewayReading {
        at: seen,
        counts: window,
        waiting_tokens: 0,
        unread_tokens: 0,
        held_tokens: 0,
        in_flight: 0,
        engines: 1,
    }
}
