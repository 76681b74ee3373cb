//! The program `tidegate gateway` as it runs, and clients that write bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Place;

/// A gateway process that ends when this is dropped.
pub(crate) struct Running {
    process: Child,
    /// Host and port.
    pub(crate) address: String,
    log: Arc<Mutex<String>>,
}

pub(crate) const TOKEN_A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-A";
pub(crate) const TOKEN_B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb-B";
pub(crate) const KEY: &str = "the-key-of-the-operator";

impl Running {
    /// Starts it with the `tidegate.toml` of the place.
    pub(crate) fn start(place: &Place) -> Self {
        let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
        command.env("A_TOKEN", TOKEN_A).env("B_TOKEN", TOKEN_B).env("A_KEY", KEY).env("TIDEGATE_LOG", "debug");
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log: Arc<Mutex<String>> = Arc::default();
        let (own, stderr) = (Arc::clone(&log), BufReader::new(process.stderr.take().unwrap()));
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| own.lock().unwrap().push_str(&(line + "\n")));
        });
        let (mut base, mut stdout) = (String::new(), BufReader::new(process.stdout.take().unwrap()));
        stdout.read_line(&mut base).unwrap();
        // It ends when nobody reads its output.
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let address = base.trim().trim_start_matches("http://").to_owned();
        assert!(!address.is_empty(), "it does not start: {}", log.lock().unwrap());
        Self { process, address, log }
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until what it has logged since `from` contains these words, in any case: a line can be written after an answer was sent.
    pub(crate) fn log_has(&self, from: usize, words: &str) -> bool {
        let (begun, words) = (Instant::now(), words.to_lowercase());
        loop {
            let has = self.log()[from..].to_lowercase().contains(&words);
            if has || begun.elapsed() > Duration::from_secs(10) {
                return has;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes, and returns the response until it closes the connection. `HOST` in them is its address.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let text = bytes.to_vec();
        let at = text.windows(4).position(|four| four == b"HOST");
        let bytes = at.map_or(text.clone(), |at| [&text[..at], self.address.as_bytes(), &text[at + 4..]].concat());
        // It may refuse before it has read everything.
        drop(stream.write_all(&bytes));
        rest(&mut stream)
    }

    /// Returns the answer to a request with these headers, one a line.
    pub(crate) fn ask(&self, method: &str, target: &str, headers: &[&str], body: &str) -> Answer {
        Answer::of(&self.raw(request(method, target, headers, body).as_bytes()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns a request as bytes; `HOST` is where it goes.
pub(crate) fn request(method: &str, target: &str, headers: &[&str], body: &str) -> String {
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n");
    headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
    text + &format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Reads until the end of a connection.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    loop {
        match stream.read(&mut part) {
            Ok(size) if size > 0 => all.extend_from_slice(&part[..size]),
            Ok(_) => break,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("the connection stays open ({error}) after {:?}", String::from_utf8_lossy(&all)),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// An answer, with its body as it was framed.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn of(text: &str) -> Self {
        // A client that sent `Expect: 100-continue` gets that response first.
        let text = text.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(text);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// Returns the `code` of the error; empty if there is none.
    pub(crate) fn code(&self) -> String {
        let json: Value = serde_json::from_str(&self.body).unwrap_or_default();
        json["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}
