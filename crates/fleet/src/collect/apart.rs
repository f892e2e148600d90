//! A gateway's side when the collector is apart: it says what it has where, and hears what all
//! engines have.

use super::messages::{BYTES, Hello, News, PATH, Reply};
use super::rounds::Pace;
use super::verifier::Verifier;
use super::verify::VerifiedEngine;
use super::within::Crew;
use super::{CollectionStatus, LoadSource};
use crate::fleet::FleetReport;
use crate::wire::{Question, Wire, WireError};
use bytes::Bytes;
use http::Method;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One gateway, as the collector sees it.
pub(super) struct Apart<'a> {
    fleet: &'a LoadSource,
    verifier: &'a Verifier,
    standing: &'a CollectionStatus,
    name: String,
    wire: Wire,
    crew: Crew,
    revision: u64,
}

impl<'a> Apart<'a> {
    pub(super) fn new(
        fleet: &'a LoadSource,
        verifier: &'a Verifier,
        standing: &'a CollectionStatus,
        collector: &str,
    ) -> Self {
        let name = name();
        let wire = Wire::new(authority(collector).to_owned());
        Self { fleet, verifier, standing, name, wire, crew: Crew::default(), revision: 0 }
    }

    /// Talks to the collector without end, until `until`; then says goodbye.
    pub(super) async fn talk(mut self, pace: Pace, until: impl Future<Output = ()>) {
        tokio::pin!(until);
        loop {
            let began = Instant::now();
            let hurry = self.once(pace, false).await;
            let pause = if hurry { pace.hurried } else { pace.interval };
            let (soon, next) = (began + pace.hurried, began + pause);
            tokio::select! {
                () = &mut until => break,
                () = tokio::time::sleep_until(next.into()) => {}
                // A cancel does not wait for the interval, but for the shorter one it does.
                () = self.verifier.wake.notified() => {
                    tokio::time::sleep_until(soon.into()).await;
                }
            }
        }
        self.once(pace, true).await;
    }

    /// Says what there is to say, takes in the answer, and tells whether to hurry.
    async fn once(&mut self, pace: Pace, leaving: bool) -> bool {
        if self.crew.renew(self.fleet) {
            // New engines may have been told of before they were known here.
            self.revision = 0;
        }
        let sent = Instant::now();
        let reply = self.ask(pace, leaving).await;
        let came = Instant::now();
        self.verifier.tidy(&(self.fleet)(), came);
        let away = self.standing.away.swap(reply.is_err(), Ordering::Relaxed);
        let hurry = match reply {
            Ok(reply) => {
                if away {
                    tracing::info!("collector recovered");
                }
                self.crew.reset_silence(came);
                self.revision = reply.revision;
                for (address, news) in reply.engines {
                    self.take(address, &news, sent, came);
                }
                reply.hurry
            }
            Err(error) => {
                if !away {
                    tracing::warn!(%error, "collector unreachable; routing uses this gateway's own counts");
                }
                self.crew.forget_old(came);
                false
            }
        };
        self.standing.set_silent(self.crew.silent(came));
        hurry
    }

    async fn ask(&mut self, pace: Pace, leaving: bool) -> Result<Reply, WireError> {
        let hello = Hello {
            gateway: self.name.clone(),
            in_flight: if leaving { Default::default() } else { self.crew.all_in_flight() },
            cancels: self.verifier.open().into_iter().collect(),
            since: self.revision,
            leaving,
        };
        let body =
            serde_json::to_vec(&hello).map_err(|_| WireError::Useless("cannot be written"))?;
        let question = Question {
            method: Method::POST,
            path: PATH.into(),
            body: Bytes::from(body),
            limit: BYTES,
            timeout: pace.timeout,
        };
        let body = self.wire.ask(&question).await?;
        serde_json::from_slice(&body).map_err(|_| WireError::Useless("not a collector's response"))
    }

    /// Ages become times of this clock: the question to the engine as early, its answer as late as
    /// can be.
    fn take(&mut self, address: SocketAddr, news: &News, sent: Instant, came: Instant) {
        let Some(load) = news.load else {
            self.crew.silence(address);
            return;
        };
        let report = FleetReport {
            running: load.running,
            waiting: load.waiting,
            kv_used_per_thousand: load.kv_used_per_thousand,
            context_tokens: load.context_tokens,
            known: news.proof.map(|proof| proof.known),
        };
        self.crew.report(address, came, Some(&report));
        let Some(proof) = news.proof else { return };
        let ago = Duration::from_millis;
        let Some(sent_at) = sent.checked_sub(ago(proof.sent_ago_ms)) else { return };
        let Some(answered) = came.checked_sub(ago(proof.came_ago_ms)) else { return };
        let seen =
            VerifiedEngine { sent: sent_at, came: answered, has: proof.has, known: proof.known };
        self.verifier.report(&(self.fleet)(), self.crew.of(address), &seen);
    }
}

/// Host and port of `http://host:port` or `host:port`.
fn authority(collector: &str) -> &str {
    let rest = collector.strip_prefix("http://").unwrap_or(collector);
    rest.split('/').next().unwrap_or(rest)
}

/// A name that no other gateway has and none had before: counts of two under one name would make
/// zombies out of live requests.
fn name() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "gateway".to_owned());
    let host: String = host.chars().take(253).collect();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{host}-{}-{}", std::process::id(), since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collector_is_named_with_or_without_a_scheme() {
        for text in [
            "http://collector.flyball:9091/",
            "http://collector.flyball:9091",
            "collector.flyball:9091",
        ] {
            assert_eq!(authority(text), "collector.flyball:9091");
        }
    }

    #[test]
    fn two_gateways_never_have_one_name() {
        assert_ne!(name(), name());
    }
}
