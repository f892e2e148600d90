//! How long the engines of a model usually take to begin an answer, and from when on waiting is
//! strange.
//!
//! Kept by how much there is to read before the first token, the prompt itself included, in
//! doublings: times of one size say little about another. For each, a mean and a mean deviation as
//! TCP has them for its timeouts (RFC 6298).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Sizes that are told apart: up to 64 tokens, 128, and so on to two million.
const SIZES: usize = 16;
const SMALLEST: u64 = 64;

/// Answers of a size before its mean is believed.
const FEWEST: u32 = 16;

/// Waiting is never strange before this. A second request costs about as much as it could gain.
const SHORTEST: Duration = Duration::from_millis(50);

/// A time that is longer than so many means counts as this many: one engine that hung must not
/// make all later waits look usual.
const OUTLIER: u64 = 8;

/// What is usual for one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usual {
    count: u32,
    mean_us: u32,
    deviation_us: u32,
}

/// What is usual for one model, by size: of streams, whose first event is one step after the prompt,
/// and of answers in one piece, which come when all of it is there.
#[derive(Debug, Default)]
pub struct AnswerPace {
    usual: Mutex<[[Usual; SIZES]; 2]>,
}

impl Usual {
    /// An answer began after so long.
    fn took(&mut self, time: Duration) {
        let mean = u64::from(self.mean_us);
        let mut time = time.as_micros().min(u128::from(u32::MAX)) as u64;
        if self.count == 0 {
            *self = Self { count: 1, mean_us: time as u32, deviation_us: (time / 2) as u32 };
            return;
        }
        time = time.min(mean.max(1).saturating_mul(OUTLIER));
        let off = time.abs_diff(mean);
        let part = |before: u64, now: u64, of: u64| ((before * (of - 1) + now) / of) as u32;
        self.deviation_us = part(self.deviation_us.into(), off, 8);
        self.mean_us = part(mean, time, 16);
        self.count = self.count.saturating_add(1);
    }

    /// How long a wait is still usual; `None` if too little is known.
    ///
    /// Four deviations, as for a lost packet, and twice the mean: of times that hardly differ, four
    /// deviations are next to nothing.
    fn patience(&self) -> Option<Duration> {
        let (mean, deviation) = (u64::from(self.mean_us), u64::from(self.deviation_us));
        let patience = (mean + 4 * deviation).max(2 * mean);
        (self.count >= FEWEST).then(|| Duration::from_micros(patience).max(SHORTEST))
    }
}

impl AnswerPace {
    /// An answer began after so long, where so many tokens were to be read.
    pub fn took(&self, stream: bool, tokens: u64, time: Duration) {
        self.lock()[usize::from(stream)][size(tokens)].took(time);
    }

    /// How long a wait is still usual where so many tokens are to be read.
    pub fn patience(&self, stream: bool, tokens: u64) -> Option<Duration> {
        self.lock()[usize::from(stream)][size(tokens)].patience()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [[Usual; SIZES]; 2]> {
        self.usual.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(tokens: u64) -> usize {
    let doublings = tokens.max(1).div_ceil(SMALLEST).next_power_of_two().trailing_zeros();
    (doublings as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn after(times: impl IntoIterator<Item = u64>) -> Usual {
        let mut usual = Usual::default();
        times.into_iter().for_each(|time| usual.took(MS(time)));
        usual
    }

    #[test]
    fn sizes_are_doublings() {
        let sizes = [0, 64, 65, 128, 129, 256, 1 << 20, 1 << 30].map(size);
        assert_eq!(sizes, [0, 0, 1, 1, 2, 2, 14, 15]);
    }

    #[test]
    fn too_little_is_known_at_first() {
        assert_eq!(after([100; 15]).patience(), None);
        assert!(after([100; 16]).patience().is_some());
    }

    #[test]
    fn steady_times_allow_twice_the_mean_and_spread_ones_more() {
        assert_eq!(after([100; 200]).patience(), Some(MS(200)));
        let spread = after((0..400).map(|n| if n % 2 == 0 { 50 } else { 150 }));
        let patience = spread.patience().unwrap();
        // Mean 100, deviation 50: about 300.
        assert!((MS(280)..MS(320)).contains(&patience), "{patience:?}");
        assert_eq!(after([1; 200]).patience(), Some(SHORTEST));
    }

    #[test]
    fn one_that_hung_does_not_make_hanging_usual() {
        let mut usual = after([100; 200]);
        usual.took(MS(120_000));
        let patience = usual.patience().unwrap();
        // 700 over the mean: a 16th moves the mean to 144, an 8th the deviation to 88.
        assert!(patience < MS(500), "{patience:?}");
        // A model that became slow for all is believed after a few dozen.
        (0..60).for_each(|_| usual.took(MS(1_000)));
        assert!(usual.patience().unwrap() > MS(1_500));
    }

    proptest! {
        #[test]
        fn nothing_overflows_and_patience_covers_the_mean(
            times in prop::collection::vec(0_u64..u64::from(u32::MAX), 16..100),
        ) {
            let usual = after(times);
            let patience = usual.patience().unwrap();
            prop_assert!(patience >= Duration::from_micros(u64::from(usual.mean_us) * 2));
        }
    }
}
