//! `flyball explain`: the page behind a code or reason.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::{Block, Column, Row, Table};
use crate::output::{Answer, Detail, Document, Exit, Failure, Printer};
use crate::pages::{self, Page};

/// Explain a code or reason such as FLY-301, or list all
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// What to explain, in any case: FLY-301, fly301
    #[arg(value_name = "CODE|REASON")]
    name: Option<String>,
}

/// What a code or reason means and what to do about it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Explanation {
    /// The code or reason.
    name: &'static str,
    /// One line.
    title: &'static str,
    /// The whole page, in Markdown.
    text: &'static str,
}

/// Everything that can be explained.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Listing {
    /// All codes and reasons, by name.
    pages: Vec<Entry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    /// The code or reason.
    name: &'static str,
    /// One line.
    title: &'static str,
}

impl Answer for Explanation {
    const KIND: &'static str = "Explanation";

    fn view(&self, _: Detail) -> Document {
        Document { blocks: vec![Block::Page(self.text.to_owned())] }
    }
}

impl Answer for Listing {
    const KIND: &'static str = "ExplanationList";

    fn view(&self, _: Detail) -> Document {
        let rows = self.pages.iter().map(|entry| Row::new([entry.name, entry.title]));
        let columns = vec![Column::left("Name"), Column::left("Meaning")];
        let table = Table { rows: rows.collect(), titled: false, ..Table::new(columns) };
        Document { blocks: vec![Block::Table(table)] }
    }
}

pub(crate) fn run(args: &ExplainArgs, printer: &Printer) -> Result<Exit, Failure> {
    match &args.name {
        None => Ok(printer.answer(&listing())),
        Some(name) => explanation(name).map(|answer| printer.answer(&answer)),
    }
}

fn listing() -> Listing {
    let entry = |page: Page| Entry { name: page.name, title: page.title() };
    Listing { pages: pages::all().map(entry).collect() }
}

fn explanation(name: &str) -> Result<Explanation, Failure> {
    if let Some(page) = pages::find(name) {
        return Ok(Explanation { name: page.name, title: page.title(), text: page.text });
    }
    let failure = Failure::new(Exit::Usage, format!("nothing is known about {name:?}"));
    Err(match pages::nearest(name) {
        Some(near) => failure.hint(format!("did you mean: flyball explain {near}")),
        None => failure.hint("flyball explain, without a code, lists all of them"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{answer_json, conforms};

    #[test]
    fn json_has_the_shape_of_its_schema() {
        conforms("explain-list", &answer_json(&listing()));
        conforms("explain", &answer_json(&explanation("FLY-101").unwrap()));
    }
}
