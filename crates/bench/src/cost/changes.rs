//! Drift: changes planted into recorded requests, and alarms where none was planted.

use crate::worlds::Source;
use anyhow::{Context, Result, bail};
use flyball_cost::drift::{DriftSettings, DriftWatch, FinishKind, ObservedRequest, TextScript};
use flyball_cost::testing::SeededNumbers;
use flyball_simulator::traffic::load::{self, Traffic};
use std::fmt::Write as _;
use std::path::Path;

/// Within so many requests a planted change must be found.
const WITHIN: usize = 2_000;
/// Requests without a change before it.
const BEFORE: usize = 3_000;
const SEEDS: u64 = 20;
/// Of each recorded window, so many requests are looked at: one in six seconds.
const LOOKED_AT: u64 = 100;

const TRACES: [(&str, &str); 3] = [
    ("Azure conversation, one hour", "azure_llm_2023_conv.csv.gz"),
    ("Azure code, one hour", "azure_llm_2023_code.csv.gz"),
    ("Mooncake conversation, one hour", "mooncake_conversation.jsonl.gz"),
];

type Change = fn(ObservedRequest, &mut SeededNumbers) -> ObservedRequest;

/// The first of [`PLANTED`] are of lengths, which are recorded.
const LENGTHS: usize = 4;

const PLANTED: [(&str, Change); 7] = [
    ("prompts twice as long", |one, _| ObservedRequest { prompt: one.prompt * 2, ..one }),
    ("prompts half as long", |one, _| ObservedRequest { prompt: one.prompt / 2, ..one }),
    ("answers twice as long", |one, _| ObservedRequest { output: one.output * 2, ..one }),
    ("answers half as long", |one, _| ObservedRequest { output: one.output / 2, ..one }),
    ("a fifth ends at its limit", |one, numbers| {
        let finish = if numbers.below(5) == 0 { FinishKind::Length } else { one.finish };
        ObservedRequest { finish, ..one }
    }),
    ("one of eight fails", |one, numbers| {
        let finish = if numbers.below(8) == 0 { FinishKind::Error } else { one.finish };
        ObservedRequest { finish, ..one }
    }),
    ("a fifth is in another script", |one, numbers| {
        let script = if numbers.below(5) == 0 { TextScript::Arabic } else { one.script };
        ObservedRequest { script, ..one }
    }),
];

/// One change in one recording.
struct Planted {
    change: &'static str,
    trace: &'static str,
    /// Requests until it was found, sorted; those that were not are missing.
    found: Vec<usize>,
    early: usize,
}

/// What was found where nothing was planted.
struct Undisturbed {
    traffic: String,
    requests: u64,
    alarms: u64,
    /// By the stated rate, at most so many on average.
    stated: f64,
}

pub(super) struct Changes {
    planted: Vec<Planted>,
    undisturbed: Vec<Undisturbed>,
}

pub(super) fn all(folder: &Path, sources: &[Source]) -> Result<Changes> {
    let mut all = Changes { planted: Vec::new(), undisturbed: Vec::new() };
    for (trace, file) in TRACES {
        let lengths = lengths(&folder.join(file))?;
        all.undisturbed.push(undisturbed(
            format!("{trace}, in its own order"),
            lengths.iter().copied(),
            0,
        ));
        // What is made up is the same beside every recording: it counts once.
        let counts = if all.planted.is_empty() { PLANTED.len() } else { LENGTHS };
        for (change, planted) in PLANTED.into_iter().take(counts) {
            let runs: Vec<Option<usize>> =
                (0..SEEDS).map(|seed| run(&lengths, planted, seed)).collect();
            let early = runs.iter().filter(|run| **run == Some(0)).count();
            let mut found: Vec<usize> =
                runs.into_iter().flatten().filter(|after| *after > 0).collect();
            found.sort_unstable();
            all.planted.push(Planted { change, trace, found, early });
        }
        let shuffled = (0..SEEDS).flat_map(|seed| shuffled(&lengths, seed));
        all.undisturbed.push(undisturbed(format!("{trace}, shuffled {SEEDS} times"), shuffled, 1));
    }
    for source in sources {
        all.undisturbed.push(weeks(source, &all_lengths(folder)?));
    }
    Ok(all)
}

fn lengths(path: &Path) -> Result<Vec<(u32, u32)>> {
    let loaded = load::open(path).with_context(|| format!("reading {}", path.display()))?;
    let Some(Traffic::Trace(trace)) = loaded.parts.into_iter().next().map(|part| part.traffic)
    else {
        bail!("{} has no requests", path.display());
    };
    Ok(trace.requests.iter().map(|request| (request.prompt, request.output)).collect())
}

/// All recorded lengths together, from which the weeks are filled: their own lengths are published as quantiles only.
fn all_lengths(folder: &Path) -> Result<Vec<(u32, u32)>> {
    let all: Result<Vec<Vec<(u32, u32)>>> =
        TRACES.iter().map(|(_, file)| lengths(&folder.join(file))).collect();
    Ok(all?.concat())
}

/// Finish reasons and scripts are in no recording: made up, and the same throughout.
fn request((prompt, output): (u32, u32), numbers: &mut SeededNumbers) -> ObservedRequest {
    let finish = match numbers.below(100) {
        0..=1 => FinishKind::Error,
        2..=9 => FinishKind::Length,
        _ => FinishKind::Stop,
    };
    let script = if numbers.below(10) == 0 { TextScript::Han } else { TextScript::Latin };
    ObservedRequest { prompt, output, finish, script }
}

fn shuffled(lengths: &[(u32, u32)], seed: u64) -> Vec<(u32, u32)> {
    let (mut numbers, mut all) = (SeededNumbers(seed), lengths.to_vec());
    for index in (1..all.len()).rev() {
        all.swap(index, numbers.below(index as u64 + 1) as usize);
    }
    all
}

/// Requests until the change was found; nought if there was an alarm before it.
fn run(lengths: &[(u32, u32)], change: Change, seed: u64) -> Option<usize> {
    let mut numbers = SeededNumbers(seed);
    let mut watch = DriftWatch::new(DriftSettings::USUAL);
    let all = shuffled(lengths, seed);
    let mut all = all.iter().cycle();
    let mut next = |numbers: &mut SeededNumbers| request(*all.next().unwrap_or(&(1, 1)), numbers);
    for _ in 0..BEFORE {
        if watch.observe(next(&mut numbers)).is_some() {
            return Some(0);
        }
    }
    (1..=WITHIN).find(|_| {
        let usual = next(&mut numbers);
        watch.observe(change(usual, &mut numbers)).is_some()
    })
}

fn undisturbed(
    traffic: String,
    lengths: impl IntoIterator<Item = (u32, u32)>,
    seed: u64,
) -> Undisturbed {
    let mut numbers = SeededNumbers(seed);
    let mut watch = DriftWatch::new(DriftSettings::USUAL);
    let (mut requests, mut alarms) = (0, 0);
    for one in lengths {
        requests += 1;
        alarms += u64::from(watch.observe(request(one, &mut numbers)).is_some());
    }
    Undisturbed {
        traffic,
        requests,
        alarms,
        stated: requests as f64 / DriftSettings::USUAL.mean_requests,
    }
}

/// Two weeks of every recorded client of a model, each as a tenant of its own.
fn weeks(source: &Source, lengths: &[(u32, u32)]) -> Undisturbed {
    let mut sum = Undisturbed {
        traffic: format!("ServeGen {}, two weeks", source.name),
        requests: 0,
        alarms: 0,
        stated: 0.0,
    };
    for (client, windows) in source.rates.clients.iter().enumerate() {
        let mut numbers = SeededNumbers(client as u64);
        let mut draws = Vec::new();
        for window in windows {
            let came = (window.rate * source.rates.window.get()) as u64;
            draws.extend(
                (0..came.min(LOOKED_AT))
                    .map(|_| lengths[numbers.below(lengths.len() as u64) as usize]),
            );
        }
        let one = undisturbed(String::new(), draws, client as u64);
        sum.requests += one.requests;
        sum.alarms += one.alarms;
        sum.stated += one.stated;
    }
    sum
}

impl Changes {
    pub(super) fn found_pct(&self) -> f64 {
        let found: usize = self.planted.iter().map(|one| one.found.len()).sum();
        100.0 * found as f64 / (self.planted.len() * SEEDS as usize).max(1) as f64
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "Lengths of recorded requests in shuffled order, {SEEDS} orders each; finish reasons and scripts are made up, because \
             no recording has them. {} requests to learn from, {} more as they were, then a change that must be found within \
             {WITHIN}.\n\n| Change | Recording | Found, of {SEEDS} | After requests: median, most | Alarms before it |\n|---|---|---|---|---|\n",
            DriftSettings::USUAL.reference,
            BEFORE - DriftSettings::USUAL.reference
        );
        for one in &self.planted {
            let at =
                |place: usize| one.found.get(place).map_or("none".to_owned(), ToString::to_string);
            let (median, most) = (at(one.found.len() / 2), at(one.found.len().saturating_sub(1)));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {median}, {most} | {} |",
                one.change,
                one.trace,
                one.found.len(),
                one.early
            );
        }
        text.push_str(
            "\nWhere nothing was planted. The weeks have recorded rates and clients and, at most a hundred in ten minutes of each, \
             lengths drawn from all three recordings, because theirs are published as quantiles only. In its own order a \
             recording may hold a change of its own.\n\n| Traffic | Requests | Alarms | At most, by the stated rate |\n|---|---|---|---|\n",
        );
        for one in &self.undisturbed {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.2} |",
                one.traffic, one.requests, one.alarms, one.stated
            );
        }
        text
    }
}
