//! Between what was read and what is sent: the wait for a turn.

use super::held::Held;
use super::payload::Payload;
use super::wait::wait;
use crate::admit::{Ask, Entered};
use crate::aim::Job;
use crate::answer::Problem;
use crate::forward::{Worker, forward};
use crate::identify::Caller;
use crate::live::Live;
use crate::phase::{Granted, Open};
use crate::settings::ModelSettings;
use http::{HeaderMap, HeaderName, Response};
use std::sync::Arc;
use std::time::Duration;

/// Headers in which a request says how long it would wait for a turn, in milliseconds; the second is
/// llm-d's.
static WAIT: [HeaderName; 2] =
    [HeaderName::from_static("x-flyball-wait-ms"), HeaderName::from_static("x-llm-d-slo-ttft-ms")];

/// Waits for a turn, if there is need to, and gets an answer.
pub(super) async fn turn(
    worker: &Arc<Worker>,
    job: Box<Job>,
    granted: Open<Granted>,
) -> Result<Response<Payload>, Problem> {
    let granted = place(worker, granted)?;
    let ask = ask(&worker.shared.live(), &job, &granted);
    let (granted, (entered, call)) = granted.or_refuse(job.model.gate.enter(&ask))?;
    if call {
        worker.shared.listener.wake(job.model.name());
    }
    // In boxes: what is needed to ask engines is 13 KB, which every connection would have room for and every call would
    // copy, from here up to the connection.
    match entered {
        Entered::Now(turn) => {
            let answer = Box::pin(forward(worker, job, granted.admit(turn))).await?;
            Ok(answer.map(Payload::relay))
        }
        Entered::Waits(line) if line.held && job.scanned.stream => {
            Ok(Held::answer(worker, line, job, granted).map(Payload::held))
        }
        Entered::Waits(line) => {
            let answer = Box::pin(wait(worker, line, job, granted)).await?;
            Ok(answer.map(Payload::relay))
        }
    }
}

/// A batch request may wait for minutes: it gets no place that others may want meanwhile.
fn place(worker: &Worker, mut granted: Open<Granted>) -> Result<Open<Granted>, Problem> {
    if !granted.class().is_batch() {
        return Ok(granted);
    }
    let limits = worker.shared.live().limits;
    let taken = granted.take_batch_place(&limits);
    granted.or_refuse(taken).map(|(granted, ())| granted)
}

fn ask(live: &Live, job: &Job, granted: &Granted) -> Ask {
    let caller: &Caller = granted.caller();
    let of = live.models.get(&**job.model.name());
    let millis = |time: fn(&ModelSettings) -> u64| {
        Duration::from_millis(of.map_or_else(|| time(&ModelSettings::default()), time))
    };
    let class = granted.class();
    let longest = if class.is_batch() {
        |model: &ModelSettings| model.batch_ms
    } else {
        |model: &ModelSettings| model.queue_ms
    };
    let (queue, hold) = (millis(longest), millis(|model| model.hold_ms));
    Ask {
        caller: caller.number,
        weight: caller.weight,
        class,
        prompt: job.model.prompt_of(&job.scanned, live.policy(job.model.name())),
        most_output: job.scanned.max_tokens,
        wait: requested_wait(&job.headers).map_or(queue, |requested| requested.min(queue)),
        hold: live.again.is_some().then_some(hold),
        again: live.again.unwrap_or(Duration::MAX),
        most_waiting: live.limits.queued,
    }
}

fn requested_wait(headers: &HeaderMap) -> Option<Duration> {
    let header = WAIT.iter().find_map(|name| headers.get(name))?;
    Some(Duration::from_millis(header.to_str().ok()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(name: &HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(value))])
    }

    #[test]
    fn a_wait_is_read_in_both_spellings() {
        for name in &WAIT {
            assert_eq!(requested_wait(&with(name, "250")), Some(Duration::from_millis(250)));
        }
        assert_eq!(requested_wait(&with(&WAIT[0], "soon")), None);
        assert_eq!(requested_wait(&HeaderMap::new()), None);
    }
}
