//! `multipart/form-data`, as it comes, without holding any field whole.

use bytes::{Bytes, BytesMut};
use memchr::memmem;

/// Bytes of the headers of a field.
const MAX_HEADERS: usize = 8 << 10;

/// Fields of a form.
const MAX_FIELDS: usize = 32;

/// A form as it is read.
#[derive(Debug)]
pub(super) struct Multipart {
    /// A line break, two dashes, and the boundary.
    delimiter: Vec<u8>,
    buffer: BytesMut,
    state: State,
    fields: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// What stands before the first field.
    Preamble,
    /// Behind a delimiter.
    Delimited,
    Headers,
    Data,
    Over,
}

/// What a form has next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormPart {
    /// A field begins.
    Field { name: String, filename: Option<String> },
    /// Some of what is in it.
    Data(Bytes),
    /// The form is over.
    End,
}

/// Why it is no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormError {
    /// Its type is another, or has no boundary.
    #[error("the content type is not multipart/form-data with a boundary")]
    Type,
    /// A delimiter is followed by something else than it should be.
    #[error("the form is damaged")]
    Damaged,
    /// Headers without an end or a name.
    #[error("a field has no name, or its headers are too long")]
    Headers,
    /// Too many of them.
    #[error("the form has too many fields")]
    Fields,
}

impl Multipart {
    /// Of a content type.
    pub(super) fn of(content_type: &str) -> Result<Self, FormError> {
        let mut parts = content_type.split(';');
        let kind = parts.next().unwrap_or_default().trim();
        let boundary = parts.find_map(|part| {
            let (name, value) = part.trim().split_once('=')?;
            name.eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
        });
        match boundary {
            Some(boundary)
                if kind.eq_ignore_ascii_case("multipart/form-data")
                    && (1..=70).contains(&boundary.len()) =>
            {
                // The first delimiter stands at the very beginning: a line break before it makes it like the others.
                let (delimiter, buffer) =
                    (format!("\r\n--{boundary}").into_bytes(), BytesMut::from(&b"\r\n"[..]));
                Ok(Self { delimiter, buffer, state: State::Preamble, fields: 0 })
            }
            _ => Err(FormError::Type),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// What is next; none if more has to come first.
    pub(super) fn next(&mut self) -> Result<Option<FormPart>, FormError> {
        loop {
            match self.state {
                State::Over => return Ok(Some(FormPart::End)),
                State::Preamble => {
                    if self.before_delimiter().is_none() {
                        return Ok(None);
                    }
                }
                State::Delimited => {
                    let Some(two) = self.buffer.get(..2) else { return Ok(None) };
                    self.state = match two {
                        b"--" => State::Over,
                        b"\r\n" => State::Headers,
                        _ => return Err(FormError::Damaged),
                    };
                    // The line break belongs to the headers: they may be none, which is an error of its own.
                }
                State::Headers => return self.headers(),
                State::Data => return Ok(self.before_delimiter().map(FormPart::Data)),
            }
        }
    }

    /// What stands before the next delimiter, as far as it is there. None if that is nothing yet.
    fn before_delimiter(&mut self) -> Option<Bytes> {
        if let Some(end) = memmem::find(&self.buffer, &self.delimiter) {
            let found = self.buffer.split_to(end).freeze();
            let _ = self.buffer.split_to(self.delimiter.len());
            self.state = State::Delimited;
            return Some(found);
        }
        // The end of what is there may be the beginning of a delimiter.
        let sure = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
        let found = self.buffer.split_to(sure).freeze();
        (self.state == State::Data && !found.is_empty()).then_some(found)
    }

    fn headers(&mut self) -> Result<Option<FormPart>, FormError> {
        let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") else {
            let too_long = self.buffer.len() > MAX_HEADERS;
            return if too_long { Err(FormError::Headers) } else { Ok(None) };
        };
        let headers = self.buffer.split_to(end);
        let _ = self.buffer.split_to(4);
        self.state = State::Data;
        self.fields += 1;
        if headers.len() > MAX_HEADERS {
            return Err(FormError::Headers);
        }
        if self.fields > MAX_FIELDS {
            return Err(FormError::Fields);
        }
        let headers = String::from_utf8_lossy(&headers);
        let disposition = headers.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
        });
        let disposition = disposition.ok_or(FormError::Headers)?;
        let name = parameter(disposition, "name").ok_or(FormError::Headers)?;
        Ok(Some(FormPart::Field { name, filename: parameter(disposition, "filename") }))
    }
}

/// A quoted or plain parameter of a header.
fn parameter(header: &str, wanted: &str) -> Option<String> {
    let mut rest = header;
    loop {
        rest = rest.split_once(';')?.1;
        let (name, value) = rest.split_once('=')?;
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_at(value.find(';').unwrap_or(value.len())),
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FORM: &[u8] = b"--XX\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--XX\r\n\
        content-disposition: form-data; filename=\"a;b.jsonl\"; name=file\r\nContent-Type: x/y\r\n\r\n\
        line\r\n--X\r\n--XY-\r\n\r\n--XX--\r\n";

    /// A name, the name of a file, and what is in it.
    type Field = (String, Option<String>, Vec<u8>);

    fn read(pieces: &[&[u8]]) -> Result<Vec<Field>, FormError> {
        let mut form = Multipart::of("multipart/form-data; boundary=XX").unwrap();
        let mut found: Vec<Field> = Vec::new();
        for piece in pieces {
            form.push(piece);
            while let Some(part) = form.next()? {
                match part {
                    FormPart::Field { name, filename } => found.push((name, filename, Vec::new())),
                    FormPart::Data(bytes) => found.last_mut().unwrap().2.extend_from_slice(&bytes),
                    FormPart::End => return Ok(found),
                }
            }
        }
        Err(FormError::Damaged)
    }

    #[test]
    fn fields_are_found_wherever_the_form_is_cut() {
        let expected = [
            ("purpose".to_owned(), None, b"batch".to_vec()),
            ("file".to_owned(), Some("a;b.jsonl".to_owned()), b"line\r\n--X\r\n--XY-\r\n".to_vec()),
        ];
        for cut in 0..FORM.len() {
            assert_eq!(read(&[&FORM[..cut], &FORM[cut..]]).unwrap(), expected, "{cut}");
        }
        let bytes: Vec<&[u8]> = FORM.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for wrong in [
            "",
            "multipart/form-data",
            "application/json; boundary=x",
            "multipart/form-data; boundary=",
        ] {
            assert!(Multipart::of(wrong).is_err(), "{wrong}");
        }
        assert!(Multipart::of("Multipart/Form-Data; charset=x; Boundary=\"a b\"").is_ok());
        assert_eq!(read(&[b"--XXjunk"]), Err(FormError::Damaged));
        assert_eq!(read(&[b"--XX\r\nA: b\r\n\r\n"]), Err(FormError::Headers));
        let long = [b"--XX\r\n".to_vec(), vec![b'a'; 2 * MAX_HEADERS]].concat();
        assert_eq!(read(&[&long]), Err(FormError::Headers));
        let many =
            b"--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(MAX_FIELDS + 1);
        assert_eq!(read(&[&many]), Err(FormError::Fields));
    }

    #[test]
    fn memory_is_that_of_a_delimiter_and_not_of_a_field() {
        let mut form = Multipart::of("multipart/form-data; boundary=XX").unwrap();
        form.push(b"--XX\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n");
        for _ in 0..1_000 {
            form.push(&[b'-'; 10_000]);
            while form.next().unwrap().is_some() {}
            assert!(form.buffer.len() < 10);
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_it_ends(bytes: Vec<u8>) {
            let mut form = Multipart::of("multipart/form-data; boundary=X").unwrap();
            form.push(b"--X\r\n");
            form.push(&bytes);
            for _ in 0..bytes.len() + 10 {
                match form.next() {
                    Ok(Some(FormPart::End) | None) | Err(_) => return Ok(()),
                    Ok(Some(_)) => {}
                }
            }
            prop_assert!(false);
        }
    }
}
