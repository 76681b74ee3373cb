//! Where the server is, and whether these settings can be used.

use std::fmt;
use std::time::Duration;

use ::redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisError};
use flow::Address;

use super::cluster::Cluster;
use super::sentinel::Sentinels;
use super::tls::RedisTls;
use crate::options::StoreOptions;
use crate::redis_url::{InvalidRedisUrl, RedisKind, RedisUrl, SINGLE};

/// Where the server is, and how long a host is waited for.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The URL of the server: `redis://[user:password@]host[:port][/database]`, or `rediss://…` for TLS. With Sentinels:
    /// `redis+sentinel://[user:password@]host[:port][,host[:port]…]/primary[/database]`, or `rediss+sentinel://…`; the user and the password
    /// are those of the primary. For a Cluster: `redis+cluster://[user:password@]host[:port][,host[:port]…]`, or `rediss+cluster://…`, with
    /// some of its nodes.
    pub url: String,
    /// The user, where the URL contains none.
    pub user: Option<String>,
    /// The password, where the URL contains none.
    pub password: Option<String>,
    /// The certificates of a connection with TLS.
    pub tls: RedisTls,
    /// Whether a password is sent to another machine without encryption. Default: it is not.
    pub allow_plaintext_password: bool,
    /// How long a connection or a command can take. Default: 5 seconds.
    pub timeout: Duration,
    /// The term of a lease, which is renewed three times in it. A session of a host that died is free after this time. Default: 30
    /// seconds.
    pub lease: Duration,
    /// The settings of all stores.
    pub store: StoreOptions,
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the URL, which can contain a password, nor the password.
        f.debug_struct("RedisOptions").field("tls", &self.tls).field("store", &self.store).finish_non_exhaustive()
    }
}

/// A setting of [`RedisOptions`] that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedisSetting {
    /// The URL, [`RedisOptions::url`], or what it leads to.
    Url,
    /// The separate user, [`RedisOptions::user`].
    User,
    /// The separate password, [`RedisOptions::password`].
    Password,
    /// The file of authorities, [`RedisTls::ca`].
    Ca,
    /// The certificate of this client, [`RedisTls::certificate`].
    Certificate,
    /// The private key of this client, [`RedisTls::certificate_key`].
    CertificateKey,
}

impl fmt::Display for RedisSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "url",
            Self::User => "user",
            Self::Password => "password",
            Self::Ca => "ca",
            Self::Certificate => "certificate",
            Self::CertificateKey => "certificate_key",
        })
    }
}

/// The settings of a server cannot be used. The message contains neither credentials nor bytes of a file.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{problem}; {help}")]
#[non_exhaustive]
pub struct InvalidRedis {
    /// The setting to correct.
    pub setting: RedisSetting,
    /// The problem, as a clause without credentials.
    pub problem: String,
    /// The correction, as an imperative.
    pub help: String,
}

impl InvalidRedis {
    pub(super) fn new(setting: RedisSetting, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { setting, problem: problem.into(), help: help.into() }
    }
}

/// Where connections are made to.
pub(super) enum Servers {
    One(Box<Client>),
    Sentinels(Box<Sentinels>),
    Cluster(Box<Cluster>),
}

impl From<InvalidRedisUrl> for InvalidRedis {
    fn from(error: InvalidRedisUrl) -> Self {
        Self::new(RedisSetting::Url, error.problem, error.help)
    }
}

impl RedisOptions {
    /// The defaults, with this server.
    pub fn new(url: impl Into<String>) -> Self {
        let (timeout, lease) = (Duration::from_secs(5), Duration::from_secs(30));
        Self {
            url: url.into(),
            user: None,
            password: None,
            tls: RedisTls::default(),
            allow_plaintext_password: false,
            timeout,
            lease,
            store: StoreOptions::default(),
        }
    }

    /// Checks the settings and reads the files of TLS. No connection is made.
    ///
    /// # Errors
    /// The first setting that cannot be used.
    pub fn check(&self) -> Result<(), InvalidRedis> {
        self.servers().map(drop)
    }

    pub(super) fn servers(&self) -> Result<Servers, InvalidRedis> {
        let url = RedisUrl::parse(&self.url)?;
        match url.kind().clone() {
            RedisKind::Single => Ok(Servers::One(Box::new(self.client_of(&self.url)?))),
            RedisKind::Sentinel { primary } => Ok(Servers::Sentinels(Box::new(Sentinels::new(self, url, &primary)?))),
            RedisKind::Cluster => Ok(Servers::Cluster(Box::new(Cluster::new(self, &url)?))),
        }
    }

    /// Returns the client of a server, with the credentials and certificates of these options.
    pub(super) fn client_of(&self, url: &str) -> Result<Client, InvalidRedis> {
        let bad = |error: RedisError| InvalidRedis::new(RedisSetting::Url, format!("it is not valid: {error}"), SINGLE);
        let server = self.with_credentials(url.into_connection_info().map_err(bad)?)?;
        if is_exposed(&server) && !self.allow_plaintext_password {
            let problem = "its password would be sent to another machine without encryption, so nothing was sent";
            return Err(InvalidRedis::new(RedisSetting::Url, problem, ENCRYPTED));
        }
        if matches!(server.addr(), ConnectionAddr::TcpTls { .. }) {
            return Client::build_with_tls(server, self.tls.read()?).map_err(bad);
        }
        self.check_no_tls()?;
        Client::open(server).map_err(bad)
    }

    fn with_credentials(&self, server: ConnectionInfo) -> Result<ConnectionInfo, InvalidRedis> {
        let (user, password) = (self.user.as_ref(), self.password.as_ref());
        let mut redis = server.redis_settings().clone();
        let bad = |setting, problem: &str, help: &str| Err(InvalidRedis::new(setting, problem, help));
        if user.is_some() && redis.username().is_some() {
            return bad(RedisSetting::User, "`user` is set, and the URL contains a user, too", "remove one of the two");
        }
        if password.is_some() && redis.password().is_some() {
            let problem = "`password` is set, and the URL contains a password, too";
            return bad(RedisSetting::Password, problem, "remove one of the two");
        }
        let Some(password) = password else {
            return match user {
                Some(_) => bad(
                    RedisSetting::User,
                    "`user` has no effect without `password`",
                    "set `password`, or remove `user`",
                ),
                None => Ok(server),
            };
        };
        redis = redis.set_password(password);
        if let Some(user) = user {
            redis = redis.set_username(user);
        }
        Ok(server.set_redis_settings(redis))
    }

    /// Checks that no file is named for a connection that has no TLS.
    fn check_no_tls(&self) -> Result<(), InvalidRedis> {
        let RedisTls { ca, certificate, certificate_key } = &self.tls;
        let files = [
            (RedisSetting::Ca, ca),
            (RedisSetting::Certificate, certificate),
            (RedisSetting::CertificateKey, certificate_key),
        ];
        let Some((setting, _)) = files.into_iter().find(|(_, file)| file.is_some()) else { return Ok(()) };
        let problem = format!("`{setting}` is for a connection with TLS, and the URL asks for none");
        Err(InvalidRedis::new(setting, problem, format!("begin the URL with `rediss://`, or remove `{setting}`")))
    }
}

const ENCRYPTED: &str = "use TLS (`rediss://`), a server of this machine (a tunnel to another one counts), a server without a password, or set \
     `allow_plaintext_password = true` under [state]";

/// Whether a password is sent to another machine without encryption.
fn is_exposed(server: &ConnectionInfo) -> bool {
    let ConnectionAddr::Tcp(host, _) = server.addr() else { return false };
    // An IPv6 address is in brackets in a URL, and not in here.
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let is_exposed = Address::of_url(&format!("redis://{host}")).map_or(true, |address| address.is_exposed());
    server.redis_settings().password().is_some() && is_exposed
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{RedisOptions, RedisSetting, RedisTls};

    #[test]
    fn a_password_is_not_sent_to_another_machine_in_the_clear_unless_the_operator_says_so() {
        for (server, is_sent) in [
            ("redis://127.0.0.1", true),
            ("redis://LOCALHOST:6379", true),
            ("redis://[::1]:6379", true),
            ("redis://[::ffff:127.0.0.1]", true),
            ("rediss://cache.example", true),
            ("redis://cache.example", false),
            ("redis://localhost.cache.example", false),
            ("redis://10.0.0.7:6379", false),
            ("redis://[::ffff:10.0.0.7]", false),
        ] {
            let (scheme, host) = server.split_once("://").unwrap();
            let options = |user: &str| RedisOptions::new(format!("{scheme}://{user}{host}/0"));
            options("").check().unwrap_or_else(|error| panic!("{host}: there is nothing to keep: {error}"));
            let allowed = RedisOptions { allow_plaintext_password: true, ..options(":hunter2@") };
            allowed.check().unwrap();
            let separate = RedisOptions { user: Some("me".into()), password: Some("hunter2".into()), ..options("") };
            for options in [options("me:hunter2@"), separate] {
                let Err(error) = options.check() else {
                    assert!(is_sent, "{server}");
                    continue;
                };
                assert!(!is_sent, "{server}: {error}");
                let shown = format!("{options:?} {error:?} {error}");
                assert!(shown.contains("allow_plaintext_password") && !shown.contains("hunter2"), "{shown}");
            }
        }
    }

    #[test]
    fn what_cannot_be_used_says_what_to_do_and_not_the_url() {
        use RedisSetting::{Ca, Certificate, CertificateKey, Password, Url, User};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(folder.path().join(name));
        let tls = |ca, certificate, certificate_key| RedisTls { ca, certificate, certificate_key };
        std::fs::write(folder.path().join("text.pem"), "no certificate").unwrap();
        let none = RedisTls::default();
        for (url, tls, setting, words) in [
            ("cache.hunter2:6379", none.clone(), Url, "it is not a URL; write it as `redis://HOST"),
            ("http://hunter2", none.clone(), Url, "did not parse - InvalidClientConfig; write it as `redis://HOST"),
            (
                "redis+sentinel://hunter2",
                none.clone(),
                Url,
                "it does not name the primary; write it as `redis+sentinel://",
            ),
            ("valkey+sentinel://hunter2/a", none.clone(), Url, "it is not the URL of Sentinels"),
            ("redis+sentinel://localhost/a/hunter2", none.clone(), Url, "Invalid database number"),
            ("redis+sentinel://localhost/a", tls(path("ca.pem"), None, None), Ca, "begin the URL with `rediss"),
            ("rediss+sentinel://localhost/a", tls(path("ca.pem"), None, None), Ca, "ca.pem, which cannot be read"),
            ("redis://hunter2-a:6379,hunter2-b:6379", none.clone(), Url, "it names several servers; begin it with"),
            ("redis+cluster://hunter2/1", none.clone(), Url, "a Cluster has only the database 0"),
            ("redis+cluster://me:hunter2@10.0.0.7", none.clone(), Url, "sent to another machine without encryption"),
            ("redis+cluster://localhost", tls(path("ca.pem"), None, None), Ca, "begin the URL with `rediss"),
            ("rediss+cluster://localhost", tls(path("ca.pem"), None, None), Ca, "ca.pem, which cannot be read"),
            ("rediss://hunter2#insecure", none.clone(), Url, "disable the check of certificates"),
            ("redis://localhost/hunter2", none, Url, "Invalid database number"),
            (
                "redis://localhost",
                tls(path("ca.pem"), None, None),
                Ca,
                "begin the URL with `rediss://`, or remove `ca`",
            ),
            (
                "redis://localhost",
                tls(None, None, path("a")),
                CertificateKey,
                "`rediss://`, or remove `certificate_key`",
            ),
            ("rediss://localhost", tls(path("ca.pem"), None, None), Ca, "ca.pem, which cannot be read: No such file"),
            ("rediss://localhost", tls(path("text.pem"), None, None), Ca, "contains no certificate in PEM"),
            ("rediss://localhost", tls(None, path("a"), None), Certificate, "there is no `certificate_key`"),
            ("rediss://localhost", tls(None, None, path("a")), CertificateKey, "there is no `certificate`"),
        ] {
            let error = RedisOptions { tls, ..RedisOptions::new(url) }.check().unwrap_err();
            let shown = format!("{error} {error:?}");
            assert_eq!(error.setting, setting, "{url}: {shown}");
            assert!(shown.contains(words) && !shown.contains("hunter2"), "{url}: {shown}");
        }
        for (url, user, password, setting, words) in [
            ("redis://:hunter2@localhost", None, Some("b"), Password, "remove one of the two"),
            ("redis://hunter2@localhost", Some("a"), Some("b"), User, "remove one of the two"),
            ("redis+sentinel://hunter2@localhost/a", Some("a"), Some("b"), User, "remove one of the two"),
            ("redis://localhost", Some("hunter2"), None, User, "set `password`"),
        ] {
            let (user, password) = (user.map(str::to_owned), password.map(str::to_owned));
            let error = RedisOptions { user, password, ..RedisOptions::new(url) }.check().unwrap_err();
            let shown = format!("{error} {error:?}");
            assert_eq!(error.setting, setting, "{url}: {shown}");
            assert!(shown.contains(words) && !shown.contains("hunter2"), "{url}: {shown}");
        }
    }
}
