//! Tells somebody that a model is wanted which has no engine.
//!
//! A gateway never starts an engine itself. It calls [`Waker`] once per sleep, whoever that is: a URL,
//! a folder that something watches, or the operator, which is told first if there is one. The queue sees to
//! it that it is once. Calls do not wait for each other: one that hangs is one model's own.

use crate::link::OperatorLink;
use crate::settings;
use bytes::Bytes;
use flyball_fleet::wire::{Question, Wire};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use http::{Method, Uri};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Calls that wait to be made. One per model and sleep, so that this is many models at once.
const CALLS: usize = 1_024;

/// Calls under way at once.
const AT_ONCE: usize = 64;

/// For one try of a call.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Tries of a call, with twice the pause each time: 15 s in all, then the queue calls again.
const TRIES: u32 = 4;

const PAUSE: Duration = Duration::from_secs(1);

/// Whoever can see to it that a model gets an engine.
pub trait Waker: Send + Sync {
    /// The model is wanted. To be called again if it fails.
    fn wake(&self, model: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// The waker that the settings name.
#[derive(Debug)]
pub struct Hook(Way);

#[derive(Debug)]
enum Way {
    /// A POST to a place and its path.
    Url { authority: String, path: String },
    /// A file per model.
    Folder(PathBuf),
}

/// Where calls are put.
#[derive(Clone, Debug)]
pub struct Bell(mpsc::Sender<String>);

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The model.
    pub model: String,
    /// Why it failed, if it did.
    pub problem: Option<String>,
}

impl Hook {
    /// The one of these settings.
    pub fn of(settings: &settings::WakerSettings) -> Option<Self> {
        if let Some(folder) = &settings.folder {
            return Some(Self(Way::Folder(folder.clone())));
        }
        let uri: Uri = settings.url.as_ref()?.parse().ok()?;
        let host = uri.host()?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Some(Self(Way::Url { authority, path }))
    }
}

impl Waker for Hook {
    async fn wake(&self, model: &str) -> Result<(), String> {
        let body = serde_json::json!({"model": model}).to_string();
        match &self.0 {
            Way::Url { authority, path } => {
                let question = Question {
                    method: Method::POST,
                    path: path.clone().into(),
                    body: Bytes::from(body),
                    limit: 64 << 10,
                    timeout: TIMEOUT,
                };
                let answered = Wire::new(authority.clone()).ask(&question).await;
                answered.map(drop).map_err(|problem| problem.to_string())
            }
            Way::Folder(folder) => {
                // A folder of another machine can hang, and this thread has more to do.
                let (folder, model) = (folder.clone(), model.to_owned());
                let writing = tokio::task::spawn_blocking(move || write(&folder, &model, &body));
                match tokio::time::timeout(TIMEOUT, writing).await {
                    Ok(Ok(written)) => written.map_err(|error| error.to_string()),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err("the folder did not respond in time".to_owned()),
                }
            }
        }
    }
}

/// The operator if it hears, or else the hook of the settings.
#[derive(Debug)]
pub struct OperatorOrHook {
    /// To the operator.
    pub link: Option<Arc<OperatorLink>>,
    /// What the settings name.
    pub hook: Option<Hook>,
}

impl Waker for OperatorOrHook {
    async fn wake(&self, model: &str) -> Result<(), String> {
        let sent = self.link.as_ref().map(|link| link.wake(model));
        match (sent, &self.hook) {
            (Some(Ok(())), _) => Ok(()),
            (_, Some(hook)) => hook.wake(model).await,
            (Some(Err(away)), None) => Err(away),
            (None, None) => Err("no waker is configured".to_owned()),
        }
    }
}

/// A new bell, and what rings when it is pressed.
pub fn bell() -> (Bell, mpsc::Receiver<String>) {
    let (send, calls) = mpsc::channel(CALLS);
    (Bell(send), calls)
}

impl Bell {
    /// The model is wanted. False if too many calls wait.
    pub fn ring(&self, model: &str) -> bool {
        self.0.try_send(model.to_owned()).is_ok()
    }
}

/// Makes calls until there is no bell any more, and tells what became of each.
pub async fn answer(
    mut calls: mpsc::Receiver<String>,
    waker: impl Waker,
    mut report: impl FnMut(&Called),
) {
    let mut under_way = FuturesUnordered::new();
    let mut models = BTreeSet::new();
    loop {
        tokio::select! {
            Some(model) = calls.recv(), if under_way.len() < AT_ONCE => {
                // One that is being called need not be called.
                if models.insert(model.clone()) {
                    under_way.push(call(&waker, model));
                }
            }
            Some(called) = under_way.next() => {
                models.remove(&called.model);
                report(&called);
            }
            else => return,
        }
    }
}

async fn call(waker: &impl Waker, model: String) -> Called {
    let mut called = waker.wake(&model).await;
    for again in 1..TRIES {
        if called.is_ok() {
            break;
        }
        tokio::time::sleep(PAUSE * (1 << (again - 1))).await;
        called = waker.wake(&model).await;
    }
    Called { model, problem: called.err() }
}

/// Written beside and renamed, so that nobody reads half of it. The name is a hash: models have
/// slashes in theirs.
fn write(folder: &Path, model: &str, body: &str) -> std::io::Result<()> {
    let name = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(model.as_bytes()));
    let (half, whole) = (folder.join(format!(".{name}")), folder.join(format!("{name}.json")));
    std::fs::write(&half, body)?;
    std::fs::rename(half, whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tokio::time::Instant;

    /// Fails so often, and hangs for those of this name.
    #[derive(Default)]
    struct Flaky {
        fails: usize,
        hangs: &'static str,
        calls: Mutex<Vec<String>>,
    }

    impl Waker for &Flaky {
        async fn wake(&self, model: &str) -> Result<(), String> {
            let before = {
                let mut calls = self.calls.lock().unwrap();
                calls.push(model.to_owned());
                calls.len() - 1
            };
            if model == self.hangs {
                std::future::pending::<()>().await;
            }
            if before < self.fails { Err("away".to_owned()) } else { Ok(()) }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_fails_is_made_again_and_not_for_ever() {
        for (fails, calls, problem) in [(0, 1, None), (2, 3, None), (9, 4, Some("away"))] {
            let flaky = Flaky { fails, ..Flaky::default() };
            let (bell, rung) = bell();
            assert!(bell.ring("m"));
            drop(bell);
            let mut reported = Vec::new();
            answer(rung, &flaky, |called| reported.push(called.clone())).await;
            assert_eq!(flaky.calls.lock().unwrap().len(), calls);
            assert_eq!(
                reported,
                [Called { model: "m".into(), problem: problem.map(str::to_owned) }]
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_hangs_keeps_no_other_waiting_and_is_not_made_twice() {
        let flaky = Flaky { hangs: "bad", ..Flaky::default() };
        let (bell, rung) = bell();
        assert!(["bad", "m1", "bad", "m2"].iter().all(|model| bell.ring(model)));
        let mut reported = Vec::new();
        let answering = answer(rung, &flaky, |called| reported.push(called.model.clone()));
        assert!(tokio::time::timeout(Duration::from_secs(60), answering).await.is_err());
        reported.sort();
        assert_eq!(reported, ["m1", "m2"]);
        assert_eq!(*flaky.calls.lock().unwrap(), ["bad", "m1", "m2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_fails_keeps_no_other_waiting() {
        let flaky = Flaky { fails: 1, ..Flaky::default() };
        let (bell, rung) = bell();
        assert!(["first", "second"].iter().all(|model| bell.ring(model)));
        drop(bell);
        let (mut reported, begun) = (Vec::new(), Instant::now());
        answer(rung, &flaky, |called| reported.push((called.model.clone(), begun.elapsed()))).await;
        let [now, second] = [Duration::ZERO, PAUSE];
        assert_eq!(reported, [("second".to_owned(), now), ("first".to_owned(), second)]);
    }

    #[tokio::test]
    async fn a_folder_gets_a_file_that_names_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let hook = Hook(Way::Folder(folder.path().to_owned()));
        hook.wake("org/model").await.unwrap();
        hook.wake("org/model").await.unwrap();
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        let text = std::fs::read_to_string(files[0].path()).unwrap();
        assert_eq!(text, r#"{"model":"org/model"}"#);
        assert!(Hook(Way::Folder("/no/such/folder".into())).wake("m").await.is_err());
    }
}
