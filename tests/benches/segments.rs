//! What splitting the model's text costs: the search for tags, and rules, tags and one plugin together, for each delta.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flow::ports::{BoxFuture, Clock, ExtensionHost as _};
use flow::{Callback, Registration, SessionId, StreamKind, TagPattern, TextUnit};
use guard::Segments;
use rules::{RuleSession, RuleSet};
use sandbox::{Plugin, SandboxHost};
use tidegate_segments::{Pattern, TagFinder};

use crate::support::guests::{EmptyStage, build, load, sandbox, splitter, store};
use crate::support::text::{patterns, pieces, rule_set, text};
use crate::support::{Aim, Lane, Table, criterion, race, ready};

/// Large enough for hundreds of tags, small enough for many rounds.
const BYTES: usize = 1_000_000;
const RULES: usize = 100;

pub(crate) fn bench() {
    let mut table = Table::new("segments");
    let sandbox = sandbox(16);
    let plugin = load(&sandbox, "pass-through", build("tests/guests/pass-through"));
    tags(&mut table, &plugin);
    together(&mut table, &plugin);
    table.finish();
}

fn noted() -> Vec<TagPattern> {
    vec![TagPattern::Exact("note".into()), TagPattern::Prefix("note-".into())]
}

fn tags(table: &mut Table, plugin: &Plugin) {
    let text = with_tags(&text(BYTES));
    let (four, whole) = (pieces(&text), [text.as_str()]);
    let host = SandboxHost::new(vec![plugin.clone()], store()).unwrap();
    // A plugin that asks for no callback: the tags are found, and none is handled.
    let lonely = Registration { callbacks: vec![Callback::Tag(noted()).into()], ..plugin.registration().clone() };
    let find = |pieces: &[&str]| {
        let mut finder = TagFinder::new(vec![Pattern::Exact("note".into()), Pattern::Prefix("note-".into())]);
        let mut found = (0, 0);
        for piece in pieces {
            let (bytes, tags) = finder.push(piece);
            found = (found.0 + bytes, found.1 + tags);
        }
        assert!(found.1 >= 2 * (BYTES / EVERY - 2), "{} tags are found", found.1);
        black_box(found);
    };
    let stage = || splitter(Arc::new([lonely.clone()]), open(&host), Arc::new(Stopped));
    let split = |pieces: &[&str]| {
        let mut splitter = stage();
        for piece in pieces {
            black_box(ready(splitter.push(piece)).unwrap());
        }
        black_box(ready(splitter.finish()).unwrap());
    };
    let plain = text.replace("note", "n0te");
    let untagged = pieces(&plain);
    let lanes = vec![
        Lane::new("search, 4-byte deltas", || find(&four)),
        Lane::new("search, one piece", || find(&whole)),
        Lane::new("stage without a tag, 4-byte deltas", || split(&untagged)),
    ];
    let times = race(&mut criterion(), "tags", 51, lanes);
    let speed = |lane: usize| BYTES as f64 / times.of(lane) * 1000.0;
    table.row("search for tags, 4-byte deltas", Aim::AtLeast(200.0), speed(0), "MB/s");
    table.row("– in one piece", Aim::None, speed(1), "MB/s");
    table.row("the whole stage with its strings, no tag in the text, 4-byte deltas", Aim::None, speed(2), "MB/s");
}

/// A tag this often.
const EVERY: usize = 2_000;

/// The text with a tag in every [`EVERY`] bytes, of the same length. Code and comments are removed: text in them is
/// no tag.
fn with_tags(text: &str) -> String {
    let mut out = text.replace(['`', '~'], "'").replace("<!", "< ").into_bytes();
    for at in (EVERY / 2..out.len() - EVERY).step_by(EVERY) {
        let tag: &[u8] = b" <note kind=\"todo\">look at the port</note> ";
        out[at..at + tag.len()].copy_from_slice(tag);
    }
    String::from_utf8(out).unwrap()
}

fn open(host: &SandboxHost) -> Arc<dyn flow::ports::Extensions> {
    // Each of its own: a session is open once at a time.
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    let id = SessionId::new(format!("segments-{}", OPENED.fetch_add(1, Ordering::Relaxed)));
    ready(host.open(&id, Arc::new(EmptyStage), Arc::new(EmptyStage))).unwrap()
}

fn together(table: &mut Table, plugin: &Plugin) {
    // No tag that the plugin handles: what is measured is the way of a delta, not a call.
    let text = text(BYTES).replace("<note", "<n0te");
    let set = rule_set(&patterns(RULES));
    let host = SandboxHost::new(vec![plugin.clone()], store()).unwrap();
    let callbacks = vec![Callback::PlainText(TextUnit::Line.into()).into(), Callback::Tag(noted()).into()];
    let registration = Registration { callbacks, ..plugin.registration().clone() };
    let run = |pieces: &[&str]| {
        let splitter = splitter(Arc::new([registration.clone()]), open(&host), Arc::new(Stopped));
        stream(&set, splitter, pieces);
    };
    let four = pieces(&text);
    let lines = lines(&text, 50_000);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let lanes = vec![Lane::new("4-byte deltas", || run(&four)), Lane::new("a call for each delta", || run(&lines))];
    let times = race(&mut criterion(), "rules, tags and a plugin", 31, lanes);
    let each = |lane: usize, count: usize| times.of(lane) / count as f64 / 1000.0;
    let aim = Aim::AtMost(1.0);
    table.row(
        &format!("{RULES} rules, tags and a plugin of lines, each delta of 4 bytes"),
        aim,
        each(0, four.len()),
        "µs",
    );
    table.row("– each delta a line of 20 bytes, so that each calls the plugin", aim, each(1, lines.len()), "µs");
}

/// The text in lines of 20 bytes.
fn lines(text: &str, count: usize) -> Vec<String> {
    let words: Vec<u8> = text.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
    let lines = words.chunks_exact(19).cycle().take(count);
    lines.map(|line| format!("{}\n", std::str::from_utf8(line).unwrap())).collect()
}

/// What a turn does with each delta: the gate first, then what it lets through goes to the stage.
fn stream(set: &Arc<RuleSet>, mut splitter: Segments, pieces: &[&str]) {
    let mut session = RuleSession::new(Arc::clone(set));
    session.begin_turn();
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let (mut held, mut released) = (String::new(), 0);
    for piece in pieces {
        held.push_str(piece);
        let fed = gate.piece(0, piece);
        assert!(fed.matches.is_empty());
        let free = usize::try_from(fed.safe - released).unwrap();
        if free > 0 {
            black_box(ready(splitter.push(&held[..free])).unwrap());
            held.drain(..free);
            released = fed.safe;
        }
    }
    black_box(ready(splitter.finish()).unwrap());
}

/// A clock that is not read.
struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        0
    }

    fn sleep(&self, _time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
