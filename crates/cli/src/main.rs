//! The `flyball` binary: one file per command, one way out (`output`).
//!
//! Read `args` for what can be typed, `run` for how a command line becomes an exit status, and
//! `commands` for what each command does. Commands that need a cluster get it from `cluster`,
//! those that need accelerators and prices get them from `catalog`, ModelServices and Tenants come
//! from `served`, and what only the operator knows is asked through `reach`.
//! Nothing is decided here that the product decides elsewhere: commands ask and show.

mod args;
mod ask;
mod catalog;
mod charset;
mod chart;
mod cluster;
mod commands;
mod flags;
mod help;
mod model;
mod moment;
mod output;
mod pages;
mod reach;
#[cfg(test)]
mod reference;
mod run;
mod served;
mod tenant;
mod text;
mod training_run;

/// The image is linked with musl, whose own allocator takes one lock for all threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    run::run(std::env::args_os()).into()
}
