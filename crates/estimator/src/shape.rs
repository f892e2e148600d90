//! What requests look like: mean tokens of prompts and answers.

use flyball_core::units::{Micros, Timestamp};

/// What requests look like on the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    /// Tokens of a prompt.
    pub prompt: f64,
    /// Tokens of an answer.
    pub output: f64,
    /// Requests that were answered since counting began. The first to end are the short ones, so that a mean
    /// of few is too small.
    pub answered: f64,
}

impl Means {
    /// Answers after which a mean is believed.
    pub const SETTLED: f64 = 300.0;

    /// Both together, each by how many it is the mean of.
    pub(crate) fn with(self, other: Self) -> Self {
        let answered = self.answered + other.answered;
        let share = if answered > 0.0 { self.answered / answered } else { 0.5 };
        let mean = |one: f64, other: f64| one * share + other * (1.0 - share);
        Self {
            prompt: mean(self.prompt, other.prompt),
            output: mean(self.output, other.output),
            answered,
        }
    }
}

/// Half a minute's mean is noise; ten minutes of them are a shape.
const FOLLOWED_OVER: Micros = Micros::from_minutes(10);

/// The means of what was seen, slowly followed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    known: Option<Means>,
    seen_at: Option<Timestamp>,
}

impl Shape {
    pub(crate) const fn known(&self) -> Option<Means> {
        self.known
    }

    /// Requests looked like this when somebody else looked last.
    pub(crate) const fn recalled(means: Means, seen_at: Option<Timestamp>) -> Self {
        Self { known: Some(means), seen_at }
    }

    /// When requests were seen last.
    pub(crate) const fn seen_at(&self) -> Option<Timestamp> {
        self.seen_at
    }

    /// Requests look like this now.
    pub(crate) fn learn(&mut self, seen: Option<Means>, now: Timestamp) {
        let Some(seen) = seen.filter(|seen| seen.prompt >= 1.0 && seen.output >= 1.0) else {
            return;
        };
        let before = self.seen_at.replace(now);
        let age = before.and_then(|before| now.since(before)).unwrap_or(Micros::ZERO);
        let weight = (age.get() as f64 / FOLLOWED_OVER.get() as f64).min(1.0);
        let known = self.known.get_or_insert(seen);
        // A first mean of a few short answers would otherwise be believed in part for ten minutes: on
        // the cluster a replica was taken to write a quarter less than it did.
        if known.answered < Means::SETTLED && seen.answered >= known.answered {
            *known = seen;
        }
        known.prompt += weight * (seen.prompt - known.prompt);
        known.output += weight * (seen.output - known.output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answers_are_short_and_are_soon_forgotten() {
        let (mut shape, mut now) = (Shape::default(), 0);
        let mut seen = |output: f64, answered: f64| {
            now += 15;
            let at = Timestamp::from_millis(1_000 * now);
            shape.learn(Some(Means { prompt: 4_000.0, output, answered }), at);
            shape.known().map(|known| known.output)
        };
        assert_eq!(seen(150.0, 3.0), Some(150.0));
        assert_eq!(seen(380.0, 200.0), Some(380.0), "a mean of more is taken as it is");
        assert_eq!(seen(400.0, 310.0), Some(400.0));
        // From here on slowly, also after a gateway has begun to count anew.
        assert_eq!(seen(200.0, 900.0), Some(395.0));
        assert_eq!(seen(195.0, 2.0), Some(390.0));
    }

    #[test]
    fn nothing_is_learnt_of_requests_without_tokens() {
        let mut shape = Shape::default();
        let none = Means { prompt: 0.0, output: 10.0, answered: 9.0 };
        shape.learn(Some(none), Timestamp::from_millis(1));
        shape.learn(None, Timestamp::from_millis(2));
        assert_eq!(shape.known(), None);
    }
}
