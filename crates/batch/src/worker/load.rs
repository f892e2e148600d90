//! Takes a batch over, and finds its lines.

use super::run::{Loaded, Run};
use crate::check::{CheckedInput, InputCheck};
use crate::forms::{BatchErrors, BatchStatus, LineProblem, seconds};
use crate::state::{
    BatchKey, FileReader, OutputIds, Record, StateError, StoredRecord, file_object,
    listed_segments, put_next, segment_lines,
};
use flyball_core::units::Timestamp;
use flyball_ledger::store::Store;

/// Makes this worker the one that works at a batch; none if somebody was faster. What is over needs nobody.
pub(super) async fn claim<S: Store>(
    store: &S,
    key: &BatchKey,
    stored: StoredRecord,
    name: &str,
    (output, error): (String, String),
) -> Result<Option<Run>, StateError> {
    if stored.record.batch.status.is_terminal() {
        return Ok(Some(Run::new(stored)));
    }
    let mut record = stored.record;
    record.owner = Some(name.to_owned());
    record.epoch = stored.number + 1;
    record.ids = Some(OutputIds { output, error });
    Ok(put_next(store, key, Some(stored.number), record).await?.map(Run::new))
}

/// What a batch is once its input was read.
pub(super) async fn validate<S: Store>(
    store: &S,
    key: &BatchKey,
    run: &mut Run,
    now: Timestamp,
) -> Result<Record, StateError> {
    let mut next = run.record().clone();
    let batch = &mut next.batch;
    match read(store, key, run.record()).await? {
        Ok((reader, input)) => {
            batch.model = Some(input.model);
            batch.request_counts.total = input.places.len() as u64;
            batch.enter(BatchStatus::InProgress, seconds(now));
            let done = vec![false; input.places.len()];
            let queue = (0..input.places.len() as u32).collect();
            run.set_loaded(Loaded { reader, places: input.places, done, stored: 0, queue });
        }
        Err(problems) => {
            batch.errors = Some(BatchErrors::of(problems));
            batch.enter(BatchStatus::Failed, seconds(now));
        }
    }
    Ok(next)
}

impl Run {
    /// Finds the lines again, and which of them are done.
    pub(super) async fn load<S: Store>(
        &mut self,
        store: &S,
        key: &BatchKey,
    ) -> Result<(), StateError> {
        let input = read(store, key, self.record()).await?;
        let (reader, input) = input.map_err(|_| {
            StateError::damaged(&self.record().batch.input_file_id, "it is not what it was")
        })?;
        let mut done = vec![false; input.places.len()];
        for segment in listed_segments(store, key).await? {
            let Some(bytes) = store.get(&segment.path).await? else { continue };
            for line in segment_lines(&segment.path, &bytes) {
                let (index, ..) = line?;
                if let Some(done) = done.get_mut(index as usize) {
                    *done = true;
                }
            }
        }
        let stored = done.iter().filter(|done| **done).count() as u64;
        let queue = (0..).zip(&done).filter(|(_, done)| !**done).map(|(index, _)| index).collect();
        self.set_loaded(Loaded { reader, places: input.places, done, stored, queue });
        Ok(())
    }
}

/// Reads an input file part by part.
async fn read<S: Store>(
    store: &S,
    key: &BatchKey,
    record: &Record,
) -> Result<Result<(FileReader, CheckedInput), Vec<LineProblem>>, StateError> {
    let Some(file) = file_object(store, &key.tenant, &record.batch.input_file_id).await? else {
        return Ok(Err(vec![LineProblem {
            code: "file_not_found".to_owned(),
            message: "The input file is not there any more.".to_owned(),
            param: Some("input_file_id".to_owned()),
            line: None,
        }]));
    };
    let mut reader = FileReader::new(&key.tenant, &file);
    let mut check = InputCheck::new(&record.batch.endpoint);
    for part in 0..reader.parts() {
        check.push(&reader.part(store, part).await?);
    }
    Ok(check.finish().map(|input| (reader, input)))
}
