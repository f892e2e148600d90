//! The engine and its time.

use super::blocks::BlockChange;
use super::flight::Flight;
use super::scheduler::Scheduler;
use super::{Arrival, EngineSettings, EngineTally, Event, Pace, SimulatedLoad, TooLong};
use crate::seconds::Seconds;
use flyball_perf::serving::batch::{Batch, StepTime};
use std::collections::VecDeque;

/// One replica's engine in virtual time.
///
/// Use it so: [`advance`](Self::advance) to the time of an arrival, [`submit`](Self::submit) all that
/// come at that time, and go on. Nothing may be submitted for a time that has passed. What happens
/// exactly at the time that is advanced to is reported, but the next step is put together only when
/// time goes on, so that whoever comes at that very moment is in it.
#[derive(Clone, Debug)]
pub struct SimulatedEngine<S> {
    step: S,
    pace: Pace,
    scheduler: Scheduler,
    flight: Option<Flight>,
    /// When the last step ended, and when it began.
    ended: f64,
    began: f64,
    inbox: VecDeque<(f64, Message)>,
    /// Names of those requests in the inbox that have some, in order.
    names: VecDeque<Box<[u64]>>,
    /// Waiting requests and tokens that the scheduler has not seen yet.
    unseen: (u32, u64),
    /// Messages of clients that hang up.
    aborts: u32,
    evaluations: u64,
}

#[derive(Clone, Copy, Debug)]
enum Message {
    Submit { id: u64, prompt: u32, output: u32, named: bool, name_tokens: u32 },
    Abort { id: u64 },
}

impl<S: StepTime> SimulatedEngine<S> {
    /// An idle engine at the start of time.
    pub fn new(settings: EngineSettings, step: S, pace: Pace) -> Self {
        Self {
            step,
            pace,
            scheduler: Scheduler::new(settings),
            flight: None,
            ended: 0.0,
            began: 0.0,
            inbox: VecDeque::new(),
            names: VecDeque::new(),
            unseen: (0, 0),
            aborts: 0,
            evaluations: 0,
        }
    }

    /// A request arrives. Its number must not be inside already.
    pub fn submit(&mut self, id: u64, arrival: &Arrival<'_>) -> Result<(), TooLong> {
        self.scheduler.fits(arrival)?;
        let Arrival { at, prompt, output, names, name_tokens } = *arrival;
        let named = !names.is_empty();
        if named {
            self.names.push_back(names.into());
        }
        self.unseen.0 += 1;
        self.unseen.1 += u64::from(prompt);
        self.inbox
            .push_back((at.get(), Message::Submit { id, prompt, output, named, name_tokens }));
        // Who cannot come in changes nothing about the steps under way.
        if !self.scheduler.is_blocked() {
            self.cut(at.get());
        }
        Ok(())
    }

    /// A client hangs up. The engine notices before it puts the next step together; if the request
    /// has ended by then, nothing happens.
    pub fn abort(&mut self, id: u64, at: Seconds) {
        self.inbox.push_back((at.get(), Message::Abort { id }));
        self.aborts += 1;
        self.cut(at.get());
    }

    /// From now on steps cost something else; those that are under way end as they began.
    pub fn change_step(&mut self, at: Seconds, change: impl FnOnce(&mut S)) {
        self.cut(at.get());
        change(&mut self.step);
    }

    /// Lets time pass, and reports what happens up to and including `until`.
    pub fn advance(&mut self, until: Seconds, sink: &mut impl FnMut(Event)) {
        let until = until.get();
        loop {
            if let Some(flight) = self.flight {
                let end = flight.end();
                if end > until {
                    return;
                }
                self.flight = None;
                self.began = flight.after(flight.steps - 1);
                self.ended = end;
                self.scheduler.complete(flight.steps, Seconds(end), sink);
            }
            if !self.start(until, sink) {
                return;
            }
        }
    }

    /// The time to advance to for the next thing to happen, if nobody comes before. None if idle.
    pub fn next_event(&self) -> Option<Seconds> {
        if let Some(flight) = self.flight {
            return Some(Seconds(flight.end()));
        }
        let first = self.inbox.front().map(|&(at, _)| at);
        let now = if self.scheduler.is_empty() { first? } else { self.ended };
        // The step that starts then is put together when time has gone on.
        Some(Seconds(now.max(self.ended).next_up()))
    }

    /// What is seen from outside at a time that has been advanced to.
    pub fn load(&self, now: Seconds) -> SimulatedLoad {
        let begun = self.flight.map_or(0, |flight| flight.steps_until(now.get()));
        let load = self.scheduler.load(begun);
        SimulatedLoad {
            waiting: load.waiting + self.unseen.0,
            waiting_tokens: load.waiting_tokens + self.unseen.1,
            ..load
        }
    }

    /// Whether nobody is inside: a drained replica may go.
    pub fn is_empty(&self) -> bool {
        self.scheduler.is_empty() && self.inbox.is_empty()
    }

    /// Numbers of all requests inside: what is lost if the replica dies.
    pub fn ids(&self) -> Vec<u64> {
        let unseen = self.inbox.iter().filter_map(|(_, message)| match *message {
            Message::Submit { id, .. } => Some(id),
            Message::Abort { .. } => None,
        });
        self.scheduler.ids().chain(unseen).collect()
    }

    /// Tokens of a request that are out, at the time that was advanced to. None if it is not inside,
    /// or has not been seen yet. With [`Pace::Skipping`] it lags by the steps under way.
    pub fn emitted(&self, id: u64) -> Option<u32> {
        self.scheduler.emitted(id)
    }

    /// Counts since the start.
    pub fn tally(&self) -> EngineTally {
        EngineTally { evaluations: self.evaluations, ..self.scheduler.tally() }
    }

    /// Named blocks that were stored and forgotten since the last call, in order; from the first
    /// call on.
    pub fn changes(&mut self) -> Vec<BlockChange> {
        self.scheduler.changes()
    }

    /// What decides about its steps.
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Puts the next step together if it starts before `until`.
    fn start(&mut self, until: f64, sink: &mut impl FnMut(Event)) -> bool {
        let mut now = self.ended;
        let mut plan = None;
        if !self.scheduler.is_empty() {
            if now >= until {
                return false;
            }
            let seen = if self.scheduler.settings().ahead { self.began } else { now };
            self.read(seen, now, sink);
            plan = self.plan(now, sink);
        }
        while plan.is_none() {
            // Nothing is under way, so that nothing has to be waited for.
            let first = self.inbox.front().map(|&(at, _)| at);
            if self.scheduler.is_empty() {
                let Some(first) = first else { return false };
                now = now.max(first);
            }
            if now >= until {
                return false;
            }
            self.read(now, now, sink);
            if self.scheduler.is_empty() {
                continue;
            }
            plan = self.plan(now, sink);
            debug_assert!(plan.is_some(), "somebody waits, nobody runs, and nothing fits");
        }
        if let Some((batch, most)) = plan {
            let (flight, evaluations) = Flight::new(now, most, &batch, &self.step);
            self.evaluations += evaluations;
            self.flight = Some(flight);
            self.cut_by_inbox();
        }
        true
    }

    /// The next step, and how many like it may follow. What ended before it is given back only now.
    fn plan(&mut self, now: f64, sink: &mut impl FnMut(Event)) -> Option<(Batch, u64)> {
        let batch = self.scheduler.compose(Seconds(now), sink);
        let most = match self.pace {
            Pace::StepByStep => 1,
            Pace::Skipping => self.scheduler.steady_steps(),
        };
        self.scheduler.release_leaving();
        batch.map(|batch| (batch, most))
    }

    /// Ends the steps under way when a message of that time is seen.
    fn cut(&mut self, at: f64) {
        let ahead = self.scheduler.settings().ahead;
        if let Some(flight) = self.flight.as_mut().filter(|flight| flight.steps > 1) {
            let seen = flight.steps_until(at) + u64::from(ahead);
            flight.steps = flight.steps.min(seen.max(1));
        }
    }

    /// Ends the steps under way when the first message is seen that changes them. Those who came
    /// while the last step ran are not seen yet.
    fn cut_by_inbox(&mut self) {
        let first = if !self.scheduler.is_blocked() {
            self.inbox.front()
        } else if self.aborts > 0 {
            self.inbox.iter().find(|(_, message)| matches!(message, Message::Abort { .. }))
        } else {
            None
        };
        if let Some(&(at, _)) = first {
            self.cut(at);
        }
    }

    /// Hands the scheduler what came up to `seen`.
    fn read(&mut self, seen: f64, now: f64, sink: &mut impl FnMut(Event)) {
        while let Some(&(at, message)) = self.inbox.front() {
            if at > seen {
                break;
            }
            self.inbox.pop_front();
            match message {
                Message::Submit { id, prompt, output, named, name_tokens } => {
                    self.unseen.0 -= 1;
                    self.unseen.1 -= u64::from(prompt);
                    let names = if named { self.names.pop_front() } else { None };
                    let names = names.as_deref().unwrap_or_default();
                    let arrival = Arrival { at: Seconds(at), prompt, output, names, name_tokens };
                    self.scheduler.queue(id, &arrival);
                }
                Message::Abort { id } => {
                    self.aborts -= 1;
                    self.scheduler.abort(id, Seconds(now), sink);
                }
            }
        }
    }
}
