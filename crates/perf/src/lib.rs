//! From a model's architecture, an accelerator and a layout to memory, step time and capacity.
//!
//! Everything here computes and nothing acts: texts come in, numbers with their error go out. The
//! same functions answer `flyball plan`, give the operator its first idea of a replica's capacity,
//! and time the emulated engine.
//!
//! The modules are the steps in order. `precision`, `architecture` and `models` say what a model is,
//! `hardware` and `catalog` what there is to run it on, `layout` how it is spread. `memory` says
//! whether it fits, `serving` and `training` how fast it is with the numbers of `coefficients`,
//! `evidence` how sure that is, and `search` what to choose.

pub mod architecture;
pub mod catalog;
pub mod coefficients;
pub mod engine;
pub mod evidence;
pub mod hardware;
pub mod layout;
pub mod memory;
pub mod models;
pub mod precision;
pub mod search;
pub mod serving;
pub mod training;
