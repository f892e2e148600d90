//! The operator on a real cluster: what it recommends, does, and does not do.

mod drains;
mod faults;
mod rig;
mod rules;
mod wakes;
