//! Which endpoint a request goes to: a pure choice among endpoints by prefix, load and health.
//!
//! The gateway asks it for real requests and the simulator for virtual ones. It does no I/O and
//! knows no clock and no randomness.
