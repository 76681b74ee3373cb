//! The callbacks of contract 0.1.0 around calls of tools.

use flow::{AskedCall, CallAnswer, CallbackKind, Called, GivenResult, ResultAnswer, ResultStage};
use wasmtime::Store;

use super::bindings::exports::tidegate::extension::{on_tool_call as call, on_tool_result as result};
use super::bindings::tidegate::extension::types::ContentParam;
use super::calls::{Call, enter, most, returned};
use super::convert::{moment, tool_call};
use super::{Calls, answers};
use crate::failure::Fault;
use crate::guest::Guest;
use crate::limits;

/// A call of `on-tool-call`.
pub(crate) struct CallAsked<'a>(pub(crate) &'a AskedCall);

/// A call of `on-tool-result`.
pub(crate) struct ResultGiven<'a>(pub(crate) &'a GivenResult);

impl Call for CallAsked<'_> {
    type Answer = CallAnswer;

    fn called(&self) -> Called {
        CallbackKind::ToolCall.into()
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<CallAnswer, Fault> {
        let func = calls.tool_call.as_ref().ok_or(Fault::Missing)?.func_on_tool_call();
        let AskedCall { at, call: asked, edited } = self.0;
        let asked = call::AskedCall { at: moment(*at), call: tool_call(asked), edited: *edited, attributes: &[] };
        let (answer,) = enter(store, func, (asked,)).await?;
        Ok(call_answer(returned(answer, call_size, most(store))?))
    }
}

impl Call for ResultGiven<'_> {
    type Answer = ResultAnswer;

    fn called(&self) -> Called {
        CallbackKind::ToolResult.into()
    }

    async fn run(self, calls: &Calls, store: &mut Store<Guest>) -> Result<ResultAnswer, Fault> {
        let func = calls.tool_result.as_ref().ok_or(Fault::Missing)?.func_on_tool_result();
        let GivenResult { at, call, stage, content, diff, is_error } = self.0;
        let content: Vec<ContentParam<'_>> = content.iter().map(|text| ContentParam::Text(text)).collect();
        let given = result::GivenResult {
            at: moment(*at),
            call: tool_call(call),
            stage: match stage {
                ResultStage::Done => result::ResultStage::Done,
                ResultStage::Preview => result::ResultStage::Preview,
            },
            content: &content,
            diff: diff.as_deref(),
            is_error: *is_error,
            attributes: &[],
        };
        let (answer,) = enter(store, func, (given,)).await?;
        Ok(result_answer(returned(answer, result_size, most(store))?))
    }
}

fn call_size(answer: &call::CallAnswer) -> usize {
    let change = match &answer.change {
        call::CallChange::Pass => 0,
        call::CallChange::Replace(text) | call::CallChange::Other(text) => text.len(),
        call::CallChange::Deny(denial) => {
            denial.reason.len()
                + denial.shown.as_ref().map_or(0, String::len)
                + answers::attributes_size(&denial.attributes)
        }
    };
    change + answers::attributes_size(&answer.attributes)
}

fn call_answer(answer: call::CallAnswer) -> CallAnswer {
    match answer.change {
        call::CallChange::Pass => CallAnswer::Pass,
        call::CallChange::Replace(arguments) => CallAnswer::Replace(arguments),
        call::CallChange::Deny(denial) => {
            let reason = limits::shorten(denial.reason, limits::MESSAGE_BYTES);
            CallAnswer::Deny { reason, shown: denial.shown }
        }
        call::CallChange::Other(name) => CallAnswer::Ignored(answers::unknown("the answer", &name)),
    }
}

fn result_size(answer: &result::ResultAnswer) -> usize {
    let change = match &answer.change {
        result::ResultChange::Pass => 0,
        result::ResultChange::Other(text) => text.len(),
        result::ResultChange::Replace(new) => {
            let content: usize = new.content.iter().map(answers::content_size).sum();
            content + new.diff.as_ref().map_or(0, String::len) + answers::attributes_size(&new.attributes)
        }
    };
    change + answers::annotations_size(&answer.annotations) + answers::attributes_size(&answer.attributes)
}

fn result_answer(answer: result::ResultAnswer) -> ResultAnswer {
    let mut done = ResultAnswer::default();
    done.annotations = answers::annotations(answer.annotations, &mut done.ignored);
    match answer.change {
        result::ResultChange::Pass => {}
        result::ResultChange::Replace(new) => {
            match new.content.into_iter().map(answers::text_block).collect::<Result<Vec<_>, _>>() {
                Ok(content) => done.replace = Some((content, new.diff)),
                Err(why) => done.unusable = Some(why),
            }
        }
        result::ResultChange::Other(name) => done.unusable = Some(answers::unknown("the change", &name)),
    }
    done
}
