//! What is to do next for a batch: from its state, what is in its segments, and the time. Pure.

use crate::forms::BatchStatus;
use crate::state::Ending;

/// A batch as its worker sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchView {
    pub(crate) status: BatchStatus,
    pub(crate) ending: Option<Ending>,
    /// Seconds, as the batch has them.
    pub(crate) deadline: u64,
    /// Lines of the input.
    pub(crate) total: u64,
    /// Lines of which something is in a segment.
    pub(crate) stored: u64,
}

/// What is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Read the input and say what is wrong with it.
    Validate,
    /// Send lines.
    Run,
    /// Say how it ends, so that nobody sends lines any more.
    Close(Ending),
    /// Put the results together.
    Conclude(Ending),
    /// Take away what nobody needs.
    Clean,
}

pub(crate) fn next_step(view: &BatchView, now: u64) -> NextStep {
    let is_late = now >= view.deadline;
    let is_whole = view.stored >= view.total;
    match (view.status, view.ending) {
        (status, _) if status.is_terminal() => NextStep::Clean,
        (BatchStatus::Validating, _) => NextStep::Validate,
        (BatchStatus::Cancelling, _) => NextStep::Conclude(Ending::Cancelled),
        (BatchStatus::Finalizing, Some(ending @ (Ending::Expired | Ending::Cancelled))) => {
            NextStep::Conclude(ending)
        }
        // A segment was lost since it was counted: its lines are sent again.
        (BatchStatus::Finalizing, _) if !is_whole && !is_late => NextStep::Run,
        (BatchStatus::Finalizing, _) => NextStep::Conclude(Ending::Completed),
        _ if is_whole => NextStep::Close(Ending::Completed),
        _ if is_late => NextStep::Close(Ending::Expired),
        _ => NextStep::Run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(status: BatchStatus, ending: Option<Ending>, stored: u64) -> BatchView {
        BatchView { status, ending, deadline: 100, total: 10, stored }
    }

    #[test]
    fn every_state_has_its_step() {
        use BatchStatus::*;
        let step = |status, ending, stored, now| next_step(&view(status, ending, stored), now);
        assert_eq!(step(Validating, None, 0, 5), NextStep::Validate);
        assert_eq!(step(InProgress, None, 9, 99), NextStep::Run);
        assert_eq!(step(InProgress, None, 10, 99), NextStep::Close(Ending::Completed));
        assert_eq!(step(InProgress, None, 9, 100), NextStep::Close(Ending::Expired));
        // What is whole at the last moment is whole.
        assert_eq!(step(InProgress, None, 10, 100), NextStep::Close(Ending::Completed));
        let completed = Some(Ending::Completed);
        assert_eq!(step(Finalizing, completed, 10, 5), NextStep::Conclude(Ending::Completed));
        assert_eq!(step(Finalizing, completed, 9, 5), NextStep::Run);
        assert_eq!(step(Finalizing, completed, 9, 100), NextStep::Conclude(Ending::Completed));
        let expired = Some(Ending::Expired);
        assert_eq!(step(Finalizing, expired, 3, 100), NextStep::Conclude(Ending::Expired));
        assert_eq!(step(Cancelling, None, 3, 5), NextStep::Conclude(Ending::Cancelled));
        for over in [Failed, Completed, Expired, Cancelled] {
            assert_eq!(step(over, None, 0, 5), NextStep::Clean);
        }
    }
}
