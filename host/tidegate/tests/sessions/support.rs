//! A host without a provider, and a model that the test plays.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::model::{Delta, Model, ModelError, ModelStream, StopReason};
use tidegate::prompt::Prompt;
use tidegate::tool::CallId;
use tidegate::{BoxFuture, Host, HostBuilder, Message, Operator, Session, SessionOptions};
use tokio::sync::mpsc;

/// One answer: text, or the call of a tool; or one that the test sends chunk by chunk.
pub(crate) enum Answer {
    Text(&'static str),
    Call(&'static str, &'static str),
    Live(mpsc::UnboundedReceiver<&'static str>),
}

/// Answers with what it was given, and keeps the requests.
#[derive(Default)]
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Vec<String>>>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    /// The texts of the messages of each request.
    pub(crate) fn requests(&self) -> Vec<Vec<String>> {
        self.requests.lock().unwrap().clone()
    }
}

impl Model for Scripted {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "scripted"
    }

    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let request = prompt.messages.iter().map(|message| message.plain_text()).collect();
        self.requests.lock().unwrap().push(request);
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Answer::Text("nothing more"));
        Box::pin(async move { Ok(Box::new(Stream::new(answer)) as Box<dyn ModelStream>) })
    }
}

struct Stream {
    deltas: VecDeque<Delta>,
    live: Option<mpsc::UnboundedReceiver<&'static str>>,
}

impl Stream {
    fn new(answer: Answer) -> Self {
        let (kind, text, live) = match answer {
            Answer::Text(text) => (StreamKind::Text, Some(text), None),
            Answer::Call(name, arguments) => {
                (StreamKind::Tool { call: CallId::new("call-1"), name: name.to_owned() }, Some(arguments), None)
            }
            Answer::Live(pieces) => (StreamKind::Text, None, Some(pieces)),
        };
        let stop = if kind == StreamKind::Text { StopReason::EndTurn } else { StopReason::ToolUse };
        let mut deltas = VecDeque::from([Delta::Start { model: None }, Delta::BlockStart { block: 0, kind }]);
        if let Some(text) = text {
            deltas.push_back(Delta::Piece { block: 0, text: text.to_owned() });
            deltas.extend([Delta::BlockEnd { block: 0 }, Delta::Stop { reason: stop }]);
        }
        Self { deltas, live }
    }
}

impl ModelStream for Stream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>> {
        if let (true, Some(live)) = (self.deltas.is_empty(), &mut self.live) {
            match std::task::ready!(live.poll_recv(cx)) {
                Some(text) => self.deltas.push_back(Delta::Piece { block: 0, text: text.to_owned() }),
                None => {
                    self.deltas.extend([Delta::BlockEnd { block: 0 }, Delta::Stop { reason: StopReason::EndTurn }]);
                    self.live = None;
                }
            }
        }
        Poll::Ready(self.deltas.pop_front().map(Ok))
    }
}

/// A builder over the operator's defaults, with no plugin, no rule and no folder of the user's.
pub(crate) fn builder(toml: &str) -> HostBuilder {
    let source =
        tidegate::diagnostic::SourceFile::new("tidegate.toml", format!("[rules]\nbuiltin_rules = false\n{toml}"));
    let operator = Operator::of_source(&source).unwrap_or_else(|wrong| panic!("{wrong}"));
    Host::builder(operator).cache_dir(None).max_instances(4).user_rules(None)
}

/// A session in a folder of its own, with these answers of the model.
pub(crate) async fn session(model: &Arc<Scripted>) -> (Session, TempDir) {
    let folder = TempDir::new().unwrap();
    let host = builder("").open().await.unwrap();
    let options = SessionOptions::new(folder.path()).model(Arc::clone(model) as Arc<dyn Model>);
    (host.session(options).await.unwrap(), folder)
}

pub(crate) fn texts(history: &[Arc<Message>]) -> Vec<String> {
    history.iter().map(|message| message.plain_text()).collect()
}
