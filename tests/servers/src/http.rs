//! One blocking HTTP/1.1 request to a server on this machine: enough to read journals and set scenarios.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// How long a request may take between two reads. The small model needs seconds for a long prompt.
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
    /// The status is not 2xx, or the body is not JSON; both say what came instead.
    pub fn json(&self) -> Result<Value> {
        ensure!((200..300).contains(&self.status), "the server answered {}: {}", self.status, self.body);
        serde_json::from_str(&self.body).with_context(|| format!("the server did not answer JSON: {}", self.body))
    }
}

/// `GET base + path`, where `base` is `http://ADDRESS:PORT`.
///
/// # Errors
/// The server cannot be reached, or answers something that is not HTTP. Any status is an answer.
pub fn get(base: &str, path: &str) -> Result<Response> {
    request(base, "GET", path, None)
}

/// `POST base + path` with a JSON body.
///
/// # Errors
/// As for [`get`].
pub fn post(base: &str, path: &str, body: &Value) -> Result<Response> {
    request(base, "POST", path, Some(&body.to_string()))
}

fn request(base: &str, method: &str, path: &str, body: Option<&str>) -> Result<Response> {
    exchange(base, method, path, body).with_context(|| format!("{method} {base}{path}"))
}

fn exchange(base: &str, method: &str, path: &str, body: Option<&str>) -> Result<Response> {
    let host = base.strip_prefix("http://").context("the base address must begin with http://")?;
    let address: SocketAddr = host.parse().context("the base address must be an IP address and a port")?;
    ensure!(address.ip().is_loopback(), "{address} is not on this machine");
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    read_response(BufReader::new(stream))
}

fn read_response(mut stream: impl std::io::BufRead) -> Result<Response> {
    let first = line(&mut stream)?;
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.with_context(|| format!("not a status line: {first:?}"))?;
    let (mut chunked, mut length) = (false, None);
    loop {
        let header = line(&mut stream)?.to_ascii_lowercase();
        let Some((name, value)) = header.split_once(':') else { break };
        match name {
            "transfer-encoding" => chunked = value.trim() == "chunked",
            "content-length" => length = Some(value.trim().parse::<u64>().context("content-length")?),
            _ => {}
        }
    }
    let bytes = match (chunked, length) {
        (true, _) => chunks(&mut stream)?,
        (false, Some(length)) => exactly(&mut stream, length)?,
        (false, None) => rest(&mut stream)?,
    };
    Ok(Response { status, body: String::from_utf8(bytes).context("the body is not UTF-8")? })
}

fn chunks(stream: &mut impl std::io::BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(stream)?;
        let digits = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).with_context(|| format!("not a chunk size: {size:?}"))?;
        if size == 0 {
            return Ok(body);
        }
        ensure!(body.len() as u64 + size <= MAX_BODY, "the body is larger than {MAX_BODY} bytes");
        body.extend(exactly(stream, size)?);
        line(stream)?;
    }
}

fn exactly(stream: &mut impl Read, length: u64) -> Result<Vec<u8>> {
    ensure!(length <= MAX_BODY, "the body is larger than {MAX_BODY} bytes");
    let mut body = Vec::new();
    stream.take(length).read_to_end(&mut body)?;
    ensure!(body.len() as u64 == length, "the body ended after {} of {length} bytes", body.len());
    Ok(body)
}

fn rest(stream: &mut impl Read) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    stream.take(MAX_BODY + 1).read_to_end(&mut body)?;
    ensure!(body.len() as u64 <= MAX_BODY, "the body is larger than {MAX_BODY} bytes");
    Ok(body)
}

fn line(stream: &mut impl std::io::BufRead) -> Result<String> {
    let mut line = String::new();
    if stream.take(64 * 1024).read_line(&mut line)? == 0 {
        bail!("the connection closed before the answer was whole");
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{Response, read_response};

    #[test]
    fn a_chunked_body_is_joined() {
        let raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3;x=y\r\n:1}\r\n0\r\n\r\n";
        let response = read_response(raw.as_bytes()).unwrap();
        assert_eq!(response, Response { status: 200, body: "{\"a\":1}".to_owned() });
        assert_eq!(response.json().unwrap()["a"], 1);
    }

    #[test]
    fn a_short_body_is_an_error() {
        let error = read_response("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nfour".as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "the body ended after 4 of 9 bytes");
    }

    #[test]
    fn a_cut_chunk_is_an_error() {
        let raw = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nab";
        assert!(read_response(raw.as_bytes()).is_err());
    }

    #[test]
    fn an_error_status_is_not_json() {
        let response = read_response("HTTP/1.1 503 Busy\r\n\r\nloading".as_bytes()).unwrap();
        assert_eq!(response.json().unwrap_err().to_string(), "the server answered 503: loading");
    }
}
