//! Every check there is: its stable code, its category and when it runs.
//!
//! A code is never reused and never changes its meaning. Each has a page docs/errors/CODE.md.

use schemars::JsonSchema;
use serde::Serialize;

/// Groups of checks, in the order they are shown.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Category {
    /// The API server answers and is of a supported version
    Cluster,
    /// What the identity in use may do
    Permissions,
    /// Kueue, JobSet, Prometheus and resource metrics
    Parts,
    /// Accelerators and their labels
    Capacity,
    /// This machine's clock against the API server's
    Clock,
}

impl Category {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Category::Cluster => "cluster",
            Category::Permissions => "permissions",
            Category::Parts => "parts",
            Category::Capacity => "capacity",
            Category::Clock => "clock",
        }
    }
}

/// When a check makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Only with `--pre`: what the person who installs needs.
    BeforeInstall,
    /// Left out by `--pre`: what Flyball itself needs. The installation brings a service account
    /// that has it, so the rights of the person who installs say nothing about it.
    AfterInstall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Code {
    ApiServer,
    KubernetesVersion,
    ReadPods,
    ReadNodes,
    ReadDeployments,
    ReadEndpointSlices,
    ReadLeases,
    ReadEvents,
    SetReplicas,
    MarkPods,
    WriteLeases,
    WriteEvents,
    ReadQueues,
    RunJobSets,
    InstallClusterWide,
    InstallNamespaced,
    Kueue,
    JobSet,
    Prometheus,
    ResourceMetrics,
    Accelerators,
    AcceleratorLabels,
    PoolLabels,
    AcceleratorsUsable,
    ClockSkew,
}

/// What is known about a check before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) code: Code,
    pub(crate) id: &'static str,
    pub(crate) category: Category,
    pub(crate) title: &'static str,
    pub(crate) when: When,
}

const fn check(code: Code, id: &'static str, title: &'static str, when: When) -> Check {
    // The hundreds are the category, so the two cannot drift apart.
    let category = match id.as_bytes()[4] {
        b'1' => Category::Cluster,
        b'2' => Category::Permissions,
        b'3' => Category::Parts,
        b'4' => Category::Capacity,
        b'5' => Category::Clock,
        _ => panic!("codes go from FLY-1xx to FLY-5xx"),
    };
    Check { code, id, category, title, when }
}

/// In the order they are shown.
pub(crate) const CHECKS: &[Check] = &[
    check(Code::ApiServer, "FLY-101", "api server answers", When::Always),
    check(Code::KubernetesVersion, "FLY-102", "Kubernetes version is supported", When::Always),
    check(Code::ReadPods, "FLY-201", "read pods", When::AfterInstall),
    check(Code::ReadNodes, "FLY-202", "read nodes", When::AfterInstall),
    check(Code::ReadDeployments, "FLY-203", "read deployments", When::AfterInstall),
    check(Code::ReadEndpointSlices, "FLY-204", "read endpoint slices", When::AfterInstall),
    check(Code::ReadLeases, "FLY-205", "read leases", When::AfterInstall),
    check(Code::ReadEvents, "FLY-206", "read events", When::AfterInstall),
    check(Code::SetReplicas, "FLY-211", "Act mode: set replicas", When::AfterInstall),
    check(
        Code::MarkPods,
        "FLY-212",
        "Act mode: choose which pod is removed first",
        When::AfterInstall,
    ),
    check(Code::WriteLeases, "FLY-213", "Act mode: hold a lease", When::AfterInstall),
    check(Code::WriteEvents, "FLY-214", "Act mode: write events", When::AfterInstall),
    check(Code::ReadQueues, "FLY-215", "training: read queues and workloads", When::AfterInstall),
    check(Code::RunJobSets, "FLY-216", "training: run job sets", When::AfterInstall),
    check(
        Code::InstallClusterWide,
        "FLY-221",
        "install: cluster-wide objects",
        When::BeforeInstall,
    ),
    check(Code::InstallNamespaced, "FLY-222", "install: namespaced objects", When::BeforeInstall),
    check(Code::Kueue, "FLY-301", "Kueue", When::Always),
    check(Code::JobSet, "FLY-302", "JobSet", When::Always),
    check(Code::Prometheus, "FLY-303", "Prometheus", When::Always),
    check(Code::ResourceMetrics, "FLY-304", "resource metrics", When::Always),
    check(Code::Accelerators, "FLY-401", "accelerators advertised by nodes", When::Always),
    check(Code::AcceleratorLabels, "FLY-402", "accelerator models are labelled", When::Always),
    check(Code::PoolLabels, "FLY-403", "accelerator nodes belong to a pool", When::Always),
    check(Code::AcceleratorsUsable, "FLY-404", "accelerators can be used", When::Always),
    check(Code::ClockSkew, "FLY-501", "clock agrees with the api server", When::Always),
];

impl Code {
    pub(crate) fn check(self) -> &'static Check {
        CHECKS.iter().find(|check| check.code == self).expect("every code is listed in CHECKS")
    }

    pub(crate) fn id(self) -> &'static str {
        self.check().id
    }

    /// Reads what somebody typed: `FLY-301`, `fly-301`.
    pub(crate) fn parse(text: &str) -> Result<Code, String> {
        CHECKS
            .iter()
            .find(|check| check.id.eq_ignore_ascii_case(text))
            .map(|check| check.code)
            .ok_or_else(|| "no check has this code; `flyball explain` lists them".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages;

    #[test]
    fn every_check_has_a_page_and_every_page_a_check() {
        // From FLY-600 on they are failures of commands, held in `output`.
        let pages: Vec<&str> = pages::all()
            .map(|page| page.name)
            .filter(|name| name.starts_with("FLY-") && *name < "FLY-600")
            .collect();
        let checks: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(checks, pages, "checks and docs/errors/FLY-[1-5]*.md, both in order");
    }

    #[test]
    fn codes_are_read_in_any_case() {
        assert_eq!(Code::parse("fly-301"), Ok(Code::Kueue));
        assert!(Code::parse("FLY-999").is_err());
    }
}
