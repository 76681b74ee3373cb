//! Who is asked when a tool's permission says `ask` and the embedder has set nobody.

use flow::{Confirmation, ToolCall};
use turn::ports::{BoxFuture, Confirm};

/// Nobody can be asked: every question is denied, and the model is told so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Confirm for Nobody {
    fn confirm<'a>(&'a self, call: &'a ToolCall, reason: &'a str) -> BoxFuture<'a, Confirmation> {
        let tool = &call.name;
        let reason = format!(
            "not run: {reason}, and there is nobody to ask (no terminal). Go on without it, or ask the user to allow `{tool}`"
        );
        Box::pin(async move { Confirmation::Denied { reason } })
    }
}
