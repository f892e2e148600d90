//! What would change the answer.

use super::serve::{Choice, Knowledge, ServeQuestion, serve};

/// A change of the question, and what the answer would then be.
#[derive(Clone, Debug)]
pub struct Change {
    pub what: &'static str,
    /// The first choice then; `None` if nothing would do.
    pub first: Option<Choice>,
}

/// Asks again with the load, lengths and targets moved, one at a time.
pub fn changes(question: &ServeQuestion<'_>, knowledge: &Knowledge) -> Vec<Change> {
    type Move = fn(&mut ServeQuestion<'_>);
    let moves: [(&'static str, Move); 6] = [
        ("rate +50 %", |question| question.rate *= 1.5),
        ("output +25 %", |question| question.shape.output *= 1.25),
        ("input +25 %", |question| question.shape.input *= 1.25),
        ("ITL target -25 %", |question| {
            question.targets.itl_p95 = question.targets.itl_p95.map(|target| target * 0.75);
        }),
        ("ITL target +25 %", |question| {
            question.targets.itl_p95 = question.targets.itl_p95.map(|target| target * 1.25);
        }),
        ("TTFT target -25 %", |question| {
            question.targets.ttft_p95 = question.targets.ttft_p95.map(|target| target * 0.75);
        }),
    ];
    let targets = question.targets;
    moves
        .into_iter()
        .filter(|(what, _)| {
            !(what.starts_with("ITL") && targets.itl_p95.is_none()
                || what.starts_with("TTFT") && targets.ttft_p95.is_none())
        })
        .map(|(what, change)| {
            let mut moved = question.clone();
            change(&mut moved);
            Change { what, first: serve(&moved, knowledge).ranked.into_iter().next() }
        })
        .collect()
}
