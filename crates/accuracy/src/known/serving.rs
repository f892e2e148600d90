//! What is read of a plan for serving.

use super::answer::{Answer, between, exactly, number, range};
use super::rows::Row;
use anyhow::{Context as _, Result, bail};
use serde_json::Value;

pub(super) fn read(row: &Row, json: &Value) -> Result<Answer> {
    match row.reads.as_str() {
        "choices with PP2: the fewest gpusPerReplica" => return fewest(json),
        "the layout of 16 GPUs is among choices or points" => {
            let words = every(json).filter_map(|one| one["layout"].as_str().map(str::to_owned));
            return Ok(Answer::Words(words.collect()));
        }
        "usd" | "usdPerHour x 24" => bail!("not asked of a service"),
        _ => {}
    }
    let (what, layout) = match row.reads.split_once(" of ") {
        Some((what, layout)) => (what, Some(layout)),
        None => (row.reads.as_str(), None),
    };
    let at = choice(json, layout, &row.layout)?;
    if what == "choices[0].replicas" {
        return replicas(json, at);
    }
    if let Some(sum) = what.strip_prefix("replicaCapacity") {
        let times = factor(sum, at)?;
        return Ok(between(range(&at["replicaCapacity"])?.map(|one| one * times)));
    }
    let [low, point, high] = time_per_token(at)?;
    Ok(match what.split_once(" / mean time per token") {
        Some((running, "")) => {
            let tokens: f64 = running.trim().parse().context("requests at once")?;
            between([high, point, low].map(|ms| tokens * 1e3 / ms))
        }
        _ if what == "mean time per token at this rate" => between([low, point, high]),
        _ if what == "TTFT + 127 x mean time per token, 8 running" => {
            let [early, likely, late] = range(&at["ttftP95Ms"])?;
            between([early + 127.0 * low, likely + 127.0 * point, late + 127.0 * high])
        }
        _ => bail!("unknown words: {}", row.reads),
    })
}

/// Milliseconds. What was published ran on one replica; where the plan says that one does not carry this
/// rate, a full one is what was run.
fn time_per_token(at: &Value) -> Result<[f64; 3]> {
    let one = number(&at["replicas"])? < 1.5;
    range(&at[if one { "tpotMs" } else { "tpotFullMs" }]).context("no time per token")
}

/// The choice or point with this layout; without one that was asked for, with the layout that was run; and
/// if that is not there, the first choice.
fn choice<'a>(json: &'a Value, requested: Option<&str>, run: &str) -> Result<&'a Value> {
    // A split by one is not written where the attention is copied.
    let plain = |layout: &str| layout.replace("TP1 DP", "DP");
    let cut = |layout: &str| {
        every(json).find(|one| one["layout"].as_str().is_some_and(|cut| cut == plain(layout)))
    };
    match requested {
        Some(requested) => {
            cut(requested).with_context(|| format!("{requested} is not among the layouts"))
        }
        None => cut(run).or_else(|| every(json).next()).context("nothing was chosen"),
    }
}

fn every(json: &Value) -> impl Iterator<Item = &Value> {
    ["choices", "points"].into_iter().flat_map(|list| json[list].as_array().into_iter().flatten())
}

fn fewest(json: &Value) -> Result<Answer> {
    let staged =
        every(json).filter(|one| one["layout"].as_str().is_some_and(|l| l.contains("PP2")));
    let counts = staged.filter_map(|one| one["gpusPerReplica"].as_f64());
    let least = counts.min_by(f64::total_cmp).context("no choice has PP2")?;
    Ok(exactly(least))
}

/// As many as the rate needs at either end of what one carries.
fn replicas(json: &Value, at: &Value) -> Result<Answer> {
    let rate = number(&json["load"]["rate"])?;
    let [low, _, high] = range(&at["replicaCapacity"])?;
    let point = number(&at["replicas"])?;
    let needed = |capacity: f64| (rate / capacity).ceil().max(1.0);
    Ok(between([needed(high).min(point), point, needed(low).max(point)]))
}

/// `x 2048 / 2`, or `x 294 over 8 GPUs`: what one replica carries, times this.
fn factor(sum: &str, at: &Value) -> Result<f64> {
    let mut words = sum.split_whitespace();
    let mut times = 1.0;
    while let Some(word) = words.next() {
        let value: f64 = words.next().context("a sum ends early")?.parse()?;
        times *= match word {
            "x" => value,
            "/" => 1.0 / value,
            "over" => {
                words.next();
                value / number(&at["gpusPerReplica"])?
            }
            other => bail!("unknown words: {other}"),
        };
    }
    Ok(times)
}
