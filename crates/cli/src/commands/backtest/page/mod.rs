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
use std::path::Path;

use super::answer::Backtest;
use super::board::Board;
use crate::chart::escape;
use crate::output::document::{Block, html};
use crate::output::{Exit, Failure};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");

/// The whole page of a backtest.
pub(super) fn page(backtest: &Backtest) -> String {
    let names: Vec<&str> = backtest.models.iter().map(|model| model.name.as_str()).collect();
    let board = backtest.board();
    let mut out = String::new();
    verdict(&mut out, backtest);
    out.push_str(&html::block(&Block::Table(backtest.table())));
    let _ = writeln!(
        out,
        "<p class=\"soft\">± is half of the 95 % interval over {} seeds. * is the cheapest \
         that misses at most {}.</p>",
        backtest.seeds.len(),
        super::words::percent(backtest.allowed_missed)
    );
    out.push_str(&figures(&board));
    out.push_str("<h2>What it rests on</h2>\n");
    out.push_str(&html::block(&Block::Notes(backtest.grounds())));
    framed(&format!("Backtest of {}", names.join(", ")), &out, &board)
}

/// What each policy traded, where the money went, and each model over time.
pub(in crate::commands) fn figures(board: &Board<'_>) -> String {
    let mut out = String::from("<div class=\"pair\">\n");
    out.push_str(&front::draw(board));
    out.push_str(&money::draw(board));
    out.push_str("</div>\n");
    for index in 0..board.models.len() {
        out.push_str(&timeline::draw(board, index));
    }
    out
}

/// A page with this body, and the numbers behind the figures of a board.
pub(in crate::commands) fn framed(title: &str, body: &str, board: &Board<'_>) -> String {
    let mut out = opened(title, body);
    let _ = write!(
        out,
        "<div id=\"tip\" role=\"status\"></div>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{SCRIPT}</script>\n\
         </body>\n</html>\n",
        timeline::data(board)
    );
    out
}

/// A page with this body and without a script.
pub(in crate::commands) fn plain(title: &str, body: &str) -> String {
    let mut out = opened(title, body);
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn opened(title: &str, body: &str) -> String {
    let mut out = String::new();
    // The policy holds the page to its promise: nothing is loaded, and only what stands here runs.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{0}</title>\n<style>\n{1}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n\
         {body}",
        escape(title),
        html::STYLE,
    );
    out
}

/// Writes a page where somebody asked for it, and says where it is and how large.
pub(in crate::commands) fn written(
    file: &Path,
    page: &str,
    flag: &str,
) -> Result<(String, usize), Failure> {
    std::fs::write(file, page).map_err(|error| {
        Failure::new(Exit::Usage, "the report cannot be written")
            .at(file.display().to_string())
            .because(error.to_string())
            .hint(format!("give {flag} a file in a folder that exists and that you may write to"))
    })?;
    Ok((file.display().to_string(), page.len()))
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
