//! Whether a watch is well, and what it tells next.

use super::mirror::Step;
use super::{DiscoveryStatus, Failing, Noted};
use futures::stream::{BoxStream, StreamExt as _};
use kube::ResourceExt;
use kube_runtime::watcher::{self, Event};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A watch that failed and has said nothing for so long is well again: failing, it would have
/// failed again (pauses grow to 30 s, connecting takes at most 30 s).
const RECOVERED: Duration = Duration::from_secs(90);

/// Whether a watch is well. Its troubles are logged when they begin and when they end.
pub(super) struct Pulse<'a> {
    what: String,
    models: Arc<BTreeSet<String>>,
    standing: &'a DiscoveryStatus,
    /// While it is not.
    unwell: Option<Noted<'a>>,
}

impl<'a> Pulse<'a> {
    pub(super) fn new(
        what: String,
        models: Arc<BTreeSet<String>>,
        standing: &'a DiscoveryStatus,
    ) -> Self {
        Self { what, models, standing, unwell: None }
    }

    /// The next step that the watch of one namespace tells. Failures are waited out here.
    pub(super) async fn next<K: ResourceExt, T>(
        &mut self,
        stream: &mut BoxStream<'_, watcher::Result<Event<K>>>,
        reduce: impl Fn(&K) -> Option<T>,
    ) -> Step<T> {
        self.next_keyed(stream, ResourceExt::name_any, reduce).await
    }

    /// The same, where names are those of several namespaces.
    pub(super) async fn next_keyed<K, T>(
        &mut self,
        stream: &mut BoxStream<'_, watcher::Result<Event<K>>>,
        key: impl Fn(&K) -> String,
        reduce: impl Fn(&K) -> Option<T>,
    ) -> Step<T> {
        loop {
            let next = if self.unwell.is_some() {
                match tokio::time::timeout(RECOVERED, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        self.turn(None);
                        continue;
                    }
                }
            } else {
                stream.next().await
            };
            match next {
                Some(Ok(event)) => {
                    self.turn(None);
                    return step(event, key, reduce);
                }
                Some(Err(error)) => self.turn(Some(&error)),
                // A watcher has no end. If it had one, the last listing would stay.
                None => std::future::pending().await,
            }
        }
    }

    fn turn(&mut self, trouble: Option<&watcher::Error>) {
        match (trouble, self.unwell.is_some()) {
            (Some(error), false) => {
                let (hint, models) = (hint(error), first_names(&self.models));
                tracing::warn!(watch = self.what, models, %error, hint, "engine discovery failed; keeping the previous list");
                let (models, error) = (Arc::clone(&self.models), error.to_string());
                let failing = Failing { models, error, hint };
                self.unwell = Some(self.standing.note(&self.what, failing));
            }
            (None, true) => {
                tracing::info!(watch = self.what, "engine discovery recovered");
                self.unwell = None;
            }
            _ => {}
        }
    }
}

/// Some of the models that a line of the log is about.
fn first_names(models: &BTreeSet<String>) -> String {
    let mut names: Vec<_> = models.iter().take(8).map(String::as_str).collect();
    if models.len() > names.len() {
        names.push("...");
    }
    names.join(", ")
}

fn step<K, T>(
    event: Event<K>,
    key: impl Fn(&K) -> String,
    reduce: impl Fn(&K) -> Option<T>,
) -> Step<T> {
    match event {
        Event::Init => Step::Start,
        Event::InitDone => Step::Done,
        Event::InitApply(object) | Event::Apply(object) => Step::Put(key(&object), reduce(&object)),
        Event::Delete(object) => Step::Drop(key(&object)),
    }
}

fn hint(error: &watcher::Error) -> &'static str {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    match code {
        401 | 403 => "the Role in docs/guides/gateway.md has the required permissions",
        404 => {
            "is the kind installed? ModelService and Tenant come with the chart flyball-crds, InferencePool with the \
             Gateway API Inference Extension"
        }
        _ => "it retries until it succeeds",
    }
}
