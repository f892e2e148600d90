//! What must hold for everybody in the end, whatever happened.

use super::world::{MadeBatch, World, custom_id};
use crate::forms::{BatchStatus, Purpose};
use crate::state::{FileReader, Record, all, file_object};
use crate::worker::sweep;
use flyball_core::units::Micros;
use futures::FutureExt as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many batches are completed, expired, cancelled and failed; or the first thing that is wrong.
pub(super) fn verify(world: &World) -> Result<[u64; 4], String> {
    let mut ends = [0; 4];
    let mut named = BTreeSet::new();
    for made in &world.made {
        let record = last_state(world, made)?;
        match record.batch.status {
            BatchStatus::Completed => ends[0] += 1,
            BatchStatus::Expired => ends[1] += 1,
            BatchStatus::Cancelled => ends[2] += 1,
            _ => ends[3] += 1,
        }
        named.extend(record.batch.output_file_id.clone());
        named.extend(record.batch.error_file_id.clone());
        results(world, made, &record).map_err(|why| format!("{}: {why}", made.key.id))?;
    }
    // Who stood still may store results when all is over: these go with the sweep, and nothing else does.
    let later = world.time().saturating_add(Micros::from_seconds(2 * 24 * 60 * 60));
    let store = world.plain_store();
    sweep(&store, later).now_or_never().unwrap().unwrap();
    let objects = world.objects.lock().unwrap();
    let left = |part: &str| objects.all.keys().find(|path| path.contains(part)).cloned();
    if let Some(path) = left("open/").or_else(|| left("/segments/")) {
        return Err(format!("{path} is left"));
    }
    // Files of somebody who stood still go with their expiry.
    if world.paused == 0 {
        for path in objects.all.keys().filter(|path| path.starts_with("files/")) {
            let text = String::from_utf8_lossy(&objects.all[path].0).into_owned();
            let is_output = text.contains(Purpose::BatchOutput.word());
            if is_output && !named.iter().any(|id| path.contains(id.as_str())) {
                return Err(format!("{path} belongs to nobody"));
            }
        }
    }
    Ok(ends)
}

/// There is one last state, and it is the only one that ends.
fn last_state(world: &World, made: &MadeBatch) -> Result<Record, String> {
    let store = world.plain_store();
    let states = all(&store, &made.key).now_or_never().unwrap().unwrap();
    let over = states.iter().filter(|state| state.record.batch.status.is_terminal()).count();
    let last = states.last().ok_or("it has no state")?;
    if over != 1 || !last.record.batch.status.is_terminal() {
        let words: Vec<_> = states.iter().map(|one| one.record.batch.status.word()).collect();
        return Err(format!("{}: its states are {words:?}", made.key.id));
    }
    Ok(last.record.clone())
}

/// Output and errors are the input: each line once, where it belongs, with what belongs to it.
fn results(world: &World, made: &MadeBatch, record: &Record) -> Result<(), String> {
    let batch = &record.batch;
    if batch.status == BatchStatus::Failed {
        let code =
            batch.errors.as_ref().and_then(|errors| errors.data.first()).map(|one| &one.code);
        let is_expected =
            made.plan.is_damaged && code.is_some_and(|code| code == "invalid_json_line");
        return if is_expected { Ok(()) } else { Err(format!("it failed: {code:?}")) };
    }
    if made.plan.is_damaged && batch.status != BatchStatus::Cancelled {
        return Err("its input is damaged and nobody saw it".to_owned());
    }
    let counts = batch.request_counts;
    let mut found = BTreeMap::new();
    let mut seen = [0, 0];
    for (place, id) in [&batch.output_file_id, &batch.error_file_id].into_iter().enumerate() {
        let Some(id) = id else { continue };
        for line in lines(world, made, id)? {
            seen[place] += 1;
            let custom_id = line["custom_id"].as_str().ok_or("a line has no id")?.to_owned();
            one(&line, &custom_id, place == 0, batch.status)?;
            if found.insert(custom_id.clone(), place).is_some() {
                return Err(format!("{custom_id} is doubled"));
            }
        }
    }
    if seen != [counts.completed, counts.failed] || seen[0] + seen[1] != counts.total {
        return Err(format!("{seen:?} lines, but {counts:?}"));
    }
    let usage = batch.usage.map(|usage| usage.total_tokens);
    if usage != Some(5 * seen[0]) {
        return Err(format!("{usage:?} tokens of {} answers", seen[0]));
    }
    // One that was cancelled before it was read has no lines.
    let expected = if counts.total == 0 && batch.status == BatchStatus::Cancelled {
        BTreeSet::new()
    } else {
        (0..made.plan.lines).map(|index| custom_id(&made.plan, index)).collect()
    };
    let got: BTreeSet<String> = found.into_keys().collect();
    let missing: Vec<_> = expected.symmetric_difference(&got).take(3).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("lost or foreign: {missing:?}")) }
}

/// A line says what it should.
fn one(line: &Value, id: &str, is_output: bool, status: BatchStatus) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{id}: {why}: {line}"));
    if line["error"].is_null() {
        let code = line["response"]["status_code"].as_u64();
        let expected = if id.ends_with("refused") { 400 } else { 200 };
        if code != Some(expected) || is_output != (expected == 200) {
            return wrong("it is in the wrong file");
        }
        if line["response"]["body"]["echo"] != id {
            return wrong("it has another line's answer");
        }
        return Ok(());
    }
    let code = match status {
        BatchStatus::Cancelled => "batch_cancelled",
        _ => "batch_expired",
    };
    if is_output || line["error"]["code"] != code || status == BatchStatus::Completed {
        return wrong("it should have an answer");
    }
    Ok(())
}

fn lines(world: &World, made: &MadeBatch, id: &str) -> Result<Vec<Value>, String> {
    let store = world.plain_store();
    let read = async {
        let file = file_object(&store, &made.key.tenant, id).await.unwrap();
        let file = file.ok_or("a file is not there")?;
        let mut reader = FileReader::new(&made.key.tenant, &file);
        let mut bytes = Vec::new();
        for part in 0..reader.parts() {
            let part = reader.part(&store, part).await.map_err(|error| error.to_string())?;
            bytes.extend_from_slice(&part);
        }
        if bytes.len() as u64 != file.bytes {
            return Err("a file has another size".to_owned());
        }
        Ok::<_, String>(bytes)
    };
    let bytes = read.now_or_never().unwrap()?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|e| e.to_string())).collect()
}
