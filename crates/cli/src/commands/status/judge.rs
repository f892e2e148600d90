//! What the conditions of a model say, as kstatus reads them. Pure.

use flyball_resources::ModelService;
use schemars::JsonSchema;
use serde::Serialize;

use crate::served::full_name;

/// How far a model has settled, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// Settled; nothing changes.
    Settled,
    /// Not settled yet, as far as is known.
    InProgress,
    /// Stalled until a person acts.
    Stalled,
}

impl State {
    pub(super) const fn word(self) -> &'static str {
        match self {
            State::Settled => "settled",
            State::InProgress => "in-progress",
            State::Stalled => "stalled",
        }
    }
}

/// One model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Judged {
    /// The model, `namespace/name`.
    pub(super) model: String,
    /// Whether the model has settled.
    pub(super) state: State,
    /// Ready replicas; unknown if absent.
    pub(super) ready: Option<i32>,
    /// Recommended replicas; unknown if absent.
    pub(super) wants: Option<i32>,
    /// Why, in a word of the closed list.
    pub(super) reason: Option<String>,
    /// In a sentence.
    pub(super) message: String,
}

impl Judged {
    /// What changed, in a line.
    pub(super) fn line(&self) -> String {
        let count = |count: Option<i32>| count.map_or("?".to_owned(), |count| count.to_string());
        format!(
            "{}  {}  {}/{} ready  {}",
            self.model,
            self.state.word(),
            count(self.ready),
            count(self.wants),
            self.message
        )
    }
}

pub(super) fn judge(model: &ModelService) -> Judged {
    let status = model.status.clone().unwrap_or_default();
    let condition = |name: &str| status.conditions.iter().find(|one| one.type_ == name);
    let so = |name: &str| condition(name).filter(|one| one.status == "True");
    let old = status.observed_generation != model.metadata.generation;
    let (state, deciding) = match (so("Stalled"), so("Reconciling"), so("Ready")) {
        // A status about an older spec says nothing about this one.
        _ if old => (State::InProgress, None),
        (Some(stalled), _, _) => (State::Stalled, Some(stalled)),
        (None, Some(reconciling), _) => (State::InProgress, Some(reconciling)),
        (None, None, Some(ready)) => (State::Settled, Some(ready)),
        (None, None, None) => (State::InProgress, condition("Ready")),
    };
    let message = match deciding {
        Some(deciding) => deciding.message.clone(),
        None if status.observed_generation.is_none() => {
            "no operator has observed it yet".to_owned()
        }
        None => "the operator has not seen the newest spec yet".to_owned(),
    };
    Judged {
        model: full_name(model),
        state,
        ready: status.ready_replicas,
        wants: status.recommended_replicas,
        reason: deciding.map(|deciding| deciding.reason.clone()),
        message,
    }
}
