//! Side requests: the state of their plugins is settled, and only what a continuation needs remains of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flow::Message;
use flow::ports::{StateBatch, StateChange, StateEntry, StateLifetime};
use gateway::{Answer, Trail, Wire};
use serde_json::json;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::*;
use crate::Operator;

/// Counts the errors in the log.
#[derive(Clone, Default)]
struct Errors(Arc<AtomicUsize>);

impl<S: tracing::Subscriber> Layer<S> for Errors {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.0.fetch_add(usize::from(*event.metadata().level() == tracing::Level::ERROR), Ordering::SeqCst);
    }
}

async fn keeper(folder: &tempfile::TempDir) -> Arc<Conversations> {
    let settings = "[rules]\nbuiltin_rules = false\n".to_owned();
    let operator = Operator::of_source(&crate::diagnostic::SourceFile::new("tidegate.toml", settings)).unwrap();
    let host = Host::builder(operator).cache_dir(None).user_rules(None).without_model().open().await.unwrap();
    Conversations::new(host, ConversationOptions::new(folder.path()), ConversationLimits::default())
}

/// A question for a title in a session that has a name.
fn title() -> Trail {
    let request = json!({"messages": [{"role": "user", "content": "Title?"}]});
    Trail::of(Wire::Anthropic, &request, |name| (name == "session-id").then_some("7f"), None, b"key")
}

#[tokio::test]
async fn state_of_plugins_is_settled_in_side_requests() {
    let errors = Errors::default();
    let _logging = tracing::subscriber::set_default(tracing_subscriber::registry().with(errors.clone()));
    let folder = tempfile::TempDir::new().unwrap();
    for is_count in [false, true] {
        for answer in [Some(Answer::default()), None] {
            let keeper = keeper(&folder).await;
            let visit = match is_count {
                true => keeper.enter_to_count(title()).await.unwrap(),
                false => keeper.enter(title()).await.unwrap(),
            };
            let mask = StateEntry::written("PERSON_1", *b"Ada", StateLifetime::Session, 1);
            let batch = StateBatch::from(vec![StateChange::Set(mask)]);
            let store = Arc::clone(&visit.conversation().state().store);
            store.apply(&"mask-secrets".parse().unwrap(), batch);
            drop(store);
            visit.end(&visit.rules(), answer.as_ref()).await.unwrap();
            drop((visit, keeper));
            assert_eq!(errors.0.load(Ordering::SeqCst), 0, "{is_count} {answer:?}");
        }
    }
}

#[tokio::test]
async fn of_a_side_request_only_its_data_remains() {
    let folder = tempfile::TempDir::new().unwrap();
    let keeper = keeper(&folder).await;
    let visit = keeper.enter(title()).await.unwrap();
    visit.conversation().history().show(vec![Message::user("Title?")]);
    visit.conversation().set_memory(json!({"note": "x".repeat(1000)}));
    visit.end(&visit.rules(), Some(&Answer::default())).await.unwrap();
    assert!(keeper.open.remembered() > 1000, "its size counts");
    let conversation = Arc::downgrade(&visit.conversation().0);
    drop(visit);
    assert!(conversation.upgrade().is_none(), "with its history, its plugins and its host");
    assert!(keeper.open.remembered() > 1000);
}
