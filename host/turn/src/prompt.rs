//! Stage: puts together what is sent to the model.
//!
//! Stable things come first, so that a provider's prompt cache keeps its prefix: additions before the system prompt, the
//! system prompt, what rules add, additions after it. Additions around the user's words join the conversation once, with the
//! input: history never changes behind the model's back. They are messages of their own, hidden and with their origin, so
//! that nobody takes them for the user's words; providers join them with the user's message.

use std::sync::Arc;

use flow::{BlockOrigin, Message, Origin, Position, Prompt, PromptAddition, Role, SystemBlock, ToolSpec};

/// The parts of a prompt that do not change within a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The host's own system prompt.
    host: Vec<SystemBlock>,
    /// What the rules add; replaced when they were edited.
    rules: Vec<SystemBlock>,
    /// In the order in which they follow each other within a position.
    additions: Vec<PromptAddition>,
    max_tokens: Option<u32>,
}

impl Frame {
    /// Additions are ordered by plugin id within a position, then as declared.
    pub(crate) fn new(host: &[SystemBlock], additions: &[PromptAddition], max_tokens: Option<u32>) -> Self {
        let mut additions = additions.to_vec();
        additions.sort_by(|a, b| a.id.cmp(&b.id));
        Self { host: host.to_vec(), rules: Vec::new(), additions, max_tokens }
    }

    /// What rules add to the system prompt, from the next request on.
    pub(crate) fn set_rules(&mut self, blocks: Vec<SystemBlock>) {
        self.rules = blocks;
    }

    /// Puts the additions around the user's words: before the first user message of an input, after the last.
    pub(crate) fn around_input(&self, messages: &mut Vec<Message>) {
        let is_user = |message: &Message| message.role == Role::User;
        let Some(last) = messages.iter().rposition(is_user) else { return };
        let first = messages.iter().position(is_user).unwrap_or(last);
        let after = last + 1;
        messages.splice(after..after, self.at(Position::UserSuffix).map(added));
        messages.splice(first..first, self.at(Position::UserPrefix).map(added));
    }

    /// Assembles one request from the conversation and the offered tools.
    pub(crate) fn prompt(&self, messages: Vec<Arc<Message>>, tools: Vec<ToolSpec>) -> Prompt {
        let block = |one: &PromptAddition| SystemBlock::new(BlockOrigin::Addition(one.id.clone()), one.text.clone());
        let prefix = self.at(Position::SystemPrefix).map(block);
        let suffix = self.at(Position::SystemSuffix).map(block);
        let own = self.host.iter().chain(&self.rules).cloned();
        Prompt { system: prefix.chain(own).chain(suffix).collect(), messages, tools, max_tokens: self.max_tokens }
    }

    fn at(&self, position: Position) -> impl Iterator<Item = &PromptAddition> {
        self.additions.iter().filter(move |one| one.position == position)
    }
}

/// The message of an addition around the user's input.
fn added(one: &PromptAddition) -> Message {
    let message = Message::text(Role::User, Origin::Addition(one.id.clone()), one.text.clone());
    Message { hidden: true, ..message }
}

#[cfg(test)]
mod tests {
    use flow::AdditionId;

    use super::*;

    #[test]
    fn additions_are_ordered_by_position_then_plugin_then_declaration() {
        let add = |plugin: &str, index, position, text: &str| PromptAddition {
            id: AdditionId { plugin: plugin.parse().expect("a plugin id"), index },
            position,
            text: text.into(),
        };
        let mut frame = Frame::new(
            &["base".into()],
            &[
                add("b", 0, Position::SystemSuffix, "b1"),
                add("a", 0, Position::SystemSuffix, "a1"),
                add("a", 1, Position::SystemSuffix, "a2"),
                add("z", 0, Position::SystemPrefix, "z1"),
                add("b", 1, Position::UserPrefix, "before"),
                add("b", 2, Position::UserSuffix, "after"),
            ],
            None,
        );
        let texts = |frame: &Frame| -> Vec<String> {
            frame.prompt(Vec::new(), Vec::new()).system.into_iter().map(|block| block.text).collect()
        };
        assert_eq!(texts(&frame), ["z1", "base", "a1", "a2", "b1"]);
        let rule = |name: &str| SystemBlock::new(BlockOrigin::Rules(vec![name.into()]), name);
        frame.set_rules(vec![rule("r1"), rule("r2")]);
        assert_eq!(texts(&frame), ["z1", "base", "r1", "r2", "a1", "a2", "b1"]);
        let mut input = vec![Message::user("one"), Message::user("two")];
        frame.around_input(&mut input);
        let seen: Vec<(String, bool)> = input.iter().map(|one| (one.plain_text(), one.hidden)).collect();
        let expected = [("before", true), ("one", false), ("two", false), ("after", true)];
        assert_eq!(seen, expected.map(|(text, hidden)| (text.to_owned(), hidden)));
    }
}
