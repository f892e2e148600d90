//! The governor as an operator hands it on: by the line of text that stands in `status.learnt`.

use std::cell::Cell;
use std::rc::Rc;

use flyball_estimator::Estimator;
use flyball_operator::persist;
use flyball_simulator::policies::HandedOn;
use flyball_simulator::policy::{PolicyView, ScaleOrder, ScalingPolicy};
use flyball_simulator::seconds::Seconds;
use flyball_tuner::Tuned;

/// The governor, and the longest text that it handed on of one model.
pub(super) struct Persisted {
    tuned: Tuned,
    longest: Rc<Cell<Option<usize>>>,
}

impl Persisted {
    pub(super) fn new(longest: Rc<Cell<Option<usize>>>) -> Self {
        Self { tuned: Tuned::new(flyball_governor::Policy::default()), longest }
    }
}

impl ScalingPolicy for Persisted {
    fn name(&self) -> &str {
        self.tuned.name()
    }

    fn interval(&self) -> Seconds {
        self.tuned.interval()
    }

    fn decide(&mut self, sight: &PolicyView<'_>) -> ScaleOrder {
        self.tuned.decide(sight)
    }

    fn restart(&mut self, estimator: &mut Estimator) {
        let mut handed_on = HandedOn::new();
        for (id, (learnt, estimated)) in self.tuned.learnt(estimator) {
            let text = learnt.and_then(|learnt| persist::write(&learnt, &estimated));
            let longest = self.longest.get().max(text.as_ref().map(String::len));
            self.longest.set(longest);
            // What is too long for a status is not handed on, and nor is what cannot be read there.
            let Some(read) = text.and_then(|text| persist::read(&text).ok()) else { continue };
            // How long starts take stands in the status by itself.
            let mut read_back = read.estimated;
            read_back.starts = estimated.starts;
            handed_on.insert(id, (Some(read.learnt), read_back));
        }
        self.tuned.succeed(&handed_on, estimator);
    }
}
