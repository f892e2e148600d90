//! Events of our own, such as the error that ends a broken stream.

use bytes::{BufMut as _, Bytes, BytesMut};

/// One event with this data, under this name if there is one.
///
/// Three things end a line (`\n`, `\r`, `\r\n`), so a text that was only split at `\n` could smuggle
/// in events of its own (reliability.md T-20). Here each line of `data` becomes a line of its own,
/// and a name stays on its line.
pub fn write_event(event: Option<&str>, data: &str) -> Bytes {
    let name = event.unwrap_or_default();
    let mut out = BytesMut::with_capacity(data.len() + name.len() + 32);
    if !name.is_empty() {
        out.put_slice(b"event: ");
        out.extend(
            name.bytes().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte }),
        );
        out.put_u8(b'\n');
    }
    for line in data.replace("\r\n", "\n").split(['\r', '\n']) {
        out.put_slice(b"data: ");
        out.put_slice(line.as_bytes());
        out.put_u8(b'\n');
    }
    out.put_u8(b'\n');
    out.freeze()
}
