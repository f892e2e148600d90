//! What a freeze or its end does.

use flyball_resources::{ModelService, labels};
use jiff::Timestamp;
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::moment::{clock, since};
use crate::output::document::Block;
use crate::output::{Answer, Detail, Document, age};
use crate::served::full_name;

/// What a freeze or its end did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Brake {
    /// True for a freeze, false for a resume.
    pub(super) freeze: bool,
    /// What is written: a ModelService or a ConfigMap, as `kind/namespace/name`.
    pub(super) object: String,
    /// Until when, RFC 3339; without an end if absent.
    pub(super) until: Option<String>,
    /// Why.
    pub(super) because: Option<String>,
    /// Since or until when it was frozen before, and why, in words.
    pub(super) before: Option<String>,
    /// Ready replicas that stay; unknown if absent.
    pub(super) ready: Option<i32>,
    /// Hourly cost of the replicas; unknown if absent.
    pub(super) hourly_cost: Option<String>,
    /// Whether anything must be written.
    pub(super) changes: bool,
    /// Whether this is a dry run.
    pub(super) dry_run: bool,
    /// Whether it was done.
    pub(super) done: bool,
    #[serde(skip)]
    pub(super) now: Timestamp,
}

/// What is frozen.
pub(super) enum Target {
    Model(Box<ModelService>),
    /// Everything, by a ConfigMap in this namespace, and what it says if it is there.
    All {
        namespace: String,
        now: Option<String>,
    },
}

impl Brake {
    pub(super) fn freeze(because: &str, until: Option<Timestamp>, now: Timestamp) -> Brake {
        Brake {
            freeze: true,
            until: until.map(|until| until.to_string()),
            because: Some(because.to_owned()),
            now,
            ..Brake::default()
        }
    }

    pub(super) fn resume(now: Timestamp) -> Brake {
        Brake { now, ..Brake::default() }
    }

    /// Says what is written to, and what is there now.
    pub(super) fn of(&mut self, target: &Target) {
        match target {
            Target::Model(model) => {
                self.object = format!("modelservice/{}", full_name(model.as_ref()));
                let note = |name: &str| model.annotations().get(name);
                let until = note(labels::FROZEN_UNTIL).filter(|_| model.is_frozen(self.now));
                self.before = until.map(|until| {
                    let because = note(labels::FROZEN_BECAUSE).map_or("no reason given", |why| why);
                    format!("until {}: {because}", self.when(until))
                });
                let status = model.status.as_ref();
                self.ready = status.and_then(|status| status.ready_replicas);
                self.hourly_cost = status.and_then(|status| {
                    Some(format!("{} {}", status.hourly_cost.clone()?, status.currency.clone()?))
                });
                self.changes = self.freeze || note(labels::FROZEN_UNTIL).is_some();
            }
            Target::All { namespace, now } => {
                self.object = format!("configmap/{namespace}/{}", labels::FREEZE_ALL);
                self.before = now.clone();
                self.changes = self.freeze || now.is_some();
            }
        }
    }

    /// What is to be done, before it is.
    pub(super) fn plan(&self) -> Vec<String> {
        let who = self.who();
        let mut lines = vec![match (self.freeze, &self.until) {
            (true, Some(until)) => format!("freeze {who} until {}", self.when(until)),
            (true, None) => format!("freeze {who} until flyball resume --all"),
            (false, _) => format!("let {who} change again"),
        }];
        if let Some(before) = &self.before {
            lines.push(format!("  it is frozen now, {before}"));
        }
        if self.freeze {
            let cost = match &self.hourly_cost {
                Some(cost) => format!(", at {cost} an hour"),
                None => String::new(),
            };
            match self.ready {
                Some(ready) => {
                    lines.push(format!("  it keeps {ready} serving{cost}, whatever comes"))
                }
                None => {
                    lines.push("  everything keeps the replicas it has, whatever comes".to_owned())
                }
            }
        }
        lines
    }

    fn who(&self) -> String {
        match self.object.strip_prefix("modelservice/") {
            Some(name) => name.to_owned(),
            None => "every model".to_owned(),
        }
    }

    /// `16:02:10 UTC (2 h)`.
    fn when(&self, until: &str) -> String {
        let Ok(at) = until.parse::<Timestamp>() else { return until.to_owned() };
        let left = since(self.now, at).map(|left| format!(" ({})", age(left))).unwrap_or_default();
        format!("{} UTC{left}", clock(at, self.now))
    }
}

impl Answer for Brake {
    const KIND: &'static str = "Brake";

    fn view(&self, _: Detail) -> Document {
        let mut document = Document::new();
        if !self.changes {
            document.push(Block::Line(format!("{} was not frozen", self.object)));
            return document;
        }
        if self.dry_run {
            for (index, line) in self.plan().into_iter().enumerate() {
                let line = if index == 0 { format!("would {line}") } else { line };
                document.push(Block::Line(line));
            }
            document.push(Block::Line("nothing was changed: --dry-run".to_owned()));
            return document;
        }
        let until = self.until.as_ref().map(|until| format!(" until {}", self.when(until)));
        let verb = if self.freeze { "frozen" } else { "resumed" };
        document.push(Block::Line(format!("{} {verb}{}", self.object, until.unwrap_or_default())));
        if self.freeze {
            let back = match self.object.strip_prefix("modelservice/") {
                Some(name) => format!("flyball resume {name}"),
                None => "flyball resume --all".to_owned(),
            };
            document.push(Block::Line(format!("undo: {back}")));
        }
        document
    }
}
