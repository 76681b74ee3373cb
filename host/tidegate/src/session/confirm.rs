//! The default handler of questions, when a tool's permission is `ask` and the embedder has set none.

use flow::Answer;
use flow::ports::{BoxFuture, Confirm, Question};

/// No user is available: every question is denied, and the model gets that as the result.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Confirm for Nobody {
    fn name(&self) -> &str {
        ""
    }

    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        let (tool, why) = (&question.call.name, &question.reason);
        let reason = format!(
            "not run: {why}, and there is nobody to ask (no terminal). Continue without it, or ask the user to allow `{tool}`"
        );
        Box::pin(async move { Answer::Unavailable { reason } })
    }
}
