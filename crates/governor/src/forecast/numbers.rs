//! A forecaster as numbers and back.

use super::{
    BINS, CELLS, Forecaster, HELD_MINUTES, HINDSIGHT_NUMBERS, Hindsight, MOST_GRAINS, Minute,
    Moves, PAST, RECENT, short,
};
use flyball_core::units::Timestamp;

/// How many numbers the state of a forecaster is.
pub(crate) const NUMBERS: usize = 18;

/// How many more, of which a few digits are enough, are the last minutes, the moves and their table.
pub(crate) const MOVES_NUMBERS: usize = 3 * RECENT + CELLS + BINS;

/// Nobody has looked for longer than thirty years.
const MOST_MINUTES: u32 = 16_000_000;

/// Work of more replicas is no work.
const MOST_WORK: f64 = 1e9;

impl Forecaster {
    /// Minutes that were learnt from, here and before.
    pub(crate) fn minutes(&self) -> u32 {
        let own = i64::try_from(self.minutes_seen).unwrap_or(i64::MAX);
        let all = self.minutes_before.saturating_add(own);
        u32::try_from(all).unwrap_or(MOST_MINUTES).min(MOST_MINUTES)
    }

    /// How things stand.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        let (at, work) = self.seen.map_or((0.0, 0.0), |(at, work)| (at.as_micros() as f64, work));
        let Minute { number, sum, count, most } = self.minute;
        [
            self.noise,
            self.quick_noise,
            self.slow_noise,
            self.usual,
            self.spread,
            self.change,
            self.ahead as f64,
            self.lasts,
            self.bursty,
            self.level,
            self.level_doubt,
            at,
            work,
            number as f64,
            sum,
            count,
            most,
            self.rise,
        ]
    }

    /// The last minutes, the table of moves, and the moves.
    pub(crate) fn moves(&self) -> [f64; MOVES_NUMBERS] {
        // Before there were so many minutes, the first speaks for those that were not.
        let first = self.past.first().copied().unwrap_or_default();
        let recent = (0..RECENT).rev().flat_map(|back| self.at(back).unwrap_or(first));
        let mut all = recent.map(f64::from).chain(self.table).chain(self.moves.numbers());
        std::array::from_fn(|_| all.next().unwrap_or_default())
    }

    /// The most work of each minute of the last hours, the oldest first.
    pub(crate) fn bursts(&self) -> impl Iterator<Item = u16> {
        self.bursts.iter().copied()
    }

    /// What fixed capacities would have missed.
    pub(crate) fn hindsight(&self) -> [f64; HINDSIGHT_NUMBERS] {
        self.hindsight.numbers()
    }

    /// A forecaster that has learnt this much before; `None` if that cannot be.
    pub(crate) fn restored(
        state: &[f64; NUMBERS],
        moves: &[f64; MOVES_NUMBERS],
        bursts: &[u16],
        hindsight: &[f64; HINDSIGHT_NUMBERS],
        minutes: u32,
    ) -> Option<Self> {
        let [noise, quick_noise, slow_noise, usual, spread, change, ahead, ..] = *state;
        let [_, _, _, _, _, _, _, lasts, bursty, level, level_doubt, ..] = *state;
        let [.., at, work, number, sum, count, most, rise] = *state;
        let recent: [[f32; 3]; RECENT] =
            std::array::from_fn(|n| std::array::from_fn(|part| moves[3 * n + part] as f32));
        let table: [f64; CELLS] = std::array::from_fn(|n| short(moves[3 * RECENT + n]));
        let counts: [f64; BINS] = std::array::from_fn(|n| moves[3 * RECENT + CELLS + n]);
        let noises = [noise, quick_noise, slow_noise].iter().all(|one| (1e-9..1e12).contains(one));
        // Work that moves by a factor of more than e^50 is no work.
        let moved = table.iter().all(|moves| (spread * moves).abs() <= 50.0);
        let works = [level, work, most, rise].iter().all(|one| (0.0..=MOST_WORK).contains(one));
        let logarithms = |[work, expected, spread]: &[f32; 3]| {
            let known = |one: &f32| (-50.0..=50.0).contains(one);
            known(work) && known(expected) && (1e-6..=50.0).contains(spread)
        };
        let possible = noises
            && works
            && usual.abs() <= 50.0
            && (1e-6..=50.0).contains(&spread)
            && (0.0..=2500.0).contains(&change)
            && (1.0..PAST as f64).contains(&ahead)
            && (0.0..=1.0).contains(&lasts)
            && (0.0..=1.0).contains(&bursty)
            && (0.0..=MOST_WORK * MOST_WORK).contains(&level_doubt)
            && (0.0..9e15).contains(&at)
            && (0.0..=1e9).contains(&number)
            && (0.0..=1e6).contains(&count)
            && (0.0..=MOST_WORK * count).contains(&sum)
            && recent.iter().all(logarithms)
            && moved
            && table.is_sorted()
            && bursts.len() <= HELD_MINUTES
            && bursts.iter().all(|grains| *grains <= MOST_GRAINS)
            && minutes <= MOST_MINUTES;
        // Those that stand for minutes before the first would be moves that nobody saw: a restart in the first minutes
        // ordered two replicas more.
        let seen = RECENT.min(minutes as usize);
        let (moves, hindsight) = (Moves::restored(&counts)?, Hindsight::restored(hindsight)?);
        possible.then(|| Self {
            seen: (at > 0.0).then(|| (Timestamp::from_micros(at as u64), work)),
            level,
            level_doubt,
            noise,
            quick_noise,
            slow_noise,
            usual,
            spread,
            change,
            minute: Minute { number: number as u64, sum, count, most },
            past: recent[RECENT - seen..].to_vec(),
            bursts: bursts.iter().copied().collect(),
            lasts,
            bursty,
            rise,
            moves,
            minutes_seen: seen,
            minutes_before: i64::from(minutes) - seen as i64,
            ahead: ahead as usize,
            table,
            hindsight,
        })
    }
}
