//! Reading a scenario, with everything that is wrong with it at once.

use super::form::{
    ExpectForm, FaultForm, Form, Head, KindForm, LengthForm, MetricsForm, ModelForm, PoolForm,
    RangeForm, VariantForm,
};
use serde::de::DeserializeOwned;
use std::fmt;
use toml::{Table, Value};

/// Everything that is wrong with a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioProblems(pub Vec<String>);

impl std::error::Error for ScenarioProblems {}

impl fmt::Display for ScenarioProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl ScenarioProblems {
    pub(super) fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    pub(super) fn unless(&mut self, fine: bool, problem: impl FnOnce() -> String) {
        if !fine {
            self.0.push(problem());
        }
    }
}

pub(super) fn read(text: &str) -> Result<Form, ScenarioProblems> {
    let mut file: Table =
        text.parse().map_err(|e: toml::de::Error| ScenarioProblems(vec![e.to_string()]))?;
    let mut problems = ScenarioProblems::default();
    // Each table is read by itself, so that a wrong one does not hide what is wrong in the next.
    let metrics: Option<MetricsForm> = one(&mut file, "metrics", &mut problems);
    let expect: Option<ExpectForm> = one(&mut file, "expect", &mut problems);
    let models: Vec<ModelForm> = many(&mut file, "models", &mut problems);
    let pools: Vec<PoolForm> = many(&mut file, "pools", &mut problems);
    let faults: Vec<FaultForm> = many(&mut file, "faults", &mut problems);
    let head: Option<Head> = part(Value::Table(file), "before the first table", &mut problems);
    let Some(head) = head else { return Err(problems) };
    let form = Form {
        name: head.name,
        about: head.about,
        seed: head.seed,
        length_seconds: head.length_seconds,
        scored_from_seconds: head.scored_from_seconds,
        grace_seconds: head.grace_seconds,
        victim: head.victim,
        metrics: metrics.unwrap_or_default(),
        models,
        pools,
        faults,
        expect: expect.unwrap_or_default(),
    };
    check(&form, &mut problems);
    if problems.0.is_empty() { Ok(form) } else { Err(problems) }
}

fn part<T: DeserializeOwned>(
    value: Value,
    place: &str,
    problems: &mut ScenarioProblems,
) -> Option<T> {
    match T::deserialize(value) {
        Ok(part) => Some(part),
        Err(error) => {
            problems.add(format!("{place}: {}", error.to_string().trim_end()));
            None
        }
    }
}

fn one<T: DeserializeOwned>(
    file: &mut Table,
    name: &str,
    problems: &mut ScenarioProblems,
) -> Option<T> {
    part(file.remove(name)?, &format!("[{name}]"), problems)
}

fn many<T: DeserializeOwned>(
    file: &mut Table,
    name: &str,
    problems: &mut ScenarioProblems,
) -> Vec<T> {
    match file.remove(name) {
        None => Vec::new(),
        Some(Value::Array(all)) => {
            let place = |number: usize| format!("[[{name}]] number {}", number + 1);
            let all = all.into_iter().enumerate();
            all.filter_map(|(number, value)| part(value, &place(number), problems)).collect()
        }
        Some(_) => {
            problems.add(format!("{name} is not a list of tables; hint: write [[{name}]]"));
            Vec::new()
        }
    }
}

fn check(form: &Form, problems: &mut ScenarioProblems) {
    problems.unless(form.length_seconds > 0.0, || "length_seconds must be above zero".to_owned());
    problems.unless((0.0..form.length_seconds).contains(&form.scored_from_seconds), || {
        "scored_from_seconds must lie before the end".to_owned()
    });
    problems.unless(!form.models.is_empty(), || "there is no [[models]]".to_owned());
    let rising = form.models.windows(2).all(|two| two[0].name < two[1].name);
    problems.unless(rising, || "models must stand in the order of their names".to_owned());
    for model in &form.models {
        check_model(form, model, problems);
    }
    for pool in &form.pools {
        let place = format!("pool {}", pool.name);
        problems.unless(pool.gpus_per_node > 0, || format!("{place}: gpus_per_node is zero"));
        let times = pool.stock.windows(2).all(|two| two[0].from_seconds < two[1].from_seconds);
        problems.unless(times, || format!("{place}: stock must stand in the order of time"));
        check_length(pool.node_supply.as_ref(), &place, problems);
    }
    for fault in &form.faults {
        check_fault(form, fault, problems);
    }
    check_expect(form, problems);
}

fn check_model(form: &Form, model: &ModelForm, problems: &mut ScenarioProblems) {
    let place = format!("model {}", model.name);
    problems.unless(model.replicas.min <= model.replicas.max, || {
        format!("{place}: replicas.min is above replicas.max")
    });
    let attainment = model.objectives.attainment_percent;
    problems.unless((0.0..=100.0).contains(&attainment), || {
        format!("{place}: attainment_percent must lie between 0 and 100")
    });
    problems.unless(!model.variants.is_empty(), || format!("{place} has no variants"));
    let traffic = &model.traffic;
    problems.unless(traffic.replay.is_some() == traffic.stages.is_empty(), || {
        format!("{place}: traffic needs either stages or replay")
    });
    let lengths = traffic.prompt.is_some() && traffic.output.is_some();
    problems.unless(lengths || traffic.replay.is_some(), || {
        format!("{place}: traffic in stages needs prompt and output")
    });
    let rates = traffic.stages.iter().all(|stage| {
        stage.seconds > 0.0 && stage.rps >= 0.0 && stage.to_rps.is_none_or(|rps| rps >= 0.0)
    });
    problems.unless(rates, || format!("{place}: a stage needs time, and no negative rate"));
    for variant in &model.variants {
        check_variant(form, variant, &place, problems);
    }
}

fn check_variant(form: &Form, variant: &VariantForm, model: &str, problems: &mut ScenarioProblems) {
    let place = format!("{model}, variant {}", variant.name);
    let known = form.pools.iter().any(|pool| pool.name == variant.pool);
    problems.unless(known, || format!("{place}: no pool is called {}", variant.pool));
    problems.unless(variant.gpus > 0, || format!("{place}: gpus is zero"));
    problems.unless(variant.linear.is_some() != variant.modelled.is_some(), || {
        format!("{place} needs either linear or modelled")
    });
    let start = &variant.cold_start;
    for length in [&start.image, &start.weights, &start.warm_up] {
        check_length(length.as_ref(), &place, problems);
    }
}

fn check_length(length: Option<&LengthForm>, place: &str, problems: &mut ScenarioProblems) {
    let Some(length) = length else { return };
    let LengthForm { seconds, median_seconds, p99_seconds, measured_seconds } = length;
    let fine = match (seconds, median_seconds, p99_seconds, measured_seconds) {
        (Some(seconds), None, None, None) => *seconds >= 0.0,
        (None, Some(median), Some(p99), None) => *median > 0.0 && p99 >= median,
        (None, None, None, Some(all)) => !all.is_empty() && all.iter().all(|one| *one >= 0.0),
        _ => false,
    };
    problems.unless(fine, || {
        format!(
            "{place}: a length is either seconds, or median_seconds and p99_seconds, or \
             measured_seconds, and never negative"
        )
    });
}

fn check_fault(form: &Form, fault: &FaultForm, problems: &mut ScenarioProblems) {
    let place = format!("fault {}", fault.name);
    let twice = form.faults.iter().filter(|other| other.name == fault.name).count() > 1;
    problems.unless(!twice, || format!("{place}: duplicate name"));
    let needs = |given: bool, what: &str, problems: &mut ScenarioProblems| {
        problems.unless(given, || format!("{place}: {what} is missing"));
    };
    use KindForm::{
        BadStarts, ClockJump, EngineSlows, MissingMetrics, NoGateway, NodeLoss, NotANumber,
        OperatorRestart, Reclaim, ShapeShift, StaleMetrics, StockOut, ToldCapacity,
    };
    match fault.kind {
        StockOut | BadStarts | StaleMetrics | MissingMetrics | NotANumber => {
            needs(fault.for_seconds.is_some(), "for_seconds", problems);
        }
        Reclaim => needs(fault.notice_seconds.is_some(), "notice_seconds", problems),
        ClockJump => needs(fault.by_seconds.is_some(), "by_seconds", problems),
        ToldCapacity => problems.unless(fault.factor.is_some() != fault.unknown, || {
            format!("{place}: it needs either factor or unknown = true")
        }),
        EngineSlows => needs(fault.factor.is_some(), "factor", problems),
        ShapeShift => {
            let given = fault.prompt_factor.is_some() || fault.output_factor.is_some();
            needs(given, "prompt_factor or output_factor", problems);
        }
        NodeLoss | NoGateway | OperatorRestart => {}
    }
    for factor in [fault.factor, fault.prompt_factor, fault.output_factor].into_iter().flatten() {
        problems.unless(factor > 0.0 && factor.is_finite(), || {
            format!("{place}: a factor must be above zero")
        });
    }
    if matches!(fault.kind, StockOut | BadStarts | Reclaim | NodeLoss) {
        let known = |name: &String| form.pools.iter().any(|pool| pool.name == *name);
        needs(fault.pool.as_ref().is_some_and(known), "an existing pool", problems);
    }
    if matches!(fault.kind, Reclaim | NodeLoss) {
        needs(fault.nodes.is_some(), "nodes", problems);
    }
}

fn check_expect(form: &Form, problems: &mut ScenarioProblems) {
    let expect = &form.expect;
    let ranges: [(&str, &Option<RangeForm>); 6] = [
        ("missed_percent", &expect.missed_percent),
        ("killed", &expect.killed),
        ("gpu_hours", &expect.gpu_hours),
        ("replica_hours", &expect.replica_hours),
        ("episode_replicas", &expect.episode_replicas),
        ("reversals", &expect.reversals),
    ];
    for (name, range) in ranges {
        let Some(range) = range else { continue };
        problems.unless(range.min.is_some() || range.max.is_some(), || {
            format!("expect.{name}: neither min nor max")
        });
        problems.unless(!range.origin.trim().is_empty(), || {
            format!("expect.{name}: origin is empty; hint: say where the number comes from")
        });
    }
    let known = |name: &String| form.faults.iter().any(|fault| fault.name == *name);
    for recovery in &expect.recovery_seconds {
        let by_fault = recovery.after.as_ref().is_some_and(known);
        problems.unless(by_fault != recovery.after_seconds.is_some(), || {
            "expect.recovery_seconds: after must name a fault, or after_seconds a time".to_owned()
        });
    }
    for never in &expect.never_down_during {
        problems.unless(known(&never.fault), || {
            format!("expect.never_down_during: no fault is called {}", never.fault)
        });
    }
}
