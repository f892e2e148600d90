//! Finds out where engines are: a static list, EndpointSlices of a Service, pods of an
//! `InferencePool`.
//!
//! It only reads. What it finds leaves as whole [`Listing`]s through a watch channel; whoever takes
//! one sees the newest. When the API server is gone, the last listing stays (invariant 4).

pub use crate::fleet::{Found, Listing};
