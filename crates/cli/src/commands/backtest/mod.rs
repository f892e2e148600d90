//! `flyball backtest`: what each policy would have cost and missed on real traffic.
//!
//! The simulator replays the traffic; here it is asked, and its scores become an [`answer`] with a
//! table (`view`) and a page (`page`). `collect` turns scores into what is shown, `gate` judges
//! `--fail-if`. Nothing is decided here.

mod answer;
mod clock;
mod collect;
mod gate;
mod page;
mod spark;
#[cfg(test)]
mod tests;
mod view;
mod words;

pub(crate) use answer::Backtest;
