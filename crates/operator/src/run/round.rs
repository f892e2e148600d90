//! One turn of the loop.

use super::{AT_ONCE, Operator};
use crate::apply::{self, Applied, ApplyError, Retry};
use crate::build::{self, Built, Write};
use crate::decide::Decided;
use crate::imagine::WhatIfWorld;
use crate::observe::demand::Signals;
use crate::observe::{Facts, InFlightCounts, ObservedCluster, observe_and_note, prometheus};
use crate::persist::LearntError;
use crate::report::pools;
use crate::{time, tune};
use flyball_core::decision::Decision;
use flyball_core::ids::ModelId;
use flyball_core::invariants::{Invariant, Violation};
use flyball_core::units::Micros;
use futures::{StreamExt as _, stream};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

impl Operator {
    pub(super) async fn round(&mut self) {
        let began = Instant::now();
        let mut facts = self.watches.facts();
        let mut signals = self.signals().await;
        let book = self.link.reports(SystemTime::now());
        let waited_for = self.link.wakes().borrow().clone();
        let leads = self.fence.may_write(Instant::now());
        let max_age = Micros::from_seconds(u64::from(self.settings.signal_max_age_seconds));
        let time = (time::of_system(SystemTime::now()), max_age);
        if leads {
            facts.loans = self.loans.facts(&facts.pools, time.0);
        }
        let reported = (&book, &waited_for);
        let gone = self.witnesses.add(&mut signals, reported, &facts, leads, time);
        self.link.forget(gone.iter(), SystemTime::now());
        if !leads {
            self.learnt.estimator.forget();
        }
        let recorder = &mut self.recorder;
        let note = |readings: &_| recorder.iter_mut().for_each(|one| one.write(readings));
        let mut seen = observe_and_note(&facts, &signals, &mut self.learnt, time, note);
        let observed = began.elapsed();
        self.tuning.settle(seen.snapshot.taken_at).await;
        let mut decided = self.state.brain(|brain| {
            if !leads {
                brain.stand_by();
            }
            self.tuning.set_laws(&mut seen, brain.memory(), leads);
            let mut decided = brain.decide(&seen);
            self.tuning.after(&seen, brain.memory(), &mut decided.decision, leads);
            decided
        });
        self.note_unread(&decided.unread, leads);
        self.break_off(&decided.broken, "a decision would violate an invariant and is not applied");
        self.attained.learn(&seen.snapshot);
        let pools = Arc::new(pools::pools(&facts, &seen.snapshot, &decided.decision));
        if leads {
            self.loans.decide(&decided.decision.runs, &facts.loans, time.0);
        }
        let thought = began.elapsed();
        let mut made = Vec::new();
        if leads {
            made = self.carry_out(&facts, &seen, &mut decided).await;
        }
        self.order(&facts, &seen, &decided.decision, &made);
        if leads {
            self.publish(&seen, &decided).await;
            self.publish_pools(&pools).await;
        }
        let took = [observed, thought - observed, began.elapsed() - thought]
            .map(|part| part.as_secs_f64());
        self.board.change(|shown| {
            shown.frozen = facts.frozen;
            shown.pools = pools;
            shown.watch_failures = self.watches.failures().0;
            shown.tick_seconds = f64::from(self.settings.tick_seconds);
            shown.gateways = book.reports.iter().filter(|report| !report.gone).count();
            shown.silent_gateways = if leads { signals.silent.len() } else { 0 };
            if let Some(last) = book.reports.iter().filter_map(|report| report.reported_at).max() {
                shown.note_input("gateway", time::of_system(last));
            }
            shown.took(took);
            shown.show(&seen.snapshot, &decided.decision.models, |id| {
                self.attainment(id, &seen.snapshot)
            });
            if !leads {
                shown.stand_by();
            }
        });
        let tick = Micros::from_seconds(u64::from(self.settings.tick_seconds));
        let learnt = self.learnt.clone();
        let laws = tune::laws(&seen.policy);
        self.state.remember(WhatIfWorld { facts, signals, learnt, laws, time, tick });
    }

    async fn signals(&self) -> Signals {
        let mut signals = Signals::default();
        if let Some(prometheus) = &self.prometheus {
            match prometheus.ask().await {
                Ok(engines) => {
                    prometheus::add(&mut signals, engines);
                    let now = time::of_system(SystemTime::now());
                    self.board.change(|shown| shown.note_input("prometheus", now));
                }
                Err(error) => {
                    signals.in_flight.request(InFlightCounts::Away);
                    tracing::warn!(%error, "Prometheus query failed; scale-down paused");
                    self.board.change(|shown| shown.failed("observe", "unreachable"));
                }
            }
        }
        signals
    }

    /// Tells gateways what to go by. One that does not lead has nobody to tell, and keeps its orders
    /// current for the moment at which it does.
    fn order(
        &self,
        facts: &Facts,
        seen: &ObservedCluster,
        decision: &Decision,
        made: &[(ModelId, Write)],
    ) {
        if let Err(error) = self.link.publish(build::orders(facts, seen, decision, made)) {
            tracing::error!(%error, "cannot send directives to gateways");
        }
    }

    /// Says of which models all has to be learnt again. Whoever does not lead would say so at every look.
    fn note_unread(&self, unread: &[(ModelId, LearntError)], leads: bool) {
        for (model, error) in unread.iter().filter(|_| leads) {
            tracing::warn!(%model, %error, "ignoring status.learnt; learning restarts");
            self.board.change(|shown| shown.failed("restore", "refused"));
        }
    }

    /// Says which rules were about to be broken.
    fn break_off(&self, broken: &[Violation], what: &str) {
        for violation in broken {
            tracing::error!(%violation, "{what}");
            self.state.metrics().count_violation(violation.invariant);
        }
    }

    /// Makes the writes, and says which were made. Those that would break a rule are not, and are noted.
    async fn carry_out(
        &self,
        facts: &Facts,
        seen: &ObservedCluster,
        decided: &mut Decided,
    ) -> Vec<(ModelId, Write)> {
        let Built { writes, broken } = build::build(facts, seen, &decided.decision);
        self.break_off(&broken, "a write would violate an invariant and is skipped");
        decided.broken.extend(broken);
        let (client, fence) = (&self.client, &self.fence);
        let tried = stream::iter(writes)
            .map(|(model, writes)| async move {
                let done = apply::apply(client, fence, &model, &writes).await;
                (model, writes, done)
            })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        let mut made = Vec::new();
        for (model, writes, done) in tried {
            self.note(&model, &writes[..done.made], &done);
            made.extend(writes.into_iter().take(done.made).map(|write| (model.clone(), write)));
        }
        made
    }

    fn note(&self, model: &ModelId, made: &[Write], done: &Applied) {
        self.board.change(|shown| {
            for write in made {
                shown.wrote(kind(write));
            }
        });
        let Some(error) = &done.failed else {
            tracing::info!(%model, writes = done.made, "decision applied");
            return;
        };
        if matches!(error, ApplyError::BeyondStandard { .. }) {
            self.state.metrics().count_violation(Invariant::PodsWithinStandard);
        }
        let writes = done.made;
        self.board.change(|shown| shown.failed("apply", error.name()));
        match error.retry() {
            Retry::NextTick => {
                tracing::warn!(%model, writes, %error, "decision not applied; retrying at the next reconcile")
            }
            Retry::Never => tracing::error!(%model, writes, %error, "decision not applied"),
        }
    }
}

const fn kind(write: &Write) -> &'static str {
    match write {
        Write::Mark { .. } => "drain",
        Write::Unmark { .. } => "undrain",
        Write::Cost { .. } => "cost",
        Write::Protect { .. } => "protect",
        Write::Unprotect { .. } => "unprotect",
        Write::Replace { .. } => "replace",
        Write::Scale { .. } => "scale",
        Write::Make { .. } => "object",
    }
}
