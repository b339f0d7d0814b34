//! The server: all routes of the contract on a port, with an end to everything that a client can keep open.

mod accept;
mod accounts;
mod around;
mod crowd;
mod error;
#[cfg(test)]
mod fuzz;
mod heads;
mod hosts;
mod impatient;
mod options;
mod proxies;
mod public;
mod socket;
mod tls;
mod worded;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::header::{HOST, HeaderName, HeaderValue, STRICT_TRANSPORT_SECURITY};
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tenure::{Clock, Invalid, Tenure};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::access::last_used::LastUsed;
use crate::access::rates::Rates;
use crate::access::strangers::{Remote, Strangers};
use crate::access::{Access, NoGrant, Principal, ProxySignIn};
use crate::api::{Api, Rules};
use crate::audit::{AuditExport, AuditLog, Refusals};
use crate::bounded::bounded;
use crate::grants::Grants;
use crate::jobs::budget::WaitingJobs;
use crate::memory::Transfer;
use crate::metrics::KindLabels;
use crate::oidc::{Oidc, OidcOptions};
use crate::push::pusher::Pusher;
use crate::quota::Quotas;
use crate::routes;
use crate::spans::{Spans, firing};
use accept::{Accepted, Stream, accept};
use accounts::LocalUser;
pub(crate) use around::refuse_cross_site;
use crowd::{Crowd, Origin, Place};
pub use error::ServeError;
use heads::{Busy, Heads, Phase};
use hosts::Hosts;
use impatient::Impatient;
pub use options::Options;
use proxies::Proxies;
use public::Public;
use socket::Socket;
pub use socket::SocketFile;
pub use tls::{Tls, TlsError, TlsFiles};
use worded::Worded;

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: Option<TcpListener>,
    socket: Option<Socket>,
    address: SocketAddr,
    tenure: Tenure,
    options: Options,
    more: Router,
    strangers: Arc<Strangers>,
    tls: Option<Tls>,
    rates: Arc<Rates>,
    transfer: Transfer,
    waiting_jobs: WaitingJobs,
    last_used: Arc<LastUsed>,
    audit: Arc<AuditLog>,
    refusals: Arc<Refusals>,
}

impl Server {
    /// Starts to listen. Connections are answered once the server runs.
    ///
    /// # Errors
    /// The address is not available, it is reachable from other machines without authentication, or a file for TLS is
    /// invalid.
    pub async fn bind(tenure: &Tenure, mut options: Options) -> Result<Self, ServeError> {
        let address = options.bind;
        if !address.ip().is_loopback() && options.access == Access::Open {
            return Err(ServeError::Open(address));
        }
        if options.socket.is_some() && options.access == Access::Open {
            return Err(ServeError::OpenSocket);
        }
        if options.socket.is_none() && options.only_socket {
            return Err(ServeError::Nowhere);
        }
        let believes_proxy = options.access == Access::Tokens && !options.trusted_proxies.is_empty();
        if options.proxy_sign_in.is_some() && !believes_proxy {
            return Err(ServeError::ProxySignIn);
        }
        if options.socket.is_some() {
            options.grants = accounts::with_numbers(options.grants).map_err(ServeError::UnknownUser)?;
        }
        let clock = tenure.store().clock();
        let tls = options.tls.clone().map(|files| Tls::load(files, clock)).transpose()?;
        let refuse = |source| ServeError::Bind { address, source };
        let listener = match options.only_socket {
            true => None,
            false => Some(TcpListener::bind(address).await.map_err(refuse)?),
        };
        let bound = listener.as_ref().map(TcpListener::local_addr).transpose().map_err(refuse)?;
        let address = bound.unwrap_or(address);
        let refuse = |path, source| ServeError::Socket { path, source };
        let socket = options
            .socket
            .as_ref()
            .map(|file| Socket::bind(file).map_err(|source| refuse(file.path.clone(), source)));
        let socket = socket.transpose()?;
        let (tenure, strangers, refusals) = (tenure.clone(), Arc::default(), Arc::default());
        let audit = Arc::new(AuditLog::with_file(options.audit_file.clone()));
        let (more, rates, waiting_jobs) = (Router::new(), Arc::default(), WaitingJobs::default());
        let transfer = Transfer::of(options.transfer_memory_mib);
        Ok(Self {
            listener,
            socket,
            address,
            tenure,
            options,
            more,
            strangers,
            tls,
            rates,
            transfer,
            waiting_jobs,
            last_used: Arc::default(),
            audit,
            refusals,
        })
    }

    /// Returns the address it listens on, or would listen on if it did not listen only on a Unix socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the server's TLS, to reload its files on a signal.
    #[must_use]
    pub fn tls(&self) -> Option<Tls> {
        self.tls.clone()
    }

    /// Serves these routes as well, under the same rules for every request.
    #[must_use]
    pub fn merge(self, more: Router) -> Self {
        Self { more: self.more.merge(more), ..self }
    }

    /// Returns the API routes under the rules of this server, for pages in the same program that call them.
    pub fn contract(&self) -> Router {
        router(&Api::new(&self.tenure, self.rules(Spans::default())))
    }

    /// Creates a sign-in with an identity provider. It shares the server's public URL, grants, limits and audit log.
    ///
    /// # Errors
    /// An invalid setting.
    pub fn oidc(&self, options: OidcOptions) -> Result<Oidc, Invalid> {
        let api = Api::new(&self.tenure, self.rules(Spans::default()));
        Oidc::new(api, options, self.options.grants.clone())
    }

    /// Returns the API routes without authentication, for the program that runs this server, such as to apply its settings
    /// file. They share the server's audit log. Never serve them.
    pub fn own_contract(&self) -> Router {
        let rules = Rules { access: Access::Open, ..self.rules(Spans::default()) };
        router(&Api::new(&self.tenure, rules))
    }

    /// What holds for whoever asks.
    fn rules(&self, spans: Spans) -> Rules {
        Rules {
            access: self.options.access,
            is_owners: false,
            read_only: self.options.read_only,
            callbacks: self.options.egress.clone(),
            public_url: self.public_url(),
            hiding: self.options.hiding.clone(),
            kind_labels: if self.options.kinds_together { KindLabels::Together } else { KindLabels::Apart },
            spans,
            strangers: Arc::clone(&self.strangers),
            audit: Arc::clone(&self.audit),
            refusals: Arc::clone(&self.refusals),
            unknown_tokens_per_minute: Some(self.options.unknown_tokens_per_minute),
            quotas: Quotas {
                workers_per_token: self.options.workers_per_token,
                queues: self.options.max_queues,
                queues_per_token: self.options.queues_per_token,
                kinds_per_token: self.options.kinds_per_token,
                lease_names_per_token: self.options.lease_names_per_token,
            },
            rates: Arc::clone(&self.rates),
            transfer: self.transfer.clone(),
            last_used: Arc::clone(&self.last_used),
            waiting_jobs: self.waiting_jobs.clone(),
            items: None,
            ends_itself: true,
        }
    }

    /// The names under which it answers: those that were set, and the host of the public URL.
    fn hosts(&self) -> Hosts {
        let hosts = Hosts::new(&self.options.hosts);
        match &self.options.public_url {
            Some(url) => hosts.reached_at(url),
            None => hosts,
        }
    }

    /// Where others reach it, without a slash at the end.
    fn public_url(&self) -> String {
        let said = self.options.public_url.clone().unwrap_or_else(|| {
            if self.listener.is_none() {
                return "http://localhost".to_owned();
            }
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            format!("{scheme}://{}", self.address)
        });
        said.trim_end_matches('/').to_owned()
    }

    /// Serves until `stop` resolves. Then it reports that it is not ready, answers waiting clients after the delay,
    /// and gives requests in progress the grace period to finish.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (spans, telling_spans) = Spans::start(self.options.traces.as_ref(), &self.tenure.store().clock());
        let api = Api::new(&self.tenure, self.rules(spans));
        let hosts = self.hosts();
        let more = around::until_the_end(bounded(self.more, &api), &api);
        let app = around::wrapped(router(&api).merge(more), hosts, &api);
        let clock = self.tenure.store().clock();
        let export = self.options.audit_collector.clone().filter(|_| !api.is_read_only());
        let export = export.map(|collector| AuditExport::start(collector, &self.tenure, &self.audit));
        let firings = api.spans().is_on().then(|| tokio::spawn(firing::tell(api.clone())));
        let _telling = (!api.is_read_only()).then(|| UntilDropped::telling(&api));
        let _renewal = self.tls.clone().map(|tls| UntilDropped(tokio::spawn(tls.watch())));
        let pusher = (self.options.pushes && !api.is_read_only()).then(|| Pusher::start(&api));
        let (graceful, room) = (GracefulShutdown::new(), Arc::new(Semaphore::new(self.options.connections)));
        let (crowd, handshakes) = (Crowd::default(), Crowd::default());
        let proxies = Arc::new(Proxies::new(&self.options.trusted_proxies));
        let public = self.options.public_url.as_deref().map(Public::of);
        let people = self.options.proxy_sign_in.clone();
        let people = people.map(|people| Arc::new((people, self.options.grants.clone())));
        let arrival = Arrival { proxies, public, people };
        let grants = Arc::new(self.options.grants.clone());
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
                accepted = accept((self.listener.as_ref(), self.socket.as_ref()), &room, &*clock) => accepted,
            };
            let Accepted { stream, permit } = accepted;
            let Some(place) = crowd.enter(stream.origin(), self.options.connections_per_address) else {
                stream.turn_away(self.tls.is_some());
                continue;
            };
            let connection = Connection {
                app: app.clone(),
                arrival: arrival.clone(),
                clock: Arc::clone(&clock),
                head_within: self.options.head_within,
                idle: Idle::of(&self.options, &room),
                watcher: graceful.watcher(),
                places: (permit, place),
            };
            let read_within = self.options.read_within;
            let (stream, remote) = match stream {
                Stream::Tcp(stream, remote) => (stream, remote),
                Stream::Unix(stream, user, own) => {
                    let (grants, clock) = (Arc::clone(&grants), Arc::clone(&clock));
                    tokio::spawn(async move {
                        let found =
                            tokio::task::spawn_blocking(move || LocalUser::find(user, own, &grants)).await;
                        let Ok(found) = found else { return };
                        let peer = Peer { user: Some(found), ..Peer::default() };
                        connection.serve(Impatient::new(stream, clock, read_within), peer).await;
                    });
                    continue;
                }
            };
            // A response is complete when it is written: waiting for more only delays it.
            let _ = stream.set_nodelay(true);
            let Some(tls) = self.tls.clone() else {
                let stream = Impatient::new(stream, Arc::clone(&clock), read_within);
                let peer = Peer { remote: Some(remote), ..Peer::default() };
                tokio::spawn(connection.serve(stream, peer));
                continue;
            };
            let Some(handshake) = handshakes.enter(Origin::of(remote), HANDSHAKES_PER_ADDRESS) else {
                continue;
            };
            let (api, clock, grants) = (api.clone(), Arc::clone(&clock), Arc::clone(&grants));
            tokio::spawn(async move {
                let shaken = tokio::select! {
                    biased;
                    shaken = tls.handshake(stream, read_within, &grants) => shaken,
                    () = clock.sleep(connection.head_within) => None,
                    () = api.drained() => None,
                };
                drop(handshake);
                if let Some((stream, certificate)) = shaken {
                    let (remote, shown) = (Some(remote), certificate.clone());
                    let peer = Peer { remote, is_encrypted: true, certificate, user: None };
                    tokio::select! {
                        () = connection.serve(stream, peer) => {}
                        () = tls.until_invalid(shown) => {}
                    }
                }
            });
        }
        drop((self.listener, self.socket));
        api.drain();
        let answered = async {
            tokio::select! {
                biased;
                () = graceful.shutdown() => {}
                () = clock.sleep(self.options.grace) => tracing::warn!("requests still in progress after the grace period; closing them"),
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
        if let Some(export) = export {
            export.end(&*clock).await;
        }
        self.last_used.write(&self.tenure).await;
        telling_spans.end(&*clock).await;
    }
}

/// A task that ends when this is dropped.
struct UntilDropped(JoinHandle<()>);

impl UntilDropped {
    /// Makes deliveries for webhooks.
    fn telling(api: &Api) -> Self {
        let api = api.clone();
        Self(tokio::spawn(async move { api.teller().run(api.tenure(), api.recorder()).await }))
    }
}

impl Drop for UntilDropped {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// All routes.
fn router(api: &Api) -> Router {
    routes::router(routes::all(), api).with_state(api.served())
}

/// Path of requests to this server: trusted proxies and the public URL.
#[derive(Debug, Clone)]
struct Arrival {
    proxies: Arc<Proxies>,
    public: Option<Public>,
    people: Option<Arc<(ProxySignIn, Grants)>>,
}

impl Arrival {
    /// Notes the client's address and identity in a request, and the URL that the client used.
    fn note<B>(&self, request: &mut Request<B>, peer: &Peer) {
        if let Some(remote) = peer.remote {
            let client = self.proxies.client(remote, request.headers());
            request.extensions_mut().insert(client);
        }
        if let Some(user) = &peer.user {
            request.extensions_mut().insert(user.uid());
        }
        match peer.user.as_ref().map(|user| user.identity(request.headers())) {
            Some(Ok(principal)) => _ = request.extensions_mut().insert::<Principal>(principal),
            Some(Err(none)) => _ = request.extensions_mut().insert::<NoGrant>(none),
            None => {}
        }
        if let Some(tls::Shown { certificate, principal, .. }) = peer.certificate.clone() {
            request.extensions_mut().insert(certificate);
            principal.map(|principal| request.extensions_mut().insert(principal));
        }
        if let Some((people, grants)) = self.people.as_deref() {
            let is_trusted = peer.remote.is_some_and(|remote| self.proxies.are_at(remote));
            let person = people.take(request.headers_mut(), is_trusted, grants);
            person.map(|person| request.extensions_mut().insert(person));
        }
        let headers = request.headers_mut();
        if !peer.remote.is_some_and(|remote| self.proxies.are_at(remote)) {
            headers.remove(FORWARDED_PROTO);
        }
        if peer.is_encrypted && !headers.contains_key(FORWARDED_PROTO) {
            headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        }
        if let Some(public) = &self.public {
            public.address(request);
        }
    }
}

/// Longest time that a connection may be idle.
#[derive(Debug, Clone)]
struct Idle {
    room: Arc<Semaphore>,
    half: usize,
    usual: Duration,
    crowded: Duration,
}

impl Idle {
    fn of(options: &Options, room: &Arc<Semaphore>) -> Self {
        Self {
            room: Arc::clone(room),
            half: options.connections / 2,
            usual: options.idle_within,
            crowded: options.idle_within.min(options.head_within),
        }
    }

    /// Returns the shorter time while more than half of the connections are in use.
    fn within(&self) -> Duration {
        if self.room.available_permits() < self.half { self.crowded } else { self.usual }
    }
}

/// Bytes of a head. So much is kept at most of what a client sends before it is asked for.
const HEAD_BYTES: usize = 32 * 1024;
/// Headers of a request.
const HEADERS: usize = 100;

/// Scheme of the client's request, for the URLs and cookies of the response.
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// Maximum number of handshakes in progress per address, so that one address cannot use up all connections.
const HANDSHAKES_PER_ADDRESS: usize = 1_000;
/// Tells a browser to use only https for a year.
const ONLY_HTTPS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The other end of a connection.
#[derive(Debug, Clone, Default)]
struct Peer {
    /// Address of the client; `None` on a Unix socket.
    remote: Option<Remote>,
    is_encrypted: bool,
    certificate: Option<tls::Shown>,
    /// User of the client on a Unix socket.
    user: Option<LocalUser>,
}

/// A connection to be served.
struct Connection {
    app: Router,
    arrival: Arrival,
    clock: Arc<dyn Clock>,
    head_within: Duration,
    idle: Idle,
    watcher: Watcher,
    places: (OwnedSemaphorePermit, Place),
}

impl Connection {
    async fn serve<S>(self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Self { app, arrival, clock, head_within, idle, watcher, places } = self;
        // Only HTTP/1.1: detecting the version would wait for the client's first bytes without a limit.
        let mut builder = auto::Builder::new(TokioExecutor::new()).http1_only();
        let http1 = &mut builder.http1();
        // `Heads` has this timeout, because hyper's would also end connections that are idle between requests.
        http1.timer(TokioTimer::new()).header_read_timeout(None);
        http1.max_buf_size(HEAD_BYTES).max_headers(HEADERS);
        let (routes, phase) = (TowerToHyperService::new(app), Phase::new());
        let stream = Worded::new(Heads::new(stream, clock, head_within, phase.clone()), phase.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let serving = phase.serve(idle.within());
            arrival.note(&mut request, &peer);
            let only_https = peer.is_encrypted && !names_this_machine(&request);
            let response = routes.call(request);
            async move {
                let mut response = response.await?.map(|body| Busy::new(body, serving));
                if only_https {
                    response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, ONLY_HTTPS);
                }
                Ok::<_, Infallible>(response)
            }
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "connection closed with an error");
        }
        drop(places);
    }
}

/// Returns true if a request names `localhost`. A browser would use https for all other servers of the machine, too.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let host = request.headers().get(HOST).map_or(&b""[..], HeaderValue::as_bytes);
    host.get(..9).is_some_and(|host| host.eq_ignore_ascii_case(b"localhost"))
}
