//! The answer of `flyball check`: what JSON says and the table shows.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::codes::{Category, Code};
use crate::output::Exit;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Status {
    Ok,
    /// Something will not work, or not as well; Flyball can be used.
    Warn,
    Fail,
    /// Skipped on purpose.
    Skip,
    /// No result. Neither good nor bad.
    Unknown,
}

/// One check and what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    /// Stable code of the check.
    pub(crate) code: &'static str,
    /// What is checked.
    pub(crate) title: &'static str,
    pub(crate) status: Status,
    /// What was found.
    pub(crate) detail: String,
    /// Further lines, such as one for each kind of accelerator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) notes: Vec<String>,
    /// What will not work because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<String>,
    /// What to type next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Code to give to `flyball explain`. Set unless the status is ok or skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) explain: Option<&'static str>,
    /// The same text as a file of the repository. Set when `explain` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<String>,
}

impl Outcome {
    pub(crate) fn new(code: Code, status: Status, detail: impl Into<String>) -> Outcome {
        let check = code.check();
        let explained = !matches!(status, Status::Ok | Status::Skip);
        let outcome = Outcome {
            code: check.id,
            title: check.title,
            status,
            detail: detail.into(),
            notes: Vec::new(),
            effect: None,
            hint: None,
            explain: None,
            page: None,
        };
        if explained { outcome.explained_by(code) } else { outcome }
    }

    /// Where the whole story is: usually with the check itself, sometimes with another one.
    pub(crate) fn explained_by(mut self, code: Code) -> Outcome {
        self.explain = Some(code.id());
        self.page = Some(format!("docs/errors/{}.md", code.id()));
        self
    }

    pub(crate) fn notes(mut self, notes: Vec<String>) -> Outcome {
        self.notes = notes;
        self
    }

    pub(crate) fn effect(mut self, effect: impl Into<String>) -> Outcome {
        self.effect = Some(effect.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Outcome {
        self.hint = Some(hint.into());
        self
    }
}

/// The checks of one category.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Section {
    pub(crate) category: Category,
    pub(crate) checks: Vec<Outcome>,
}

/// Accelerators of one kind in one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct AcceleratorGroup {
    /// Extended resource, such as `nvidia.com/gpu`.
    pub(crate) resource: String,
    /// Model as labelled; absent if the nodes have no such label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Pool as labelled; absent if the nodes have no such label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<String>,
    pub(crate) nodes: u32,
    /// Devices the nodes have.
    pub(crate) devices: u32,
    /// Devices the scheduler may allocate.
    pub(crate) allocatable: u32,
}

/// The whole in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Verdict {
    /// Nothing failed and nothing is unknown.
    Passed,
    /// At least one check failed, or warned under `--fail-on warning`.
    Failed,
    /// Nothing failed, and at least one check has no result.
    Incomplete,
    /// `--wait` ended before the checks passed.
    TimedOut,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Counts {
    pub(crate) ok: u32,
    pub(crate) warn: u32,
    pub(crate) fail: u32,
    pub(crate) skip: u32,
    pub(crate) unknown: u32,
}

/// Whether a cluster is ready for Flyball.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckAnswer {
    /// Address of the API server.
    pub(crate) cluster: String,
    /// True for `--pre`: what an installation needs, and not what Flyball needs once it runs.
    pub(crate) before_install: bool,
    pub(crate) verdict: Verdict,
    pub(crate) counts: Counts,
    /// How long it took, waiting included.
    pub(crate) took_millis: u64,
    pub(crate) sections: Vec<Section>,
    /// Accelerators by kind and pool; absent if the nodes could not be read or are not part of the
    /// check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accelerators: Option<Vec<AcceleratorGroup>>,
}

/// What makes the verdict `Failed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// A failed check
    Failure,
    /// Also a warning
    Warning,
}

impl Counts {
    pub(crate) fn of(sections: &[Section]) -> Counts {
        let mut counts = Counts::default();
        for outcome in sections.iter().flat_map(|section| &section.checks) {
            *match outcome.status {
                Status::Ok => &mut counts.ok,
                Status::Warn => &mut counts.warn,
                Status::Fail => &mut counts.fail,
                Status::Skip => &mut counts.skip,
                Status::Unknown => &mut counts.unknown,
            } += 1;
        }
        counts
    }

    /// A known "no" outweighs a "could not know": more knowledge cannot turn it into a yes.
    pub(crate) fn verdict(&self, fail_on: FailOn) -> Verdict {
        if self.fail > 0 || (fail_on == FailOn::Warning && self.warn > 0) {
            Verdict::Failed
        } else if self.unknown > 0 {
            Verdict::Incomplete
        } else {
            Verdict::Passed
        }
    }
}

impl CheckAnswer {
    pub(crate) fn took(mut self, time: Duration) -> CheckAnswer {
        self.took_millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Whether `--wait` has nothing left to wait for. A part that was just installed takes a while
    /// to be seen, and until then it is only a warning; so warnings about parts are waited for.
    /// Other warnings (a label, a right) do not go away by themselves.
    pub(crate) fn settled(&self) -> bool {
        let parts = self.sections.iter().filter(|section| section.category == Category::Parts);
        let mut checks = parts.flat_map(|section| &section.checks);
        self.verdict == Verdict::Passed && checks.all(|check| check.status != Status::Warn)
    }
}

impl Verdict {
    pub(crate) fn exit(self) -> Exit {
        match self {
            Verdict::Passed => Exit::Yes,
            Verdict::Failed => Exit::No,
            Verdict::Incomplete => Exit::Unknown,
            Verdict::TimedOut => Exit::TimedOut,
        }
    }
}
