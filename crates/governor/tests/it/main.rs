//! What must hold of every decision, on random worlds and in small closed loops.

mod laws;
mod loans;
mod reach;
mod shares;
mod sick;
mod silence;
mod story;
mod worlds;
