//! A group of servers that Sentinels watch: they are asked for the address of the primary before each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::redis::{AsyncConnectionConfig, Client, RedisError, cmd};
use flow::ports::StateError;

use super::options::{InvalidRedis, RedisOptions, RedisSetting};

/// The port of a Sentinel, unless the URL has another one.
const PORT: u16 = 26_379;

/// How long the connection to a Sentinel and its answer can take, each: the others are asked after it.
const PATIENCE: Duration = Duration::from_secs(1);

const FORM: &str =
    "write it as `redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY/DATABASE`, or `rediss+sentinel://…` for TLS";

/// The Sentinels of a primary.
pub(super) struct Sentinels {
    options: RedisOptions,
    /// The scheme of all connections: `redis` or `rediss`.
    scheme: String,
    /// The user and the password for the primary, as in the URL.
    login: String,
    nodes: Vec<Node>,
    /// The index of the Sentinel that gave the last address, which is asked first.
    first: AtomicUsize,
    primary: String,
    database: String,
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
    /// Reads the URL; `None` if it is one of a single server.
    pub(super) fn of(options: &RedisOptions) -> Option<Result<Self, InvalidRedis>> {
        let (scheme, rest) = options.url.split_once("+sentinel://")?;
        Some(Self::read(options, scheme, rest))
    }

    fn read(options: &RedisOptions, scheme: &str, rest: &str) -> Result<Self, InvalidRedis> {
        let bad = |problem: &str| InvalidRedis::new(RedisSetting::Url, problem, FORM);
        if !matches!(scheme, "redis" | "rediss") || rest.contains(['?', '#']) {
            return Err(bad("it is not the URL of Sentinels"));
        }
        let mut parts = rest.splitn(3, '/');
        let (servers, primary) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let database = parts.next().unwrap_or_default().to_owned();
        if primary.is_empty() {
            return Err(bad("it does not name the primary"));
        }
        let (login, hosts) = servers.rsplit_once('@').map_or(("", servers), |(login, hosts)| (login, hosts));
        let login = if login.is_empty() { String::new() } else { format!("{login}@") };
        let nodes: Result<Vec<Node>, InvalidRedis> = hosts.split(',').map(|host| node(options, scheme, host)).collect();
        let (scheme, primary) = (scheme.to_owned(), primary.to_owned());
        let own = Self {
            options: options.clone(),
            scheme,
            login,
            nodes: nodes?,
            first: AtomicUsize::new(0),
            primary,
            database,
        };
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
        let Self { scheme, login, database, .. } = self;
        self.options.client_of(&format!("{scheme}://{login}{host}:{port}/{database}"))
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
fn node(options: &RedisOptions, scheme: &str, host: &str) -> Result<Node, InvalidRedis> {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let address = if has_port { host.to_owned() } else { format!("{host}:{PORT}") };
    let mut open = options.clone();
    (open.user, open.password) = (None, None);
    let client = open.client_of(&format!("{scheme}://{address}"))?;
    Ok(Node { address, client })
}
