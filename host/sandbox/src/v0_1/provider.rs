//! `tool-provider` of contract 0.1.0: the list of tools, and calls of them.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use flow::ports::{Progress, ProgressLine};
use flow::{Called, ToolCall};
use wasmtime::Store;
use wasmtime::component::Instance;

use super::bindings::exports::tidegate::extension::tool_provider as theirs;
use super::bindings::tidegate::extension::types::ContentResult;
use super::calls::{Call, enter, returned};
use super::{Calls, Exports, convert};
use crate::failure::{Fault, panicked};
use crate::guest::Guest;
use crate::limits;
use crate::tools::Listed;

/// The lines that a running tool has reported and that nobody has seen yet.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Vec<(Option<f64>, String)>>);

impl Lines {
    pub(crate) fn push(&self, percent: Option<f64>, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((percent, line));
    }

    fn show(&self, progress: Progress<'_>) {
        let lines = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        lines.iter().for_each(|(percent, line)| progress(ProgressLine::new(line, *percent)));
    }
}

/// Calls `tools`; an empty list where the component provides none.
pub(crate) fn tools(exports: &Exports, store: &mut Store<Guest>, instance: &Instance) -> Result<Vec<Listed>, Fault> {
    let Some(provider) = &exports.tools else { return Ok(Vec::new()) };
    let func = provider.load(&mut *store, instance).map_err(Fault::Engine)?.func_tools();
    let called = catch_unwind(AssertUnwindSafe(|| func.call(&mut *store, ())));
    let (listed,) = called.map_err(|payload| panicked(payload.as_ref()))?.map_err(Fault::Engine)?;
    let tool = |one: theirs::Tool| Listed {
        name: one.name,
        description: one.description,
        parameters: one.parameters,
        read_only: one.read_only,
    };
    Ok(listed.into_iter().map(tool).collect())
}

/// One call of a tool.
pub(crate) struct ToolRun<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) progress: Progress<'a>,
}

/// What the model gets.
#[derive(Debug)]
pub(crate) enum ToolText {
    /// The text of the result, its parts joined.
    Done(String),
    /// Why the call cannot be done as it was written.
    Rejected(String),
}

impl Call for ToolRun<'_> {
    type Answer = ToolText;

    fn called(&self) -> Called {
        Called::Tool(self.call.name.clone())
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<ToolText, Fault> {
        let func = calls.tools.as_ref().ok_or(Fault::Missing)?.func_call();
        let lines = Arc::new(Lines::default());
        store.data_mut().follow(Arc::clone(&lines));
        let max = store.data().plugin.limits.tool_bytes;
        let entered = enter(store, func, (convert::tool_call(self.call),));
        let (answer,) = followed(entered, &lines, self.progress).await?;
        text(returned(answer, size, max)?)
    }
}

/// Shows the lines whenever the guest gives way, and at the end.
async fn followed<T>(entered: impl Future<Output = T>, lines: &Lines, progress: Progress<'_>) -> T {
    let mut entered = pin!(entered);
    poll_fn(|cx| {
        let polled = entered.as_mut().poll(cx);
        lines.show(progress);
        polled
    })
    .await
}

fn size(answer: &theirs::ToolAnswer) -> usize {
    let part = |part: &ContentResult| match part {
        ContentResult::Text(text) | ContentResult::Other(text) => text.len() + 1,
        ContentResult::Blob(blob) => blob.id.len() + blob.media_type.len(),
    };
    match &answer.outcome {
        theirs::ToolOutcome::Done(parts) => parts.iter().map(part).sum::<usize>().saturating_sub(1),
        theirs::ToolOutcome::Rejected(text) | theirs::ToolOutcome::Other(text) => text.len(),
    }
}

fn text(answer: theirs::ToolAnswer) -> Result<ToolText, Fault> {
    let parts = match answer.outcome {
        theirs::ToolOutcome::Done(parts) => parts,
        theirs::ToolOutcome::Rejected(why) => return Ok(ToolText::Rejected(why)),
        theirs::ToolOutcome::Other(name) => {
            let name = limits::cut(&name, 200);
            return Err(Fault::Unusable(format!("the outcome `{name}` is not known to this version of the contract")));
        }
    };
    let mut texts = Vec::new();
    for part in parts {
        match part {
            ContentResult::Text(text) => texts.push(text),
            ContentResult::Blob(_) => return Err(Fault::Unusable("this host takes text only, not blobs".to_owned())),
            ContentResult::Other(kind) => {
                let kind = limits::cut(&kind, 200);
                return Err(Fault::Unusable(format!("content of the kind `{kind}` is not known to this version")));
            }
        }
    }
    Ok(ToolText::Done(texts.join("\n")))
}
