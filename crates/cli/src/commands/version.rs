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
    /// The commit that it was built from; absent in a development build.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
}

impl Answer for VersionAnswer {
    const KIND: &'static str = "Version";

    fn view(&self, _: Detail) -> Document {
        let commit =
            self.commit.map_or("a development build".to_owned(), |id| format!("commit {id}"));
        Document { blocks: vec![Block::Line(format!("client {} ({commit})", self.client))] }
    }
}

pub(crate) fn run(printer: &Printer) -> Exit {
    let commit = Some(env!("FLYBALL_BUILT_FROM")).filter(|commit| !commit.is_empty());
    printer.answer(&VersionAnswer { client: env!("CARGO_PKG_VERSION"), commit })
}

#[cfg(test)]
#[test]
fn json_has_the_shape_of_its_schema() {
    use crate::output::{answer_json, conforms};
    for commit in [None, Some("0123456789ab")] {
        conforms("version", &answer_json(&VersionAnswer { client: "1.2.3", commit }));
    }
}
