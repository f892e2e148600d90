//! An operator's link, a gateway that talks to it, and clients.

use flyball_engines::Engine;
use flyball_fleet::{FleetEndpoint, FoundEngines, Listing};
use flyball_gateway::link::{LinkNow, OperatorLink};
use flyball_gateway::meter::{Finished, RequestOutcome};
use flyball_gateway::serve::{self, Listener, RunningGateway};
use flyball_gateway::settings::{GatewaySettingsFile, Operator};
use flyball_gateway::wake::{self, Bell, OperatorOrHook};
use flyball_operator::link::{self as operator, Auth, GatewayReport};
use flyball_proving::http;
use flyball_proving::upstream::{Upstream, serve as serve_upstream};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// For anything to happen: only so that a test that hangs ends.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// An upstream whose streams have so many chunks at this pace.
pub(super) async fn upstream(chunks: u32, pace: Duration) -> SocketAddr {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let model = "mock".to_owned();
    tokio::spawn(serve_upstream(Upstream { listen: vec![address], model, chunks, pace }));
    while TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
    address
}

/// An operator, as far as gateways see it.
pub(super) struct Office {
    pub(super) link: Arc<operator::GatewayLink>,
    pub(super) address: SocketAddr,
    serving: JoinHandle<Result<(), operator::LinkError>>,
}

impl Office {
    pub(super) async fn open(auth: Auth) -> Self {
        Self::open_at("127.0.0.1:0".parse().unwrap(), auth).await
    }

    pub(super) async fn open_at(address: SocketAddr, auth: Auth) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let link = Arc::new(operator::GatewayLink::new());
        let serving = Arc::clone(&link).serve(listener, auth, std::future::pending());
        Self { link, address, serving: tokio::spawn(serving) }
    }

    /// Without a word.
    pub(super) async fn dies(self) {
        self.serving.abort();
        let ended = self.serving.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()));
    }

    /// The report of the only gateway, once it is so.
    pub(super) async fn report(&self, is_so: impl Fn(&GatewayReport) -> bool) -> GatewayReport {
        let looking = async {
            loop {
                let reports = self.link.reports(SystemTime::now()).reports;
                assert!(reports.len() <= 1);
                if let Some(report) = reports.into_iter().find(&is_so) {
                    return report;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("a gateway says so")
    }
}

/// What a gateway did.
struct Ear {
    finished: Mutex<Vec<Line>>,
    bell: Bell,
}

#[derive(Clone, Debug)]
struct Line {
    endpoint: Option<String>,
    outcome: RequestOutcome,
    stream: bool,
}

impl Listener for Ear {
    fn finished(&self, finished: &Finished<'_>) {
        self.finished.lock().unwrap().push(Line {
            endpoint: finished.endpoint.map(str::to_owned),
            outcome: finished.outcome,
            stream: finished.stream,
        });
    }

    fn wake(&self, model: &Arc<str>) {
        assert!(self.bell.ring(model));
    }

    fn cancelled(&self, _: &Arc<FleetEndpoint>) {}
}

/// A gateway for the model `mock`.
pub(super) struct Gateway {
    pub(super) running: Arc<RunningGateway>,
    pub(super) link: Arc<OperatorLink>,
    ear: Arc<Ear>,
    tasks: [JoinHandle<()>; 2],
}

impl Gateway {
    pub(super) fn start(engines: &[SocketAddr], operator: SocketAddr) -> Self {
        let address = format!("http://{operator}");
        Self::with(engines, Operator { address, ..Operator::default() })
    }

    pub(super) fn with(engines: &[SocketAddr], operator: Operator) -> Self {
        let mut settings = GatewaySettingsFile { threads: 1, ..GatewaySettingsFile::default() };
        settings.listen.set_port(0);
        // On a busy machine any engine may look slow.
        settings.recovery.hedge_per_thousand = 0;
        settings.operator = Some(operator.clone());
        let (bell, calls) = wake::bell();
        let ear = Arc::new(Ear { finished: Mutex::default(), bell });
        let running = serve::start(&settings, Arc::clone(&ear) as Arc<dyn Listener>).unwrap();
        let running = Arc::new(running);
        let link = OperatorLink::new(operator, Arc::clone(&running), "1.2.3").named("gateway-0");
        let link = Arc::new(link);
        let waker = OperatorOrHook { link: Some(Arc::clone(&link)), hook: None };
        let answering = tokio::spawn(wake::answer(calls, waker, |called| {
            assert_eq!(called.problem, None);
        }));
        let talks = Arc::clone(&link);
        let talking = tokio::spawn(async move { talks.talk(std::future::pending()).await });
        let gateway = Self { running, link, ear, tasks: [answering, talking] };
        gateway.list(engines);
        gateway
    }

    pub(super) fn list(&self, engines: &[SocketAddr]) {
        let found = engines.iter().map(|address| FoundEngines {
            name: address.to_string(),
            address: *address,
            draining: false,
            engine: Engine::Vllm,
            uid: None,
        });
        self.running.list(&Listing { models: [("mock".to_owned(), found.collect())].into() });
    }

    /// Asks, and gives the status once the answer is there whole.
    pub(super) fn asks(&self, stream: bool) -> JoinHandle<u16> {
        tokio::spawn(ask(self.running.address(), stream))
    }

    /// Asks one after the other until it is stopped.
    pub(super) fn asks_on(&self) -> Asking {
        let (address, stop) = (self.running.address(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut number = 0;
            while !stopped.load(Ordering::Relaxed) {
                assert_eq!(ask(address, number % 2 == 0).await, 200);
                number += 1;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            number
        });
        Asking { stop, task }
    }

    pub(super) fn in_flight(&self, address: SocketAddr) -> u32 {
        let fleet = self.running.fleet();
        let at = fleet.endpoints().filter(|endpoint| endpoint.address == address);
        at.map(|endpoint| endpoint.in_flight()).sum()
    }

    /// Whole answers of this engine.
    pub(super) fn answered_by(&self, address: SocketAddr, stream: bool) -> usize {
        let lines = self.ear.finished.lock().unwrap();
        let by = |line: &&Line| {
            line.endpoint.as_deref() == Some(&address.to_string())
                && line.stream == stream
                && line.outcome == RequestOutcome::Answered
        };
        lines.iter().filter(by).count()
    }

    pub(super) fn has_no_errors(&self) {
        let lines = self.ear.finished.lock().unwrap();
        let bad: Vec<_> =
            lines.iter().filter(|line| line.outcome != RequestOutcome::Answered).collect();
        assert!(!lines.is_empty() && bad.is_empty(), "{bad:?}");
    }

    pub(super) async fn until(&self, is_so: impl Fn(&LinkNow) -> bool) {
        let looking = async {
            while !is_so(&self.link.now()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let became = tokio::time::timeout(PATIENCE, looking).await;
        assert!(became.is_ok(), "{:?}", self.link.now());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Somebody who asks.
pub(super) struct Asking {
    stop: Arc<AtomicBool>,
    task: JoinHandle<u64>,
}

impl Asking {
    /// How many were asked.
    pub(super) async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn ask(address: SocketAddr, stream: bool) -> u16 {
    let body = format!(
        "{{\"model\":\"mock\",\"stream\":{stream},\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
    );
    let connection = http::post(address, "/v1/chat/completions", &body).await.unwrap();
    let answer = tokio::time::timeout(PATIENCE, http::whole(connection)).await;
    let answer = answer.expect("an end").unwrap();
    assert!(!stream || answer.body.contains("[DONE]"), "{answer:?}");
    answer.status
}
