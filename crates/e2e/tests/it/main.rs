//! Stories on a real cluster, one file each. Run them with `cargo xtask e2e`.

mod check;
mod gateway;
mod hold;
mod image;
mod operator;
mod queue;
