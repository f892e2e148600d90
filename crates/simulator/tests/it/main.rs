//! Scenarios and random worlds under the governor and others.

mod drills;
mod seeds;
