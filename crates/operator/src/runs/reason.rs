//! The word for why a run should be where it should be. Pure.

use flyball_core::reason::Reason;
use flyball_training::TrainingReason;

/// The word for why a run should be where it should be.
pub(super) const fn reason(reason: TrainingReason) -> Reason {
    match reason {
        TrainingReason::Finished | TrainingReason::Stays => Reason::RunStays,
        TrainingReason::TooLate => Reason::RunTooLate,
        TrainingReason::DeadlineNear => Reason::RunDeadlineNear,
        TrainingReason::SpotCheaper => Reason::RunSpotCheaper,
        TrainingReason::ZoneBetter => Reason::RunZoneBetter,
        TrainingReason::SpotExpected => Reason::RunSpotExpected,
        TrainingReason::OnDemandCheaper => Reason::RunOnDemandCheaper,
    }
}
