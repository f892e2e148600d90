//! Asks runs how far they are: over HTTP, or from the log of the pod of rank 0. Bounded in bytes and in time.
//!
//! What comes is judged, and never repeated in an error: who may read a status may not be who may read a pod's log.

mod http;
mod log;
mod pattern;

use super::{RunKey, SeenRun, key};
use flyball_core::units::Timestamp;
use flyball_resources::TrainingRun;
use flyball_resources::conditions::ConditionKind;
use flyball_resources::heartbeat::{Heartbeat, HeartbeatInstructions, HeartbeatProblem};
use flyball_resources::training_run::{HeartbeatSource, LogPatternsSpec};
use futures::{StreamExt as _, stream};
use kube::Client;
use log::LogPlace;
use pattern::LogPatterns;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// For one run.
const TIMEOUT: Duration = Duration::from_secs(2);

/// For all of them: decisions should not wait for pods that are gone.
const ALL: Duration = Duration::from_secs(10);

/// Runs that are asked at the same time.
const AT_ONCE: usize = 32;

/// What came of asking a run.
#[derive(Clone, Debug, PartialEq)]
pub enum HeartbeatAnswer {
    /// Its heartbeat.
    Received(Heartbeat),
    /// Why there is none, in words.
    Failed(String),
    /// It was not its turn, or there is nobody to ask.
    NotRequested,
}

/// Why a run told nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum HeartbeatError {
    #[error("no answer from {0}: {1}")]
    Away(SocketAddr, &'static str),
    #[error("{0} answered with status {1}")]
    Status(SocketAddr, u16),
    #[error("no heartbeat from {0}: {1}")]
    NotAHeartbeat(SocketAddr, String),
    #[error("the log of pod {0} cannot be read: {1}")]
    Log(String, String),
    #[error("no line of the log of pod {0} is a heartbeat")]
    NoLine(String),
    #[error("{0}")]
    Pattern(String),
}

/// What is wrong with a heartbeat, without a word of what came.
fn refusal(problem: &HeartbeatProblem) -> String {
    match problem {
        HeartbeatProblem::Json(_) => {
            "it is not a JSON object with `version`, `step` and `at`".to_owned()
        }
        HeartbeatProblem::Field { field, .. } => format!("its `{field}` cannot be"),
        HeartbeatProblem::Large(_) | HeartbeatProblem::Version(_) => problem.to_string(),
    }
}

/// Where a run is asked.
enum HeartbeatPlace {
    Http(SocketAddr),
    Log(LogPlace),
}

/// Whose turn it is, and what need not be worked out again.
#[derive(Debug, Default)]
pub struct HeartbeatTurns {
    collected_at: BTreeMap<RunKey, Timestamp>,
    /// Compiled expressions of runs, with what they were compiled from.
    patterns: BTreeMap<RunKey, (LogPatternsSpec, Arc<Result<LogPatterns, String>>)>,
}

impl HeartbeatTurns {
    /// Forgets runs that are gone.
    pub fn keep(&mut self, is_there: impl Fn(&RunKey) -> bool) {
        self.collected_at.retain(|key, _| is_there(key));
        self.patterns.retain(|key, _| is_there(key));
    }

    fn patterns(&mut self, run: &TrainingRun) -> Option<Arc<Result<LogPatterns, String>>> {
        let spec = run.spec.checkpoint.log_patterns.as_ref()?;
        let known = self.patterns.get(&key(run)).filter(|(of, _)| of == spec);
        if let Some((_, compiled)) = known {
            return Some(Arc::clone(compiled));
        }
        let compiled = Arc::new(LogPatterns::new(spec));
        self.patterns.insert(key(run), (spec.clone(), Arc::clone(&compiled)));
        Some(compiled)
    }
}

/// Asks all that can be asked, those first that were asked longest ago.
pub async fn collect(
    client: &Client,
    seen: &[SeenRun],
    remembered: &mut HeartbeatTurns,
    now: Timestamp,
) -> BTreeMap<RunKey, HeartbeatAnswer> {
    let mut turns: Vec<(RunKey, HeartbeatPlace)> =
        seen.iter().filter_map(|one| Some((key(&one.run), place(one, remembered)?))).collect();
    turns.sort_by_key(|(key, _)| remembered.collected_at.get(key).copied());
    let mut answers = stream::iter(turns)
        .map(|(key, place)| async move { (key, one(client, place).await) })
        .buffer_unordered(AT_ONCE);
    let mut all = BTreeMap::new();
    let end = tokio::time::Instant::now() + ALL;
    while let Ok(Some((key, answer))) = tokio::time::timeout_at(end, answers.next()).await {
        remembered.collected_at.insert(key.clone(), now);
        let answer = answer.map_or_else(
            |error| HeartbeatAnswer::Failed(error.to_string()),
            HeartbeatAnswer::Received,
        );
        all.insert(key, answer);
    }
    all
}

/// Tells a run something. The error says why it does not know.
pub async fn instruct(
    address: SocketAddr,
    instructions: &HeartbeatInstructions,
) -> Result<(), String> {
    match tokio::time::timeout(TIMEOUT, http::put(address, instructions)).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(HeartbeatError::Away(address, "it took too long").to_string()),
    }
}

async fn one(client: &Client, place: HeartbeatPlace) -> Result<Heartbeat, HeartbeatError> {
    match place {
        HeartbeatPlace::Http(address) => {
            match tokio::time::timeout(TIMEOUT, http::get(address)).await {
                Ok(beat) => beat,
                Err(_) => Err(HeartbeatError::Away(address, "it took too long")),
            }
        }
        HeartbeatPlace::Log(place) => {
            match tokio::time::timeout(TIMEOUT, log::last(client, &place)).await {
                Ok(beat) => beat,
                Err(_) => Err(HeartbeatError::Log(place.pod, "it took too long".to_owned())),
            }
        }
    }
}

fn place(seen: &SeenRun, remembered: &mut HeartbeatTurns) -> Option<HeartbeatPlace> {
    // A log is still there when a run has ended; it is read once more.
    let known = seen.run.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
    if known.iter().any(|one| one.type_ == ConditionKind::Complete.name()) {
        return None;
    }
    let checkpoint = &seen.run.spec.checkpoint;
    match checkpoint.heartbeat {
        HeartbeatSource::None => None,
        HeartbeatSource::Http => {
            let ip: IpAddr = seen.gang.lead()?.ip.as_ref()?.parse().ok()?;
            let port = u16::try_from(checkpoint.port).ok()?;
            Some(HeartbeatPlace::Http(SocketAddr::new(ip, port)))
        }
        HeartbeatSource::Log => {
            let pod = seen.gang.last_lead()?;
            let progress = seen.run.status.as_ref().and_then(|status| status.progress.as_ref());
            let saved_step = progress.and_then(|progress| progress.saved_step);
            Some(HeartbeatPlace::Log(LogPlace {
                namespace: key(&seen.run).0,
                pod: pod.name.clone(),
                uid: pod.uid.clone(),
                prefix: checkpoint.log_prefix.clone(),
                patterns: remembered.patterns(&seen.run),
                saved_step: saved_step.and_then(|step| u64::try_from(step).ok()),
            }))
        }
    }
}
