//! The protocol over websockets: an independent client, and who is not admitted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tidegate_servers::{ensure_editors_js, node_of};

use super::clients::{ends, source};
use super::model::Model;
use super::place;
use crate::support::{Place, code, err};

/// A program that listens, and the URL that it has printed.
struct Listening {
    child: Child,
    /// It ends when nobody reads what it prints.
    _output: BufReader<ChildStdout>,
    address: String,
    token: String,
}

impl Listening {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(&[&["acp", "--listen", "127.0.0.1:0"], arguments].concat());
        Self::of(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn of(mut child: Child) -> Self {
        let (mut output, mut url) = (BufReader::new(child.stdout.take().unwrap()), String::new());
        output.read_line(&mut url).unwrap();
        let rest = url.trim().strip_prefix("ws://").unwrap_or_else(|| panic!("{url}"));
        let (address, token) = rest.split_once("/?token=").unwrap_or((rest.trim_end_matches('/'), ""));
        Self { child, _output: output, address: address.to_owned(), token: token.to_owned() }
    }

    /// The status of the response to a request for a websocket.
    fn status(&self, path: &str, headers: &str) -> u16 {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n",
            self.address
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap()
    }

    /// Ends the program as a user does.
    fn end(mut self) -> std::process::ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It has ended, or the test fails.
        let _ = self.child.kill();
    }
}

#[test]
fn the_typescript_sdk_runs_sessions_over_websockets() {
    let (model, folder) = (Model::start(), ensure_editors_js().unwrap());
    let place = place(&model);
    let agent = Listening::start(&place, &[]);
    // All of the client's connections are to one process.
    let mut client = Command::new(node_of(&folder));
    client
        .arg(source("client.mjs"))
        .arg(place.path("").canonicalize().unwrap())
        .arg(format!("ws://{}/", agent.address));
    client.env("TIDEGATE_TEST_NODE_MODULES", &folder).env("TIDEGATE_TEST_TOKEN", &agent.token);
    ends(&place, client, 0);
    assert!(agent.end().code().is_some(), "it ends by itself");
}

#[test]
fn who_has_no_token_or_is_a_page_of_another_origin_is_refused() {
    let model = Model::start();
    let place = place(&model);
    let agent = Listening::start(&place, &["--allow-origin", "http://localhost:3000/"]);
    let (url, bearer) = (format!("/?token={}", agent.token), format!("Authorization: Bearer {}\r\n", agent.token));
    assert!(agent.token.len() == 64, "{}", agent.token);
    for (path, headers, expected) in [
        ("/", String::new(), 401),
        ("/?token=0", String::new(), 401),
        ("/", "Authorization: Bearer 0\r\n".to_owned(), 401),
        (&url, String::new(), 101),
        ("/", bearer, 101),
        (&url, "Origin: http://localhost:3000\r\n".to_owned(), 101),
        (&url, "Origin: http://evil.example\r\n".to_owned(), 403),
        (&url, "Origin: null\r\n".to_owned(), 403),
    ] {
        assert_eq!(agent.status(path, &headers), expected, "{path} {headers}");
    }
    // A request that is not for a websocket gets a response, and ends only its own connection.
    for (request, status, header) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "426", "upgrade: websocket"),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", "405", "allow: get"),
        ("no HTTP\r\n\r\n", "400", "connection: close"),
    ] {
        let mut socket = TcpStream::connect(&agent.address).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {response}");
        assert!(response.to_lowercase().contains(header), "{request:?}: {response}");
    }
    assert_eq!(agent.status(&url, ""), 101);
}

/// Returns a websocket without a client: it sends frames as they are.
fn websocket(agent: &Listening) -> TcpStream {
    let mut socket = TcpStream::connect(&agent.address).unwrap();
    let request = format!(
        "GET /?token={} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        agent.token
    );
    socket.write_all(request.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    socket
}

#[test]
fn a_client_that_breaks_the_protocol_gets_a_close_frame() {
    let model = Model::start();
    let place = place(&model);
    let agent = Listening::start(&place, &[]);
    // A text frame without a mask, and one that exceeds the maximum size of a message.
    for (frame, code) in
        [(&[0x81, 0x01, b'x'][..], 1002_u16), (&[0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4][..], 1009)]
    {
        let mut socket = websocket(&agent);
        socket.write_all(frame).unwrap();
        let mut head = [0; 4];
        socket.read_exact(&mut head).unwrap();
        assert_eq!((head[0], u16::from_be_bytes([head[2], head[3]])), (0x88, code), "{frame:?}");
    }
}

#[test]
fn an_address_that_others_reach_and_a_weak_token_are_refused() {
    let place = Place::new();
    let refused = |arguments: &[&str], variable: &str| {
        let mut command = place.command(&[&["acp"], arguments].concat());
        let output = command.env("TEST_TOKEN", variable).stdin(Stdio::null()).output().unwrap();
        (code(&output), err(&output))
    };
    let (code, error) = refused(&["--listen", "0.0.0.0:0"], "");
    assert!(
        code == 2 && error.contains("other machines can reach this address") && error.contains("--allow-remote"),
        "{error}"
    );
    let (code, error) = refused(&["--listen", "127.0.0.1:0", "--token-env", "TEST_TOKEN"], "short");
    assert!(code == 2 && error.contains("--token-env TEST_TOKEN: a token has at least 32 characters"), "{error}");
    let (code, error) = refused(&["--listen", "127.0.0.1:0", "--token-env", "TEST_NONE"], "");
    assert!(code == 2 && error.contains("TEST_NONE: the variable is not set"), "{error}");
    let (code, error) = refused(&["--listen", "localhost:80"], "");
    assert!(code == 2 && error.contains("expected an IP address and a port"), "{error}");
    for origin in ["x", "http://", "http://a/b", "*"] {
        let (code, error) = refused(&["--listen", "127.0.0.1:0", "--allow-origin", origin], "");
        assert!(code == 2 && error.contains(&format!("--allow-origin {origin}: no origin")), "{error}");
    }
    let (code, error) = refused(&["--allow-remote"], "");
    assert!(code == 2 && error.contains("--listen"), "{error}");
}

#[test]
fn a_given_token_is_not_printed() {
    let model = Model::start();
    let place = place(&model);
    let token = "a-token-of-a-user-0123456789abcdef";
    let mut command = place.command(&["acp", "--listen", "127.0.0.1:0", "--token-env", "TEST_TOKEN"]);
    command.env("TEST_TOKEN", token).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut agent = Listening::of(command.spawn().unwrap());
    assert_eq!(agent.token, "");
    assert_eq!(agent.status(&format!("/?token={token}"), ""), 101);
    assert_eq!(agent.status("/", ""), 401);
    let mut errors = agent.child.stderr.take().unwrap();
    drop(agent);
    let mut said = String::new();
    errors.read_to_string(&mut said).unwrap();
    assert!(!said.contains(token) && said.contains("Authorization: Bearer TOKEN"), "{said}");
}
