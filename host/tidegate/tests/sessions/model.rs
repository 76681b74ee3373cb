//! Another model between two turns: everything else of the session stays.

use std::sync::Arc;

use tidegate::diagnostic::DiagnosticCode;
use tidegate::message::TurnRunning;
use tidegate::model::{Model, ModelError, ModelStream};
use tidegate::prompt::Prompt;
use tidegate::record::Record;
use tidegate::{BoxFuture, EventKind, HostError, SessionOptions};
use tokio::sync::mpsc;

use super::support::{Answer, Scripted, builder, texts};

/// The scripted model under a name.
struct Named(&'static str, Arc<Scripted>);

impl Model for Named {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        self.0
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        self.1.start(prompt)
    }
}

#[tokio::test]
async fn another_model_continues_the_conversation_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let transcripts = folder.path().join("transcripts");
    let host = builder(&format!("[transcript]\nenabled = true\nfolder = {:?}\n", transcripts.display().to_string()))
        .open()
        .await
        .unwrap();
    let first = Scripted::new([Answer::Text("one")]);
    let options = SessionOptions::new(folder.path()).model(Arc::clone(&first) as Arc<dyn Model>);
    let session = host.session(options).await.unwrap();
    let (mut events, thread) = (session.subscribe(), session.id().clone());
    session.prompt("a").report().await;

    let (say, live) = mpsc::unbounded_channel();
    let second = Scripted::new([Answer::Live(live), Answer::Text("three")]);
    session.set_model(Arc::new(Named("second", Arc::clone(&second)))).unwrap();
    assert_eq!(session.model(), ("test".to_owned(), "second".to_owned()));
    let turn = session.prompt("b");
    let refused = session.set_model(Arc::clone(&first) as Arc<dyn Model>);
    assert!(matches!(refused, Err(HostError::TurnRunning(TurnRunning))), "{refused:?}");
    say.send("two").unwrap();
    drop(say);
    turn.report().await;
    session.prompt("c").report().await;
    assert_eq!(texts(&session.history()), ["a", "one", "b", "two", "c", "three"]);
    assert_eq!(second.requests(), [vec!["a", "one", "b"], vec!["a", "one", "b", "two", "c"]]);

    session.close();
    session.closed().await;
    // The subscription of the first turn has all of it, and the change is reported once.
    let (mut kinds, mut models) = (Vec::new(), Vec::new());
    while let Some(event) = events.next().await {
        kinds.push(event.kind.name());
        match event.kind {
            EventKind::ThreadStarted { model, .. } => models.push(model),
            EventKind::ThreadResumed { by, model, suspended: None, .. } if by == "model" => models.push(model),
            _ => {}
        }
    }
    assert_eq!(models, ["scripted", "second"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == "turn_finish").count(), 3);
    let records =
        host.transcripts().unwrap().read(&thread).unwrap().records::<Record>().map(|entry| entry.unwrap().record);
    let resumed = records.filter_map(|record| serde_json::to_value(&record.body).ok());
    let resumed: Vec<_> = resumed.filter(|body| body["type"] == "thread_resumed").collect();
    assert_eq!((resumed.len(), &resumed[0]["payload"]["model"]), (1, &"second".into()));

    // It is resumed with its conversation, by the model of the host that opens it.
    let options = SessionOptions::new(folder.path()).model(Arc::new(Named("third", second))).id(thread);
    let again = host.session(options).await.unwrap();
    assert_eq!((texts(&again.history()).len(), again.model().1), (6, "third".to_owned()));
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_where_money_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "[limits.session]\nspend = 1.0\n[[limits.price]]\nid = \"scripted\"\ninput = 1.0\noutput = 1.0\n";
    let host = builder(settings).open().await.unwrap();
    let model = Scripted::new([Answer::Text("one")]);
    let options = SessionOptions::new(folder.path()).model(Arc::clone(&model) as Arc<dyn Model>);
    let session = host.session(options).await.unwrap();
    let refused = session.set_model(Arc::new(Named("unknown", Arc::clone(&model))));
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Some(DiagnosticCode::LimitsUnknownPrice), "{refused}");
    assert_eq!(session.model().1, "scripted");
    assert_eq!(session.prompt("a").report().await.text, "one");
}
