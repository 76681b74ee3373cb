//! Servers that keep a connection alive and say nothing, over real sockets: each time-out ends them, and names its setting.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use flow::{Delta, ErrorClass, Message, ModelError, Prompt};
use tidegate_providers::{HttpConfig, ProviderConfig, connect};
use wire::Wire;

use crate::classes::class_of;
use crate::support::{Fixture, Script, Step};

const TEXT: &[u8] = include_bytes!("../../../tests/corpus/providers/streams/anthropic/text.sse");

fn config(server: &Fixture) -> HttpConfig {
    HttpConfig { base_url: Some(server.base_url.clone()), ..HttpConfig::new(Wire::Anthropic, "claude-sonnet-4-5") }
}

/// All deltas, and the error that ended them if one did.
async fn ask(config: HttpConfig) -> (Vec<Delta>, Option<ModelError>) {
    let model = connect(&ProviderConfig::Http(config)).unwrap();
    let prompt = Prompt { messages: vec![Arc::new(Message::user("hi"))], ..Prompt::default() };
    let mut deltas = Vec::new();
    match model.start(&prompt).await {
        Ok(mut stream) => loop {
            match std::future::poll_fn(|cx| stream.poll_next(cx)).await {
                Some(Ok(delta)) => deltas.push(delta),
                Some(Err(error)) => return (deltas, Some(error)),
                None => return (deltas, None),
            }
        },
        Err(error) => (deltas, Some(error)),
    }
}

/// Keep-alives, as the three formats have them, and the start of an answer without its rest.
const ALIVE: [(Wire, &str); 4] = [
    (Wire::Anthropic, "event: ping\ndata: {\"type\":\"ping\"}\n\n"),
    (Wire::OpenAiChat, ": keep-alive\n\n"),
    (Wire::OpenAiResponses, "data: {\"type\":\"response.in_progress\",\"response\":{\"model\":\"m\"}}\n\n"),
    (Wire::OpenAiChat, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"),
];

/// Events between which so much time passes.
fn dripping(alive: &str, times: usize, pause: u64) -> Script {
    let none: [Vec<u8>; 0] = [];
    (0..times).fold(Script::stream(none), |script, _| {
        script.then(Step::Send(alive.into())).then(Step::Wait(Duration::from_millis(pause)))
    })
}

#[tokio::test]
async fn an_answer_of_keep_alives_alone_comes_to_an_end() {
    for (wire, alive) in ALIVE {
        let server = Fixture::start([dripping(alive, 1000, 20)]).await;
        let config = HttpConfig { wire, content_timeout: Duration::from_millis(500), ..config(&server) };
        let error = ask(config).await.1.unwrap();
        assert_eq!(class_of(&error), ErrorClass::Transient, "{wire:?}");
        let expected =
            "no content for 0.5 s, only what keeps the connection alive (`content_timeout_ms` of the provider)";
        assert!(error.message.contains(expected), "{wire:?}: {error}");
        server.dropped(0).await;
    }
}

/// A model that thinks for long, while its server says that it lives, is waited for: longer than a silent one.
#[tokio::test]
async fn a_model_that_thinks_for_long_is_waited_for() {
    let (_, ping) = ALIVE[0];
    let mut script = dripping(ping, 30, 50);
    let end = TEXT.windows(2).take(700).rposition(|two| two == b"\n\n").unwrap() + 2;
    script.steps.push(Step::Send(TEXT[..end].to_vec()));
    script.steps.extend(dripping(ping, 30, 50).steps);
    let server = Fixture::start([script.then(Step::Send(TEXT[end..].to_vec()))]).await;
    let (idle_timeout, content_timeout) = (Duration::from_millis(1300), Duration::from_secs(60));
    let (deltas, error) = ask(HttpConfig { idle_timeout, content_timeout, ..config(&server) }).await;
    assert_eq!(error, None);
    assert!(matches!(deltas.last(), Some(Delta::Stop { .. })), "{deltas:?}");
}

/// An event that drips in byte by byte has no content before it is whole.
#[tokio::test]
async fn a_body_that_drips_comes_to_an_end() {
    let event = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"";
    let script = event
        .bytes()
        .chain(std::iter::repeat_n(b'x', 2000))
        .fold(Script::stream([TEXT[..600].to_vec()]), |script, byte| {
            script.then(Step::Send(vec![byte])).then(Step::Wait(Duration::from_millis(5)))
        });
    let server = Fixture::start([script]).await;
    let config = HttpConfig { content_timeout: Duration::from_millis(400), ..config(&server) };
    let error = ask(config).await.1.unwrap();
    assert!(error.message.contains("`content_timeout_ms`"), "{error}");
}

/// What comes after the end of an answer, or does not, concerns nobody.
#[tokio::test]
async fn a_body_that_stays_open_after_its_answer_is_not_waited_for() {
    let server = Fixture::start([Script::stream([TEXT]).then(Step::Hang)]).await;
    let (deltas, error) = ask(config(&server)).await;
    assert_eq!((error, matches!(deltas.last(), Some(Delta::Stop { .. }))), (None, true));
    server.dropped(0).await;
}

/// A head that never ends, and a connection that is not taken.
#[tokio::test]
async fn a_server_that_does_not_get_to_its_answer_is_not_waited_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}", listener.local_addr().unwrap()));
    let dripping = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read(&mut socket, &mut [0; 4096]).await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nx-head: ".iter().chain(std::iter::repeat(&b'x'));
        for byte in head {
            if tokio::io::AsyncWriteExt::write_all(&mut socket, &[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let idle_timeout = Duration::from_millis(300);
    let config = HttpConfig { base_url, idle_timeout, ..HttpConfig::new(Wire::OpenAiChat, "m") };
    let error = ask(config.clone()).await.1.unwrap();
    assert!(error.message.contains("0.3 s after the request (`idle_timeout_ms` of the provider)"), "{error}");
    dripping.abort();

    // It accepts connections and says nothing, where TLS begins.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("https://{}", listener.local_addr().unwrap()));
    let connect_timeout = Duration::from_millis(300);
    let silent = HttpConfig { base_url, connect_timeout, idle_timeout: Duration::from_secs(60), ..config };
    let error = ask(silent).await.1.unwrap();
    assert!(error.message.contains("within 0.3 s (`connect_timeout_ms` of the provider)"), "{error}");
    assert_eq!(class_of(&error), ErrorClass::Transient);
}
