//! What happens next.

use crate::seconds::Seconds;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that will happen. Numbers are places in the world's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A node that was ordered comes.
    NodeComes { order: usize },
    /// A node that was empty for a while goes, if nothing has run on it since.
    NodeIdles { node: usize, since_use: u32 },
    /// A node goes.
    NodeGoes { node: usize },
    /// A fault begins.
    FaultBegins { fault: usize },
    /// A fault ends.
    FaultEnds { fault: usize },
    /// A pool may have more nodes from now on.
    StockChanges { pool: usize },
    /// A replica has started.
    Ready { replica: usize },
    /// A replica that was told to end begins to.
    StopBegins { replica: usize },
    /// A replica that should have ended is ended.
    GraceOver { replica: usize },
    /// Something happens in an engine, unless its plans have changed since.
    Engine { replica: usize, plan: u32 },
    /// The next request of a model arrives.
    Arrival { model: usize },
    /// A request's client hangs up.
    HangUp { request: usize },
    /// A request has been held for as long as it may be.
    HoldOver { request: usize },
    /// A request has crossed a slow network.
    Crossed { request: usize },
    /// The connection of a request breaks.
    LinkBreaks { request: usize },
    /// Metrics are scraped.
    Scrape,
    /// Engines tell gateways how full they are.
    Load,
    /// Gateways tell what they count.
    Report,
    /// The policy is asked.
    Tick,
}

/// Events in order of time, and at the same time in the order in which they were planned.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Seconds, u64, Event)>>,
    planned: u64,
}

impl Queue {
    pub(super) fn plan(&mut self, at: Seconds, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, event)));
    }

    pub(super) fn next(&mut self) -> Option<(Seconds, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_first_and_at_the_same_time_as_planned() {
        let mut queue = Queue::default();
        queue.plan(Seconds(2.0), Event::Tick);
        queue.plan(Seconds(1.0), Event::Tick);
        queue.plan(Seconds(1.0), Event::Scrape);
        let order: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        let expected = [
            (Seconds(1.0), Event::Tick),
            (Seconds(1.0), Event::Scrape),
            (Seconds(2.0), Event::Tick),
        ];
        assert_eq!(order, expected);
    }
}
