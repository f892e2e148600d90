//! What must hold in the end, of a table that is read without the code that wrote it.

use super::world::{Fate, Request, World};
use crate::entries::{block_on, tokens};
use flyball_core::units::Micros;
use flyball_ledger::table::{TableLog, read_all};
use flyball_resources::usage::{USAGE, usage_measure as of};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;

/// What the table has of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    requests: i64,
    unclosed: i64,
    output: i64,
}

pub(crate) fn check(world: &mut World) -> Result<(), String> {
    let (found, unsure) = read_plainly(world)?;
    same_by_our_own_reader(world, &found)?;
    let mut lossy = std::collections::BTreeSet::new();
    let (mut lost, mut unclosed) = (0, 0);
    for request in &world.requests {
        let row = found.get(&request.number).copied().unwrap_or_default();
        let wrong = |why: &str| Err(format!("{why}: {request:?} has {row:?}"));
        let unclosed_twice = row.unclosed > 1 && !ended_badly(world, request);
        if row.requests > 1 || unclosed_twice {
            world.tally.doubled += 1;
            return wrong("doubled");
        }
        if row.output != row.requests * tokens(request.number) as i64 {
            return wrong("its tokens are not its own");
        }
        unclosed += row.unclosed;
        match request.fate {
            Fate::Answered { .. } if row.requests == 0 => {
                if !may_be_lost(world, request) {
                    world.tally.lost += 1;
                    return wrong("lost");
                }
                lost += 1;
                lossy.insert(request.source.clone());
            }
            // Only who has seen an end in memory knows that there was one.
            Fate::Answered { .. } if row.unclosed > 0 && !ended_badly(world, request) => {
                return wrong("answered, and said to be open");
            }
            Fate::Open { .. } if row.requests > 0 => return wrong("it never ended"),
            Fate::Open { durable: true }
                if row.unclosed == 0
                    && world.ends.contains_key(&request.source)
                    && !ended_badly(world, request) =>
            {
                return wrong("its end is not known, and it is not said");
            }
            _ => {}
        }
    }
    if unsure < lossy.len() as i64 * Micros::from_seconds(1).get() as i64 {
        return Err(format!("{} processes lost something, marked is {unsure} us", lossy.len()));
    }
    world.tally.lost_and_marked += lost;
    world.tally.unclosed += unclosed as u64;
    Ok(())
}

/// A machine takes what was answered in its last second with it, and so does a process whose disk is full.
fn may_be_lost(world: &World, request: &Request) -> bool {
    let Fate::Answered { at } = request.fate else { return true };
    world.ends.get(&request.source).is_some_and(|end| {
        (end.with_machine || end.in_memory) && end.at.apart(at) <= Micros::from_seconds(1)
    })
}

fn ended_badly(world: &World, request: &Request) -> bool {
    world.ends.get(&request.source).is_some_and(|end| end.with_machine || end.in_memory)
}

/// The table by its log from the first commit on, without checkpoints, and by another reader of Parquet.
fn read_plainly(world: &mut World) -> Result<(BTreeMap<u64, Found>, i64), String> {
    let bucket = world.bucket.lock().unwrap();
    let mut files = std::collections::BTreeSet::new();
    let mut commits = 0;
    loop {
        let path = format!("usage/_delta_log/{commits:020}.json");
        let Some((bytes, _)) = bucket.objects.get(&path) else { break };
        commits += 1;
        for line in std::str::from_utf8(bytes).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let path = |kind: &str| line.get(kind)?.get("path")?.as_str().map(str::to_owned);
            if let Some(path) = path("remove")
                && !files.remove(&path)
            {
                return Err(format!("{path} is removed and was not there"));
            }
            if let Some(path) = path("add")
                && !files.insert(path.clone())
            {
                return Err(format!("{path} is added twice"));
            }
        }
    }
    let logged = bucket.objects.keys().filter(|path| path.ends_with(".json")).count();
    if logged != commits {
        return Err(format!("{logged} commits, {commits} of them in a row"));
    }
    let (mut found, mut unsure) = (BTreeMap::new(), 0);
    for path in &files {
        let Some((bytes, _)) = bucket.objects.get(&format!("usage/{path}")) else {
            return Err(format!("{path} counts and is not there"));
        };
        unsure += add_file(bytes.clone(), &mut found);
    }
    let corrections =
        bucket.objects.keys().filter(|path| path.contains('.') && is_correction(path));
    world.tally.corrections += corrections.count() as u64;
    world.tally.commits += commits as u64;
    Ok((found, unsure))
}

fn is_correction(path: &str) -> bool {
    path.strip_suffix(".parquet").is_some_and(|path| path.contains('.')) && path.contains("inbox/")
}

/// Adds the rows of a file, and says how much time of them is unsure.
fn add_file(bytes: bytes::Bytes, found: &mut BTreeMap<u64, Found>) -> i64 {
    let file = SerializedFileReader::new(bytes).unwrap();
    let mut unsure = 0;
    for row in file.get_row_iter(None).unwrap() {
        let row = row.unwrap();
        let cell = |name: &str| {
            row.get_column_iter().find_map(|(column, field)| (column == name).then_some(field))
        };
        let count = |name: &str| match cell(name) {
            Some(Field::Long(count)) => *count,
            other => panic!("{name} is {other:?}"),
        };
        unsure += count("x_UnsureMicros");
        let Some(Field::Str(key)) = cell("x_CredentialId") else { panic!("no key") };
        if let Some(number) = key.strip_prefix('r') {
            let row = found.entry(number.parse().unwrap()).or_default();
            row.requests += count("x_Requests");
            row.unclosed += count("x_RequestsUnclosed");
            row.output += count("x_OutputTokens");
        }
    }
    unsure
}

/// What we read ourselves, from the last checkpoint on, is the same.
fn same_by_our_own_reader(world: &World, found: &BTreeMap<u64, Found>) -> Result<(), String> {
    let store = world.store();
    let mut log = TableLog::new(&USAGE);
    let sums = block_on(async {
        log.refresh(&store).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(read_all(&store, &log).await.map_err(|error| error.to_string())?.sums())
    })?;
    let sum =
        |of: fn(&Found) -> i64| found.values().map(|found| i128::from(of(found))).sum::<i128>();
    let plain = [sum(|row| row.requests), sum(|row| row.unclosed), sum(|row| row.output)];
    let ours = [sums[of::REQUESTS], sums[of::UNCLOSED], sums[of::OUTPUT_TOKENS]];
    if plain == ours { Ok(()) } else { Err(format!("{plain:?} read plainly, {ours:?} by us")) }
}
