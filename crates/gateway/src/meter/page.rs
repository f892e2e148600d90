//! What the meter has for the page of metrics.

use super::series::{CLASSES, Model, OPERATIONS, Operation, TOKEN_TYPES};
use super::{EngineState, Meter, MeterNow, ModelNow, RequestOutcome};
use crate::admit::AdmittedDemand;
use crate::identify::UnauthorizedReason;
use crate::link::Came;
use crate::models::LeftOutReason;
use crate::sse::Finish;
use flyball_fleet::invariants::GatewayInvariant;
use flyball_telemetry::metrics::{Metric, MetricsSource, Page, Sizes};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const NO_LABELS: [&str; 0] = [];

/// A count of a model.
type CountOf = fn(&Model) -> &AtomicU64;
/// Something that is so with a model now.
type ValueOf = fn(&ModelNow) -> f64;

/// A sum of a model that only grows.
type TotalOf = fn(&ModelNow) -> u64;

impl MetricsSource for Meter {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        self.gen_ai(page)?;
        self.requests(page)?;
        self.ways(page)?;
        self.callers(page)?;
        self.engines(page)?;
        let now = self.now.get().map(|read| read()).unwrap_or_default();
        self.models_now(&now, page)?;
        self.itself(&now, page)
    }
}

impl Meter {
    fn gen_ai(&self, page: &mut Page<'_>) -> fmt::Result {
        let names = self.names.load();
        // Every model has chat from the start; what else it does shows once it does it.
        let shown: Vec<(&str, &str, &Operation)> = names
            .models
            .iter()
            .flat_map(|(name, model)| {
                let with_names = OPERATIONS.iter().zip(&model.operations).enumerate();
                with_names
                    .filter(|(index, (_, operation))| *index == 0 || operation.is_used())
                    .map(move |(_, (operation, sizes))| (*operation, &**name, sizes))
            })
            .collect();
        let each = |sizes: fn(&Operation) -> Sizes| {
            shown.iter().map(move |(operation, model, all)| ([*operation, *model], sizes(all)))
        };
        page.histogram(Metric::GenAiRequestDuration, each(|all| all.duration.sizes()))?;
        page.histogram(Metric::GenAiTimeToFirstToken, each(|all| all.first.sizes()))?;
        page.histogram(Metric::GenAiTimePerOutputToken, each(|all| all.per_token.sizes()))?;
        let tokens = shown.iter().flat_map(|(operation, model, all)| {
            let by_type = TOKEN_TYPES.iter().zip(&all.tokens);
            by_type.map(move |(kind, tokens)| ([*operation, *model, *kind], tokens.sizes()))
        });
        page.histogram(Metric::GenAiTokenUsage, tokens)
    }

    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let names = self.names.load();
        let requests = names.models.iter().flat_map(|(name, model)| {
            RequestOutcome::ALL.iter().zip(&model.requests).flat_map(move |(outcome, by_class)| {
                let by_class = CLASSES.iter().zip(by_class);
                by_class.map(move |(class, count)| ([&**name, outcome.name(), *class], get(count)))
            })
        });
        page.counter(Metric::GatewayRequests, requests)?;
        let retries = names.models.iter().map(|(name, model)| ([name], get(&model.retries)));
        page.counter(Metric::GatewayRetries, retries)?;
        let refused = self.totals.refused.all().map(|(code, count)| ([code], count));
        page.counter(Metric::GatewayRefused, refused)?;
        let choices = ["affinity", "load"].into_iter().zip(&self.totals.choices);
        page.counter(Metric::GatewayChoices, choices.map(|(by, count)| ([by], get(count))))?;
        page.histogram(Metric::GatewayChosen, [(NO_LABELS, self.totals.chosen.sizes())])?;
        for (metric, count) in [
            (Metric::GatewayCopiesDropped, &self.totals.copies_dropped),
            (Metric::GatewayEstimated, &self.totals.estimated),
            (Metric::GatewayReceived, &self.totals.received_bytes),
            (Metric::GatewaySent, &self.totals.sent_bytes),
        ] {
            page.counter(metric, [(NO_LABELS, get(count))])?;
        }
        Ok(())
    }

    /// How requests came to their engine and how their answers ended.
    fn ways(&self, page: &mut Page<'_>) -> fmt::Result {
        let names = self.names.load();
        let finish = names.models.iter().flat_map(|(name, model)| {
            let by_reason = Finish::ALL.iter().zip(&model.finish);
            by_reason.map(move |(reason, count)| ([&**name, reason.name()], get(count)))
        });
        page.counter(Metric::GatewayFinish, finish)?;
        let arms = names.arms.iter().flat_map(|(split, arms)| {
            arms.iter().map(move |(model, count)| ([&**split, &**model], get(count)))
        });
        page.counter(Metric::GatewaySplitRequests, arms)?;
        let waits = names.models.iter().map(|(name, model)| ([name], model.waits.sizes()));
        page.histogram(Metric::GatewayQueueWait, waits)?;
        let counts: [(Metric, CountOf); 6] = [
            (Metric::GatewayMirrored, |model| &model.mirrored),
            (Metric::GatewayHeldRequests, |model| &model.held),
            (Metric::GatewayHedged, |model| &model.hedged),
            (Metric::GatewayContinued, |model| &model.continued),
            (Metric::GatewayPreempted, |model| &model.preempted),
            (Metric::GatewayCacheHits, |model| &model.cache_hits),
        ];
        for (metric, count) in counts {
            let each = names.models.iter().map(|(name, model)| ([name], get(count(model))));
            page.counter(metric, each)?;
        }
        Ok(())
    }

    fn callers(&self, page: &mut Page<'_>) -> fmt::Result {
        let names = self.names.load();
        let requests = names.callers.iter().flat_map(|(name, caller)| {
            let by_outcome = RequestOutcome::ALL.iter().zip(&caller.requests);
            by_outcome.map(move |(outcome, count)| ([&**name, outcome.name()], get(count)))
        });
        page.counter(Metric::GatewayCallerRequests, requests)?;
        let tokens = names.callers.iter().flat_map(|(name, caller)| {
            let by_type = TOKEN_TYPES.iter().zip(&caller.tokens);
            by_type.map(move |(kind, count)| ([&**name, *kind], get(count)))
        });
        page.counter(Metric::GatewayCallerTokens, tokens)
    }

    fn engines(&self, page: &mut Page<'_>) -> fmt::Result {
        let freed = self.totals.freed.sizes();
        page.histogram(Metric::GatewayCancelToFree, [(NO_LABELS, freed)])?;
        let ignored = get(&self.totals.cancels_ignored);
        page.counter(Metric::GatewayCancelsIgnored, [(NO_LABELS, ignored)])?;
        let opened = get(&self.totals.breakers_opened);
        page.counter(Metric::GatewayBreakerOpened, [(NO_LABELS, opened)])
    }

    /// Who waits for which model, and what it has.
    fn models_now(&self, now: &MeterNow, page: &mut Page<'_>) -> fmt::Result {
        let names = self.names.load();
        let shown = || now.models.iter().filter(|model| names.models.contains_key(&*model.name));
        let engines = shown().flat_map(|model| {
            let by_state = model.by_state();
            EngineState::ALL.map(|state| ([&*model.name, state.name()], exact(by_state.of(state))))
        });
        page.gauge(Metric::GatewayModelEngines, engines)?;
        let gauges: [(Metric, ValueOf); 7] = [
            (Metric::GatewayQueued, |model| exact(model.queue.waiting)),
            (Metric::GatewayHolding, |model| exact(model.queue.held)),
            (Metric::GatewayBacklog, |model| long(model.queue.backlog_tokens)),
            (Metric::GatewayOldestWait, |model| long(model.queue.oldest_ms) / 1_000.0),
            (Metric::GatewayBacklogCost, |model| long(model.queue.backlog_cost)),
            (Metric::GatewayWindow, |model| long(model.queue.window)),
            (Metric::GatewayDiscoveryFailing, |model| f64::from(u8::from(model.trouble.is_some()))),
        ];
        for (metric, value) in gauges {
            page.gauge(metric, shown().map(|model| ([&*model.name], value(model))))?;
        }
        let batch = shown().flat_map(|model| {
            let AdmittedDemand { batch_waiting, batch_running, .. } = model.queue;
            [("waiting", batch_waiting), ("running", batch_running)]
                .map(|(state, count)| ([&*model.name, state], exact(count)))
        });
        page.gauge(Metric::GatewayBatch, batch)?;
        let counters: [(Metric, TotalOf); 8] = [
            (Metric::GatewayArrived, |model| model.queue.arrived),
            (Metric::GatewayArrivedTokens, |model| model.queue.arrived_tokens),
            (Metric::GatewayUncachedTokens, |model| model.queue.uncached_tokens),
            (Metric::GatewayCost, |model| model.queue.spent_cost),
            (Metric::GatewayShed, |model| model.queue.shed),
            (Metric::GatewayWakeCalls, |model| model.queue.wake_calls),
            (Metric::GatewayJudged, |model| model.queue.judged),
            (Metric::GatewayMissed, |model| model.queue.missed),
        ];
        for (metric, value) in counters {
            page.counter(metric, shown().map(|model| ([&*model.name], value(model))))?;
        }
        let objectives = shown().flat_map(|model| {
            let AdmittedDemand { missed_first_token, missed_between_tokens, .. } = model.queue;
            [("first_token", missed_first_token), ("between_tokens", missed_between_tokens)]
                .map(|(objective, count)| ([&*model.name, objective], count))
        });
        page.counter(Metric::GatewayMissedObjective, objectives)?;
        let broken = GatewayInvariant::ALL.map(|invariant| ([invariant.id()], invariant.broken()));
        page.counter(Metric::GatewayInvariantBroken, broken)
    }

    fn itself(&self, now: &MeterNow, page: &mut Page<'_>) -> fmt::Result {
        let engines = EngineState::ALL.map(|state| ([state.name()], exact(now.engines.of(state))));
        page.gauge(Metric::GatewayEngines, engines)?;
        let reload = self.reload.load();
        for (metric, value) in [
            (Metric::GatewayConnections, exact(now.connections)),
            (Metric::GatewayInFlight, exact(now.requests)),
            (Metric::GatewayHeld, exact(now.held_bytes)),
            (Metric::GatewayCacheBytes, exact(now.cached_bytes)),
            (Metric::GatewayDraining, f64::from(u8::from(now.draining))),
            (Metric::GatewayZombies, exact(now.zombies)),
            (Metric::GatewaySilentEngines, exact(now.silent_engines)),
            (Metric::GatewayCollectorAway, f64::from(u8::from(now.collector_away))),
            (Metric::GatewayOperatorAway, f64::from(u8::from(now.operator.away))),
            (Metric::GatewayOperatorDrains, exact(now.operator.drained)),
            (Metric::GatewayFailingWatches, exact(now.failing_watches)),
            (Metric::GatewayDoubtedModels, exact(now.doubted_models)),
            (Metric::GatewayCacheEventStreams, exact(now.kv_events.streams)),
            (Metric::GatewayReloadSuccessful, f64::from(u8::from(reload.successful))),
            (Metric::GatewayReloadTime, reload.good_since_seconds()),
        ] {
            page.gauge(metric, [(NO_LABELS, value)])?;
        }
        let names = LeftOutReason::NAMES.into_iter().zip(now.model_names.left_out);
        let names = [("served", now.model_names.served)].into_iter().chain(names);
        let names = names.map(|(state, count)| ([state], exact(count)));
        page.gauge(Metric::GatewayModelNames, names)?;
        self.tenants_now(now, page)?;
        let suspects = [("suspected", now.suspects.suspected), ("refused", now.suspects.refused)];
        let suspects = suspects.map(|(state, count)| ([state], exact(count)));
        page.gauge(Metric::GatewaySuspectPrompts, suspects)?;
        for (metric, count) in [
            (Metric::GatewayHedgesWon, now.recoveries.hedges_won),
            (Metric::GatewayCacheEvents, now.kv_events.batches),
            (Metric::GatewayCacheEventsMissed, now.kv_events.missed),
        ] {
            page.counter(metric, [(NO_LABELS, count)])?;
        }
        let tries = Came::ALL.iter().zip(now.operator.tries);
        page.counter(Metric::GatewayOperatorTries, tries.map(|(came, n)| ([came.name()], n)))?;
        let messages = ["sent", "received"].into_iter().zip(now.operator.messages);
        page.counter(Metric::GatewayOperatorMessages, messages.map(|(way, n)| ([way], n)))?;
        let refused = UnauthorizedReason::ALL.iter().zip(&self.totals.keys_refused);
        let refused = refused.map(|(why, count)| ([why.name()], get(count)));
        page.counter(Metric::GatewayKeysRefused, refused)?;
        let capped = ["model", "caller"].into_iter().zip(&self.totals.capped);
        page.counter(Metric::GatewayLabelsCapped, capped.map(|(label, n)| ([label], get(n))))?;
        let dropped = [("log", self.log_dropped()), ("span", self.spans_dropped())];
        page.counter(Metric::GatewayDropped, dropped.map(|(signal, n)| ([signal], n)))
    }
}

impl Meter {
    /// Who is let in by Tenants; nothing where they are not watched.
    #[expect(clippy::unused_self, reason = "all parts of the page are asked in one way")]
    fn tenants_now(&self, now: &MeterNow, page: &mut Page<'_>) -> fmt::Result {
        let report = now.tenants.as_ref().map(|tenants| &tenants.report);
        let by_state = report.into_iter().flat_map(|report| {
            [("accepted", report.accepted), ("refused", report.refused)]
                .map(|(state, count)| ([state], exact(count)))
        });
        page.gauge(Metric::GatewayTenants, by_state)?;
        let keys = report.into_iter().flat_map(|report| {
            [("accepted", report.keys), ("refused", report.refused_keys)]
                .map(|(state, count)| ([state], exact(count)))
        });
        page.gauge(Metric::GatewayTenantKeys, keys)?;
        let age = now.tenants.as_ref().and_then(|tenants| tenants.age);
        page.gauge(Metric::GatewayTenantsAge, age.map(|age| (NO_LABELS, age.as_secs_f64())))?;
        let sets = now.tenants.as_ref().map(|tenants| &tenants.key_sets);
        let ages = sets.into_iter().flat_map(|sets| sets.ages());
        let ages = ages.map(|(source, age)| ([source.name()], age.as_secs_f64()));
        page.gauge(Metric::GatewayKeySetAge, ages)?;
        let outcomes = sets.into_iter().flat_map(|sets| sets.outcomes());
        let outcomes = outcomes.map(|(source, came, n)| ([source.name(), came.name()], n));
        page.counter(Metric::GatewayKeySetFetches, outcomes)
    }
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Relaxed)
}

#[expect(clippy::cast_precision_loss, reason = "a last digit of many does not matter here")]
const fn long(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "gauges count what fits into memory")]
const fn exact(count: usize) -> f64 {
    count as f64
}
