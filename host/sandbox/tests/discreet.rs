//! What a plugin that guards says of its failures is in no report: it can quote what nobody is to see.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use flow::ports::{AttemptEnd, Extensions};
use flow::{CallId, FailureCause, KeptText, ModelOutput, OutputAnswer, RunPosition, StopReason, ToolCall, Usage};
use tidegate_sandbox::{PluginSource, SandboxHost, Setting};

use crate::support::{Leaping, Stage, failure, open, patient, sandbox, say, source, store};

/// What must not be reported.
const WORD: &str = "sesame";

fn component() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
    BYTES
        .get_or_init(|| tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes)
}

fn session(edit: impl FnOnce(&mut PluginSource)) -> (Arc<dyn Extensions>, Arc<Stage>) {
    let mut one = patient(source("guard", component().to_vec()));
    one.settings.insert("unit".into(), Setting::Text("whole".into()));
    edit(&mut one);
    let plugin = sandbox().load(one).unwrap();
    let stage = Arc::new(Stage { turn: 5.into(), ..Stage::default() });
    let host = SandboxHost::with_clock(vec![plugin], store(), Arc::new(Leaping::default())).unwrap();
    (open(&host, "s1", &stage), stage)
}

/// What makes it a guard.
fn guards() -> [fn(&mut PluginSource); 4] {
    [
        |one| one.required = true,
        |one| one.fails_closed = Some(true),
        |one| one.operator_fails_closed = Some(true),
        |one| one.operator_keep = Some(KeptText::Shown),
    ]
}

/// All that is reported of a plugin that does everything that can tell a word.
async fn reported(edit: impl FnOnce(&mut PluginSource)) -> String {
    let (extensions, stage) = session(edit);
    let mut reported = String::new();
    for script in [format!("!panic {WORD}"), format!("!error {WORD}")] {
        let failed = say(&extensions, &script).await.unwrap_err();
        reported.push_str(&format!("{failed} {failed:?}\n"));
    }
    extensions.begin_attempt();
    let does = format!("!log {WORD}\n!state-set {WORD} 1\n!state-delete {WORD}\n!state-set {WORD} 2");
    say(&extensions, &does).await.unwrap();
    extensions.end_attempt(AttemptEnd::Discarded);
    let text = format!("!annotate {WORD} no-json\n!pass");
    let (at, stop) = (RunPosition::default(), StopReason::EndTurn);
    let output = ModelOutput { at, text, tool_calls: Vec::new(), stop, usage: Usage::default() };
    let OutputAnswer { ignored, .. } = extensions.llm_output(0, &output).await.unwrap();
    assert_eq!(ignored.len(), 1);
    reported.push_str(&ignored[0]);
    let arguments = format!("{{\"script\": \"!panic {WORD}\"}}");
    let call = ToolCall { id: CallId::new("1"), name: "run".into(), arguments };
    let failed = failure(extensions.call_tool(0, &call, &|_| {}).await.unwrap_err());
    assert_eq!(failed.cause, FailureCause::Panic);
    reported.push_str(&format!("{failed:?}"));
    let events = stage.events.lock().unwrap();
    let has = |name: &str| events.iter().filter(|event| event.name() == name).count();
    assert_eq!((has("extension_log"), has("extension_state"), has("extension_tool")), (1, 2, 1), "{events:?}");
    reported + &format!("{events:?}")
}

#[tokio::test]
async fn the_words_of_a_guard_are_in_no_report() {
    for guard in guards() {
        let reported = reported(guard).await;
        assert!(!reported.contains(WORD), "{reported}");
        // What helps its author is there.
        for part in
            ["panicked at src/script.rs:", "its words are left out, because it guards; `full_diagnostics` shows"]
        {
            assert!(reported.contains(part), "{part}: {reported}");
        }
    }
}

#[tokio::test]
async fn the_operator_can_ask_for_them_and_other_plugins_are_reported_in_full() {
    let full: [fn(&mut PluginSource); 2] = [
        |_| {},
        |one| {
            one.required = true;
            one.full_diagnostics = true;
        },
    ];
    for edit in full {
        let reported = reported(edit).await;
        // Panic and error, each twice; the annotation; the panic of the tool, and its report; the line of the log; the key, twice.
        assert_eq!(reported.matches(WORD).count(), 10, "{reported}");
        assert!(!reported.contains("left out"), "{reported}");
    }
}
