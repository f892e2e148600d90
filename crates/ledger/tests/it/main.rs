//! The ledger on made-up disks and stores, under everything that can happen to them, and read by other people's programs.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod cost;
mod entries;
mod life;
mod readers;
mod worlds;
