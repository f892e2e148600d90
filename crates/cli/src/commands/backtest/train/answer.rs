//! What `flyball backtest train` answers, as `-o json` prints it.

use std::time::Duration;

use flyball_core::units::Micros;
use flyball_simulator::training::ReplayedRun;
use flyball_training::TrainingChoice;
use schemars::JsonSchema;
use serde::Serialize;

use super::ground::TrainGround;
use super::play::{AllPlayed, TrainPlayed};
use crate::commands::backtest::answer::{Spread, tidy};

/// What each policy would have paid for a training run, and whether it would have been in time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainReplay {
    /// The recording that the machines come from.
    pub(super) recording: String,
    /// Where prices come from.
    pub(super) prices: String,
    pub(super) work_seconds: f64,
    /// Time from the start of a run to its deadline.
    pub(super) deadline_seconds: f64,
    pub(super) restart_seconds: f64,
    pub(super) save_seconds: f64,
    /// Machines that a run needs at once.
    pub(super) machines: u16,
    pub(super) gpus: u32,
    /// Hourly price of a GPU on demand.
    pub(super) on_demand_usd: f64,
    pub(super) zones: Vec<TrainZoneView>,
    /// Starts of the runs, counted from the start of the recording.
    pub(super) starts_seconds: Vec<f64>,
    /// Cost of the run on on-demand machines alone.
    pub(super) on_demand_run_usd: f64,
    /// Cost of who knows the future, over all starts.
    pub(super) optimum_usd: Spread,
    /// In the order in which they were named.
    pub(super) policies: Vec<TrainPolicyView>,
    /// How long the replay took. Not in the document, which is the same each time.
    #[serde(skip)]
    pub(super) took: Duration,
    /// File and size of the page that was written.
    #[serde(skip)]
    pub(super) page: Option<(String, usize)>,
}

/// A zone that the run may use.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainZoneView {
    pub(super) name: String,
    /// Share of the time in which all machines of the run could be had there.
    pub(super) available: f64,
    /// Hourly price of a GPU on spot, at the first start.
    pub(super) spot_usd: f64,
}

/// Result of one policy over all starts. Hours are means.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainPolicyView {
    pub(super) name: String,
    pub(super) usd: Spread,
    /// Cost over that of on-demand machines alone.
    pub(super) of_on_demand: f64,
    /// Cost above the optimum, in percentage points of the cost of on-demand machines.
    pub(super) points_above_optimum: Spread,
    /// Runs that missed their deadline.
    pub(super) late: u32,
    pub(super) spot_hours: f64,
    pub(super) on_demand_hours: f64,
    pub(super) waited_hours: f64,
    /// Work that was done and lost with its machines.
    pub(super) lost_hours: f64,
    pub(super) saving_hours: f64,
    pub(super) starting_hours: f64,
    pub(super) reclaims: f64,
    /// Run by run, in the order of the starts.
    pub(super) runs: Vec<TrainRunView>,
}

/// One run under one policy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainRunView {
    pub(super) usd: f64,
    /// Absent if it had not ended when the recording did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) took_seconds: Option<f64>,
    pub(super) late: bool,
    /// Where it was, in order.
    pub(super) stays: Vec<TrainStayView>,
}

/// A time in which a run was in one place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TrainStayView {
    /// `spot`, `on-demand` or `wait`.
    pub(super) place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) zone: Option<String>,
    /// Counted from the start of the run.
    pub(super) from_seconds: f64,
    pub(super) until_seconds: f64,
    /// Whether it ended because its machines were reclaimed.
    pub(super) reclaimed: bool,
    /// Why it went there, where the policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<&'static str>,
}

impl TrainReplay {
    pub(super) fn of(ground: &TrainGround, played: AllPlayed) -> Self {
        let TrainGround { market, runs, machines, priced } = ground;
        let first = &runs[0];
        let whole = first.on_demand_dollars(market);
        let optimum: Vec<f64> = played.optimum.iter().map(|cost| cost.unwrap_or(whole)).collect();
        let usd = |price: flyball_core::units::Price| price.amount().micros() as f64 / 1e6;
        let zones = market.zones.iter().map(|zone| TrainZoneView {
            name: zone.name.to_string(),
            available: tidy(market.share(zone, first.start)),
            spot_usd: tidy(usd(market.spot_price(zone, first.start))),
        });
        Self {
            recording: market.name.clone(),
            prices: priced.clone(),
            work_seconds: first.work.as_seconds(),
            deadline_seconds: first.allowed.as_seconds(),
            restart_seconds: first.restart.as_seconds(),
            save_seconds: first.save.as_seconds(),
            machines: *machines,
            gpus: first.gpus.get(),
            on_demand_usd: usd(market.on_demand),
            zones: zones.collect(),
            starts_seconds: runs
                .iter()
                .map(|run| run.start as f64 * market.step.as_seconds())
                .collect(),
            on_demand_run_usd: tidy(whole),
            optimum_usd: Spread::of(&optimum),
            policies: played
                .policies
                .iter()
                .map(|policy| TrainPolicyView::of(policy, &optimum, whole))
                .collect(),
            took: Duration::ZERO,
            page: None,
        }
    }
}

impl TrainPolicyView {
    fn of(played: &TrainPlayed, optimum: &[f64], whole: f64) -> Self {
        let usd: Vec<f64> = played.runs.iter().map(|run| run.dollars).collect();
        let points = usd.iter().zip(optimum).map(|(own, best)| 100.0 * (own - best) / whole);
        let mean = |of: &dyn Fn(&ReplayedRun) -> f64| {
            tidy(played.runs.iter().map(of).sum::<f64>() / played.runs.len().max(1) as f64)
        };
        let hours = |of: fn(&ReplayedRun) -> Micros| mean(&|run| of(run).as_seconds() / 3_600.0);
        let usd = Spread::of(&usd);
        Self {
            name: played.name.clone(),
            usd,
            of_on_demand: tidy(usd.mean / whole),
            points_above_optimum: Spread::of(&points.collect::<Vec<_>>()),
            late: played.runs.iter().map(|run| u32::from(run.late)).sum(),
            spot_hours: hours(|run| run.spot),
            on_demand_hours: hours(|run| run.on_demand),
            waited_hours: hours(|run| run.waited),
            lost_hours: hours(|run| run.lost),
            saving_hours: hours(|run| run.saving),
            starting_hours: hours(|run| run.starting),
            reclaims: mean(&|run| f64::from(run.reclaims)),
            runs: played.runs.iter().map(TrainRunView::of).collect(),
        }
    }
}

impl TrainRunView {
    fn of(run: &ReplayedRun) -> Self {
        let stays = run.stays.iter().map(|stay| {
            let (place, zone) = match &stay.at {
                TrainingChoice::Wait => ("wait", None),
                TrainingChoice::OnDemand => ("on-demand", None),
                TrainingChoice::Spot(zone) => ("spot", Some(zone.to_string())),
            };
            TrainStayView {
                place,
                zone,
                from_seconds: stay.from.as_seconds(),
                until_seconds: stay.until.as_seconds(),
                reclaimed: stay.reclaimed,
                because: stay.reason.map(|reason| reason.summary()),
            }
        });
        Self {
            usd: tidy(run.dollars),
            took_seconds: run.took.map(Micros::as_seconds),
            late: run.late,
            stays: stays.collect(),
        }
    }
}
