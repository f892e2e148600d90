//! The real choice with other policies scored beside it, as a gateway does it.

use super::ours::{BLOCK, name};
use super::{AffinityView, Happened, Others, Ours, Picked, PrefixRequest, Router};
use crate::seconds::Seconds;
use flyball_core::units::Tokens;
use flyball_routing::RoutingPolicy;
use flyball_routing::shadow::{Listed, ShadowArrival, ShadowReport, ShadowTrial};
use std::time::Duration;

/// One gateway that scores other policies.
#[derive(Clone, Debug)]
pub struct Shadowed {
    ours: Ours,
    trial: ShadowTrial,
    /// When engines' reports were last handed on.
    reported_at: f64,
}

/// Engines report as often.
const REPORTS: f64 = 0.5;

impl Shadowed {
    /// A gateway before so many engines that chooses by one policy and scores others.
    pub fn new(engines: usize, live: RoutingPolicy, others: &[RoutingPolicy]) -> Self {
        let ours = Ours::new(engines, Others::Reported).choosing(live);
        let mut trial = ShadowTrial::new(live, others, BLOCK);
        let listed = |engine| Listed { key: name(engine), open: true };
        trial.list(&(0..engines as u64).map(listed).collect::<Vec<_>>());
        Self { ours, trial, reported_at: 0.0 }
    }

    /// Which policy would have been better.
    pub fn judge(&self) -> ShadowReport {
        self.trial.judge()
    }
}

impl Router for Shadowed {
    fn choose(&mut self, request: &PrefixRequest<'_>, sight: &[AffinityView]) -> Picked {
        if request.at.get() >= self.reported_at + REPORTS {
            self.reported_at = request.at.get();
            for (engine, seen) in sight.iter().enumerate() {
                let used = (seen.report.used_share * 1e3).round() as u32;
                self.trial.report(name(engine as u64), used);
            }
        }
        let picked = self.ours.choose(request, sight);
        let arrival = ShadowArrival {
            prefixes: &self.ours.prefixes,
            block_tokens: BLOCK,
            prompt: Tokens::new(request.prompt.into()),
            output: Tokens::new(request.output.into()),
            key: request.number,
        };
        let engine = name(picked.engine as u64);
        self.trial.arrive(duration(request.at), request.number, &arrival, engine);
        picked
    }

    fn happened(&mut self, happened: &Happened) {
        let at = duration(happened.at);
        match happened.output {
            None => self.trial.first(at, happened.number),
            Some(output) => self.trial.end(at, happened.number, Some(output.into())),
        }
    }
}

fn duration(at: Seconds) -> Duration {
    Duration::try_from_secs_f64(at.get()).unwrap_or_default()
}
