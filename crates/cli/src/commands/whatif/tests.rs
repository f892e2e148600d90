use flyball_resources::admin_api::{Imagined, VariantCount, WhatIfOutcome, WhatIfSide};

use super::*;
use crate::output::{Answer as _, Detail, answer_json, answer_table, conforms};
use crate::text::width;

fn side(replicas: i32, cost: Option<&str>, variants: &[(&str, i32)]) -> WhatIfSide {
    WhatIfSide {
        replicas,
        variants: variants
            .iter()
            .map(|(name, replicas)| VariantCount {
                variant: (*name).to_owned(),
                replicas: *replicas,
            })
            .collect(),
        hourly_cost: cost.map(str::to_owned),
        currency: cost.map(|_| "USD".to_owned()),
        reason: "ScaledUp".to_owned(),
        bound: "NeedNow".to_owned(),
        message: "team-a/qwen needs 5.9 replicas now; 4 replicas are ready. It starts 2 to reach \
                  6 replicas (ScaledUp): current demand."
            .to_owned(),
        candidates: Vec::new(),
    }
}

fn answer(models: Vec<Imagined>, exit_code: bool) -> WhatIf {
    let outcome = WhatIfOutcome { at: "2026-11-15T14:05:20Z".to_owned(), models };
    let words = vec!["team-a/qwen has 50 % more work".to_owned(), "pool h200 is gone".to_owned()];
    let mut answer = WhatIf::new(words, outcome, exit_code);
    answer.asked_at = "2026-11-15T14:05:30Z".to_owned();
    answer
}

fn shown(answer: &WhatIf) -> String {
    conforms("what-if", &answer_json(answer));
    let text = answer_table(answer, Detail::Full);
    assert!(text.lines().all(|line| width(line) <= 100), "{text}");
    text
}

#[test]
fn two_worlds_stand_side_by_side() {
    let grows = Imagined {
        model: "team-a/qwen".to_owned(),
        before: Some(side(4, Some("27.52"), &[("h100", 4), ("h200", 0)])),
        after: Some(side(6, Some("41.28"), &[("h100", 4), ("h200", 2)])),
        problems: Vec::new(),
    };
    insta::assert_snapshot!("grows", shown(&answer(vec![grows.clone()], false)));
    let new = Imagined {
        model: "team-a/new".to_owned(),
        before: None,
        after: Some(side(1, None, &[("main", 1)])),
        problems: vec!["Deployment team-a/new does not exist: nothing could be applied".to_owned()],
    };
    insta::assert_snapshot!("new_and_unknown", shown(&answer(vec![grows.clone(), new], false)));
    assert_eq!(answer(vec![grows.clone()], true).exit(), Exit::No);
    assert_eq!(answer(vec![grows], false).exit(), Exit::Yes);
}

#[test]
fn nothing_different_is_said_in_words() {
    let same = side(4, Some("27.52"), &[("main", 4)]);
    let other = WhatIfSide { bound: "Minimum".to_owned(), ..same.clone() };
    let model = Imagined {
        model: "team-a/qwen".to_owned(),
        before: Some(same),
        after: Some(other),
        problems: Vec::new(),
    };
    let answer = answer(vec![model], true);
    assert_eq!(answer.exit(), Exit::Yes, "another bound with the same result is no difference");
    insta::assert_snapshot!(shown(&answer));
}

#[test]
fn files_are_read_and_other_kinds_left_aside() {
    let text = "
apiVersion: v1
kind: ConfigMap
---
apiVersion: flyball.dev/v1alpha1
kind: ModelService
metadata: { name: qwen }
spec: { variants: [{ targetRef: { kind: Deployment, name: qwen } }] }
---
apiVersion: flyball.dev/v1alpha1
kind: Pool
metadata: { name: h100 }
spec: { accelerator: h100 }
";
    let read = file::parse(text, "demo").unwrap();
    assert_eq!(read.words, ["demo/qwen is as written", "pool h100 is as written"]);
    assert_eq!(read.changes.model_services.len() + read.changes.pools.len(), 2);
    let problems = |text: &str| file::parse(text, "demo").unwrap_err();
    insta::assert_snapshot!(
        [
            problems("kind: ConfigMap\napiVersion: v1\n"),
            problems(&text.replace("accelerator: h100", "accelerator: 7")),
            problems("kind: [\n"),
        ]
        .concat()
        .join("\n")
    );
}

#[test]
fn changes_are_named_in_words() {
    let changes = Changes {
        model: Some("a/m".to_owned()),
        rate_percent: Some(80),
        min: Some(2),
        max: Some(9),
        lost_pools: vec!["h100".to_owned()],
        prices: vec![parse::price("h200/spot=1.2").unwrap()],
        ..Changes::default()
    };
    insta::assert_snapshot!(parse::words(&changes).join("\n"));
}
