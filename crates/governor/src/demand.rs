//! What the work of this moment takes.
//!
//! Work is counted in tokens, because one request may be a thousand times another. A [`Load`] is
//! the work, a [`Unit`] what one replica does of it; [`Load::in_units`] divides the two: reading and
//! writing take turns, so that their shares add up, and memory limits alone. A part of the load that is not known adds nothing here; whoever gives capacity
//! away must ask the snapshot whether all of it is fresh.

use flyball_core::snapshot::{Capacity, Demand};

/// The work of a moment, in tokens and tokens per second. What is unknown is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) prefill: f64,
    pub(crate) decode: f64,
    pub(crate) resident: f64,
    pub(crate) backlog: f64,
    /// Reading in the busiest seconds over that of the half minute.
    pub(crate) burst: f64,
}

/// What one replica can do within the objectives. What is unknown is infinite: it limits nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) prefill: f64,
    pub(crate) decode: f64,
    pub(crate) resident: f64,
    /// The part of its work at these rates that is reading; the larger share counts where it is not known.
    pub(crate) read_share: Option<f64>,
}

/// What the backlog does until a replica asked for now would serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clearing {
    /// Prompt tokens per second that replicas which serve can read.
    pub(crate) reading: f64,
    /// Time until a replica asked for now serves.
    pub(crate) cold_start_s: f64,
    /// Time in which a request must get its first token.
    pub(crate) slack_s: f64,
}

impl Load {
    /// The load as last seen, fresh or not.
    pub(crate) fn last_seen(demand: &Demand) -> Self {
        let rate = |seen: Option<u64>| seen.map_or(0.0, |value| value as f64);
        Self {
            prefill: rate(demand.prefill.last_seen().map(|value| value.get())),
            decode: rate(demand.decode.last_seen().map(|value| value.get())),
            resident: rate(demand.resident.last_seen().map(|value| value.get())),
            backlog: rate(demand.backlog.last_seen().map(|value| value.get())),
            burst: match (demand.burst.last_seen(), demand.prefill.last_seen()) {
                (Some(most), Some(mean)) if mean.get() > 0 => {
                    (most.get() as f64 / mean.get() as f64).max(1.0)
                }
                _ => 1.0,
            },
        }
    }

    /// Whether nobody asks for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.prefill <= 0.0 && self.decode <= 0.0 && self.resident <= 0.0 && self.backlog <= 0.0
    }

    /// Replicas of this unit that the arriving and running work takes; the backlog is not in it.
    pub(crate) fn in_units(&self, unit: &Unit) -> f64 {
        unit.share(self.prefill, self.decode).max(self.resident / unit.resident)
    }

    /// The same with what is left of the backlog when a new replica could serve.
    ///
    /// A replica asked for now cannot help before it serves, so only what the present ones leave
    /// counts, and clearing that faster than a start takes would buy replicas that are idle as
    /// soon as they come. A queue of the moment divided by a target once asked for 22,745 pods
    /// (llm-d-autoscaling PR #1019).
    pub(crate) fn with_backlog(&self, unit: &Unit, clearing: &Clearing) -> f64 {
        // Where room ends first, replicas read no more than they have room for.
        let timely = unit.share(self.prefill, self.decode);
        let usable = (timely / (self.resident / unit.resident)).min(1.0);
        let usable = if usable.is_finite() { usable } else { 1.0 };
        let spare = (usable * clearing.reading - self.prefill).max(0.0);
        let left = self.backlog - spare * clearing.cold_start_s;
        if left <= 0.0 {
            return self.in_units(unit);
        }
        let within = clearing.slack_s.max(clearing.cold_start_s).max(1.0);
        let prefill = self.prefill + left / within;
        // What waits will be held for as long as what comes is, and takes no more room than all of it at once.
        let more = if self.prefill > 0.0 { prefill / self.prefill } else { 1.0 };
        let resident = (more * self.resident).min(self.resident + left);
        Self { prefill, resident, ..*self }.in_units(unit)
    }
}

impl Unit {
    /// Replicas that reading and writing so many tokens per second takes.
    pub(crate) fn share(&self, prefill: f64, decode: f64) -> f64 {
        let (read, written) = (prefill / self.prefill, decode / self.decode);
        match self.read_share {
            Some(share) => share * read + (1.0 - share) * written,
            None => read.max(written),
        }
    }

    /// The low end of a capacity: too much costs the objective, too little costs money.
    pub(crate) fn low(capacity: &Capacity) -> Self {
        Self {
            prefill: known(capacity.prefill.map(|part| part.low().get())),
            decode: known(capacity.decode.map(|part| part.low().get())),
            resident: known(capacity.resident.map(|part| part.low().get())),
            read_share: read_share(capacity),
        }
    }

    /// How much of another unit one of this is, at a load; the worst part decides where there is
    /// no load to tell.
    pub(crate) fn against(&self, other: &Self, load: &Load) -> f64 {
        let (mine, others) = (load.in_units(self), load.in_units(other));
        let ratio = if mine > 0.0 && others > 0.0 {
            others / mine
        } else {
            let parts = [
                self.prefill / other.prefill,
                self.decode / other.decode,
                self.resident / other.resident,
            ];
            // What limits only one of the two cannot be compared: a replica whose room became known would else be
            // nothing at all of one whose room limited nothing, and any load would take replicas without end.
            let comparable = parts.into_iter().filter(|part| part.is_finite() && *part > 0.0);
            comparable.fold(f64::INFINITY, f64::min)
        };
        if ratio.is_finite() && ratio > 0.0 { ratio } else { 1.0 }
    }
}

/// Only together with both rates that it divides the work between.
fn read_share(capacity: &Capacity) -> Option<f64> {
    capacity.prefill.and(capacity.decode)?;
    capacity.reading_per_million.map(|part| f64::from(part.min(1_000_000)) / 1e6)
}

/// What is not known limits nothing, and so does the most that there is.
fn known(part: Option<u64>) -> f64 {
    let limit = part.filter(|part| *part < u64::MAX);
    limit.map_or(f64::INFINITY, |part| (part as f64).max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::interval::{Interval, Origin};
    use flyball_core::units::Tokens;

    const UNIT: Unit =
        Unit { prefill: 10_000.0, decode: 1_000.0, resident: 100_000.0, read_share: None };

    #[test]
    fn what_runs_out_first_decides() {
        let load =
            Load { prefill: 25_000.0, decode: 1_500.0, resident: 120_000.0, ..Load::default() };
        assert_eq!(load.in_units(&UNIT), 2.5);
        assert_eq!(Load { decode: 4_000.0, ..load }.in_units(&UNIT), 4.0);
        assert_eq!(Load { resident: 600_000.0, ..load }.in_units(&UNIT), 6.0);
        assert_eq!(Load::default().in_units(&UNIT), 0.0);
    }

    #[test]
    fn what_limits_one_of_two_replicas_does_not_make_it_nothing_of_the_other() {
        let roomy = Unit { resident: f64::INFINITY, ..UNIT };
        assert_eq!(UNIT.against(&roomy, &Load::default()), 1.0);
        assert_eq!(roomy.against(&UNIT, &Load::default()), 1.0);
        let most = Interval::exact(Tokens::MAX, Origin::Assumed).ok();
        let unit = Unit::low(&Capacity { resident: most, ..Capacity::UNKNOWN });
        assert_eq!(unit.resident, f64::INFINITY);
    }

    #[test]
    fn reading_and_writing_take_turns() {
        // At 10,000 read and 1,000 written, three quarters of the time are reading.
        let unit = Unit { read_share: Some(0.75), ..UNIT };
        let load = Load { prefill: 10_000.0, decode: 1_000.0, ..Load::default() };
        assert_eq!(load.in_units(&unit), 1.0);
        assert_eq!(Load { prefill: 20_000.0, ..load }.in_units(&unit), 1.75);
        assert_eq!(Load { decode: 0.0, ..load }.in_units(&unit), 0.75);
        assert_eq!(Load { resident: 300_000.0, ..load }.in_units(&unit), 3.0);
    }

    #[test]
    fn only_what_the_present_replicas_leave_of_a_backlog_asks_for_more() {
        let load = Load { prefill: 20_000.0, backlog: 300_000.0, ..Load::default() };
        let clearing = Clearing { reading: 30_000.0, cold_start_s: 60.0, slack_s: 2.0 };
        // 10,000 tokens/s are spare: 300,000 are gone after 30 s of 60.
        assert_eq!(load.with_backlog(&UNIT, &clearing), 2.0);
        // Nothing is spare: 300,000 over 60 s are 5,000 a second more.
        let full = Clearing { reading: 20_000.0, ..clearing };
        assert_eq!(load.with_backlog(&UNIT, &full), 2.5);
        // A start of one second: 300,000 within the slack of 2 s are 150,000 a second more.
        let quick = Clearing { cold_start_s: 1.0, ..full };
        assert_eq!(load.with_backlog(&UNIT, &quick), 17.0);
    }

    #[test]
    fn a_unit_is_compared_at_the_load_that_there_is() {
        let double = Unit { prefill: 20_000.0, decode: 1_500.0, ..UNIT };
        let reading = Load { prefill: 5_000.0, ..Load::default() };
        let writing = Load { decode: 5_000.0, ..Load::default() };
        assert_eq!(double.against(&UNIT, &reading), 2.0);
        assert_eq!(double.against(&UNIT, &writing), 1.5);
        assert_eq!(double.against(&UNIT, &Load::default()), 1.0);
    }
}
