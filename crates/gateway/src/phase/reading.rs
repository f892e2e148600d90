//! A request whose body is read, for as long as its client keeps sending.

use super::Phase;
use super::identified::Identified;
use super::open::Open;
use crate::aim::Read;
use crate::answer::Problem;
use crate::finished::Finished;
use crate::room::Place;
use crate::scan::{self, Scanner};
use crate::settings::Timeouts;
use crate::shared::Shared;
use futures::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a request whose body is slow looks whether the gateway goes away.
const TICK: Duration = Duration::from_millis(250);

/// A part of a body, its end, or what went wrong.
type Came = Option<hyper::Result<Frame<Bytes>>>;

/// Bytes of a body by which each millisecond of its time is earned: 8 KB per second, less than the
/// slowest line that anybody sends prompts over.
const BYTES_PER_MS: u64 = 8;

/// A request that has a place inside and whose body is read.
pub(crate) struct Reading {
    pub(super) identified: Identified,
    /// Its place among the requests at once.
    pub(super) place: Place,
    bytes_in: u64,
    /// From its head to the last byte of its body, once that came.
    read: Option<Duration>,
    pub(super) stream: bool,
}

impl Open<Identified> {
    /// Takes a place inside, and reads a body and what it says.
    pub(crate) async fn read(self, body: Incoming) -> Result<(Open<Reading>, Read), Problem> {
        let shared = &self.head().shared;
        let (limits, _) = shared.bounds();
        let place = Place::take(Arc::clone(&shared.room), self.caller.share.clone(), &limits);
        let (identified, place) = self.or_refuse(place)?;
        let mut reading = identified.then(|identified| Reading {
            identified,
            place,
            bytes_in: 0,
            read: None,
            stream: false,
        });
        let read = reading.body(body).await;
        reading.or_refuse(read)
    }
}

impl Open<Reading> {
    async fn body(&mut self, mut body: Incoming) -> Result<Read, Problem> {
        let (bounds, timeouts) = self.head().shared.bounds();
        let limit = bounds.body_bytes;
        let limits = scan::ScanLimits { body_bytes: limit, ..scan::ScanLimits::DEFAULT };
        if body.size_hint().lower() > limit as u64 {
            return Err(Problem::Body(scan::ScanError::TooLong { limit }));
        }
        let mut scanner = Scanner::new(self.head().surface, limits);
        let mut pieces = Vec::new();
        let began = Instant::now();
        loop {
            // A short body has come with its head: no timer for what is there.
            let frame = match body.frame().now_or_never() {
                Some(frame) => frame,
                None => {
                    let patience = patience(&timeouts, began.elapsed(), self.bytes_in);
                    next(&self.head().shared, &mut body, patience).await?
                }
            };
            let Some(frame) = frame else { break };
            let Ok(piece) = frame.map_err(|_| Problem::BodyBroken)?.into_data() else { continue };
            self.place.hold(piece.len(), &bounds)?;
            self.bytes_in += piece.len() as u64;
            scanner.feed(&piece).map_err(Problem::Body)?;
            if !piece.is_empty() {
                pieces.push(piece);
            }
        }
        let (scanned, blocks) = scanner.end().map_err(Problem::Body)?;
        if scanned.answers.is_some_and(|answers| answers > bounds.answers) {
            let expected = "no more than the gateway allows";
            return Err(Problem::Body(scan::ScanError::Wrong { key: "n", expected }));
        }
        self.read = Some(self.head().age());
        self.stream = scanned.stream;
        Ok(Read { scanned, blocks, pieces: pieces.into() })
    }
}

impl Reading {
    /// That of a copy, whose body is there.
    pub(super) fn copy(&self, identified: Identified, place: Place) -> Self {
        let Self { bytes_in, stream, .. } = *self;
        Self { identified, place, bytes_in, read: None, stream }
    }
}

impl Phase for Reading {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.identified.describe(finished);
        finished.bytes_in = self.bytes_in;
        finished.read = self.read;
        finished.stream = self.stream;
    }
}

/// The next of a body that is slow to come. Whoever still sends when the gateway ends is told so.
async fn next(shared: &Shared, body: &mut Incoming, patience: Duration) -> Result<Came, Problem> {
    let until = Instant::now() + patience;
    loop {
        let check = until.min(Instant::now() + TICK);
        match tokio::time::timeout_at(check.into(), body.frame()).await {
            Ok(frame) => return Ok(frame),
            Err(_) if shared.is_cut() => return Err(Problem::Draining),
            Err(_) if Instant::now() >= until => return Err(Problem::BodyTimeout),
            Err(_) => {}
        }
    }
}

/// How long to wait for the next piece of a body of which so much came in so long: not beyond the time
/// between pieces, nor beyond the time for all of it, which grows with what came. Who sends a byte now
/// and then is late in the end.
fn patience(timeouts: &Timeouts, elapsed: Duration, bytes: u64) -> Duration {
    let idle = Duration::from_millis(timeouts.body_idle_ms);
    let whole = Duration::from_millis(timeouts.body_ms.saturating_add(bytes / BYTES_PER_MS));
    idle.min(whole.saturating_sub(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_time_for_each_piece_and_for_all_of_it() {
        let timeouts = Timeouts { body_idle_ms: 100, body_ms: 1_000, ..Timeouts::default() };
        let left =
            |elapsed, bytes| patience(&timeouts, Duration::from_millis(elapsed), bytes).as_millis();
        assert_eq!(left(0, 0), 100);
        assert_eq!(left(950, 5), 50);
        assert_eq!(left(1_000, 7), 0, "a byte now and then");
        // Who sends 8 KB per second is never late.
        for second in 1..100 {
            assert_eq!(left(second * 1_000, second * 8_000), 100);
        }
        assert_eq!(left(4_000, 16_000), 0, "half of that");
    }
}
