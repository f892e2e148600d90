//! The one way out: every command prints through here.
//!
//! A command yields one typed [`Answer`]. `-o json` prints it as it is, under `apiVersion` and
//! `kind`; the table is a view of the same value and never says more. The answer goes to stdout;
//! progress, logs and hints go to stderr. Colour only adds: every state is also a word.
//!
//! What went wrong before there was an answer is a [`Failure`]. It is written for people on
//! stderr, and with `-o json` also as an object of kind `Error` on stdout, so that a script which
//! reads stdout always finds exactly one JSON document.
//!
//! Not here: what a command decides. Start reading at [`Printer::answer`].

mod exit;
mod failure;
mod grid;
mod progress;
#[cfg(test)]
mod schema;
mod text;

pub(crate) use exit::Exit;
pub(crate) use failure::{Failure, FailureCode};
pub(crate) use grid::{Grid, Side};
pub(crate) use progress::Progress;
pub(crate) use text::{BOLD, GREEN, RED, Text, YELLOW, duration, plural};

use std::io::{self, Write};

use anstream::stream::{AsLockedWrite, RawStream};
use anstream::{AutoStream, ColorChoice};
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the JSON that all commands print.
pub(crate) const API_VERSION: &str = "cli.flyball.dev/v1";

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs; the schemas are in docs/reference/schemas
    Json,
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

/// How much of the answer the table shows. JSON is always whole.
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

    /// A view of `self` for people, at most 100 columns wide.
    fn table(&self, detail: Detail) -> Text;

    fn exit(&self) -> Exit {
        Exit::Yes
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Document<'a, T> {
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
        let text = match self.format {
            Format::Json => json(A::KIND, answer),
            Format::Table => {
                let detail = if self.quiet { Detail::Problems } else { Detail::Full };
                answer.table(detail).into_string()
            }
        };
        self.write(io::stdout(), &text, answer.exit())
    }

    /// Prints why there is no answer.
    pub(crate) fn failure(&self, failure: &Failure) -> Exit {
        let exit = self.write(io::stderr(), &failure.text().into_string(), failure.exit);
        match self.format {
            Format::Table => exit,
            Format::Json => {
                self.write(io::stdout(), &json(Failure::KIND, &failure.document()), exit)
            }
        }
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
    let document = Document { api_version: API_VERSION, kind, body };
    let mut text = serde_json::to_string_pretty(&document)
        .expect("answers have string keys and finite numbers only");
    text.push('\n');
    text
}

#[cfg(test)]
pub(crate) use schema::conforms;

/// The whole answer as `-o json` prints it.
#[cfg(test)]
pub(crate) fn answer_json<A: Answer>(answer: &A) -> String {
    json(A::KIND, answer)
}
