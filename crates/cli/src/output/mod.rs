//! The one way out: every command prints through here.
//!
//! A command yields one typed [`Answer`]. `-o json` and `-o yaml` print it as it is, under
//! `apiVersion` and `kind`; they are one document in two spellings. For people the command
//! describes a [`Document`] once, and the table and the Markdown are renderings of it: a view of
//! the same value that never says more. The answer goes to stdout; progress, logs and hints go to
//! stderr. Colour only adds: every state is also a word.
//!
//! What went wrong before there was an answer is a [`Failure`]. It is written for people on
//! stderr, and with `-o json` or `-o yaml` also as an object of kind `Error` on stdout, so that a
//! script which reads stdout always finds exactly one document.
//!
//! Not here: what a command decides. Start reading at [`Printer::answer`].

pub(crate) mod document;
mod exit;
mod failure;
mod progress;
#[cfg(test)]
mod schema;

pub(crate) use crate::charset::Charset;
pub(crate) use crate::text::{BOLD, RED, Text, age, duration, plural};
pub(crate) use document::Document;
pub(crate) use exit::Exit;
pub(crate) use failure::{Failure, FailureCode};
pub(crate) use progress::Progress;

use std::io::{self, Write};

use anstream::stream::{AsLockedWrite, RawStream};
use anstream::{AutoStream, ColorChoice};
use schemars::JsonSchema;
use serde::Serialize;

use crate::text;

/// The version of the documents that all commands print.
pub(crate) const API_VERSION: &str = "cli.flyball.dev/v1";

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs; the schemas are in docs/reference/schemas
    Json,
    /// The same document as JSON
    Yaml,
    /// The same view as the table, to paste into a pull request or a wiki
    #[value(alias = "md")]
    Markdown,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also into a pipe
    Always,
    /// No colour
    Never,
}

/// How much of the answer people are shown. JSON and YAML are always whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    Full,
    /// `--quiet`: what needs attention, and the verdict.
    Problems,
}

/// What a command found out.
pub(crate) trait Answer: Serialize + JsonSchema {
    /// `kind` in the JSON.
    const KIND: &'static str;

    /// A view of `self` for people. It says nothing that `self` does not.
    fn view(&self, detail: Detail) -> Document;

    fn exit(&self) -> Exit {
        Exit::Yes
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, T> {
    /// Version of this form; fields are added, never changed, within a version.
    api_version: &'static str,
    /// Which answer this is.
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

/// Writes answers and failures in the form the user asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    pub(crate) format: Format,
    pub(crate) color: Color,
    pub(crate) quiet: bool,
    pub(crate) progress: bool,
}

impl Printer {
    /// Prints the answer and gives the exit status that belongs to it.
    pub(crate) fn answer<A: Answer>(&self, answer: &A) -> Exit {
        let detail = if self.quiet { Detail::Problems } else { Detail::Full };
        let text = match self.format {
            Format::Json => json(A::KIND, answer),
            Format::Yaml => yaml(A::KIND, answer),
            Format::Table => answer
                .view(detail)
                .terminal(Charset::of_locale(), text::columns(&io::stdout()))
                .into_string(),
            Format::Markdown => answer.view(detail).markdown(),
        };
        self.write(io::stdout(), &text, answer.exit())
    }

    /// Prints why there is no answer.
    pub(crate) fn failure(&self, failure: &Failure) -> Exit {
        let exit = self.write(
            io::stderr(),
            &failure.text(text::columns(&io::stderr())).into_string(),
            failure.exit,
        );
        let document = match self.format {
            Format::Table | Format::Markdown => return exit,
            Format::Json => json(Failure::KIND, &failure.document()),
            Format::Yaml => yaml(Failure::KIND, &failure.document()),
        };
        self.write(io::stdout(), &document, exit)
    }

    /// A line on stderr that stays: what happened while the answer is waited for.
    pub(crate) fn note(&self, line: &str) {
        // A lost line is nobody's problem; the answer has it all.
        let _ = writeln!(io::stderr(), "{}", Charset::of_locale().fold(line));
    }

    /// A line on stderr that is replaced by the next one; nothing unless a person is looking.
    pub(crate) fn progress(&self) -> Progress {
        Progress::new(self.progress && !self.quiet)
    }

    fn write<S: RawStream + AsLockedWrite>(&self, stream: S, text: &str, exit: Exit) -> Exit {
        let choice = match self.color {
            Color::Auto => AutoStream::choice(&stream),
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let mut stream = AutoStream::new(stream, choice);
        match stream.write_all(text.as_bytes()).and_then(|()| stream.flush()) {
            Ok(()) => exit,
            // The reader has seen enough (`flyball explain | head -1`): that is not our failure.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
            Err(_) => Exit::Usage,
        }
    }
}

fn json<T: Serialize>(kind: &'static str, body: &T) -> String {
    let document = Envelope { api_version: API_VERSION, kind, body };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("answers have string keys and finite numbers only");
    text.push('\n');
    text
}

fn yaml<T: Serialize>(kind: &'static str, body: &T) -> String {
    let document = Envelope { api_version: API_VERSION, kind, body };
    serde_saphyr::to_string(&document).expect("answers have string keys and finite numbers only")
}

#[cfg(test)]
#[test]
fn words_that_look_like_something_else_stay_words_in_yaml() {
    let odd =
        ["yes", "null", "1.36", "0x10", "~", "- a", "a: b", "# c", "", " d ", "e\nf\n", "1e3"];
    let value = serde_json::json!({ "words": odd, "number": 1.5, "none": null, "empty": [] });
    let text = yaml("Odd", &value);
    let mut same: serde_json::Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(same["kind"], "Odd");
    let body = same.as_object_mut().expect("an object");
    body.retain(|key, _| value.get(key).is_some());
    assert_eq!(same, value, "{text}");
}

#[cfg(test)]
pub(crate) use schema::conforms;

/// The whole answer as `-o json` prints it.
#[cfg(test)]
pub(crate) fn answer_json<A: Answer>(answer: &A) -> String {
    let text = json(A::KIND, answer);
    // Whatever answer a test looks at, its YAML is the same document.
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let same: serde_json::Value = serde_saphyr::from_str(&yaml(A::KIND, answer)).expect("YAML");
    assert_eq!(value, same, "JSON and YAML differ");
    text
}

/// The whole answer as `-o yaml` prints it.
#[cfg(test)]
pub(crate) fn answer_yaml<A: Answer>(answer: &A) -> String {
    yaml(A::KIND, answer)
}

/// What the table shows, without colour.
#[cfg(test)]
pub(crate) fn answer_table<A: Answer>(answer: &A, detail: Detail) -> String {
    let text = answer.view(detail).terminal(Charset::Utf8, text::WIDTH).into_string();
    anstream::adapter::strip_str(&text).to_string()
}
