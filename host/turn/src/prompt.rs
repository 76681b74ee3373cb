//! Stage: puts together what is sent to the model.
//!
//! Stable things come first, so that a provider's prompt cache keeps its prefix: additions before the system prompt, the
//! system prompt, what rules add, additions after it. Additions around the user's words go into the message once, when it is new, and
//! stay there: history never changes behind the model's back.

use std::sync::Arc;

use flow::{Message, Part, Position, Prompt, PromptAddition, Role, ToolSpec};

/// The parts of a prompt that do not change within a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// Up to the host's own system prompt.
    system: Vec<String>,
    /// What the rules add: new when they were edited.
    rules: Vec<String>,
    system_suffix: Vec<String>,
    user_prefix: Vec<String>,
    user_suffix: Vec<String>,
    max_tokens: Option<u32>,
}

impl Frame {
    /// Additions are ordered by plugin id within a position, then as declared.
    pub(crate) fn new(system: &[String], additions: &[PromptAddition], max_tokens: Option<u32>) -> Self {
        let mut sorted: Vec<&PromptAddition> = additions.iter().collect();
        sorted.sort_by(|a, b| a.plugin.cmp(&b.plugin));
        let at = |position| sorted.iter().filter(move |one| one.position == position).map(|one| one.text.clone());
        Self {
            system: at(Position::SystemPrefix).chain(system.iter().cloned()).collect(),
            rules: Vec::new(),
            system_suffix: at(Position::SystemSuffix).collect(),
            user_prefix: at(Position::UserPrefix).collect(),
            user_suffix: at(Position::UserSuffix).collect(),
            max_tokens,
        }
    }

    /// What rules add to the system prompt, from the next request on.
    pub(crate) fn set_rules(&mut self, blocks: Vec<String>) {
        self.rules = blocks;
    }

    /// Puts the additions around the user's words: before the first user message of an input, after the last.
    pub(crate) fn around_input(&self, messages: &mut [Message]) {
        if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
            first.parts.splice(0..0, self.user_prefix.iter().cloned().map(Part::Text));
        }
        if let Some(last) = messages.iter_mut().rfind(|message| message.role == Role::User) {
            last.parts.extend(self.user_suffix.iter().cloned().map(Part::Text));
        }
    }

    /// Assembles one request from the conversation and the offered tools.
    pub(crate) fn prompt(&self, messages: Vec<Arc<Message>>, tools: Vec<ToolSpec>) -> Prompt {
        let system = [&self.system, &self.rules, &self.system_suffix].into_iter().flatten().cloned().collect();
        Prompt { system, messages, tools, max_tokens: self.max_tokens }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_stand_by_position_then_plugin_then_declaration() {
        let add = |plugin: &str, position, text: &str| PromptAddition {
            plugin: plugin.parse().expect("a plugin id"),
            position,
            text: text.into(),
        };
        let mut frame = Frame::new(
            &["base".into()],
            &[
                add("b", Position::SystemSuffix, "b1"),
                add("a", Position::SystemSuffix, "a1"),
                add("a", Position::SystemSuffix, "a2"),
                add("z", Position::SystemPrefix, "z1"),
                add("b", Position::UserPrefix, "before"),
                add("b", Position::UserSuffix, "after"),
            ],
            None,
        );
        assert_eq!(frame.prompt(Vec::new(), Vec::new()).system, ["z1", "base", "a1", "a2", "b1"]);
        frame.set_rules(vec!["r1".into(), "r2".into()]);
        assert_eq!(frame.prompt(Vec::new(), Vec::new()).system, ["z1", "base", "r1", "r2", "a1", "a2", "b1"]);
        let mut input = [Message::user("one"), Message::user("two")];
        frame.around_input(&mut input);
        assert_eq!((input[0].plain_text(), input[1].plain_text()), ("beforeone".into(), "twoafter".into()));
    }
}
