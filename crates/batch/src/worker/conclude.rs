//! Puts results together, and ends a batch.
//!
//! The first result of a line wins, and a line without one gets an error: output and errors are the input, always.
//! Nobody sees the files before the state that names them.

use super::run::{Run, result_id};
use crate::check::InputCheck;
use crate::forms::{FileObject, LineError, LineResult, Purpose, RequestLine, Usage, seconds};
use crate::state::{
    BatchKey, Ending, FileReader, FileWriter, OutputIds, Record, StateError, file_object,
    listed_segments, put_file_object, segment_lines,
};
use flyball_core::units::Timestamp;
use flyball_ledger::store::Store;
use serde::Deserialize;

/// The last state of a batch; none if lines are missing that need not be.
pub(super) async fn conclude<S: Store>(
    store: &S,
    key: &BatchKey,
    run: &Run,
    ending: Ending,
    now: Timestamp,
) -> Result<Option<Record>, StateError> {
    let record = run.record();
    let ids = record.ids.clone();
    let ids = ids.ok_or_else(|| StateError::damaged(&key.id, "nobody works at it"))?;
    let mut merge = Merge::new(key, &ids, record.batch.request_counts.total);
    for segment in listed_segments(store, key).await? {
        let Some(bytes) = store.get(&segment.path).await? else { continue };
        for line in segment_lines(&segment.path, &bytes) {
            let (index, is_success, line) = line?;
            merge.add(store, index, is_success, line).await?;
        }
    }
    if merge.missing() && ending == Ending::Completed && seconds(now) < record.deadline() {
        return Ok(None);
    }
    // What is whole at the last moment is whole.
    let ending = match ending {
        Ending::Expired if !merge.missing() => Ending::Completed,
        ending => ending,
    };
    if merge.missing() {
        fill_in(store, key, record, ending, &mut merge).await?;
    }
    let mut next = record.clone();
    next.ending = Some(ending);
    let (output, error) = merge.finish(store, key, &mut next, &ids, seconds(now)).await?;
    next.batch.output_file_id = output;
    next.batch.error_file_id = error;
    next.batch.enter(ending.status(), seconds(now));
    Ok(Some(next))
}

/// Errors for the lines of which nothing came.
async fn fill_in<S: Store>(
    store: &S,
    key: &BatchKey,
    record: &Record,
    ending: Ending,
    merge: &mut Merge,
) -> Result<(), StateError> {
    let why = match ending {
        Ending::Cancelled => LineError::BatchCancelled,
        Ending::Expired | Ending::Completed => LineError::BatchExpired,
    };
    let input = &record.batch.input_file_id;
    let file = file_object(store, &key.tenant, input).await?;
    let file = file.ok_or_else(|| StateError::damaged(input, "it is not there"))?;
    let mut reader = FileReader::new(&key.tenant, &file);
    let mut check = InputCheck::new(&record.batch.endpoint);
    for part in 0..reader.parts() {
        check.push(&reader.part(store, part).await?);
    }
    let lines = check.finish().map_err(|_| StateError::damaged(input, "it is not what it was"))?;
    for (index, place) in (0_u32..).zip(lines.places) {
        if merge.seen[index as usize] {
            continue;
        }
        let bytes = reader.range(store, place.from, place.bytes).await?;
        let line: RequestLine<'_> =
            serde_json::from_slice(&bytes).map_err(|why| StateError::damaged(input, why))?;
        let text = LineResult::Failure(why).line(&result_id(key, index), &line.custom_id);
        merge.add(store, index, false, &text).await?;
    }
    Ok(())
}

struct Merge {
    seen: Vec<bool>,
    output: FileWriter,
    error: FileWriter,
    completed: u64,
    failed: u64,
    usage: Usage,
}

impl Merge {
    fn new(key: &BatchKey, ids: &OutputIds, total: u64) -> Self {
        Self {
            seen: vec![false; total as usize],
            output: FileWriter::new(&key.tenant, &ids.output),
            error: FileWriter::new(&key.tenant, &ids.error),
            completed: 0,
            failed: 0,
            usage: Usage::default(),
        }
    }

    fn missing(&self) -> bool {
        self.completed + self.failed < self.seen.len() as u64
    }

    async fn add<S: Store>(
        &mut self,
        store: &S,
        index: u32,
        is_success: bool,
        line: &str,
    ) -> Result<(), StateError> {
        let Some(seen) = self.seen.get_mut(index as usize) else { return Ok(()) };
        if std::mem::replace(seen, true) {
            return Ok(());
        }
        let file = if is_success { &mut self.output } else { &mut self.error };
        file.push(store, line.as_bytes()).await?;
        file.push(store, b"\n").await?;
        *if is_success { &mut self.completed } else { &mut self.failed } += 1;
        if is_success {
            count(&mut self.usage, line);
        }
        Ok(())
    }

    /// Puts the files there, and says which there are.
    async fn finish<S: Store>(
        self,
        store: &S,
        key: &BatchKey,
        next: &mut Record,
        ids: &OutputIds,
        now: u64,
    ) -> Result<(Option<String>, Option<String>), StateError> {
        let counts = &mut next.batch.request_counts;
        (counts.completed, counts.failed) = (self.completed, self.failed);
        next.batch.usage = Some(self.usage);
        let mut found = [None, None];
        let files = [(self.output, &ids.output, "output"), (self.error, &ids.error, "error")];
        for (place, (writer, id, word)) in found.iter_mut().zip(files) {
            if writer.bytes() == 0 {
                continue;
            }
            let name = format!("{}_{word}.jsonl", next.batch.id);
            let mut file = FileObject::new(id.clone(), name, Purpose::BatchOutput, now);
            file.expires_at = Some(now + next.output_seconds);
            file.bytes = writer.finish(store).await?;
            put_file_object(store, &key.tenant, &file).await?;
            *place = Some(id.clone());
        }
        let [output, error] = found;
        Ok((output, error))
    }
}

/// Adds up what engines counted. Chats and completions have other words for it than responses.
fn count(sum: &mut Usage, line: &str) {
    #[derive(Deserialize)]
    struct Line {
        response: Response,
    }
    #[derive(Deserialize)]
    struct Response {
        body: Body,
    }
    #[derive(Deserialize)]
    struct Body {
        usage: Option<Counts>,
    }
    #[derive(Deserialize)]
    struct Counts {
        #[serde(alias = "prompt_tokens")]
        input_tokens: Option<u64>,
        #[serde(alias = "completion_tokens")]
        output_tokens: Option<u64>,
        #[serde(alias = "prompt_tokens_details")]
        input_tokens_details: Option<Details>,
        #[serde(alias = "completion_tokens_details")]
        output_tokens_details: Option<Details>,
    }
    #[derive(Deserialize)]
    struct Details {
        cached_tokens: Option<u64>,
        reasoning_tokens: Option<u64>,
    }
    let line: Result<Line, _> = serde_json::from_str(line);
    let Some(usage) = line.ok().and_then(|line| line.response.body.usage) else { return };
    let (input, output) =
        (usage.input_tokens.unwrap_or_default(), usage.output_tokens.unwrap_or_default());
    sum.input_tokens += input;
    sum.output_tokens += output;
    sum.total_tokens += input + output;
    let cached = usage.input_tokens_details.and_then(|details| details.cached_tokens);
    sum.input_tokens_details.cached_tokens += cached.unwrap_or_default();
    let reasoning = usage.output_tokens_details.and_then(|details| details.reasoning_tokens);
    sum.output_tokens_details.reasoning_tokens += reasoning.unwrap_or_default();
}
