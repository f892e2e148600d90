//! The report: one file to look at, mail and keep. It loads nothing.
//!
//! The verdict and the table come first, then what each policy traded (`front`), where the money
//! went (`money`), and each model over time, policy below policy on one axis (`timeline`). Pictures
//! are drawn here, not in the reader's browser; the script only answers the pointer, so that the
//! page says the same printed or with scripts off.

mod front;
mod money;
mod paths;
mod timeline;

use std::fmt::Write;

use super::answer::{Backtest, PolicyView};
use crate::chart::{escape, html};
use crate::output::document::Block;

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The whole page.
pub(super) fn page(backtest: &Backtest) -> String {
    let names: Vec<&str> = backtest.models.iter().map(|model| model.name.as_str()).collect();
    let title = format!("Backtest of {}", names.join(", "));
    let mut out = String::new();
    // The policy holds the page to its promise: nothing is loaded, and only what stands here runs.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{0}</title>\n<style>\n{1}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
        escape(&title),
        html::STYLE,
    );
    verdict(&mut out, backtest);
    out.push_str(&html::block(&Block::Table(backtest.table())));
    let _ = writeln!(
        out,
        "<p class=\"soft\">± is half of the 95 % interval over {} seeds. * is the cheapest \
         that misses at most {}.</p>",
        backtest.seeds.len(),
        super::words::percent(backtest.allowed_missed)
    );
    out.push_str("<div class=\"pair\">\n");
    out.push_str(&front::draw(backtest));
    out.push_str(&money::draw(backtest));
    out.push_str("</div>\n");
    for index in 0..backtest.models.len() {
        out.push_str(&timeline::draw(backtest, index));
    }
    out.push_str("<h2>What it rests on</h2>\n");
    out.push_str(&html::block(&Block::Notes(backtest.grounds())));
    let _ = write!(
        out,
        "<div id=\"tip\" role=\"status\"></div>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        timeline::data(backtest)
    );
    out
}

/// The sentence to remember, and the others below it.
fn verdict(out: &mut String, backtest: &Backtest) {
    let header = backtest.header();
    // How long it took is not part of the page: the same seeds give the same bytes.
    let header = header.split("   ").next().unwrap_or_default();
    let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(header));
    let verdicts = backtest.verdicts();
    let mut rest = Vec::new();
    for (name, words) in &verdicts {
        match name.as_str() {
            "verdict" => {
                let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(words));
            }
            "report" => {}
            _ => rest.push((name.clone(), words.clone())),
        }
    }
    if !rest.is_empty() {
        out.push_str(&html::block(&Block::Facts(rest)));
    }
}

/// The class that gives a policy its colour. The clairvoyant has ink of its own, because it is not
/// a choice.
fn colour(backtest: &Backtest, policy: &PolicyView) -> String {
    if policy.clairvoyant {
        return "seer".to_owned();
    }
    let choices = backtest.policies.iter().filter(|other| !other.clairvoyant);
    let place = choices.take_while(|other| other.name != policy.name).count();
    format!("c{}", place % 6)
}
