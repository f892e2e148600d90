//! Rows of a table, added up.

use flyball_core::units::{Micros, Timestamp};
use flyball_resources::usage::{
    GPU_TIME, GpuTimeRecord, Judged, LedgerTable, USAGE, UsageEntry, UsageOpen, UsageParties,
    UsageRecord, UsageRow, gpu_time_measure as gpu, usage_measure as of,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The time that a row stands for when it is written first.
pub const BUCKET: Micros = Micros::from_minutes(5);

/// What rows are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// Microseconds since 1970.
    pub start: i64,
    /// Microseconds since 1970.
    pub end: i64,
    /// Whether it is estimated.
    pub estimated: bool,
    /// By the places of the table's texts.
    pub texts: Vec<Arc<str>>,
}

/// Rows of one table, each with measures by the places of the table's measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    table: &'static LedgerTable,
    rows: BTreeMap<RowKey, Vec<i64>>,
}

impl Rows {
    /// No rows.
    pub fn new(table: &'static LedgerTable) -> Self {
        Self { table, rows: BTreeMap::new() }
    }

    /// Their table.
    pub fn table(&self) -> &'static LedgerTable {
        self.table
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&RowKey, &[i64])> {
        self.rows.iter().map(|(key, measures)| (key, measures.as_slice()))
    }

    /// Adds measures to a row. What does not fit stays at the largest number, which [`Self::sums`] shows.
    pub fn add(&mut self, key: RowKey, measures: &[i64]) {
        let row = self.rows.entry(key).or_insert_with(|| vec![0; self.table.measures.len()]);
        row.iter_mut().zip(measures).for_each(|(sum, one)| *sum = sum.saturating_add(*one));
    }

    /// Adds all of these.
    pub fn add_all(&mut self, others: &Self) {
        others.rows.iter().for_each(|(key, measures)| self.add(key.clone(), measures));
    }

    /// Adds all of these, if there are any.
    pub fn add_all_of(&mut self, others: Option<&Self>) {
        others.into_iter().for_each(|others| self.add_all(others));
    }

    /// Adds an entry of a journal, if it is one of this table. Opening a request adds nothing.
    pub fn add_entry(&mut self, source: &str, entry: &UsageEntry<'_>) {
        match entry {
            UsageEntry::Close(record) if *self.table == USAGE => self.add_request(source, record),
            UsageEntry::GpuTime(record) if *self.table == GPU_TIME => {
                self.add_gpu_time(source, record);
            }
            UsageEntry::Row(row) => self.add_row(row),
            _ => {}
        }
    }

    /// Adds a request whose end nobody saw.
    pub fn add_unclosed(&mut self, source: &str, open: &UsageOpen<'_>) {
        if *self.table == USAGE {
            let key = request_key(source, &open.parties, "", open.started);
            self.add_one(key, of::UNCLOSED, 1);
        }
    }

    /// Notes that entries of so long before then may lack.
    pub fn add_unsure(&mut self, source: &str, before: Timestamp, long: Micros) {
        let Some(place) = self.table.measure("x_UnsureMicros") else { return };
        let mut texts: Vec<Arc<str>> = vec![Arc::default(); self.table.texts.len()];
        if let Some(place) = self.table.text("x_Source") {
            texts[place] = source.into();
        }
        self.add_one(key(texts, before), place, signed(long.get()));
    }

    /// The sum of each measure. Wider than a row, so that no sum is cut.
    pub fn sums(&self) -> Vec<i128> {
        let mut sums = vec![0; self.table.measures.len()];
        for measures in self.rows.values() {
            sums.iter_mut().zip(measures).for_each(|(sum, one)| *sum += i128::from(*one));
        }
        sums
    }

    /// The same rows, and all of them estimated.
    pub fn estimated(&self) -> Self {
        self.map(|key| RowKey { estimated: true, ..key.clone() })
    }

    /// Rows by another key, added up where keys become the same.
    pub fn map(&self, mut key: impl FnMut(&RowKey) -> RowKey) -> Self {
        let mut mapped = Self::new(self.table);
        self.iter().for_each(|(old, measures)| mapped.add(key(old), measures));
        mapped
    }

    /// What these have beyond others, row by row and measure by measure, whichever of them are estimated.
    ///
    /// Both count the same requests, and either may have missed some: what both know is the larger count of each.
    pub fn beyond(&self, others: &Self) -> Self {
        let exact = |key: &RowKey| RowKey { estimated: false, ..key.clone() };
        let others = others.map(exact);
        let mut beyond = Self::new(self.table);
        for (key, measures) in self.iter() {
            let theirs = others.rows.get(&exact(key));
            let more = |place: usize| {
                let their = theirs.map_or(0, |theirs| theirs[place]);
                measures[place].saturating_sub(their).max(0)
            };
            let more: Vec<i64> = (0..measures.len()).map(more).collect();
            if more.iter().any(|one| *one != 0) {
                beyond.add(key.clone(), &more);
            }
        }
        beyond
    }

    /// The entry that a row is in a journal.
    pub fn entries(&self) -> impl Iterator<Item = UsageEntry<'_>> {
        self.iter().map(|(key, measures)| {
            UsageEntry::Row(UsageRow {
                start: key.start,
                end: key.end,
                estimated: key.estimated,
                texts: key.texts.iter().map(AsRef::as_ref).collect(),
                measures: measures.to_vec(),
            })
        })
    }

    fn add_one(&mut self, key: RowKey, place: usize, count: i64) {
        let mut measures = vec![0; self.table.measures.len()];
        measures[place] = count;
        self.add(key, &measures);
    }

    fn add_request(&mut self, source: &str, record: &UsageRecord<'_>) {
        let met = record.judged == Judged::Met;
        let mut measures = vec![0; USAGE.measures.len()];
        measures[of::REQUESTS] = 1;
        measures[of::MET] = i64::from(met);
        measures[of::MISSED] = i64::from(record.judged == Judged::Missed);
        measures[of::UNPRICED] = i64::from(record.list_pico.is_none());
        measures[of::TOKENS_ESTIMATED] = i64::from(record.estimated);
        measures[of::INPUT_TOKENS] = signed(record.input_tokens);
        measures[of::CACHED_TOKENS] = signed(record.cached_tokens);
        measures[of::OUTPUT_TOKENS] = signed(record.output_tokens);
        measures[of::COST_UNITS] = signed(record.cost_units);
        if met {
            measures[of::OUTPUT_TOKENS_MET] = measures[of::OUTPUT_TOKENS];
            measures[of::COST_UNITS_MET] = measures[of::COST_UNITS];
        }
        let took = record.ended.as_micros().saturating_sub(record.started.as_micros());
        measures[of::REQUEST_MICROS] = signed(took);
        measures[of::LIST_COST] = record.list_pico.unwrap_or(0);
        let key = request_key(source, &record.parties, record.currency, record.ended);
        self.add(key, &measures);
    }

    fn add_gpu_time(&mut self, source: &str, record: &GpuTimeRecord<'_>) {
        let mut measures = vec![0; GPU_TIME.measures.len()];
        measures[gpu::GPU_MICROS] = signed(record.gpu_micros);
        if record.list_pico.is_none() {
            measures[gpu::GPU_MICROS_UNPRICED] = measures[gpu::GPU_MICROS];
        }
        measures[gpu::REPLICA_MICROS] = signed(record.replica_micros);
        measures[gpu::STEPS] = signed(record.steps);
        measures[gpu::REPEATED_STEPS] = signed(record.repeated_steps);
        measures[gpu::LIST_COST] = record.list_pico.unwrap_or(0);
        let texts = [
            record.tenant,
            record.resource,
            record.variant,
            record.pool,
            record.accelerator,
            record.purchase,
            record.used_for,
            record.currency,
            source,
        ];
        self.add(key(texts.map(Arc::from).to_vec(), record.ended), &measures);
    }

    /// Columns are only ever added at the end of a table, so a row of an older version is one with fewer.
    fn add_row(&mut self, row: &UsageRow<'_>) {
        let mut texts: Vec<Arc<str>> = row.texts.iter().copied().map(Arc::from).collect();
        texts.resize(self.table.texts.len(), Arc::default());
        let (start, end, estimated) = (row.start, row.end, row.estimated);
        self.add(RowKey { start, end, estimated, texts }, &row.measures);
    }
}

fn request_key(source: &str, of: &UsageParties<'_>, currency: &str, at: Timestamp) -> RowKey {
    let texts = [of.tenant, of.key, of.model, of.variant, of.class.name(), currency, source];
    key(texts.map(Arc::from).to_vec(), at)
}

/// The key of a row of the bucket that a time is in.
fn key(texts: Vec<Arc<str>>, at: Timestamp) -> RowKey {
    let start = at.as_micros() / BUCKET.get() * BUCKET.get();
    RowKey {
        start: signed(start),
        end: signed(start.saturating_add(BUCKET.get())),
        estimated: false,
        texts,
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
