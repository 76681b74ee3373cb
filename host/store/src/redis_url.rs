//! The URL of a Redis store: one server, a primary that Sentinels watch, or a Cluster.

use std::fmt;

/// The parts of a URL of a Redis store, as they are written. What a host reaches, and what a policy checks, is read from it alone.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    scheme: String,
    /// The user and the password with their `@`, or nothing.
    login: String,
    hosts: Vec<String>,
    kind: RedisKind,
    database: String,
}

/// What the hosts of a URL are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisKind {
    /// The host is the server.
    Single,
    /// The hosts are Sentinels, which know the address of the primary.
    Sentinel {
        /// The name under which the Sentinels watch the primary.
        primary: String,
    },
    /// The hosts are some nodes of a Cluster, which know the other ones.
    Cluster,
}

/// A URL that cannot be used. The message contains no part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {help}")]
#[non_exhaustive]
pub struct InvalidRedisUrl {
    /// The problem, as a clause.
    pub problem: &'static str,
    /// The correction, as an imperative.
    pub help: &'static str,
}

/// The port of a Sentinel, unless the URL has another one.
const SENTINEL_PORT: u16 = 26_379;

pub(crate) const SINGLE: &str = "write it as `redis://HOST:PORT/DATABASE`, or `rediss://…` for TLS";
const SENTINEL: &str =
    "write it as `redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY/DATABASE`, or `rediss+sentinel://…` for TLS";
const CLUSTER: &str = "write it as `redis+cluster://HOST:PORT,HOST:PORT`, or `rediss+cluster://…` for TLS";
const SEVERAL: &str =
    "begin it with `redis+cluster://` for nodes of a Cluster, or with `redis+sentinel://` for Sentinels";
const FRAGMENT: &str = "write `#` in a password as `%23`, and set `ca` under [state] for an authority of your own";

impl RedisUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// It is not a URL, or a client would read it differently.
    pub fn parse(url: &str) -> Result<Self, InvalidRedisUrl> {
        let bad = |problem, help| Err(InvalidRedisUrl { problem, help });
        let Some((scheme, rest)) = url.split_once("://") else { return bad("it is not a URL", SINGLE) };
        // Some parsers leave them out, and then reach another host than the one that is read here.
        if url.contains(|char: char| char.is_whitespace() || char.is_control()) {
            return bad("it contains white space or a control character", SINGLE);
        }
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let hosts = hosts.split(',').map(str::to_owned).collect();
        let (scheme, login) = (scheme.to_owned(), login.to_owned());
        let own = Self { scheme, login, hosts, kind: RedisKind::Single, database: String::new() };
        if let Some(scheme) = own.scheme.strip_suffix("+sentinel") {
            Self { scheme: scheme.to_owned(), ..own }.sentinels(tail)
        } else if let Some(scheme) = own.scheme.strip_suffix("+cluster") {
            Self { scheme: scheme.to_owned(), ..own }.cluster(tail)
        } else {
            own.single(tail)
        }
    }

    fn single(self, tail: &str) -> Result<Self, InvalidRedisUrl> {
        let bad = |problem, help| Err(InvalidRedisUrl { problem, help });
        if self.hosts.len() > 1 {
            return bad("it names several servers", SEVERAL);
        }
        if tail.contains('#') {
            return bad("it has a fragment (`#…`), which could disable the check of certificates", FRAGMENT);
        }
        let database = tail.split('?').next().unwrap_or_default().trim_start_matches('/').to_owned();
        Ok(Self { database, ..self })
    }

    fn sentinels(self, tail: &str) -> Result<Self, InvalidRedisUrl> {
        let bad = |problem| Err(InvalidRedisUrl { problem, help: SENTINEL });
        if !self.is_list(tail) {
            return bad("it is not the URL of Sentinels");
        }
        let path = tail.trim_start_matches('/');
        let (primary, database) = path.split_once('/').unwrap_or((path, ""));
        if primary.is_empty() {
            return bad("it does not name the primary");
        }
        let (kind, database) = (RedisKind::Sentinel { primary: primary.to_owned() }, database.to_owned());
        let has_port = |host: &str| host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let with_port = |host: String| if has_port(&host) { host } else { format!("{host}:{SENTINEL_PORT}") };
        let hosts = self.hosts.into_iter().map(with_port).collect();
        Ok(Self { kind, database, hosts, ..self })
    }

    fn cluster(self, tail: &str) -> Result<Self, InvalidRedisUrl> {
        let bad = |problem| Err(InvalidRedisUrl { problem, help: CLUSTER });
        if !self.is_list(tail) {
            return bad("it is not the URL of a Cluster");
        }
        if !matches!(tail, "" | "/" | "/0") {
            return bad("it names a database, and a Cluster has only the database 0");
        }
        Ok(Self { kind: RedisKind::Cluster, database: "0".to_owned(), ..self })
    }

    /// Whether the scheme is one of Redis, each host has a name, and there is no query or fragment.
    fn is_list(&self, tail: &str) -> bool {
        let has_name = |host: &String| !host.is_empty() && !host.starts_with(':');
        matches!(self.scheme.as_str(), "redis" | "rediss")
            && self.hosts.iter().all(has_name)
            && !tail.contains(['?', '#'])
    }

    /// Returns what the hosts are.
    pub fn kind(&self) -> &RedisKind {
        &self.kind
    }

    /// Returns the scheme of each connection: `redis`, `rediss`, or another one that the URL of one server has.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns the hosts with the ports that the URL contains; a Sentinel has its usual port otherwise.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns the database; empty where the URL contains none.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Whether the URL contains a user or a password.
    pub fn has_login(&self) -> bool {
        !self.login.is_empty()
    }

    /// Returns the URL of each host without credentials, such as `redis+sentinel://HOST:PORT`, for a check of what the store reaches.
    pub fn addresses(&self) -> Vec<String> {
        let kind = match self.kind {
            RedisKind::Single => "",
            RedisKind::Sentinel { .. } => "+sentinel",
            RedisKind::Cluster => "+cluster",
        };
        self.hosts.iter().map(|host| format!("{}{kind}://{host}", self.scheme)).collect()
    }

    /// Returns the URL of one server with the scheme, the credentials and the database of this one.
    #[cfg(feature = "redis")]
    pub(crate) fn of_server(&self, host: &str) -> String {
        format!("{}://{}{host}/{}", self.scheme, self.login, self.database)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the credentials.
        f.debug_struct("RedisUrl")
            .field("addresses", &self.addresses())
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::RedisUrl;

    /// URLs, each with its kind, addresses, database and whether it has a login, or the problem.
    const CASES: [(&str, &str); 24] = [
        ("redis://localhost", "Single redis://localhost '' false"),
        ("redis://localhost:7000/3?protocol=resp3", "Single redis://localhost:7000 '3' false"),
        ("rediss://me:a@b,c@cache.example/0", "Single rediss://cache.example '0' true"),
        ("redis://:secret@[::1]:6379", "Single redis://[::1]:6379 '' true"),
        ("redis://permitted.example/@evil.example", "Single redis://permitted.example '@evil.example' false"),
        ("redis+unix:///run/redis.sock", "Single redis+unix:// 'run/redis.sock' false"),
        ("http://localhost", "Single http://localhost '' false"),
        ("redis+sentinel://a/group", "Sentinel { primary: \"group\" } redis+sentinel://a:26379 '' false"),
        (
            "rediss+sentinel://me:x@a:1,[::1]/group/2",
            "Sentinel { primary: \"group\" } rediss+sentinel://a:1 rediss+sentinel://[::1]:26379 '2' true",
        ),
        ("redis+cluster://a", "Cluster redis+cluster://a '0' false"),
        (
            "redis+cluster://a:1,[::1]:2,c/",
            "Cluster redis+cluster://a:1 redis+cluster://[::1]:2 redis+cluster://c '0' false",
        ),
        ("rediss+cluster://me:x@a,b/0", "Cluster rediss+cluster://a rediss+cluster://b '0' true"),
        ("localhost:6379", "it is not a URL"),
        ("", "it is not a URL"),
        ("redis://permit\ted.example", "it contains white space or a control character"),
        ("redis://a,b", "it names several servers"),
        ("rediss://a#insecure", "it has a fragment (`#…`), which could disable the check of certificates"),
        ("redis+sentinel://a", "it does not name the primary"),
        ("redis+sentinel://a/group?x", "it is not the URL of Sentinels"),
        ("valkey+sentinel://a/group", "it is not the URL of Sentinels"),
        ("redis+sentinel://a,,b/group", "it is not the URL of Sentinels"),
        ("redis+cluster://", "it is not the URL of a Cluster"),
        ("redis+cluster://a/?x", "it is not the URL of a Cluster"),
        ("redis+cluster://a/1", "it names a database, and a Cluster has only the database 0"),
    ];

    #[test]
    fn a_url_is_read_in_one_place() {
        for (url, expected) in CASES {
            let read = match RedisUrl::parse(url) {
                Ok(read) => {
                    let (kind, addresses) = (read.kind(), read.addresses().join(" "));
                    format!("{kind:?} {addresses} '{}' {}", read.database(), read.has_login())
                }
                Err(error) => error.problem.to_owned(),
            };
            assert_eq!(read, expected, "{url}");
        }
    }

    #[test]
    fn credentials_are_not_shown() {
        let shown = RedisUrl::parse("redis+cluster://me:hunter2@a,b").map(|url| format!("{url:?}"));
        assert!(shown.is_ok_and(|shown| !shown.contains("hunter2") && shown.contains("redis+cluster://b")));
    }
}
