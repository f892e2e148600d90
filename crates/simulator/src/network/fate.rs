//! What is in store for one connection.

use super::line::Line;
use super::script::{Direction, NetworkAction, NetworkRule, Script};
use crate::chance::{Purpose, stream};
use crate::seconds::Seconds;
use rand::RngExt;

/// The rules that hit one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Fate {
    rules: Vec<NetworkRule>,
    seed: u64,
    connection: u64,
}

/// What a request feels of a fate. Bytes are too fine for a world that counts tokens, so that this
/// is all that its cluster can express.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Felt {
    /// Nothing, but so much later.
    Answered {
        /// Before its request arrives.
        request_late: Seconds,
        /// Before each token of its answer arrives.
        answer_late: Seconds,
    },
    /// Nobody takes it.
    Refused,
    /// It is lost on its way: no engine hears of it.
    NotReceived {
        /// Its client is told by the end of the connection, or else waits.
        broken: bool,
    },
    /// An engine answers, and no more of it comes, nor an end.
    Stuck {
        /// Tokens that came before.
        after_tokens: u64,
    },
    /// The connection ends before the answer does.
    Broken {
        /// Tokens that came before.
        after_tokens: u64,
    },
}

/// How large requests and answers are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkShape {
    /// Bytes of the whole request.
    pub request_bytes: u64,
    /// Bytes of the answer before its first token.
    pub head_bytes: u64,
    /// Bytes of one token.
    pub token_bytes: u64,
    /// Tokens of the answer.
    pub tokens: u64,
}

impl Felt {
    /// Nothing at all.
    pub const NOTHING: Self =
        Self::Answered { request_late: Seconds::ZERO, answer_late: Seconds::ZERO };

    /// How much later than its engine says it each token comes.
    pub fn answer_late(self) -> Seconds {
        match self {
            Self::Answered { answer_late, .. } => answer_late,
            _ => Seconds::ZERO,
        }
    }

    /// Nothing more comes, and nothing says so.
    pub fn is_stuck(self) -> bool {
        matches!(self, Self::Stuck { .. } | Self::NotReceived { broken: false })
    }
}

impl NetworkShape {
    fn answer_bytes(&self) -> u64 {
        self.head_bytes + self.tokens * self.token_bytes
    }

    /// Whole tokens in so many bytes of the answer.
    fn tokens_in(&self, bytes: u64) -> u64 {
        (bytes.saturating_sub(self.head_bytes) / self.token_bytes.max(1)).min(self.tokens)
    }
}

impl Script {
    /// What is in store for the n-th connection, if it begins at this time.
    pub fn fate(&self, connection: u64, at: Seconds) -> Fate {
        let rules = self.rules.iter().enumerate().filter(|(index, rule)| {
            // Each rule draws for itself, so that adding one leaves the others' victims as they are.
            let purpose = self.seed.wrapping_add((*index as u64) << 32);
            let drawn: f64 = stream(purpose, Purpose::Faults, connection).random();
            let in_time = rule.during.as_ref().is_none_or(|during| during.contains(&at));
            in_time && drawn < rule.share
        });
        let rules = rules.map(|(_, rule)| rule.clone()).collect();
        Fate { rules, seed: self.seed, connection }
    }
}

impl Fate {
    /// Nothing goes wrong.
    pub fn is_harmless(&self) -> bool {
        self.rules.is_empty()
    }

    /// It is reset at once.
    pub fn is_refused(&self) -> bool {
        self.rules.iter().any(|rule| rule.action == NetworkAction::Refuse)
    }

    /// It is accepted, and nothing is ever relayed.
    pub fn hangs(&self) -> bool {
        self.rules.iter().any(|rule| rule.action == NetworkAction::Hang)
    }

    /// What happens to the bytes of one direction.
    pub fn line(&self, direction: Direction) -> Line {
        let own = self.rules.iter().filter(|rule| rule.direction == direction);
        Line::new(own.cloned().collect(), self.seed, self.connection, direction)
    }

    /// What the first request on the connection feels. Jitter counts as its mean. Bytes that are
    /// changed, doubled or cut small are not felt here: a world of tokens has none.
    pub fn of_request(&self, shape: &NetworkShape) -> Felt {
        if self.is_refused() {
            return Felt::Refused;
        }
        if self.hangs() {
            return Felt::NotReceived { broken: false };
        }
        let (mut request_late, mut answer_late) = (0.0, 0.0);
        // The first end counts: nothing comes after it. One of the request comes before all others.
        let mut not_received: Option<bool> = None;
        let mut end: Option<(u64, bool)> = None;
        for rule in &self.rules {
            let (to_server, bytes) = match rule.direction {
                Direction::ToServer => (true, shape.request_bytes),
                Direction::ToClient => (false, shape.answer_bytes()),
            };
            if rule.after_bytes >= bytes {
                continue;
            }
            let tokens = if to_server { 0 } else { shape.tokens_in(rule.after_bytes) };
            let late = if to_server { &mut request_late } else { &mut answer_late };
            match rule.action {
                NetworkAction::Delay { milliseconds, jitter_milliseconds } => {
                    *late += milliseconds as f64 / 1e3 + jitter_milliseconds as f64 / 2e3;
                }
                NetworkAction::Rate { bytes_per_second } => {
                    // A request is there with its last byte, an answer's first token with its own.
                    let until_felt =
                        if to_server { bytes } else { shape.head_bytes + shape.token_bytes };
                    let slow = until_felt.saturating_sub(rule.after_bytes);
                    *late += slow as f64 / bytes_per_second as f64;
                }
                NetworkAction::Stall { milliseconds: Some(milliseconds) } => {
                    *late += milliseconds as f64 / 1e3;
                }
                NetworkAction::Stall { milliseconds: None }
                | NetworkAction::HalfClose
                | NetworkAction::Reset
                | NetworkAction::Truncate => {
                    let broken = !matches!(rule.action, NetworkAction::Stall { .. });
                    if to_server {
                        not_received.get_or_insert(broken);
                    } else if end.is_none_or(|(earlier, _)| tokens < earlier) {
                        end = Some((tokens, broken));
                    }
                }
                NetworkAction::Refuse
                | NetworkAction::Hang
                | NetworkAction::Flip { .. }
                | NetworkAction::Duplicate
                | NetworkAction::Split => {}
            }
        }
        if let Some(broken) = not_received {
            return Felt::NotReceived { broken };
        }
        match end {
            Some((after_tokens, true)) => Felt::Broken { after_tokens },
            Some((after_tokens, false)) => Felt::Stuck { after_tokens },
            None => Felt::Answered {
                request_late: Seconds(request_late),
                answer_late: Seconds(answer_late),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Script;

    const SHAPE: NetworkShape =
        NetworkShape { request_bytes: 1_000, head_bytes: 100, token_bytes: 200, tokens: 50 };

    fn felt(rules: &str) -> Felt {
        Script::from_toml(rules).unwrap().fate(1, Seconds::ZERO).of_request(&SHAPE)
    }

    #[test]
    fn bytes_become_tokens_and_the_first_end_counts() {
        let reset = "[[rules]]\naction = \"reset\"\nafter_bytes = 700\n";
        let stall = "[[rules]]\naction = \"stall\"\nafter_bytes = 320\n";
        assert_eq!(felt(reset), Felt::Broken { after_tokens: 3 });
        assert_eq!(felt(&format!("{reset}{stall}")), Felt::Stuck { after_tokens: 1 });
        assert_eq!(felt("[[rules]]\naction = \"refuse\""), Felt::Refused);
        assert_eq!(felt("[[rules]]\naction = \"hang\""), Felt::NotReceived { broken: false });
    }

    #[test]
    fn what_begins_behind_the_last_byte_is_not_felt() {
        let unharmed = Felt::NOTHING;
        assert_eq!(felt("[[rules]]\naction = \"reset\"\nafter_bytes = 10100"), unharmed);
        let request = "[[rules]]\ndirection = \"to-server\"\naction = \"reset\"\nafter_bytes = ";
        assert_eq!(felt(&format!("{request}1000")), unharmed);
        assert_eq!(felt(&format!("{request}999")), Felt::NotReceived { broken: true });
    }

    #[test]
    fn delays_add_up_in_their_direction() {
        let delays = "[[rules]]\naction = \"delay\"\nmilliseconds = 30\n\
                      [[rules]]\ndirection = \"to-server\"\naction = \"rate\"\nbytes_per_second = 2000";
        let late = Felt::Answered { request_late: Seconds(0.5), answer_late: Seconds(0.03) };
        assert_eq!(felt(delays), late);
    }
}
