//! How many requests an engine may have at once, learned from what it reports.
//!
//! An engine's own queue is first come, first served. The shorter it is, the more the fair queue
//! decides; if it is ever empty, the engine may run dry. So the window grows until a few requests
//! wait in the engine, and shrinks when more do.

/// Where a window begins: about what one step of a batch carries without getting slower.
const FIRST: u32 = 64;

/// The least: what the smallest engines have as slots.
const LEAST: u32 = 4;

/// Requests that wait in the engine for each that runs there, as a fraction: 1 of 16. A batch of 64
/// loses one every 60 ms when answers take 4 s, and what follows it must be there by then.
const WAITING_PART: u32 = 16;

/// The most requests of this gateway that an engine gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdmissionWindow {
    limit: u32,
    /// Fewest that waited in the last two reports. A burst waits for a step or two, and that is no
    /// reason to send less.
    waited: [u32; 2],
}

/// What is known at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Requests of this gateway that are under way.
    pub own: u32,
    /// Requests that the engine works on, whoever sent them.
    pub running: u32,
    /// Requests that wait in it.
    pub waiting: u32,
    /// Share of its cache that is in use, in thousandths; zero if unknown.
    pub kv_used_per_thousand: u32,
}

impl AdmissionWindow {
    /// Before anything was reported.
    pub const NEW: Self = Self { limit: FIRST, waited: [0; 2] };

    /// The most at once.
    pub const fn limit(self) -> u32 {
        self.limit
    }

    /// After a report; they come about twice a second.
    #[must_use]
    pub fn after(self, seen: &Reported) -> Self {
        let waited = [self.waited[1], seen.waiting];
        let lasting = seen.waiting.min(self.waited[0]).min(self.waited[1]);
        let tolerated = (seen.running / WAITING_PART).max(1);
        let total = (seen.running + seen.waiting).max(1);
        let limit = if lasting > tolerated {
            // Each gateway takes back its part of what is too much.
            let too_many = u64::from(lasting - tolerated);
            let own = u64::from(seen.own.min(total));
            let part = (too_many * own).div_ceil(u64::from(total)) as u32;
            self.limit.min(seen.own.saturating_sub(part))
        } else if lasting == 0
            && seen.kv_used_per_thousand < 950
            && seen.own >= self.limit - self.limit / 8
        {
            // Twice as many where none waits: after prompts that took seconds to read, of which an
            // engine bears two, come some that it bears a hundred of.
            let step = if seen.waiting == 0 { self.limit.min(FIRST) } else { self.limit / 4 };
            self.limit + step.max(1)
        } else {
            self.limit
        };
        Self { limit: limit.max(LEAST), waited }
    }

    /// An engine that never reports is trusted to know its own limits.
    #[must_use]
    pub const fn unreported(self) -> Self {
        Self { limit: self.limit.saturating_mul(2), waited: self.waited }
    }
}
