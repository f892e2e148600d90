use super::calibrate::RowQuestion;
use super::{rows, rules};
use crate::checkout;
use flyball_perf::serving::factors::Factors;

/// Made up once and never fitted, so that only a change of the formula changes what follows.
const FIXED: Factors = Factors {
    expert_bandwidth: 0.99,
    expert_flops: 0.79,
    cache_bandwidth: 0.93,
    collectives: 0.95,
    step_seconds: 9e-5,
    request_seconds: 1.5e-5,
    floors: 1.1,
    launch_seconds: 4e-4,
    host: 1.02,
};

const GOLDEN: &str = include_str!("golden.csv");

/// Every row of the golden file with what the model says now.
fn golden_now() -> Vec<(String, f64, f64)> {
    let judged = rules::judge(&rows::points().unwrap(), &rows::shapes().unwrap());
    let now = |line: &str| {
        let (id, frozen) = line.split_once(',').unwrap();
        let row = judged.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("{id}"));
        (
            id.to_owned(),
            frozen.parse().unwrap(),
            RowQuestion::new(row.clone()).question.answer(&FIXED),
        )
    };
    GOLDEN.lines().skip(1).map(now).collect()
}

/// Each model, accelerator, engine, precision, layout and kind of load that the rows have.
#[test]
fn the_formula_says_what_it_said_when_it_was_frozen() {
    for (id, frozen, now) in golden_now() {
        assert!((now / frozen - 1.0).abs() < 1e-6, "{id}: {now} and not {frozen}");
    }
}

#[test]
#[ignore = "freezes the formula anew"]
fn freeze() {
    let lines = golden_now().into_iter().map(|(id, _, now)| format!("{id},{now:.9e}\n"));
    let text = format!("id,predicted\n{}", lines.collect::<String>());
    let path = "crates/accuracy/src/serving/golden.csv";
    std::fs::write(checkout::root().unwrap().join(path), text).unwrap();
}
