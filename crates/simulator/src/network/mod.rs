//! A network that breaks by a script: the same script for real sockets and for the virtual cluster.
//!
//! A [`Script`] is plain data with a TOML form: a seed and rules. For the n-th connection it gives a
//! [`Fate`], which depends on nothing but seed, n and the time. The fault proxy of `crates/proving`
//! plays a fate byte for byte with a [`Line`] per direction; the cluster takes from it what a
//! request can feel ([`Fate::of_request`]).
//!
//! It opens no socket and reads no clock. Start at `script.rs`.

mod fate;
mod line;
mod script;

pub use fate::{Fate, Felt, NetworkShape};
pub use line::{Line, NetworkStep};
pub use script::{BadScript, Direction, NetworkAction, NetworkRule, Script};
