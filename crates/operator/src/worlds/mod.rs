//! The operator's own code in small random worlds: does any rule ever break, whatever else does?
//!
//! A seed makes a `plan`: models, pools, gateways, traffic and faults. `cluster` plays Kubernetes
//! (ReplicaSets, scheduler, nodes that are lost) and the engines with their streams; `gateways` sends
//! requests to them and reports as real gateways do; `mind` is what the operator does in one turn of
//! its loop: everything between the API objects and the writes is production code. `world` plays all of it
//! second by second, and `rules` says after every look what was broken. Time is virtual.
//!
//! It knows no network and no clock. Start at [`world::play`].

mod cluster;
mod dice;
mod gateways;
mod mind;
mod objects;
mod plan;
mod rules;
mod tests;
mod world;

use flyball_core::units::Timestamp;
use std::time::{Duration, SystemTime};

/// When every world begins, in seconds since 1970: 2026-01-01.
const BEGIN: u64 = 1_767_225_600;

/// A moment of a world, in seconds since it began.
type Second = u64;

/// As `core` counts it.
fn moment(second: Second) -> Timestamp {
    Timestamp::from_millis((BEGIN + second) * 1_000)
}

/// As the machine's clock would say it.
fn clock(second: Second) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(BEGIN + second)
}
