//! From facts to outcomes. Pure: no cluster, no clock, no I/O.
//!
//! One file per category. The rules they share: a thing that is absent or bad is `warn` or `fail`
//! by what stops working; a question without an answer is `unknown`, whatever the reason.

mod capacity;
mod clock;
mod cluster;
mod parts;
pub(super) mod permissions;

use std::collections::BTreeSet;

use super::Selection;
use super::answer::{CheckAnswer, Counts, FailOn, Outcome, Section, Status};
use super::codes::{CHECKS, Category, Code};
use super::facts::{Facts, Found};
use crate::output::duration;

pub(super) fn judge(facts: &Facts, selection: &Selection, fail_on: FailOn) -> CheckAnswer {
    let causes = causes(facts, selection);
    let shown: Vec<Code> = selection.shown().map(|check| check.code).collect();
    let mut sections: Vec<Section> = Vec::new();
    for check in CHECKS {
        let outcome = if selection.runs(check.code) || causes.contains(&check.code) {
            outcome(check.code, facts)
        } else if shown.contains(&check.code) {
            Outcome::new(check.code, Status::Skip, "left out with --skip")
        } else {
            continue;
        };
        match sections.last_mut() {
            Some(section) if section.category == check.category => section.checks.push(outcome),
            _ => sections.push(Section { category: check.category, checks: vec![outcome] }),
        }
    }
    let counts = Counts::of(&sections);
    CheckAnswer {
        cluster: facts.address.clone(),
        before_install: selection.before_install,
        verdict: counts.verdict(fail_on),
        counts,
        took_millis: 0,
        sections,
        accelerators: facts.fleet.known().map(capacity::groups),
    }
}

/// Checks that were not chosen, and are shown because chosen ones are unknown on their account.
fn causes(facts: &Facts, selection: &Selection) -> BTreeSet<Code> {
    selection
        .shown()
        .filter(|check| selection.runs(check.code))
        .filter_map(|check| outcome(check.code, facts).explain)
        .filter_map(|id| Code::parse(id).ok())
        .collect()
}

fn outcome(code: Code, facts: &Facts) -> Outcome {
    match code.check().category {
        Category::Cluster => cluster::judge(code, facts),
        Category::Permissions => permissions::judge(code, facts),
        Category::Parts => parts::judge(code, facts),
        Category::Capacity => capacity::judge(code, &facts.fleet),
        Category::Clock => clock::judge(&facts.clock),
    }
}

/// What to say when there is no fact to judge. `question` completes "may not ...".
fn unknown<T>(code: Code, found: &Found<T>, question: &str) -> Outcome {
    let unknown = |detail: String| Outcome::new(code, Status::Unknown, detail);
    match found {
        Found::Denied(words) => unknown(format!("may not {question}: {words}"))
            .hint("kubectl auth can-i --list shows what this identity may do"),
        Found::TimedOut(limit) => {
            let category = code.check().category.name();
            unknown(format!("timed out after {}", duration(*limit)))
                .hint(format!("flyball check --only {category} --timeout {}s", longer(*limit)))
        }
        Found::Failed(words) => unknown(format!("cannot {question}: {words}")),
        Found::Skipped => follows(code, Code::ApiServer, "the api server was not reached"),
        Found::Absent | Found::Known(_) => unknown(format!("cannot {question}: no usable answer")),
    }
}

/// Unknown only because another check is: that one says why and what to do.
fn follows(code: Code, cause: Code, why: &str) -> Outcome {
    Outcome::new(code, Status::Unknown, why).explained_by(cause)
}

/// Six times the limit: long enough to tell slow from dead.
fn longer(limit: std::time::Duration) -> u64 {
    (limit.as_secs() * 6).max(5)
}
