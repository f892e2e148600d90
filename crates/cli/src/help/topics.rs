//! What `flyball help` explains besides commands. The pages are files in docs, and part of this program.

/// A page by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    /// In Markdown.
    pub(crate) text: &'static str,
}

/// Every page.
pub(crate) const TOPICS: [Topic; 5] = [
    Topic { name: "environment", text: include_str!("../../../../docs/topics/environment.md") },
    Topic { name: "models", text: include_str!("../../../../docs/topics/models.md") },
    Topic { name: "output", text: include_str!("../../../../docs/topics/output.md") },
    Topic { name: "policies", text: include_str!("../../../../docs/reference/policies.md") },
    Topic { name: "units", text: include_str!("../../../../docs/topics/units.md") },
];
