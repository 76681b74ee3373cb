//! Connections to a real Redis server with TLS, certificates of clients, users, and access control lists.

use std::path::PathBuf;
use std::sync::Arc;

use flow::ports::{StateAdmin as _, StateError, StateStore as _};
use system::SystemClock;
use tidegate_servers::{Certificates, RedisServer};
use tidegate_store::{RedisOptions, RedisStore, RedisTls};

use crate::support::{DEFAULT, TestClock, listed, save, session, set};

fn store_of(options: RedisOptions) -> RedisStore {
    RedisStore::new(options, Arc::new(SystemClock)).unwrap()
}

fn options(url: String, tls: RedisTls) -> RedisOptions {
    let mut options = RedisOptions::new(url);
    options.tls = tls;
    options
}

fn tls_of(ca: Option<PathBuf>, client: Option<[PathBuf; 2]>) -> RedisTls {
    let mut tls = RedisTls::default();
    tls.ca = ca;
    if let Some([certificate, key]) = client {
        (tls.certificate, tls.certificate_key) = (Some(certificate), Some(key));
    }
    tls
}

/// Writes and reads a session, and returns the error of the first connection, if there is one.
async fn works(store: &RedisStore) -> Result<(), StateError> {
    store.check().await?;
    let (clock, state) = (TestClock::new(), store.open(&session("a")).await?);
    save(&*state, "notes", vec![set(&clock, "key", "x", DEFAULT)]).await;
    assert_eq!(listed(&*state, "notes").await, ["key=x"]);
    state.close(crate::support::PATIENCE).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_check_certificates() {
    let all = Certificates::make().unwrap();
    let file = |name: &str| all.path(name);
    let client = || Some([file("client.pem"), file("client.key")]);
    let stranger = || Some([file("stranger.pem"), file("stranger.key")]);
    for asks_clients in [false, true] {
        let server = RedisServer::start_tls(&all, asks_clients).unwrap();
        let host = server.tls_host();
        let (authority, other) = (|| Some(file("authority.pem")), || Some(file("stranger.pem")));
        let of_client =
            if asks_clients { Some("check `certificate` and `certificate_key` under [state]") } else { None };
        for (url, ca, own, refused) in [
            (format!("rediss://{host}"), authority(), client(), None),
            (format!("rediss://{host}"), authority(), None, of_client),
            (format!("rediss://{host}"), authority(), stranger(), of_client),
            (format!("rediss://{host}"), other(), client(), Some("UnknownIssuer); set `ca` under [state]")),
            (format!("rediss://{host}"), None, client(), Some("UnknownIssuer); set `ca` under [state]")),
            (
                format!("rediss://{}", host.replace("localhost", "127.0.0.1")),
                authority(),
                client(),
                Some("not valid for name"),
            ),
        ] {
            let tried = works(&store_of(options(url.clone(), tls_of(ca, own)))).await;
            let shown = tried.as_ref().map_or_else(ToString::to_string, |()| String::new());
            assert!(
                refused.map_or(tried.is_ok(), |words| shown.contains(words)),
                "{asks_clients} {url} {refused:?}: {shown}"
            );
        }
    }
}

#[test]
fn a_key_belongs_to_its_certificate() {
    let all = Certificates::make().unwrap();
    let client = Some([all.path("client.pem"), all.path("stranger.key")]);
    let error = options("rediss://localhost".to_owned(), tls_of(None, client)).check().unwrap_err();
    assert!(error.to_string().contains("whose key cannot be used with `certificate`"), "{error}");
    let encrypted = Some([all.path("client.pem"), all.path("client.pem")]);
    let error = options("rediss://localhost".to_owned(), tls_of(None, encrypted)).check().unwrap_err();
    assert!(error.to_string().contains("contains no private key in PEM"), "{error}");
}

/// Returns the commands that the page for operators shows, with another password.
pub(crate) fn documented() -> Vec<String> {
    let page = include_str!("../../GATEWAY_OPERATORS.md");
    let line = page.lines().find(|line| line.starts_with("ACL SETUSER tidegate ")).expect("the page shows the user");
    line.split(' ').map(|word| if word.starts_with('>') { ">hunter2".to_owned() } else { word.to_owned() }).collect()
}

fn set_user(server: &RedisServer, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    server.command(&["ACL", "DELUSER", "tidegate"]).unwrap();
    server.command(&words).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_user_can_do_all_that_a_store_does_and_needs_each_command() {
    let server = RedisServer::start().unwrap();
    let documented = documented();
    let login = |password: &str| {
        let mut options = RedisOptions::new(server.url());
        (options.user, options.password) = (Some("tidegate".to_owned()), Some(password.to_owned()));
        store_of(options)
    };
    set_user(&server, &documented);
    let store = login("hunter2");
    works(&store).await.unwrap();
    // What the gateway does in addition.
    let shared = store.share(&session("shared")).await.unwrap();
    save(&*shared, "notes", vec![set(&TestClock::new(), "key", "x", DEFAULT)]).await;
    assert!(!shared.is_outdated().await.unwrap());
    assert_eq!(store.name("0a", "line").await.unwrap(), None);
    assert_eq!(store.named(&["0a".to_owned()]).await.unwrap(), [Some("line".to_owned())]);
    let ids: Vec<String> = store.sessions().await.unwrap().sessions.iter().map(|one| one.session.to_string()).collect();
    assert_eq!(ids, ["a", "shared"], "the check leaves nothing");
    assert!(store.clear(&session("a"), None).await.unwrap());
    for (at, word) in documented.iter().enumerate().filter(|(_, word)| word.starts_with('+')) {
        let mut fewer = documented.clone();
        fewer.remove(at);
        set_user(&server, &fewer);
        let error = login("hunter2").check().await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("does not permit `{}`", &word[1..])), "{word}: {error}");
    }
    let elsewhere =
        documented.iter().map(|word| if word.starts_with('~') { "~other*".to_owned() } else { word.clone() });
    set_user(&server, &elsewhere.collect::<Vec<_>>());
    let error = login("hunter2").check().await.unwrap_err().to_string();
    assert!(error.ends_with("does not permit keys that begin with `{tidegate`"), "{error}");
    set_user(&server, &documented);
    let error = login("hunter3").check().await.unwrap_err().to_string();
    assert!(error.contains("it refuses the user or the password") && !error.contains("hunter"), "{error}");
    server.command(&["CONFIG", "SET", "requirepass", "other"]).unwrap();
    let error = store_of(RedisOptions::new(server.url())).check().await.unwrap_err().to_string();
    assert!(error.contains("it requires a password"), "{error}");
}
