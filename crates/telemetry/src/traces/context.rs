//! W3C trace context: the header `traceparent`.

/// Which trace and which span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace. Never zero.
    pub trace_id: u128,
    /// The span. Never zero.
    pub span_id: u64,
    /// Whether whoever began the trace wants to see it.
    pub sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`. `None` for anything that the recommendation calls invalid; then a
    /// trace begins anew.
    pub fn parse(header: &str) -> Option<Self> {
        let bytes = header.as_bytes();
        let plain = |part: &[u8]| part.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if bytes.len() < 55 || !dashes {
            return None;
        }
        let parts = [&bytes[..2], &bytes[3..35], &bytes[36..52], &bytes[53..55]];
        let version = parts[0];
        // Version ff is forbidden, 00 ends here, and later ones may go on after a dash.
        let ends = match bytes.get(55) {
            None => true,
            Some(next) => version != b"00" && *next == b'-',
        };
        if !ends || version == b"ff" || !parts.iter().all(|part| plain(part)) {
            return None;
        }
        let trace_id = u128::from_str_radix(header.get(3..35)?, 16).ok()?;
        let span_id = u64::from_str_radix(header.get(36..52)?, 16).ok()?;
        let flags = u8::from_str_radix(header.get(53..55)?, 16).ok()?;
        (trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            sampled: flags & 1 == 1,
        })
    }

    /// As a `traceparent`, for whom this span calls.
    pub fn header(self) -> String {
        let Self { trace_id, span_id, sampled } = self;
        format!("00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(sampled))
    }
}
