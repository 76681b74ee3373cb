//! The recording format: written by hand and by code, read strictly, replayed in time and only if the requests match.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flow::ports::Model;
use flow::{Action, CallId, Delta, ErrorClass, FailureKind, Message, ModelError, Prompt, StreamKind};
use serde_json::json;
use tidegate_providers::{
    Expect, ProviderConfig, RecordedEnd, RecordedFire, RecordedRules, RecordingReader, RecordingWriter, ReplayConfig,
    connect,
};
use wire::Wire;

use crate::classes::class_of;

struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn file(text: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    std::fs::write(&path, text).unwrap();
    File { _folder: folder, path }
}

fn open(file: &File, speed: f64, strict: bool) -> Result<Arc<dyn Model>, String> {
    let config = ReplayConfig { path: file.path.clone(), speed, strict };
    connect(&ProviderConfig::Recording(config)).map_err(|error| error.to_string())
}

async fn ask(model: &Arc<dyn Model>, words: &str) -> (String, Option<ModelError>) {
    let prompt = Prompt { messages: vec![Arc::new(Message::user(words))], ..Prompt::default() };
    let mut stream = match model.start(&prompt).await {
        Ok(stream) => stream,
        Err(error) => return (String::new(), Some(error)),
    };
    let mut text = String::new();
    while let Some(delta) = std::future::poll_fn(|cx| stream.poll_next(cx)).await {
        match delta {
            Ok(Delta::Piece { text: piece, .. }) => text.push_str(&piece),
            Ok(_) => {}
            Err(error) => return (text, Some(error)),
        }
    }
    (text, None)
}

const HEAD: &str = "{\"tidegate_recording\":1,\"wire\":\"openai-chat\",\"model\":\"m\"}\n";
const ANSWER: &str = r#"{"response":200,"headers":{"content-type":"text/event-stream"},"at_ms":20}
{"text":"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n","at_ms":120}
{"text":"data: [DONE]\n\n","at_ms":220}
{"end":"complete"}
"#;

#[tokio::test]
async fn a_recording_written_by_hand_answers() {
    let text = format!("{HEAD}\n{{\"request\":{{}}}}\n{ANSWER}{{\"request\":{{}}}}\n{ANSWER}");
    let model = open(&file(&text), 0.0, false).unwrap();
    assert_eq!((model.provider(), model.name()), ("recording", "m"));
    assert_eq!(ask(&model, "a").await, ("hi".into(), None));
    assert_eq!(ask(&model, "b").await, ("hi".into(), None));
    let error = ask(&model, "c").await.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Permanent);
    assert!(error.message.contains("request 3") && error.message.contains("contains 2 requests"), "{error}");
    assert!(error.message.contains("add an answer to the file, or use `tidegate rules test`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn pauses_are_kept_and_scaled() {
    let file = file(&format!("{HEAD}{{\"request\":{{}}}}\n{ANSWER}"));
    for (speed, least, most) in [(1.0, 220, 230), (4.0, 55, 60), (0.0, 0, 5)] {
        let model = open(&file, speed, false).unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(ask(&model, "a").await, ("hi".into(), None));
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(least) && took < Duration::from_millis(most), "{speed}: {took:?}");
    }
    for speed in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(open(&file, speed, false).map(|_| ()).unwrap_err().contains("is not a speed"));
    }
}

#[tokio::test]
async fn a_replay_that_diverges_says_so() {
    let expect = r#""expect":{"contains":["fix the bug","user"],"absent":["password"]}"#;
    let file = file(&format!("{HEAD}{{\"request\":{{}},{expect}}}\n{ANSWER}"));
    let said = async |words: &str| ask(&open(&file, 0.0, false).unwrap(), words).await;
    assert_eq!(said("please fix the bug").await, ("hi".into(), None));
    let error = said("something else").await.1.unwrap();
    assert_eq!(class_of(&error), ErrorClass::Permanent);
    assert_eq!(error.message, "request 1 does not match the recording: it should contain \"fix the bug\"");
    let error = said("fix the bug, my password is x").await.1.unwrap();
    assert_eq!(error.message, "request 1 does not match the recording: it should not contain \"password\"");
}

#[tokio::test]
async fn a_strict_replay_wants_the_same_body() {
    let body = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "a"}],
    });
    let file = file(&format!("{HEAD}{}\n{ANSWER}", json!({ "request": body })));
    assert_eq!(ask(&open(&file, 0.0, true).unwrap(), "a").await, ("hi".into(), None));
    let error = ask(&open(&file, 0.0, true).unwrap(), "b").await.1.unwrap();
    assert!(error.message.ends_with("it differs from the recorded one at messages[0].content"), "{error}");
}

#[tokio::test]
async fn a_strict_replay_takes_a_masked_request_for_what_was_sent() {
    let words = "my keys are tide-secret-1 and ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let lines = Lines::default();
    let mut writer = RecordingWriter::new(lines.clone(), Wire::OpenAiChat, "m").unwrap();
    writer.hide("tide-secret-1");
    let body = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": words}],
    });
    writer.request(&body, &Expect::default()).unwrap();
    let text = lines.text();
    assert!(text.contains("my keys are ************* and ghp_0000000000xxxxxxxxxxXXXXXXXXXX000000"), "{text}");
    let file = file(&(text + ANSWER));
    assert_eq!(ask(&open(&file, 0.0, true).unwrap(), words).await, ("hi".into(), None));
    let others = words.replace("ghp_", "gho_");
    let error = ask(&open(&file, 0.0, true).unwrap(), &others).await.1.unwrap();
    assert!(error.message.contains("differs"), "{error}");
}

#[tokio::test]
async fn endings_are_replayed() {
    let cut = ANSWER.lines().take(2).collect::<Vec<_>>().join("\n");
    let failed = r#"{"end":"failed","class":"transient","message":"the wire was cut","at_ms":5}"#;
    let garbled = r#"{"end":"failed","kind":"decode","message":"the wire was cut"}"#;
    for (lines, text, class, message) in [
        (failed.to_owned(), "", ErrorClass::Transient, "the wire was cut"),
        (failed.replace("transient", "quota"), "", ErrorClass::Quota, "the wire was cut"),
        (garbled.to_owned(), "", ErrorClass::Transient, "the wire was cut"),
        (garbled.replace("decode", "limit"), "", ErrorClass::Permanent, "the wire was cut"),
        (cut.clone(), "hi", ErrorClass::Permanent, "cut off here"),
        (format!("{cut}\n{failed}"), "hi", ErrorClass::Transient, "the wire was cut"),
        (String::new(), "", ErrorClass::Permanent, "cut off here"),
        (
            "{\"response\":429,\"headers\":{\"retry-after\":\"3\"}}\n{\"text\":\"slow\"}\n{\"end\":\"complete\"}"
                .into(),
            "",
            ErrorClass::RateLimited,
            "HTTP 429: slow",
        ),
    ] {
        let model = open(&file(&format!("{HEAD}{{\"request\":{{}}}}\n{lines}\n")), 0.0, false).unwrap();
        let (got, error) = ask(&model, "a").await;
        let error = error.unwrap();
        assert_eq!((got.as_str(), class_of(&error)), (text, class), "{lines}");
        assert!(error.message.contains(message), "{error}");
    }
}

/// A recording in which something fired.
fn fired(what: &str) -> String {
    format!("{HEAD}{{\"request\":1}}\n{{\"rules\":{{\"fired\":[{{\"rule\":\"r\",\"start\":0,\"end\":1,{what}}}]}}}}\n")
}

#[tokio::test]
async fn bad_recordings_name_their_line() {
    for (text, line, message) in [
        ("", None, "is empty"),
        ("not a recording", None, "it is not a recording, or its first line was cut off"),
        ("{}\n", Some(1), "the first line must say"),
        ("{\"tidegate_recording\":4}\n", Some(1), "has version 4 of the format; this program reads versions 1 to 3"),
        ("{\"tidegate_recording\":1,\"wire\":\"smoke\",\"model\":\"m\"}\n", Some(1), "`wire` must be"),
        ("{\"tidegate_recording\":1,\"wire\":\"anthropic\"}\n", Some(1), "`model` is missing"),
        (&format!("{HEAD}\nnonsense\n{{}}\n"), Some(3), "is not a line of a recording"),
        (&format!("{HEAD}{{\"requests\":1}}\n"), Some(2), "unknown field `requests`"),
        (&format!("{HEAD}{{\"text\":\"a\"}}\n"), Some(2), "belongs to request 0, which has not begun"),
        (&format!("{HEAD}{{\"request\":1}}\n{{\"text\":\"a\",\"n\":2}}\n"), Some(3), "belongs to request 2"),
        (&format!("{HEAD}{{\"request\":1}}\n{{\"at_ms\":1}}\n"), Some(3), "is not one of request"),
        (&format!("{HEAD}{{\"request\":1}}\n{{\"rules\":{{\"fires\":[]}}}}\n"), Some(3), "unknown field `fires`"),
        (&fired(r#""stream":"tool","action":"stop""#), Some(3), "or `tool` with `call` and `tool`"),
        (&fired(r#""stream":"words","action":"stop""#), Some(3), "`stream` of what fired is \"words\""),
        (&fired(r#""stream":"text","action":"shout""#), Some(3), "`action` \"shout\" is not an action of a rule"),
        (&format!("{HEAD}{{\"request\":1}}\n{{\"base64\":\"?\"}}\n"), Some(3), "`base64` cannot be decoded"),
        (&format!("{HEAD}{{\"request\":1}}\n{{\"end\":\"soon\"}}\n"), Some(3), "must be complete, cut or failed"),
        (
            &format!("{HEAD}{{\"request\":1}}\n{{\"end\":\"failed\",\"class\":\"x\"}}\n"),
            Some(3),
            "is not a class of errors",
        ),
        (
            &format!("{HEAD}{{\"request\":1}}\n{{\"end\":\"failed\",\"kind\":\"x\"}}\n"),
            Some(3),
            "is not a kind of failure",
        ),
        (&format!("{HEAD}{{\"request\":1}}\n{{\"end\":\"failed\"}}\n"), Some(3), "neither `kind` nor `class` says how"),
    ] {
        let file = file(text);
        let error = open(&file, 0.0, false).map(|_| ()).unwrap_err();
        let place = line.map(|line| format!(", line {line}: ")).unwrap_or_else(|| ": ".into());
        assert!(error.contains(&format!("{}{place}", file.path.display())), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

/// A writer's lines, for tests to read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn failed(message: &str) -> RecordedEnd {
    RecordedEnd::Failed { class: None, kind: Some(FailureKind::Transport), message: message.into() }
}

#[test]
fn the_writer_writes_the_documented_lines() {
    let lines = Lines::default();
    let mut writer = RecordingWriter::new(lines.clone(), Wire::Anthropic, "m").unwrap();
    let expect = Expect { contains: vec!["x".into()], absent: vec![] };
    let first = writer.request(&json!({"a": 1}), &expect).unwrap();
    writer.response(first, 5, 200, [("Content-Type", "text/event-stream"), ("set-cookie", "s")]).unwrap();
    writer.chunk(first, 6, "ä\n".as_bytes()).unwrap();
    writer.chunk(first, 7, &[0xC3]).unwrap();
    let second = writer.request(&json!({}), &Expect::default()).unwrap();
    writer.chunk(first, 8, b"late").unwrap();
    writer.end(first, 9, &RecordedEnd::Cut).unwrap();
    writer.end(second, 1, &failed("gone")).unwrap();
    let tool = StreamKind::Tool { call: CallId::new("c"), name: "t".into() };
    let fire = |stream, action, start| RecordedFire { rule: "r".into(), stream, action, start, end: start + 2 };
    let fired = vec![fire(StreamKind::Text, Action::Remind, 3), fire(tool, Action::Block, 0)];
    let rules = RecordedRules { prefix: String::new(), fired };
    writer.rules(first, 10, &rules).unwrap();
    writer.hide("secret-word");
    writer.rules(second, 11, &RecordedRules { prefix: "a secret-word".into(), fired: Vec::new() }).unwrap();
    let expected = r#"{"tidegate_recording":3,"wire":"anthropic","model":"m"}
{"request":{"a":1},"expect":{"contains":["x"]}}
{"response":200,"headers":{"content-type":"text/event-stream"},"at_ms":5}
{"text":"ä\n","at_ms":6}
{"request":{}}
{"base64":"ww==","n":1,"at_ms":7}
{"text":"late","n":1,"at_ms":8}
{"end":"cut","n":1,"at_ms":9}
{"end":"failed","kind":"transport","message":"gone","at_ms":1}
{"rules":{"fired":[{"rule":"r","stream":"text","action":"remind","start":3,"end":5},{"rule":"r","stream":"tool","call":"c","tool":"t","action":"block","start":0,"end":2}]},"n":1,"at_ms":10}
{"rules":{"prefix":"a ***********","fired":[]},"at_ms":11}
"#;
    assert_eq!(lines.text(), expected);
    let file = file(expected);
    let answers: Vec<_> = RecordingReader::open(&file.path).unwrap().map(|answer| answer.unwrap().rules).collect();
    assert_eq!(answers[0], Some(rules));
    assert_eq!(answers[1].as_ref().map(|rules| rules.prefix.as_str()), Some("a ***********"));
    assert!(open(&file, 0.0, false).is_ok());
}

#[test]
fn secrets_are_masked_wherever_a_chunk_ends() {
    let secret = "sk-abc-123";
    let text = "a key sk-abc-123, sk-abc-12 is none, sk-sk-abc-123sk-abc-123 s";
    for cut in 0..text.len() {
        for second in [cut, (cut + 3).min(text.len())] {
            let lines = Lines::default();
            let mut writer = RecordingWriter::new(lines.clone(), Wire::Anthropic, "m").unwrap();
            writer.hide(secret);
            let request = writer.request(&json!({"deep": [{"text": text}]}), &Expect::default()).unwrap();
            for (at_ms, part) in [&text[..cut], &text[cut..second], &text[second..]].into_iter().enumerate() {
                writer.chunk(request, at_ms as u64, part.as_bytes()).unwrap();
            }
            writer.end(request, 9, &RecordedEnd::Complete).unwrap();
            let written = lines.text();
            let chunks: Vec<String> = written
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
                .filter_map(|line| Some(line["text"].as_str()?.to_owned()))
                .collect();
            assert_eq!(chunks.len(), 3, "the boundaries stay");
            assert_eq!(chunks[0].len(), cut);
            assert_eq!(chunks.concat(), text.replace(secret, "**********"), "cut at {cut} and {second}");
            assert!(!written.contains(secret));
        }
    }
}

/// The result of a reader: the text of each answer, and why there is no complete one.
fn read(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let file = file(text);
    let reader = RecordingReader::open(&file.path).map_err(|error| error.to_string())?;
    let answers = reader.map(|answer| {
        let answer = answer.map_err(|error| error.to_string())?;
        let pieces = answer.deltas.iter().filter_map(|delta| match delta {
            Delta::Piece { text, .. } => Some(text.as_str()),
            _ => None,
        });
        Ok((pieces.collect(), answer.error.map(|error| error.message)))
    });
    answers.collect()
}

#[tokio::test]
async fn the_recording_of_the_page_is_one() {
    let page = include_str!("../RECORDINGS.md");
    let text = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(read(text).unwrap(), [("Each value has one owner.".into(), None)]);
    let replayed = |words: &'static str| {
        let file = file(text);
        async move { ask(&open(&file, 0.0, false).unwrap(), words).await }
    };
    assert_eq!(replayed("Explain ownership.").await, ("Each value has one owner.".into(), None));
    assert!(replayed("Explain lifetimes.").await.1.unwrap().message.contains("ownership"), "`expect` counts");
}

#[test]
fn answers_are_read_decoded_each_when_it_is_complete() {
    let request = r#"{"request":{"messages":[{"content":"first"},{"content":[{"text":"last"}]}]}}"#;
    let text = format!("{HEAD}{request}\n{ANSWER}{{\"request\":{{}}}}\n{{\"end\":\"complete\"}}\n");
    let none = Some("no answer is recorded for it".to_owned());
    assert_eq!(read(&text).unwrap(), [("hi".into(), None), (String::new(), none)]);
    let answer = RecordingReader::open(&file(&text).path).unwrap().next().unwrap().unwrap();
    assert_eq!((answer.number, answer.line, answer.last_texts), (1, 2, vec!["last".to_owned()]));
    assert_eq!(answer.rules, None, "version 1 does not say what fired");
    let last = &answer.deltas[answer.last_chunk..];
    assert!(!last.is_empty() && last.len() < answer.deltas.len(), "{last:?} of {:?}", answer.deltas);

    // Two answers that overlap; the second is refused.
    let chunk = r#""text":"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"}"#;
    let overlapping = format!(
        "{HEAD}{{\"request\":{{}}}}\n{{\"request\":{{}}}}\n{{\"n\":1,{chunk}\n{{\"response\":500}}\n\
         {{\"text\":\"away\"}}\n{{\"end\":\"complete\"}}\n{{\"n\":1,{chunk}\n{{\"torn"
    );
    let answers = read(&overlapping).unwrap();
    assert!(answers[0].1.as_ref().is_some_and(|error| error.contains("away")), "{answers:?}");
    assert_eq!(answers[1], ("hihi".into(), None));
    assert_eq!(RecordingReader::open(&file(&overlapping).path).unwrap().torn_line(), Some(9));
}

#[test]
fn a_reader_names_the_line_that_is_none() {
    for (text, line, message) in [
        (
            format!("{HEAD}{{\"request\":{{}}}}\n{{\"request\":{{}}}}\nno json\n{ANSWER}"),
            4,
            "is not a line of a recording",
        ),
        (format!("{HEAD}\n{{\"end\":\"cut\"}}\n"), 3, "belongs to request 0, which has not begun"),
        (format!("{HEAD}{{\"request\":{{}}}}\n{{\"end\":\"perhaps\"}}\n"), 3, "must be complete, cut or failed"),
        ("{\"request\":{}}\n".to_owned(), 1, "the first line must say"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(&format!("line {line}:")) && error.contains(message), "{error}");
    }
    assert!(read("").unwrap_err().contains("is empty"));
    assert!(read("{\"tidegate_rec").unwrap_err().contains("its first line was cut off"));
}
