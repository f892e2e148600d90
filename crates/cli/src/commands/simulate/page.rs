//! The report: one file to look at, mail and keep, with the figures of `backtest`'s.

use std::fmt::Write;

use super::answer::Simulation;
use super::backtest::page;
use crate::chart::escape;
use crate::output::document::{Block, html};

/// The whole page.
pub(super) fn page(simulation: &Simulation) -> String {
    let board = simulation.board();
    let mut out = String::new();
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(&simulation.header()));
    let mut facts = simulation.verdicts();
    facts.retain(|(name, _)| name != "report");
    out.push_str(&html::block(&Block::Facts(facts)));
    out.push_str(&html::block(&Block::Table(simulation.table())));
    if let Some(expected) = simulation.expected() {
        out.push_str(&html::block(&Block::Table(expected)));
    }
    out.push_str(&page::figures(&board));
    out.push_str("<h2>What it rests on</h2>\n");
    out.push_str(&html::block(&Block::Notes(simulation.grounds())));
    page::framed(&format!("Scenario {}", simulation.scenario), &out, &board)
}
