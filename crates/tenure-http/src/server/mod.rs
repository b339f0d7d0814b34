//! The server: all routes of the contract on a port, with an end to everything that a client can keep open.

mod around;
mod crowd;
mod hosts;
mod impatient;
mod worded;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tenure::{Clock, Tenure};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::access::Access;
use crate::access::strangers::{Remote, Strangers};
use crate::api::{Api, Rules};
use crate::callbacks::Network;
use crate::callbacks::address::Allowed;
use crate::hide::Hiding;
use crate::metrics::KindLabels;
use crate::push::pusher::Pusher;
use crate::routes;
use crate::spans::{Spans, Traces, firing};
use crowd::{Crowd, Place, turn_away};
use hosts::Hosts;
use impatient::Impatient;
use worded::Worded;

/// How a server listens and ends.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Where it listens. Only this machine can reach it unless this says otherwise.
    pub bind: SocketAddr,
    /// Names by which it may be addressed beside those of this machine itself, without a port.
    pub hosts: Vec<String>,
    /// Whether whoever asks has to say who he is.
    pub access: Access,
    /// Nothing may be changed through it.
    pub read_only: bool,
    /// Addresses that webhooks may name although they are not public. [`deliveries`](crate::deliveries) is told the same.
    pub allow_callback_to: Vec<Network>,
    /// Whether jobs are sent to push endpoints from here.
    pub pushes: bool,
    /// Where others reach this server, such as `https://jobs.example.com`; by the address on which it listens, if nothing is
    /// said.
    pub public_url: Option<String>,
    /// Which values are hidden from those who only look.
    pub hiding: Hiding,
    /// Whether metrics count the kinds of a queue together, for a store with very many of them.
    pub kinds_together: bool,
    /// Where it is told what jobs go through, if anywhere.
    pub traces: Option<Traces>,
    /// How long a client may take to send the head of a request.
    pub head_within: Duration,
    /// How long a client may read nothing of what is sent to it.
    pub read_within: Duration,
    /// Connections at once. Who comes beyond that waits until one is given up.
    pub connections: usize,
    /// Connections at once from one address, of version 6 from one network of 64 bits. Who comes beyond that is turned away. No
    /// proxy is believed: all who stand behind one have its address.
    pub connections_per_address: usize,
    /// Access tokens that nobody knows from one address in a minute. Beyond that none is looked up that is not known already.
    pub unknown_tokens_per_minute: u32,
    /// How long it goes on answering after it was told to stop, and says that it is not ready: so long whoever sends requests
    /// here may need to notice.
    pub drain_delay: Duration,
    /// How long what is under way may take when it is to end.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 8368)),
            hosts: Vec::new(),
            access: Access::default(),
            read_only: false,
            allow_callback_to: Vec::new(),
            pushes: true,
            public_url: None,
            hiding: Hiding::default(),
            kinds_together: false,
            traces: None,
            head_within: Duration::from_secs(10),
            read_within: Duration::from_secs(30),
            connections: 20_000,
            connections_per_address: 15_000,
            unknown_tokens_per_minute: 60,
            drain_delay: Duration::ZERO,
            grace: Duration::from_secs(25),
        }
    }
}

/// Why it does not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("{address} cannot be listened on: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// Anybody could reach it, and nobody would be asked who he is.
    #[error(
        "{0} can be reached from other machines, and nobody would be asked who he is; ask for access tokens \
         (--auth tokens), or bind to 127.0.0.1"
    )]
    Open(SocketAddr),
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tenure: Tenure,
    options: Options,
    more: Router,
    strangers: Arc<Strangers>,
}

impl Server {
    /// Begins to listen. Who connects from now on is answered once it runs.
    ///
    /// # Errors
    /// The address cannot be had, or other machines could reach it.
    pub async fn bind(tenure: &Tenure, options: Options) -> Result<Self, ServeError> {
        let address = options.bind;
        if !address.ip().is_loopback() && options.access == Access::Open {
            return Err(ServeError::Open(address));
        }
        let refuse = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let (tenure, strangers) = (tenure.clone(), Arc::default());
        Ok(Self { listener, address, tenure, options, more: Router::new(), strangers })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves these routes as well. What holds for every request holds for them, too.
    #[must_use]
    pub fn merge(self, more: Router) -> Self {
        Self { more: self.more.merge(more), ..self }
    }

    /// The routes of the contract by what holds for this server, for pages in the same program that ask them.
    pub fn contract(&self) -> Router {
        router(&Api::new(&self.tenure, self.rules(Spans::default())))
    }

    /// What holds for whoever asks.
    fn rules(&self, spans: Spans) -> Rules {
        Rules {
            access: self.options.access,
            read_only: self.options.read_only,
            callbacks: Allowed::new(self.options.allow_callback_to.clone()),
            public_url: self.public_url(),
            hiding: self.options.hiding.clone(),
            kind_labels: if self.options.kinds_together { KindLabels::Together } else { KindLabels::Apart },
            spans,
            strangers: Arc::clone(&self.strangers),
            unknown_tokens_per_minute: Some(self.options.unknown_tokens_per_minute),
        }
    }

    /// Where others reach it, without a slash at the end.
    fn public_url(&self) -> String {
        let said = self.options.public_url.clone().unwrap_or_else(|| format!("http://{}", self.address));
        said.trim_end_matches('/').to_owned()
    }

    /// Serves until `stop`. From then on it says that it is not ready; after the delay whoever waits is answered, and what is
    /// under way has the grace to end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (spans, telling_spans) = Spans::start(self.options.traces.as_ref(), &self.tenure.store().clock());
        let api = Api::new(&self.tenure, self.rules(spans));
        let more = around::until_the_end(self.more, &api);
        let app = around::wrapped(router(&api).merge(more), Hosts::new(&self.options.hosts), &api);
        let clock = self.tenure.store().clock();
        let firings = api.spans().is_on().then(|| tokio::spawn(firing::tell(api.clone())));
        let _telling = (!api.is_read_only()).then(|| Telling::start(&api));
        let pusher = (self.options.pushes && !api.is_read_only()).then(|| Pusher::start(&api));
        let (graceful, room) = (GracefulShutdown::new(), Arc::new(Semaphore::new(self.options.connections)));
        let crowd = Crowd::default();
        let stop = async {
            stop.await;
            api.leave();
            clock.sleep(self.options.drain_delay).await;
        };
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accept(&self.listener, &room, &*clock) => accepted,
            };
            let Accepted { stream, remote, permit } = accepted;
            match crowd.enter(remote, self.options.connections_per_address) {
                Some(place) => {
                    let accepted = (stream, remote, (permit, place));
                    serve(accepted, &app, &graceful, (&self.options, &clock));
                }
                None => turn_away(stream),
            }
        }
        drop(self.listener);
        api.drain();
        let answered = async {
            tokio::select! {
                biased;
                () = graceful.shutdown() => {}
                () = clock.sleep(self.options.grace) => tracing::warn!("what was under way has not ended in time"),
            }
        };
        let pushed = async {
            if let Some(pusher) = &pusher {
                pusher.end(self.options.grace).await;
            }
        };
        tokio::join!(answered, pushed);
        if let Some(firings) = firings {
            firings.abort();
        }
        telling_spans.end(&*clock).await;
    }
}

/// What makes deliveries for webhooks, until it is dropped.
struct Telling(JoinHandle<()>);

impl Telling {
    fn start(api: &Api) -> Self {
        let api = api.clone();
        Self(tokio::spawn(async move { api.teller().run(api.tenure(), api.recorder()).await }))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// All routes.
fn router(api: &Api) -> Router {
    routes::router(routes::all(), api).with_state(api.served())
}

/// A connection, and where it comes from.
struct Accepted {
    stream: TcpStream,
    remote: Remote,
    permit: OwnedSemaphorePermit,
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>, clock: &dyn Clock) -> Accepted {
    /// How long nobody is accepted after the system has refused one: it may have no more files.
    const AFTER_ERROR: Duration = Duration::from_millis(100);
    loop {
        let Ok(permit) = Arc::clone(room).acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, remote)) => return Accepted { stream, remote: Remote(remote.ip()), permit },
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                clock.sleep(AFTER_ERROR).await;
            }
        }
    }
}

/// Bytes of a head. So much is kept at most of what a client sends before it is asked for.
const HEAD_BYTES: usize = 32 * 1024;
/// Headers of a request.
const HEADERS: usize = 100;

fn serve(
    (stream, remote, places): (TcpStream, Remote, (OwnedSemaphorePermit, Place)),
    app: &Router,
    graceful: &GracefulShutdown,
    (options, clock): (&Options, &Arc<dyn Clock>),
) {
    // What is answered is whole: to wait for more of it only makes it late.
    let _ = stream.set_nodelay(true);
    // One version only: to find out which one a client speaks, somebody would have to wait for its first words without end.
    let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
    let http1 = &mut builder.http1();
    http1.timer(TokioTimer::new()).header_read_timeout(options.head_within);
    http1.max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let routes = TowerToHyperService::new(app.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(remote);
        routes.call(request)
    });
    let connection = builder
        .serve_connection(
            TokioIo::new(Worded::new(Impatient::new(stream, Arc::clone(clock), options.read_within))),
            service,
        )
        .into_owned();
    let watched = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = watched.await {
            tracing::debug!(%error, "a connection broke off");
        }
        drop(places);
    });
}
