//! A Cluster: some of its nodes are in the URL, the other ones are learned from them, and each key is on one primary.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ::redis::cluster::{ClusterClient, ClusterClientBuilder};
use ::redis::cluster_async::ClusterConnection;
use ::redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr};
use ::redis::io::AsyncDNSResolver;
use ::redis::{ConnectionInfo, ErrorKind, FromRedisValue as _, RedisError, RedisFuture, Value, cmd};
use flow::Address;

use super::options::{InvalidRedis, RedisOptions, RedisSetting};
use crate::redis_url::RedisUrl;

/// How often a command is sent again after a redirection, a broken connection, or while a slot has no primary.
const RETRIES: u32 = 16;
/// The shortest and the longest pause before a command is sent again, in milliseconds.
const PAUSES: (u64, u64) = (20, 400);

/// The settings of the connections to a Cluster.
pub(super) struct Cluster {
    client: ClusterClient,
    place: String,
}

/// A primary, as the nodes describe it.
#[derive(Clone, Debug, Default)]
pub(super) struct Primary {
    /// Host and port, for messages.
    pub(super) address: String,
    /// The first and the last slot of each of its ranges.
    ranges: Vec<(u16, u16)>,
}

impl Cluster {
    /// Returns the Cluster of a URL. No connection is made.
    pub(super) fn new(options: &RedisOptions, url: &RedisUrl) -> Result<Self, InvalidRedis> {
        let node =
            |host: &String| options.client_of(&url.of_server(host)).map(|node| node.get_connection_info().clone());
        let nodes: Vec<ConnectionInfo> = url.hosts().iter().map(node).collect::<Result<_, _>>()?;
        let has_password = nodes.iter().any(|node| node.redis_settings().password().is_some());
        let mut builder = ClusterClientBuilder::new(nodes)
            .connection_timeout(options.timeout)
            .response_timeout(options.timeout)
            .retries(RETRIES)
            .min_retry_wait(PAUSES.0)
            .max_retry_wait(PAUSES.1);
        if url.scheme() == "rediss" {
            builder = builder.certs(options.tls.read()?);
        } else if has_password && !options.allow_plaintext_password {
            builder = builder.async_dns_resolver(ThisMachine);
        }
        let bad = |error: RedisError| {
            let help = "check the hosts, the user and the password in it";
            InvalidRedis::new(RedisSetting::Url, format!("it is not valid: {error}"), help)
        };
        let place = format!("redis cluster at {}", url.hosts().join(", "));
        Ok(Self { client: builder.build().map_err(bad)?, place })
    }

    /// Returns the nodes of the URL, for messages.
    pub(super) fn place(&self) -> String {
        self.place.clone()
    }

    /// Connects to the nodes. The connection follows them when slots or primaries change.
    pub(super) async fn connect(&self) -> Result<ClusterConnection, RedisError> {
        self.client.get_async_connection().await
    }
}

/// Returns the primaries that have slots.
pub(super) async fn primaries(connection: &mut ClusterConnection) -> Result<Vec<Primary>, RedisError> {
    let mut command = cmd("CLUSTER");
    command.arg("SLOTS");
    let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::RandomPrimary);
    let reply = connection.route_command(command, any).await?.extract_error()?;
    let mut found: Vec<Primary> = Vec::new();
    for range in Vec::<Vec<Value>>::from_redis_value(reply)? {
        let (first, last, address) = read_range(range)?;
        match found.iter_mut().find(|known| known.address == address) {
            Some(known) => known.ranges.push((first, last)),
            None => found.push(Primary { address, ranges: vec![(first, last)] }),
        }
    }
    Ok(found)
}

/// Reads a range of slots and the address of its primary: the first node of several ones.
fn read_range(range: Vec<Value>) -> Result<(u16, u16, String), RedisError> {
    let short = || RedisError::from((ErrorKind::UnexpectedReturnType, "the reply to `CLUSTER SLOTS` is incomplete"));
    let mut parts = range.into_iter();
    let mut next = || parts.next().ok_or_else(short);
    let (first, last) = (u16::from_redis_value(next()?)?, u16::from_redis_value(next()?)?);
    let mut node = Vec::<Value>::from_redis_value(next()?)?.into_iter();
    let host: Option<String> = node.next().map(Option::from_redis_value).transpose()?.flatten();
    let port = u16::from_redis_value(node.next().ok_or_else(short)?)?;
    Ok((first, last, format!("{}:{port}", host.unwrap_or_default())))
}

impl Primary {
    /// Whether it has the slot of a key.
    pub(super) fn has(&self, key: &str) -> bool {
        let slot = Slot::for_key(key);
        self.ranges.iter().any(|(first, last)| (*first..=*last).any(|own| Slot::new(own) == Some(slot)))
    }

    /// Returns the route of commands that have no key.
    pub(super) fn route(&self) -> Route {
        Route::new(self.ranges.first().map_or(0, |(first, _)| *first), SlotAddr::Master)
    }
}

/// Returns the route to the primary of a key.
pub(super) fn route_of(key: &str) -> Route {
    Route::with_key(key, SlotAddr::Master)
}

/// Resolves hosts of this machine only: nodes that are learned from another node do not get a password without encryption, either.
struct ThisMachine;

impl AsyncDNSResolver for ThisMachine {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        Box::pin(async move {
            let written = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            if !Address::of_url(&format!("redis://{written}")).is_ok_and(|address| address.is_loopback()) {
                let problem = "the password would be sent to a node on another machine without encryption";
                let detail = format!("{host}: use TLS, or set `allow_plaintext_password = true` under [state]");
                return Err(RedisError::from((ErrorKind::InvalidClientConfig, problem, detail)));
            }
            let usual = || vec![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
            let addresses = host.parse().map_or_else(|_| usual(), |address: IpAddr| vec![address]);
            let sockets = addresses.into_iter().map(move |address| SocketAddr::new(address, port));
            Ok(Box::new(sockets) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use ::redis::io::AsyncDNSResolver as _;

    use super::ThisMachine;

    #[tokio::test]
    async fn nodes_on_other_machines_are_not_resolved() {
        for (host, count) in [("127.0.0.1", 1), ("::1", 1), ("localhost", 2)] {
            assert_eq!(ThisMachine.resolve(host, 6_379).await.unwrap().count(), count, "{host}");
        }
        for host in ["192.0.2.1", "2001:db8::1", "cache.example", "localhost.example"] {
            let error = ThisMachine.resolve(host, 6_379).await.map(drop).unwrap_err().to_string();
            assert!(error.contains("without encryption") && error.contains(host), "{host}: {error}");
        }
    }
}
