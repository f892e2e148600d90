//! The ledger on made-up disks and stores, under everything that can happen to them, and read by other people's programs.

mod entries;
mod life;
mod readers;
mod worlds;
