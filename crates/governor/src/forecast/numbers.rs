//! A forecaster as numbers and back. The moves themselves are thousands; what they say is in the table.

use super::{CELLS, EDGES, ENOUGH, Forecaster, MOVES, PAST, RECENT};

/// How many numbers a forecaster is: its state, the work of the last minutes, and the table of moves.
pub(crate) const NUMBERS: usize = STATE + RECENT + CELLS;
const STATE: usize = 8;

/// Nobody has looked for longer than thirty years.
const MOST_MINUTES: u32 = 16_000_000;

impl Forecaster {
    /// Minutes that were learnt from, here and before.
    pub(crate) fn minutes(&self) -> u32 {
        let own = i64::try_from(self.minutes_seen).unwrap_or(i64::MAX);
        let all = self.minutes_before.saturating_add(own);
        u32::try_from(all).unwrap_or(MOST_MINUTES).min(MOST_MINUTES)
    }

    /// What was learnt, without the level.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        let [noise, quick, slow] = [self.noise, self.quick_noise, self.slow_noise];
        let (ahead, moves) = (self.ahead as f64, self.moves.len() as f64);
        let state = [noise, quick, slow, self.usual, self.spread, self.change, ahead, moves];
        // Before there were so many minutes, the first speaks for those that were not.
        let first = self.past.first().copied().unwrap_or_default();
        let recent = (0..RECENT).rev().map(|back| f64::from(self.at(back).unwrap_or(first)[0]));
        let mut all = state.into_iter().chain(recent).chain(self.table);
        std::array::from_fn(|_| all.next().unwrap_or_default())
    }

    /// A forecaster that has learnt this much before; `None` if that cannot be.
    pub(crate) fn restored(numbers: &[f64; NUMBERS], minutes: u32) -> Option<Self> {
        let [noise, quick_noise, slow_noise, usual, spread, change, ahead, moves, ..] = *numbers;
        let recent: [f64; RECENT] = std::array::from_fn(|n| numbers[STATE + n]);
        let table: [f64; CELLS] = std::array::from_fn(|n| numbers[STATE + RECENT + n]);
        let noises = [noise, quick_noise, slow_noise].iter().all(|one| (1e-9..1e12).contains(one));
        // Work that moves by a factor of more than e^50 is no work.
        let moved = table.iter().all(|moves| (spread * moves).abs() <= 50.0);
        let possible = noises
            && usual.abs() <= 50.0
            && (1e-6..=50.0).contains(&spread)
            && (0.0..=2500.0).contains(&change)
            && (1.0..PAST as f64).contains(&ahead)
            && (0.0..=MOVES as f64).contains(&moves)
            && recent.iter().all(|work| (0.0..=50.0).contains(work))
            && moved
            && table.is_sorted()
            && minutes <= MOST_MINUTES;
        let moves = if moves < ENOUGH as f64 { 0 } else { moves as usize };
        possible.then(|| Self {
            noise,
            quick_noise,
            slow_noise,
            usual,
            spread,
            change,
            ahead: ahead as usize,
            // What was expected in each of them is not known any more; about what came, mostly.
            past: recent.map(|work| [work as f32, work as f32, spread as f32]).to_vec(),
            minutes_seen: RECENT,
            minutes_before: i64::from(minutes) - RECENT as i64,
            moves: (0..moves).map(|n| likely(&table, n)).collect(),
            moves_seen: moves,
            table,
            ..Self::default()
        })
    }
}

/// The n-th of many moves that give this table. New moves replace the oldest, so that these come
/// evenly mixed: multiples of the golden ratio fill any stretch evenly.
fn likely(table: &[f64; CELLS], n: usize) -> f32 {
    let share = (n as f64 * 0.618_033_988_749_894_9).fract();
    let cell = EDGES[1..].iter().position(|edge| share < *edge).unwrap_or(CELLS - 1);
    table[cell] as f32
}
