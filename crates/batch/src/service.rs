//! The process: an address for clients, a worker in a thread of its own, and a sweep now and then.
//!
//! The worker waits for the store and reads whole files; in its own thread it keeps nobody else waiting.

use crate::api::{Api, Callers};
use crate::lease::StoreLeases;
use crate::lines::GatewayLines;
use crate::settings::BatchSettings;
use crate::state::PatientStore;
use crate::worker::{Worker, WorkerLimits, drive, now, sweep};
use flyball_ledger::store::{FolderStore, Store};
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Connections of clients at once.
const CONNECTIONS: usize = 256;

/// Time for the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// Time for answers to end once the process is to stop.
const DRAIN: Duration = Duration::from_secs(20);

/// Between two sweeps.
const SWEEP: Duration = Duration::from_secs(60 * 60);

/// Why files and batches cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct BatchServiceError {
    what: String,
    source: io::Error,
}

fn failed(what: impl ToString) -> impl FnOnce(io::Error) -> BatchServiceError {
    move |source| BatchServiceError { what: what.to_string(), source }
}

/// Serves until SIGTERM or SIGINT, then hands over what it has.
pub fn run(settings: &BatchSettings) -> Result<(), BatchServiceError> {
    let store = FolderStore::open(&settings.store)
        .map_err(failed(format!("cannot use the folder {}", settings.store.display())))?;
    let store = Arc::new(PatientStore(store));
    let lines = Arc::new(GatewayLines::new(&settings.gateway, keys(settings)?));
    let callers = settings.callers.iter().map(|one| (one.sha256, one.tenant.clone())).collect();
    let callers = Callers::new(callers, settings.is_open());
    let retention = settings.retention_days * 24 * 60 * 60;
    let api = Arc::new(Api::new(Arc::clone(&store), callers, retention));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .build()
        .map_err(failed("no runtime"))?;
    let (stop, stopped) = watch::channel(false);
    let limits = WorkerLimits { lines: settings.lines, batches: settings.batches };
    let worker = begin_work(Arc::clone(&store), lines, limits, stopped.clone())?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(settings.listen)
            .await
            .map_err(failed(format!("cannot listen on {}", settings.listen)))?;
        let address = listener.local_addr().unwrap_or(settings.listen);
        tracing::info!(%address, gateway = settings.gateway, "files and batches are served");
        let until = until_stopped().map_err(failed("cannot install signal handlers"))?;
        let stopping = async {
            until.await;
            stop.send_replace(true);
            std::future::pending().await
        };
        tokio::select! {
            () = accept(listener, api, stopped) => {}
            () = stopping => {}
            () = sweep_now_and_then(&*store) => {}
        }
        Ok(())
    });
    stop.send_replace(true);
    // It stores what it has first, so that nothing is sent again.
    let is_handed_over = worker.join().is_ok();
    tracing::info!(is_handed_over, "files and batches are not served any more");
    served
}

/// The keys that are shown to the gateway.
fn keys(settings: &BatchSettings) -> Result<BTreeMap<String, HeaderValue>, BatchServiceError> {
    let mut keys = BTreeMap::new();
    for caller in &settings.callers {
        let Some(file) = &caller.gateway_key_file else { continue };
        let wrong = |_| io::Error::other("it is not a key");
        let value = std::fs::read_to_string(file).and_then(|text| {
            HeaderValue::try_from(format!("Bearer {}", text.trim())).map_err(wrong)
        });
        let mut value = value.map_err(failed(format!("cannot read {}", file.display())))?;
        value.set_sensitive(true);
        keys.insert(caller.tenant.clone(), value);
    }
    Ok(keys)
}

fn begin_work(
    store: Arc<impl Store + 'static>,
    lines: Arc<GatewayLines>,
    limits: WorkerLimits,
    mut stopped: watch::Receiver<bool>,
) -> Result<thread::JoinHandle<()>, BatchServiceError> {
    let generator = SystemRandom::new();
    let random = move || {
        let mut bytes = [0; 8];
        // Without random numbers ids are those of the time alone, and a name that is taken stays whose it is.
        let _ = generator.fill(&mut bytes);
        bytes
    };
    let (process, number) = (std::process::id(), u64::from_be_bytes(random()));
    let name = format!("{process}-{number:016x}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed("no runtime"))?;
    let leases = StoreLeases::new(Arc::clone(&store), &name);
    let worker = Worker::new(store, leases, &name, limits, Box::new(random));
    let work = move || {
        runtime.block_on(drive(worker, lines, async move {
            // Its sender lives as long as the process.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }));
    };
    thread::Builder::new().name("batches".to_owned()).spawn(work).map_err(failed("no thread"))
}

async fn sweep_now_and_then(store: &impl Store) {
    loop {
        match sweep(store, now()).await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "files are over and erased"),
            Err(error) => tracing::warn!(%error, "cannot erase files that are over; retrying"),
        }
        tokio::time::sleep(SWEEP).await;
    }
}

/// Answers until it is to stop, and then what is under way.
async fn accept<S: Store + 'static>(
    listener: TcpListener,
    api: Arc<Api<S>>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, Arc::clone(&api), stopped.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                // Out of file descriptors, most likely: trying at once would only burn a core.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // Each has its own time to end.
    while connections.join_next().await.is_some() {}
}

async fn connection<S: Store + 'static>(
    stream: TcpStream,
    api: Arc<Api<S>>,
    mut stopped: watch::Receiver<bool>,
) {
    // A failure here is one of the connection, which then says so itself.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let api = Arc::clone(&api);
        async move { Ok::<_, Infallible>(api.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(DRAIN, connection).await;
}

/// SIGTERM or SIGINT.
fn until_stopped() -> io::Result<impl Future<Output = ()>> {
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}
