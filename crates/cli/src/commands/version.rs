//! `flyball version`: which Flyball this is.

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::document::Block;
use crate::output::{Answer, Detail, Document, Exit, Printer};

/// The version of what is installed here.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct VersionAnswer {
    /// Version of this command.
    client: &'static str,
}

impl Answer for VersionAnswer {
    const KIND: &'static str = "Version";

    fn view(&self, _: Detail) -> Document {
        Document { blocks: vec![Block::Line(format!("client {}", self.client))] }
    }
}

pub(crate) fn run(printer: &Printer) -> Exit {
    printer.answer(&VersionAnswer { client: env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
#[test]
fn json_has_the_shape_of_its_schema() {
    use crate::output::{answer_json, conforms};
    conforms("version", &answer_json(&VersionAnswer { client: "1.2.3" }));
}
