//! What of an answer's JSON is held against what was published: the column `reads`, in words.
//!
//! A word that is not known, and a field that is not there, are errors: the row then counts as missed and
//! is never left out.

use super::answer::{Answer, Range, between, exactly, number, range};
use super::rows::Row;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// What an answer says, and what it warns of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) answer: Answer,
    pub(super) warnings: Vec<String>,
}

pub(super) fn read(row: &Row, json: &Value) -> Result<Found> {
    let answer = match json["kind"].as_str() {
        Some("ServePlan") => super::serving::read(row, json)?,
        Some("TrainPlan") => training(&row.reads, json)?,
        Some("FitReport") => fit(&row.reads, json)?,
        Some("Accelerator") => {
            ensure!(row.reads == "memory as the device shows it", "unknown words: {}", row.reads);
            exactly(number(&json["accelerator"]["usableMemoryBytes"])? / GIB)
        }
        other => bail!("an answer of the kind {other:?}"),
    };
    if let Answer::Number { low, point, high } = answer {
        ensure!(low <= point && point <= high, "{low} to {high} around {point} is no interval");
    }
    Ok(Found { answer, warnings: warnings(json) })
}

fn fit(reads: &str, json: &Value) -> Result<Answer> {
    let fit = json["fits"].get(0).context("the answer has no fits")?;
    let bytes = |name: &str| number(&fit[name]).with_context(|| name.to_owned());
    let per_token = || number(&json["model"]["cacheBytesPerToken"]);
    Ok(match reads {
        "verdict" => {
            let answer = fit["answer"].as_str().context("no verdict")?;
            Answer::Words(vec![answer.to_owned()])
        }
        "bytes of weights per accelerator" => exactly(bytes("weightBytes")? / GIB),
        "cacheTokens" => {
            let at = |place: usize| number(&fit["cacheTokens"][place]);
            between([at(0)?, at(1)?, at(2)?])
        }
        "usable memory less weights and workspace, per accelerator" => {
            let request = per_token()? * number(&json["context"])?;
            let left = |needs: f64| {
                (bytes("usableBytes").map(|all| all - needs + request)).map(|left| left / 1e9)
            };
            let (low, high) =
                (left(bytes("needsAtMostBytes")?)?, left(bytes("needsAtLeastBytes")?)?);
            between([low, (low + high) / 2.0, high])
        }
        _ => match reads.strip_prefix("bytes of cache per token x ") {
            Some(tokens) => exactly(per_token()? * tokens.parse::<f64>()? / GIB),
            None => bail!("unknown words: {reads}"),
        },
    })
}

fn training(reads: &str, json: &Value) -> Result<Answer> {
    if reads == "changes: FP8" {
        return Ok(stated_with_its_count(json));
    }
    let choices = json["choices"].as_array().context("the answer has no choices")?;
    let first = choices.first().context("nothing was chosen")?;
    let gpus = || number(&first["gpus"]);
    let step = range(&first["stepSeconds"]);
    // What goes down as a step takes longer has the step's interval the other way round.
    let by_speed = |point: f64| -> Result<Range> {
        let [low, middle, high] = step.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok([point * middle / high, point, point * middle / low])
    };
    let scaled = |by: f64, range: Range| between(range.map(|one| one * by));
    Ok(match reads {
        "days" => between(range(&first["days"])?),
        "days x gpus x 24" => scaled(gpus()? * 24.0, range(&first["days"])?),
        "stepSeconds" => between(range(&first["stepSeconds"])?),
        "usd" => between(range(&first["usd"])?),
        "mfu" => scaled(100.0, by_speed(number(&first["mfu"])?)?),
        "tokensPerSecond / gpus" => {
            scaled(1.0 / gpus()?, by_speed(number(&first["tokensPerSecond"])?)?)
        }
        "choices[0].layout" => {
            let layout = first["layout"].as_str().context("no layout")?;
            let again = if layout.contains("recompute") { layout } else { "no recompute" };
            Answer::Words(vec![again.to_owned()])
        }
        "choices[0].usd against the rest" => {
            let far = |choice: &Value| number(&choice["usd"]["high"]);
            let chosen = far(first)?;
            let dearer = choices.iter().map(far).collect::<Result<Vec<_>>>()?;
            let least = dearer.into_iter().all(|other| chosen <= other);
            Answer::Words(vec![if least { "the least" } else { "not the least" }.to_owned()])
        }
        _ => bail!("unknown words: {reads}"),
    })
}

/// Whether the line about FP8 says of how many accelerators it speaks.
fn stated_with_its_count(json: &Value) -> Answer {
    let changes = json["changes"].as_array().into_iter().flatten();
    let fp8 = changes.into_iter().find(|change| change["what"] == "FP8");
    let count = fp8
        .and_then(|change| change["then"].as_str())
        .and_then(|then| then.split(" x ").next().and_then(|count| count.parse::<u32>().ok()));
    let stated = if count.is_some() { "the same count, or the count is said" } else { "no count" };
    Answer::Words(vec![stated.to_owned()])
}

/// What the answer warns of: in words of its own, or by resting on a datasheet, which its page says.
fn warnings(json: &Value) -> Vec<String> {
    let first = &json["choices"][0];
    let both = [&json["warnings"], &first["warnings"]];
    let mut found: Vec<String> = both
        .into_iter()
        .flat_map(|list| list.as_array().into_iter().flatten())
        .filter_map(|warning| warning.as_str().map(str::to_owned))
        .collect();
    if first["evidence"] == "datasheet" && found.is_empty() {
        found.push("rests on a datasheet".to_owned());
    }
    found
}
