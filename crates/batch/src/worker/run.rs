//! A batch that this worker has.

use crate::check::LinePlace;
use crate::forms::{BatchStatus, LineResult, RequestLine};
use crate::lines::{LineOutcome, LineToSend};
use crate::state::{
    BatchKey, FileReader, PART_BYTES, Record, Segment, SegmentName, StateError, StoredRecord,
};
use crate::step::BatchView;
use bytes::Bytes;
use flyball_core::units::{Micros, Timestamp};
use flyball_ledger::store::Store;
use std::collections::{BTreeMap, VecDeque};

/// Results wait so long for others before they are stored.
const SEGMENT_TIME: Micros = Micros::from_seconds(5);

/// Lines of a segment, at most.
const SEGMENT_LINES: u64 = 256;

/// A worker that dies loses what it has not stored: of a batch no more than one line of so many.
const SEGMENT_SHARE: u64 = 200;

/// A batch.
#[derive(Debug)]
pub(crate) struct Run {
    stored: StoredRecord,
    loaded: Option<Loaded>,
    /// Lines at the gateway, and their ids of the caller.
    in_flight: BTreeMap<u32, String>,
    results: Segment,
    /// Since when results wait.
    waiting_since: Option<Timestamp>,
    /// What is being stored. It stays as it is until that is known.
    pending: Option<(SegmentName, Bytes)>,
    segments: u32,
    not_before: Timestamp,
    must_claim: bool,
}

/// What is known of its lines.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) reader: FileReader,
    pub(super) places: Vec<LinePlace>,
    /// Lines with a result, stored or not.
    pub(super) done: Vec<bool>,
    /// Lines with a stored result.
    pub(super) stored: u64,
    pub(super) queue: VecDeque<u32>,
}

impl Run {
    pub(super) fn new(stored: StoredRecord) -> Self {
        Self {
            stored,
            loaded: None,
            in_flight: BTreeMap::new(),
            results: Segment::default(),
            waiting_since: None,
            pending: None,
            segments: 0,
            not_before: Timestamp::from_micros(0),
            must_claim: false,
        }
    }

    pub(super) const fn record(&self) -> &Record {
        &self.stored.record
    }

    pub(super) const fn number(&self) -> u32 {
        self.stored.number
    }

    pub(super) const fn epoch(&self) -> u32 {
        self.stored.record.epoch
    }

    pub(super) const fn status(&self) -> BatchStatus {
        self.stored.record.batch.status
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// It is this from now on.
    pub(super) fn follow(&mut self, stored: StoredRecord) {
        self.stored = stored;
        self.must_claim = false;
    }

    /// A state is about to be put. Unless its fate is known afterwards, this worker must begin anew.
    pub(super) const fn expect_claim(&mut self) {
        self.must_claim = true;
    }

    pub(super) const fn must_claim(&self) -> bool {
        self.must_claim
    }

    pub(super) fn fail(&mut self, until: Timestamp) {
        // Results that were half put together may be of files that somebody will see: other files next time.
        if matches!(self.status(), BatchStatus::Finalizing | BatchStatus::Cancelling) {
            self.must_claim = true;
        }
        self.wait_until(until);
    }

    pub(super) const fn wait_until(&mut self, until: Timestamp) {
        self.not_before = until;
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.not_before <= now
    }

    pub(super) const fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    pub(super) fn unload(&mut self) {
        self.loaded = None;
    }

    pub(super) fn set_loaded(&mut self, loaded: Loaded) {
        self.loaded = Some(loaded);
    }

    pub(super) fn view(&self) -> BatchView {
        let record = self.record();
        // What is not loaded may be whole or not: it is loaded to see.
        let stored = self.loaded.as_ref().map_or(0, |loaded| loaded.stored);
        BatchView {
            status: record.batch.status,
            ending: record.ending,
            deadline: record.deadline(),
            total: record.batch.request_counts.total,
            stored,
        }
    }

    /// No line of it is at the gateway any more; true if some were.
    pub(super) fn stop_lines(&mut self) -> bool {
        let stopped: Vec<u32> = std::mem::take(&mut self.in_flight).into_keys().collect();
        if let Some(loaded) = &mut self.loaded {
            stopped.iter().rev().for_each(|index| loaded.queue.push_front(*index));
        }
        !stopped.is_empty()
    }

    /// A line ended.
    pub(super) fn end(&mut self, key: &BatchKey, index: u32, became: LineOutcome, now: Timestamp) {
        // Of lines that were stopped nothing counts: others may be at them.
        let Some(custom_id) = self.in_flight.remove(&index) else { return };
        match became {
            LineOutcome::Done(result) => {
                self.note(key, index, &custom_id, &result);
                self.waiting_since.get_or_insert(now);
            }
            LineOutcome::Later(wait) => {
                if let Some(loaded) = &mut self.loaded {
                    loaded.queue.push_back(index);
                }
                self.not_before = self.not_before.max(now.saturating_add(wait));
            }
        }
    }

    fn note(&mut self, key: &BatchKey, index: u32, custom_id: &str, result: &LineResult) {
        let Some(loaded) = &mut self.loaded else { return };
        let Some(done) = loaded.done.get_mut(index as usize) else { return };
        if !std::mem::replace(done, true) {
            let line = result.line(&result_id(key, index), custom_id);
            self.results.push(index, result.is_success(), &line);
        }
    }

    /// Whether it has lines that may be sent now.
    pub(super) fn has_lines(&self, now: Timestamp) -> bool {
        let may_run = matches!(self.status(), BatchStatus::InProgress | BatchStatus::Finalizing);
        let queued = self.loaded.as_ref().is_some_and(|loaded| !loaded.queue.is_empty());
        may_run && queued && !self.must_claim && self.is_due(now)
    }

    /// The next line; none if the one in front is done already.
    pub(super) async fn send_next<S: Store>(
        &mut self,
        store: &S,
        key: &BatchKey,
    ) -> Result<Option<LineToSend>, StateError> {
        let record = &self.stored.record;
        let Some(loaded) = &mut self.loaded else { return Ok(None) };
        let Some(index) = loaded.queue.front().copied() else { return Ok(None) };
        if loaded.done[index as usize] {
            loaded.queue.pop_front();
            return Ok(None);
        }
        let place = loaded.places[index as usize];
        let bytes = loaded.reader.range(store, place.from, place.bytes).await?;
        let line: RequestLine<'_> = serde_json::from_slice(&bytes)
            .map_err(|why| StateError::damaged(&record.batch.input_file_id, why))?;
        loaded.queue.pop_front();
        self.in_flight.insert(index, line.custom_id.into_owned());
        Ok(Some(LineToSend {
            key: key.clone(),
            index,
            tenant: record.tenant.clone(),
            endpoint: record.batch.endpoint.clone(),
            body: line.body.get().to_owned(),
            deadline: record.deadline(),
        }))
    }

    /// Stores results that are many or old, or the last ones.
    pub(super) async fn flush_due<S: Store>(
        &mut self,
        store: &S,
        key: &BatchKey,
        now: Timestamp,
    ) -> Result<(), StateError> {
        let total = self.record().batch.request_counts.total;
        let many = (total / SEGMENT_SHARE).clamp(1, SEGMENT_LINES);
        let is_old = self.waiting_since.is_some_and(|since| now.apart(since) >= SEGMENT_TIME);
        let is_full = self.results.lines() >= many || self.results.bytes() >= PART_BYTES;
        let queued = self.loaded.as_ref().is_some_and(|loaded| !loaded.queue.is_empty());
        let is_last = self.in_flight.is_empty() && !queued && self.results.lines() > 0;
        if is_old || is_full || is_last || self.pending.is_some() {
            self.flush(store, key).await?;
        }
        Ok(())
    }

    /// Stores all results that there are.
    pub(super) async fn flush<S: Store>(
        &mut self,
        store: &S,
        key: &BatchKey,
    ) -> Result<(), StateError> {
        loop {
            if let Some((name, bytes)) = &self.pending {
                // It is there, now or since an answer that was lost: nobody else uses the name.
                store.put_new(&name.path, bytes.clone()).await?;
                if let Some(loaded) = &mut self.loaded {
                    loaded.stored += name.completed + name.failed;
                }
                self.pending = None;
            }
            if self.results.lines() == 0 {
                return Ok(());
            }
            let epoch = self.epoch();
            let results = std::mem::take(&mut self.results);
            self.pending = Some(results.object(key, epoch, self.segments));
            self.segments += 1;
            self.waiting_since = None;
        }
    }
}

/// The id of a line's result: the same whoever stores it.
pub(super) fn result_id(key: &BatchKey, index: u32) -> String {
    let digits = key.id.trim_start_matches("batch_");
    format!("batch_req_{digits}{index:05x}")
}
