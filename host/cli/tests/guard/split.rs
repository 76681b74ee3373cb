//! A phrase that a rule forbids, split at every offset, in every kind of answer and every segmentation: no byte of it reaches the client.

use std::sync::{Arc, Mutex};

use super::answers::{Kind, Wire, streamed, strings, values};
use super::raw::{Client, Cut, Guard, upstream};
use crate::support::Place;

/// It contains letters of two and four bytes.
const PHRASE: &str = "the wørd 😀 of all";

/// The rule can start to match at the first letter, and can end at each byte.
const RULE: &str = "+++\ncondition = 'the wørd 😀 of all'\nscope = [\"text\", \"thinking\", \"tool\"]\nrepeat = \"always\"\n+++\n\
    Never say this.\n";

/// One answer of an upstream, before a reminder and after it.
struct Script {
    head: &'static str,
    bad: Vec<u8>,
    good: Vec<u8>,
    cut: Cut,
    /// The requests so far, and how many of them had a reminder.
    asked: (usize, usize),
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

/// A guard in front of an upstream that plays the script that a test sets.
struct Stage {
    guard: Guard,
    /// The workspace, which has to exist during the test.
    _place: Place,
    script: Arc<Mutex<Option<Script>>>,
}

impl Stage {
    fn new() -> Self {
        let script = Arc::new(Mutex::new(None::<Script>));
        let played = Arc::clone(&script);
        let address = upstream(move |request, stream| {
            let is_reminded = String::from_utf8_lossy(&request.body).contains("Never say this.");
            let (head, body, cut) = {
                let mut script = played.lock().unwrap();
                let script = script.as_mut().unwrap();
                script.asked.0 += 1;
                script.asked.1 += usize::from(is_reminded);
                (script.head, if is_reminded { script.good.clone() } else { script.bad.clone() }, script.cut)
            };
            // Dropping a request in its middle is expected.
            cut.write(head, &body, stream)
        });
        let place = Place::with(&[("never", RULE)]);
        place.write("tidegate.toml", "[rules]\nbuiltin_rules = false\nmax_interrupts_per_turn = 9\n");
        Self { guard: Guard::start(&place, address), _place: place, script }
    }

    /// Sends one request; returns the bytes that the client received.
    fn ask(&self, client: &mut Client, wire: Wire, script: Script) -> Vec<u8> {
        let is_stream = script.head == STREAM;
        let (what, cut) = (String::from_utf8_lossy(&script.bad).into_owned(), script.cut);
        *self.script.lock().unwrap() = Some(script);
        let answer = client.ask(wire.path(), "", &wire.request("Say it.", is_stream)).unwrap();
        assert_eq!(
            (answer.status, self.script.lock().unwrap().as_ref().unwrap().asked),
            (200, (2, 1)),
            "{cut:?} {what}"
        );
        answer.body
    }
}

/// No decoding of the bytes yields the phrase.
fn assert_unseen(body: &[u8], about: &str) {
    let values = values(body);
    let text = String::from_utf8_lossy(body);
    assert!(!text.contains(PHRASE), "{about}: {text}");
    for kind in [Kind::Text, Kind::Reasoning, Kind::Call] {
        assert!(!streamed(kind, &values).contains(PHRASE), "{about}: {text}");
    }
    for string in values.iter().flat_map(strings) {
        assert!(!string.contains(PHRASE), "{about}: {text}");
        // Arguments are JSON in a string.
        if let Ok(inner) = serde_json::from_str(&string) {
            assert!(!strings(&inner).iter().any(|inner| inner.contains(PHRASE)), "{about}: {text}");
        }
    }
}

/// Returns the text of a block with the phrase, and without it.
fn said(kind: Kind) -> (String, String) {
    match kind {
        Kind::Call => {
            let with = |text: &str| serde_json::json!({"path": "a", "content": format!("I say {text}")}).to_string();
            (with(PHRASE), with("nothing"))
        }
        _ => (format!("I say {PHRASE}, and more."), "Nothing at all.".to_owned()),
    }
}

#[test]
fn a_phrase_that_is_split_anywhere_reaches_no_client_in_a_stream() {
    let stage = Stage::new();
    let mut client = Client::connect(stage.guard.address);
    let mut count = 0;
    for (wire, kind) in
        Wire::ALL.into_iter().flat_map(|wire| [Kind::Text, Kind::Reasoning, Kind::Call].map(|kind| (wire, kind)))
    {
        let (bad, good) = said(kind);
        let start = bad.find(PHRASE).unwrap();
        let places = (0..=PHRASE.len()).map(|at| start + at).filter(|at| bad.is_char_boundary(*at));
        for (at, cut) in places.flat_map(|at| Cut::ALL.map(|cut| (at, cut))) {
            let cut = if let Cut::Random(_) = cut { Cut::Random(at as u64 * 2 + 1) } else { cut };
            let (first, rest) = bad.split_at(at);
            let script = Script {
                head: STREAM,
                bad: wire.stream(kind, &[first, rest]),
                good: wire.stream(kind, &[&good]),
                cut,
                asked: (0, 0),
            };
            let body = stage.ask(&mut client, wire, script);
            let about = format!("{wire:?} {kind:?} at {at} {cut:?}");
            assert_unseen(&body, &about);
            let received = streamed(kind, &values(&body));
            let kept = if kind == Kind::Text { "I say " } else { "" };
            assert_eq!(received, format!("{kept}{good}"), "{about}");
            count += 1;
        }
    }
    let report = stage.guard.finish();
    assert!(report.contains(&format!("never: stopped and asked again {count}×")), "{count}: {report}");
}

#[test]
fn a_phrase_that_is_split_anywhere_reaches_no_client_in_a_whole_body() {
    let stage = Stage::new();
    let mut client = Client::connect(stage.guard.address);
    for (wire, kind) in
        Wire::ALL.into_iter().flat_map(|wire| [Kind::Text, Kind::Reasoning, Kind::Call].map(|kind| (wire, kind)))
    {
        let (bad, good) = said(kind);
        for cut in Cut::ALL.into_iter().chain((1..20).map(Cut::Random)) {
            let (bad, good) = (wire.whole(kind, &bad), wire.whole(kind, &good));
            let script = Script { head: WHOLE, bad, good: good.clone(), cut, asked: (0, 0) };
            let body = stage.ask(&mut client, wire, script);
            assert_unseen(&body, &format!("{wire:?} {kind:?} {cut:?}"));
            assert_eq!(body, good, "{wire:?} {kind:?} {cut:?}");
        }
    }
}
