//! Reads an input file once, as it comes, and says where its lines are and what is wrong with them.
//!
//! Memory is a line, a hash per `custom_id` and sixteen bytes per line, whatever the size of the file.

mod line;
#[cfg(test)]
mod tests;

use crate::forms::LineProblem;
use line::Checked;
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_128;

/// Lines of a file.
pub(crate) const MAX_LINES: usize = 50_000;

/// Inputs of all lines that ask for embeddings.
const MAX_INPUTS: u64 = 50_000;

/// Bytes of a line. With a part of a file beside it, it stays below 16 MB.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;

/// Problems that are listed: nobody reads them all.
const LISTED: usize = 100;

/// Where a line is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePlace {
    pub(crate) from: u64,
    pub(crate) bytes: u32,
}

/// A file as it is read.
#[derive(Debug)]
pub(crate) struct InputCheck {
    endpoint: String,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
    /// Whether that line is too long, so that the rest of it is passed over.
    too_long: bool,
    /// Where the line begins.
    from: u64,
    /// Its number, from 1.
    number: u64,
    places: Vec<LinePlace>,
    seen: BTreeSet<u128>,
    model: Option<String>,
    inputs: u64,
    problems: Vec<LineProblem>,
    too_many: bool,
}

/// A file without faults.
#[derive(Debug)]
pub(crate) struct CheckedInput {
    pub(crate) places: Vec<LinePlace>,
    pub(crate) model: String,
}

impl InputCheck {
    /// A file whose lines must ask this endpoint.
    pub(crate) fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            partial: Vec::new(),
            too_long: false,
            from: 0,
            number: 1,
            places: Vec::new(),
            seen: BTreeSet::new(),
            model: None,
            inputs: 0,
            problems: Vec::new(),
            too_many: false,
        }
    }

    /// The next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            if self.partial.is_empty() && !self.too_long {
                self.line(line);
                self.from += line.len() as u64 + 1;
            } else {
                self.grow(line);
                self.end_partial();
                self.from += 1;
            }
            self.number += 1;
        }
        self.grow(bytes);
    }

    /// The file is over.
    pub(crate) fn finish(mut self) -> Result<CheckedInput, Vec<LineProblem>> {
        self.end_partial();
        if self.places.is_empty() && self.problems.is_empty() {
            self.whole("empty_file", "The batch input file is empty.".to_owned());
        }
        if self.too_many {
            let what = format!("The batch input file has more than {MAX_LINES} requests.");
            self.whole("too_many_tasks", what);
        }
        if self.inputs > MAX_INPUTS {
            let what = format!("The requests have more than {MAX_INPUTS} inputs in all.");
            self.whole("too_many_inputs", what);
        }
        match self.model {
            Some(model) if self.problems.is_empty() => {
                Ok(CheckedInput { places: self.places, model })
            }
            _ => Err(self.problems),
        }
    }

    fn grow(&mut self, more: &[u8]) {
        if self.too_long || self.partial.len() + more.len() > MAX_LINE_BYTES {
            // Where it is in the file is counted on, and what is in it is forgotten.
            self.from += (self.partial.len() + more.len()) as u64;
            self.partial.clear();
            self.too_long = true;
        } else {
            self.partial.extend_from_slice(more);
        }
    }

    fn end_partial(&mut self) {
        if self.too_long {
            self.too_long = false;
            let what = format!("This line has more than {MAX_LINE_BYTES} bytes.");
            self.wrong("line_too_long", what, None);
        } else {
            let line = std::mem::take(&mut self.partial);
            self.line(&line);
            self.from += line.len() as u64;
        }
    }

    fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if line.len() > MAX_LINE_BYTES {
            let what = format!("This line has more than {MAX_LINE_BYTES} bytes.");
            return self.wrong("line_too_long", what, None);
        }
        if self.places.len() == MAX_LINES {
            self.too_many = true;
            return;
        }
        match line::check(line, &self.endpoint) {
            Ok(checked) => self.take(&checked, line.len()),
            Err(wrong) => self.wrong(wrong.code, wrong.message, wrong.param),
        }
    }

    fn take(&mut self, checked: &Checked<'_>, bytes: usize) {
        let custom_id = &*checked.custom_id;
        if !self.seen.insert(xxh3_128(custom_id.as_bytes())) {
            let what = format!("The custom_id {custom_id:?} stands in an earlier line too.");
            return self.wrong("duplicate_custom_id", what, Some("custom_id"));
        }
        match &self.model {
            None => self.model = Some(checked.model.clone().into_owned()),
            Some(model) if *model != checked.model => {
                let what = format!(
                    "The model {:?} is another than that of the first line, {model:?}. All requests of a batch have one.",
                    checked.model
                );
                return self.wrong("model_mismatch", what, Some("body.model"));
            }
            Some(_) => {}
        }
        self.inputs += checked.inputs;
        self.places.push(LinePlace { from: self.from, bytes: bytes as u32 });
    }

    fn wrong(&mut self, code: &str, message: String, param: Option<&str>) {
        if self.problems.len() < LISTED {
            let param = param.map(str::to_owned);
            let line = Some(self.number);
            self.problems.push(LineProblem { code: code.to_owned(), message, param, line });
        }
    }

    fn whole(&mut self, code: &str, message: String) {
        self.problems.push(LineProblem { code: code.to_owned(), message, param: None, line: None });
    }
}
