//! What `flyball plan fleet` answers.

use flyball_perf::search::fleet::{FleetDemand, Placement, Way};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::range::{short, tidy};
use super::{PlannedModel, Stock};
use crate::output::document::{Block, Column, Document, Row, Table, Tone};
use crate::output::{Answer, Detail, Exit, plural};

/// Where models fit on the GPUs that are there.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FleetAnswer {
    have: Vec<KindView>,
    /// Whether every model fits at its full rate.
    fits: bool,
    /// Every model, at the largest share of its rate at which all fit; empty if some fit nowhere.
    models: Vec<PlacedView>,
    /// Share of the rates that all models get.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    /// Where all do not fit: as many models as fit at their full rate.
    whole: Vec<PlacedView>,
    /// Models that fit on no kind of GPU, and why the closest layout does not.
    impossible: Vec<ImpossibleView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct KindView {
    accelerator: String,
    gpus: u32,
    /// Not used by the models.
    left: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PlacedView {
    model: String,
    accelerator: String,
    layout: String,
    replicas: u32,
    gpus: u32,
    /// Requests per second, required and served.
    asked_rate: f64,
    rate: f64,
    /// Requests per second that it could get if it had all that is left.
    could_reach: f64,
    /// What limits the capacity of a replica.
    bound_by: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ImpossibleView {
    model: String,
    because: String,
}

impl FleetAnswer {
    pub(super) fn new(
        stock: &[Stock<'_>],
        planned: &[PlannedModel],
        demands: &[FleetDemand],
        [all, scaled, most]: [Option<Placement>; 3],
    ) -> FleetAnswer {
        let fits = all.is_some();
        let shown = all.or(scaled);
        let left = shown.as_ref().or(most.as_ref()).map(|placement| placement.left.clone());
        let left = left.unwrap_or_else(|| stock.iter().map(|one| one.gpus).collect());
        let views = |placement: &Option<Placement>| {
            placement.as_ref().map_or_else(Vec::new, |found| placed(stock, planned, demands, found))
        };
        FleetAnswer {
            have: stock
                .iter()
                .zip(&left)
                .map(|(one, left)| KindView {
                    accelerator: one.accelerator.id.to_string(),
                    gpus: one.gpus,
                    left: *left,
                })
                .collect(),
            fits,
            share: shown.as_ref().map(|placement| tidy(placement.share)),
            models: views(&shown),
            whole: views(&most),
            impossible: planned.iter().filter_map(impossible).collect(),
        }
    }

    fn verdict(&self) -> Block {
        let count = plural(self.models.len(), "model");
        let have: Vec<String> =
            self.have.iter().map(|one| format!("{} x {}", one.gpus, one.accelerator)).collect();
        let have = have.join(" and ");
        let whole = match self.whole.as_slice() {
            [] => "none fits whole".to_owned(),
            some => {
                let names: Vec<&str> = some.iter().map(|one| one.model.as_str()).collect();
                format!("at full rate only {}", names.join(", "))
            }
        };
        match (self.fits, self.share) {
            (true, _) => Block::Verdict(format!("All {count} fit on {have}."), Tone::Good),
            (false, Some(share)) => Block::Verdict(
                format!(
                    "All {count} fit on {have} at {:.0} % of their rates; {whole}.",
                    share * 100.0
                ),
                Tone::Caution,
            ),
            (false, None) => {
                Block::Verdict(format!("The models do not fit on {have}; {whole}."), Tone::Bad)
            }
        }
    }

    fn left(&self) -> String {
        let left: Vec<String> = self
            .have
            .iter()
            .filter(|one| one.left > 0)
            .map(|one| format!("{} x {}", one.left, one.accelerator))
            .collect();
        match left.is_empty() {
            true => "No GPU is left.".to_owned(),
            false => format!("Left: {}.", left.join(", ")),
        }
    }
}

impl Answer for FleetAnswer {
    const KIND: &'static str = "FleetPlan";

    fn view(&self, detail: Detail) -> Document {
        let mut document = Document::new();
        document.push(self.verdict());
        let tables = [("MODEL", &self.models), ("FITS WHOLE", &self.whole)];
        for (title, models) in tables.into_iter().filter(|(_, models)| !models.is_empty()) {
            document.push(Block::Gap);
            document.push(Block::Table(table(title, models)));
        }
        document.push(Block::Gap);
        let mut notes = vec![self.left()];
        let out =
            |one: &ImpossibleView| format!("{} fits on none of them: {}.", one.model, one.because);
        notes.extend(self.impossible.iter().map(out));
        if detail == Detail::Full {
            notes.push(
                "Each model gets one kind of GPU; every combination was tried. COULD-REACH is its rate if \
                 it had all that is left."
                    .to_owned(),
            );
        }
        document.push(Block::Notes(notes));
        document
    }

    fn exit(&self) -> Exit {
        if self.fits { Exit::Yes } else { Exit::No }
    }
}

fn table(title: &str, models: &[PlacedView]) -> Table {
    let mut table = Table::new(vec![
        Column::left(title),
        Column::left("GPU"),
        Column::left("LAYOUT"),
        Column::right("SIZE"),
        Column::right("RATE"),
        Column::right("OF"),
        Column::right("COULD-REACH"),
        Column::left("BOUND-BY"),
    ]);
    for one in models {
        table.rows.push(Row::new([
            one.model.clone(),
            one.accelerator.clone(),
            one.layout.clone(),
            format!("{}x{}", one.replicas, one.gpus / one.replicas.max(1)),
            format!("{}/s", short(one.rate)),
            format!("{}/s", short(one.asked_rate)),
            format!("{}/s", short(one.could_reach)),
            one.bound_by.to_owned(),
        ]));
    }
    table
}

fn placed(
    stock: &[Stock<'_>],
    planned: &[PlannedModel],
    demands: &[FleetDemand],
    found: &Placement,
) -> Vec<PlacedView> {
    let one = |(index, way): (usize, &Option<Way>)| {
        let (way, planned) = ((*way)?, &planned[index]);
        let choice = &planned.plan.ranked[way.choice];
        let rate = demands[index].rate * found.share;
        let replicas = way.replicas(rate);
        let more = found.left[way.kind] / way.gpus_per_replica;
        Some(PlacedView {
            model: planned.name.clone(),
            accelerator: stock[way.kind].accelerator.id.to_string(),
            layout: choice.layout.to_string(),
            replicas,
            gpus: replicas * way.gpus_per_replica,
            asked_rate: tidy(planned.rate),
            rate: tidy(rate),
            could_reach: tidy(f64::from(replicas + more) * way.per_replica),
            bound_by: choice.bound.word(),
        })
    };
    found.placed.iter().enumerate().filter_map(one).collect()
}

fn impossible(planned: &PlannedModel) -> Option<ImpossibleView> {
    if !planned.plan.ranked.is_empty() {
        return None;
    }
    let closest = planned.plan.rejected.first();
    let because = closest.map_or_else(|| "no layout".to_owned(), |one| one.reason.to_string());
    Some(ImpossibleView { model: planned.name.clone(), because })
}
