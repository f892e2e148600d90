//! A virtual cluster, its engines and its traffic, in virtual time; and what it would have cost.
//!
//! [`traffic`] comes in, a [`policy`] decides on what it can see, the world carries it out, and a
//! [`score`] says what was paid and missed. The policies are the governor itself, byte for byte,
//! and its rivals.
//!
//! The simulator knows no Kubernetes client, no network and no wall clock. Every chance comes from
//! a seed, so that the same seed gives the same bytes.

pub mod affinity;
pub mod chance;
pub mod clairvoyant;
pub mod cluster;
pub mod cold_start;
pub mod engine;
pub mod fluid;
pub mod knee;
pub mod network;
pub mod policies;
pub mod policy;
pub mod rivals;
pub mod scenario;
pub mod score;
pub mod seconds;
pub mod traffic;
pub mod training;
pub mod tune;
