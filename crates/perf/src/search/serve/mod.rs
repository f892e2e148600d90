//! Sizing a service: which part, which layout, how many replicas.
//!
//! For each layout the engine's chunk size is chosen too, because it trades the time between tokens
//! against the time to the first. A replica carries what it can while the *whole interval* of each
//! latency stays inside its target (`Bound` says what stops it), and is then planned for a share of that.

mod bound;
mod candidate;
mod question;

pub use super::part::{OfferedPart, Ranged};
pub use bound::BoundBy;
pub use candidate::ServeChoice;
pub use question::{Knowledge, ServeObjective, ServeQuestion, Targets};

use super::{Rejection, layouts};
use crate::layout::ServingLayout;

/// A layout that is not an answer.
#[derive(Clone, Debug)]
pub struct Rejected {
    pub part: usize,
    pub layout: ServingLayout,
    pub reason: Rejection,
}

/// All answers, best first, and all that are none.
#[derive(Clone, Debug)]
pub struct ServePlan {
    pub ranked: Vec<ServeChoice>,
    pub rejected: Vec<Rejected>,
    /// Number of layouts and settings considered.
    pub considered: usize,
}

/// Tries everything.
pub fn serve(question: &ServeQuestion<'_>, knowledge: &Knowledge) -> ServePlan {
    let mut plan = ServePlan { ranked: Vec::new(), rejected: Vec::new(), considered: 0 };
    for (index, part) in question.parts.iter().enumerate() {
        let kernels = part.accelerator.kernels_or_assumed();
        for layout in layouts::serving(question.model, part.accelerator) {
            plan.considered += crate::serving::chunk::CHUNKS.len();
            match candidate::best(question, knowledge, part, &kernels, layout) {
                Ok(choice) => plan.ranked.push(ServeChoice { part: index, ..choice }),
                Err(reason) => plan.rejected.push(Rejected { part: index, layout, reason }),
            }
        }
    }
    let output = question.shape.output;
    plan.ranked.sort_by(|a, b| candidate::better(&question.objective, output, a, b));
    plan.rejected.sort_by(|a, b| a.reason.by_closeness(&b.reason));
    plan
}
