//! What guests of contract 0.1.0 answer, made into what the turn understands.
//!
//! An answer that cannot be used (`other`, a `replace` of an observer, an unknown role) becomes `Ignored` with its
//! reason. Messages that come back unchanged become the original messages again, with everything that the
//! contract does not show: signatures of reasoning, origin.

use flow::{
    Annotation, InputAnswer, Message, Origin, OutputAnswer, OutputMode, Part, PluginId, Role, TagAnswer, TextAnswer,
    ToolCall, ToolResult,
};

use super::bindings::exports::tidegate::extension as exports;
use super::bindings::tidegate::extension as imports;
use super::convert;
use crate::limits;
use imports::types::{self, BlobResult, ContentResult, MessageResult, PartResult, RoleResult};

pub(super) fn unknown(what: &str, name: &str) -> String {
    let name = limits::cut(name, 200);
    format!("{what} `{name}` is not known to this version of the contract")
}

/// Bytes of an answer to `on-plain-text`.
pub(super) fn text_size(answer: &exports::on_plain_text::TextAnswer) -> usize {
    use exports::on_plain_text::TextAnswer as Theirs;
    match answer {
        Theirs::Pass => 0,
        Theirs::Replace(text) | Theirs::Other(text) => text.len(),
    }
}

/// An answer to `on-plain-text`.
pub(super) fn text(answer: exports::on_plain_text::TextAnswer) -> TextAnswer {
    use exports::on_plain_text::TextAnswer as Theirs;
    match answer {
        Theirs::Pass => TextAnswer::Pass,
        Theirs::Replace(text) => TextAnswer::Replace(text),
        Theirs::Other(name) => TextAnswer::Ignored(unknown("the answer", &name)),
    }
}

/// Bytes of an answer to `on-tag`.
pub(super) fn tag_size(answer: &exports::on_tag::TagAnswer) -> usize {
    use exports::on_tag::TagAnswer as Theirs;
    match answer {
        Theirs::Keep => 0,
        Theirs::Content(text) | Theirs::Replace(text) | Theirs::Other(text) => text.len(),
    }
}

/// An answer to `on-tag`.
pub(super) fn tag(answer: exports::on_tag::TagAnswer) -> TagAnswer {
    use exports::on_tag::TagAnswer as Theirs;
    match answer {
        Theirs::Keep => TagAnswer::Keep,
        Theirs::Content(text) => TagAnswer::Content(text),
        Theirs::Replace(text) => TagAnswer::Replace(text),
        Theirs::Other(name) => TagAnswer::Ignored(unknown("the answer", &name)),
    }
}

/// Bytes of an answer to `on-llm-output`.
pub(super) fn output_size(answer: &exports::on_llm_output::OutputAnswer) -> usize {
    use exports::on_llm_output::OutputChange as Change;
    let change = match &answer.change {
        Change::Pass => 0,
        Change::Replace(text) | Change::Other(text) => text.len(),
    };
    change + annotations_size(&answer.annotations) + attributes_size(&answer.attributes)
}

/// An answer to `on-llm-output`.
pub(super) fn output(answer: exports::on_llm_output::OutputAnswer, mode: OutputMode) -> OutputAnswer {
    use exports::on_llm_output::OutputChange as Change;
    let mut done = OutputAnswer::default();
    match (answer.change, mode) {
        (Change::Pass, _) => {}
        (Change::Replace(text), OutputMode::Rewrite) => done.replace = Some(text),
        (Change::Replace(_), OutputMode::Observe) => {
            done.ignored.push("a `replace` by an extension that registered to observe".to_owned());
        }
        (Change::Other(name), OutputMode::Rewrite) => done.unusable = Some(unknown("the change", &name)),
        (Change::Other(name), OutputMode::Observe) => done.ignored.push(unknown("the change", &name)),
    }
    done.annotations = annotations(answer.annotations, &mut done.ignored);
    done
}

/// The notes that can be used; `ignored` gets why others cannot.
pub(super) fn annotations(notes: Vec<types::Annotation>, ignored: &mut Vec<String>) -> Vec<Annotation> {
    let (mut done, mut unsaid) = (Vec::new(), 0_usize);
    for (number, note) in notes.into_iter().enumerate() {
        match annotation(number, note) {
            Ok(note) => done.push(note),
            // Hundreds of thousands of small ones fit in an answer; each would need a reason of its own in the report.
            Err(_) if ignored.len() >= limits::ANNOTATIONS => unsaid += 1,
            Err(why) => ignored.push(why),
        }
    }
    if unsaid > 0 {
        ignored.push(format!("{unsaid} more annotations"));
    }
    done
}

/// Bytes of notes.
pub(super) fn annotations_size(notes: &[types::Annotation]) -> usize {
    notes.iter().map(|note| note.key.len() + note.value.len()).sum()
}

fn annotation(number: usize, note: types::Annotation) -> Result<Annotation, String> {
    let shown = limits::cut(&note.key, 40);
    if number >= limits::ANNOTATIONS {
        return Err(format!("annotation `{shown}`: more than {} annotations", limits::ANNOTATIONS));
    }
    if note.key.is_empty() || note.key.len() > limits::ANNOTATION_KEY_BYTES {
        let (size, max) = (note.key.len(), limits::ANNOTATION_KEY_BYTES);
        return Err(format!("annotation `{shown}`: its key has {size} bytes, a key has 1 to {max}"));
    }
    if note.value.len() > limits::ANNOTATION_VALUE_BYTES {
        let (size, max) = (note.value.len(), limits::ANNOTATION_VALUE_BYTES);
        return Err(format!("annotation `{shown}`: its value has {size} bytes, a value has at most {max}"));
    }
    let value =
        serde_json::from_str(&note.value).map_err(|error| format!("annotation `{shown}`: not valid JSON: {error}"))?;
    Ok(Annotation { key: note.key, value })
}

/// Bytes of an answer to `on-input-messages`.
pub(super) fn input_size(answer: &exports::on_input_messages::InputAnswer) -> usize {
    use exports::on_input_messages::InputChange as Theirs;
    let change = match &answer.change {
        Theirs::Pass | Theirs::Finish(None) => 0,
        Theirs::Reply(text) | Theirs::Reject(text) | Theirs::Other(text) => text.len(),
        Theirs::Replace(messages) | Theirs::Finish(Some(messages)) => messages.iter().map(message_size).sum(),
    };
    change + attributes_size(&answer.attributes)
}

fn message_size(message: &MessageResult) -> usize {
    let role = if let RoleResult::Other(name) = &message.role { name.len() } else { 0 };
    let parts: usize = message.parts.iter().map(part_size).sum();
    message.id.len() + role + parts + attributes_size(&message.attributes) + size_of::<Message>()
}

fn part_size(part: &PartResult) -> usize {
    let text = match part {
        PartResult::Text(text) | PartResult::Thinking(text) | PartResult::Other(text) => text.len(),
        PartResult::ToolCall(call) => {
            call.id.len() + call.name.len() + call.arguments.len() + attributes_size(&call.attributes)
        }
        PartResult::ToolResult(result) => {
            let content: usize = result.content.iter().map(content_size).sum();
            result.id.len() + content + attributes_size(&result.attributes)
        }
        PartResult::Blob(blob) => blob_size(blob),
    };
    text + size_of::<Part>()
}

pub(super) fn content_size(content: &ContentResult) -> usize {
    let inside = match content {
        ContentResult::Text(text) | ContentResult::Other(text) => text.len(),
        ContentResult::Blob(blob) => blob_size(blob),
    };
    inside + size_of::<ContentResult>()
}

fn blob_size(blob: &BlobResult) -> usize {
    blob.id.len() + blob.media_type.len() + attributes_size(&blob.attributes)
}

pub(super) fn attributes_size(attributes: &[(String, String)]) -> usize {
    attributes.iter().map(|(key, value)| key.len() + value.len() + size_of::<(String, String)>()).sum()
}

/// An answer to `on-input-messages` that was called with `given`.
pub(super) fn input(
    answer: exports::on_input_messages::InputAnswer,
    given: &[Message],
    plugin: &PluginId,
) -> InputAnswer {
    use exports::on_input_messages::InputChange as Theirs;
    let messages = |returned| returned_messages(returned, given, plugin);
    match answer.change {
        Theirs::Pass => InputAnswer::Pass,
        Theirs::Replace(returned) => messages(returned).map_or_else(InputAnswer::Ignored, InputAnswer::Replace),
        Theirs::Finish(None) => InputAnswer::Finish(None),
        Theirs::Finish(Some(returned)) => match messages(returned) {
            Ok(messages) => InputAnswer::Finish(Some(messages)),
            Err(why) => InputAnswer::Ignored(why),
        },
        Theirs::Reply(text) => InputAnswer::Reply(text),
        Theirs::Reject(reason) => InputAnswer::Reject(reason),
        Theirs::Other(name) => InputAnswer::Ignored(unknown("the answer", &name)),
    }
}

/// The messages a guest returned. First those that came back as they were find the message they are; then a changed
/// one takes the message at its own place, if that has its role and is still free; the rest is the plugin's own.
fn returned_messages(
    returned: Vec<MessageResult>,
    given: &[Message],
    plugin: &PluginId,
) -> Result<Vec<Message>, String> {
    let shown: Vec<MessageResult> = given.iter().map(convert::message_out).collect();
    let mut free = vec![true; given.len()];
    let mut same: Vec<Option<usize>> = vec![None; returned.len()];
    for (index, message) in returned.iter().enumerate() {
        let fits = |at: &usize| free.get(*at) == Some(&true) && shown.get(*at).is_some_and(|one| equal(one, message));
        let found = Some(index).filter(|at| fits(at)).or_else(|| (0..given.len()).find(|at| fits(at)));
        if let Some(at) = found {
            free[at] = false;
            same[index] = Some(at);
        }
    }
    let mut done = Vec::with_capacity(returned.len());
    for (index, message) in returned.into_iter().enumerate() {
        if let Some(base) = same[index].and_then(|at| given.get(at)) {
            done.push(base.clone());
            continue;
        }
        let role = role(&message.role).map_err(|name| format!("message {index}: {}", unknown("the role", &name)))?;
        let base = given.get(index).filter(|base| free.get(index) == Some(&true) && base.role == role);
        if base.is_some() {
            free[index] = false;
        }
        let parts = parts(message.parts, base).map_err(|why| format!("message {index}: {why}"))?;
        let origin = base.map_or_else(|| Origin::Plugin(plugin.clone()), |base| base.origin.clone());
        done.push(Message { role, origin, parts, hidden: base.is_some_and(|base| base.hidden) });
    }
    Ok(done)
}

fn role(role: &RoleResult) -> Result<Role, String> {
    match role {
        RoleResult::System => Ok(Role::System),
        RoleResult::User => Ok(Role::User),
        RoleResult::Assistant => Ok(Role::Assistant),
        RoleResult::Tool => Ok(Role::Tool),
        RoleResult::Other(name) => Err(name.clone()),
    }
}

/// The parts of a changed message. Reasoning that came back unchanged keeps its signature; parts of a kind that the contract
/// has no case for are those of the original message of that kind, in their order.
fn parts(returned: Vec<PartResult>, base: Option<&Message>) -> Result<Vec<Part>, String> {
    let mut originals: Vec<&Part> = base.map_or(&[][..], |base| &base.parts).iter().collect();
    let mut take = |wanted: &dyn Fn(&Part) -> bool| {
        let at = originals.iter().position(|part| wanted(part))?;
        Some(originals.remove(at).clone())
    };
    returned
        .into_iter()
        .map(|part| match part {
            PartResult::Text(text) => Ok(Part::Text(text)),
            PartResult::Thinking(text) => {
                let same = |part: &Part| {
                    matches!(part, Part::Thinking { redacted: false, .. })
                        && part.seen_thinking() == Some(text.as_str())
                };
                Ok(take(&same).unwrap_or(Part::Thinking { text, signature: None, redacted: false, shown: None }))
            }
            PartResult::Other(kind) => take(&|part| convert::unknown_kind(part) == Some(&kind)).ok_or_else(|| {
                let kind = limits::cut(&kind, 200);
                format!("a part of the kind `{kind}` that was not in the message it came with")
            }),
            PartResult::Blob(_) => Err(NO_BLOB.to_owned()),
            PartResult::ToolCall(call) => Ok(Part::ToolCall(ToolCall {
                id: flow::CallId::new(call.id),
                name: call.name,
                arguments: call.arguments,
            })),
            PartResult::ToolResult(result) => Ok(Part::ToolResult(ToolResult {
                call: flow::CallId::new(result.id),
                content: result.content.into_iter().map(text_block).collect::<Result<_, _>>()?,
                is_error: result.is_error,
            })),
        })
        .collect()
}

/// This host passes no blobs to guests, so none can be returned.
const NO_BLOB: &str = "a blob that was not in the message it came with";

pub(super) fn text_block(content: ContentResult) -> Result<String, String> {
    match content {
        ContentResult::Text(text) => Ok(text),
        ContentResult::Blob(_) => Err(NO_BLOB.to_owned()),
        ContentResult::Other(kind) => Err(unknown("the content", &kind)),
    }
}

/// Whether a guest returned what it was given. Attributes and ids do not count.
fn equal(shown: &MessageResult, returned: &MessageResult) -> bool {
    role(&shown.role).ok() == role(&returned.role).ok()
        && role(&returned.role).is_ok()
        && shown.parts.len() == returned.parts.len()
        && shown.parts.iter().zip(&returned.parts).all(|(a, b)| equal_parts(a, b))
}

fn equal_parts(a: &PartResult, b: &PartResult) -> bool {
    match (a, b) {
        (PartResult::Text(a), PartResult::Text(b))
        | (PartResult::Thinking(a), PartResult::Thinking(b))
        | (PartResult::Other(a), PartResult::Other(b)) => a == b,
        (PartResult::ToolCall(a), PartResult::ToolCall(b)) => {
            (&a.id, &a.name, &a.arguments) == (&b.id, &b.name, &b.arguments)
        }
        (PartResult::ToolResult(a), PartResult::ToolResult(b)) => {
            let texts = |a: &ContentResult, b: &ContentResult| matches!((a, b), (ContentResult::Text(a), ContentResult::Text(b)) if a == b);
            (&a.id, a.is_error, a.content.len()) == (&b.id, b.is_error, b.content.len())
                && a.content.iter().zip(&b.content).all(|(a, b)| texts(a, b))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
