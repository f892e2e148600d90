//! The gateway in front of real engines on this machine, and what it makes of their defects.
//!
//! `cargo xtask engines` brings the engines; where they are not, each test says so and passes. With
//! `FLYBALL_ENGINES` set to their folder they must be there. Tests of vLLM take minutes and are
//! ignored unless asked for: `cargo xtask engines --vllm`, then `cargo test … -- --ignored vllm`.

mod llama;
mod process;
mod rig;
mod vllm;
