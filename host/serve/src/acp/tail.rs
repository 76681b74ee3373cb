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
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Last>,
    /// The following text is another paragraph, and not a part of the last text.
    is_parted: bool,
    /// The message whose code block was closed because something else is shown in between, and the text that reopens the block.
    cut: Option<(MessageId, String)>,
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
    /// The code block that the text is in.
    fence: Option<Fence>,
}

#[derive(Clone, Debug)]
struct Fence {
    /// The text that closes it.
    mark: String,
    /// The line that opens it.
    line: String,
}

impl Tail {
    pub(super) fn new(can: &Abilities) -> Self {
        Self { is_apart: can.retractions, state: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What follows is not below the last text: the user has sent a prompt.
    pub(super) fn reset(&self) {
        *self.state() = State::default();
    }

    /// Makes the next text another paragraph, which does not continue the text before it.
    pub(super) fn part(&self) {
        self.state().is_parted = !self.is_apart;
    }

    /// Returns the text to send before the next one, if there is any. It reopens a code block that was closed for something in between.
    pub(super) fn before(&self, update: &mut SessionUpdate) -> Option<SessionUpdate> {
        let is_message = matches!(update, SessionUpdate::AgentMessageChunk(_));
        let (SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk)) = update else {
            return None;
        };
        let ContentChunk { content: ContentBlock::Text(text), message_id, .. } = chunk else { return None };
        if self.is_apart || text.text.is_empty() {
            return None;
        }
        let mut state = self.state();
        let end = std::mem::take(&mut state.is_parted).then(|| state.end()).flatten();
        let cut = if is_message { state.cut.take() } else { None };
        if let Some((_, line)) = cut.filter(|(id, _)| Some(id) == message_id.as_ref()) {
            text.text.insert_str(0, &format!("{line}\n"));
        }
        end
    }

    /// An update was sent.
    pub(super) fn sent(&self, update: &SessionUpdate) {
        if self.is_apart {
            return;
        }
        let (chunk, is_thought) = match update {
            SessionUpdate::AgentMessageChunk(chunk) => (chunk, false),
            SessionUpdate::AgentThoughtChunk(chunk) => (chunk, true),
            SessionUpdate::UserMessageChunk(_) | SessionUpdate::ToolCall(_) | SessionUpdate::Plan(_) => {
                return self.reset();
            }
            _ => return,
        };
        let ContentChunk { content: ContentBlock::Text(text), message_id, .. } = chunk else { return };
        let mut state = self.state();
        let last = match &mut state.last {
            Some(last) if last.is_thought == is_thought => last,
            other => other.insert(Last { is_thought, ..Last::default() }),
        };
        last.id.clone_from(message_id);
        text.text.split_inclusive('\n').for_each(|part| last.take(part));
    }

    /// The update after which a text begins a paragraph of its own; `None`: it does already. It is of the message before: a client that keeps
    /// messages apart does not show it.
    pub(super) fn end(&self) -> Option<SessionUpdate> {
        if self.is_apart { None } else { self.state().end() }
    }
}

impl State {
    fn end(&mut self) -> Option<SessionUpdate> {
        let last = self.last.as_ref()?;
        let (end, cut) = last.end()?;
        let id = last.id.clone()?;
        if let Some(line) = cut.filter(|_| !last.is_thought) {
            self.cut = Some((id.clone(), line));
        }
        let end = chunk(&end, id);
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
            (Some((mark, "")), Some(open)) if mark.starts_with(&open.mark) => None,
            (_, Some(open)) => Some(open),
            (Some((mark, _)), None) => Some(Fence { mark: mark.to_owned(), line: opening(&line, mark) }),
            (None, None) => None,
        };
    }

    /// Returns the text that ends the paragraph and, inside a code block, the line that reopens the block.
    fn end(&self) -> Option<(String, Option<String>)> {
        // A fence that is being written, as the last line of a block is.
        let mut after = Self { fence: self.fence.clone(), ..Self::default() };
        after.take(&format!("{}\n", self.line));
        let line = if self.line.is_empty() { "" } else { "\n" };
        match after.fence {
            Some(fence) => Some((format!("{line}{}\n\n", fence.mark), Some(fence.line))),
            None if self.line.trim().is_empty() && self.is_parted => None,
            None => Some((format!("{line}\n"), None)),
        }
    }
}

/// Returns the line that opens a code block. Of a long one the marks are enough.
fn opening(line: &str, mark: &str) -> String {
    if line.len() > MAX_OPENING { mark.to_owned() } else { line.to_owned() }
}

/// The maximum length of a line that reopens a code block, in bytes.
const MAX_OPENING: usize = 256;

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

    /// Returns everything that a client shows of a session, one text after the other.
    fn shown(steps: &[(&str, &str)], aware: bool) -> String {
        let tail = Tail::new(&Abilities { retractions: aware, ..Abilities::default() });
        let mut shown = String::new();
        let mut send = |update: SessionUpdate| {
            tail.sent(&update);
            let (SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk)) = update else {
                return;
            };
            let ContentBlock::Text(text) = chunk.content else { return };
            shown.push_str(&text.text);
        };
        for (what, text) in steps {
            match *what {
                "says" => {
                    tail.end().into_iter().for_each(&mut send);
                    send(SessionUpdate::AgentMessageChunk(chunk(text, MessageId::new("host"))));
                    tail.part();
                }
                "notice" => {
                    tail.end().into_iter().for_each(&mut send);
                    send(SessionUpdate::AgentThoughtChunk(chunk(text, MessageId::new("notice"))));
                }
                id => {
                    let mut update = SessionUpdate::AgentMessageChunk(chunk(text, MessageId::new(id)));
                    tail.before(&mut update).into_iter().for_each(&mut send);
                    send(update);
                }
            }
        }
        shown
    }

    #[test]
    fn a_code_block_continues_after_what_is_shown_in_between() {
        let (open, rest) = (("1", "x\n```rust\nlet a;\n"), ("1", "let b;\n```\n"));
        let ended = "x\n```rust\nlet a;\n```\n\n";
        for (between, shown_between) in [(("notice", "warning: w\n"), "warning: w\n"), (("says", "said"), "said\n\n")] {
            let all = format!("{ended}{shown_between}```rust\nlet b;\n```\n");
            assert_eq!(shown(&[open, between, ("1", ""), rest], false), all);
            // Twice, and each one between blocks.
            let twice = shown(&[open, between, ("1", "let c;\n"), between, rest], false);
            assert_eq!(twice.matches("```rust\n").count(), 3, "{twice}");
            // Another message begins a new text.
            assert!(shown(&[open, between, ("2", "y")], false).ends_with(&format!("{shown_between}y")));
            // A client that separates messages gets no additional text.
            let plain = [open.1, between.1, rest.1].concat();
            assert_eq!(shown(&[open, between, rest], true), plain);
        }
        let long = format!("```{}\nx\n", "y".repeat(300));
        assert!(shown(&[("1", &long), ("notice", "w\n"), ("1", "z")], false).ends_with("w\n```\nz"));
    }

    #[test]
    fn what_follows_the_hosts_words_is_another_paragraph() {
        assert_eq!(shown(&[("1", "a"), ("says", "b"), ("1", "c"), ("1", "d")], false), "a\n\nb\n\ncd");
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
