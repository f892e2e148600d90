//! What the identity in use may do. The questions are listed here; `gather` only asks them.

use super::unknown;
use crate::commands::check::answer::{Outcome, Status};
use crate::commands::check::codes::Code;
use crate::commands::check::facts::{Facts, Found};

/// One "may I?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::check) struct Question {
    pub(in crate::commands::check) verb: &'static str,
    pub(in crate::commands::check) group: &'static str,
    pub(in crate::commands::check) resource: &'static str,
    pub(in crate::commands::check) subresource: &'static str,
    /// Asked in the namespace of `-n`, if there is one.
    pub(in crate::commands::check) namespaced: bool,
}

impl Question {
    /// Needed only by who gives away rights it does not have itself. An administrator has them all.
    fn only_for_some(&self) -> bool {
        matches!(self.verb, "bind" | "escalate")
    }

    fn target(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            sub => format!("{}/{sub}", self.resource),
        }
    }
}

const KUEUE: &str = "kueue.x-k8s.io";
const READ: &[&str] = &["get", "list", "watch"];

/// The questions behind a code, in a fixed order; none for checks of other categories.
pub(in crate::commands::check) fn questions(code: Code) -> Vec<Question> {
    let ask = |verbs: &[&'static str], group, resource, subresource, namespaced| {
        verbs
            .iter()
            .map(|verb| Question { verb, group, resource, subresource, namespaced })
            .collect::<Vec<_>>()
    };
    match code {
        Code::ReadPods => ask(READ, "", "pods", "", true),
        Code::ReadNodes => ask(READ, "", "nodes", "", false),
        Code::ReadDeployments => ask(READ, "apps", "deployments", "", true),
        Code::ReadEndpointSlices => ask(READ, "discovery.k8s.io", "endpointslices", "", true),
        Code::ReadLeases => ask(READ, "coordination.k8s.io", "leases", "", true),
        Code::ReadEvents => ask(READ, "events.k8s.io", "events", "", true),
        Code::SetReplicas => ask(&["get", "patch"], "apps", "deployments", "scale", true),
        Code::MarkPods => ask(&["patch"], "", "pods", "", true),
        Code::WriteLeases => {
            ask(&["create", "update", "patch"], "coordination.k8s.io", "leases", "", true)
        }
        Code::WriteEvents => ask(&["create", "patch"], "events.k8s.io", "events", "", true),
        Code::ReadQueues => {
            [ask(READ, KUEUE, "workloads", "", true), ask(READ, KUEUE, "localqueues", "", true)]
                .concat()
        }
        Code::RunJobSets => ask(&["create", "patch"], "jobset.x-k8s.io", "jobsets", "", true),
        Code::InstallClusterWide => {
            let rbac = "rbac.authorization.k8s.io";
            let crds = "customresourcedefinitions";
            [
                ask(&["create", "patch"], "apiextensions.k8s.io", crds, "", false),
                ask(&["create", "bind", "escalate"], rbac, "clusterroles", "", false),
                ask(&["create"], rbac, "clusterrolebindings", "", false),
            ]
            .concat()
        }
        Code::InstallNamespaced => [
            ask(&["create"], "", "serviceaccounts", "", true),
            ask(&["create"], "", "services", "", true),
            ask(&["create"], "", "configmaps", "", true),
            ask(&["create"], "apps", "deployments", "", true),
        ]
        .concat(),
        _ => Vec::new(),
    }
}

pub(super) fn judge(code: Code, facts: &Facts) -> Outcome {
    let questions = questions(code);
    let Some(answers) = facts.access.get(&code) else {
        return unknown::<()>(code, &Found::Skipped, "");
    };
    let refused: Vec<&Question> = questions
        .iter()
        .zip(answers)
        .filter(|(_, answer)| **answer == Found::Known(false))
        .map(|(question, _)| question)
        .collect();
    let missed = answers.iter().find(|answer| answer.known().is_none());
    // A right that only some need says nothing while one that all need is unknown.
    let grave = refused.iter().any(|question| !question.only_for_some());
    if let Some(first) = refused.first().filter(|_| grave || missed.is_none()) {
        return judge_refused(code, &refused, first, facts);
    }
    if let Some(missed) = missed {
        return unknown(code, missed, "ask what is allowed (selfsubjectaccessreviews)");
    }
    let detail = match code {
        // Too many to name in one line, and all are there.
        Code::InstallClusterWide | Code::InstallNamespaced => {
            format!("all {} rights given", questions.len())
        }
        _ => by_target(&questions.iter().collect::<Vec<_>>()),
    };
    Outcome::new(code, Status::Ok, detail + &scope(&questions, facts, " in "))
}

/// The namespace, if the questions were about one.
fn scope(questions: &[Question], facts: &Facts, word: &str) -> String {
    match &facts.namespace {
        Some(namespace) if questions.iter().any(|question| question.namespaced) => {
            format!("{word}{namespace}")
        }
        _ => String::new(),
    }
}

fn judge_refused(code: Code, refused: &[&Question], first: &Question, facts: &Facts) -> Outcome {
    let detail = format!("not allowed: {}{}", by_target(refused), scope(&[*first], facts, " in "));
    let (status, effect) = match code {
        Code::SetReplicas => (Status::Warn, "Recommend mode works; Act mode cannot scale"),
        Code::MarkPods => {
            (Status::Warn, "when Act mode scales down, the removed pod may not be the least busy")
        }
        Code::WriteLeases => (Status::Warn, "two operators cannot take turns; run only one"),
        Code::WriteEvents => (Status::Warn, "decisions are not seen in `kubectl get events`"),
        Code::ReadQueues => {
            (Status::Warn, "serving works; a TrainingRun does not know whether it was admitted")
        }
        Code::RunJobSets => (Status::Warn, "serving works; TrainingRun cannot start anything"),
        Code::InstallClusterWide if refused.iter().all(|question| question.only_for_some()) => (
            Status::Warn,
            "works only if this identity itself has every permission of Flyball's roles",
        ),
        Code::InstallClusterWide => {
            (Status::Fail, "someone who may has to install the resource definitions and roles")
        }
        Code::InstallNamespaced => (Status::Fail, "Flyball cannot be installed by this identity"),
        _ => (Status::Fail, "Flyball cannot see what it decides about"),
    };
    let scope = match scope(&[*first], facts, " -n ") {
        none if none.is_empty() && first.namespaced => " --all-namespaces".to_owned(),
        scope => scope,
    };
    let target = match first.group {
        "" => first.target(),
        group => match first.subresource {
            "" => format!("{}.{group}", first.resource),
            sub => format!("{}.{group} --subresource={sub}", first.resource),
        },
    };
    Outcome::new(code, status, detail)
        .effect(effect)
        .hint(format!("kubectl auth can-i {} {target}{scope}", first.verb))
}

/// `get, list, watch pods, services`, with a semicolon between different verbs.
fn by_target(questions: &[&Question]) -> String {
    let rights: Vec<(String, String)> = questions
        .chunk_by(|a, b| a.target() == b.target())
        .map(|same| {
            let verbs: Vec<&str> = same.iter().map(|question| question.verb).collect();
            (verbs.join(", "), same[0].target())
        })
        .collect();
    rights
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| {
            let targets: Vec<&str> = same.iter().map(|(_, target)| target.as_str()).collect();
            format!("{} {}", same[0].0, targets.join(", "))
        })
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::check::codes::{CHECKS, Category};

    #[test]
    fn every_permission_check_asks_something() {
        for check in CHECKS {
            let asks = !questions(check.code).is_empty();
            assert_eq!(asks, check.category == Category::Permissions, "{}", check.id);
        }
    }
}
