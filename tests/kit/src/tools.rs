//! Tools that echo, a tool whose results have a size, and a person who is not there.

use flow::ports::{BoxFuture, Confirm, PreparedCall, Progress, ProgressLine, Question, Tools};
use flow::{Answer, Permission, Preview, ToolCall, ToolOutput, ToolSpec};

/// Tools that return their arguments; `slow` never ends, `shell` asks, `locked` is denied, `steps` reports progress.
pub struct EchoTools;

impl Tools for EchoTools {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: serde_json::json!({"type": "object"}),
        };
        ["read", "write", "edit", "slow", "shell", "locked", "steps"].map(spec).into()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(EchoCall(call))
    }
}

struct EchoCall<'a>(&'a ToolCall);

impl PreparedCall for EchoCall<'_> {
    fn permission(&self) -> Permission {
        match self.0.name.as_str() {
            "shell" => Permission::Ask { reason: "shell is set to ask".into() },
            "locked" => Permission::Deny { reason: "locked is set to deny".into() },
            _ => Permission::Allow,
        }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(std::future::ready(Preview::of_arguments(&self.0.arguments).unwrap()))
    }

    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let call = self.0;
        Box::pin(async move {
            tokio::task::yield_now().await;
            match call.name.as_str() {
                "slow" => std::future::pending::<()>().await,
                "steps" => {
                    progress("one".into());
                    progress(ProgressLine::new("two", Some(50.0)));
                }
                _ => {}
            }
            ToolOutput { content: format!("{} done: {}", call.name, call.arguments), diff: None, is_error: false }
        })
    }
}

/// The tool `fetch` gives as many bytes as its argument `bytes` says.
pub struct Fetch;

impl Fetch {
    /// What a call gives.
    pub fn fetched(call: &ToolCall) -> String {
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
        let bytes = arguments["bytes"].as_u64().unwrap() as usize;
        let mut text = format!("{}: ", call.id.as_str());
        while text.len() < bytes {
            text.push_str("some words of it, ");
        }
        text
    }
}

impl Tools for Fetch {
    fn specs(&self) -> Vec<ToolSpec> {
        let parameters = serde_json::json!({"type": "object", "properties": {"bytes": {"type": "integer"}}});
        vec![ToolSpec { name: "fetch".into(), description: "Fetches.".into(), parameters }]
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(Fetched(call))
    }
}

struct Fetched<'a>(&'a ToolCall);

impl PreparedCall for Fetched<'_> {
    fn permission(&self) -> Permission {
        Permission::Allow
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        Box::pin(std::future::ready(Preview::default()))
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let content = Fetch::fetched(self.0);
        Box::pin(std::future::ready(ToolOutput { content, diff: None, is_error: false }))
    }
}

/// Nobody can be asked.
pub struct Nobody;

impl Confirm for Nobody {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let reason = format!("{}, and nobody can be asked", question.reason);
        Box::pin(async move { Answer::Unavailable { reason } })
    }
}
