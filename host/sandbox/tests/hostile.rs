//! Guests that misbehave: each costs its own instance only, and each failure has its own cause and words.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use flow::ports::{BoxFuture, Extensions};
use flow::{CallFailure, CallbackKind, EventKind, FailureCause, NoAnswer, TextAnswer};
use tidegate_sandbox::SandboxHost;

use crate::support::{
    Guest, PASS, Registered, Stage, Still, answer, echo, load, one, open, patient, processor_time, sandbox, say, says,
    skipped, source, store,
};

/// Misbehaves with `bad` when the text begins with `!`, and echoes else: after each failure the plugin must work again.
fn sometimes(bad: &str) -> Guest {
    let good = echo(1);
    Guest::text(&format!("(if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 33)) (then {bad})) {good}"))
}

/// Calls a guest that misbehaves, checks that it works before and after, and gives the failure.
async fn failure_of(guest: &Guest) -> CallFailure {
    let plugin = sandbox().load(patient(source("guest", guest.component()))).unwrap();
    let extensions = open(&SandboxHost::new(vec![plugin], store()).unwrap(), "s1", &Arc::new(Stage::default()));
    assert_eq!(say(&extensions, "one").await, Ok(TextAnswer::Replace("one".into())));
    let failure = say(&extensions, "!").await.unwrap_err();
    assert_eq!(failure.plugin.as_str(), "guest");
    assert_eq!(failure.called, CallbackKind::PlainText.into());
    assert_eq!(say(&extensions, "two").await, Ok(TextAnswer::Replace("two".into())), "the instance is replaced");
    failure
}

#[tokio::test]
async fn an_endless_loop_is_a_timeout_within_about_twice_its_budget() {
    let (extensions, _) = one(&sometimes("(loop $l (br $l))"));
    say(&extensions, "one").await.unwrap();
    for _ in 0..2 {
        // First on the caller's stack, then (after that was slow) on one of its own.
        let before = processor_time();
        let failure = say(&extensions, "!").await.unwrap_err();
        let used = processor_time() - before;
        assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Timeout, "took longer than 20 ms"));
        assert_eq!(failure.frames, ["on-plain-text"]);
        assert!(used < Duration::from_millis(20 * 2 + 100), "took {used:?} of processor time");
    }
    assert_eq!(say(&extensions, "two").await, Ok(TextAnswer::Replace("two".into())));
}

#[tokio::test]
async fn a_slow_guest_lets_other_tasks_run() {
    let mut source = source("slow", sometimes("(loop $l (br $l))").component());
    source.limits.text_time = Duration::from_millis(300);
    let host = SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap();
    let extensions = open(&host, "s1", &Arc::new(Stage::default()));
    // One thread: the guest has to give way for the counter to move.
    let mut ticks = 0;
    let call = say(&extensions, "!");
    tokio::pin!(call);
    let failure = loop {
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => ticks += 1,
            done = &mut call => break done.unwrap_err(),
        }
    };
    assert_eq!(failure.cause, FailureCause::Timeout);
    assert!(ticks > 20, "other work ran {ticks} times");
}

#[tokio::test]
async fn a_dropped_call_is_stopped_and_the_next_one_works() {
    let mut source = source("slow", sometimes("(loop $l (br $l))").component());
    source.limits.text_time = Duration::from_secs(600);
    let host = SandboxHost::new(vec![sandbox().load(source).unwrap()], store()).unwrap();
    let extensions = open(&host, "s1", &Arc::new(Stage::default()));
    for _ in 0..3 {
        let call = say(&extensions, "!");
        assert!(tokio::time::timeout(Duration::from_millis(20), call).await.is_err());
        assert_eq!(say(&extensions, "two").await, Ok(TextAnswer::Replace("two".into())));
    }
}

#[tokio::test]
async fn too_much_memory_has_its_own_cause() {
    // Grows by 16 MiB until refused, then traps as an allocator does.
    let hog = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 256)) (i32.const -1)))) unreachable";
    let failure = failure_of(&sometimes(hog)).await;
    assert_eq!(failure.cause, FailureCause::Memory);
    assert_eq!(failure.message, "requested 33816576 bytes of memory, the limit is 33554432");
}

#[tokio::test]
async fn memory_at_birth_counts() {
    let guest = Guest { pages: 600, ..Guest::text(PASS) };
    let said = load(&guest).unwrap_err().to_string();
    assert!(said.contains("(memory_limit): requested 39321600 bytes of memory, the limit is 33554432"), "{said}");
}

#[tokio::test]
async fn recursion_is_a_trap() {
    let guest = Guest { text: "(func $deep (call $deep))".into(), ..sometimes("(call $deep)") };
    let failure = failure_of(&guest).await;
    assert_eq!(failure.cause, FailureCause::Trap);
    assert_eq!(failure.message, "used up its call stack: endless or too deep recursion");
    assert_eq!(failure.frames, ["deep (at least 20 frames)"]);
}

#[tokio::test]
async fn a_trap_tells_what_and_where() {
    let guest = Guest {
        text: "(func $_RNv3foo3bar (drop (i32.div_u (i32.const 1) (i32.const 0))))".into(),
        ..sometimes("(call $_RNv3foo3bar)")
    };
    let failure = failure_of(&guest).await;
    assert_eq!(failure.cause, FailureCause::Trap);
    assert_eq!(failure.message, "wasm trap: integer divide by zero");
    assert_eq!(failure.frames.len(), 2);
    assert_eq!(failure.frames.last().map(String::as_str), Some("on-plain-text"));
}

#[tokio::test]
async fn a_panic_tells_its_message_and_place() {
    let guest = Guest {
        imports: vec!["log"],
        text: "(import \"tidegate:extension/log@VERSION\" \"panic\"
                 (func $panic (param i32 i32 i32 i32 i32 i32)))"
            .into(),
        data: vec![("why", b"index out of range".to_vec()), ("file", b"src/lib.rs".to_vec())],
        ..sometimes(
            "(call $panic (i32.const @why) (i32.const #why) (i32.const @file) (i32.const #file)
                          (i32.const 7) (i32.const 3)) unreachable",
        )
    };
    let failure = failure_of(&guest).await;
    assert_eq!(failure.cause, FailureCause::Panic);
    assert_eq!(failure.message, "panicked at src/lib.rs:7:3: index out of range");
}

#[tokio::test]
async fn answers_that_are_too_large() {
    // 8 MiB can be read and are refused; 17 MiB are not even read.
    for (bytes, wanted) in [
        (8 << 20, "returned 8388608 bytes, the limit is 4194304"),
        (17 << 20, "passed more than 16777216 bytes to the host at once"),
    ] {
        let pages = bytes / 65536 + 1;
        let large = answer(1, "(i32.const 65536)", &format!("(i32.const {bytes})"));
        let failure = failure_of(&sometimes(&format!("(drop (memory.grow (i32.const {pages}))) {large} return"))).await;
        assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Size, wanted));
    }
}

#[tokio::test]
async fn values_that_do_not_fit_the_contract() {
    let text = |body: String, data: &[u8]| Guest { data: vec![("bad", data.to_vec())], ..sometimes(&body) };
    let bad_utf8 = failure_of(&text(format!("{} return", says(1, "bad")), b"ab\xff")).await;
    assert_eq!(bad_utf8.cause, FailureCause::Malformed);
    assert!(bad_utf8.message.contains("utf-8"), "{}", bad_utf8.message);
    let number = failure_of(&text(format!("{} return", says(9, "bad")), b"")).await;
    assert_eq!(number.cause, FailureCause::Malformed);
    assert!(number.message.contains("discriminant"), "{}", number.message);
    let outside = failure_of(&sometimes(&format!("{} return", answer(1, "(i32.const -8)", "(i32.const 4)")))).await;
    assert_eq!(outside.cause, FailureCause::Malformed);
    let address = failure_of(&sometimes("(return (i32.const -4))")).await;
    assert_eq!(address.cause, FailureCause::Malformed);
}

#[tokio::test]
async fn a_returned_error_is_its_own_cause() {
    let guest = Guest {
        data: vec![("no", "nö".as_bytes().to_vec())],
        ..sometimes(
            "(i32.store8 (i32.const 96) (i32.const 1)) (i32.store (i32.const 100) (i32.const @no))
             (i32.store (i32.const 104) (i32.const #no)) (return (i32.const 96))",
        )
    };
    let failure = failure_of(&guest).await;
    assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::Returned, "nö"));
}

#[tokio::test]
async fn an_unknown_answer_is_ignored_and_says_so() {
    let guest = Guest { data: vec![("new", b"shrug".to_vec())], ..Guest::text(&says(2, "new")) };
    let (extensions, _) = one(&guest);
    let wanted = "the answer `shrug` is not known to this version of the contract";
    assert_eq!(say(&extensions, "x").await, Ok(TextAnswer::Ignored(wanted.into())));
}

#[tokio::test]
async fn a_flood_of_log_lines_is_counted() {
    let guest = Guest {
        imports: vec!["log"],
        text: "(import \"tidegate:extension/log@VERSION\" \"log\" (func $log (param i32 i32 i32 i32 i32)))".into(),
        data: vec![("line", vec![b'x'; 5000])],
        ..Guest::text(&format!(
            "(local.set $x (i32.const 100))
             (loop $l
               (call $log (i32.const 2) (i32.const @line) (i32.const #line) (i32.const 0) (i32.const 0))
               (br_if $l (local.tee $x (i32.sub (local.get $x) (i32.const 1)))))
             {PASS}"
        ))
    };
    let (extensions, stage) = one(&guest);
    assert_eq!(say(&extensions, "x").await, Ok(TextAnswer::Pass));
    let events = stage.events.lock().unwrap();
    let lines: Vec<(&str, &str)> = events
        .iter()
        .map(|event| match event {
            EventKind::ExtensionLog { level, message, .. } => (level.as_str(), message.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lines.len(), 65);
    assert!(lines.iter().take(64).all(|(level, line)| *level == "info" && line.len() == 4096));
    assert_eq!(lines[64], ("warn", "36 lines over 64 were dropped, 64 lines were cut to 4096 bytes"));
}

#[tokio::test]
async fn a_turn_has_a_budget_of_its_own() {
    let mut source = source("slow", sometimes("(loop $l (br $l))").component());
    source.limits.turn_time = Duration::from_millis(35);
    let clock = Arc::new(Still::default());
    let host = SandboxHost::with_clock(vec![sandbox().load(source).unwrap()], store(), clock.clone()).unwrap();
    let stage = Arc::new(Stage::default());
    *stage.turn.lock().unwrap() = 1;
    let extensions = open(&host, "s1", &stage);
    let mut said = None;
    for _ in 0..10 {
        said = skipped(&extensions, "!").await;
        if said.is_some() {
            break;
        }
    }
    let used_up = "has used up the 35 ms that all its callbacks of one turn have together";
    assert_eq!(said.as_deref(), Some(used_up));
    assert_eq!(skipped(&extensions, "two").await.as_deref(), Some(used_up));
    *stage.turn.lock().unwrap() = 2;
    clock.0.store(10_000, Ordering::SeqCst);
    assert_eq!(say(&extensions, "two").await, Ok(TextAnswer::Replace("two".into())), "a new turn has its own time");
}

/// A session with one guest, the clock of its breaker, and where its events go.
fn clocked(guest: &Guest) -> (Arc<dyn Extensions>, Arc<Still>, Arc<Stage>) {
    let clock = Arc::new(Still::default());
    let plugin = sandbox().load(patient(source("guest", guest.component()))).unwrap();
    let host = SandboxHost::with_clock(vec![plugin], store(), clock.clone()).unwrap();
    let stage = Arc::new(Stage::default());
    (open(&host, "s1", &stage), clock, stage)
}

#[tokio::test]
async fn the_breaker_opens_after_three_failures_and_a_good_trial_closes_it() {
    let (extensions, clock, stage) = clocked(&sometimes("unreachable"));
    for _ in 0..3 {
        say(&extensions, "!").await.unwrap_err();
    }
    let open = "failed 3 times within 60 s; tried again in 1.0 s";
    assert_eq!(skipped(&extensions, "good").await.as_deref(), Some(open));
    clock.0.store(1000, Ordering::SeqCst);
    say(&extensions, "!").await.unwrap_err();
    assert!(skipped(&extensions, "good").await.unwrap().ends_with("tried again in 2.0 s"), "the trial failed");
    clock.0.store(3000, Ordering::SeqCst);
    say(&extensions, "good").await.unwrap();
    assert_eq!(say(&extensions, "more").await, Ok(TextAnswer::Replace("more".into())), "it is closed");
    let events = stage.events.lock().unwrap();
    let changes: Vec<(&str, u64)> = events
        .iter()
        .filter_map(|event| match event {
            EventKind::ExtensionBreaker { plugin, called, state, retry_after_ms, .. } => {
                assert_eq!((plugin.as_str(), called), ("guest", &CallbackKind::PlainText.into()));
                Some((state.as_str(), *retry_after_ms))
            }
            _ => None,
        })
        .collect();
    let expected = [("open", 1000), ("half_open", 0), ("open", 2000), ("half_open", 0), ("closed", 0)];
    assert_eq!(changes, expected, "an event for each change, and none for a call that is skipped");
}

#[tokio::test]
async fn a_plugin_that_fails_in_three_sessions_is_skipped_in_all() {
    let plugin = sandbox().load(patient(source("guest", sometimes("unreachable").component()))).unwrap();
    let clock = Arc::new(Still::default());
    let host = SandboxHost::with_clock(vec![plugin], store(), clock.clone()).unwrap();
    let stages: Vec<_> = (0..4).map(|_| Arc::new(Stage::default())).collect();
    let sessions: Vec<_> =
        stages.iter().zip(["s1", "s2", "s3", "s4"]).map(|(stage, id)| open(&host, id, stage)).collect();
    for session in &sessions[..3] {
        for _ in 0..3 {
            say(session, "!").await.unwrap_err();
        }
    }
    let why = "failed repeatedly in 3 sessions within 60 s; tried again in 1.0 s";
    assert_eq!(skipped(&sessions[3], "good").await.as_deref(), Some(why));
    clock.0.store(1000, Ordering::SeqCst);
    say(&sessions[3], "good").await.unwrap();
    assert_eq!(say(&sessions[0], "good").await, Ok(TextAnswer::Replace("good".into())), "closed for all");
    let changes = |stage: &Stage| -> Vec<String> {
        let events = stage.events.lock().unwrap();
        let change = |event: &EventKind| match event {
            EventKind::ExtensionBreaker { scope, state, .. } => Some(format!("{} {}", scope.as_str(), state.as_str())),
            _ => None,
        };
        events.iter().filter_map(change).collect()
    };
    assert_eq!(changes(&stages[2]), ["session open", "host open"]);
    assert_eq!(changes(&stages[3]), ["host half_open", "host closed"]);
}

#[tokio::test]
async fn of_many_calls_that_wait_one_is_the_trial() {
    let (extensions, clock, _) = clocked(&sometimes("unreachable"));
    for _ in 0..3 {
        say(&extensions, "!").await.unwrap_err();
    }
    clock.0.store(1000, Ordering::SeqCst);
    let place = flow::TextPlace::default();
    let call = || extensions.plain_text(0, "!", &place);
    let (mut failed, mut left_out) = (0, 0);
    for answer in join_all((0..10).map(|_| call())).await {
        match answer.unwrap_err() {
            NoAnswer::Failed(_) => failed += 1,
            NoAnswer::NotPermitted(_) | NoAnswer::NoInstance(_) => left_out += 1,
        }
    }
    assert_eq!((failed, left_out), (1, 9));
}

/// Polls all of them until each is ready.
async fn join_all<T>(calls: impl Iterator<Item = BoxFuture<'_, T>>) -> Vec<T> {
    let mut calls: Vec<_> = calls.map(Some).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|cx| {
        for call in &mut calls {
            if let Some(future) = call
                && let Poll::Ready(value) = future.as_mut().poll(cx)
            {
                *call = None;
                done.push(value);
            }
        }
        if calls.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done
}

#[tokio::test]
async fn a_callback_that_is_not_exported_is_an_error() {
    let (extensions, _) = one(&Guest { registers: vec![(Registered::PlainText(0), None)], ..Guest::text(PASS) });
    let failure = crate::support::failure(extensions.input_messages(0, &[]).await.unwrap_err());
    assert_eq!((failure.cause, failure.called), (FailureCause::Start, CallbackKind::InputMessages.into()));
}
