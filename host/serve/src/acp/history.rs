//! The history of a recorded session, as the updates that `session/load` sends.

use std::collections::BTreeMap;
use std::path::Path;

use chat::records::{self, Line};
use chat::{Author, BlockKind, ChatMessage, MessageId, MessageLog, ToolEntry, ToolStatus};
use serde_json::Value;
use tidegate::{CallId, Event, EventKind, Image, Part, RunPosition, SessionId, TranscriptError, TranscriptStore};

use super::names;
use super::sdk::v1::{self, SessionUpdate, ToolCallStatus};
use super::tool;
use super::updates::chunk;

/// Reads what a front end would show of a session: no hidden message, and nothing that a rule retracted. Blocks on the disk.
///
/// # Errors
/// The transcript cannot be read: the reason, for the user.
pub(super) fn read(store: &TranscriptStore, id: &SessionId, workspace: &Path) -> Result<Vec<SessionUpdate>, String> {
    let (log, images) = log(store, id)?;
    let messages = log.snapshot();
    let updates = messages.messages().flat_map(|message| {
        let shown = images.get(message.id.as_str()).into_iter().flatten().map(|shown| image(shown, &message.id));
        shown.chain(updates(&message, workspace)).collect::<Vec<_>>()
    });
    Ok(updates.collect())
}

/// Images of inputs, by the ids of their messages.
type Images = BTreeMap<String, Vec<Image>>;

fn image(image: &Image, id: &MessageId) -> SessionUpdate {
    let content = v1::ContentBlock::Image(v1::ImageContent::new(image.base64(), image.media_type()));
    SessionUpdate::UserMessageChunk(v1::ContentChunk::new(content).message_id(v1::MessageId::new(id.as_str())))
}

/// What a chat has no block for.
fn images(event: &Event) -> Option<(String, Vec<Image>)> {
    let EventKind::InputReceived { message, .. } = &event.kind else { return None };
    let image = |part: &Part| if let Part::Image(image) = part { Some(image.clone()) } else { None };
    let images: Vec<Image> = message.parts.iter().filter_map(image).collect();
    (!message.hidden && !images.is_empty()).then(|| (format!("in-{}", event.seq), images))
}

fn log(store: &TranscriptStore, id: &SessionId) -> Result<(MessageLog, Images), String> {
    let failed = |error: TranscriptError| error.to_string();
    let (mut log, mut shown) = (MessageLog::default(), Images::new());
    for entry in store.read(id).map_err(failed)?.records::<Value>() {
        let entry = entry.map_err(failed)?;
        let line = records::read_value(entry.record)
            .map_err(|error| format!("{}, line {}: {error}", entry.path.display(), entry.line))?;
        if let Line::Event { event, .. } = line {
            shown.extend(images(&event));
            // Nobody is shown the states in between.
            let _ = log.process(&event);
        }
    }
    Ok((log, shown))
}

fn updates(message: &ChatMessage, workspace: &Path) -> Vec<SessionUpdate> {
    let id = || v1::MessageId::new(message.id.as_str());
    let valid = message.blocks.iter().filter(|block| block.void.is_none() && !block.text.is_empty());
    let blocks = valid.map(|block| {
        let chunk = chunk(&block.text.chunks().collect::<String>(), id());
        match (message.author, block.kind) {
            (Author::User, _) => SessionUpdate::UserMessageChunk(chunk),
            (_, BlockKind::Reasoning) => SessionUpdate::AgentThoughtChunk(chunk),
            _ => SessionUpdate::AgentMessageChunk(chunk),
        }
    });
    let place = RunPosition { turn: message.turn, step: message.step, attempt: 0 };
    let calls = message.calls.iter().map(|entry| SessionUpdate::ToolCall(call(entry, place, workspace)));
    blocks.chain(calls).collect()
}

/// A call with its end. One without a result is over: its process has ended, or its turn goes on and reports it.
fn call(entry: &ToolEntry, place: RunPosition, workspace: &Path) -> v1::ToolCall {
    let about = tool::describe(workspace, &entry.tool, &entry.arguments);
    let status = match entry.status {
        ToolStatus::Done => ToolCallStatus::Completed,
        ToolStatus::Proposed | ToolStatus::Asking => ToolCallStatus::Pending,
        ToolStatus::Running => ToolCallStatus::InProgress,
        _ => ToolCallStatus::Failed,
    };
    let change = entry.diff.as_ref().map(|diff| about.change(diff)).unwrap_or_default();
    let output = entry.output.as_ref().and_then(|output| about.output(output));
    v1::ToolCall::new(names::call(place, &CallId::new(entry.call.as_str())), about.title.clone())
        .name(entry.tool.as_str().to_owned())
        .kind(about.kind)
        .status(status)
        .content(change.into_iter().chain(output).collect())
        .locations(about.locations)
        .raw_input(about.input)
}
