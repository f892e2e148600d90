//! Training runs of a cluster.

use flyball_resources::TrainingRun;
use flyball_resources::training_run::TrainingRunStatus;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::FailureCode;
use crate::served::Listed;

impl Listed for TrainingRun {
    const ONE: &'static str = "training run";
    const NAME: &'static str = "TrainingRun";
    const MANY: &'static str = "trainingruns";
    const NO_KIND: FailureCode = FailureCode::NoTrainingRuns;
    const NO_SUCH: FailureCode = FailureCode::NoSuchRun;

    fn absent(name: &str, namespace: Option<&str>, _: usize) -> String {
        let namespace = namespace.unwrap_or("NAMESPACE");
        format!(
            "adopt the JobSet that runs:\n\n\
             kubectl apply -f - <<END\n\
             apiVersion: flyball.dev/v1alpha1\n\
             kind: TrainingRun\n\
             metadata: {{ name: {name}, namespace: {namespace} }}\n\
             spec:\n  workloadRef: {{ kind: JobSet, name: {name} }}\n\
             END"
        )
    }
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RunState {
    /// It has ended with success.
    Complete,
    /// It has failed.
    Failed,
    /// It runs.
    Running,
    /// It waits for machines.
    Waiting,
    /// It runs, and something is wrong; or it cannot run.
    Stalled,
    /// The operator has not reported on it as it is now.
    Unknown,
}

impl RunState {
    /// Of a run, as its conditions say it.
    pub(crate) fn of(run: &TrainingRun) -> Self {
        let Some(status) = fresh(run) else { return Self::Unknown };
        let is = |kind: &str, so: &str| {
            status.conditions.iter().any(|one| one.type_ == kind && one.status == so)
        };
        match () {
            () if is("Complete", "True") => Self::Complete,
            () if is("Complete", "False") => Self::Failed,
            () if is("Reconciling", "True") => Self::Waiting,
            () if is("Ready", "True") => Self::Running,
            () if is("Ready", "False") => Self::Stalled,
            () => Self::Unknown,
        }
    }

    /// The word for people.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Stalled => "stalled",
            Self::Unknown => "unknown",
        }
    }

    /// Whether nothing more comes.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Failed)
    }
}

/// Its status, if that is about the run as it is now.
pub(crate) fn fresh(run: &TrainingRun) -> Option<&TrainingRunStatus> {
    run.status.as_ref().filter(|one| one.observed_generation == run.metadata.generation)
}

/// What a condition of this type says.
pub(crate) fn condition_text<'a>(
    status: &'a TrainingRunStatus,
    kind: &str,
) -> Option<(&'a str, &'a str)> {
    let found = status.conditions.iter().find(|one| one.type_ == kind)?;
    Some((found.reason.as_str(), found.message.as_str()))
}
