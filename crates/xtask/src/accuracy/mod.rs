//! `cargo xtask accuracy`: the performance model against what others have measured.
#![expect(dead_code, reason = "the scoring follows")]

mod fit;
mod score;
mod section;
