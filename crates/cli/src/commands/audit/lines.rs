//! Lines of a file, one at a time, each of bounded length.

use std::io::{self, BufRead};

/// Bytes of a line. The API server takes three million of a request, and a line may have the request and the answer.
pub(super) const LONGEST: usize = 8 << 20;

/// A line, without its end.
pub(super) enum Read<'a> {
    Whole(&'a [u8]),
    TooLong,
}

/// Hands each line over with its number, from 1. A line that is too long is read to its end and never held.
pub(super) fn each(
    mut file: impl BufRead,
    longest: usize,
    mut hand: impl FnMut(u64, Read<'_>),
) -> io::Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let (mut read, mut too_long, mut ended) = (false, false, false);
        while !ended {
            let piece = match file.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if piece.is_empty() {
                break;
            }
            read = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            too_long |= line.len() + part.len() > longest;
            if too_long {
                line = Vec::new();
            } else {
                line.extend_from_slice(part);
            }
            ended = end.is_some();
            let used = part.len() + usize::from(ended);
            file.consume(used);
        }
        if !read {
            return Ok(());
        }
        number += 1;
        hand(number, if too_long { Read::TooLong } else { Read::Whole(&line) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], buffer: usize) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let file = io::BufReader::with_capacity(buffer, text);
        each(file, 4, |number, line| {
            all.push(match line {
                Read::Whole(line) => (number, Some(line.to_vec())),
                Read::TooLong => (number, None),
            });
        })
        .unwrap();
        all
    }

    #[test]
    fn a_line_that_is_too_long_has_a_number_and_the_next_one_is_read() {
        let whole = |number, text: &str| (number, Some(text.as_bytes().to_vec()));
        for buffer in [1, 3, 64] {
            let found = read(b"ab\n12345678\n\nabcd\nlast", buffer);
            let expected =
                [whole(1, "ab"), (2, None), whole(3, ""), whole(4, "abcd"), whole(5, "last")];
            assert_eq!(found, expected);
        }
        assert_eq!(read(b"", 1), []);
    }
}
