//! Conversations in a Redis server that loses its data, or does not answer for a while.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tidegate::SystemClock;
use tidegate::gateway::{ConversationLimits, Conversations, WithoutStore};
use tidegate::state::{RedisOptions, RedisStore};
use tidegate_servers::RedisServer;

use super::keeper::{exchange, keeper};
use super::support::builder;

async fn open(server: &RedisServer, folder: &TempDir, limits: ConversationLimits) -> Arc<Conversations> {
    let store = RedisStore::new(RedisOptions::new(server.url()), Arc::new(SystemClock)).unwrap();
    keeper(builder("").without_model().state_store(Arc::new(store)).open().await.unwrap(), folder, limits)
}

/// Has the server lose everything.
fn flush(server: &RedisServer) {
    let mut stream = TcpStream::connect(server.url().trim_start_matches("redis://")).unwrap();
    stream.write_all(b"FLUSHALL\r\n").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n");
}

#[tokio::test]
async fn what_the_server_has_lost_is_written_again() {
    let (server, folder) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
    let keeper = open(&server, &folder, ConversationLimits::default()).await;
    let said = ["Hello", "Hi", "Go on", "Well", "More", "Done", "And"];
    let (id, _) = exchange(&keeper, Some("7f"), &said[..1], said[1], true).await;
    flush(&server);
    let (same, knew) = exchange(&keeper, Some("7f"), &said[..3], said[3], false).await;
    assert_eq!((&same, knew), (&id, 1));
    // Others find it there.
    let other = open(&server, &folder, ConversationLimits::default()).await;
    let (same, knew) = exchange(&other, Some("7f"), &said[..5], said[5], false).await;
    assert_eq!((&same, knew), (&id, 1));
    // It is lost while an exchange is under way.
    let texts: Vec<String> = said.iter().map(|text| (*text).to_owned()).collect();
    let visit = other.enter(super::keeper::trail(Some("7f"), &texts, true)).await.unwrap();
    flush(&server);
    visit.end(&visit.rules(), Some(&super::keeper::answer("Yes"))).await.unwrap();
    let third = open(&server, &folder, ConversationLimits::default()).await;
    let (same, knew) = exchange(&third, Some("7f"), &[&said[..], &["Yes", "So"]].concat(), "!", false).await;
    assert_eq!((&same, knew), (&id, 1));
}

#[tokio::test]
async fn what_happens_without_the_server_is_stored_when_it_is_back() {
    let (mut server, folder) = (RedisServer::start().unwrap(), TempDir::new().unwrap());
    let mut limits = ConversationLimits::default();
    (limits.idle, limits.without_store) = (Duration::from_millis(50), WithoutStore::Local);
    let keeper = open(&server, &folder, limits).await;
    server.kill();
    let (id, _) = exchange(&keeper, None, &["Hello"], "Hi", true).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!((keeper.counts().open, keeper.counts().unstored), (1, 1));
    let (same, knew) = exchange(&keeper, None, &["Hello", "Hi", "Go on"], "Well", false).await;
    assert_eq!((&same, knew), (&id, 1));
    server.start_again().unwrap();
    let closed = async {
        while keeper.counts().open > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), closed).await.unwrap();
    let other = open(&server, &folder, limits).await;
    let (same, knew) = exchange(&other, None, &["Hello", "Hi", "Go on", "Well", "More"], "Done", false).await;
    assert_eq!((&same, knew), (&id, 1));
}
