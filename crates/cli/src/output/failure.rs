//! Why there is no answer: what, where, why, and what to type next.

use schemars::JsonSchema;
use serde::Serialize;

use super::{BOLD, Exit, RED, Text};

/// Something that stopped a command before it had an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What did not work, in the user's words.
    pub(crate) what: String,
    /// The file, address or argument it happened at.
    pub(crate) place: Option<String>,
    /// The cause, as far as it is known.
    pub(crate) why: Option<String>,
    /// What to type next.
    pub(crate) hint: Option<String>,
    /// Each single thing that is wrong, such as the lines of a file.
    pub(crate) problems: Box<[String]>,
    /// Set where there is a page about it.
    pub(crate) code: Option<FailureCode>,
}

/// Failures with a page in docs/errors. As with checks, a number never changes its meaning; the
/// hundreds are the part of the product: 6 is planning, 7 replaying, 8 the gateway, 9 the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureCode {
    UnknownName,
    CatalogFile,
    UnknownModel,
    ModelNotUnderstood,
    Trace,
    Traffic,
    Policy,
    ReplicaCapacity,
    Scenario,
    SpotRecording,
    GatewayFile,
    GatewaySetting,
    GatewayValue,
    GatewayContradiction,
    GatewayOpenDoor,
    GatewayState,
    NoModelServices,
    NoOperator,
    NoSuchModel,
    ResourceFile,
    NoTenants,
    NoSuchTenant,
    NoSuchKey,
    NoTrainingRuns,
    NoSuchRun,
}

impl FailureCode {
    #[cfg(test)]
    const ALL: [Self; 25] = [
        Self::UnknownName,
        Self::CatalogFile,
        Self::UnknownModel,
        Self::ModelNotUnderstood,
        Self::Trace,
        Self::Traffic,
        Self::Policy,
        Self::ReplicaCapacity,
        Self::Scenario,
        Self::SpotRecording,
        Self::GatewayFile,
        Self::GatewaySetting,
        Self::GatewayValue,
        Self::GatewayContradiction,
        Self::GatewayOpenDoor,
        Self::GatewayState,
        Self::NoModelServices,
        Self::NoOperator,
        Self::NoSuchModel,
        Self::ResourceFile,
        Self::NoTenants,
        Self::NoSuchTenant,
        Self::NoSuchKey,
        Self::NoTrainingRuns,
        Self::NoSuchRun,
    ];

    pub(crate) fn id(self) -> &'static str {
        match self {
            FailureCode::UnknownName => "FLY-601",
            FailureCode::CatalogFile => "FLY-602",
            FailureCode::UnknownModel => "FLY-603",
            FailureCode::ModelNotUnderstood => "FLY-604",
            FailureCode::Trace => "FLY-605",
            FailureCode::Traffic => "FLY-711",
            FailureCode::Policy => "FLY-712",
            FailureCode::ReplicaCapacity => "FLY-713",
            FailureCode::Scenario => "FLY-714",
            FailureCode::SpotRecording => "FLY-715",
            FailureCode::GatewayFile => "FLY-801",
            FailureCode::GatewaySetting => "FLY-802",
            FailureCode::GatewayValue => "FLY-803",
            FailureCode::GatewayContradiction => "FLY-804",
            FailureCode::GatewayOpenDoor => "FLY-805",
            FailureCode::GatewayState => "FLY-806",
            FailureCode::NoModelServices => "FLY-901",
            FailureCode::NoOperator => "FLY-902",
            FailureCode::NoSuchModel => "FLY-903",
            FailureCode::ResourceFile => "FLY-904",
            FailureCode::NoTenants => "FLY-905",
            FailureCode::NoSuchTenant => "FLY-906",
            FailureCode::NoSuchKey => "FLY-907",
            FailureCode::NoTrainingRuns => "FLY-908",
            FailureCode::NoSuchRun => "FLY-909",
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorDocument<'a> {
    /// The exit status of the command.
    exit_code: u8,
    /// What did not work.
    what: &'a str,
    /// The file, address or argument it happened at.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    /// The cause, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    /// What to type next.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// Each single thing that is wrong, such as the lines of a file.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(default)]
    problems: &'a [String],
    /// Code to give to `flyball explain`, where there is a page about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

impl Failure {
    pub(crate) const KIND: &'static str = "Error";

    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Failure {
        Failure {
            exit,
            what: what.into(),
            place: None,
            why: None,
            hint: None,
            problems: Box::default(),
            code: None,
        }
    }

    pub(crate) fn at(mut self, place: impl Into<String>) -> Failure {
        self.place = Some(place.into());
        self
    }

    pub(crate) fn because(mut self, why: impl Into<String>) -> Failure {
        self.why = Some(why.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn problems(mut self, problems: Vec<String>) -> Failure {
        self.problems = problems.into();
        self
    }

    pub(crate) fn code(mut self, code: FailureCode) -> Failure {
        self.code = Some(code);
        self
    }

    pub(super) fn document(&self) -> ErrorDocument<'_> {
        ErrorDocument {
            exit_code: self.exit.number(),
            what: &self.what,
            place: self.place.as_deref(),
            why: self.why.as_deref(),
            hint: self.hint.as_deref(),
            problems: &self.problems,
            code: self.code.map(FailureCode::id),
        }
    }

    pub(super) fn text(&self, columns: usize) -> Text {
        let mut text = Text::new(columns);
        let code = self.code.map(|code| format!(" {}", code.id())).unwrap_or_default();
        text.line(format_args!("{RED}error{code}{RED:#}: {}", self.what));
        if let Some(place) = &self.place {
            text.wrapped("  ", &format!("where: {place}"));
        }
        if let Some(why) = &self.why {
            text.wrapped("  ", &format!("why: {why}"));
        }
        for problem in &self.problems {
            text.wrapped("  ", problem);
        }
        if let Some(hint) = &self.hint {
            text.blank();
            text.line(format_args!("{BOLD}hint{BOLD:#}: {hint}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::WIDTH;

    #[test]
    fn people_read_what_where_why_hint() {
        let failure = Failure::new(Exit::Unknown, "cannot determine which cluster to use")
            .at("kubeconfig")
            .because("no such context: prod")
            .hint("choose one with --context: dev, staging");
        let plain = anstream::adapter::strip_str(&failure.text(WIDTH).into_string()).to_string();
        insta::assert_snapshot!(plain);
        insta::assert_snapshot!(super::super::json(Failure::KIND, &failure.document()));
    }

    #[test]
    fn every_failure_code_has_a_page_and_every_such_page_a_code() {
        let number = |name: &str| name.strip_prefix("FLY-")?.parse::<u32>().ok();
        let pages: Vec<&str> = crate::pages::all()
            .map(|page| page.name)
            .filter(|name| number(name).is_some_and(|number| number >= 600))
            .collect();
        assert_eq!(FailureCode::ALL.map(FailureCode::id).to_vec(), pages);
    }
}
