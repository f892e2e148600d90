//! What an engine can be made to do wrong, at its start or later.

use flyball_simulator::chance::{self, Chance, Purpose};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// What is wrong. Nothing by default. As JSON at `/emulator/faults`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Share of the requests that hang, truncate, garbage and stall hit, drawn by seed.
    pub share: f64,
    /// Connections are accepted and nothing is ever answered, not even on `/health`.
    pub hang: bool,
    /// Streams are cut after so many tokens, without `[DONE]`.
    pub truncate_after_tokens: Option<u32>,
    /// A cut stream ends as if it were whole, and not with a broken connection.
    pub truncate_cleanly: bool,
    /// After so many tokens comes a line that is no event, and the stream ends; answers that are not
    /// streamed are no JSON.
    pub garbage_after_tokens: Option<u32>,
    /// After so many tokens a stream sends only comments, and never ends.
    pub stall_after_tokens: Option<u32>,
    /// Seconds from the start until it is healthy; requests get 503 before.
    pub slow_start_seconds: f64,
    /// Chance that a request is refused with `error_status`.
    pub error_chance: f64,
    /// Between 400 and 599.
    pub error_status: u16,
    /// Requests of clients that hung up keep their place until their last token.
    pub ignore_aborts: bool,
    /// Healthy, and 500 to every new request: what vLLM does while it shuts down.
    pub draining: bool,
    /// A prompt of at least so many tokens ends the process, as one that does not fit into memory does.
    pub die_at_prompt_tokens: Option<u32>,
    /// The connection is closed after each stream though nothing said so: what llama-server does.
    pub close_after_stream: bool,
    /// How many times as fast as predicted it computes: half for a card that is throttled.
    pub speed: f64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            share: 1.0,
            hang: false,
            truncate_after_tokens: None,
            truncate_cleanly: false,
            garbage_after_tokens: None,
            stall_after_tokens: None,
            slow_start_seconds: 0.0,
            error_chance: 0.0,
            error_status: 500,
            ignore_aborts: false,
            draining: false,
            die_at_prompt_tokens: None,
            close_after_stream: false,
            speed: 1.0,
        }
    }
}

impl Faults {
    /// Everything that cannot be, or nothing.
    pub fn problems(&self) -> Vec<&'static str> {
        let mut problems = Vec::new();
        let mut need = |holds: bool, problem| {
            if !holds {
                problems.push(problem);
            }
        };
        need((0.0..=1.0).contains(&self.share), "share must lie between 0 and 1");
        need((0.0..=1.0).contains(&self.error_chance), "error_chance must lie between 0 and 1");
        need((400..600).contains(&self.error_status), "error_status must lie between 400 and 599");
        let start = self.slow_start_seconds;
        need(start.is_finite() && start >= 0.0, "slow_start_seconds must be a time");
        need(self.speed.is_finite() && self.speed > 0.0, "speed must be above 0");
        problems
    }
}

impl Faults {
    /// Whether a prompt of this length ends the process.
    pub(crate) fn is_deadly(&self, prompt_tokens: u32) -> bool {
        self.die_at_prompt_tokens.is_some_and(|least| prompt_tokens >= least)
    }
}

/// The faults in force, and the draws that say whom they hit.
#[derive(Debug)]
pub(crate) struct Switch {
    inside: Mutex<(Faults, Chance)>,
}

/// What goes wrong with one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fate {
    /// It is answered, perhaps not well.
    Served(Flaws),
    /// Nothing ever comes back.
    Hung,
    /// This status.
    Refused(u16),
    /// 500, as one that shuts down.
    Draining,
}

/// What goes wrong with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flaws {
    pub(crate) cut: Option<Cut>,
    pub(crate) ignore_aborts: bool,
    pub(crate) close_after_stream: bool,
}

/// Where a stream goes wrong, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) after_tokens: u32,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Broken,
    Ended,
    Garbage,
    Stalled,
}

impl Switch {
    pub(crate) fn new(faults: Faults, seed: u64) -> Self {
        Self { inside: Mutex::new((faults, chance::stream(seed, Purpose::Faults, 0))) }
    }

    pub(crate) fn get(&self) -> Faults {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn set(&self, faults: Faults) {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).0 = faults;
    }

    /// What happens to the next request. Always two draws, so that the same seed hits the same
    /// requests whatever is switched on.
    pub(crate) fn draw(&self) -> Fate {
        use rand::RngExt;
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let (faults, chance) = &mut *inside;
        let hit = chance.random::<f64>() < faults.share;
        let fails = chance.random::<f64>() < faults.error_chance;
        if hit && faults.hang {
            return Fate::Hung;
        }
        if faults.draining {
            return Fate::Draining;
        }
        if fails {
            return Fate::Refused(faults.error_status);
        }
        let broken = if faults.truncate_cleanly { How::Ended } else { How::Broken };
        let cuts = [
            (faults.truncate_after_tokens, broken),
            (faults.garbage_after_tokens, How::Garbage),
            (faults.stall_after_tokens, How::Stalled),
        ];
        let cuts = cuts.into_iter().filter(|_| hit);
        let cuts =
            cuts.filter_map(|(after, how)| after.map(|after_tokens| Cut { after_tokens, how }));
        Fate::Served(Flaws {
            cut: cuts.min_by_key(|cut| cut.after_tokens),
            ignore_aborts: faults.ignore_aborts,
            close_after_stream: faults.close_after_stream,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_hits_the_same_requests() {
        let faults = Faults { error_chance: 0.3, ..Faults::default() };
        let draw = |seed| {
            let switch = Switch::new(faults, seed);
            (0..200).map(|_| switch.draw() == Fate::Refused(500)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let refused = draw(1).into_iter().filter(|refused| *refused).count();
        assert!((40..80).contains(&refused), "{refused}");
    }

    #[test]
    fn impossible_faults_are_all_named() {
        assert_eq!(Faults::default().problems(), Vec::<&str>::new());
        let wrong = Faults {
            share: 2.0,
            error_chance: -0.1,
            error_status: 200,
            slow_start_seconds: f64::NAN,
            speed: 0.0,
            ..Faults::default()
        };
        assert_eq!(wrong.problems().len(), 5);
    }

    #[test]
    fn only_prompts_of_the_length_that_was_set_are_deadly() {
        let faults = Faults { die_at_prompt_tokens: Some(100), ..Faults::default() };
        assert!(faults.is_deadly(100) && !faults.is_deadly(99));
        assert!(!Faults::default().is_deadly(u32::MAX));
    }

    #[test]
    fn unknown_faults_are_refused() {
        assert!(serde_json::from_str::<Faults>(r#"{"hangs":true}"#).is_err());
        let one: Faults = serde_json::from_str(r#"{"hang":true}"#).unwrap();
        assert_eq!(one, Faults { hang: true, ..Faults::default() });
    }

    #[test]
    fn the_earliest_flaw_of_a_stream_wins() {
        let faults = Faults {
            truncate_after_tokens: Some(9),
            stall_after_tokens: Some(3),
            ..Faults::default()
        };
        let Fate::Served(flaws) = Switch::new(faults, 1).draw() else { panic!("served") };
        assert_eq!(flaws.cut, Some(Cut { after_tokens: 3, how: How::Stalled }));
    }
}
