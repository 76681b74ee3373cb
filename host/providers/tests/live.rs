//! Over real sockets: what servers do wrong, time-outs, the abort that the server sees, and recordings of all of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Model, ModelStream};
use flow::{Delta, ErrorClass, KeySource, Message, ModelError, Prompt};
use providers::{HttpConfig, ProviderConfig, ProviderError, ReplayConfig, check, connect};
use tidegate_providers as providers;
use wire::Wire;

use crate::classes::class_of;
use crate::support::{Fixture, Script, Step};

const TEXT: &[u8] = include_bytes!("../../../tests/corpus/providers/streams/anthropic/text.sse");
const CRLF: &[u8] = include_bytes!("../../../tests/corpus/providers/streams/anthropic/text-crlf.sse");
const BUSY: &[u8] = include_bytes!("../../../tests/corpus/providers/streams/anthropic/error-inside.sse");

fn config(server: &Fixture) -> HttpConfig {
    HttpConfig { base_url: Some(server.base_url.clone()), ..HttpConfig::new(Wire::Anthropic, "claude-sonnet-4-5") }
}

fn model(config: HttpConfig) -> Arc<dyn Model> {
    connect(&ProviderConfig::Http(config)).unwrap()
}

fn replay(path: &Path, change: impl FnOnce(&mut ReplayConfig)) -> Arc<dyn Model> {
    let mut config = ReplayConfig { speed: 0.0, ..ReplayConfig::new(path) };
    change(&mut config);
    connect(&ProviderConfig::Recording(config)).unwrap()
}

fn prompt(words: &str) -> Prompt {
    Prompt { messages: vec![Arc::new(Message::user(words))], ..Prompt::default() }
}

async fn next(stream: &mut Box<dyn ModelStream>) -> Option<Result<Delta, ModelError>> {
    std::future::poll_fn(|cx| stream.poll_next(cx)).await
}

/// All deltas, and the error that ended them if one did.
async fn ask(model: &Arc<dyn Model>, words: &str) -> (Vec<Delta>, Option<ModelError>) {
    let prompt = prompt(words);
    let mut stream = match model.start(&prompt).await {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut deltas = Vec::new();
    loop {
        match next(&mut stream).await {
            Some(Ok(delta)) => deltas.push(delta),
            Some(Err(error)) => {
                assert!(next(&mut stream).await.is_none(), "something came after an error");
                return (deltas, Some(error));
            }
            None => return (deltas, None),
        }
    }
}

/// Reads on until a delta brings this text.
async fn read_until(stream: &mut Box<dyn ModelStream>, words: &str) {
    while let Some(delta) = next(stream).await {
        if matches!(delta.unwrap(), Delta::Piece { text, .. } if text.contains(words)) {
            return;
        }
    }
    panic!("{words:?} did not come");
}

fn text_of(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| if let Delta::Piece { text, .. } = delta { Some(text.as_str()) } else { None })
        .collect()
}

#[tokio::test]
async fn chunks_may_end_inside_a_character_and_inside_a_line_end() {
    for bytes in [TEXT, CRLF] {
        let whole = Fixture::start([Script::stream([bytes])]).await;
        let expected = ask(&model(config(&whole)), "hi").await;
        assert!(matches!(expected.0.last(), Some(Delta::Stop { .. })), "{expected:?}");
        // Every chunk ends in the middle of a character or between \r and \n, where there is one.
        let cuts =
            |at: &usize| *at > 0 && ((bytes[*at] & 0xC0 == 0x80) || (bytes[*at - 1] == b'\r' && bytes[*at] == b'\n'));
        let places: Vec<usize> = (0..bytes.len()).filter(cuts).collect();
        assert!(places.len() > 5);
        let mut chunks = Vec::new();
        let mut from = 0;
        for at in places.into_iter().chain([bytes.len()]) {
            chunks.push(&bytes[from..at]);
            from = at;
        }
        let cut = Fixture::start([Script::stream(chunks)]).await;
        assert_eq!(ask(&model(config(&cut)), "hi").await, expected);
    }
}

#[tokio::test]
async fn an_error_inside_a_good_answer_keeps_what_came() {
    let server = Fixture::start([Script::stream([BUSY])]).await;
    let (deltas, error) = ask(&model(config(&server)), "hi").await;
    let error = error.unwrap();
    assert_eq!((class_of(&error), error.code.as_deref()), (ErrorClass::Transient, Some("overloaded_error")));
    assert_eq!(text_of(&deltas), "The tide ");
}

#[tokio::test]
async fn a_socket_that_closes_is_transient_and_keeps_what_came() {
    let server = Fixture::start([Script::stream([&TEXT[..600]]).then(Step::Abort)]).await;
    let (deltas, error) = ask(&model(config(&server)), "hi").await;
    let error = error.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Transient);
    assert!(error.message.contains("broke"), "{error}");
    assert!(matches!(deltas.first(), Some(Delta::Start { .. })), "{deltas:?}");
}

#[tokio::test]
async fn silence_has_a_limit_and_pauses_within_it_do_not() {
    // Each pause is so much shorter than the limit that a busy machine does not make it too long.
    let slow = (1..8).fold(Script::stream([&TEXT[..100]]), |script, part| {
        let end = if part == 7 { TEXT.len() } else { 100 * (part + 1) };
        script.then(Step::Wait(Duration::from_millis(300))).then(Step::Send(TEXT[100 * part..end].to_vec()))
    });
    let stalled = Script::stream([&TEXT[..600]]).then(Step::Hang);
    let server = Fixture::start([slow, stalled]).await;
    let model = model(HttpConfig { idle_timeout: Duration::from_millis(1500), ..config(&server) });
    assert_eq!(ask(&model, "hi").await.1, None, "all pauses together are longer than the limit, none of them alone");
    let error = ask(&model, "hi").await.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Transient);
    assert!(error.message.contains("silent for 1.5 s inside its answer"), "{error}");
    server.dropped(1).await;
}

#[tokio::test]
async fn silence_before_the_answer_has_the_same_limit() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}", listener.local_addr().unwrap()));
    let config =
        HttpConfig { base_url, idle_timeout: Duration::from_millis(100), ..HttpConfig::new(Wire::OpenAiChat, "m") };
    let error = ask(&model(config), "hi").await.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Transient);
    assert!(error.message.contains("after the request"), "{error}");
}

#[tokio::test]
async fn a_slow_reader_is_not_taken_for_a_silent_server() {
    let wait = Step::Wait(Duration::from_millis(2000));
    let server =
        Fixture::start([Script::stream([&TEXT[..600]]).then(wait).then(Step::Send(TEXT[600..].to_vec()))]).await;
    let model = model(HttpConfig { idle_timeout: Duration::from_millis(1500), ..config(&server) });
    let prompt = prompt("hi");
    let mut stream = model.start(&prompt).await.unwrap();
    next(&mut stream).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(1600)).await;
    while let Some(delta) = next(&mut stream).await {
        delta.unwrap();
    }
}

#[tokio::test]
async fn an_event_beyond_the_limit_ends_the_answer() {
    let mut huge = b"data: ".to_vec();
    huge.resize(wire::MAX_EVENT_BYTES + 10, b'x');
    let server = Fixture::start([Script::stream([TEXT[..300].to_vec(), huge]).then(Step::Hang)]).await;
    let (_, error) = ask(&model(config(&server)), "hi").await;
    let error = error.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Permanent);
    assert!(error.message.contains("larger than 8388608 bytes"), "{error}");
    server.dropped(0).await;
}

#[tokio::test]
async fn an_answer_that_is_no_stream_says_what_it_is() {
    let page = Script::plain(200, "text/html; charset=utf-8", "<html>\n  <title>Log in</title>");
    let refusal = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let busy = Script::plain(529, "application/json", refusal).header("retry-after", "7");
    let away = Script::plain(307, "text/plain", "").header("location", "http://127.0.0.1:9/");
    let server = Fixture::start([page, busy, away]).await;
    let model = model(config(&server));
    let error = ask(&model, "hi").await.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Permanent);
    assert!(error.message.contains("text/html") && error.message.contains("<title>Log in"), "{error}");
    let error = ask(&model, "hi").await.1.unwrap();
    let parts = (class_of(&error), error.status, error.code.as_deref(), error.retry_after_ms);
    assert_eq!(parts, (ErrorClass::Transient, Some(529), Some("overloaded_error"), Some(7000)));
    assert_eq!(error.facts.provider.as_deref(), Some("anthropic"));
    let error = ask(&model, "hi").await.1.unwrap();
    assert_eq!((class_of(&error), error.status), (ErrorClass::Permanent, Some(307)));
}

/// A tool whose name no provider takes is offered under another one, and called by its own.
#[tokio::test]
async fn a_tool_that_is_offered_under_another_name_is_called_by_its_own() {
    let stream = include_str!("../../../tests/corpus/providers/streams/anthropic/whole-input.sse");
    let offered = "read_file_d0c450e6";
    let server = Fixture::start([Script::stream([stream.replace("grep", offered)])]).await;
    let parameters = serde_json::json!({"type": "object", "properties": {}});
    let tool = flow::ToolSpec { name: "read.file".into(), description: "Reads.".into(), parameters };
    let prompt = Prompt { tools: vec![tool], ..prompt("hi") };
    let model = model(config(&server));
    let mut stream = model.start(&prompt).await.unwrap();
    let mut called = Vec::new();
    while let Some(delta) = next(&mut stream).await {
        if let Delta::BlockStart { kind: flow::StreamKind::Tool { name, .. }, .. } = delta.unwrap() {
            called.push(name);
        }
    }
    assert!(server.seen()[0].body.contains(&format!("\"name\":\"{offered}\"")), "{}", server.seen()[0].body);
    assert!(called.contains(&"read.file".to_owned()), "{called:?}");
}

#[tokio::test]
async fn nobody_there_says_so() {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let base_url = Some(format!("http://127.0.0.1:{port}"));
    let config = HttpConfig { base_url, ..HttpConfig::new(Wire::OpenAiResponses, "m") };
    let error = ask(&model(config.clone()), "hi").await.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Transient);
    assert!(error.message.contains(&format!("cannot connect to http://127.0.0.1:{port}")), "{error}");
    let error = check(&ProviderConfig::Http(config)).await.unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    let server = Fixture::start([Script::stream([&TEXT[..700]]).then(Step::Hang)]).await;
    let model = model(config(&server));
    let prompt = prompt("hi");
    let mut stream = model.start(&prompt).await.unwrap();
    read_until(&mut stream, "Hafen").await;
    drop(stream);
    // Its server would send nothing more for an hour.
    server.dropped(0).await;
}

#[tokio::test]
async fn dropping_a_request_before_its_answer_closes_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = Some(format!("http://{}", listener.local_addr().unwrap()));
    let model = model(HttpConfig { base_url, ..HttpConfig::new(Wire::OpenAiChat, "m") });
    let asked = tokio::spawn(async move { ask(&model, "hi").await });
    let (mut socket, _) = listener.accept().await.unwrap();
    asked.abort();
    let mut bytes = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut bytes);
    let read = tokio::time::timeout(Duration::from_secs(60), read).await;
    assert!(read.is_ok(), "the connection is still open");
}

#[tokio::test]
async fn a_finished_answer_leaves_its_connection_for_the_next() {
    let server = Fixture::start([Script::stream([TEXT]), Script::stream([TEXT])]).await;
    let model = model(config(&server));
    let one = ask(&model, "one").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(ask(&model, "two").await, one);
    let connections: Vec<usize> = server.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0]);
}

/// A key in the environment of this process; each test has its own variable, so that none meets another's.
fn with_key(config: HttpConfig, variable: &str) -> HttpConfig {
    HttpConfig { key: KeySource::Env(variable.to_owned()), ..config }
}

#[tokio::test]
async fn a_key_goes_where_it_should_and_nowhere_else() {
    // `CARGO_PKG_NAME` is set in every test process; it represents a key here.
    let key = std::env::var("CARGO_PKG_NAME").unwrap();
    let refused = || Script::plain(401, "application/json", r#"{"error":{"message":"bad key"}}"#);
    let server = Fixture::start([refused(), refused(), refused()]).await;
    for (wire, header) in
        [(Wire::Anthropic, format!("x-api-key: {key}")), (Wire::OpenAiChat, format!("authorization: Bearer {key}"))]
    {
        let config = with_key(HttpConfig { wire, ..config(&server) }, "CARGO_PKG_NAME");
        let error = ask(&model(config), "hi").await.1.unwrap();
        assert!(error.message.contains("bad key") && error.message.contains("check the API key"), "{error}");
        assert!(!format!("{error:?}").contains(&key));
        let head = server.seen().last().unwrap().head.clone();
        assert!(head.lines().any(|line| line.eq_ignore_ascii_case(&header)), "{head}");
    }
    // At another address than the vendor's, the usual variable is not read.
    let headers = vec![("x-team".to_owned(), "tide".to_owned())];
    ask(&model(HttpConfig { headers, ..config(&server) }), "hi").await;
    let head = server.seen().last().unwrap().head.to_lowercase();
    assert!(head.contains("x-team: tide") && head.contains("anthropic-version: 2023-06-01"), "{head}");
    assert!(!head.contains("x-api-key") && !head.contains("authorization"), "{head}");

    let missing = with_key(HttpConfig::new(Wire::Anthropic, "m"), "TIDEGATE_NO_SUCH_VARIABLE");
    let error = connect(&ProviderConfig::Http(missing)).map(|_| ()).unwrap_err();
    assert!(
        matches!(&error, ProviderError::NoKey { variable, .. } if variable == "TIDEGATE_NO_SUCH_VARIABLE"),
        "{error}"
    );
}

/// Gateways repeat in their answers what they were sent, and errors reach screens, logs and transcripts.
#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_get_it_into_an_error() {
    let key = std::env::var("CARGO_PKG_NAME").unwrap();
    let said = format!(
        r#"{{"error":{{"message":"no such key: {key} (gate-word-1)","code":"bad-{key}","type":"for-{key}"}}}}"#
    );
    let inside = format!("event: error\ndata: {said}\n\n");
    let server = Fixture::start([
        Script::plain(401, "application/json", &said),
        Script::plain(200, "text/html", &said),
        Script::stream([inside.as_bytes()]),
        Script::plain(401, "application/json", &said),
    ])
    .await;
    let headers = vec![("x-gate".to_owned(), "Bearer gate-word-1".to_owned())];
    let config = with_key(HttpConfig { headers, ..config(&server) }, "CARGO_PKG_NAME");
    let model = model(config.clone());
    for _ in 0..3 {
        let error = ask(&model, "hi").await.1.unwrap();
        assert!(error.message.contains("no such key: *** (***)"), "{error}");
        assert!(!format!("{error:?}").contains(&key), "{error:?}");
    }
    let error = check(&ProviderConfig::Http(config)).await.unwrap_err().to_string();
    assert!(error.contains("no such key: *** (***)"), "{error}");
}

/// Errors contain the start of a long body: a secret that is cut there is masked as well.
#[tokio::test]
async fn an_excerpt_holds_no_part_of_a_key() {
    let key = std::env::var("CARGO_PKG_NAME").unwrap();
    let bodies: Vec<String> =
        (170..200).map(|at| format!("{} {key} {}", ".".repeat(at), "and so on ".repeat(100))).collect();
    let event = |body: &String| format!("data: {{{body}\n\n");
    let mut scripts = Vec::new();
    for body in &bodies {
        scripts.push(Script::plain(500, "text/plain", body));
        scripts.push(Script::stream([event(body)]));
        scripts.push(Script::plain(500, "text/plain", &serde_json::json!({"message": body.repeat(9)}).to_string()));
    }
    let count = scripts.len();
    let server = Fixture::start(scripts).await;
    let model = model(with_key(config(&server), "CARGO_PKG_NAME"));
    for _ in 0..count {
        let error = ask(&model, "hi").await.1.unwrap();
        assert!(error.message.contains("....") && error.message.chars().count() < 2200, "{error}");
        assert!(!error.message.contains(&key[..4]), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_that_does_not_end_and_a_list_without_end_are_bounded() {
    let many = Script::plain(200, "application/json", &"x".repeat(1 << 20));
    let many = (0..8).fold(many, |script, _| script.then(Step::Send(vec![b'x'; 1 << 20])));
    let server = Fixture::start([many, Script::plain(500, "text/plain", &"no ".repeat(40_000)).then(Step::Hang)]).await;
    let error = check(&ProviderConfig::Http(config(&server))).await.unwrap_err().to_string();
    assert!(error.contains("more than 8388608 bytes where its list of models was expected"), "{error}");
    let error = ask(&model(config(&server)), "hi").await.1.unwrap();
    assert!(error.message.starts_with("the provider answered HTTP 500: no no no"), "{error}");
    server.dropped(1).await;
}

#[tokio::test]
async fn an_answer_without_end_is_dropped_at_its_limit() {
    let piece = br#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"0123456789"}}"#;
    let piece = [piece.as_slice(), b"\n\n"].concat();
    let begin: &[u8] = b"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}\n\n";
    let endless = (0..60).fold(Script::stream([begin]), |script, _| script.then(Step::Send(piece.clone())));
    let server = Fixture::start([endless.then(Step::Hang)]).await;
    let limits = wire::AnswerLimits { block_bytes: 95, ..wire::AnswerLimits::default() };
    let (deltas, error) = ask(&model(HttpConfig { limits, ..config(&server) }), "hi").await;
    let error = error.unwrap();
    assert_eq!((class_of(&error), text_of(&deltas).len()), (ErrorClass::Permanent, 90));
    assert!(error.message.contains("100 bytes in one block, the limit is 95"), "{error}");
    server.dropped(0).await;
}

#[tokio::test]
async fn addresses_are_taken_with_and_without_their_version() {
    for (wire, base, path) in [
        (Wire::Anthropic, "", "/v1/messages"),
        (Wire::Anthropic, "/v1", "/v1/messages"),
        (Wire::Anthropic, "/anthropic/", "/anthropic/v1/messages"),
        (Wire::OpenAiChat, "", "/v1/chat/completions"),
        (Wire::OpenAiChat, "/v1/", "/v1/chat/completions"),
        (Wire::OpenAiChat, "/api/paas/v4", "/api/paas/v4/chat/completions"),
        (Wire::OpenAiChat, "/proxy", "/proxy/chat/completions"),
        (Wire::OpenAiResponses, "", "/v1/responses"),
    ] {
        let server = Fixture::start([Script::plain(404, "text/plain", "no")]).await;
        let base_url = Some(format!("{}{base}", server.base_url));
        let error = ask(&model(HttpConfig { base_url, ..HttpConfig::new(wire, "m") }), "hi").await.1.unwrap();
        assert!(error.message.contains("check the model's name"), "{error}");
        assert!(server.seen()[0].head.starts_with(&format!("POST {path} HTTP/1.1")), "{}", server.seen()[0].head);
    }
    for bad in ["ftp://host", "host", "http://user:pass@host", "http://host/v1?key=1", ""] {
        let config = HttpConfig { base_url: Some(bad.into()), ..HttpConfig::new(Wire::Anthropic, "m") };
        let error = connect(&ProviderConfig::Http(config)).map(|_| ()).unwrap_err();
        assert!(matches!(error, ProviderError::Setting { key: "base_url", .. }), "{bad}: {error}");
    }
}

#[tokio::test]
async fn a_check_says_what_it_found() {
    let list = r#"{"data":[{"id":"claude-sonnet-4-5"},{"id":"other"}]}"#;
    let answers = [
        Script::plain(200, "application/json", list),
        Script::plain(200, "application/json", r#"{"data":[{"id":"other"}]}"#),
        Script::plain(404, "text/plain", "none"),
        Script::plain(401, "application/json", r#"{"error":{"message":"bad key"}}"#),
    ];
    let server = Fixture::start(answers).await;
    let config = ProviderConfig::Http(config(&server));
    assert!(check(&config).await.unwrap().contains("knows claude-sonnet-4-5"));
    assert!(check(&config).await.unwrap().contains("is not on its list of 1 model (other)"));
    assert!(check(&config).await.unwrap().contains("no list of models"));
    let error = check(&config).await.unwrap_err().to_string();
    assert!(error.contains("bad key") && error.contains("check the API key"), "{error}");
    assert!(server.seen()[0].head.starts_with("GET /v1/models "));
}

#[tokio::test]
async fn a_session_is_recorded_and_replayed_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    let refused = Script::plain(529, "application/json", r#"{"error":{"type":"overloaded_error","message":"busy"}}"#);
    // The second answer has its chunks inside characters.
    let answers = [
        refused.header("retry-after", "7").header("set-cookie", "session=secret"),
        Script::stream(TEXT.chunks(7)),
        Script::stream([BUSY]),
        Script::stream([&TEXT[..600]]).then(Step::Abort),
    ];
    let server = Fixture::start(answers).await;
    let live = model(HttpConfig { record: Some(path.clone()), ..with_key(config(&server), "CARGO_PKG_NAME") });
    let mut heard = Vec::new();
    for words in ["one tidegate-providers two", "three", "four", "five"] {
        heard.push(ask(&live, words).await);
    }
    assert_eq!(
        (heard[0].1.is_some(), heard[1].1.is_some(), heard[2].1.is_some(), heard[3].1.is_some()),
        (true, false, true, true)
    );
    assert!(heard[3].0.len() > 1);
    drop(live); // its recording is complete then

    let replayed = replay(&path, |_| {});
    assert_eq!((replayed.provider(), replayed.name()), ("recording", "claude-sonnet-4-5"));
    let told = std::fs::read_to_string(&path).unwrap();
    for secret in ["tidegate-providers", "x-api-key", "set-cookie", "session=secret"] {
        assert!(!told.contains(secret), "{secret} is in the recording:\n{told}");
    }
    for heard in heard {
        assert_eq!(ask(&replayed, "x").await, heard);
    }
    let error = ask(&replayed, "x").await.1.unwrap();
    assert!(error.message.contains("request 5") && error.message.contains("4 requests"), "{error}");
    assert!(check(&ProviderConfig::Recording(ReplayConfig::new(&path))).await.unwrap().contains("4 requests"));
    let again = HttpConfig { record: Some(path.clone()), ..config(&server) };
    let error = connect(&ProviderConfig::Http(again)).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("exists already"), "{error}");
}

#[tokio::test]
async fn a_cancelled_session_is_a_good_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.jsonl");
    // A chunk with the beginning of an event waits for the rest of it: a secret may begin there.
    let end = TEXT.windows(2).take(700).rposition(|two| two == b"\n\n").unwrap() + 2;
    let hangs = Script::stream([&TEXT[..end], &TEXT[end..end + 9]]).then(Step::Hang);
    let server = Fixture::start([hangs, Script::stream([TEXT])]).await;
    let live = model(HttpConfig { record: Some(path.clone()), ..config(&server) });
    let prompt = prompt("hi");
    let mut stream = live.start(&prompt).await.unwrap();
    read_until(&mut stream, "Hafen").await;
    // Each line is on the disk soon after it happened: a killed program leaves this.
    let mut killed = Vec::new();
    for _ in 0..100 {
        killed = std::fs::read(&path).unwrap();
        if String::from_utf8_lossy(&killed).contains("Hafen") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stream);
    // Whoever stops reading at the stop has the whole answer.
    let mut stream = live.start(&prompt).await.unwrap();
    while !matches!(next(&mut stream).await, Some(Ok(Delta::Stop { .. }))) {}
    drop(stream);
    drop(live);

    let told = std::fs::read_to_string(&path).unwrap();
    let ends: Vec<&str> = told.lines().filter(|line| line.starts_with("{\"end\"")).collect();
    assert!(ends[0].contains("\"cut\"") && ends[1].contains("\"complete\"") && ends.len() == 2, "{ends:?}");
    let torn = [killed.as_slice(), b"{\"text\":\"half a li"].concat();
    for bytes in [told.as_bytes(), &killed, &torn] {
        std::fs::write(&path, bytes).unwrap();
        let (deltas, error) = ask(&replay(&path, |_| {}), "hi").await;
        assert_eq!(text_of(&deltas), "Grüße an den Hafen");
        assert!(error.unwrap().message.contains("cut off here"));
    }
}
