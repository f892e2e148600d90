//! A client that follows the WHATWG's text to the letter: what tests and fuzzing hold ours against.

/// Name and data of each event that a client would dispatch.
pub(super) fn parse(stream: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(stream);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    let mut lines: Vec<&str> = text.split(['\r', '\n']).collect();
    // What stands behind the last line's end is no line.
    lines.pop();
    let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
    for line in lines {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                let name = if name.is_empty() { "message" } else { &name };
                events.push((name.to_owned(), data.to_owned()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            _ => {}
        }
    }
    events
}
