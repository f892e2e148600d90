//! The data of events that are whole.

/// What stands behind `data:` in each line of whole events that has it, and where the line begins.
/// Events whose data have several lines come as several; no engine sends such.
pub fn data_of(events: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    let lines = std::iter::from_fn(move || {
        let rest = events.get(at..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let begins = at;
        at += length + 1;
        Some((begins, &rest[..length]))
    });
    lines.filter_map(|(begins, line)| {
        let data = line.strip_prefix(b"data:")?.trim_ascii_end();
        Some((begins, data.strip_prefix(b" ").unwrap_or(data)))
    })
}

#[cfg(test)]
mod tests {
    use super::data_of;

    #[test]
    fn data_is_found_behind_all_line_ends() {
        let text = b": c\n\ndata: a\n\r\nevent: x\r\ndata:b\r\rid: 1\ndata:  c \n\n";
        let found: Vec<_> = data_of(text).collect();
        assert_eq!(found, [(5, &b"a"[..]), (25, b"b"), (39, b" c")]);
    }
}
