//! A bounded number of instances: idle ones give way, calls wait where none is idle, and what cannot be had is no failure of a plugin.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::Extensions;
use flow::{EventKind, NoAnswer, TextAnswer, TextPlace};
use tidegate_sandbox::{EngineOptions, PluginSource, Sandbox, SandboxHost};

use crate::support::{Guest, Stage, answer, echo, open, patient, say, source, store};

fn engine(max_instances: u32) -> Sandbox {
    let instance_wait = Duration::from_millis(30);
    Sandbox::new(&EngineOptions { max_instances, instance_wait, ..EngineOptions::default() }).unwrap()
}

/// Echoes, and loops on `!`.
fn looping(id: &str) -> PluginSource {
    let loops = "(if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 33)) (then (loop $l (br $l))))";
    let mut source = patient(source(id, Guest::text(&format!("{loops}{}", echo(1))).component()));
    (source.limits.text_time, source.limits.turn_time) = (Duration::from_secs(600), Duration::from_secs(600));
    source
}

fn host(sandbox: &Sandbox, plugins: impl IntoIterator<Item = PluginSource>) -> SandboxHost {
    let plugins = plugins.into_iter().map(|source| sandbox.load(source).unwrap()).collect();
    SandboxHost::new(plugins, store()).unwrap()
}

fn said(text: &str) -> TextAnswer {
    TextAnswer::Replace(text.to_owned())
}

/// The breakers that changed in a session.
fn breakers(stage: &Stage) -> usize {
    let events = stage.events.lock().unwrap();
    events.iter().filter(|event| matches!(event, EventKind::ExtensionBreaker { .. })).count()
}

#[tokio::test]
async fn a_thousand_sessions_work_with_four_instances() {
    let sandbox = engine(4);
    let host = host(&sandbox, ["a", "b", "c"].map(looping));
    let stage = Arc::new(Stage::default());
    let sessions: Vec<Arc<dyn Extensions>> =
        (0..1000).map(|number| open(&host, &format!("s{number}"), &stage)).collect();
    for round in 0..2 {
        for (number, session) in sessions.iter().enumerate() {
            for plugin in 0..3 {
                let text = format!("{round}-{number}-{plugin}");
                assert_eq!(session.plain_text(plugin, &text, &TextPlace::default()).await, Ok(said(&text)));
            }
        }
    }
    let counts = sandbox.instances();
    assert_eq!((counts.in_use, counts.limit, counts.waits), (4, 4, 0), "{counts:?}");
    assert_eq!((breakers(&stage), counts.reclaimed), (0, 6000 - 4), "{counts:?}");
}

/// Counts its calls in its memory.
fn counting() -> PluginSource {
    const KEPT: u32 = 200_000;
    let count = format!(
        "(i32.store8 (i32.const {KEPT}) (i32.add (i32.const 1) (i32.or (i32.const 48) (i32.load8_u (i32.const {KEPT})))))"
    );
    source(
        "counting",
        Guest::text(&format!("{count}{}", answer(1, &format!("(i32.const {KEPT})"), "(i32.const 1)"))).component(),
    )
}

#[tokio::test]
async fn the_instance_of_a_session_that_is_used_is_kept_before_that_of_an_idle_one() {
    let sandbox = engine(3);
    let host = host(&sandbox, [counting()]);
    let [used, idle] = ["used", "idle"].map(|id| open(&host, id, &Arc::default()));
    for session in [&idle, &used] {
        assert_eq!(say(session, "x").await, Ok(said("1")));
    }
    let (mut expected, mut others) = (1, Vec::new());
    for number in 0..6 {
        // Each takes the place of what has not been used since the one before it.
        let new = open(&host, &format!("new{number}"), &Arc::default());
        assert_eq!(say(&new, "x").await, Ok(said("1")));
        expected += 1;
        assert_eq!(say(&used, "x").await, Ok(said(&expected.to_string())), "session {number}");
        others.push(new);
    }
    assert_eq!(say(&idle, "x").await, Ok(said("1")), "its instance was made again");
}

#[tokio::test]
async fn a_call_waits_for_one_that_runs() {
    let sandbox = engine(1);
    let host = host(&sandbox, [looping("a")]);
    let [busy, waiting] = ["busy", "waiting"].map(|id| open(&host, id, &Arc::default()));
    let mut ends = Box::pin(say(&busy, "!"));
    let mut waits = pin!(say(&waiting, "x"));
    while sandbox.instances().waiting == 0 {
        tokio::select! {
            biased;
            ended = &mut ends => panic!("it loops: {ended:?}"),
            answer = &mut waits => panic!("there is no instance for it: {answer:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
    // The turn of the other session is cancelled, and its instance is gone with the call.
    drop(ends);
    assert_eq!(waits.await, Ok(said("x")));
    assert_eq!((sandbox.instances().waits, sandbox.instances().waiting), (1, 0));
}

#[tokio::test]
async fn a_call_that_waits_gets_the_instance_of_one_that_ends() {
    let sandbox = engine(1);
    let host = host(&sandbox, [looping("a")]);
    let sessions: Vec<_> = (0..50).map(|number| open(&host, &format!("s{number}"), &Arc::default())).collect();
    let mut calls = tokio::task::JoinSet::new();
    for session in sessions {
        calls.spawn(async move {
            for _ in 0..20 {
                assert_eq!(say(&session, "x").await, Ok(said("x")));
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn what_waits_in_vain_says_why_and_opens_no_breaker() {
    let sandbox = engine(1);
    let host = host(&sandbox, [looping("a")]);
    let (busy, stage) = (open(&host, "busy", &Arc::default()), Arc::new(Stage::default()));
    let other = open(&host, "other", &stage);
    let place = TextPlace::default();
    let mut ends = Box::pin(say(&busy, "!"));
    for _ in 0..5 {
        let answer = tokio::select! {
            biased;
            ended = &mut ends => panic!("it loops: {ended:?}"),
            answer = other.plain_text(0, "x", &place) => answer,
        };
        let Err(NoAnswer::NoInstance(why)) = answer else { panic!("{answer:?}") };
        let expected = "all instances of plugins are in use (1), and none came free within 30ms; `instances` under `[limits]` in \
                        tidegate.toml raises their number";
        assert_eq!(why, expected);
    }
    drop(ends);
    assert_eq!(say(&other, "x").await, Ok(said("x")), "it is not skipped for what was no failure");
    assert_eq!(breakers(&stage), 0);
}
