//! How long to wait before the next try. Chance is an argument.

use std::time::Duration;

/// The first pause; doubled each time.
const FIRST: Duration = Duration::from_millis(500);

/// The longest pause: so long may a gateway not know that the operator is back.
const LONGEST: Duration = Duration::from_secs(15);

/// Pauses that get longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Backoff {
    /// The next pause: by chance between half of it and the whole, so that a thousand gateways do not
    /// come back in the same instant.
    pub(super) fn next(&mut self, chance: u64) -> Duration {
        let half = self.0 / 2;
        self.0 = (self.0 * 2).min(LONGEST);
        // A part of 65,536 is fine enough for milliseconds.
        let part = u32::from((chance >> 48) as u16);
        half + half * part / (1 << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_get_longer_up_to_a_bound_and_differ_by_chance() {
        let (mut least, mut most) = (Backoff::default(), Backoff::default());
        let pauses: Vec<_> = (0..12).map(|_| (least.next(0), most.next(u64::MAX))).collect();
        assert_eq!(pauses[0].0, Duration::from_millis(250));
        assert!(pauses[0].1 < FIRST && pauses[0].1 > FIRST * 9 / 10);
        assert!(pauses.windows(2).all(|two| two[0].0 <= two[1].0 && two[0].1 <= two[1].1));
        assert_eq!(pauses[11].0, LONGEST / 2);
        assert!(pauses[11].1 <= LONGEST);
    }
}
