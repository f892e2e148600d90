//! Who picks the right layout how often: ours, a roofline, the other planner.

use super::calibrate::RowQuestion;
use super::holdouts::Left;
use super::ranking::{self, Picks};
use super::scored::Scored;
use flyball_perf::evidence::{Evidence, Intervals};

/// Picks of a layout by each chooser.
pub(super) struct Ranked {
    pub(super) ours: Picks,
    /// Where only the number of GPUs is chosen.
    pub(super) ours_by_gpus: Picks,
    pub(super) threshold: Picks,
    pub(super) roofline: Picks,
    /// On the rows that the other planner answers.
    pub(super) ours_there: Picks,
    pub(super) peer: Picks,
    pub(super) peer_weighed: Picks,
}

impl Ranked {
    pub(super) fn of(scored: &Scored, intervals: &Intervals) -> Self {
        let rows = &scored.sorted.latency;
        let series = scored.predicted(Left::Series);
        let weigh = |one: &RowQuestion| Some(intervals.tpot(Evidence::OwnData, one.row.moe()));
        let ours = |place: usize, one: &RowQuestion| scored.clean(one).then(|| series[place]);
        let roofline =
            |place: usize, one: &RowQuestion| scored.clean(one).then(|| scored.roofline[place]);
        let peer = |_: usize, one: &RowQuestion| scored.peer(one).filter(|_| scored.clean(one));
        let there = |place: usize, one: &RowQuestion| peer(place, one).map(|_| series[place]);
        Self {
            ours_by_gpus: ranking::picks(rows, ranking::by_gpus, &ours, &weigh),
            ours: ranking::picks(rows, ranking::by_layout, &ours, &weigh),
            threshold: ranking::picks(rows, ranking::by_layout, &ours, &|_| None),
            roofline: ranking::picks(rows, ranking::by_layout, &roofline, &|_| None),
            ours_there: ranking::picks(rows, ranking::by_layout, &there, &weigh),
            peer: ranking::picks(rows, ranking::by_layout, &peer, &|_| None),
            peer_weighed: ranking::picks(rows, ranking::by_layout, &peer, &weigh),
        }
    }
}
