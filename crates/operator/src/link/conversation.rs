//! One conversation with a gateway.

use super::book::Refused;
use super::{GatewayLink, GivenOrders};
use flyball_resources::stream::{Down, Hello, Protocol, QuotaOrders, Up, Welcome};
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _, unfold};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, timeout};
use tonic::server::StreamingService;
use tonic::{Request, Response, Status, Streaming};

/// For the first word.
const HELLO: Duration = Duration::from_secs(5);

/// Between two words of ours.
const BEAT: Duration = Duration::from_secs(1);

/// Without a word for so long, the connection is given up.
const SILENT: Duration = Duration::from_secs(10);

/// After so long a gateway is asked to come again. Its token was judged when it came, and tokens and
/// accounts are taken back.
const LONGEST: Duration = Duration::from_mins(30);

/// Begins conversations.
pub(super) struct Talk {
    pub(super) link: Arc<GatewayLink>,
    /// Whether the operator ends.
    pub(super) closing: watch::Receiver<bool>,
}

struct Conversation {
    link: Arc<GatewayLink>,
    gateway: String,
    number: u64,
    inbound: Streaming<Up>,
    orders: watch::Receiver<Option<Arc<GivenOrders>>>,
    quota: mpsc::Receiver<QuotaOrders>,
    closing: watch::Receiver<bool>,
    beat: Interval,
    began: Instant,
    last_seen: Instant,
    is_welcome: bool,
    is_over: bool,
}

/// What happens in a conversation.
enum Event {
    /// The gateway said something, or hung up.
    Received(Result<Option<Box<Up>>, Status>),
    /// There are other orders.
    Ordered,
    /// There is an answer about quotas.
    Quota(QuotaOrders),
    /// Some time has passed.
    Beat,
    /// The operator ends.
    Ends,
}

impl StreamingService<Up> for Talk {
    type Response = Down;
    type ResponseStream = BoxStream<'static, Result<Down, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Up>>) -> Self::Future {
        let (link, closing) = (Arc::clone(&self.link), self.closing.clone());
        Box::pin(async move {
            let talk = Conversation::begin(link, closing, request.into_inner()).await?;
            let words = unfold(talk, |mut talk| async move {
                let word = talk.next().await?;
                Some((word, talk))
            });
            Ok(Response::new(words.boxed()))
        })
    }
}

impl Conversation {
    /// Waits for a hello that is understood.
    async fn begin(
        link: Arc<GatewayLink>,
        closing: watch::Receiver<bool>,
        mut inbound: Streaming<Up>,
    ) -> Result<Self, Status> {
        let first = timeout(HELLO, inbound.message()).await;
        let first = first.map_err(|_| Status::deadline_exceeded("no hello message in time"))??;
        let hello: Option<Hello> = first.and_then(|up| up.hello);
        let hello =
            hello.ok_or_else(|| Status::invalid_argument("the first message must be a hello"))?;
        let number = link.open(&hello).map_err(|refused| {
            tracing::warn!(gateway = hello.gateway, %refused, "gateway rejected");
            status(&refused)
        })?;
        tracing::info!(gateway = hello.gateway, version = hello.program, "gateway connected");
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (orders, now) = (link.orders.subscribe(), Instant::now());
        let quota = link.quota.join(&hello.gateway);
        Ok(Self {
            link,
            gateway: hello.gateway,
            number,
            inbound,
            orders,
            quota,
            closing,
            beat,
            began: now,
            last_seen: now,
            is_welcome: false,
            is_over: false,
        })
    }

    /// The next word of ours, while taking in theirs. `None` at the end.
    async fn next(&mut self) -> Option<Result<Down, Status>> {
        if self.is_over {
            return None;
        }
        if !self.is_welcome {
            self.is_welcome = true;
            return Some(Ok(self.welcome()));
        }
        loop {
            let event = tokio::select! {
                message = self.inbound.message() => Event::Received(message.map(|up| up.map(Box::new))),
                changed = self.orders.changed() => {
                    if changed.is_ok() { Event::Ordered } else { Event::Ends }
                }
                Some(quota) = self.quota.recv() => Event::Quota(quota),
                _ = self.beat.tick() => Event::Beat,
                _ = self.closing.wait_for(|closing| *closing) => Event::Ends,
            };
            match event {
                Event::Received(Ok(Some(up))) => {
                    self.last_seen = Instant::now();
                    if let Err(refused) = self.link.receive(&self.gateway, self.number, *up) {
                        return Some(self.end(status(&refused)));
                    }
                }
                // It has hung up. Its last word is kept.
                Event::Received(Ok(None)) => return None,
                Event::Received(Err(error)) => {
                    tracing::info!(gateway = self.gateway, %error, "gateway disconnected");
                    return None;
                }
                Event::Ordered => return Some(Ok(self.ordered())),
                Event::Quota(quota) => {
                    let (quota, holds) = (Some(quota), self.holds());
                    return Some(Ok(Down { quota, holds, ..Down::default() }));
                }
                Event::Beat if self.last_seen.elapsed() >= SILENT => {
                    let what = "no message for ten seconds";
                    return Some(self.end(Status::deadline_exceeded(what)));
                }
                Event::Beat if self.began.elapsed() >= LONGEST => return None,
                Event::Beat => return Some(Ok(Down { holds: self.holds(), ..Down::default() })),
                Event::Ends => {
                    return Some(
                        self.end(Status::unavailable("the operator is shutting down; reconnect")),
                    );
                }
            }
        }
    }

    fn welcome(&mut self) -> Down {
        let program = self.link.program.clone();
        let welcome = Some(Welcome { protocol: Some(Protocol::OURS), program });
        Down { welcome, ..self.ordered() }
    }

    /// The orders as they are now.
    fn ordered(&mut self) -> Down {
        let orders = self.orders.borrow_and_update().as_ref().map(|given| given.sent_now());
        let holds = orders.as_ref().map_or(0, |orders| orders.sequence);
        Down { orders, holds, ..Down::default() }
    }

    fn holds(&self) -> u64 {
        self.orders.borrow().as_ref().map_or(0, |given| given.orders.sequence)
    }

    fn end(&mut self, status: Status) -> Result<Down, Status> {
        self.is_over = true;
        Err(status)
    }
}

fn status(refused: &Refused) -> Status {
    let text = refused.to_string();
    match refused {
        Refused::Protocol(_) => Status::failed_precondition(text),
        Refused::Name => Status::invalid_argument(text),
        Refused::TooMany | Refused::TooMuch | Refused::Quota(_) => Status::resource_exhausted(text),
        Refused::Replaced => Status::aborted(text),
    }
}
