//! What could make an answer about serving far wrong, said in the answer itself.

use flyball_perf::evidence::Evidence;
use flyball_perf::search::serve::{
    BoundBy, Knowledge, ServeChoice, ServePlan, ServeQuestion, Targets, serve,
};

use super::super::parts::UNMEASURED;
use super::super::range::short;

/// A target that leaves less than this of what a replica carries without one decides alone.
const LITTLE: f64 = 0.25;

/// Of the first choice; none if there is no choice.
pub(super) fn warnings(
    question: &ServeQuestion<'_>,
    plan: &ServePlan,
    knowledge: &Knowledge,
) -> Vec<String> {
    let Some(first) = plan.ranked.first() else { return Vec::new() };
    let part = &question.parts[first.part];
    let mut found = Vec::new();
    if first.evidence == Evidence::DatasheetOnly {
        found.push(UNMEASURED.to_owned());
    }
    if first.layout.gpus().get() > part.accelerator.node_gpus.get() {
        found.push(format!(
            "There are no published measurements of a replica over several hosts to compare with; \
             stages in one host were up to 90 % slower than predicted, and the network between \
             hosts is assumed to be {}.",
            part.accelerator.scale_out.name
        ));
    }
    found.extend(target_decides(question, first, knowledge));
    found
}

/// Where a target leaves a replica almost nothing to do, its count hangs on the tail of lengths that was assumed.
fn target_decides(
    question: &ServeQuestion<'_>,
    first: &ServeChoice,
    knowledge: &Knowledge,
) -> Option<String> {
    if !matches!(first.bound, BoundBy::FirstToken | BoundBy::BetweenTokens) {
        return None;
    }
    let parts = [question.parts[first.part].clone()];
    let free = ServeQuestion {
        targets: Targets { ttft_p95: None, itl_p95: None, tpot: None },
        parts: &parts,
        ..question.clone()
    };
    let plan = serve(&free, knowledge);
    let most = plan.ranked.iter().find(|choice| choice.layout == first.layout)?.capacity.point;
    let left = first.capacity.point / most;
    (left < LITTLE).then(|| {
        format!(
            "The objective of {} leaves {} % of a replica's capacity: the number of replicas \
             depends on it and on prompts of {} x the mean length.",
            first.bound,
            short(left * 100.0),
            short(question.shape.input_p95)
        )
    })
}
