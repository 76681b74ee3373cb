//! Connections that break, stall and crawl, on both sides of the program: the received bytes are correct, and no connections are left over.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::answers::{Kind, Wire, streamed, values};
use super::raw::{Client, Cut, Guard, upstream};
use crate::support::Place;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A rule that watches everything and matches nothing here.
const RULE: &str =
    "+++\ncondition = 'zyzzyva'\nscope = [\"text\", \"thinking\", \"tool\"]\nrepeat = \"always\"\n+++\nNever.\n";

fn guard(address: SocketAddr) -> (Place, Guard) {
    let place = Place::with(&[("never", RULE)]);
    place.write("tidegate.toml", "[rules]\nbuiltin_rules = false\n");
    let guard = Guard::start(&place, address);
    (place, guard)
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Returns the frames of a stream of text.
fn frames(wire: Wire) -> Vec<Vec<u8>> {
    let stream = wire.stream(Kind::Text, &["Hello ", "to ", "all ", "of ", "you."]);
    let text = String::from_utf8(stream).unwrap();
    text.split_inclusive("\n\n").map(|frame| frame.as_bytes().to_vec()).collect()
}

/// Returns the data of a chunked answer, as far as it goes, and whether it has ended.
fn dechunked(bytes: &[u8]) -> (Vec<u8>, bool) {
    let Some(head) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { return (Vec::new(), false) };
    let (mut rest, mut data) = (&bytes[head + 4..], Vec::new());
    while let Some(line) = rest.windows(2).position(|end| end == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return (data, true);
        }
        let end = (line + 2 + length).min(rest.len());
        data.extend_from_slice(&rest[line + 2..end]);
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    (data, false)
}

#[test]
fn an_upstream_that_dies_at_any_frame_breaks_the_answer_there() {
    let address = upstream(|request, stream| {
        let count: usize = request.header("x-frames").parse().unwrap();
        let sent: Vec<u8> =
            frames(Wire::of(&request.head)).into_iter().take(count).flat_map(|frame| chunk(&frame)).collect();
        stream.write_all(&[HEAD.as_bytes(), &sent].concat())?;
        Err(io::Error::other("dies"))
    });
    let (_place, guard) = guard(address);
    let (files, _) = guard.resources();
    for wire in Wire::ALL {
        let all = frames(wire);
        // An answer is complete with its last event.
        for count in 0..all.len() - usize::from(wire == Wire::Chat) {
            let mut client = Client::connect(guard.address);
            client.send(wire.path(), &format!("x-frames: {count}\r\n"), &wire.request("Say it.", true)).unwrap();
            let mut received = Vec::new();
            while !client.read_some(4096, &mut received).unwrap_or(true) {}
            let (data, has_ended) = dechunked(&received);
            let sent = all[..count].concat();
            let is_last = wire != Wire::Chat && count == all.len();
            assert_eq!(has_ended, is_last, "{wire:?} {count}");
            // Only beginnings of blocks wait, for their content.
            assert!(sent.starts_with(&data), "{wire:?} {count}: {}", String::from_utf8_lossy(&data));
            let text = |bytes: &[u8]| streamed(Kind::Text, &values(bytes));
            assert_eq!(text(&data), text(&sent), "{wire:?} {count}");
        }
    }
    guard.assert_settled(files);
    guard.finish();
}

#[test]
fn a_client_that_dies_at_any_frame_ends_the_request_to_the_model() {
    let ended: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let seen = Arc::clone(&ended);
    let address = upstream(move |request, stream| {
        let count: usize = request.header("x-frames").parse().unwrap();
        let all = frames(Wire::of(&request.head));
        let sent: Vec<u8> = all[..count].iter().flat_map(|frame| chunk(frame)).collect();
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        // It sends nothing more: the end of its connection ends it.
        let end = stream.write_all(&[HEAD.as_bytes(), &sent].concat()).and_then(|()| stream.read(&mut [0; 1]));
        if !matches!(&end, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            seen.lock().unwrap().push(Instant::now());
        }
        Err(io::Error::other("over"))
    });
    let (_place, guard) = guard(address);
    let (files, _) = guard.resources();
    let mut asked = 0;
    for wire in Wire::ALL {
        for count in 0..frames(wire).len() - 2 {
            let mut client = Client::connect(guard.address);
            client.send(wire.path(), &format!("x-frames: {count}\r\n"), &wire.request("Say it.", true)).unwrap();
            let mut received = Vec::new();
            client.read_some(64, &mut received).unwrap();
            asked += 1;
            let gone = Instant::now();
            drop(client);
            while ended.lock().unwrap().len() < asked {
                assert!(gone.elapsed() < Duration::from_secs(20), "{wire:?} {count}: the model is still asked");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    guard.assert_settled(files);
    let report = guard.finish();
    assert!(report.contains(&format!("guard: {asked} answers checked")), "{report}");
}

/// A call is held back until it is complete; keep-alives prevent proxies from closing the connection.
#[test]
fn while_a_call_is_held_for_40_seconds_the_client_gets_signs_of_life() {
    let address = upstream(|request, stream| {
        let wire = Wire::of(&request.head);
        let all = wire.stream(Kind::Call, &["{\"path\":", "\"a\"}"]);
        let (first, rest) = all.split_at(all.len() / 2);
        stream.write_all(HEAD.as_bytes())?;
        stream.write_all(&chunk(first))?;
        std::thread::sleep(Duration::from_secs(41));
        stream.write_all(&[chunk(rest), b"0\r\n\r\n".to_vec()].concat())
    });
    let (_place, guard) = guard(address);
    std::thread::scope(|scope| {
        for wire in Wire::ALL {
            let address = guard.address;
            scope.spawn(move || {
                let answer = Client::connect(address).ask(wire.path(), "", &wire.request("Say it.", true)).unwrap();
                let text = answer.text();
                let signs = text.matches("event: ping\n").count() + text.matches(": keep-alive\n").count();
                assert!((3..=5).contains(&signs), "{wire:?}: {text}");
                let plain: String = text
                    .split_inclusive("\n\n")
                    .filter(|frame| !frame.starts_with("event: ping") && !frame.starts_with(": keep-alive"))
                    .collect();
                let sent = wire.stream(Kind::Call, &["{\"path\":", "\"a\"}"]);
                assert_eq!(plain, String::from_utf8(sent).unwrap(), "{wire:?}");
            });
        }
    });
    guard.finish();
}

/// Frames of 1 MB pass unchanged, and the buffer for a slow reader is bounded.
#[test]
fn large_frames_and_a_client_that_reads_a_byte_a_second_take_little_memory() {
    const FRAME: usize = 1 << 20;
    let written: Arc<Mutex<usize>> = Arc::default();
    let counted = Arc::clone(&written);
    let address = upstream(move |request, stream| {
        let count: usize = request.header("x-frames").parse().unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(30)))?;
        stream.write_all(HEAD.as_bytes())?;
        for _ in 0..count {
            let part = chunk(&large(FRAME));
            for part in part.chunks(64 << 10) {
                stream.write_all(part)?;
                *counted.lock().unwrap() += part.len();
            }
        }
        stream.write_all(&[chunk(&Wire::Chat.stream(Kind::Text, &["End."])), b"0\r\n\r\n".to_vec()].concat())
    });
    let (_place, guard) = guard(address);
    let mut client = Client::connect(guard.address);
    let body = Wire::Chat.request("Say it.", true);
    let answer = client.ask(Wire::Chat.path(), "x-frames: 4\r\n", &body).unwrap();
    let expected = [large(FRAME).repeat(4), Wire::Chat.stream(Kind::Text, &["End."])].concat();
    assert!(answer.body == expected, "{} bytes of {}", answer.body.len(), expected.len());
    let mut many = |count: usize| {
        for _ in 0..count {
            // A block of an answer has at most 16 MiB.
            let answer = client.ask(Wire::Chat.path(), "x-frames: 12\r\n", &body).unwrap();
            assert_eq!(answer.body.len(), expected.len() + 8 * large(FRAME).len());
        }
        let answer = client.ask(Wire::Chat.path(), "x-frames: 20\r\n", &body).unwrap();
        assert!(
            answer.text().ends_with("data: [DONE]\n\n") && answer.text().contains("Tidegate: this answer ends here")
        );
        guard.resources()
    };
    // Some answers later, the allocator has the memory for all copies of one, which the next ones reuse: eight that stayed would be 108 MB.
    // That is about 200 MB, however late it gets there.
    let (files, before) = many(12);
    let (_, after) = many(8);
    assert!(after < before.max(200 << 20) + (80 << 20), "{before} bytes of memory became {after}");
    *written.lock().unwrap() = 0;
    let mut slow = Client::connect(guard.address);
    slow.send(Wire::Chat.path(), "x-frames: 400\r\n", &body).unwrap();
    let mut received = Vec::new();
    for _ in 0..5 {
        slow.read_some(1, &mut received).unwrap();
        std::thread::sleep(Duration::from_secs(1));
    }
    let (taken, (_, held)) = (*written.lock().unwrap(), guard.resources());
    // The socket buffers of both sides, and the buffer in between.
    assert!(taken < 48 << 20, "{taken} bytes were taken from the model for a client that reads none");
    assert!(held < after + (96 << 20), "{after} bytes of memory became {held}");
    drop(slow);
    guard.assert_settled(files);
    guard.finish();
}

/// Returns a frame of text of so many bytes.
fn large(bytes: usize) -> Vec<u8> {
    let chunk = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\
        \"delta\":{\"content\":\"";
    format!("{chunk}{}\"}},\"finish_reason\":null}}]}}\n\n", "word ".repeat(bytes / 5)).into_bytes()
}

/// Idle connections cost little memory, and leave nothing behind.
#[test]
fn idle_connections_do_not_keep_others_from_being_served() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    // Each is a file descriptor here and one there; the limit of a machine may be lower.
    let most = usize::try_from(limit.maximum.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let count = 10_000.min(most.saturating_sub(1_000));
    assert!(count >= 1_000, "this machine allows {most} files, with which nothing can be shown");
    let address = upstream(|request, stream| {
        let wire = Wire::of(&request.head);
        Cut::Frame.write(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
            &wire.stream(Kind::Text, &["Hi."]),
            stream,
        )
    });
    let place = Place::with(&[("never", RULE)]);
    place.write(
        "tidegate.toml",
        &format!(
            "[gateway.limits]\nconnections = 20000\nclient_timeout_ms = 600000\n\
             [[gateway.route]]\npath = \"/model\"\nupstream = \"http://{address}\"\n"
        ),
    );
    let guard = Guard::serve(&place);
    let ask = || {
        let wire = Wire::Messages;
        let path = format!("/model{}", wire.path());
        Client::connect(guard.address).ask(&path, "", &wire.request("Say it.", true)).unwrap().body
    };
    let expected = Wire::Messages.stream(Kind::Text, &["Hi."]);
    assert_eq!(ask(), expected);
    let (files, before) = guard.resources();
    let mut idle = Vec::new();
    while idle.len() < count {
        idle.push(TcpStream::connect(guard.address).unwrap());
        if idle.len().is_multiple_of(500) {
            assert_eq!(ask(), expected, "{} are idle", idle.len());
        }
    }
    let (open, during) = guard.resources();
    assert!(open >= count, "{open} of {count} are open");
    let each = during.saturating_sub(before) / count;
    assert!(each < 16 << 10, "an idle connection takes {each} bytes");
    for stream in &idle {
        stream.shutdown(Shutdown::Both).unwrap();
    }
    drop(idle);
    guard.assert_settled(files);
}
