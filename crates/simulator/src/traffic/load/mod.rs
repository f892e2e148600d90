//! From files to traffic: public traces, plain tables, and what Prometheus recorded.
//!
//! [`open`] takes a path and [`read`] takes bytes; both find out the form from the content, not
//! from the name. Rows that cannot be read are counted and shown, never taken as zero; columns
//! that mean nothing here are named. Nothing is guessed about what a file does not say.
//!
//! Not here: which silences are gaps (`gaps`), and what a trace looks like (`shape`). Start
//! reading at [`read`].

mod builder;
mod columns;
mod csv;
mod jsonl;
mod parquet;
mod servegen;
mod sheet;
mod stamp;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::prometheus;

pub use super::load_error::{LoadError, LoadTally};
pub use super::loaded::{Form, Loaded, LoadedPart, Traffic};

/// Reads a file, gzipped or not, or a folder of `ServeGen`.
pub fn open(path: &Path) -> Result<Loaded, LoadError> {
    let name = path.display().to_string();
    if path.is_dir() {
        return servegen::folder(&name, path);
    }
    read(&name, &bytes(path)?)
}

/// The bytes of a file, unpacked if it is gzipped.
pub fn bytes(path: &Path) -> Result<Vec<u8>, LoadError> {
    let name = path.display().to_string();
    let refused = |error: std::io::Error| {
        LoadError::new(&name, format!("cannot be read: {error}"))
            .hint("give a file or a folder that exists and that you may read")
    };
    unpacked(&name, std::fs::read(path).map_err(refused)?)
}

/// Reads bytes; `file` is only what errors call them.
pub fn read(file: &str, bytes: &[u8]) -> Result<Loaded, LoadError> {
    if is_gzip(bytes) {
        return read(file, &unpacked(file, bytes.to_vec())?);
    }
    if bytes.starts_with(b"PAR1") {
        return parquet::read(file, bytes);
    }
    // The mark of tar files since 1988.
    if bytes.get(257..262) == Some(b"ustar") {
        return servegen::archive(file, bytes);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| {
        LoadError::new(file, "neither text, nor Parquet, nor a tar file").hint(FORMS_HINT)
    })?;
    // Spreadsheets put a byte order mark before the first letter.
    let text = text.trim_start_matches('\u{feff}');
    let first = text.trim_start();
    if first.is_empty() {
        return Err(LoadError::new(file, "the file is empty").hint(FORMS_HINT));
    }
    if first.starts_with("model,kind,quantile,tokens") {
        let what = "this is a table of lengths, not traffic";
        return Err(LoadError::new(file, what).line(1).hint("give it together with rates"));
    }
    if !first.starts_with('{') {
        return if servegen::is_chunk(first) {
            servegen::chunk(file, text)
        } else {
            csv::read(file, text)
        };
    }
    if prometheus::is_answer(first) {
        prometheus::read(file, text)
    } else {
        jsonl::read(file, text)
    }
}

const FORMS_HINT: &str = "CSV with a header, JSON lines, Parquet, a ServeGen tar or folder, or the \
                          JSON of a Prometheus range query are read; each may be gzipped";

fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

fn unpacked(file: &str, bytes: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    if !is_gzip(&bytes) {
        return Ok(bytes);
    }
    let mut plain = Vec::with_capacity(bytes.len() * 4);
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).map_err(|error| {
        LoadError::new(file, format!("the gzip file is broken: {error}"))
            .hint("copy or download it again; gzip -t checks it")
    })?;
    Ok(plain)
}
