//! Case 15: no session sees the memory of another one, in instances that many sessions use one after the other, on several threads.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;

use flow::TextAnswer;
use tidegate_sandbox::SandboxHost;

use crate::support::{Guest, Stage, answer, load, open, say, store};

/// Where the guest keeps what it is given: behind everything that a call itself uses.
const KEPT: u32 = 200_000;

/// Keeps a text that begins with `w`; at any other it shows what it keeps, and the memory behind that.
fn keeper() -> Guest {
    Guest::text(&format!(
        "(if (i32.eq (i32.load8_u (local.get $a0)) (i32.const 119))
           (then (memory.copy (i32.const {KEPT}) (local.get $a0) (local.get $a1))
                 (return (i32.const ANSWER))))
         {}",
        answer(1, &format!("(i32.const {KEPT})"), "(i32.const 1000)")
    ))
}

/// What the guest shows of its memory, without the zeroes.
async fn shown(extensions: &Arc<dyn flow::ports::Extensions>) -> String {
    let TextAnswer::Replace(text) = say(extensions, "show").await.unwrap() else { panic!("it shows nothing") };
    text.replace('\0', "")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_session_sees_the_memory_of_another_one() {
    let host = Arc::new(SandboxHost::new(vec![load(&keeper()).unwrap()], store()).unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let host = Arc::clone(&host);
        tasks.spawn(async move {
            for number in 0..400 {
                let extensions = open(&host, &format!("s-{task}-{number}"), &Arc::new(Stage::default()));
                assert_eq!(shown(&extensions).await, "", "a new instance has memory that was used");
                let secret = format!("w secret of {task}-{number}");
                say(&extensions, &secret).await.unwrap();
                tokio::task::yield_now().await;
                assert_eq!(shown(&extensions).await, secret, "the instance is not the session's own");
                extensions.release_instances();
                assert_eq!(shown(&extensions).await, "", "the instance that replaces it has memory that was used");
                say(&extensions, &secret).await.unwrap();
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
