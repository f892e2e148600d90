//! Why a thing is as it is: one closed list of words.
//!
//! The same word appears unchanged in a condition, an event, a metric label, the command line and
//! the console, so that what a person sees in one place can be looked up in any other. Every word
//! has a page in `docs/errors/`. Add a word only when a person would act differently on it.

use crate::closed::closed_enum;

closed_enum! {
    /// Why a model has the replicas it has, or has not the ones it wants; and whether a tenant is let in.
    pub enum Reason {
        Steady => "The replicas match the demand and nothing needs to change.",
        ScaledUp => "Demand now needs more replicas, so more were asked for.",
        ScaledDown => "Demand fell past break-even, so replicas were given back.",
        Forecast => "Replicas are held or added ahead of demand that the forecast expects.",
        Calendar => "A calendar entry asks for more replicas than demand does.",
        Waking => "The model had no replicas and one is starting because a request arrived.",
        Sleeping => "The model has no replicas because nobody uses it and it may sleep.",
        Draining => "A replica gets no new requests and finishes the ones it has.",
        VariantSwitched => "Replicas moved to another variant that is cheaper or has room.",
        Pinned => "A person set the number of replicas.",
        Frozen => "A person froze the model, so nothing is changed.",
        Recommending => "The decision is shown and not carried out because the mode is Recommend.",
        BreakEvenNotReached => "Giving replicas back now would cost more than keeping them.",
        StepLimited => "The change is larger, or reverses sooner, than one step may be.",
        SignalsStale => "A signal is too old to act on, so nothing scales down.",
        SignalsMissing => "A signal was never seen or is not a number, so nothing scales down.",
        CapacityUnknown => "Too little is known of what a replica carries, because too little was asked of it yet.",
        ObjectiveUnreachable => "No number of replicas reaches an objective, so none are bought for it.",
        CapacityUnavailable => "More replicas are wanted and no pool has free accelerators.",
        LimitReached => "The maximum of the model or the limit of its pool stops growth.",
        BudgetReached => "The budget is spent, so no more replicas are paid for.",
        ReplicasOwnedByOther => "Another controller also sets the replicas of this workload.",
        PermissionMissing => "Who else sets the replicas cannot be seen, so nothing is carried out.",
        Lent => "Accelerators that serving does not need are lent to training.",
        TakenBack => "Accelerators lent to training go back to serving, where they are worth more.",
        TargetNotFound => "The workload that the model refers to does not exist.",
        DrainTooShort => "The settings of an engine end its pods before their requests are answered.",
        ReplicaFailed => "A replica does not come up or does not serve any more, so that others make up for it.",
        ReplicaSlow => "A replica is slower than the others of its variant, so it counts as a part of one.",
        NodeLost => "A node does not answer or will be taken away, so that its replicas are made up for.",
        DecisionHeld => "The decision would break a rule, so that it is not carried out and the last one stands.",
        NameConflict => "Another model has the same public name, so it is not clear whose requests are counted.",
        SpecRefused => "A field of the specification cannot be understood.",
        TenantAccepted => "The tenant's specification holds, so its keys and members are let in.",
        TenantParentMissing => "The tenant names a parent that its namespace does not have, so nobody is let in by it.",
        TenantParentCycle => "The tenant stands above itself by way of its parents, so nobody is let in by it.",
        TenantParentRefused => "A tenant above this one is refused, so nobody is let in by this one either.",
        TenantTooDeep => "The tenant has more tenants above it than there may be, so nobody is let in by it.",
        TenantKeyDuplicate => "Two keys have the same id or the same hash, so neither is let in.",
        TenantModelDenied => "A model that the tenant lists is not allowed by a tenant above it, so it is not served to it.",
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
