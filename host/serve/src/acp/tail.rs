//! The end of what a client shows of a session. Many clients append the text of all messages to one another, whatever their ids: a text that
//! does not continue the one before it begins a paragraph of its own there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::Abilities;
use super::sdk::v1::{ContentBlock, ContentChunk, MessageId, SessionUpdate};
use super::updates::chunk;

/// The last text that a client was sent. A clone is the same one.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    /// The client keeps messages apart by their ids.
    is_apart: bool,
    last: Arc<Mutex<Option<Last>>>,
}

/// The text since the last update that a client shows as something else than text.
#[derive(Debug)]
struct Last {
    id: Option<MessageId>,
    is_thought: bool,
    /// The line that has no end yet.
    line: String,
    /// The line before it was empty.
    is_parted: bool,
    /// What ends the code block that the text is in.
    fence: Option<String>,
}

impl Tail {
    pub(super) fn new(can: &Abilities) -> Self {
        Self { is_apart: can.retractions, last: Arc::default() }
    }

    fn last(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What follows is not below the last text: the user has sent a prompt.
    pub(super) fn reset(&self) {
        *self.last() = None;
    }

    /// An update was sent.
    pub(super) fn sent(&self, update: &SessionUpdate) {
        let (chunk, is_thought) = match update {
            SessionUpdate::AgentMessageChunk(chunk) => (chunk, false),
            SessionUpdate::AgentThoughtChunk(chunk) => (chunk, true),
            SessionUpdate::UserMessageChunk(_) | SessionUpdate::ToolCall(_) | SessionUpdate::Plan(_) => {
                return self.reset();
            }
            _ => return,
        };
        let ContentChunk { content: ContentBlock::Text(text), message_id, .. } = chunk else { return };
        let mut last = self.last();
        let last = match &mut *last {
            Some(last) if last.is_thought == is_thought => last,
            other => other.insert(Last { is_thought, ..Last::default() }),
        };
        last.id.clone_from(message_id);
        text.text.split_inclusive('\n').for_each(|part| last.take(part));
    }

    /// The update after which a text begins a paragraph of its own; `None`: it does already. It is of the message before: a client that keeps
    /// messages apart does not show it.
    pub(super) fn end(&self) -> Option<SessionUpdate> {
        if self.is_apart {
            return None;
        }
        let last = self.last();
        let last = last.as_ref()?;
        let end = chunk(&last.end()?, last.id.clone()?);
        Some(if last.is_thought {
            SessionUpdate::AgentThoughtChunk(end)
        } else {
            SessionUpdate::AgentMessageChunk(end)
        })
    }
}

impl Default for Last {
    fn default() -> Self {
        Self { id: None, is_thought: false, line: String::new(), is_parted: true, fence: None }
    }
}

impl Last {
    /// A part of a line, or the rest of one with its end.
    fn take(&mut self, part: &str) {
        self.line.push_str(part.trim_end_matches('\n'));
        if !part.ends_with('\n') {
            return;
        }
        let line = std::mem::take(&mut self.line);
        self.is_parted = line.trim().is_empty();
        self.fence = match (fence(&line), self.fence.take()) {
            (Some((mark, "")), Some(open)) if mark.starts_with(&open) => None,
            (_, Some(open)) => Some(open),
            (found, None) => found.map(|(mark, _)| mark.to_owned()),
        };
    }

    fn end(&self) -> Option<String> {
        // A fence that is being written, as the last line of a block is.
        let mut after = Self { fence: self.fence.clone(), ..Self::default() };
        after.take(&format!("{}\n", self.line));
        let line = if self.line.is_empty() { "" } else { "\n" };
        match after.fence {
            Some(fence) => Some(format!("{line}{fence}\n\n")),
            None if self.line.trim().is_empty() && self.is_parted => None,
            None => Some(format!("{line}\n")),
        }
    }
}

/// The marks that begin or end a code block of Markdown, and what follows them in their line.
fn fence(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start_matches(' ');
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~') && line.len() - text.len() < 4)?;
    let count = text.chars().take_while(|next| *next == mark).count();
    let (marks, rest) = text.split_at_checked(count)?;
    (count >= 3 && !(mark == '`' && rest.contains('`'))).then_some((marks, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(texts: &[&str], aware: bool) -> Option<String> {
        let tail = Tail::new(&Abilities { retractions: aware, ..Abilities::default() });
        for text in texts {
            tail.sent(&SessionUpdate::AgentMessageChunk(chunk(text, MessageId::new("1"))));
        }
        let Some(SessionUpdate::AgentMessageChunk(chunk)) = tail.end() else { return None };
        let ContentBlock::Text(text) = chunk.content else { return None };
        Some(text.text)
    }

    #[test]
    fn what_ends_a_paragraph_depends_on_what_is_open() {
        for (texts, expected) in [
            (&[][..], None),
            (&[""], None),
            (&["a"], Some("\n\n")),
            (&["a", "\n"], Some("\n")),
            (&["a\n", "\n"], None),
            (&["a\n\n", "  "], None),
            (&["a\n\nb"], Some("\n\n")),
            (&["``", "`rust\nlet x"], Some("\n```\n\n")),
            (&["```\nx\n"], Some("```\n\n")),
            (&["```\nx\n``", "`"], Some("\n\n")),
            (&["```\nx\n```\n"], Some("\n")),
            (&["````\n```\n"], Some("````\n\n")),
            (&["~~~ a\n```\nx"], Some("\n~~~\n\n")),
            (&["    ```\nx\n"], Some("\n")),
            (&["a ```b``` c"], Some("\n\n")),
            (&["```a``` b\nc\n"], Some("\n")),
        ] {
            assert_eq!(end(texts, false).as_deref(), expected, "{texts:?}");
            assert_eq!(end(texts, true), None, "{texts:?}");
        }
    }

    #[test]
    fn a_call_or_another_kind_of_text_is_between_paragraphs() {
        let tail = Tail::new(&Abilities::default());
        let text = || chunk("a", MessageId::new("1"));
        tail.sent(&SessionUpdate::AgentThoughtChunk(text()));
        assert!(matches!(tail.end(), Some(SessionUpdate::AgentThoughtChunk(_))));
        tail.sent(&SessionUpdate::AgentMessageChunk(text()));
        assert!(matches!(tail.end(), Some(SessionUpdate::AgentMessageChunk(_))));
        tail.sent(&SessionUpdate::UserMessageChunk(text()));
        assert_eq!(tail.end(), None);
    }
}
