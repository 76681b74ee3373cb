//! The SSE decoder: its own rules, and the same events as an independent decoder for any bytes cut anywhere.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use tidegate_wire::{MAX_EVENT_BYTES, SseDecoder, TooLarge};

/// Name and data of every event, the bytes pushed in these chunks. What the end leaves over is not taken. No byte is lost.
fn decode<'b>(chunks: impl IntoIterator<Item = &'b [u8]>) -> Vec<(String, String)> {
    let mut decoder = SseDecoder::new();
    let (mut pushed, mut raw, mut events) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in chunks {
        pushed.extend_from_slice(chunk);
        decoder
            .push_frames(chunk, |frame| {
                raw.extend_from_slice(frame.raw);
                events.extend(frame.event.iter().map(|event| (event.name.to_string(), event.data.to_string())));
                Ok::<(), TooLarge>(())
            })
            .unwrap();
    }
    decoder
        .finish_frames(|frame| {
            raw.extend_from_slice(frame.raw);
            Ok::<(), TooLarge>(())
        })
        .unwrap();
    assert_eq!(raw, pushed);
    events
}

/// The bytes of each frame, with what its event is named and whether it has one.
fn frames(bytes: &[u8]) -> Vec<(String, bool)> {
    let (mut decoder, mut frames) = (SseDecoder::new(), Vec::new());
    decoder
        .push_frames(bytes, |frame| {
            frames.push((String::from_utf8_lossy(frame.raw).into_owned(), frame.event.is_some()));
            Ok::<(), TooLarge>(())
        })
        .unwrap();
    frames
}

#[test]
fn a_frame_is_an_event_or_what_is_between_events() {
    let expected =
        [("data: a\n\n", true), (": ping\n", false), ("\n", false), ("event: e\r\n: c\r\ndata: b\r\n\r\n", true)];
    let bytes: String = expected.iter().map(|(raw, _)| *raw).collect();
    let expected = expected.map(|(raw, is_event)| (raw.to_owned(), is_event));
    // What is not complete is none yet.
    assert_eq!(frames(format!("{bytes}data: c\n").as_bytes()), expected);
    assert_eq!(frames(b"event: only\n\n"), [("event: only\n\n".to_owned(), false)]);
}

#[test]
fn the_frames_of_a_providers_stream_are_its_bytes() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/providers/streams");
    let mut files = 0;
    for wire in std::fs::read_dir(folder).unwrap().map(|wire| wire.unwrap().path()).filter(|path| path.is_dir()) {
        for path in std::fs::read_dir(wire).unwrap().map(|file| file.unwrap().path()) {
            if path.extension().is_some_and(|end| end == "sse") {
                let bytes = std::fs::read(&path).unwrap();
                let whole = decode([bytes.as_slice()]);
                for size in [1, 2, 7, 100] {
                    assert_eq!(decode(bytes.chunks(size)), whole, "{}", path.display());
                }
                files += 1;
            }
        }
    }
    assert!(files >= 40, "only {files} files were found");
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect()
}

/// Every case whole and byte by byte.
fn check(bytes: &[u8], expected: &[(&str, &str)]) {
    assert_eq!(decode([bytes]), pairs(expected), "{:?}", String::from_utf8_lossy(bytes));
    assert_eq!(decode(bytes.chunks(1)), pairs(expected), "byte by byte: {:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn fields_lines_and_events() {
    check(b"data: a\n\n", &[("", "a")]);
    check(b"event: e\ndata: a\n\ndata: b\n\n", &[("e", "a"), ("", "b")]);
    check(b"data: a\ndata: b\ndata\ndata:\n\n", &[("", "a\nb\n\n")]);
    check(b"data:a\r\n\r\ndata: b\r\rdata:  c\n\n", &[("", "a"), ("", "b"), ("", " c")]);
    check(b": comment\ndata: a\n:\n\n", &[("", "a")]);
    check(b"event: only\n\ndata: a\n\n", &[("", "a")]);
    check(b"id: 7\nretry: 10\nother: x\ndata: a\n\n", &[("", "a")]);
    check(b"data: no end\n", &[]);
    check(b"\n\n\r\n", &[]);
    check("\u{feff}data: ä\u{feff}€\n\n".as_bytes(), &[("", "ä\u{feff}€")]);
    check(b"data: \xff\xc3\n\n", &[("", "\u{fffd}\u{fffd}")]);
}

#[test]
fn the_last_event_may_lack_its_blank_line() {
    for (bytes, expected) in [
        (&b"data: a\n\ndata: b"[..], Some("b")),
        (b"data: b\n", Some("b")),
        (b"data: b\r", Some("b")),
        (b"data: a\n\n", None),
        (b": c", None),
    ] {
        let mut decoder = SseDecoder::new();
        decoder.push(bytes, |_| Ok::<(), TooLarge>(())).unwrap();
        let mut last = None;
        decoder
            .finish(|event| {
                last = Some(event.data.to_string());
                Ok::<(), TooLarge>(())
            })
            .unwrap();
        assert_eq!(last.as_deref(), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

/// Pushes `bytes` in chunks of `cut`; returns the number of events before the limit was exceeded, if it was.
fn until_too_large(bytes: &[u8], cut: usize) -> (usize, bool) {
    let (mut decoder, mut events) = (SseDecoder::new(), 0);
    for chunk in bytes.chunks(cut) {
        let pushed = decoder.push(chunk, |_| {
            events += 1;
            Ok(())
        });
        if pushed == Err(TooLarge) {
            return (events, true);
        }
    }
    (events, false)
}

#[test]
fn an_event_has_a_greatest_size_and_a_stream_has_none() {
    let event = |len: usize| {
        let mut bytes = b"data: ".to_vec();
        bytes.resize(len, b'x');
        bytes.extend_from_slice(b"\n\n");
        bytes
    };
    let many_lines = |count: usize| [b"data:\n".repeat(count), b"\n".to_vec()].concat();
    for cut in [1 << 12, 1 << 20, usize::MAX] {
        assert_eq!(until_too_large(&event(MAX_EVENT_BYTES).repeat(2), cut), (2, false));
        assert_eq!(until_too_large(&[event(9), event(MAX_EVENT_BYTES + 1)].concat(), cut), (1, true));
        assert_eq!(until_too_large(&many_lines(MAX_EVENT_BYTES / 6), cut), (1, false));
        assert_eq!(until_too_large(&many_lines(MAX_EVENT_BYTES / 6 + 2), cut), (0, true));
        // A line that never ends is noticed before it does.
        assert_eq!(until_too_large(&vec![b'x'; MAX_EVENT_BYTES + 1], cut), (0, true));
        // Comments keep a silent stream alive for as long as it takes.
        assert_eq!(until_too_large(&b": ping\n".repeat(MAX_EVENT_BYTES / 4), cut), (0, false));
    }
}

/// What the independent decoder makes of the same bytes.
fn oracle(chunks: Vec<Vec<u8>>) -> Vec<(String, String)> {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    let chunks = Chunks(chunks.into_iter());
    let mut stream = pin!(sse_stream::SseStream::from_bytes_stream(chunks));
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = Vec::new();
    while let Poll::Ready(Some(event)) = futures_core::Stream::poll_next(stream.as_mut(), &mut cx) {
        let event = event.unwrap();
        if let Some(data) = event.data {
            events.push((event.event.unwrap_or_default(), data));
        }
    }
    events
}

/// Chunks as the oracle wants them: a stream that is always ready.
struct Chunks(std::vec::IntoIter<Vec<u8>>);

impl futures_core::Stream for Chunks {
    type Item = Result<bytes::Bytes, std::io::Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.next().map(|chunk| Ok(chunk.into())))
    }
}

/// Cuts bytes at these places (taken modulo the length).
fn cut(bytes: &[u8], at: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<usize> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut chunks = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([bytes.len()]) {
        chunks.push(bytes[from..place].to_vec());
        from = place;
    }
    chunks
}

/// Lines as streams hold them, and lines that no stream should.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "data: ?[a-zä€😀 :]{0,12}",
        1 => "event: ?[a-z]{1,6}",
        1 => ":[a-z ]{0,6}",
        3 => Just(String::new()),
    ]
}

fn stream() -> impl Strategy<Value = String> {
    let end = prop_oneof![3 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r")];
    prop::collection::vec((line(), end), 0..40)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end.to_owned()]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn cuts_change_nothing(text in stream(), at in prop::collection::vec(any::<usize>(), 0..20)) {
        let whole = decode([text.as_bytes()]);
        let chunks = cut(text.as_bytes(), &at);
        prop_assert_eq!(decode(chunks.iter().map(Vec::as_slice)), whole);
    }

    #[test]
    fn an_independent_decoder_agrees(text in stream(), at in prop::collection::vec(any::<usize>(), 0..20)) {
        let text = format!("{text}\n\n"); // the two treat an unfinished last event differently, each on purpose
        let chunks = cut(text.as_bytes(), &at);
        prop_assert_eq!(decode(chunks.iter().map(Vec::as_slice)), oracle(chunks));
    }
}
