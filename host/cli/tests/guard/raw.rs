//! HTTP as bytes: the program between an upstream that writes the exact bytes of a test, and a client that records the exact bytes.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;

use crate::support::Place;

/// `tidegate guard` around a command that waits.
pub(super) struct Guard {
    child: Child,
    stdin: Option<ChildStdin>,
    pub(super) address: SocketAddr,
}

impl Guard {
    /// Starts it in front of an upstream for all formats, and waits until it listens.
    pub(super) fn start(place: &Place, upstream: SocketAddr) -> Self {
        let (anthropic, openai) = (format!("http://{upstream}"), format!("http://{upstream}/v1"));
        let mut command = place.command(&["guard", "--anthropic-url", &anthropic, "--openai-url", &openai, "--"]);
        command.args(["sh", "-c", "echo \"$ANTHROPIC_BASE_URL\"; exec cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let address = url.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{url:?}")).parse().unwrap();
        Self { stdin: child.stdin.take(), child, address }
    }

    /// Starts `tidegate gateway` with the settings of a place instead.
    pub(super) fn serve(place: &Place) -> Self {
        let mut command = place.command(&["gateway", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut url, mut output) = (String::new(), BufReader::new(child.stdout.take().unwrap()));
        output.read_line(&mut url).unwrap();
        // It ends when nobody reads its output.
        std::thread::spawn(move || io::copy(&mut output, &mut io::sink()));
        let address = url.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{url:?}")).parse().unwrap();
        Self { child, stdin: None, address }
    }

    /// Returns its number of open files, and its memory in bytes.
    pub(super) fn resources(&self) -> (usize, usize) {
        let place = format!("/proc/{}", self.child.id());
        let files = std::fs::read_dir(format!("{place}/fd")).unwrap().count();
        let status = std::fs::read_to_string(format!("{place}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        (files, memory.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024)
    }

    /// Waits until no more files are open than before, except for idle connections to its model.
    pub(super) fn assert_settled(&self, before: usize) {
        let began = std::time::Instant::now();
        while self.resources().0 > before + KEPT {
            assert!(began.elapsed().as_secs() < 60, "{} files are open, {before} were", self.resources().0);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Ends the command, and returns the report of the program.
    pub(super) fn finish(mut self) -> String {
        drop(self.stdin.take());
        let mut report = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut report).unwrap();
        assert!(self.child.wait().unwrap().success(), "{report}");
        report
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The maximum number of idle connections to a model in an HTTP client.
const KEPT: usize = 8;

/// A request as an upstream received it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Returns the value of a header; empty where there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        header(&self.head, name)
    }
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next().unwrap_or_default()
}

/// An upstream with a thread for each connection, for as long as this process lives. `answer` writes the answers; an error closes the
/// connection.
pub(super) fn upstream(
    answer: impl Fn(&Request, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Ok(Some(request)) = read_request(&mut reader) {
                    if answer(&request, &mut stream).is_err() {
                        break;
                    }
                }
                drop(stream.shutdown(std::net::Shutdown::Both));
            });
        }
    });
    address
}

fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let Some(head) = read_head(reader)? else { return Ok(None) };
    let body = read_body(reader, &head, false)?;
    Ok(Some(Request { head, body }))
}

fn read_head(reader: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
    }
    String::from_utf8(head).map(Some).map_err(io::Error::other)
}

fn read_body(reader: &mut BufReader<TcpStream>, head: &str, is_answer: bool) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if header(head, "transfer-encoding").eq_ignore_ascii_case("chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            let start = body.len();
            body.resize(start + length, 0);
            reader.read_exact(&mut body[start..])?;
            reader.read_exact(&mut [0; 2])?;
            if length == 0 {
                return Ok(body);
            }
        }
    }
    match header(head, "content-length").parse() {
        Ok(length) => body.resize(length, 0),
        Err(_) if is_answer => return reader.read_to_end(&mut body).map(|_| body),
        Err(_) => {}
    }
    reader.read_exact(&mut body)?;
    Ok(body)
}

/// An answer as a client received it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        header(&self.head, name)
    }
}

/// A connection of a client.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(120))).unwrap();
        Self { reader: BufReader::new(stream), address }
    }

    /// Sends a request with more headers, each with its line end.
    pub(super) fn send(&mut self, path: &str, headers: &str, body: &[u8]) -> io::Result<()> {
        let (address, length) = (self.address, body.len());
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n{headers}\r\n");
        self.write(&[head.as_bytes(), body].concat())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Reads an answer to its end; an error where it breaks off.
    pub(super) fn receive(&mut self) -> io::Result<Answer> {
        let head = read_head(&mut self.reader)?.ok_or_else(|| io::Error::other("no answer"))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = read_body(&mut self.reader, &head, true)?;
        Ok(Answer { status, head, body })
    }

    /// The time limit for further bytes.
    pub(super) fn patience(&mut self, time: std::time::Duration) {
        self.reader.get_mut().set_read_timeout(Some(time)).unwrap();
    }

    /// Reads the available bytes, up to a maximum; `true` if the connection has ended.
    pub(super) fn read_some(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<bool> {
        let mut part = vec![0; most];
        let count = self.reader.read(&mut part)?;
        into.extend_from_slice(&part[..count]);
        Ok(count == 0)
    }

    pub(super) fn ask(&mut self, path: &str, headers: &str, body: &[u8]) -> io::Result<Answer> {
        self.send(path, headers, body)?;
        self.receive()
    }
}

/// The segmentation of an answer into writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Whole,
    Frame,
    Byte,
    /// At random places, also within the heads of chunks.
    Random(u64),
}

impl Cut {
    pub(super) const ALL: [Self; 4] = [Self::Whole, Self::Frame, Self::Byte, Self::Random(1)];

    /// The number of bytes that are sent one by one, before the rest.
    const BYTES: usize = 1500;

    /// Writes an answer. `head`: its status line and headers, without those of its length.
    pub(super) fn write(self, head: &str, body: &[u8], stream: &mut TcpStream) -> io::Result<()> {
        if self == Self::Whole {
            let head = format!("{head}content-length: {}\r\n\r\n", body.len());
            return stream.write_all(&[head.as_bytes(), body].concat());
        }
        let head = format!("{head}transfer-encoding: chunked\r\n\r\n");
        let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        let end = b"0\r\n\r\n";
        match self {
            Self::Random(seed) => {
                let mut random = Random(seed | 1);
                let mut chunked = Vec::new();
                random.cut(body, |part| {
                    chunked.extend(chunk(part));
                    Ok(())
                })?;
                let all = [head.as_bytes(), &chunked, end].concat();
                random.cut(&all, |part| stream.write_all(part))
            }
            _ => {
                stream.write_all(head.as_bytes())?;
                for part in self.parts(body) {
                    stream.write_all(&chunk(part))?;
                }
                stream.write_all(end)
            }
        }
    }

    fn parts(self, body: &[u8]) -> Vec<&[u8]> {
        if self == Self::Byte {
            let (first, rest) = body.split_at(body.len().min(Self::BYTES));
            return first.chunks(1).chain(Some(rest).filter(|rest| !rest.is_empty())).collect();
        }
        let (mut parts, mut start) = (Vec::new(), 0);
        for at in 1..body.len() {
            if matches!(&body[at - 1..=at], b"\n\n" | b"\r\r") || body[start..=at].ends_with(b"\r\n\r\n") {
                parts.push(&body[start..=at]);
                start = at + 1;
            }
        }
        parts.extend(Some(&body[start..]).filter(|rest| !rest.is_empty()));
        parts
    }
}

/// Xorshift, so that failures are reproducible.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % most.max(1)
    }

    /// Cuts bytes at random places, mostly near each other.
    fn cut(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        while !bytes.is_empty() {
            let most = [2, 20, 300, 20_000][self.below(4)];
            let at = (1 + self.below(most)).min(bytes.len());
            take(&bytes[..at])?;
            bytes = &bytes[at..];
        }
        Ok(())
    }
}
