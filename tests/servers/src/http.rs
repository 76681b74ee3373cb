//! Blocking HTTP requests to a server on this machine: they read journals and set scenarios.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use ureq::http::Request;

/// How long the start of an answer may take, and its body. The small model needs seconds for a long prompt.
const PATIENCE: Duration = Duration::from_secs(60);
/// The largest body taken.
const MAX_BODY: u64 = 64 * 1024 * 1024;

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body, whole, transfer coding removed.
    pub body: String,
}

impl Response {
    /// The body as JSON.
    ///
    /// # Errors
    /// The status is not 2xx, or the body is not JSON; both errors contain the body.
    pub fn json(&self) -> Result<Value> {
        ensure!((200..300).contains(&self.status), "the server answered {}: {}", self.status, self.body);
        serde_json::from_str(&self.body).with_context(|| format!("the server did not answer JSON: {}", self.body))
    }
}

/// `GET base + path`, where `base` is `http://ADDRESS:PORT`.
///
/// # Errors
/// The address is not on this machine, the server cannot be reached, or it answers something that is not HTTP. Any status is an
/// answer.
pub fn get(base: &str, path: &str) -> Result<Response> {
    request(base, "GET", path, String::new())
}

/// `POST base + path` with a JSON body.
///
/// # Errors
/// As for [`get`].
pub fn post(base: &str, path: &str, body: &Value) -> Result<Response> {
    request(base, "POST", path, body.to_string())
}

fn request(base: &str, method: &str, path: &str, body: String) -> Result<Response> {
    exchange(base, method, path, body).with_context(|| format!("{method} {base}{path}"))
}

fn exchange(base: &str, method: &str, path: &str, body: String) -> Result<Response> {
    let host = base.strip_prefix("http://").context("the base address must begin with http://")?;
    let address: SocketAddr = host.parse().context("the base address must be an IP address and a port")?;
    ensure!(address.ip().is_loopback(), "{address} is not on this machine");
    // Neither a proxy of the environment nor a redirect may lead to another machine.
    let agent = ureq::Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(5)))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_recv_body(Some(PATIENCE))
        .build()
        .new_agent();
    let request = Request::builder().method(method).uri(format!("{base}{path}"));
    let mut answer = if body.is_empty() {
        agent.run(request.body(())?)?
    } else {
        agent.run(request.header("content-type", "application/json").body(body)?)?
    };
    let body = answer.body_mut().with_config().limit(MAX_BODY).read_to_vec()?;
    Ok(Response { status: answer.status().as_u16(), body: String::from_utf8(body).context("the body is not UTF-8")? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers one request with these bytes. Returns its address; joining the thread returns the request.
    fn serve(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            while !request.ends_with("\r\n\r\n") {
                let start = request.len();
                assert_ne!(reader.read_line(&mut request).unwrap(), 0);
                if let Some(value) = request[start..].strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            request + &String::from_utf8(body).unwrap()
        });
        (base, thread)
    }

    #[test]
    fn a_request_has_its_path_and_body_and_a_chunked_answer_is_joined() {
        let (base, server) =
            serve("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n");
        let response = post(&base, "/set", &serde_json::json!({"b": 2})).unwrap();
        assert_eq!(response, Response { status: 200, body: "{\"a\":1}".to_owned() });
        assert_eq!(response.json().unwrap()["a"], 1);
        let request = server.join().unwrap();
        assert!(request.starts_with("POST /set HTTP/1.1\r\n") && request.ends_with("\r\n\r\n{\"b\":2}"), "{request}");
    }

    #[test]
    fn a_short_body_and_a_cut_chunk_are_errors() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nab",
        ] {
            let (base, server) = serve(answer);
            assert!(get(&base, "/").is_err(), "{answer}");
            server.join().unwrap();
        }
    }

    #[test]
    fn every_status_is_an_answer_and_a_redirect_is_not_followed() {
        let (base, server) = serve("HTTP/1.1 503 Busy\r\ncontent-length: 7\r\n\r\nloading");
        let error = get(&base, "/").unwrap().json().unwrap_err();
        assert_eq!(error.to_string(), "the server answered 503: loading");
        server.join().unwrap();
        let (base, server) = serve("HTTP/1.1 302 Found\r\nlocation: http://192.0.2.1/\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(get(&base, "/").unwrap().status, 302);
        server.join().unwrap();
    }

    #[test]
    fn only_this_machine_is_asked() {
        for base in ["http://192.0.2.1:80", "http://localhost:80", "https://127.0.0.1:1", "http://[2001:db8::1]:80"] {
            let error = format!("{:#}", get(base, "/").unwrap_err());
            assert!(error.contains("not on this machine") || error.contains("the base address"), "{error}");
        }
    }
}
