//! Options of a server, with their defaults.

use std::net::SocketAddr;
use std::time::Duration;

use super::{SocketFile, TlsFiles};
use crate::access::{Access, ProxySignIn};
use crate::audit::AuditFile;
use crate::callbacks::{Egress, Network};
use crate::grants::Grants;
use crate::hide::Hiding;
use crate::memory;
use crate::otlp::Collector;
use crate::quota;
use crate::spans::Traces;

/// Options of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Address to listen on; default: loopback only.
    pub bind: SocketAddr,
    /// Unix socket to listen on as well, for local users with a grant. It requires [`Access::Tokens`].
    pub socket: Option<SocketFile>,
    /// Listens only on the Unix socket, not on `bind`.
    pub only_socket: bool,
    /// Certificate and key of a server that speaks TLS. Default: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Additional host names under which the server may be addressed, without a port.
    pub hosts: Vec<String>,
    /// Authentication mode.
    pub access: Access,
    /// Scopes of clients without an access token, such as local users and client certificates.
    pub grants: Grants,
    /// Refuses every change.
    pub read_only: bool,
    /// Addresses that webhooks and push endpoints may use. Pass the same to
    /// [`deliveries_that_hide`](crate::deliveries_that_hide).
    pub egress: Egress,
    /// Sends jobs to push endpoints from this server.
    pub pushes: bool,
    /// Public URL of the server, such as `https://jobs.example.com`, with the path that a proxy strips. It stands in all
    /// URLs that clients receive. Default: the `Host` of the request, and for push endpoints the address it listens on.
    pub public_url: Option<String>,
    /// Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` name the client's address and scheme.
    pub trusted_proxies: Vec<Network>,
    /// Headers in which a trusted proxy names the person that it has signed in to the dashboard, if any.
    pub proxy_sign_in: Option<ProxySignIn>,
    /// Names whose values are hidden from clients with an access token.
    pub hiding: Hiding,
    /// Counts all kinds of a queue together in the metrics, for a store with very many kinds.
    pub kinds_together: bool,
    /// File that gets each audit entry as a line of JSON, if any.
    pub audit_file: Option<AuditFile>,
    /// Collector that gets each audit entry of the store as an OTLP log record, if any. A read-only server sends none.
    pub audit_collector: Option<Collector>,
    /// Trace collector, if any.
    pub traces: Option<Traces>,
    /// Time that a client has to send the request head.
    pub head_within: Duration,
    /// Time that a connection stays open between two requests. While more than half of the connections are in use, it
    /// is at most `head_within`.
    pub idle_within: Duration,
    /// Time in which a client that reads slowly must read the next 256 KiB of the response, or all of it.
    pub read_within: Duration,
    /// Maximum number of connections; further clients wait.
    pub connections: usize,
    /// Maximum number of connections per address, or per /64 network for IPv6; further ones are refused. All clients
    /// behind a proxy share its address.
    pub connections_per_address: usize,
    /// Maximum number of unknown access tokens per client address and minute; further ones get 429. Valid tokens are
    /// always accepted.
    pub unknown_tokens_per_minute: u32,
    /// Maximum number of workers of one access token; further ones get 429. Four times as many claims may wait at once. All
    /// tokens together may have ten times as many.
    pub workers_per_token: usize,
    /// Maximum number of queues of the store; beyond it, no request creates another one. Existing queues are unaffected.
    pub max_queues: usize,
    /// Maximum number of queues that access tokens of one name create. Default: a tenth of `max_queues`.
    pub queues_per_token: Option<usize>,
    /// Maximum number of new kinds that access tokens of one name use; a kind counts in each queue. The store keeps each of
    /// them; kinds that a queue has are unaffected.
    pub kinds_per_token: usize,
    /// Maximum number of new lease names that access tokens of one name use. The store keeps each name; names that exist
    /// are unaffected.
    pub lease_names_per_token: usize,
    /// Memory for the request bodies of all clients in MiB, and as much for responses; beyond it, clients get 503. One access
    /// token or principal holds at most a tenth, but at least 16 MiB; beyond it, it gets 429.
    pub transfer_memory_mib: usize,
    /// Time between the signal to stop and the shutdown. The server still answers, but reports that it is not ready, so
    /// that load balancers notice.
    pub drain_delay: Duration,
    /// Time that requests in progress have to finish at shutdown.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from(([127, 0, 0, 1], 8368)),
            socket: None,
            only_socket: false,
            tls: None,
            hosts: Vec::new(),
            access: Access::default(),
            grants: Grants::default(),
            read_only: false,
            egress: Egress::default(),
            pushes: true,
            public_url: None,
            trusted_proxies: Vec::new(),
            proxy_sign_in: None,
            hiding: Hiding::default(),
            kinds_together: false,
            audit_file: None,
            audit_collector: None,
            traces: None,
            head_within: Duration::from_secs(10),
            // Longer than common clients and proxies keep a connection in their pools: they close it first.
            idle_within: Duration::from_secs(75),
            read_within: Duration::from_secs(30),
            connections: 20_000,
            connections_per_address: 15_000,
            unknown_tokens_per_minute: 60,
            workers_per_token: quota::WORKERS_PER_TOKEN,
            max_queues: quota::QUEUES,
            queues_per_token: None,
            kinds_per_token: quota::KINDS_PER_TOKEN,
            lease_names_per_token: quota::LEASE_NAMES_PER_TOKEN,
            transfer_memory_mib: memory::TRANSFER_MIB,
            drain_delay: Duration::ZERO,
            grace: Duration::from_secs(25),
        }
    }
}
