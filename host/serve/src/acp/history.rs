//! The history of a session as the updates that `session/load` sends: what a chat of its events shows.

use std::collections::BTreeMap;
use std::path::Path;

use chat::{Author, BlockKind, ChatImage, ChatMessage, ChatSession, SavedChat, ToolEntry, ToolStatus};
use tidegate::event::{PlanStatus, RunPosition};
use tidegate::tool::CallId;

use super::calls::Left;
use super::names;
use super::sdk::v1::{self, SessionUpdate, ToolCallStatus};
use super::tool;
use super::updates::{chunk, plan};

/// The calls of a chat without a result, which the process that has asked for it has not begun.
pub(super) fn left(saved: SavedChat) -> BTreeMap<CallId, Left> {
    let mut chat = ChatSession::default();
    // Nobody is shown the state before.
    let _ = chat.restore(saved);
    let mut left = BTreeMap::new();
    for message in chat.snapshot().messages.messages() {
        for entry in message.calls.iter() {
            let call = CallId::new(entry.call.as_str());
            if matches!(entry.status, ToolStatus::Done | ToolStatus::Failed | ToolStatus::NotRun) {
                left.remove(&call);
                continue;
            }
            let place = RunPosition { turn: message.turn, step: message.step, attempt: 0 };
            left.insert(call, Left { place, arguments: entry.arguments.to_string(), is_known: false });
        }
    }
    left
}

/// The updates of a chat: no hidden message, and nothing that a rule retracted. `running`: the attempt that writes now. The answer of its
/// step gets the id of its message, which the client then continues.
pub(super) fn updates(saved: SavedChat, workspace: &Path, running: Option<RunPosition>) -> Vec<SessionUpdate> {
    let mut chat = ChatSession::default();
    // Nobody is shown the state before.
    let _ = chat.restore(saved);
    let chat = chat.snapshot();
    let messages = chat.messages.messages().flat_map(|message| of_message(&message, workspace, running));
    let entries = chat.plan.iter().filter_map(|item| Some((&*item.content, PlanStatus::from_word(&item.status)?)));
    let plan = (!chat.plan.is_empty()).then(|| plan(entries));
    messages.chain(plan).collect()
}

fn of_message(message: &ChatMessage, workspace: &Path, running: Option<RunPosition>) -> Vec<SessionUpdate> {
    let continued = running.filter(|place| {
        message.author == Author::Assistant
            && !message.complete
            && (message.turn, message.step) == (place.turn, place.step)
    });
    let id = || continued.map_or_else(|| v1::MessageId::new(message.id.as_str()), names::message);
    let images = message.images.iter().map(|shown| image(shown, id()));
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
    images.chain(blocks).chain(calls).collect()
}

fn image(image: &ChatImage, id: v1::MessageId) -> SessionUpdate {
    let content = v1::ContentBlock::Image(v1::ImageContent::new(image.data.as_str(), image.media_type.as_str()));
    SessionUpdate::UserMessageChunk(v1::ContentChunk::new(content).message_id(id))
}

/// A call with its last status. One that runs is of a turn that runs in this process.
fn call(entry: &ToolEntry, place: RunPosition, workspace: &Path) -> v1::ToolCall {
    let about = tool::describe(workspace, &entry.tool, &entry.arguments);
    let status = match entry.status {
        ToolStatus::Done => ToolCallStatus::Completed,
        ToolStatus::Proposed | ToolStatus::Asking => ToolCallStatus::Pending,
        ToolStatus::Running => ToolCallStatus::InProgress,
        _ => ToolCallStatus::Failed,
    };
    let change = entry.diff.as_ref().map(|diff| about.change(diff)).unwrap_or_default();
    let output = match &entry.output {
        Some(output) => about.output(output),
        None if entry.status == ToolStatus::Cancelled => Some(tool::text(tool::NO_RESULT)),
        None => None,
    };
    v1::ToolCall::new(names::call(place, &CallId::new(entry.call.as_str())), about.title.clone())
        .name(entry.tool.as_str().to_owned())
        .kind(about.kind)
        .status(status)
        .content(change.into_iter().chain(output).collect())
        .locations(about.locations)
        .raw_input(about.input)
}
