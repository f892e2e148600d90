//! An engine that runs, as tests and the command hold it.

use crate::engine::{EmulatedState, EngineLogRecord};
use crate::faults::Faults;
use crate::kv_events::{self, EventShape, Publisher};
use crate::serve::{self, Phase, Shared};
use crate::settings::EmulatorSettings;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Connections that wait to be accepted; what the kernel takes at most unless it was changed.
const BACKLOG: u32 = 4096;

/// How long `Running::stop` waits for requests under way.
const GRACE: Duration = Duration::from_secs(30);

/// Starts emulated engines.
#[derive(Clone, Copy, Debug)]
pub struct Emulator;

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings cannot be.
    #[error("{}; hint: correct the settings", .0.join("; "))]
    Settings(Vec<&'static str>),
    /// The port cannot be had.
    #[error("cannot listen on {address}: {error}; hint: another port")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// No thread could be started.
    #[error("cannot start a thread: {0}; hint: check the limits of this process")]
    Thread(io::Error),
}

impl Emulator {
    /// Starts one engine on the current runtime, which needs its timers and its sockets.
    pub fn start(settings: EmulatorSettings) -> Result<RunningEmulator, StartError> {
        let problems = settings.problems();
        if !problems.is_empty() {
            return Err(StartError::Settings(problems));
        }
        let address = settings.listen;
        let cannot = |error| StartError::Listen { address, error };
        let listener = listen(address).map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let events = settings.kv_events;
        let shared = Arc::new(Shared::new(settings));
        let (kv_events, telling) = match events {
            Some((port, shape)) => {
                let address = SocketAddr::new(address.ip(), port);
                let cannot = |error| StartError::Listen { address, error };
                let listener = listen(address).map_err(cannot)?;
                let address = listener.local_addr().map_err(cannot)?;
                (Some(address), Some(publish_events(Arc::clone(&shared), listener, shape)))
            }
            None => (None, None),
        };
        let core = Arc::clone(&shared.core);
        let thread = thread::Builder::new()
            .name(format!("engine-{}", address.port()))
            .spawn(move || core.drive())
            .map_err(StartError::Thread)?;
        let core = Arc::clone(&shared.core);
        let wake = tokio::spawn(async move { core.wake().await });
        let (phase, seen) = watch::channel(Phase::Open);
        let accept = tokio::spawn(serve::accept(listener, Arc::clone(&shared), seen));
        let thread = Some(thread);
        Ok(RunningEmulator { address, kv_events, shared, phase, accept, wake, telling, thread })
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted engine gets its port although old connections linger.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Tells whoever listens there about the cache.
fn publish_events(shared: Arc<Shared>, listener: TcpListener, shape: EventShape) -> JoinHandle<()> {
    let publisher = Arc::new(Publisher::new(shape, shared.core.block_tokens()));
    tokio::spawn(async move {
        let looking = async {
            loop {
                publisher.publish(&shared.core.changes(), shared.core.now());
                tokio::time::sleep(kv_events::EVERY).await;
            }
        };
        tokio::join!(looking, Arc::clone(&publisher).serve(listener));
    })
}

/// A running engine. Dropping it is like `Running::kill`.
#[derive(Debug)]
pub struct RunningEmulator {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it tells about its cache, if it does.
    pub kv_events: Option<SocketAddr>,
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    accept: JoinHandle<()>,
    wake: JoinHandle<()>,
    telling: Option<JoinHandle<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl RunningEmulator {
    /// Changes what goes wrong, for requests from now on. What cannot be is left as it was, and
    /// named.
    pub fn faults(&self, faults: Faults) -> Result<(), Vec<&'static str>> {
        let problems = faults.problems();
        if problems.is_empty() {
            self.shared.faults.set(faults);
            return Ok(());
        }
        Err(problems)
    }

    /// What can be seen from outside now.
    pub fn state(&self) -> EmulatedState {
        self.shared.core.state()
    }

    /// The last so many requests that ended, oldest first.
    pub fn log(&self, last: usize) -> Vec<EngineLogRecord> {
        self.shared.core.log(last)
    }

    /// Ends it kindly: no new connections, and those open end after the request under way. After
    /// half a minute the rest is cut off.
    pub async fn stop(mut self) {
        // Nobody listens only if all connections have ended.
        let _ = self.phase.send(Phase::Draining);
        let _ = tokio::time::timeout(GRACE, &mut self.accept).await;
    }

    /// Ends it at once, as `kill -9` would: all connections close in the middle of whatever they
    /// are at.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for RunningEmulator {
    fn drop(&mut self) {
        self.accept.abort();
        self.wake.abort();
        self.telling.iter().for_each(JoinHandle::abort);
        self.shared.core.stop();
        if let Some(thread) = self.thread.take() {
            // It has nothing to wait for any more; a panic of it was printed when it happened.
            let _ = thread.join();
        }
    }
}
