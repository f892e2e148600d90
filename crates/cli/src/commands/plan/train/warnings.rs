//! What could make an answer about a run far wrong, said in the answer itself.

use super::super::parts::UNMEASURED;
use super::super::range::short;
use super::answer::TrainAnswer;

/// Above this share of a step that only waits, more accelerators hardly help.
const WAITING: f64 = 1.0 / 3.0;
/// Days; what was measured took minutes.
const LONG: f64 = 1.0;

/// Of the first choice; none if there is no choice.
pub(super) fn warnings(answer: &TrainAnswer) -> Vec<String> {
    let Some(first) = answer.choices.first() else { return Vec::new() };
    let mut found = Vec::new();
    if first.rests_on_datasheet() {
        found.push(UNMEASURED.to_owned());
    }
    if answer.model.has_experts() {
        found.push(
            "The speed of training with experts is not validated: 24 held-out rows were 20 % off in the median."
                .to_owned(),
        );
    }
    let waits = ["bubble", "data"];
    let waiting: f64 = first
        .step_parts
        .iter()
        .filter(|part| waits.contains(&part.part))
        .map(|part| part.share)
        .sum();
    if waiting > WAITING {
        found.push(format!(
            "{} % of a step waits for other stages and copies: {} sequences per step are few for {} GPUs; --batch sets more.",
            short(waiting * 100.0),
            first.sequences_per_step,
            first.gpus
        ));
    }
    if first.days.point > LONG {
        found.push(
            "Steps were measured, not whole runs: evaluation, stalls and work that people repeat come on top."
                .to_owned(),
        );
    }
    found
}
