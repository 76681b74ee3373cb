//! Time limits count a guest's own time: a busy executor makes no call late, and a guest that loops is stopped all the
//! same. A program of its own: it keeps all processors busy.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use flow::ports::{ExtensionHost as _, SessionInfo, SessionView};
use flow::{FailureCause, Message, SessionId, TextAnswer, ToolSpec};
use support::{Guest, Stage, echo, open, patient, processor_time, sandbox, say, source, store};
use tidegate_kit::ready;
use tidegate_sandbox::{GuestLimits, SandboxHost};

const SECRET: &str = "token ghp_abcdefghijklmnopqrstuvwxyz0123456789 end\n";
const SHOWN: &str = "token [redacted GitHub token] end\n";

/// `plugins/redact-secrets`, built once.
fn redact_secrets() -> Vec<u8> {
    static COMPONENT: OnceLock<Vec<u8>> = OnceLock::new();
    let build = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/redact-secrets");
        tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes
    };
    COMPONENT.get_or_init(build).clone()
}

fn replaced(text: &str) -> TextAnswer {
    TextAnswer::Replace(text.to_owned())
}

/// A host with `redact-secrets` at the default limits.
fn redactor() -> SandboxHost {
    let source = source("redact-secrets", redact_secrets());
    assert_eq!(source.limits, GuestLimits::default());
    SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap()
}

/// Works for 25 ms at a time, on the thread of the test, until it is dropped.
struct Neighbour(Arc<AtomicBool>);

impl Neighbour {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        tokio::spawn(async move {
            while !theirs.load(Ordering::Relaxed) {
                work(Duration::from_millis(25));
                tokio::task::yield_now().await;
            }
        });
        Self(stop)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::black_box(0);
    }
}

#[tokio::test]
async fn a_neighbour_that_works_25_ms_at_a_time_makes_no_line_late() {
    let host = redactor();
    let extensions = open(&host, "s1", &Arc::new(Stage::default()));
    let _neighbour = Neighbour::start();
    for line in 0..1000 {
        assert_eq!(say(&extensions, SECRET).await, Ok(replaced(SHOWN)), "line {line}");
        if line % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// Threads that work until they are dropped: more than the machine has processors, so that every other thread loses its own again and
/// again.
struct BusyMachine(Arc<AtomicBool>);

impl BusyMachine {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..8 * std::thread::available_parallelism().unwrap().get() {
            let theirs = Arc::clone(&stop);
            std::thread::spawn(move || while !theirs.load(Ordering::Relaxed) {});
        }
        Self(stop)
    }
}

impl Drop for BusyMachine {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_machine_with_too_much_work_makes_no_call_late_and_stops_a_guest_that_loops() {
    // 10 ms of work, with a limit of 100 ms, on a processor of which it gets a ninth.
    let mut source = source("worker", worker(8_000_000).component());
    source.limits.text_time = Duration::from_millis(100);
    source.limits.turn_time = Duration::from_secs(60);
    let host = SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap();
    let extensions = open(&host, "s1", &Arc::new(Stage::default()));
    let busy = BusyMachine::start();
    let mut slowest = Duration::ZERO;
    let mut calls = 0;
    // How many calls it takes until one has waited longer than it may run depends on the machine; one that is fast enough for all of them
    // shows less, and fails nothing.
    while slowest <= Duration::from_millis(100) && calls < 500 {
        let start = Instant::now();
        assert_eq!(say(&extensions, "~work").await, Ok(replaced("~work")), "call {calls}");
        slowest = slowest.max(start.elapsed());
        calls += 1;
    }
    let failure = say(&extensions, "!").await.unwrap_err();
    assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Timeout, "took longer than 100 ms"));
    drop(busy);
    assert_eq!(say(&extensions, "two").await, Ok(replaced("two")));
}

/// Counts to `turns` on a text that begins with `~`, loops on `!`, echoes any other.
fn worker(turns: u32) -> Guest {
    Guest::text(&format!(
        "(if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 33)) (then (loop $l (br $l))))
         (if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 126)) (then
           (local.set $x (i32.const {turns}))
           (loop $l (br_if $l (local.tee $x (i32.sub (local.get $x) (i32.const 1)))))))
         {}",
        echo(1)
    ))
}

#[tokio::test]
async fn a_guest_that_yields_to_a_neighbour_is_not_charged_for_it() {
    // Over the bound up to which a call keeps the thread: it yields at every tick, and each yield costs 25 ms.
    let mut source = source("worker", worker(20_000_000).component());
    source.limits.text_time = Duration::from_millis(100);
    source.limits.turn_time = Duration::from_secs(60);
    let host = SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap();
    let extensions = open(&host, "s1", &Arc::new(Stage::default()));
    let _neighbour = Neighbour::start();
    let waited = async || {
        let start = Instant::now();
        assert_eq!(say(&extensions, "~work").await, Ok(replaced("~work")));
        start.elapsed() > Duration::from_millis(100)
    };
    // A call that took longer than it may is what this is about; how many calls that takes depends on the machine.
    let mut calls = 0;
    while !waited().await {
        calls += 1;
        assert!(calls < 200, "it never waited");
    }
}

#[tokio::test]
async fn a_guest_that_loops_is_stopped_while_the_executor_is_busy() {
    for text_ms in [20, 60] {
        let mut source = source("worker", worker(1).component());
        source.limits.text_time = Duration::from_millis(text_ms);
        let host = SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap();
        let extensions = open(&host, "s1", &Arc::new(Stage::default()));
        let neighbour = Neighbour::start();
        say(&extensions, "one").await.unwrap();
        let start = Instant::now();
        let before = processor_time();
        let failure = say(&extensions, "!").await.unwrap_err();
        drop(neighbour);
        assert_eq!((failure.cause, failure.message), (FailureCause::Timeout, format!("took longer than {text_ms} ms")));
        // Its own time is what the thread used without the neighbour's stretches of 25 ms.
        let used = processor_time() - before;
        let most = Duration::from_millis(text_ms + 20) + start.elapsed().mul_f64(25.0 / 26.0);
        assert!(used <= most, "{used:?} of processor time within {:?}", start.elapsed());
        assert_eq!(say(&extensions, "two").await, Ok(replaced("two")));
    }
}

#[test]
fn fifty_sessions_of_four_turns_on_two_threads_leak_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let host = Arc::new(redactor());
    runtime.block_on(async {
        let sessions: Vec<_> = (0..50)
            .map(|session| {
                let host = Arc::clone(&host);
                tokio::spawn(async move {
                    let stage = Arc::new(Stage::default());
                    let extensions = open(&host, &format!("s{session}"), &stage);
                    for turn in 1..=4 {
                        *stage.turn.lock().unwrap() = turn;
                        for line in 0..50 {
                            let answer = say(&extensions, SECRET).await;
                            assert_eq!(answer, Ok(replaced(SHOWN)), "session {session}, {turn}, {line}");
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for session in sessions {
            session.await.unwrap();
        }
    });
}

#[tokio::test]
async fn starting_an_instance_is_no_part_of_a_call() {
    // A start function that works for many times the budget of a call.
    let slow = Guest {
        text: "(func $born (local $x i32) (local.set $x (i32.const 40000000))
                 (loop $l (br_if $l (local.tee $x (i32.sub (local.get $x) (i32.const 1))))))
               (start $born)"
            .into(),
        ..worker(1)
    };
    let mut source = patient(source("slow", slow.component()));
    source.limits.text_time = Duration::from_millis(5);
    source.limits.turn_time = Duration::from_millis(10);
    let host = SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap();
    let stage = Arc::new(Stage::default());
    *stage.turn.lock().unwrap() = 1;
    for session in 0..3 {
        let extensions = open(&host, &format!("s{session}"), &stage);
        for _ in 0..3 {
            assert_eq!(say(&extensions, "one").await, Ok(replaced("one")));
        }
    }
}

/// A session whose conversation takes the host 5 ms of work at the first call, and at each further one twice as much as before.
#[derive(Default)]
struct LongHistory {
    calls: AtomicU32,
}

impl SessionView for LongHistory {
    fn info(&self) -> SessionInfo {
        Stage::default().info()
    }

    fn history_len(&self) -> usize {
        0
    }

    fn history(&self, _: usize, _: usize) -> Vec<(u64, Arc<Message>)> {
        let work = Duration::from_millis(5) * 2_u32.pow(self.calls.fetch_add(1, Ordering::Relaxed));
        let start = processor_time();
        while processor_time() - start < work {
            std::hint::black_box(0);
        }
        Vec::new()
    }

    fn tools(&self) -> Vec<ToolSpec> {
        Vec::new()
    }
}

/// The time between two ticks of the engine.
const TICK: Duration = Duration::from_millis(1);
/// Calls of the guest, which then answers. All of them are 20 s of work of the host, and next to none of the guest: it is stopped only
/// if the host's work counts, however late a busy machine shows it the first tick.
const CALLS: u32 = 12;

#[tokio::test]
async fn what_the_host_does_for_a_guest_counts_and_ends_at_its_limit() {
    let guest = Guest {
        imports: vec!["history"],
        text: "(import \"tidegate:extension/history@VERSION\" \"messages\" (func $messages (param i32 i32 i32)))"
            .into(),
        ..Guest::text(&format!(
            "(if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 33)) (then
               (local.set $x (i32.const {CALLS}))
               (loop $l (call $messages (i32.const 0) (i32.const 256) (i32.const 128))
                 (br_if $l (local.tee $x (i32.sub (local.get $x) (i32.const 1)))))))
             {}",
            echo(1)
        ))
    };
    let plugin = sandbox().load(source("guest", guest.component())).unwrap();
    let host = SandboxHost::new(vec![plugin], store()).unwrap();
    let view = Arc::new(LongHistory::default());
    let session = SessionId::new("s1");
    let opened = host.open(&session, Arc::<LongHistory>::clone(&view), Arc::new(Stage::default()));
    let extensions = ready(opened).unwrap();
    for _ in 0..2 {
        view.calls.store(0, Ordering::Relaxed);
        let before = processor_time();
        let failure = say(&extensions, "!").await.unwrap_err();
        let used = processor_time() - before;
        assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Timeout, "took longer than 20 ms"));
        // Before the guest sees the first tick it is charged by the wall clock, for one tick at most.
        assert!(used + TICK >= Duration::from_millis(20), "stopped after {used:?}");
        assert_eq!(say(&extensions, "two").await, Ok(replaced("two")), "the instance is replaced");
    }
}
