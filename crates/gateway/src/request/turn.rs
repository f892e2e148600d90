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
use crate::settings::{ModelSettings, Priority};
use flyball_routing::fair::Class;
use http::{HeaderMap, HeaderName, Response};
use std::sync::Arc;
use std::time::Duration;

/// Headers in which a request says how long it would wait for a turn, in milliseconds; the second is
/// llm-d's.
static WAIT: [HeaderName; 2] =
    [HeaderName::from_static("x-flyball-wait-ms"), HeaderName::from_static("x-llm-d-slo-ttft-ms")];

/// The header in which a request says how urgent it is.
static PRIORITY: HeaderName = HeaderName::from_static("x-flyball-priority");

/// Waits for a turn, if there is need to, and gets an answer.
pub(super) async fn turn(
    worker: &Arc<Worker>,
    job: Job,
    granted: Open<Granted>,
) -> Result<Response<Payload>, Problem> {
    let ask = ask(&worker.shared.live(), &job, &granted);
    let (granted, (entered, call)) = granted.or_refuse(job.model.gate.enter(&ask))?;
    if call {
        worker.shared.listener.wake(job.model.name());
    }
    match entered {
        Entered::Now(turn) => {
            let answer = forward(worker, job, granted.admit(turn)).await?;
            Ok(answer.map(Payload::relay))
        }
        Entered::Waits(line) if line.held && job.scanned.stream => {
            Ok(Held::answer(worker, line, job, granted).map(Payload::held))
        }
        Entered::Waits(line) => {
            let answer = wait(worker, line, job, granted).await?;
            Ok(answer.map(Payload::relay))
        }
    }
}

fn ask(live: &Live, job: &Job, granted: &Granted) -> Ask {
    let caller: &Caller = granted.caller();
    let of = live.models.get(&**job.model.name());
    let millis = |time: fn(&ModelSettings) -> u64| {
        Duration::from_millis(of.map_or_else(|| time(&ModelSettings::default()), time))
    };
    let (queue, hold) = (millis(|model| model.queue_ms), millis(|model| model.hold_ms));
    Ask {
        caller: caller.number,
        weight: caller.weight,
        // What no budget pays for is served after everything else.
        class: match granted.is_idle() {
            true => Class::Low,
            false => class(&job.headers, caller.priority, caller.ceiling),
        },
        prompt: job.model.prompt_of(&job.scanned, live.policy(job.model.name())),
        most_output: job.scanned.max_tokens,
        wait: wanted_wait(&job.headers).map_or(queue, |wanted| wanted.min(queue)),
        hold: live.again.is_some().then_some(hold),
        again: live.again.unwrap_or(Duration::MAX),
        most_waiting: live.limits.queued,
    }
}

/// A request may be less urgent than its caller, and more only up to what its caller may be.
fn class(headers: &HeaderMap, callers: Priority, ceiling: Priority) -> Class {
    let said = headers.get(&PRIORITY).and_then(|value| match value.as_bytes() {
        b"high" => Some(Priority::High),
        b"normal" => Some(Priority::Normal),
        b"low" => Some(Priority::Low),
        _ => None,
    });
    match said.map_or(callers, |said| said.max(ceiling)) {
        Priority::High => Class::High,
        Priority::Normal => Class::Normal,
        Priority::Low => Class::Low,
    }
}

fn wanted_wait(headers: &HeaderMap) -> Option<Duration> {
    let said = WAIT.iter().find_map(|name| headers.get(name))?;
    Some(Duration::from_millis(said.to_str().ok()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(name: &HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(value))])
    }

    #[test]
    fn a_request_can_only_make_itself_less_urgent() {
        let of = |headers: &HeaderMap, caller| class(headers, caller, caller);
        let low = with(&PRIORITY, "low");
        assert_eq!(of(&low, Priority::High), Class::Low);
        let high = with(&PRIORITY, "high");
        assert_eq!(of(&high, Priority::Low), Class::Low);
        assert_eq!(of(&HeaderMap::new(), Priority::High), Class::High);
        assert_eq!(of(&with(&PRIORITY, "urgent"), Priority::Normal), Class::Normal);
    }

    #[test]
    fn a_tenant_is_as_usual_unless_a_request_asks_for_more_than_that_and_may() {
        let of = |headers: &HeaderMap, ceiling| class(headers, Priority::Normal, ceiling);
        let high = with(&PRIORITY, "high");
        assert_eq!(of(&HeaderMap::new(), Priority::High), Class::Normal);
        assert_eq!(of(&high, Priority::High), Class::High);
        assert_eq!(of(&high, Priority::Normal), Class::Normal);
        assert_eq!(of(&with(&PRIORITY, "low"), Priority::High), Class::Low);
    }

    #[test]
    fn a_wait_is_read_in_both_spellings() {
        for name in &WAIT {
            assert_eq!(wanted_wait(&with(name, "250")), Some(Duration::from_millis(250)));
        }
        assert_eq!(wanted_wait(&with(&WAIT[0], "soon")), None);
        assert_eq!(wanted_wait(&HeaderMap::new()), None);
    }
}
