//! The numbered rules between a published line and a question to the model.
//!
//! `N` rules say what a line means, `S` rules why it is left out; the first that applies counts.
//! None is silent: the report prints how many rows each one took.

use super::baselines;
use super::formats;
use super::layouts::{self, Placed};
use super::predict::Question;
use super::rows::{Load, Point, Precision, Row};
use super::scope::Scope;
use flyball_perf::architecture::Architecture;
use flyball_perf::catalog::Catalog;
use flyball_perf::engine::Engine;
use flyball_perf::hardware::Accelerator;
use flyball_perf::layout::ServingLayout;
use flyball_perf::models;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);

/// Rows that share a name of a series are in one fold.
const FOLDS: u32 = 5;

/// Every line of the file after the rules.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) rows: Vec<Row>,
    /// By rule, of rows in the open and of sealed ones.
    pub(super) refused: BTreeMap<(Scope, bool), usize>,
    /// How many rows each rule of meaning changed.
    pub(super) read_as: BTreeMap<&'static str, usize>,
}

/// Applies the rules in order.
pub(super) fn judge(points: &[Point], shapes: &BTreeMap<String, String>) -> Judged {
    let mut judged = Judged::default();
    let mut seen = BTreeSet::new();
    for point in points {
        match row(point, shapes, &mut judged.read_as) {
            // S7 comes last, so that a line which is left out anyway is nobody's first.
            Ok(row) if repeated(point, &row, &mut seen) => refuse(&mut judged, point, Scope::S7),
            Ok(row) => judged.rows.push(row),
            Err(scope) => refuse(&mut judged, point, scope),
        }
    }
    judged
}

fn refuse(judged: &mut Judged, point: &Point, scope: Scope) {
    *judged.refused.entry((scope, point.sealed())).or_default() += 1;
}

/// S7: equal in all that a line says, times included.
fn repeated(point: &Point, row: &Row, seen: &mut BTreeSet<String>) -> bool {
    if !point.suite.starts_with("aiconfigurator") || point.tpot_ms_mean.is_none() {
        return false;
    }
    let times = (point.concurrency, point.ttft_ms_mean, point.tpot_ms_mean);
    !seen.insert(format!("{} {} {times:?}", row.series, point.mode))
}

type Read = BTreeMap<&'static str, usize>;

fn row(point: &Point, shapes: &BTreeMap<String, String>, read_as: &mut Read) -> Result<Row, Scope> {
    let (shape, model) = known_model(point, shapes).ok_or(Scope::S1)?;
    let accelerator = CATALOG.accelerator(&point.hardware).map_err(|_| Scope::S1)?;
    let engine = engine(&point.engine, read_as);
    let Placed { layout, pool } = layouts::placed(point, accelerator, read_as)?;
    let word = formats::precision(&point.precision, &model).ok_or(Scope::S1)?;
    if word.name() != point.precision {
        *read_as.entry("N2: one word per precision").or_default() += 1;
    }
    let model = Architecture { stored: formats::stored(word, &model), ..model };
    let (load, measured, input, output) = question_of(point, pool)?;
    fits(&model, accelerator, layout)?;
    possible(point, &model, accelerator, layout, word)?;
    let part = accelerator.id.as_str();
    let [engine_name, precision] = [engine.name(), word.name()];
    let series = format!("{shape}|{part}|{engine_name}|{precision}|{input}|{output}");
    let written = point.model.rsplit('/').next().unwrap_or(&point.model);
    let row = Row {
        id: point.id.clone(),
        suite: point.suite.clone(),
        cache: formats::cache(word, engine, &model),
        free_layout: model.feed_forward.experts.is_some() && point.notes.contains("ep not stated"),
        family: format!("{written}|{part}|{engine_name}|{precision}"),
        fold: fold(&series),
        sealed: point.sealed(),
        ttft: point.ttft_ms_mean.map(|ms| ms * 1e-3),
        shape,
        model,
        accelerator,
        engine,
        layout,
        load,
        input,
        output,
        measured,
        series,
    };
    one_token_per_step(&row)?;
    Ok(Row { load: together(&row, read_as), ..row })
}

/// S9. Experts count as far as that many tokens touch them.
fn one_token_per_step(row: &Row) -> Result<(), Scope> {
    let requests = match row.load {
        Load::Closed(requests) | Load::InStep(requests) | Load::Pool(requests) => requests,
        Load::Open(_) | Load::Full => return Ok(()),
    };
    if row.measured < baselines::least_step(row, requests) { Err(Scope::S9) } else { Ok(()) }
}

/// N8: clients that ran in step. SGLang computes prompts in steps of their own and ahead of all
/// decoding, so that clients who begin together end together; the other engines mix the two, and
/// clients fall apart within one answer.
fn together(row: &Row, read_as: &mut Read) -> Load {
    match (row.load, row.ttft) {
        (Load::Closed(clients), Some(ttft))
            if row.engine == Engine::Sglang && Question::new(row).in_step(clients, ttft) =>
        {
            *read_as.entry("N8: clients in step, by the time to the first token").or_default() += 1;
            Load::InStep(clients)
        }
        (load, _) => load,
    }
}

/// S1, the model's half.
fn known_model(point: &Point, shapes: &BTreeMap<String, String>) -> Option<(String, Architecture)> {
    let shape = shapes.get(&point.model)?;
    Some((shape.clone(), Architecture::from_config(&models::config(shape)?).ok()?))
}

/// N1: engines by how their name begins; what is neither vLLM nor SGLang is a TensorRT.
fn engine(written: &str, read_as: &mut Read) -> Engine {
    let lower = written.to_ascii_lowercase();
    let begins = |engine: &Engine| lower.starts_with(engine.name());
    let engine = Engine::ALL.into_iter().find(begins).unwrap_or(Engine::TensorRtLlm);
    if engine.name() != written {
        *read_as.entry("N1: engines by the beginning of their name").or_default() += 1;
    }
    engine
}

/// What was measured under which load. S5 where an open loop lacks its rate or its lengths.
fn question_of(point: &Point, pool: Option<f64>) -> Result<(Load, f64, f64, f64), Scope> {
    let (Some(input), Some(output)) = (point.isl, point.osl) else { return Err(Scope::S5) };
    let Some(tpot) = point.tpot_ms_mean.map(|ms| ms * 1e-3) else {
        let rate = point.out_tok_s.filter(|rate| *rate > 0.0).ok_or(Scope::S5)?;
        return Ok((Load::Full, rate, input, output));
    };
    let load = match (pool, point.concurrency, point.request_rate) {
        (Some(requests), _, _) => Load::Pool(requests),
        (None, Some(clients), _) => Load::Closed(clients),
        (None, None, Some(rate)) => Load::Open(rate),
        (None, None, None) => return Err(Scope::S5),
    };
    Ok((load, tpot, input, output))
}

/// S6. A little under all of the memory, because an engine needs some beside the weights.
fn fits(model: &Architecture, part: &Accelerator, layout: ServingLayout) -> Result<(), Scope> {
    let memory = 0.97 * part.memory.get() as f64 * f64::from(layout.gpus().get());
    if model.weight_bytes() > memory { Err(Scope::S6) } else { Ok(()) }
}

/// S8. Requests per second times the operations of one, against the peak of all GPUs.
fn possible(
    point: &Point,
    model: &Architecture,
    part: &Accelerator,
    layout: ServingLayout,
    word: Precision,
) -> Result<(), Scope> {
    let (Some(clients), Some(ttft), Some(tpot), Some(input), Some(output)) =
        (point.concurrency, point.ttft_ms_mean, point.tpot_ms_mean, point.isl, point.osl)
    else {
        return Ok(());
    };
    if point.mode != "agg" {
        return Ok(());
    }
    let parameters = model.parameters();
    let active = parameters.attention
        + parameters.dense
        + parameters.shared_experts
        + parameters.visited_experts;
    let rate = clients / ((ttft + output * tpot) * 1e-3);
    let narrow = if word == Precision::Bf16 { None } else { part.peak.fp8 };
    let narrower = if word == Precision::Fp4 { part.peak.fp4 } else { None };
    let peak = [narrow, narrower].into_iter().flatten().fold(part.peak.half, f64::max);
    let needed = rate * 2.0 * active as f64 * (input + output);
    if needed > peak * f64::from(layout.abreast()) { Err(Scope::S8) } else { Ok(()) }
}

/// A series is in the same fold in every run and on every machine.
fn fold(series: &str) -> u32 {
    let digest = Sha256::digest(series.as_bytes());
    let first = digest.iter().take(4).fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte));
    first % FOLDS
}

#[cfg(test)]
mod tests {
    use super::super::rows;
    use super::*;

    /// The counts are part of the specification: a rule that takes more rows than before is a
    /// changed rule.
    #[test]
    fn each_rule_takes_the_rows_it_is_known_to_take() {
        let judged = judge(&rows::points().unwrap(), &rows::shapes().unwrap());
        let taken = |scope| {
            let of = |sealed| judged.refused.get(&(scope, sealed)).copied().unwrap_or(0);
            (of(false), of(true))
        };
        let all: Vec<(usize, usize)> = Scope::ALL.into_iter().map(taken).collect();
        let rows = |sealed: bool| judged.rows.iter().filter(|row| row.sealed == sealed).count();
        assert_eq!(
            (all, rows(false), rows(true)),
            (
                vec![
                    (0, 13),
                    (0, 10),
                    (32, 0),
                    (120, 45),
                    (2, 32),
                    (4, 0),
                    (26, 0),
                    (3, 0),
                    (4, 0)
                ],
                1799,
                219
            )
        );
    }
}
