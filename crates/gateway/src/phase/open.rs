//! A request that is not over. Whatever becomes of it, the meter hears of its end, and once.

use super::Phase;
use super::head::Head;
use crate::accept::Reader;
use crate::answer::Problem;
use crate::finished::{Finished, RequestOutcome};
use std::ops::{Deref, DerefMut};

/// The reason of a stream that was reset because its client did not read.
const CLIENT_IDLE: &str = "client_idle";

/// Why there is always a value.
const TAKEN: &str = "taken only by `then`, which consumes it";

/// A request that is not over, in one of its phases. Dropped without an end, its client has hung up.
pub(crate) struct Open<P: Phase> {
    /// `None` once the next phase has it. The head in a box: every future carries this.
    inner: Option<(Box<Head>, P)>,
    over: bool,
}

impl<P: Phase> Open<P> {
    pub(crate) fn new(head: Head, phase: P) -> Self {
        Self { inner: Some((Box::new(head), phase)), over: false }
    }

    pub(crate) fn head(&self) -> &Head {
        &self.inner.as_ref().expect(TAKEN).0
    }

    /// Goes on to the next phase.
    pub(crate) fn then<Q: Phase>(mut self, next: impl FnOnce(P) -> Q) -> Open<Q> {
        let (head, phase) = self.inner.take().expect(TAKEN);
        Open { inner: Some((head, next(phase))), over: self.over }
    }

    /// Goes on with what a step gave, or is over with its problem.
    pub(crate) fn or_refuse<T>(
        self,
        step: Result<T, impl Into<Problem>>,
    ) -> Result<(Self, T), Problem> {
        match step {
            Ok(given) => Ok((self, given)),
            Err(problem) => Err(self.refuse(problem.into())),
        }
    }

    /// It is over with an answer of our own.
    pub(crate) fn refuse(mut self, problem: Problem) -> Problem {
        self.end(P::REFUSED, Some(problem.code()), problem.status().as_u16());
        problem
    }

    /// It is over. What it holds stays until it is dropped: a last piece may still be on its way.
    pub(crate) fn finish(&mut self, outcome: RequestOutcome, reason: Option<&'static str>) {
        self.end(outcome, reason, 0);
    }

    fn end(&mut self, outcome: RequestOutcome, reason: Option<&'static str>, status: u16) {
        let Some((head, phase)) = &mut self.inner else { return };
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let now = head.shared.time();
        phase.settle(outcome, now);
        let mut finished = Finished { reason, status, ..head.finished(outcome, now.at) };
        phase.describe(&mut finished);
        head.shared.judge(&finished);
        head.shared.listener.finished(&finished);
    }
}

impl<P: Phase> Deref for Open<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.inner.as_ref().expect(TAKEN).1
    }
}

impl<P: Phase> DerefMut for Open<P> {
    fn deref_mut(&mut self) -> &mut P {
        &mut self.inner.as_mut().expect(TAKEN).1
    }
}

impl<P: Phase> Drop for Open<P> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.finish(RequestOutcome::Cancelled, Reader::is_late().then_some(CLIENT_IDLE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Arrived;
    use crate::settings::GatewaySettingsFile;
    use crate::shared::{Listener, Shared};
    use crate::surface::Surface;
    use flyball_fleet::FleetEndpoint;
    use http::HeaderValue;
    use std::sync::{Arc, Mutex};

    type Ended = (RequestOutcome, u16, Option<&'static str>);

    #[derive(Default)]
    struct Ends(Mutex<Vec<Ended>>);

    impl Listener for Ends {
        fn finished(&self, finished: &Finished<'_>) {
            let ended = (finished.outcome, finished.status, finished.reason);
            self.0.lock().unwrap().push(ended);
        }

        fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
    }

    /// What is told of a request with which this is done.
    fn ends(done: impl FnOnce(Open<Arrived>)) -> Vec<Ended> {
        let ends = Arc::new(Ends::default());
        let listener: Arc<dyn Listener> = Arc::<Ends>::clone(&ends);
        let shared = Arc::new(Shared::new(&GatewaySettingsFile::default(), listener));
        let head = Head::new(shared, HeaderValue::from_static("id"), Surface::Chat, None);
        // In its second phase.
        done(Open::new(head, Arrived).then(|arrived| arrived));
        std::mem::take(&mut *ends.0.lock().unwrap())
    }

    #[test]
    fn whatever_becomes_of_a_request_its_end_is_told_once() {
        use RequestOutcome::{Answered, Broken, Cancelled, Refused};
        assert_eq!(ends(drop), [(Cancelled, 0, None)]);
        let refused = ends(|open| drop(open.refuse(Problem::NoKey)));
        assert_eq!(refused, [(Refused, 401, Some(Problem::NoKey.code()))]);
        let finished = ends(|mut open| {
            open.finish(Answered, None);
            open.finish(Broken, None);
            drop(open.then(|arrived| arrived));
        });
        assert_eq!(finished, [(Answered, 0, None)]);
    }
}
