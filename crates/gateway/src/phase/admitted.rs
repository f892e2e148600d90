//! A request that waits for its turn at the engines, and one whose turn it is.

use super::Phase;
use super::aimed::Aimed;
use super::granted::Granted;
use super::open::Open;
use crate::admit::{InLine, Turn};
use crate::answer::Problem;
use crate::finished::{Finished, RequestOutcome};
use crate::identify::Caller;
use crate::room::Place;
use flyball_fleet::Time;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A request in line.
struct Queued {
    granted: Granted,
    /// How long it waited, once that is over.
    waited: Duration,
    /// Whether there was no engine when it came.
    held: bool,
    /// Times that it made room for others.
    made_room: u32,
}

/// A request that may go to an engine.
pub(crate) struct Admitted {
    /// In a box, as its turn is: each call on the way to an engine hands both on.
    queued: Box<Queued>,
    /// `None` of copies, which wait for none, and when it is over.
    pub(crate) turn: Option<Box<Turn>>,
}

impl Open<Granted> {
    /// It is its turn at once.
    pub(crate) fn admit(self, turn: Box<Turn>) -> Open<Admitted> {
        self.then(|granted| Admitted::at_once(granted, Some(turn)))
    }

    /// Stands in line until it is its turn.
    pub(crate) async fn wait(self, line: InLine) -> Result<Open<Admitted>, Problem> {
        let (since, held) = (Instant::now(), line.held);
        let mut queued =
            self.then(|granted| Queued { granted, waited: Duration::ZERO, held, made_room: 0 });
        let turn = line.turn().await;
        queued.waited = since.elapsed();
        let (queued, turn) = queued.or_refuse(turn)?;
        Ok(queued.then(|queued| Admitted { queued: Box::new(queued), turn: Some(turn) }))
    }

    /// A copy of it for another model, at a place of its own.
    pub(crate) fn copy(&self, model: Arc<str>, place: Place) -> Open<Admitted> {
        let nobody = Arc::clone(self.head().shared.live().keys.anyone());
        let aimed = Aimed::copy(&self.aimed, model, place, nobody);
        Open::new(self.head().copy(), Admitted::at_once(Granted::free(aimed), None))
    }
}

impl Admitted {
    fn at_once(granted: Granted, turn: Option<Box<Turn>>) -> Self {
        let (waited, held, made_room) = (Duration::ZERO, false, 0);
        Self { queued: Box::new(Queued { granted, waited, held, made_room }), turn }
    }

    /// Who asks.
    pub(crate) const fn caller(&self) -> &Arc<Caller> {
        self.queued.granted.caller()
    }

    /// Whether its answer comes as a stream.
    pub(crate) const fn is_stream(&self) -> bool {
        self.queued.granted.aimed.reading.stream
    }

    /// Whether it runs on what nobody else wants.
    pub(crate) const fn is_batch(&self) -> bool {
        self.queued.granted.class().is_batch()
    }

    /// It makes room for others.
    pub(crate) const fn makes_room(&mut self) {
        self.queued.made_room += 1;
    }

    /// Having made room so often in all, it has waited so long for another turn.
    pub(crate) fn waited(&mut self, made_room: u32, waited: Duration) {
        self.queued.made_room = self.queued.made_room.max(made_room);
        self.queued.waited += waited;
    }

    /// Its body is not held any more.
    pub(crate) fn let_go(&mut self) {
        self.queued.granted.aimed.reading.place.let_go();
    }

    /// As far as limits and budgets are concerned.
    pub(crate) const fn granted(&mut self) -> &mut Granted {
        &mut self.queued.granted
    }
}

impl Phase for Queued {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.granted.describe(finished);
        finished.queued = self.waited;
        finished.held = self.held;
        finished.preempted = self.made_room;
    }

    fn settle(&mut self, _: RequestOutcome, _: Time) {
        self.granted.release();
    }
}

impl Phase for Admitted {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.queued.describe(finished);
    }

    fn settle(&mut self, _: RequestOutcome, _: Time) {
        self.turn = None;
        self.queued.granted.release();
    }
}
