//! Why a thing is as it is: one closed list of words.
//!
//! The same word appears unchanged in a condition, an event, a metric label, the command line and
//! the console, so that what a person sees in one place can be looked up in any other. Every word
//! has a page in `docs/errors/`. Add a word only when a person would act differently on it.

use crate::closed::closed_enum;

closed_enum! {
    /// Why a model has the replicas it has, or has not the ones it wants; whether a tenant is let in; and how a training
    /// run stands.
    pub enum Reason {
        Steady => "The replicas match the demand and nothing needs to change.",
        ScaledUp => "Demand needs more replicas, so the model was scaled up.",
        ScaledDown => "Demand fell past break-even, so the model was scaled down.",
        Forecast => "Replicas are kept or added ahead of forecast demand.",
        Calendar => "A calendar entry requires more replicas than demand.",
        Waking => "The model had no replicas, and one is starting because a request arrived.",
        Sleeping => "The model has no replicas because it is idle and may sleep.",
        Draining => "A replica gets no new requests and finishes those in flight.",
        VariantSwitched => "Replicas moved to another variant that is cheaper or has capacity.",
        Pinned => "A person set the number of replicas.",
        Frozen => "A person froze the model, so nothing changes.",
        Recommending => "The decision is shown and not applied because the mode is Recommend.",
        BreakEvenNotReached => "Scaling down now would cost more than keeping the replicas.",
        StepLimited => "The change is larger, or reverses sooner, than the step limit allows.",
        SignalsStale => "A signal is too old to act on, so scale-down is paused.",
        SignalsMissing => "A signal is missing or not a number, so scale-down is paused.",
        CapacityUnknown => "The capacity of a replica is unknown, because it has had too little traffic.",
        ObjectiveUnreachable => "No number of replicas reaches an objective, so none are added for it.",
        CapacityUnavailable => "More replicas are needed, and no pool has free accelerators.",
        LimitReached => "The maximum of the model or the limit of its pool prevents scale-up.",
        BudgetReached => "The budget is exhausted, so no replicas are added.",
        ReplicasOwnedByOther => "Another controller also sets the replicas of this workload.",
        PermissionMissing => "The operator cannot see who else sets the replicas, so nothing is applied.",
        Lent => "Accelerators that serving does not need are lent to training.",
        TakenBack => "Accelerators lent to training return to serving, where they are worth more.",
        TargetNotFound => "The workload that the resource refers to does not exist.",
        DrainTooShort => "The settings of an engine end its pods before requests in flight finish.",
        ReplicaFailed => "A replica does not start or is no longer ready, so others replace it.",
        ReplicaSlow => "A replica is slower than the others of its variant, so it counts as less than one.",
        NodeLost => "A node does not answer or will be removed, so its replicas are replaced.",
        DecisionHeld => "The decision would violate an invariant, so the previous one stays in effect.",
        NameConflict => "Another model has the same public name, so it is unclear whose requests are counted.",
        SpecRefused => "A field of the specification is invalid.",
        TenantAccepted => "The tenant's specification is valid, so its keys and members are accepted.",
        TenantParentMissing => "The tenant's parent does not exist in its namespace, so no caller is accepted.",
        TenantParentCycle => "The tenant is its own ancestor, so no caller is accepted.",
        TenantParentRefused => "A parent of this tenant is refused, so no caller is accepted.",
        TenantTooDeep => "The tenant has too many ancestors, so no caller is accepted.",
        TenantKeyDuplicate => "Two keys have the same id or the same hash, so neither is accepted.",
        TenantBudgetExhausted => "A budget of the tenant is exhausted, so its `onExhausted` applies.",
        TenantBudgetAlert => "A budget of the tenant has reached one of its `alertPercents`.",
        TenantBudgetForecast => "A budget of the tenant will be exhausted before it resets, at its present rate.",
        TenantModelDenied => "A parent does not allow a model that the tenant lists, so it is not served.",
        RunComplete => "The training run has ended with success.",
        RunFailed => "The job of the training run has failed and does not start again.",
        RunWaiting => "The training run waits for admission, for nodes or for its pods to start.",
        RunProgressing => "The training run takes steps, or runs without reporting them.",
        RunStalled => "The training run has its pods and takes no steps.",
        RunHeartbeatMissing => "The training run should report heartbeats and none arrives.",
        RunKindMissing => "The cluster does not have the kind of workload that the training run needs.",
        RunUndecided => "Too little is known about the training run to decide where it should be.",
        RunBudgetSpent => "The training run has spent its budget, so it is not started again.",
        RunAboveValue => "Finishing the training run costs more than its owner says that it is worth.",
        RunNotPlaced => "The decision about the training run cannot be carried out.",
        RunTooLate => "Not even on-demand machines can finish the training run in time.",
        RunDeadlineNear => "Only on-demand machines are sure to finish the training run in time.",
        RunStays => "Leaving its machines would cost the training run more than it saves.",
        RunSpotCheaper => "Spot machines are the cheapest way to finish the training run in time.",
        RunZoneBetter => "Spot machines of another zone are worth a restart of the training run.",
        RunSpotExpected => "Spot machines are expected soon, and the training run has time to wait for them.",
        RunOnDemandCheaper => "On-demand machines cost the training run less than the slack that waiting for spot takes.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn names_are_unique_camel_case_and_found_again() {
        let names: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            let name = reason.name();
            assert!(name.starts_with(|c: char| c.is_ascii_uppercase()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
            assert_eq!(Reason::from_name(name), Some(*reason));
        }
        assert_eq!(Reason::from_name("steady"), None);
    }

    #[test]
    fn a_summary_is_one_sentence() {
        for reason in Reason::ALL {
            let summary = reason.summary();
            assert!(summary.ends_with('.'), "{reason}");
            assert_eq!(summary.matches(". ").count(), 0, "{reason}");
        }
    }

    #[test]
    fn every_reason_has_its_page() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
        for reason in Reason::ALL {
            let page = pages.join(format!("{reason}.md"));
            let text = std::fs::read_to_string(&page)
                .unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            assert_eq!(text.lines().next(), Some(format!("# {reason}").as_str()));
            for heading in ["## What it means", "## What to do"] {
                assert!(text.lines().any(|line| line == heading), "{reason}: {heading}");
            }
            assert!(text.contains(reason.summary()), "{reason}: page lacks the summary");
            assert!(text.lines().count() <= 25, "{reason}: page is too long");
        }
    }
}
