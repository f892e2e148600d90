//! The emulator over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod answers;
mod cache;
mod client;
mod faults;
mod leaving;
