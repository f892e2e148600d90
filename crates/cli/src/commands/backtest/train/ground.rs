//! From what was typed to a market and the runs in it.

use std::path::Path;

use flyball_core::units::{Gpus, Micros};
use flyball_simulator::traffic::load::LoadError;
use flyball_simulator::training::market::{MarketPrices, usd};
use flyball_simulator::training::recording::{self, SpotRecording};
use flyball_simulator::training::{RunToReplay, SpotMarket, prices};
use flyball_training::ZoneName;

use super::TrainArgs;
use crate::commands::backtest::words;
use crate::output::{Exit, Failure, FailureCode};

/// The part of a recording that is only watched: its first eighth.
const WATCHED: usize = 8;

/// What is replayed.
pub(super) struct TrainGround {
    pub(super) market: SpotMarket,
    pub(super) runs: Vec<RunToReplay>,
    pub(super) machines: u16,
    /// Where prices come from.
    pub(super) priced: String,
}

impl TrainGround {
    pub(super) fn read(args: &TrainArgs) -> Result<Self, Failure> {
        let all = recording::open(&args.availability)
            .map_err(|error| unreadable("the recording", error))?;
        let recording = one(&all, args.recording.as_deref(), &args.availability)?;
        let zones = zones(recording, &args.zones)?;
        let (prices, priced) = priced(args, recording, &zones)?;
        let market = SpotMarket::new(recording, &zones, args.machines, &prices);
        let runs = runs(args, &market)?;
        Ok(Self { market, runs, machines: args.machines, priced })
    }
}

/// The recording that is meant.
fn one<'a>(
    all: &'a [SpotRecording],
    wanted: Option<&str>,
    file: &Path,
) -> Result<&'a SpotRecording, Failure> {
    let fits = |one: &&SpotRecording| wanted.is_none_or(|part| one.name.contains(part));
    let fitting: Vec<&SpotRecording> = all.iter().filter(fits).collect();
    if let [one] = fitting[..] {
        return Ok(one);
    }
    let listed = if fitting.is_empty() { all.iter().collect() } else { fitting };
    let names: Vec<&str> = listed.iter().map(|one| one.name.as_str()).collect();
    let what = match wanted {
        Some(part) => format!("{part} does not name one recording"),
        None => "the file has several recordings, and none was named".to_owned(),
    };
    Err(Failure::new(Exit::Usage, what)
        .at(file.display().to_string())
        .because(format!("there are {}", names.join(", ")))
        .hint(format!("add --recording '{}'", names.first().copied().unwrap_or_default()))
        .code(FailureCode::SpotRecording))
}

fn zones(recording: &SpotRecording, wanted: &[String]) -> Result<Vec<ZoneName>, Failure> {
    let there: Vec<&ZoneName> = recording.zones.iter().map(|(name, _)| name).collect();
    let absent = wanted.iter().find(|zone| !there.iter().any(|name| name.as_str() == **zone));
    if let Some(zone) = absent {
        let names: Vec<&str> = there.iter().map(|name| name.as_str()).collect();
        return Err(Failure::new(Exit::Usage, format!("{zone} is not in the recording"))
            .because(format!("{} has {}", recording.name, names.join(", ")))
            .hint("name zones of it in --zones")
            .code(FailureCode::SpotRecording));
    }
    let wants =
        |name: &&ZoneName| wanted.is_empty() || wanted.iter().any(|one| one == name.as_str());
    Ok(there.into_iter().filter(wants).cloned().collect())
}

fn priced(
    args: &TrainArgs,
    recording: &SpotRecording,
    zones: &[ZoneName],
) -> Result<(MarketPrices, String), Failure> {
    if let (Some(file), Some(instance)) = (&args.prices, &args.instance) {
        let known =
            prices::open(file, instance).map_err(|error| unreadable("the price list", error))?;
        let steps = recording.zones.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
        let days = recording.step.get() * steps as u64 / (24 * Micros::HOUR.get()) + 2;
        let market = known.market(zones, recording.begins, days as i64, args.gpus);
        let notes =
            format!("{instance} of those days, zones of a region matched in order of their names");
        return Ok((market, notes));
    }
    let (on_demand, spot) = (args.on_demand.unwrap_or(0.0), args.spot.unwrap_or(0.0));
    let market =
        MarketPrices { on_demand: usd(on_demand), spot: Default::default(), otherwise: usd(spot) };
    Ok((market, format!("${on_demand:.2} on demand and ${spot:.2} on spot per GPU-hour")))
}

fn runs(args: &TrainArgs, market: &SpotMarket) -> Result<Vec<RunToReplay>, Failure> {
    let micros = |seconds: f64| Micros::new((seconds * 1e6).round() as u64);
    let in_steps =
        || args.steps.zip(args.step_time).map(|(steps, each)| steps * each.as_secs_f64());
    let work = args.work.or_else(in_steps).unwrap_or_default();
    let (restart, save) = (args.restart.as_secs_f64(), args.save.as_secs_f64());
    let least = work + restart + save;
    if args.deadline < least {
        return Err(Failure::new(Exit::Usage, "no policy could meet this deadline")
            .because(format!(
                "work, one restart and the last save take {}, and the deadline is after {}",
                words::span(least),
                words::span(args.deadline)
            ))
            .hint("give a later --deadline"));
    }
    let allowed = micros(args.deadline);
    let from = market.steps / WATCHED;
    let needs = allowed.get().div_ceil(market.step.get()) as usize;
    let Some(room) = market.steps.checked_sub(from + needs) else {
        let lasts = market.step.as_seconds() * (market.steps - from) as f64;
        return Err(Failure::new(Exit::Usage, "the recording is shorter than the run may take")
            .because(format!(
                "{} of it can be replayed, and the deadline is after {}",
                words::span(lasts),
                words::span(args.deadline)
            ))
            .hint("give an earlier --deadline, or zones that were recorded for longer")
            .code(FailureCode::SpotRecording));
    };
    let starts = args.starts as usize;
    let run = |index: usize| RunToReplay {
        start: from + room * index / starts.saturating_sub(1).max(1),
        work: micros(work),
        allowed,
        restart: micros(restart),
        save: micros(save),
        gpus: Gpus::new(args.gpus.saturating_mul(u32::from(args.machines))),
    };
    Ok((0..starts).map(run).collect())
}

fn unreadable(what: &str, error: LoadError) -> Failure {
    let place = match error.line {
        Some(line) => format!("{} line {line}", error.file),
        None => error.file.clone(),
    };
    Failure::new(Exit::Unknown, format!("{what} cannot be read"))
        .at(place)
        .because(error.what)
        .hint(error.hint)
        .code(FailureCode::SpotRecording)
}
