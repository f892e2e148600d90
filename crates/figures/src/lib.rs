//! What every tool of a developer needs: figures with their targets, and running other programs.
//!
//! `cargo xtask`, `flyball-bench` and `flyball-accuracy` are built on this. It knows nothing of what they measure, and it
//! must build in seconds, because xtask does: no argument parser, no clock with time zones, none of our product crates.
//!
//! Start reading at [`figures`], where what was measured is kept; [`day`] says when, [`page`] puts it into a page.
//! [`checkout`] says where the sources and the caches are, [`process`] runs programs, [`parallel`] does the same work for
//! several things at once, [`errors`] puts an error in words, [`quantile`] is the one that every report means.

pub mod checkout;
pub mod day;
pub mod errors;
pub mod figures;
pub mod page;
pub mod parallel;
pub mod process;
pub mod quantile;
