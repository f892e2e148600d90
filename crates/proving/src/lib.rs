//! What proves the gateway: load, a bare upstream, and faults on the wire.
//!
//! - [`upstream`] answers like an engine and costs next to nothing, so that what is measured is the
//!   proxy in front of it. The emulator is for behaviour; this is for cost.
//! - [`load`] asks: closed loop or open loop, small bodies or large ones, whole answers or streams.
//!   It prints one JSON object; with a history it also writes one line per request.
//! - [`callers`] asks as several callers do who share engines, and says what each of them got.
//! - [`replay`] plays a trace of conversations, so that caches and affinity have something to find.
//! - [`faults`] is a TCP relay that breaks what it relays, by a seeded script.
//! - [`external`] stands between Kubernetes' own autoscaler and Prometheus, so that a rival's loop runs
//!   on the real controller.
//! - [`history`] judges what happened from the written history alone.
//!
//! Nothing here knows what is between load and upstream: nginx, a peer or our gateway. The programs
//! are started by `cargo xtask bench gateway`, `cargo xtask bench admission` and
//! `cargo xtask bench live`. Start at [`load::LoadPlan`].

pub mod callers;
pub mod external;
pub mod faults;
pub mod history;
pub mod http;
pub mod load;
pub mod replay;
pub mod sockets;
pub mod upstream;
