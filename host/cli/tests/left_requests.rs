//! What clients have begun and left does not delay the end of a server.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use crate::gateway::running::{Running, rest};
use crate::support::Place;
use crate::support::script::Model;

/// The servers: settings, and a request with a body.
const SERVERS: [(&str, &str, &str); 2] = [
    ("serve", "", "/v1/sessions"),
    (
        "gateway",
        "drain_ms = 20000\n[[gateway.route]]\npath = \"/m\"\nupstream = \"http://127.0.0.1:9\"\n",
        "/m/v1/messages",
    ),
];

fn start(server: &str, more: &str) -> Running {
    let (place, model) = (Place::new(), Model::start());
    let settings = format!("[{server}.limits]\nclient_timeout_ms = 3600000\n{more}");
    place.write("tidegate.toml", &model.settings(&settings));
    Running::of(place.command(&[server, "--listen", "127.0.0.1:0"]))
}

/// Ends the server while its clients wait. Returns what they receive.
fn ended(mut running: Running, mut clients: Vec<TcpStream>, name: &str) -> String {
    running.signal("TERM");
    let status = running.ended();
    assert!(status.success(), "{name}: {status} {}", running.log());
    for warning in ["does not answer", "did not end within"] {
        assert!(!running.log().contains(warning), "{name}: {}", running.log());
    }
    clients.iter_mut().map(rest).collect()
}

#[test]
fn a_request_that_is_not_complete() {
    for (server, more, path) in SERVERS {
        let head =
            |fields: &str| format!("POST {path} HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n{fields}");
        let complete = "GET /absent HTTP/1.1\r\nHost: HOST\r\n\r\n";
        for (name, sent, expected) in [
            ("nothing", String::new(), ""),
            ("half a head", head("Content-Le"), ""),
            ("a head without its empty line", head("Content-Length: 9\r\n"), ""),
            ("half a second head", format!("{complete}{}", head("Content-Le")), " 404 "),
            ("no body", head("Content-Length: 9\r\n\r\n"), " 503 "),
            ("no body, which is not asked for", head("Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"), " 503 "),
            ("half a body", head("Content-Length: 9\r\n\r\n{\"a\":"), " 503 "),
            ("half a chunk", head("Transfer-Encoding: chunked\r\n\r\n9\r\n{\"a\":"), " 503 "),
            ("no last chunk", head("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), " 503 "),
        ] {
            let name = format!("{server}: {name}");
            let running = start(server, more);
            let mut client = running.connect();
            client.write_all(sent.replace("HOST", &running.address).as_bytes()).unwrap();
            // Connections are accepted in order, and what is written before is read by then.
            assert!(
                running.raw(complete.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes()).contains(" 404 ")
            );
            std::thread::sleep(Duration::from_millis(200));
            let answer = ended(running, vec![client], &name);
            let is_expected = if expected.is_empty() { answer.is_empty() } else { answer.contains(expected) };
            assert!(is_expected, "{name}: {answer}");
        }
    }
}
