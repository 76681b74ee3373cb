//! A group of servers that Sentinels watch: they are asked for the address of the primary before each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::redis::{AsyncConnectionConfig, Client, RedisError, cmd};
use flow::ports::StateError;

use super::options::{InvalidRedis, RedisOptions};
use crate::redis_url::RedisUrl;

/// How long the connection to a Sentinel and its answer can take, each: the others are asked after it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The Sentinels of a primary.
pub(super) struct Sentinels {
    options: RedisOptions,
    /// Its user, password and database are for the primary.
    url: RedisUrl,
    nodes: Vec<Node>,
    /// The index of the Sentinel that gave the last address, which is asked first.
    first: AtomicUsize,
    primary: String,
}

struct Node {
    address: String,
    client: Client,
}

/// No Sentinel gives the address.
#[derive(Debug, thiserror::Error)]
#[error("no Sentinel gives the address of the primary `{primary}`: {}", tried.join("; "))]
struct NoPrimary {
    primary: String,
    tried: Vec<String>,
}

impl Sentinels {
    /// Returns the Sentinels of a URL, which are not asked yet.
    pub(super) fn new(options: &RedisOptions, url: RedisUrl, primary: &str) -> Result<Self, InvalidRedis> {
        let nodes: Result<Vec<Node>, InvalidRedis> =
            url.hosts().iter().map(|host| node(options, url.scheme(), host)).collect();
        let (options, nodes, primary) = (options.clone(), nodes?, primary.to_owned());
        let own = Self { options, url, nodes, first: AtomicUsize::new(0), primary };
        // What is wrong with the credentials is known before there is an address.
        own.client("127.0.0.1", 6379)?;
        Ok(own)
    }

    /// Returns the primary and its Sentinels, for messages.
    pub(super) fn place(&self) -> String {
        let nodes: Vec<&str> = self.nodes.iter().map(|node| node.address.as_str()).collect();
        format!("redis primary `{}` of the Sentinels at {}", self.primary, nodes.join(", "))
    }

    fn client(&self, host: &str, port: u16) -> Result<Client, InvalidRedis> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        self.options.client_of(&self.url.of_server(&format!("{host}:{port}")))
    }

    /// Asks the Sentinels one after the other for the primary, first the one that gave the last address.
    pub(super) async fn primary(&self) -> Result<Client, StateError> {
        let unavailable = |cause| StateError::Unavailable { place: self.place(), cause };
        let mut tried = Vec::new();
        let first = self.first.load(Ordering::Relaxed);
        let all = self.nodes.iter().enumerate();
        for (index, node) in all.clone().skip(first).chain(all.take(first)) {
            match self.ask(node).await {
                Ok(Some((host, port))) => {
                    self.first.store(index, Ordering::Relaxed);
                    return self.client(&host, port).map_err(|error| unavailable(Arc::new(error)));
                }
                Ok(None) => tried.push(format!("{} does not know it", node.address)),
                Err(error) if error.code() == Some("NOAUTH") => tried.push(format!(
                    "{} requires a password, and Sentinels get none; permit its user `default`, without a password, `+sentinel|get-master-addr-by-name`",
                    node.address
                )),
                Err(error) => tried.push(format!("{}: {error}", node.address)),
            }
        }
        Err(unavailable(Arc::new(NoPrimary { primary: self.primary.clone(), tried })))
    }

    async fn ask(&self, node: &Node) -> Result<Option<(String, u16)>, RedisError> {
        let timeout = Some(self.options.timeout.min(PATIENCE));
        let config = AsyncConnectionConfig::new().set_connection_timeout(timeout).set_response_timeout(timeout);
        let mut connection = node.client.get_multiplexed_async_connection_with_config(&config).await?;
        cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.primary).query_async(&mut connection).await
    }
}

/// Returns a Sentinel, which gets neither user nor password.
fn node(options: &RedisOptions, scheme: &str, address: &str) -> Result<Node, InvalidRedis> {
    let mut open = options.clone();
    (open.user, open.password) = (None, None);
    let client = open.client_of(&format!("{scheme}://{address}"))?;
    Ok(Node { address: address.to_owned(), client })
}
