//! Conversations: what they remember is there again after they were closed, and plugins work in them as in sessions.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tempfile::TempDir;
use tidegate::gateway::{Conversation, ConversationOptions};
use tidegate::native::{CallError, InputAnswer, Native, NativeCall, NativeExtension};
use tidegate::plugin::Callback;
use tidegate::rule::RuleSpec;
use tidegate::{EventKind, Host, HostError, Message, SessionId};

use super::support::builder;

const NO_TODO: &str = "no-todo";

async fn host(folder: &Path) -> Host {
    let state = format!("[state]\nbackend = \"disk\"\nfolder = {folder:?}\n");
    builder(&state).without_model().open().await.unwrap()
}

fn options(folder: &TempDir) -> ConversationOptions {
    let rule = RuleSpec::new(NO_TODO, "Finish the work.").condition(r"\bTODO\b").scope("text");
    ConversationOptions::new(folder.path()).id(SessionId::new("chat-1")).rule(rule)
}

/// An exchange in which the rule has reminded the model.
fn remind(conversation: &Conversation, continues_turn: bool) {
    let mut rules = conversation.begin(continues_turn);
    let began = rules.memory();
    rules.injected(&[NO_TODO.to_owned()]);
    conversation.end(&began, &rules);
}

#[tokio::test]
async fn what_a_conversation_remembers_survives_its_process() {
    let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let conversation = host(state.path()).await.conversation(options(&folder)).await.unwrap();
    assert_eq!(conversation.memory(), json!(null));
    remind(&conversation, false);
    remind(&conversation, false);
    conversation.set_memory(json!({"text:1": "Be brief."}));
    let kept = conversation.begin(true).memory();
    assert_eq!((kept.completed, kept.records.len()), (1, 1));
    conversation.settle().await.unwrap();
    // Nobody else has it meanwhile.
    let other = host(state.path()).await;
    assert!(matches!(other.conversation(options(&folder)).await, Err(HostError::State(_))));
    conversation.close().await.unwrap();
    let again = other.conversation(options(&folder)).await.unwrap();
    assert_eq!(again.begin(true).memory(), kept);
    assert_eq!(again.memory(), json!({"text:1": "Be brief."}));
    // A turn that begins now is the one after that which the other process began.
    assert_eq!(again.begin(false).memory().completed, 2);
}

#[tokio::test]
async fn what_two_exchanges_at_one_time_do_is_not_lost() {
    let folder = TempDir::new().unwrap();
    let host = builder("").without_model().open().await.unwrap();
    let second = RuleSpec::new("no-fixme", "Finish it.").condition("FIXME").scope("text");
    let conversation = host.conversation(options(&folder).rule(second)).await.unwrap();
    let (mut one, mut other) = (conversation.begin(false), conversation.begin(true));
    let (before_one, before_other) = (one.memory(), other.memory());
    one.injected(&[NO_TODO.to_owned()]);
    other.injected(&["no-fixme".to_owned()]);
    conversation.end(&before_one, &one);
    conversation.end(&before_other, &other);
    let rules: Vec<String> = conversation.begin(true).memory().records.into_iter().map(|one| one.rule).collect();
    assert_eq!(rules, ["no-fixme", NO_TODO]);
}

#[tokio::test]
async fn one_that_is_not_kept_leaves_nothing() {
    let (folder, state) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let host = host(state.path()).await;
    let conversation = host.conversation(options(&folder).not_kept()).await.unwrap();
    remind(&conversation, false);
    conversation.settle().await.unwrap();
    conversation.close().await.unwrap();
    assert!(host.state_admin().sessions().await.unwrap().sessions.is_empty());
    assert!(host.conversation(options(&folder)).await.unwrap().begin(false).memory().records.is_empty());
}

/// Notes what it is asked about, and for which session.
struct Asked(Arc<Mutex<Vec<String>>>);

impl NativeExtension for Asked {
    fn on_input_messages(&self, call: &NativeCall, messages: &[Message]) -> Result<InputAnswer, CallError> {
        let session = call.session();
        let asked = format!("{} {} {}: {}", session.id, session.agent, session.model, messages[0].plain_text());
        self.0.lock().unwrap().push(asked);
        Ok(InputAnswer::Pass)
    }
}

#[tokio::test]
async fn its_plugins_are_called_and_reported() {
    let folder = TempDir::new().unwrap();
    let host = builder("").without_model().open().await.unwrap();
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let plugin = Native::new("asked".parse().unwrap(), Asked(Arc::clone(&asked))).on(Callback::InputMessages);
    let conversation = host.conversation(options(&folder).agent("claude").extension(plugin)).await.unwrap();
    conversation.set_model("anthropic", "opus");
    let mut events = conversation.hub().subscribe();
    conversation.begin(false);
    let input = guard_input(&conversation, "Hello").await;
    assert_eq!(input, ["Hello"]);
    assert_eq!(*asked.lock().unwrap(), ["chat-1 claude opus: Hello"]);
    let reported = std::iter::from_fn(|| events.try_next());
    let reports = reported.filter(|event| matches!(event.kind, EventKind::ExtensionCallback(_))).count();
    assert_eq!(reports, 1);
}

async fn guard_input(conversation: &Conversation, text: &str) -> Vec<String> {
    let caller = conversation.caller();
    match guard::input::run(&caller, vec![Message::user(text)]).await.unwrap() {
        guard::input::Input::Ask(messages) => messages.iter().map(Message::plain_text).collect(),
        other => panic!("{other:?}"),
    }
}
