//! The access log: one line of JSON per request on standard output.
//!
//! A request's thread writes its line into a buffer that hardly any other thread uses; one thread
//! of our own takes all buffers every few milliseconds and writes them out. Nobody waits for
//! standard output: a line that finds its buffer full is dropped and counted.
//!
//! A line never holds a key, a prompt or any word of a body. What a client chose (the request id)
//! is cut and its control characters are escaped, so that no client writes lines or terminal codes
//! into somebody's log (reliability.md T-23).

use super::Finished;
use crate::sse::Finish;
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, UNIX_EPOCH};

/// Buffers. More than this many threads share some.
const SHARDS: usize = 16;

/// Bytes in one buffer: some 1,000 lines, a tenth of a second of one core at full load. There are
/// two generations of each, so all together hold at most 16 MiB.
const SHARD_BYTES: usize = 512 << 10;

/// How long lines are gathered before they are written together: short for a person who follows
/// the log, and 50 system calls a second instead of one per request.
const GATHER: Duration = Duration::from_millis(20);

/// Bytes of a text that somebody else chose.
const TEXT_BYTES: usize = 256;

/// Where lines go.
#[derive(Debug)]
pub(super) struct AccessLog {
    shared: Arc<Shared>,
    thread: Thread,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    shards: [Mutex<Vec<u8>>; SHARDS],
    dropped: AtomicU64,
    ending: AtomicBool,
}

impl AccessLog {
    /// Starts the thread that writes to `out`.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_writer = Arc::clone(&shared);
        let writer = thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || of_writer.write_out(out))?;
        Ok(Self { shared, thread: writer.thread().clone(), writer: Mutex::new(Some(writer)) })
    }

    /// Takes the line of a request.
    pub(super) fn line(&self, finished: &Finished<'_>, trace_id: Option<u128>) {
        let shard = &self.shared.shards[SHARD.get()];
        let mut buffer = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.len() >= SHARD_BYTES {
            drop(buffer);
            self.shared.dropped.fetch_add(1, Relaxed);
            return;
        }
        let first = buffer.is_empty();
        write_line(&mut buffer, finished, trace_id);
        drop(buffer);
        if first {
            // Costs a system call only if the thread sleeps because nothing was there.
            self.thread.unpark();
        }
    }

    /// Writes what is there and ends. Lines that come later are not written.
    pub(super) fn close(&self) {
        self.shared.ending.store(true, Relaxed);
        self.thread.unpark();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A panic of that thread has been reported already.
            let _ = writer.join();
        }
    }

    /// Lines that were not written.
    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn write_out(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        loop {
            // Read before the buffers are taken, so that nothing that came before the end is lost.
            let ending = self.ending.load(Relaxed);
            let mut wrote = false;
            for shard in &self.shards {
                batch.clear();
                // The buffer comes back empty and keeps its memory.
                std::mem::swap(
                    &mut *shard.lock().unwrap_or_else(PoisonError::into_inner),
                    &mut batch,
                );
                if !batch.is_empty() {
                    wrote = true;
                    if out.write_all(&batch).and_then(|()| out.flush()).is_err() {
                        let lines = memchr::memchr_iter(b'\n', &batch).count();
                        self.dropped.fetch_add(lines as u64, Relaxed);
                    }
                }
            }
            if ending {
                return;
            }
            if wrote { thread::sleep(GATHER) } else { thread::park() }
        }
    }
}

thread_local! {
    /// The buffer of this thread.
    static SHARD: Cell<usize> = Cell::new(NEXT.fetch_add(1, Relaxed) % SHARDS);
    /// The second that was last written here, and how.
    static SECOND: Cell<(u64, [u8; 19])> = const { Cell::new((u64::MAX, [b'0'; 19])) };
}

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A name as it stands in a line. Put together by the compiler: a line has two dozen of them.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

/// One line. Names are those of OpenTelemetry where it has one; ours begin with `flyball.`.
fn write_line(line: &mut Vec<u8>, finished: &Finished<'_>, trace_id: Option<u128>) {
    let usage = finished.usage;
    line.extend_from_slice(b"{\"time\":\"");
    let started = finished.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    line.extend_from_slice(&second(started.as_secs()));
    fraction(line, started.subsec_micros());
    line.extend_from_slice(b"Z\"");
    text(line, key!("flyball.request.id"), finished.request_id);
    if let Some(trace_id) = trace_id {
        // Writing into memory cannot fail, here and below.
        let _ = write!(line, ",\"trace_id\":\"{trace_id:032x}\"");
    }
    text(line, key!("gen_ai.operation.name"), finished.surface.operation());
    text(line, key!("url.path"), finished.surface.path());
    optional(line, key!("gen_ai.request.model"), finished.model);
    optional(
        line,
        key!("flyball.caller"),
        Some(finished.caller).filter(|caller| !caller.is_empty()),
    );
    optional(line, key!("flyball.key.id"), finished.key);
    optional(line, key!("flyball.endpoint"), finished.endpoint);
    number(line, key!("http.response.status_code"), finished.status.into());
    text(line, key!("flyball.outcome"), finished.outcome.name());
    optional(line, key!("flyball.reason"), finished.reason);
    flag(line, key!("gen_ai.request.stream"), finished.stream);
    seconds(line, key!("flyball.duration_seconds"), Some(finished.took));
    seconds(line, key!("flyball.ttft_seconds"), finished.first);
    seconds(line, key!("flyball.routing_seconds"), finished.chosen);
    number(line, key!("flyball.retries"), finished.retries.into());
    if let Some(blocks) = finished.hoped_blocks {
        number(line, key!("flyball.expected_cached_blocks"), blocks.into());
    }
    optional(line, key!("gen_ai.response.finish_reasons"), finished.finish.map(Finish::name));
    optional(line, key!("flyball.split"), finished.split);
    special(line, finished);
    number(line, key!("gen_ai.usage.input_tokens"), usage.input);
    number(line, key!("gen_ai.usage.cache_read.input_tokens"), usage.cached.unwrap_or(0));
    number(line, key!("gen_ai.usage.output_tokens"), usage.output);
    flag(line, key!("flyball.usage.estimated"), finished.estimated);
    number(line, key!("http.request.body.size"), finished.bytes_in);
    number(line, key!("http.response.body.size"), finished.bytes_out);
    line.extend_from_slice(b"}\n");
}

/// What most requests have nothing of, and then do not speak of.
fn special(line: &mut Vec<u8>, finished: &Finished<'_>) {
    let queued = Some(finished.queued).filter(|queued| !queued.is_zero());
    seconds(line, key!("flyball.queued_seconds"), queued);
    for (key, is_so) in [
        (key!("flyball.held"), finished.held),
        (key!("flyball.mirrored"), finished.mirrored),
        (key!("flyball.cached"), finished.cached),
        (key!("flyball.hedged"), finished.hedged),
        (key!("flyball.batch"), finished.batch),
    ] {
        if is_so {
            flag(line, key, true);
        }
    }
    if finished.continued > 0 {
        number(line, key!("flyball.continued"), finished.continued.into());
    }
    if finished.preempted > 0 {
        number(line, key!("flyball.preempted"), finished.preempted.into());
    }
}

fn number(line: &mut Vec<u8>, key: &'static str, value: u64) {
    line.extend_from_slice(key.as_bytes());
    digits(line, value);
}

fn flag(line: &mut Vec<u8>, key: &'static str, value: bool) {
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Seconds with six digits after the point. By hand: this is a quarter of the price of `format!`.
fn seconds(line: &mut Vec<u8>, key: &'static str, value: Option<Duration>) {
    let Some(value) = value else { return };
    line.extend_from_slice(key.as_bytes());
    digits(line, value.as_secs());
    fraction(line, value.subsec_micros());
}

fn fraction(line: &mut Vec<u8>, mut micros: u32) {
    let mut fraction = *b".000000";
    for digit in fraction[1..].iter_mut().rev() {
        *digit += (micros % 10) as u8;
        micros /= 10;
    }
    line.extend_from_slice(&fraction);
}

/// `2026-11-06T21:20:00`. Most requests began in the second of the one before, and a calendar costs
/// more than all the rest of a line.
fn second(since_1970: u64) -> [u8; 19] {
    let (last, text) = SECOND.get();
    if last == since_1970 {
        return text;
    }
    // Times after 9999 are no times of requests.
    let seconds = i64::try_from(since_1970).unwrap_or_default();
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string();
    let mut text = [b'0'; 19];
    time.bytes().zip(&mut text).for_each(|(from, to)| *to = from);
    SECOND.set((since_1970, text));
    text
}

fn digits(line: &mut Vec<u8>, mut value: u64) {
    // The longest u64 has 20 digits.
    let mut written = [b'0'; 20];
    let mut at = written.len();
    loop {
        at -= 1;
        written[at] += (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    line.extend_from_slice(&written[at..]);
}

fn optional(line: &mut Vec<u8>, key: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        text(line, key, value);
    }
}

fn text(line: &mut Vec<u8>, key: &'static str, value: &str) {
    line.extend_from_slice(key.as_bytes());
    line.push(b'"');
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if value.len() <= TEXT_BYTES && value.bytes().all(plain) {
        line.extend_from_slice(value.as_bytes());
    } else {
        escaped(line, value);
    }
    line.push(b'"');
}

fn escaped(line: &mut Vec<u8>, value: &str) {
    for (at, c) in value.char_indices() {
        if at >= TEXT_BYTES {
            line.extend_from_slice("…".as_bytes());
            return;
        }
        // Beside C0: DEL and C1 drive terminals, U+2028/9 break lines in some readers, and marks
        // of direction make a line read as another.
        let hidden =
            c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let _ = match c {
            '"' | '\\' => write!(line, "\\{c}"),
            _ if hidden => write!(line, "\\u{:04x}", u32::from(c)),
            _ => write!(line, "{c}"),
        };
    }
}
