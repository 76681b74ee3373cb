//! Request smuggling: bytes that servers and proxies parse in different ways lead to one request at the server behind the gateway, or to
//! none.

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::model::Model;
use super::running::{Answer, Running, request, rest};
use super::{place, plain};

/// A second request, hidden in bytes whose length is ambiguous.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: HOST\r\n\r\n";

/// One row per case: bytes behind `POST /a HTTP/1.1`, the statuses of the responses, and the bodies that the server gets.
#[test]
fn a_request_has_one_length() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    let head = "\r\nHost: HOST\r\nConnection: close\r\n";
    let cases: &[(&str, String, &[u16], &[&str])] = &[
        ("plain", format!("{head}Content-Length: 3\r\n\r\nabc"), &[200], &["abc"]),
        ("chunks", format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), &[200], &["abc"]),
        (
            "chunk extension",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n"),
            &[200],
            &["abc"],
        ),
        (
            "trailers",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Api-Key: k\r\n\r\n"),
            &[200],
            &["abc"],
        ),
        (
            "both, chunks end first",
            format!("{head}Content-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n{HIDDEN}"),
            &[200],
            &["abc"],
        ),
        (
            "both, length ends first",
            format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[200],
            &["abc"],
        ),
        ("two lengths", format!("{head}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabc{HIDDEN}"), &[400], &[]),
        ("one length twice", format!("{head}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), &[200], &["abc"]),
        ("a list of lengths", format!("{head}Content-Length: 3, 3\r\n\r\nabc"), &[400], &[]),
        ("a negative length", format!("{head}Content-Length: -1\r\n\r\nabc"), &[400], &[]),
        ("a length with a sign", format!("{head}Content-Length: +3\r\n\r\nabc"), &[400], &[]),
        ("a hexadecimal length", format!("{head}Content-Length: 0x3\r\n\r\nabc"), &[400], &[]),
        ("a length beyond numbers", format!("{head}Content-Length: 18446744073709551617\r\n\r\nabc"), &[400], &[]),
        (
            "other encodings",
            format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        (
            "chunks in between",
            format!("{head}Transfer-Encoding: chunked, identity\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        ("nearly chunks", format!("{head}Transfer-Encoding: xchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), &[400], &[]),
        (
            "chunks twice",
            format!("{head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        (
            "chunks after a tab",
            format!("{head}Transfer-Encoding:\tchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[200],
            &["abc"],
        ),
        (
            "a space before the colon",
            format!("{head}Transfer-Encoding : chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        (
            "a folded line",
            format!("{head}X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc"),
            &[400],
            &[],
        ),
        (
            "a folded encoding",
            format!("{head}Transfer-Encoding:\r\n chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        ("a size that is none", format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"), &[400], &[]),
        (
            "a size beyond numbers",
            format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        (
            "a chunk that is too long",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"),
            &[400],
            &[],
        ),
        ("a zero byte in a value", format!("{head}X-A: b\0c\r\nContent-Length: 0\r\n\r\n"), &[400], &[]),
        ("a bare carriage return", format!("{head}X-A: b\rContent-Length: 3\r\n\r\n"), &[400], &[]),
        (
            "HTTP/1.0 with chunks",
            " HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_owned(),
            &[400],
            &[],
        ),
        ("another version", " HTTP/9.9\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n".to_owned(), &[400, 505], &[]),
        ("no version", "\r\nHost: HOST\r\n\r\n".to_owned(), &[400], &[]),
        ("words", " these are some words\r\n\r\n".to_owned(), &[400], &[]),
    ];
    for (name, bytes, statuses, bodies) in cases {
        let before = model.seen().len();
        let version = if bytes.starts_with(head) { " HTTP/1.1" } else { "" };
        let said = running.raw(format!("POST /a{version}{bytes}").as_bytes());
        let status = Answer::of(&said).status;
        assert!(statuses.contains(&status), "{name}: {status} {said}");
        assert_eq!(said.matches("HTTP/1.").count(), 1, "{name}: one answer: {said}");
        let seen = model.seen();
        let got: Vec<&str> = seen[before..].iter().map(|(_, body)| body.as_str()).collect();
        assert_eq!(&got, bodies, "{name}");
        for (head, body) in &seen[before..] {
            let lengths: Vec<String> = head
                .to_lowercase()
                .lines()
                .filter_map(|line| line.strip_prefix("content-length: ").map(str::to_owned))
                .collect();
            assert_eq!(lengths, [body.len().to_string()], "{name}: {head}");
            assert!(!head.to_lowercase().contains("transfer-encoding"), "{name}: {head}");
        }
    }
    // Bare line feeds end lines at both ends or at none: the parsed request is serialized again.
    let said = running.raw(b"POST /a HTTP/1.1\nHost: HOST\nConnection: close\nContent-Length: 3\n\nabc");
    assert!([200, 400].contains(&Answer::of(&said).status), "{said}");
    assert!(model.seen().iter().all(|(head, _)| !head.replace("\r\n", "").contains(['\n', '\r'])));
    // Pipelined requests are answered one by one, each with its own checks.
    let two =
        format!("POST /a HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\n\r\nx{}", request("GET", "/b/../c", &[], ""));
    let said = running.raw(two.replace("Host: HOST", &format!("Host: {}", running.address)).as_bytes());
    let statuses: Vec<u16> = said.split("HTTP/1.1 ").skip(1).map(|one| one[..3].parse().unwrap()).collect();
    assert_eq!(statuses, [200, 404], "{said}");
    assert!(model.seen().iter().all(|(head, _)| !head.contains("hidden")), "a hidden request came through");
}

/// One row per case: the request line, the `Host` lines, and the status.
#[test]
fn a_request_has_one_target_and_one_host() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway]\nhosts = [\"Gateway.Example\"]\n"));
    let running = Running::start(&place);
    let port = running.address.rsplit(':').next().unwrap().to_owned();
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let local = format!("Host: LocalHost:{port}\r\n");
    let cases: &[(&str, &str, u16)] = &[
        ("GET /a HTTP/1.1", &own, 200),
        ("GET /a HTTP/1.1", &local, 200),
        ("GET /a HTTP/1.1", "Host: gateway.example\r\n", 200),
        ("GET /a HTTP/1.1", "Host: GATEWAY.example:443\r\n", 200),
        ("GET /a HTTP/1.1", "", 421),
        ("GET /metrics HTTP/1.1", "Host: evil.example\r\n", 421),
        ("GET /a HTTP/1.1", "Host: \r\n", 421),
        ("GET /a HTTP/1.1", "Host: evil.example\r\n", 421),
        ("GET /a HTTP/1.1", "Host: gateway.example.evil.example\r\n", 421),
        ("GET /a HTTP/1.1", "Host: localhost\r\n", 200),
        ("GET /a HTTP/1.1", "Host: 127.0.0.1\r\n", 200),
        ("GET /a HTTP/1.1", "Host: [::1]\r\n", 200),
        ("GET /a HTTP/1.1", "Host: 127.0.0.1:1\r\n", 421),
        ("GET /a HTTP/1.1", "Host: 10.0.0.1\r\n", 421),
        ("GET /a HTTP/1.1", &format!("Host: user@127.0.0.1:{port}\r\n"), 421),
        ("GET /a HTTP/1.1", &format!("Host: 127.0.0.1:{port}@evil.example\r\n"), 421),
        ("GET /a HTTP/1.1", &format!("Host: evil.example\r\n{own}"), 421),
        ("GET /a HTTP/1.1", &format!("{own}{own}"), 421),
        ("GET http://evil.example/a HTTP/1.1", &own, 400),
        (&format!("GET http://127.0.0.1:{port}/a HTTP/1.1"), &own, 400),
        ("GET https://gateway.example/a HTTP/1.1", "Host: gateway.example\r\n", 400),
        ("CONNECT gateway.example:443 HTTP/1.1", "Host: gateway.example\r\n", 400),
        ("OPTIONS * HTTP/1.1", &own, 400),
        ("GET a HTTP/1.1", &own, 400),
        ("GET  /a HTTP/1.1", &own, 400),
        ("GET /a b HTTP/1.1", &own, 400),
        ("GET /v1/../a HTTP/1.1", &own, 404),
        ("GET /v1/%2E%2e/a HTTP/1.1", &own, 404),
        ("GET /v1/.%2e/a HTTP/1.1", &own, 404),
        ("GET /%2e%2e%2fa HTTP/1.1", &own, 404),
        ("GET /v1/..;/a HTTP/1.1", &own, 404),
        ("GET /a?x=/../b HTTP/1.1", &own, 200),
        ("GET /a#b HTTP/1.1", &own, 200),
        ("GET /v1/messages/ HTTP/1.1", &own, 404),
    ];
    for (line, hosts, status) in cases {
        let (before, said) =
            (model.seen().len(), running.raw(format!("{line}\r\n{hosts}Connection: close\r\n\r\n").as_bytes()));
        assert_eq!(Answer::of(&said).status, *status, "{line} {hosts}: {said}");
        let seen = model.seen();
        assert_eq!(seen.len() - before, usize::from(*status == 200), "{line}");
        assert!(seen[before..].iter().all(|(head, _)| head.starts_with("GET /a")), "{line}: {seen:?}");
    }
    let upgrade = "Upgrade: WebSocket\r\nConnection: upgrade";
    let answer = running.ask("GET", "/v1/responses", &[upgrade], "");
    assert_eq!((answer.status, answer.code().as_str()), (426, "gateway_websocket"), "{answer:?}");
}

/// Hop-by-hop headers are removed in both directions, except for trailers; everything else of a failure arrives unchanged.
#[test]
fn what_is_of_one_connection_is_not_passed_on() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    let headers = [
        "Connection: close, X-Hop",
        "X-Hop: a",
        "Keep-Alive: timeout=5",
        "Proxy-Authorization: Basic x",
        "TE: trailers",
        "Trailer: x-end",
        "Upgrade: h2c",
        "Expect: 100-continue",
        "X-Own: kept",
        "x-own: twice",
        "Accept-Encoding: gzip",
    ];
    let answer = running.ask("POST", "/a?do=failure", &headers, "abc");
    assert_eq!(
        (answer.status, answer.head.contains("x-own: a"), answer.head.contains("retry-after: 7")),
        (529, true, true),
        "{answer:?}"
    );
    assert!(answer.body.contains("{\"error\":\"too much\"}"), "{answer:?}");
    for gone in ["x-hop", "link:"] {
        assert!(!answer.head.contains(gone), "{gone} is in {answer:?}");
    }
    assert!(answer.head.contains("trailer: x-end") && answer.body.ends_with("0\r\nx-end: c\r\n\r\n"), "{answer:?}");
    let (head, body) = model.seen().remove(0);
    let lower = head.to_lowercase();
    for gone in ["x-hop", "keep-alive", "proxy-authorization", "trailer", "upgrade", "expect", "connection: close"] {
        assert!(!lower.lines().any(|line| line.starts_with(gone)), "{gone} is in {head}");
    }
    let kept = |line: &str| lower.lines().any(|one| one == line);
    assert!(kept("te: trailers") && kept("connection: te"), "{head}");
    assert!(kept("x-own: kept") && kept("x-own: twice") && kept("accept-encoding: gzip") && body == "abc", "{head}");
}

/// Slow clients get their answer; clients that write nothing at all lose their connection.
#[test]
fn slow_clients_take_no_place_for_ever() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway.limits]\nclient_timeout_ms = 500\n"));
    let running = Running::start(&place);
    let bytes = request("POST", "/a", &[], "abc").replace("HOST", &running.address);
    let mut stream = running.connect();
    for byte in bytes.as_bytes() {
        stream.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(Answer::of(&rest(&mut stream)).status, 200);
    // A head that never ends, although bytes of it keep coming.
    let (mut stream, begun) = (running.connect(), Instant::now());
    stream.write_all(b"GET /a HTTP/1.1\r\n").unwrap();
    let mut sent = 0;
    while stream.write_all(b"X-A: b\r\n").is_ok() && begun.elapsed() < Duration::from_secs(10) {
        sent += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(sent > 3 && begun.elapsed() < Duration::from_secs(5), "{sent} {:?}", begun.elapsed());
    // A body that never arrives.
    let mut stream = running.connect();
    let head = format!("POST /a HTTP/1.1\r\nHost: {}\r\nContent-Length: 10\r\n\r\nabc", running.address);
    stream.write_all(head.as_bytes()).unwrap();
    let answer = Answer::of(&rest(&mut stream));
    assert_eq!((answer.status, answer.code().as_str()), (408, "gateway_slow_body"), "{answer:?}");
    assert_eq!(model.seen().len(), 1, "what is not complete is not sent on");
}
