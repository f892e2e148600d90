//! Rows of named columns become traffic, wherever the rows come from.

use std::collections::BTreeMap;

use super::builder::{Builder, Raw};
use super::columns::Columns;
use super::stamp::{self, Stamp};
use super::{Form, LoadError, LoadTally, Loaded, LoadedPart, Traffic};
use crate::traffic::windows::{self, Point};
use flyball_core::quantile::median;

/// One value of a row.
pub(super) enum Cell<'a> {
    Empty,
    Text(&'a str),
    Number(f64),
    Names(Vec<u64>),
}

pub(super) struct Sheet {
    columns: Columns,
    tally: LoadTally,
    requests: Builder,
    /// By model.
    rates: BTreeMap<String, Vec<Point>>,
    absolute: bool,
    /// Whole numbers in a column of plain seconds, which may be milliseconds.
    whole: bool,
    /// Kept between rows, to save allocations.
    names: Vec<u64>,
}

/// Tokens of a block if nothing says it, as in Mooncake's traces.
pub(super) const BLOCK_TOKENS: u32 = 512;

pub(super) const ROWS_HINT: &str = "each row needs a time, prompt tokens and output tokens (or a \
                                    time and requests_per_second), all numbers";

impl Sheet {
    pub(super) fn new(file: &str, header: &[&str]) -> Result<Self, LoadError> {
        let columns = Columns::named(file, header)?;
        let mut tally = LoadTally::of(file);
        tally.unknown_columns.clone_from(&columns.unknown);
        Ok(Self {
            // BurstGPT is known to count whole seconds.
            whole: columns.per_second == 1.0 && columns.rate.is_none() && !columns.log_type,
            columns,
            tally,
            requests: Builder::default(),
            rates: BTreeMap::new(),
            absolute: false,
            names: Vec::new(),
        })
    }

    pub(super) fn unread(&mut self, line: u64, what: &str) {
        self.tally.unread(line, what);
    }

    pub(super) fn row<'a>(&mut self, line: u64, cell: impl Fn(usize) -> Cell<'a>) {
        match self.take(cell) {
            Ok(true) => self.tally.read += 1,
            Ok(false) => self.tally.failed += 1,
            Err(what) => self.tally.unread(line, &what),
        }
    }

    /// False if the row tells of a request that failed.
    fn take<'a>(&mut self, cell: impl Fn(usize) -> Cell<'a>) -> Result<bool, String> {
        let columns = &self.columns;
        let stamp = time(&cell(columns.time), columns.per_second)?;
        let number = |place: Option<usize>| place.map(|place| number(&cell(place))).transpose();
        let model_cell = columns.model.map(&cell);
        let model = word(model_cell.as_ref());
        if columns.rate.is_some() {
            // An empty cell says that nothing is known of that window.
            let rate = number(columns.rate)?.flatten();
            if rate.is_some_and(|rate| rate < 0.0) {
                return Err("the rate is negative".to_owned());
            }
            let point = Point {
                at: stamp.seconds,
                client: word(columns.client.map(&cell).as_ref()),
                rate,
                variation: number(columns.variation)?.flatten(),
                prompt: number(columns.prompt)?.flatten(),
                output: number(columns.output)?.flatten(),
            };
            self.rates.entry(model).or_default().push(point);
        } else {
            let prompt = tokens(number(columns.prompt)?.flatten(), "prompt")?;
            let output = tokens(number(columns.output)?.flatten(), "output")?;
            if columns.log_type && output == 0 {
                return Ok(false);
            }
            let patience = number(columns.patience)?.flatten();
            let block_tokens = number(columns.block_tokens)?.flatten();
            self.names.clear();
            if let Some(blocks) = columns.blocks.map(&cell) {
                names(blocks, &mut self.names);
            }
            self.whole &= stamp.seconds.fract() == 0.0 && !stamp.absolute;
            self.requests.push(&Raw {
                at: stamp.seconds,
                prompt,
                output,
                patience,
                model: &model,
                blocks: &self.names,
                block_tokens: block_tokens.map_or(BLOCK_TOKENS, |tokens| tokens as u32).max(1),
            })?;
        }
        self.absolute |= stamp.absolute;
        Ok(true)
    }

    pub(super) fn finish(self, form: Form) -> Result<Loaded, LoadError> {
        let Self { mut tally, requests, rates, absolute, whole, columns, .. } = self;
        tally.check(ROWS_HINT)?;
        if columns.rate.is_some() {
            let (zero, parts) = windows::parts(&tally.file, rates)?;
            let start = absolute.then_some(zero);
            return Ok(Loaded { form, start, parts, tally });
        }
        let (zero, parts) = requests.finish();
        if whole && rarely(&parts) {
            let what = format!("times are whole numbers more than {LONGEST_DISTANCE} apart");
            let hint = "if they are milliseconds, give seconds, or name the column timestamp_ms";
            return Err(LoadError::new(&tally.file, what).hint(hint));
        }
        if tally.failed > 0 {
            let words = format!("{} requests without an answer are left out", tally.failed);
            tally.notes.push(words);
        }
        Ok(Loaded { form, start: absolute.then_some(zero), parts, tally })
    }
}

/// Seconds between two requests in the median beyond which the unit is in doubt.
const LONGEST_DISTANCE: f64 = 100.0;

fn rarely(parts: &[LoadedPart]) -> bool {
    let mut times: Vec<f64> = Vec::new();
    for part in parts {
        if let Traffic::Trace(trace) = &part.traffic {
            times.extend(trace.requests.iter().map(|request| request.at.get()));
        }
    }
    times.sort_by(f64::total_cmp);
    let mut apart: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_by(f64::total_cmp);
    median(&apart).is_some_and(|usual| usual > LONGEST_DISTANCE)
}

fn time(cell: &Cell<'_>, per_second: f64) -> Result<Stamp, String> {
    match cell {
        Cell::Text(text) => stamp::parse(text, per_second),
        Cell::Number(number) if number.is_finite() => Some(stamp::numeric(*number, per_second)),
        _ => None,
    }
    .ok_or_else(|| match cell {
        Cell::Text(text) => format!("{text:?} is not a time"),
        _ => "the time is missing".to_owned(),
    })
}

/// Nothing if the cell is empty or not a number by its own word.
fn number(cell: &Cell<'_>) -> Result<Option<f64>, String> {
    match cell {
        Cell::Empty => Ok(None),
        Cell::Text("") => Ok(None),
        Cell::Number(number) => Ok(Some(*number).filter(|number| number.is_finite())),
        Cell::Text(text) => match text.parse::<f64>() {
            Ok(number) => Ok(Some(number).filter(|number| number.is_finite())),
            Err(_) => Err(format!("{text:?} is not a number")),
        },
        Cell::Names(_) => Err("a list is not a number".to_owned()),
    }
}

fn tokens(number: Option<f64>, of: &str) -> Result<u32, String> {
    match number {
        None => Err(format!("the {of} tokens are missing")),
        Some(number) if !(0.0..=f64::from(u32::MAX)).contains(&number) => {
            Err(format!("{number} {of} tokens cannot be"))
        }
        Some(number) => Ok(number.round() as u32),
    }
}

fn word(cell: Option<&Cell<'_>>) -> String {
    match cell {
        Some(Cell::Text(text)) => (*text).to_owned(),
        Some(Cell::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Names of blocks, set apart by blanks or punctuation. Names that are no numbers become one.
fn names(cell: Cell<'_>, into: &mut Vec<u64>) {
    match cell {
        Cell::Names(names) => into.extend(names),
        Cell::Number(number) => into.push(number as u64),
        Cell::Text(text) => {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
            into.extend(words.filter(|word| !word.is_empty()).map(name));
        }
        Cell::Empty => {}
    }
}

fn name(word: &str) -> u64 {
    word.parse::<u64>().unwrap_or_else(|_| {
        // FNV-1a: the same name gives the same number on every machine.
        word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    })
}
