//! One direction of one connection: bytes in, steps out. Byte for byte the same for the same seed.

use super::script::{Direction, NetworkAction, NetworkRule};
use crate::chance::{Chance, Purpose, stream};
use crate::seconds::Seconds;
use rand::RngExt;

/// What a relay does next.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkStep {
    /// Waits.
    Wait(Seconds),
    /// Writes, by one write.
    Write(Vec<u8>),
    /// Relays nothing more and closes nothing.
    Stall,
    /// Closes this direction in order.
    HalfClose,
    /// Resets both.
    Reset,
    /// Closes both in order.
    Close,
}

/// One direction of one connection.
#[derive(Clone, Debug)]
pub struct Line {
    rules: Vec<State>,
    passed: u64,
    chance: Chance,
    over: bool,
}

#[derive(Clone, Debug)]
struct State {
    rule: NetworkRule,
    /// Happened once, where once is all.
    done: bool,
    flipped: u64,
}

impl Line {
    pub(super) fn new(
        rules: Vec<NetworkRule>,
        seed: u64,
        connection: u64,
        direction: Direction,
    ) -> Self {
        let purpose = seed.wrapping_add(1 + direction as u64);
        Self {
            rules: rules.into_iter().map(|rule| State { rule, done: false, flipped: 0 }).collect(),
            passed: 0,
            // Another multiplier than the choice of connections, so that both are independent.
            chance: stream(
                purpose.wrapping_mul(0x2545_f491_4f6c_dd1d),
                Purpose::Faults,
                connection,
            ),
            over: false,
        }
    }

    /// Nothing ever happens here: a relay may copy as it likes.
    pub fn is_plain(&self) -> bool {
        self.rules.is_empty()
    }

    /// What becomes of the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Vec<NetworkStep> {
        let mut steps = Vec::new();
        while !self.over && !bytes.is_empty() {
            self.happen(&mut steps);
            if self.over {
                break;
            }
            // Up to the next place where something begins.
            let next = self.rules.iter().map(|state| state.rule.after_bytes);
            let next = next.filter(|place| *place > self.passed).min();
            let most = next.map_or(u64::MAX, |place| place - self.passed);
            let length = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, rest) = bytes.split_at(length);
            bytes = rest;
            self.pass(piece, &mut steps);
            self.passed += length as u64;
        }
        if !self.over {
            self.happen(&mut steps);
        }
        steps
    }

    /// What happens at this very byte, once.
    fn happen(&mut self, steps: &mut Vec<NetworkStep>) {
        for state in &mut self.rules {
            if state.done || self.over || state.rule.after_bytes > self.passed {
                continue;
            }
            let step = match state.rule.action {
                NetworkAction::Stall { milliseconds: Some(milliseconds) } => {
                    NetworkStep::Wait(Seconds(milliseconds as f64 / 1e3))
                }
                NetworkAction::Stall { milliseconds: None } => NetworkStep::Stall,
                NetworkAction::HalfClose => NetworkStep::HalfClose,
                NetworkAction::Reset => NetworkStep::Reset,
                NetworkAction::Truncate => NetworkStep::Close,
                _ => continue,
            };
            state.done = true;
            self.over = !matches!(step, NetworkStep::Wait(_));
            steps.push(step);
        }
    }

    /// A piece in which nothing begins.
    fn pass(&mut self, piece: &[u8], steps: &mut Vec<NetworkStep>) {
        let mut piece = piece.to_vec();
        let (mut wait, mut twice, mut single) = (0.0, false, false);
        for state in &mut self.rules {
            if state.rule.after_bytes > self.passed {
                continue;
            }
            match state.rule.action {
                NetworkAction::Delay { milliseconds, jitter_milliseconds } => {
                    let jitter = self.chance.random_range(0..=jitter_milliseconds);
                    wait += (milliseconds + jitter) as f64 / 1e3;
                }
                NetworkAction::Rate { bytes_per_second } => {
                    wait += piece.len() as f64 / bytes_per_second as f64;
                }
                NetworkAction::Flip { bytes } => {
                    for byte in piece.iter_mut().take((bytes - state.flipped) as usize) {
                        // Never zero, or the byte would stay as it was.
                        *byte ^= self.chance.random_range(1..=u8::MAX);
                        state.flipped += 1;
                    }
                }
                NetworkAction::Duplicate if !state.done => {
                    state.done = true;
                    twice = true;
                }
                NetworkAction::Split => single = true,
                _ => {}
            }
        }
        if wait > 0.0 {
            steps.push(NetworkStep::Wait(Seconds(wait)));
        }
        for _ in 0..=u8::from(twice) {
            if single {
                steps.extend(piece.iter().map(|byte| NetworkStep::Write(vec![*byte])));
            } else {
                steps.push(NetworkStep::Write(piece.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Script;
    use proptest::prelude::*;

    fn line(rules: &str) -> Line {
        let script = Script::from_toml(&format!("seed = 3\n{rules}")).unwrap();
        script.fate(5, Seconds::ZERO).line(Direction::ToClient)
    }

    /// Everything written, and how it ended.
    fn play(line: &mut Line, pieces: &[&[u8]]) -> (Vec<u8>, Vec<NetworkStep>) {
        let (mut written, mut others) = (Vec::new(), Vec::new());
        for piece in pieces {
            for step in line.feed(piece) {
                match step {
                    NetworkStep::Write(bytes) => written.extend(bytes),
                    other => others.push(other),
                }
            }
        }
        (written, others)
    }

    #[test]
    fn an_end_comes_at_its_very_byte() {
        for (action, step) in [
            ("reset", NetworkStep::Reset),
            ("truncate", NetworkStep::Close),
            ("half-close", NetworkStep::HalfClose),
            ("stall", NetworkStep::Stall),
        ] {
            let rules = format!("[[rules]]\naction = \"{action}\"\nafter_bytes = 5");
            let (written, others) = play(&mut line(&rules), &[b"abc", b"defgh", b"ijk"]);
            assert_eq!((written.as_slice(), others), (&b"abcde"[..], vec![step]));
        }
    }

    #[test]
    fn bytes_are_changed_doubled_and_cut_small_where_the_script_says() {
        let flip = "[[rules]]\naction = \"flip\"\nafter_bytes = 2\nbytes = 3";
        let (written, _) = play(&mut line(flip), &[b"aaaa", b"aaaa"]);
        let changed: Vec<usize> = (0..8).filter(|place| written[*place] != b'a').collect();
        assert_eq!(changed, [2, 3, 4]);
        let twice = "[[rules]]\naction = \"duplicate\"\nafter_bytes = 2";
        assert_eq!(play(&mut line(twice), &[b"abcd", b"ef"]).0, b"abcdcdef");
        let split = line("[[rules]]\naction = \"split\"").feed(b"abc");
        assert_eq!(split.len(), 3);
    }

    #[test]
    fn a_stall_that_ends_waits_once() {
        let stall = "[[rules]]\naction = \"stall\"\nafter_bytes = 2\nmilliseconds = 500";
        let (written, others) = play(&mut line(stall), &[b"abcd", b"ef"]);
        assert_eq!(
            (written.as_slice(), others),
            (&b"abcdef"[..], vec![NetworkStep::Wait(Seconds(0.5))])
        );
    }

    proptest! {
        #[test]
        fn what_is_written_does_not_depend_on_how_bytes_arrive(
            cut in 1usize..40,
            flip_at in 0u64..60,
            end_at in 0u64..120,
        ) {
            let rules = format!(
                "[[rules]]\naction = \"flip\"\nafter_bytes = {flip_at}\nbytes = 4\n\
                 [[rules]]\naction = \"reset\"\nafter_bytes = {end_at}"
            );
            let text: Vec<u8> = (0..100).collect();
            let whole = play(&mut line(&rules), &[&text]);
            let pieces: Vec<&[u8]> = text.chunks(cut).collect();
            let parts = play(&mut line(&rules), &pieces);
            prop_assert_eq!(&whole, &parts);
            prop_assert_eq!(whole.0.len() as u64, end_at.min(100));
        }
    }
}
