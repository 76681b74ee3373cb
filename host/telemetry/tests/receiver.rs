//! What becomes of telemetry that a receiver takes late, in part, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_telemetry::{LostTelemetry, Telemetry};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tracing::{Span, error_span};
use tracing_subscriber::layer::SubscriberExt as _;

/// A full batch, which is sent without delay.
const BATCH: u32 = 512;

/// A server that answers each request to `/v1/traces` with the next of these responses, and the last for ever. Each request is
/// announced with its path and body. Metrics are always accepted.
async fn server(responses: &'static [&'static str]) -> (String, mpsc::UnboundedReceiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (announce, requests) = mpsc::unbounded_channel();
    let count = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, responses, announce.clone(), Arc::clone(&count)));
        }
    });
    (address, requests)
}

async fn serve(
    mut stream: TcpStream,
    responses: &[&str],
    announce: mpsc::UnboundedSender<(String, Vec<u8>)>,
    count: Arc<AtomicUsize>,
) {
    let mut bytes = Vec::new();
    loop {
        let Some(head) = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4) else {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
            continue;
        };
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        assert!(text.contains("content-type: application/x-protobuf"), "{text}");
        let length =
            text.split("content-length: ").nth(1).unwrap().split('\r').next().unwrap().parse::<usize>().unwrap();
        while bytes.len() < head + length {
            assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
        }
        let path = text.split(' ').nth(1).unwrap().to_owned();
        let body = bytes[head..head + length].to_vec();
        bytes.drain(..head + length);
        let response = if path == "/v1/traces" {
            responses[count.fetch_add(1, Ordering::SeqCst).min(responses.len() - 1)]
        } else {
            OK
        };
        announce.send((path, body)).unwrap_or_default();
        stream.write_all(response.as_bytes()).await.unwrap();
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
const WRONG_KEY: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n";
const WRONG_PATH: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\n<html";
/// `partial_success { rejected_spans: 2, error_message: "too old" }`
const PARTIAL: &str = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n\x0a\x0b\x08\x02\x12\x07too old";
/// `partial_success { error_message: "slow down" }`: nothing was rejected.
const WARNED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n\x0a\x0b\x12\x09slow down";
const BUSY_FOR_LONG: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
const SILENCE: &str = "";

fn telemetry(endpoint: &str) -> Telemetry {
    let variable = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| endpoint.to_owned());
    Telemetry::from_variables(&variable).unwrap().unwrap()
}

/// Makes spans of turns that have ended.
fn turns(telemetry: &Telemetry, count: u32) {
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    tracing::subscriber::with_default(subscriber, || (0..count).for_each(|turn| drop(span(turn))));
}

fn span(turn: u32) -> Span {
    error_span!(target: flow::SPANS, "turn", session = "s", turn, provider = "p", model = "m")
}

fn lost(spans: u64, ended: u64, metrics: bool, cause: &str, result: Result<(), LostTelemetry>) {
    let lost = result.unwrap_err();
    assert_eq!((lost.spans, lost.ended, lost.metrics), (spans, ended, metrics), "{lost}");
    assert!(lost.cause.contains(cause), "{lost}");
}

#[tokio::test]
async fn a_request_that_failed_is_sent_again() {
    let (endpoint, mut requests) = server(&[BUSY, OK]).await;
    let telemetry = telemetry(&endpoint);
    turns(&telemetry, BATCH);
    let (_, first) = requests.recv().await.unwrap();
    // The end does not wait for the pause that the server asked for.
    telemetry.finish().await.unwrap();
    let mut rest = Vec::new();
    while let Ok(request) = requests.try_recv() {
        rest.push(request);
    }
    let again = rest.iter().find(|(path, _)| path == "/v1/traces").unwrap();
    assert!(again.1 == first, "the same spans in the same order");
    assert!(rest.iter().any(|(path, body)| path == "/v1/metrics" && !body.is_empty()));
}

#[tokio::test]
async fn what_is_refused_is_reported_once_with_its_cause() {
    for (response, lost_spans, cause) in [
        (WRONG_KEY, 3, "401 Unauthorized; check OTEL_EXPORTER_OTLP_HEADERS"),
        (WRONG_PATH, 3, "404 Not Found; check the path in OTEL_EXPORTER_OTLP_ENDPOINT"),
        (BUSY, 3, "503 Service Unavailable"),
        (PARTIAL, 2, "rejected them: too old"),
    ] {
        let (endpoint, _requests) = server(Box::leak(Box::new([response]))).await;
        let telemetry = telemetry(&endpoint);
        turns(&telemetry, 3);
        let result = telemetry.finish().await;
        let sentence = result.clone().unwrap_err().to_string();
        assert!(sentence.starts_with(&format!("{lost_spans} of 3 spans were not exported: {endpoint} ")), "{sentence}");
        lost(lost_spans, 3, false, cause, result);
    }
}

#[tokio::test]
async fn a_warning_of_the_receiver_is_no_loss() {
    let (endpoint, _requests) = server(&[WARNED]).await;
    let telemetry = telemetry(&endpoint);
    turns(&telemetry, 3);
    telemetry.finish().await.unwrap();
}

#[tokio::test]
async fn rejected_metrics_are_reported() {
    let (endpoint, _requests) = server(&[PARTIAL]).await;
    let variable = |name: &str| match name {
        // The path whose responses the server was given.
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT" => Some(format!("{endpoint}/v1/traces")),
        _ => None,
    };
    let telemetry = Telemetry::from_variables(&variable).unwrap().unwrap();
    turns(&telemetry, 3);
    lost(0, 0, true, "rejected them: too old", telemetry.finish().await);
}

#[tokio::test]
async fn spans_that_found_no_room_are_reported() {
    const ROOM: u32 = 8192;
    let (endpoint, mut requests) = server(&[BUSY_FOR_LONG, OK]).await;
    let telemetry = telemetry(&endpoint);
    turns(&telemetry, BATCH);
    requests.recv().await.unwrap();
    // The first batch waits to be sent again, and the others for it.
    turns(&telemetry, ROOM + 100);
    let ended = u64::from(BATCH + ROOM + 100);
    lost(100, ended, false, "more than 8192 spans waited", telemetry.finish().await);
}

#[tokio::test]
async fn a_receiver_that_is_not_there_costs_nothing_but_the_telemetry() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let telemetry = telemetry(&format!("http://{closed}"));
    // More than can wait.
    turns(&telemetry, 9000);
    lost(9000, 9000, true, "cannot reach http://127.0.0.1", telemetry.finish().await);
}

/// The clock of the runtime leaps where everything waits, as it does with a receiver that sends nothing.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_says_nothing_is_not_waited_for() {
    let (endpoint, _requests) = server(&[SILENCE]).await;
    let telemetry = telemetry(&endpoint);
    turns(&telemetry, 3);
    let result = telemetry.finish().await;
    assert!(result.unwrap_err().to_string().starts_with("3 of 3 spans"));
}

#[tokio::test]
async fn only_spans_of_turns_are_wanted() {
    let (endpoint, mut requests) = server(&[OK]).await;
    let telemetry = telemetry(&endpoint);
    let subscriber = tracing_subscriber::registry().with(telemetry.layer());
    tracing::subscriber::with_default(subscriber, || {
        let other = error_span!("turn", session = "not ours");
        assert!(other.is_disabled() && !tracing::enabled!(tracing::Level::ERROR), "nothing else is made for it");
        let _entered = other.enter();
        drop(span(1));
        // A part of a turn that is not known.
        drop(error_span!(target: flow::SPANS, "step", step = 1));
    });
    telemetry.finish().await.unwrap();
    let mut bodies = String::new();
    while let Ok((_, body)) = requests.try_recv() {
        bodies += &String::from_utf8_lossy(&body);
    }
    assert_eq!(bodies.matches("tidegate.outcome").count(), 1);
    assert!(!bodies.contains("not ours") && !bodies.contains("tidegate.step"));
}

#[test]
fn without_a_runtime_nothing_can_be_exported() {
    let variable = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://127.0.0.1:1".to_owned());
    let error = Telemetry::from_variables(&variable).unwrap_err();
    assert!(error.to_string().contains("call this inside of a runtime"), "{error}");
}
