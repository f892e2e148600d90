//! What must hold of every decision, on random worlds and in small closed loops.

mod laws;
mod sick;
mod silence;
mod story;
mod worlds;
