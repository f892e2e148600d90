//! A request for which an engine was chosen, until one begins to answer.

use super::trail::Trail;
use crate::choose::Chosen;
use crate::finished::{Finished, RequestOutcome, Try};
use crate::phase::{Admitted, Open, Phase};
use crate::shadow::Followed;
use flyball_fleet::Time;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request for which an engine was chosen.
pub(super) struct Sending {
    pub(super) admitted: Admitted,
    /// The engine that was asked last, or the one of two that was first to begin.
    pub(super) chosen: Chosen,
    /// From its head to the first choice.
    chosen_after: Duration,
    /// Whether policies that only watch are told of it.
    pub(super) followed: Option<Followed>,
    /// What became of the engines that it was sent to.
    pub(super) trail: Arc<Trail>,
    pub(super) hedged: bool,
    pub(super) retries: u32,
    /// As many as there are retries and one: nothing is allocated unless something fails.
    tries: Vec<Try>,
}

impl Sending {
    pub(super) fn new(
        admitted: Admitted,
        chosen: Chosen,
        chosen_after: Duration,
        followed: Option<Followed>,
        trail: Trail,
    ) -> Self {
        let (trail, tries) = (Arc::new(trail), Vec::new());
        let (hedged, retries) = (false, 0);
        Self { admitted, chosen, chosen_after, followed, trail, hedged, retries, tries }
    }
}

impl Sending {
    /// As it was before an engine was chosen.
    pub(super) fn back(self) -> Admitted {
        if let Some(followed) = self.followed {
            followed.end(None);
        }
        self.admitted
    }
}

impl Open<Sending> {
    /// The engine was tried since then and gave no answer.
    pub(super) fn tried(&mut self, since: Instant, why: &'static str) {
        let (began, ended) = (self.head().age_at(since), self.head().age());
        let endpoint = Arc::clone(&self.chosen.endpoint.name);
        self.tries.push(Try { endpoint, began, ended, why });
    }
}

impl Phase for Sending {
    const REFUSED: RequestOutcome = RequestOutcome::Failed;

    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.admitted.describe(finished);
        finished.endpoint = Some(&self.chosen.endpoint.name);
        finished.hoped_blocks = self.chosen.hoped_blocks;
        finished.chosen = Some(self.chosen_after);
        finished.hedged = self.hedged;
        finished.retries = self.retries;
        finished.tries = &self.tries;
    }

    fn settle(&mut self, outcome: RequestOutcome, now: Time) {
        // The engine read the prompt for whoever hung up. What failed costs nothing.
        if outcome == RequestOutcome::Cancelled {
            self.admitted.granted().hang_up();
        }
        self.admitted.settle(outcome, now);
        if let Some(followed) = self.followed.take() {
            followed.end(None);
        }
    }
}
