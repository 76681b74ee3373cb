//! Stage: the model's accepted output goes through `on_llm_output`, whole, before it is split into segments.

use flow::{Annotation, CallFailure, CallbackKind, ModelOutput, OutputAnswer, OutputMode, PluginId};

use crate::chain::{Asked, Caller};

/// The output after the extensions.
#[derive(Debug, Default)]
pub(crate) struct Processed {
    /// Each change in order; the last is the text from here on.
    pub(crate) rewrites: Vec<(PluginId, String)>,
    /// The annotations, each with the extension that made it.
    pub(crate) annotations: Vec<(PluginId, Annotation)>,
    /// The output is the marker of something withheld: it is shown as it is.
    pub(crate) withheld: bool,
}

/// Which extensions of the chain get an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of them.
    Whole,
    /// Those that register this mode.
    Only(OutputMode),
}

/// Runs the chain, or a part of it, over `output`, whose text becomes what the last rewriter made of it. Where a rewriter that fails
/// closed did not check it, its text becomes the marker, and no later rewriter gets it.
///
/// # Errors
/// The failure of a `required` extension.
pub(crate) async fn run(caller: &Caller, part: Part, output: &mut ModelOutput) -> Result<Processed, CallFailure> {
    let mut processed = Processed::default();
    let mut withheld = None;
    output.at = caller.events.place();
    let is_part = |mode: OutputMode| part == Part::Whole || part == Part::Only(mode);
    for &(plugin, mode) in caller.chains.output.iter().filter(|(_, mode)| is_part(*mode)) {
        if let (Some(by), OutputMode::Rewrite) = (withheld, mode) {
            caller.skip(&[plugin], CallbackKind::LlmOutput, by, "did not check the output");
            continue;
        }
        let call = caller.extensions.llm_output(plugin, output);
        let call = Box::pin(async move { call.await.map(|answer| usable(answer, mode)) });
        let by = caller.id(plugin);
        let answer = match caller.ask(plugin, CallbackKind::LlmOutput, call).await? {
            Asked::Answer(answer) => answer,
            Asked::Nothing => continue,
            Asked::Closed(why) => {
                output.text = caller.withhold(plugin, CallbackKind::LlmOutput, output.text.len(), why);
                processed.rewrites.push((by, output.text.clone()));
                withheld = Some(plugin);
                processed.withheld = true;
                continue;
            }
        };
        if answer.replace.is_some() && !answer.ignored.is_empty() {
            caller.used_in_part(plugin, CallbackKind::LlmOutput, &answer.ignored);
        }
        processed.annotations.extend(answer.annotations.into_iter().map(|note| (by.clone(), note)));
        if let Some(text) = answer.replace {
            output.text.clone_from(&text);
            processed.rewrites.push((by, text));
        }
    }
    Ok(processed)
}

/// What was shown live cannot be replaced any more.
fn usable(mut answer: OutputAnswer, mode: OutputMode) -> OutputAnswer {
    if mode == OutputMode::Observe && answer.replace.take().is_some() {
        answer.ignored.push("it is registered as an observer and replaced the output".to_owned());
    }
    answer
}
