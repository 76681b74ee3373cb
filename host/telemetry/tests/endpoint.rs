//! The endpoint as clients meet it: over real connections, and read by a Prometheus server.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use tidegate_servers::{Prometheus, ensure_prometheus, promtool_check};
use tidegate_telemetry::{Metrics, MetricsServer};

use crate::support::{observe, tool, whole_session};

/// What a lint of Prometheus finds in names that are the specification's.
const ACCEPTED: &str = "metric names should not contain abbreviated units";

async fn served() -> (Metrics, MetricsServer) {
    let metrics = Metrics::new();
    whole_session(&mut metrics.session());
    let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap(), &metrics).await.unwrap();
    (metrics, server)
}

/// Sends a request and returns the head of the response, in lower case, and the body.
fn exchange(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn get(address: SocketAddr, path: &str, headers: &str) -> (String, String) {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_format_follows_the_accept_header() {
    let (metrics, server) = served().await;
    let (head, body) = get(server.address(), "/metrics", "");
    assert!(head.starts_with("http/1.1 200 ok"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    assert_eq!(body, metrics.prometheus());
    let (head, body) = get(server.address(), "/metrics?x=1", "Accept: application/openmetrics-text\r\n");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    assert_eq!(body, metrics.openmetrics());
    observe(&mut metrics.session(), 1, [tool("later", false, 1)]);
    assert!(get(server.address(), "/metrics", "").1.contains("tool=\"later\""), "it is never behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_methods_and_requests_are_refused() {
    let (_metrics, server) = served().await;
    let address = server.address();
    for path in ["/", "/metrics/", "/metricsx", "/favicon.ico"] {
        let (head, body) = get(address, path, "");
        assert!(head.starts_with("http/1.1 404"), "{path}: {head}");
        assert_eq!(body, "the metrics are at /metrics\n");
    }
    let (head, _) = exchange(address, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert!(head.starts_with("http/1.1 405") && head.contains("allow: get, head"), "{head}");
    let (head, body) = exchange(address, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("http/1.1 200") && body.is_empty(), "{head}");
    let (head, _) = exchange(address, "not http\r\n\r\n");
    assert!(head.starts_with("http/1.1 400"), "{head}");
}

/// What clients do that send no complete request, or do not read the response.
const STRAGGLERS: [(&str, &str); 5] = [
    ("sends nothing", ""),
    ("sends a part of the first line", "GET /met"),
    ("sends headers without an end", "GET /metrics HTTP/1.1\r\nHost: x\r\nX-A: b\r\n"),
    ("sends a body without an end", "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"),
    ("does not read", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_number_of_stragglers_keeps_others_out() {
    let (metrics, server) = served().await;
    for (what, bytes) in STRAGGLERS {
        let straggler = || {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(bytes.as_bytes()).unwrap();
            stream
        };
        let mut open: Vec<TcpStream> = (0..200).map(|_| straggler()).collect();
        assert_eq!(get(server.address(), "/metrics", "").1, metrics.prometheus(), "200 clients of which each {what}");
        // The first had to make way for later ones: it gets the end, or what it has asked for, and does not wait for ever.
        let mut rest = Vec::new();
        drop(open[0].read_to_end(&mut rest));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_heads_are_refused_and_connections_are_not_kept() {
    let (metrics, server) = served().await;
    let address = server.address();
    let (large, many) = (format!("X-A: {}\r\n", "b".repeat(60_000)), "X-A: b\r\n".repeat(500));
    for headers in [&large, &many] {
        let (head, _) = get(address, "/metrics", headers);
        assert!(head.starts_with("http/1.1 431"), "{head}");
    }
    assert_eq!(get(address, "/metrics", &format!("X-A: {}\r\n", "b".repeat(4_000))).1, metrics.prometheus());
    let again = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n".repeat(2);
    let (head, body) = exchange(address, &again);
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(body, metrics.prometheus(), "one response");
    let (head, body) = exchange(address, "GET /metrics HTTP/1.0\r\n\r\n");
    assert!(head.starts_with("http/1.0 200"), "{head}");
    assert_eq!(body, metrics.prometheus());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_an_error_that_says_what_to_do() {
    let (metrics, server) = served().await;
    let address = server.address();
    let error = MetricsServer::bind(address, &metrics).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot serve metrics at {address}: ")), "{error}");
    assert!(error.hint().unwrap().contains("choose another port"), "{error}");
    drop(server);
    // The task ends, and the address is free, some time after the server was dropped.
    while TcpStream::connect(address).is_ok() {
        tokio::task::yield_now().await;
    }
    let unreachable = MetricsServer::bind("192.0.2.1:9464".parse().unwrap(), &metrics).await.unwrap_err();
    assert!(unreachable.hint().unwrap().contains("no network interface"), "{unreachable}");
}

#[test]
fn promtool_accepts_the_text() {
    ensure_prometheus().unwrap();
    let metrics = Metrics::new();
    whole_session(&mut metrics.session());
    observe(&mut metrics.session(), 1, [tool("a\"b\\c\nd", false, 1)]);
    let found = promtool_check(&metrics.prometheus()).unwrap();
    let named = ["extension_callback_duration_ms", "extension_tool_duration_ms", "tool_call_duration_ms"];
    let accepted = named.map(|name| format!("{name} {ACCEPTED}"));
    assert_eq!(found, accepted);
    // The check can fail.
    let broken = metrics.prometheus().replace("# TYPE turn_total counter", "# TYPE turn_total gauge");
    assert_eq!(promtool_check(&broken).unwrap().len(), named.len() + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prometheus_server_reads_the_endpoint() {
    ensure_prometheus().unwrap();
    let (metrics, server) = served().await;
    observe(&mut metrics.session(), 1, [tool("a\"b\\c\nd", false, 1)]);
    let address = server.address();
    let read = move || -> anyhow::Result<_> {
        let prometheus = Prometheus::start(address)?;
        Ok((
            prometheus.query("rule_tokens_discarded_total")?,
            prometheus.query("extension_breaker_state")?,
            prometheus.query("tool_call_total")?,
            prometheus.query("histogram_quantile(0.5,extension_callback_duration_ms_bucket)")?,
        ))
    };
    let (tokens, breakers, calls, times) = tokio::task::spawn_blocking(read).await.unwrap().unwrap();
    assert_eq!((tokens.len(), tokens[0].1.as_str(), &tokens[0].0["rule"]), (1, "12", &"no-guess".into()), "{tokens:?}");
    assert_eq!(breakers.len(), 2, "{breakers:?}");
    assert!(calls.iter().any(|(labels, _)| labels["tool"] == "a\"b\\c\nd"), "{calls:?}");
    assert_eq!(times.len(), 2, "{times:?}");
}
