//! Over real sockets: answers whose body is none that can be read, and addresses that lead to no such answer. Each error
//! names what came.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use flow::ports::Model;
use flow::{ErrorClass, Message, ModelError, Prompt};
use providers::{HttpConfig, ProviderConfig, ReplayConfig, connect};
use tidegate_providers as providers;
use wire::Wire;

use crate::classes::class_of;
use crate::support::{Fixture, Script};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn model(config: HttpConfig) -> Arc<dyn Model> {
    connect(&ProviderConfig::Http(config)).unwrap()
}

/// The error of a request, or of its answer.
async fn error_of(model: &Arc<dyn Model>) -> ModelError {
    let prompt = Prompt { messages: vec![Arc::new(Message::user("hi"))], ..Prompt::default() };
    let mut stream = match model.start(&prompt).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    loop {
        match std::future::poll_fn(|cx| stream.poll_next(cx)).await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return error,
            None => panic!("no error came"),
        }
    }
}

/// The error over HTTP; a recording of the same answer gives it too.
async fn refused(wire: Wire, script: Script) -> ModelError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let server = Fixture::start([script]).await;
    let base_url = Some(server.base_url.clone());
    let live = model(HttpConfig { base_url, record: Some(path.clone()), ..HttpConfig::new(wire, "m") });
    let error = error_of(&live).await;
    assert!(server.seen()[0].head.to_lowercase().contains("\naccept-encoding: identity"), "{}", server.seen()[0].head);
    drop(live);
    let replay = ReplayConfig { speed: 0.0, ..ReplayConfig::new(&path) };
    assert_eq!(error_of(&connect(&ProviderConfig::Recording(replay)).unwrap()).await, error);
    let recorded = providers::RecordingReader::open(&path).unwrap().next().unwrap().unwrap();
    assert_eq!(recorded.error, Some(error.clone()));
    error
}

#[tokio::test]
async fn a_compressed_answer_is_named() {
    // What gzip makes of nothing.
    let gzip: [u8; 20] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for wire in WIRES {
        let error = refused(wire, Script::stream([gzip]).header("content-encoding", "gzip")).await;
        assert_eq!((class_of(&error), error.status), (ErrorClass::Permanent, Some(200)));
        assert!(error.message.contains("`content-encoding: gzip`") && error.message.contains("proxy"), "{error}");
    }
    let body = Script { status: 500, ..Script::stream([gzip]).header("Content-Encoding", "br") };
    let error = refused(Wire::Anthropic, body).await;
    assert_eq!(error.message, "the provider answered HTTP 500: (a body that is compressed with br)");
    let plain = Script::stream(["data: {}\n\n"]).header("content-encoding", "identity");
    let error = refused(Wire::Anthropic, plain).await;
    assert!(error.message.contains("no message_start was received"), "{error}");
}

#[tokio::test]
async fn a_body_without_an_event_is_named() {
    for wire in WIRES {
        let error = refused(wire, Script::stream([""; 0])).await;
        assert_eq!(class_of(&error), ErrorClass::Transient);
        let empty = "the provider answered with an empty body: 0 bytes (content type text/event-stream)";
        assert_eq!(error.message, empty);
        let error = refused(wire, Script { headers: Vec::new(), ..Script::stream(["<html>\n", "no</html>\n"]) }).await;
        let page = "the provider answered with 17 bytes and no event; they begin: <html> no</html> (no content type)";
        assert_eq!((class_of(&error), error.message.as_str()), (ErrorClass::Transient, page));
        let error = refused(wire, Script::plain(200, "application/json", "")).await;
        let empty = "the provider answered with an empty body: 0 bytes, content type \"application/json\"";
        assert!(error.message.starts_with(empty), "{error}");
        assert_eq!(class_of(&error), ErrorClass::Transient);
    }
}

#[test]
fn an_address_with_its_endpoint_is_explained() {
    let cases = [
        (Wire::Anthropic, "https://host/v1/messages", "`/messages`, which is added to it; write https://host/v1"),
        (Wire::Anthropic, "https://host/a/messages/", "`/messages`, which is added to it; write https://host/a"),
        (Wire::OpenAiChat, "http://host:1/v1/chat/completions", "which is added to it; write http://host:1/v1"),
        (Wire::OpenAiResponses, "https://host/v1/responses", "`/responses`, which is added to it"),
        (Wire::Anthropic, "https://host/v1/chat/completions", "the endpoint of the provider openai-chat"),
        (Wire::OpenAiChat, "https://host/v1/responses", "the endpoint of the provider openai-responses"),
    ];
    for (wire, address, expected) in cases {
        let config = HttpConfig { base_url: Some(address.to_owned()), ..HttpConfig::new(wire, "m") };
        let error = connect(&ProviderConfig::Http(config)).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("base_url of the provider cannot be used: ") && error.contains(expected), "{error}");
    }
    for good in ["https://host/my-messages", "https://host/messages/v1", "https://host/chat"] {
        model(HttpConfig { base_url: Some(good.to_owned()), ..HttpConfig::new(Wire::Anthropic, "m") });
    }
}
