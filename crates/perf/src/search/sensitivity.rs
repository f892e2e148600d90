//! What would change the answer.

use super::serve::{Knowledge, ServeChoice, ServeQuestion, Targets, serve};

/// A change of the question, and what the answer would then be.
#[derive(Clone, Debug)]
pub struct SensitivityChange {
    pub what: &'static str,
    /// The first choice then; `None` if nothing would do.
    pub first: Option<ServeChoice>,
}

/// Asks again with the load, lengths and targets moved, one at a time.
pub fn changes(question: &ServeQuestion<'_>, knowledge: &Knowledge) -> Vec<SensitivityChange> {
    type Move = fn(&mut ServeQuestion<'_>);
    let moves: [(&'static str, Move); 6] = [
        ("rate +50 %", |question| question.rate *= 1.5),
        ("output +25 %", |question| question.shape.output *= 1.25),
        ("input +25 %", |question| question.shape.input *= 1.25),
        ("ITL target -25 %", |question| {
            SensitivityTarget::BetweenTokens.scale(&mut question.targets, 0.75)
        }),
        ("ITL target +25 %", |question| {
            SensitivityTarget::BetweenTokens.scale(&mut question.targets, 1.25)
        }),
        ("TTFT target -25 %", |question| {
            SensitivityTarget::FirstToken.scale(&mut question.targets, 0.75)
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
            SensitivityChange { what, first: serve(&moved, knowledge).ranked.into_iter().next() }
        })
        .collect()
}

/// A target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SensitivityTarget {
    FirstToken,
    BetweenTokens,
}

impl SensitivityTarget {
    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstToken => "TTFT",
            Self::BetweenTokens => "ITL",
        }
    }

    fn of(self, targets: &mut Targets) -> &mut Option<f64> {
        match self {
            Self::FirstToken => &mut targets.ttft_p95,
            Self::BetweenTokens => &mut targets.itl_p95,
        }
    }

    fn scale(self, targets: &mut Targets, factor: f64) {
        let target = self.of(targets);
        *target = target.map(|target| target * factor);
    }
}

/// A target near which the answer moves much: the same accelerator, and far more or fewer of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cliff {
    pub target: SensitivityTarget,
    /// The limit in seconds, and what it would have to be.
    pub limit: f64,
    pub moved: f64,
    /// Accelerators then; `None` if none would do.
    pub gpus: Option<u32>,
}

/// Small changes of a target.
const SMALL: [f64; 6] = [0.9, 1.1, 0.75, 1.25, 0.67, 1.5];
/// So many times as many, or as few, are much.
const MUCH: f64 = 1.8;

/// The smallest change of each target that moves the number of accelerators much, if one does.
pub fn cliffs(
    question: &ServeQuestion<'_>,
    knowledge: &Knowledge,
    first: &ServeChoice,
) -> Vec<Cliff> {
    let part = [question.parts[first.part].clone()];
    let alone = ServeQuestion { parts: &part, ..question.clone() };
    let moved = |target: SensitivityTarget, factor: f64| -> Option<Cliff> {
        let mut moved = alone.clone();
        let limit = (*target.of(&mut moved.targets))?;
        target.scale(&mut moved.targets, factor);
        let gpus = serve(&moved, knowledge).ranked.first().map(|choice| choice.gpus.get());
        let ratio =
            gpus.map_or(f64::INFINITY, |gpus| f64::from(gpus) / f64::from(first.gpus.get()));
        let much = ratio >= MUCH || ratio <= 1.0 / MUCH;
        much.then_some(Cliff { target, limit, moved: limit * factor, gpus })
    };
    [SensitivityTarget::FirstToken, SensitivityTarget::BetweenTokens]
        .into_iter()
        .filter_map(|target| SMALL.into_iter().find_map(|factor| moved(target, factor)))
        .collect()
}
