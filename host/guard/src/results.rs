//! Stage: results of tools go through `on_tool_result`, before the model and the user get them; and so do the changes that a person is
//! shown in a question.

use flow::{
    Annotation, CallFailure, CallbackKind, GivenResult, PluginId, Preview, ResultAnswer, ResultStage, ToolCall,
    ToolOutput, withheld,
};

use crate::chain::{Asked, Caller};

/// The result of a tool after the extensions.
#[derive(Debug, Default)]
pub struct Given {
    pub output: ToolOutput,
    /// What the tool gave, where that is another text.
    pub original: Option<String>,
    /// What extensions noted, each with its id.
    pub annotations: Vec<(PluginId, Annotation)>,
    /// The failure of a `required` extension: the output is its marker.
    pub failure: Option<CallFailure>,
}

/// What the chain made of a result.
struct Passed {
    result: GivenResult,
    annotations: Vec<(PluginId, Annotation)>,
    /// An extension that fails closed did not check it, or one that is required failed.
    withheld: Option<PluginId>,
}

/// Gives the result of a call to the extensions. The call has run: where a `required` extension fails, its result is withheld, and the
/// failure is for the turn.
pub async fn done(caller: &Caller, call: &ToolCall, output: ToolOutput) -> Given {
    if caller.chains.results.is_empty() {
        return Given { output, ..Given::default() };
    }
    let (original, is_error) = (output.content.clone(), output.is_error);
    let given = GivenResult {
        at: caller.events.place(),
        call: call.clone(),
        stage: ResultStage::Done,
        content: vec![output.content],
        diff: output.diff,
        is_error,
    };
    let (output, annotations, failure) = match run(caller, given).await {
        Ok(Passed { result, annotations, withheld: None }) => {
            let (content, diff) = (result.content.join("\n"), result.diff);
            (ToolOutput { content, diff, is_error }, annotations, None)
        }
        Ok(Passed { annotations, withheld: Some(by), .. }) => (marked(&by, is_error), annotations, None),
        Err(failure) => (marked(&failure.plugin, is_error), Vec::new(), Some(failure)),
    };
    let is_other = output.content != original && !caller.chains.keeping.results;
    Given { original: is_other.then_some(original), output, annotations, failure }
}

/// Gives the change that a question shows to the extensions, with its notes: what of them is not about the arguments is from files.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn preview(caller: &Caller, call: &ToolCall, mut preview: Preview) -> Result<Preview, CallFailure> {
    if caller.chains.results.is_empty() || (preview.diff.is_none() && preview.notes.is_empty()) {
        return Ok(preview);
    }
    let given = GivenResult {
        at: caller.events.place(),
        call: call.clone(),
        stage: ResultStage::Preview,
        content: std::mem::take(&mut preview.notes),
        diff: preview.diff.take(),
        is_error: false,
    };
    let Passed { result, withheld: by, .. } = run(caller, given).await?;
    match by {
        None => (preview.notes, preview.diff) = (result.content, result.diff),
        Some(by) => preview.notes.push(withheld(&by)),
    }
    Ok(preview)
}

/// Passes the result of a call that ran elsewhere to the extensions, as its text blocks. The inner `Err` has the id of an extension that
/// fails closed and did not check the result.
///
/// # Errors
/// The failure of a `required` extension.
pub async fn of_client(
    caller: &Caller,
    call: &ToolCall,
    content: Vec<String>,
    is_error: bool,
) -> Result<Result<Vec<String>, PluginId>, CallFailure> {
    let given = GivenResult {
        at: caller.events.place(),
        call: call.clone(),
        stage: ResultStage::Done,
        content,
        diff: None,
        is_error,
    };
    let Passed { result, withheld, .. } = run(caller, given).await?;
    Ok(withheld.map_or(Ok(result.content), Err))
}

fn marked(by: &PluginId, is_error: bool) -> ToolOutput {
    ToolOutput { content: withheld(by), diff: None, is_error }
}

/// # Errors
/// The failure of a `required` extension.
async fn run(caller: &Caller, mut result: GivenResult) -> Result<Passed, CallFailure> {
    let (chain, mut annotations) = (&caller.chains.results, Vec::new());
    for (at, &plugin) in chain.iter().enumerate() {
        let call = caller.extensions.tool_result(plugin, &result);
        let by = caller.id(plugin);
        let answer: ResultAnswer = match caller.ask(plugin, CallbackKind::ToolResult, call).await? {
            Asked::Answer(answer) => answer,
            Asked::Nothing => continue,
            Asked::Closed(why) => {
                caller.skip(&chain[at + 1..], CallbackKind::ToolResult, plugin, "did not check the result");
                caller.withhold(plugin, CallbackKind::ToolResult, result.bytes(), why);
                return Ok(Passed { result, annotations, withheld: Some(by) });
            }
        };
        if answer.replace.is_some() && !answer.ignored.is_empty() {
            caller.used_in_part(plugin, CallbackKind::ToolResult, &answer.ignored);
        }
        annotations.extend(answer.annotations.into_iter().map(|note| (by.clone(), note)));
        if let Some((content, diff)) = answer.replace {
            (result.content, result.diff) = (content, diff);
        }
    }
    Ok(Passed { result, annotations, withheld: None })
}
