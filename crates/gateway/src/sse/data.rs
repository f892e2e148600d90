//! The data of events that are whole.

/// What stands behind `data:` in each line of whole events that has it, and where the line begins.
/// Events whose data have several lines come as several; no engine sends such.
pub(crate) fn data_of(events: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    events.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')).filter_map(move |line| {
        let begins = at;
        at += line.len();
        let data = line.trim_ascii_end().strip_prefix(b"data:")?;
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
