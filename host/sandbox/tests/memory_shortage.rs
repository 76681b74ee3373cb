//! A system without memory for a guest: that is no failure of the plugin. A program of its own: the limit that it sets is
//! that of the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::sync::Arc;

use flow::ports::Extensions;
use flow::{EventKind, NoAnswer, TextAnswer, TextPlace};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::{Guest, Stage, echo, open, say, source, store};
use tidegate_sandbox::{EngineOptions, Sandbox, SandboxHost};

/// What the process may have in addition to what it has.
const LEFT: u64 = 8 << 20;

/// The limit of memory that is written, until it is dropped.
struct Short(Rlimit);

impl Short {
    fn begin() -> Self {
        let before = getrlimit(Resource::Data);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let used = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
        let used: u64 = used.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        setrlimit(Resource::Data, Rlimit { current: Some((used << 10) + LEFT), ..before }).unwrap();
        Self(before)
    }
}

impl Drop for Short {
    fn drop(&mut self) {
        setrlimit(Resource::Data, self.0).unwrap();
    }
}

/// Echoes; on `!` it asks for 16 MiB first, and traps where it does not get them, as the allocators of guests do.
fn growing() -> Guest {
    let grow = "(if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 33))
                  (then (if (i32.eq (memory.grow (i32.const 256)) (i32.const -1)) (then unreachable))))";
    Guest::text(&format!("{grow}{}", echo(1)))
}

async fn refusal(session: &Arc<dyn Extensions>, text: &str) -> String {
    match session.plain_text(0, text, &TextPlace::default()).await {
        Err(NoAnswer::NoInstance(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_guest_that_the_system_has_no_memory_for_is_not_at_fault() {
    let said = |text: &str| Ok(TextAnswer::Replace(text.to_owned()));
    for max_instances in [4, u32::MAX] {
        // Without a pool where there is no address space for so many.
        let sandbox = Sandbox::new(&EngineOptions { max_instances, ..EngineOptions::default() }).unwrap();
        let host = SandboxHost::new(vec![sandbox.load(source("growing", growing().component())).unwrap()], store());
        let (host, stage) = (host.unwrap(), Arc::new(Stage::default()));
        let session = open(&host, "session", &stage);
        assert_eq!(say(&session, "one").await, said("one"));
        let short = Short::begin();
        for _ in 0..5 {
            let why = refusal(&session, "!").await;
            assert!(why.contains("the system has no memory left for an instance of the plugin"), "{why}");
            assert_eq!(say(&session, "two").await, said("two"), "what fits is done");
        }
        drop(short);
        assert_eq!(say(&session, "!").await, said("!"), "nothing is skipped for what was no failure");
        let events = stage.events.lock().unwrap();
        assert!(!events.iter().any(|event| matches!(event, EventKind::ExtensionBreaker { .. })), "{events:?}");
    }
}
