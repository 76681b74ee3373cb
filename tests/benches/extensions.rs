//! What many plugins cost: a chain of ten, the replacement of an instance that trapped, a prompt with fifty conditional additions,
//! and a plugin that is reloaded under open sessions.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use flow::ports::{BoxFuture, ExtensionHost as _, Extensions, Model, ModelStream};
use flow::{
    AdditionId, Condition, ContextMatch, Delta, Message, ModelError, NoAnswer, Origin, Position, Prompt,
    PromptAddition, Role, SessionId, StateTest, StopReason, StreamKind, TextPlace,
};
use sandbox::{Sandbox, SandboxHost};
use system::SystemClock;
use tidegate::{Host, Operator, Session, SessionOptions};
use tidegate_kit::Leaping;
use turn::bench::Assembly;

use crate::support::guests::{self, EmptyStage, build, load, root, sandbox, store};
use crate::support::text::text;
use crate::support::{Aim, Lane, Table, cpu_time, criterion, race, ready, scratch};

/// Plugins of the chain, and those with additions to the prompt.
const CHAIN: usize = 10;
const ADDITIONS: usize = 50;
/// Sessions that are open while a plugin is reloaded.
const SESSIONS: usize = 50;

pub(crate) fn bench() {
    let mut table = Table::new("extensions");
    let sandbox = sandbox(512);
    chain(&mut table, &sandbox);
    replaced(&mut table, &sandbox);
    prompt(&mut table, &sandbox);
    drop(sandbox);
    reload(&mut table);
    table.finish();
}

fn host_of(sandbox: &Sandbox, guest: &str, count: usize) -> SandboxHost {
    let component = build(guest);
    let plugins = (0..count).map(|number| load(sandbox, &format!("p{number}"), component.clone())).collect();
    SandboxHost::new(plugins, store()).unwrap()
}

fn open(host: &SandboxHost) -> Arc<dyn Extensions> {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    let id = SessionId::new(format!("extensions-{}", OPENED.fetch_add(1, Ordering::Relaxed)));
    ready(host.open(&id, Arc::new(EmptyStage), Arc::new(EmptyStage))).unwrap()
}

fn chain(table: &mut Table, sandbox: &Sandbox) {
    let line = format!("{}\n", "sixteen letters ".repeat(64));
    let splitter = |count: usize| {
        let host = host_of(sandbox, "tests/guests/pass-through", count);
        (guests::splitter(host.registrations(), open(&host), Arc::new(SystemClock)), host)
    };
    let ((mut ten, _host), (mut one, _other), (mut none, _nobody)) = (splitter(CHAIN), splitter(1), splitter(0));
    let lanes = vec![
        Lane::new("a chain of 10", || drop(black_box(ready(ten.push(&line)).unwrap()))),
        Lane::new("one plugin", || drop(black_box(ready(one.push(&line)).unwrap()))),
        Lane::new("no plugin", || drop(black_box(ready(none.push(&line)).unwrap()))),
    ];
    let times = race(&mut criterion(), "chain", 101, lanes);
    let [ten, one, none] = [0, 1, 2].map(|lane| times.of(lane) / 1000.0);
    table.row("chain of 10 plugins, a line of 1 KB, the whole stage", Aim::None, ten, "µs");
    table.row("– one plugin", Aim::None, one, "µs");
    table.row("– no plugin: the search for tags and lines", Aim::None, none, "µs");
    table.row("– each further plugin ÷ the first", Aim::None, (ten - one) / (CHAIN - 1) as f64 / (one - none), "×");
}

/// A guest that traps, and the call after it, which a new instance answers.
fn replaced(table: &mut Table, sandbox: &Sandbox) {
    let plugin = load(sandbox, "conformance", build("tests/guests/conformance"));
    // Minutes pass between two looks at the clock, so that no breaker opens.
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Leaping::default())).unwrap();
    let place = TextPlace::default();
    let trapping = open(&host);
    let call = |extensions: &Arc<dyn Extensions>| ready(extensions.plain_text(0, "words\n", &place)).unwrap();
    call(&trapping);
    let lanes = vec![
        Lane::new("a trap, and a call", || {
            let trapped = ready(trapping.plain_text(0, "!abort\n", &place));
            assert!(matches!(trapped, Err(NoAnswer::Failed(_))), "{trapped:?}");
            call(&trapping);
        }),
        Lane::timed("a new instance, and a call", |times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                let start = cpu_time();
                let extensions = open(&host);
                call(&extensions);
                took += cpu_time() - start;
                drop(extensions);
            }
            took
        }),
    ];
    let times = race(&mut criterion(), "trap", 101, lanes);
    table.row("a trap, and the next call with a new instance", Aim::None, times.of(0) / 1000.0, "µs");
    table.row("– a new session with its first call", Aim::None, times.of(1) / 1000.0, "µs");
    table.row("– trap and replacement ÷ a new session with its first call", Aim::None, times.ratio(0, 1), "×");
}

fn prompt(table: &mut Table, sandbox: &Sandbox) {
    let host = host_of(sandbox, "tests/guests/stateful", ADDITIONS);
    let extensions = open(&host);
    for plugin in 0..ADDITIONS {
        ready(extensions.plain_text(plugin, "set 1", &TextPlace::default())).unwrap();
    }
    let additions = |when: fn(usize) -> Vec<Condition>| -> Vec<PromptAddition> {
        let one = |number: usize| PromptAddition {
            id: AdditionId { plugin: format!("p{number}").parse().unwrap(), index: 0 },
            position: [Position::SystemPrefix, Position::SystemSuffix][number / 2 % 2],
            text: "Some words that explain to the model what the plugin does. ".repeat(4),
            when: when(number),
        };
        (0..ADDITIONS).map(one).collect()
    };
    let assembly = |when| {
        let extensions = Arc::clone(&extensions);
        Assembly::new(
            &["The host's prompt.".into()],
            &additions(when),
            host.registrations(),
            extensions,
            Arc::new(SystemClock),
        )
    };
    let (mut conditional, mut plain) = (assembly(conditions), assembly(|_| Vec::new()));
    let history = history();
    let (assembled, reported) = conditional.assemble(&history);
    assert_eq!((assembled.system.len(), reported.len()), (1 + ADDITIONS / 2, 0), "half of the conditions pass");
    let lanes = vec![
        Lane::new("with conditions", || drop(black_box(conditional.assemble(&history)))),
        Lane::new("without conditions", || drop(black_box(plain.assemble(&history)))),
    ];
    let times = race(&mut criterion(), "prompt", 101, lanes);
    table.row("prompt of 50 plugins, each with three conditions", Aim::AtMost(100.0), times.of(0) / 1000.0, "µs");
    table.row("– without conditions", Aim::None, times.of(1) / 1000.0, "µs");
}

/// Every kind of condition; those of every second plugin pass.
fn conditions(number: usize) -> Vec<Condition> {
    let model = Some("ben*".to_owned());
    let tag = ["plan", "missing"][number % 2];
    vec![
        Condition::ContextMatch(ContextMatch { model, ..ContextMatch::default() }),
        Condition::TagPresent(tag.parse().unwrap()),
        Condition::StateValue { key: "key".into(), test: StateTest::Exists(true) },
    ]
}

/// Eleven messages; an input has 1 KB, with a tag at its end, and an answer 4 KB.
fn history() -> Vec<Arc<Message>> {
    let words = text(5_000);
    let middle = words.ceil_char_boundary(1_000);
    let one = |number: usize| {
        let (role, origin, text) = match number % 2 {
            0 => (Role::User, Origin::User, format!("{}\n\n<plan>", words[..middle].replace('`', "'"))),
            _ => (Role::Assistant, Origin::Model, words[middle..].to_owned()),
        };
        Arc::new(Message::text(role, origin, text))
    };
    (0..11).map(one).collect()
}

/// One turn of each of many sessions, with and without an edit of the plugin before it.
fn reload(table: &mut Table) {
    let place = scratch().join("bench-reload");
    std::fs::remove_dir_all(&place).ok();
    std::fs::create_dir_all(place.join("plugin")).unwrap();
    std::fs::write(place.join("plugin/component.wasm"), build("tests/guests/pass-through")).unwrap();
    std::fs::write(place.join("tidegate.toml"), "[rules]\nbuiltin_rules = false\n[[plugin]]\npath = \"plugin\"\n")
        .unwrap();
    let mut edits = 0;
    let mut edit = || {
        edits += 1;
        write_manifest(&place, edits);
    };
    edit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let operator = Operator::load(&place.join("tidegate.toml")).unwrap();
    let builder = Host::builder(operator).user_rules(None).cache_dir(None).max_instances(512);
    let host = runtime.block_on(builder.open()).unwrap();
    let open = || runtime.block_on(host.session(SessionOptions::new(&place).model(Arc::new(Says)))).unwrap();
    let sessions: Vec<Session> = (0..SESSIONS).map(|_| open()).collect();
    let all = || {
        let start = Instant::now();
        let turns: Vec<_> = sessions.iter().map(|session| session.prompt("go")).collect();
        for (turn, session) in turns.into_iter().zip(&sessions) {
            assert_eq!(runtime.block_on(turn.report()).text, "words\n");
            session.replace_history(Vec::<Message>::new()).unwrap();
        }
        start.elapsed()
    };
    all();
    let lanes = vec![
        Lane::timed("turns", |times| (0..times).map(|_| all()).sum()),
        Lane::timed("turns after an edit", |times| {
            let one = |_| {
                edit();
                all()
            };
            (0..times).map(one).sum()
        }),
    ];
    let times = race(&mut criterion(), "reload", 31, lanes);
    let sessions = SESSIONS as f64;
    table.row(&format!("one turn of each of {SESSIONS} sessions"), Aim::None, times.of(0) / 1e6, "ms");
    table.row("– the same, and their plugin was edited before it", Aim::None, times.of(1) / 1e6, "ms");
    table.row("– edited ÷ not edited", Aim::None, times.ratio(1, 0), "×");
    table.row("– a reload, per session", Aim::None, (times.of(1) - times.of(0)) / 1000.0 / sessions, "µs");
}

fn write_manifest(place: &Path, edit: u32) {
    let text = std::fs::read_to_string(root().join("tests/guests/pass-through/plugin.toml")).unwrap();
    let text = text.replace("version = \"0.1.0\"", &format!("version = \"0.1.{edit}\""));
    std::fs::write(place.join("plugin/new"), text).unwrap();
    std::fs::rename(place.join("plugin/new"), place.join("plugin/plugin.toml")).unwrap();
}

/// A model that answers with one line.
struct Says;

struct Answer(std::vec::IntoIter<Delta>);

impl Model for Says {
    fn provider(&self) -> &str {
        "bench"
    }

    fn name(&self) -> &str {
        "says"
    }

    fn start<'a>(&'a self, _: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let deltas = vec![
            Delta::Start { model: None },
            Delta::BlockStart { block: 0, kind: StreamKind::Text },
            Delta::Piece { block: 0, text: "words\n".to_owned() },
            Delta::BlockEnd { block: 0 },
            Delta::Stop { reason: StopReason::EndTurn },
        ];
        Box::pin(async move { Ok(Box::new(Answer(deltas.into_iter())) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for Answer {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
