//! Two worlds side by side.

use flyball_resources::admin_api::{Imagined, WhatIfOutcome, WhatIfSide};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::moment::clock_and_age;
use crate::output::document::{Below, Block, Column, Row, Table};
use crate::output::{Answer, Detail, Document, Exit, plural};

/// What would be decided under hypothetical conditions.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WhatIf {
    /// The changes, in words.
    changes: Vec<String>,
    /// Whether anything would be decided differently.
    differs: bool,
    /// Time of the query, RFC 3339.
    pub(super) asked_at: String,
    #[serde(flatten)]
    outcome: WhatIfOutcome,
    #[serde(skip)]
    exit_code: bool,
}

impl WhatIf {
    pub(super) fn new(changes: Vec<String>, outcome: WhatIfOutcome, exit_code: bool) -> WhatIf {
        let differs = outcome.models.iter().any(differs);
        let asked_at = Timestamp::now().to_string();
        WhatIf { changes, differs, asked_at, outcome, exit_code }
    }
}

/// Whether something would be done differently. That another bound wins with the same result is no
/// difference.
fn differs(model: &Imagined) -> bool {
    let what = |side: &Option<WhatIfSide>| {
        side.as_ref().map(|side| (side.variants.clone(), side.hourly_cost.clone()))
    };
    what(&model.before) != what(&model.after)
}

impl Answer for WhatIf {
    const KIND: &'static str = "WhatIf";

    fn view(&self, _: Detail) -> Document {
        let now = self.asked_at.parse().unwrap_or(Timestamp::MAX);
        let mut document = Document::new();
        document.push(Block::Facts(vec![
            ("If".to_owned(), self.changes.join("; ")),
            (
                "From".to_owned(),
                format!("the snapshot of {}", clock_and_age(&self.outcome.at, now)),
            ),
        ]));
        document.push(Block::Gap);
        document.push(Block::Table(table(&self.outcome.models)));
        document.push(Block::Gap);
        let changed = self.outcome.models.iter().filter(|model| differs(model)).count();
        document.push(Block::Line(match changed {
            0 => "nothing would change immediately; forecasts adapt over the next reconciles"
                .to_owned(),
            _ => format!(
                "{} would change immediately ({}); forecasts adapt over the next reconciles",
                plural(changed, "model"),
                sum(&self.outcome.models),
            ),
        }));
        document
    }

    fn exit(&self) -> Exit {
        if self.exit_code && self.differs { Exit::No } else { Exit::Yes }
    }
}

fn table(models: &[Imagined]) -> Table {
    let columns = vec![
        Column::left("MODEL"),
        Column::right("DESIRED"),
        Column::left("THEN"),
        Column::right("COST/H"),
        Column::left("THEN"),
        Column::left("REASON"),
        Column::left("BOUND"),
    ];
    Table { rows: models.iter().map(row).collect(), ..Table::new(columns) }
}

fn row(model: &Imagined) -> Row {
    let (before, after) = (model.before.as_ref(), model.after.as_ref());
    let replicas =
        |side: Option<&WhatIfSide>| side.map_or("–".to_owned(), |side| side.replicas.to_string());
    let cost = |side: Option<&WhatIfSide>| {
        if side.is_none() {
            return "–".to_owned();
        }
        let cost = side.and_then(|side| Some((side.hourly_cost.clone()?, side.currency.clone()?)));
        cost.map_or("unknown".to_owned(), |(cost, currency)| format!("{cost} {currency}"))
    };
    let word =
        |of: fn(&WhatIfSide) -> &String| after.map_or("–".to_owned(), |side| of(side).clone());
    let mut row = Row::new([
        model.model.clone(),
        replicas(before),
        replicas(after),
        cost(before),
        cost(after),
        word(|side| &side.reason),
        word(|side| &side.bound),
    ]);
    let several = after.filter(|side| side.variants.len() > 1);
    if let Some(side) = several {
        let each = side.variants.iter().map(|one| format!("{} {}", one.variant, one.replicas));
        row.below.push(Below::Words(format!("then {}", each.collect::<Vec<_>>().join(", "))));
    }
    if let Some(side) = after {
        row.below.push(Below::Words(side.message.clone()));
    }
    row.below.extend(model.problems.iter().cloned().map(Below::Words));
    row
}

/// What an hour costs more or less, if that is known of all that change.
fn sum(models: &[Imagined]) -> String {
    let micros = |side: &Option<WhatIfSide>| match side {
        None => Some(0),
        Some(side) => flyball_resources::decimal::micros(side.hourly_cost.as_ref()?),
    };
    let mut sum = 0;
    for model in models {
        let (Some(before), Some(after)) = (micros(&model.before), micros(&model.after)) else {
            return "cost unknown".to_owned();
        };
        sum += after - before;
    }
    let currency = models.iter().flat_map(|model| [&model.after, &model.before]).flatten();
    let currency = currency.filter_map(|side| side.currency.clone()).next().unwrap_or_default();
    let sign = if sum > 0 { "+" } else { "" };
    format!("{sign}{} {currency}/h", flyball_resources::decimal::text(sum, 2))
}
