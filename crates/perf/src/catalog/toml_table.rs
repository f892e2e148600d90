//! Reading one table of a TOML file key by key, with the line of each.
//!
//! A derived reader would stop at the first wrong value; this one tells all of them. Numbers stay
//! text, so that money is read exactly.

use super::problems::Reader;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One `[[table]]` of a file.
pub(super) struct TomlTable<'a, 'i> {
    /// The whole file, to count lines in.
    text: &'a str,
    table: &'a DeTable<'i>,
    /// Where the table begins, for what is missing in it.
    line: usize,
}

/// The line of a place in a text, counted from 1.
pub(super) fn line_at(text: &str, place: usize) -> usize {
    text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1
}

impl<'a, 'i> TomlTable<'a, 'i> {
    /// All tables of this name, written `[[name]]`; anything else under it is a problem.
    pub(super) fn all(
        reader: &mut Reader<'_>,
        text: &'a str,
        file: &'a DeTable<'i>,
        name: &str,
    ) -> Vec<Self> {
        let Some(value) = file.get(name) else { return Vec::new() };
        let values: &[Spanned<DeValue<'i>>] = match value.get_ref() {
            DeValue::Array(values) => values,
            _ => &[],
        };
        let tables: Vec<Self> = values
            .iter()
            .filter_map(|value| {
                let line = line_at(text, value.span().start);
                value.get_ref().as_table().map(|table| Self { text, table, line })
            })
            .collect();
        if tables.is_empty() || tables.len() != values.len() {
            reader.line = line_at(text, value.span().start);
            reader.wrong(format!("{name} is not a list of tables"), format!("write [[{name}]]"));
        }
        tables
    }

    /// Moves the reader to the beginning of the table.
    pub(super) fn begin(&self, reader: &mut Reader<'_>) {
        reader.line = self.line;
    }

    /// Reports keys that nothing reads.
    pub(super) fn only(&self, reader: &mut Reader<'_>, keys: &[&str]) {
        for (key, _) in self.table {
            if !keys.contains(&key.get_ref().as_ref()) {
                reader.line = line_at(self.text, key.span().start);
                unknown_key(reader, key.get_ref(), keys);
            }
        }
        self.begin(reader);
    }

    /// The text of a key, if it is there. Numbers and days may stand without quotes.
    pub(super) fn text(&self, reader: &mut Reader<'_>, key: &str) -> Option<String> {
        let value = self.table.get(key)?;
        reader.line = line_at(self.text, value.span().start);
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Datetime(day) => Some(day.to_string()),
            other => {
                let what = format!("{key} is of type {}", other.type_str());
                reader.wrong(what, "write a text in quotes, or a number");
                None
            }
        }
    }

    /// The same, where it must be there.
    pub(super) fn required(
        &self,
        reader: &mut Reader<'_>,
        key: &str,
        example: &str,
    ) -> Option<String> {
        self.need(reader, key, example);
        self.text(reader, key)
    }

    /// Reports a key that is not there.
    pub(super) fn need(&self, reader: &mut Reader<'_>, key: &str, example: &str) {
        if !self.table.contains_key(key) {
            self.begin(reader);
            reader.wrong(format!("{key} is missing"), format!("write {key} = {example}"));
        }
    }

    /// A switch; off if it is not there.
    pub(super) fn switch(&self, reader: &mut Reader<'_>, key: &str) -> bool {
        let Some(value) = self.table.get(key) else { return false };
        value.get_ref().as_bool().unwrap_or_else(|| {
            reader.line = line_at(self.text, value.span().start);
            reader.wrong(format!("{key} is not a switch"), format!("write {key} = true"));
            false
        })
    }

    /// A list of texts; empty if it is not there.
    pub(super) fn list(&self, reader: &mut Reader<'_>, key: &str) -> Vec<String> {
        let Some(value) = self.table.get(key) else { return Vec::new() };
        let items = value.get_ref().as_array().and_then(|items| {
            items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
        });
        items.unwrap_or_else(|| {
            reader.line = line_at(self.text, value.span().start);
            reader
                .wrong(format!("{key} is not a list"), format!("write {key} = [\"one\", \"two\"]"));
            Vec::new()
        })
    }

    /// Reads the key, if it is there, with one of the reader's own methods.
    pub(super) fn read<'r, T>(
        &self,
        reader: &mut Reader<'r>,
        key: &str,
        with: impl FnOnce(&mut Reader<'r>, &str, &str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(reader, key)?;
        with(reader, key, &text)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }
}

/// Says which key was probably meant.
pub(super) fn unknown_key(reader: &mut Reader<'_>, key: &str, keys: &[&str]) {
    let likeness = |known: &&&str| (strsim::jaro_winkler(known, key) * 1e6) as u64;
    let mend = match keys.iter().max_by_key(likeness).filter(|best| likeness(best) > 850_000) {
        Some(best) => format!("write {best}"),
        None => format!("use one of {}", keys.join(", ")),
    };
    reader.wrong(format!("nothing reads the key {key}"), mend);
}
