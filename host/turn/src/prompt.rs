//! Stage: puts together what is sent to the model.
//!
//! Stable things come first, so that a provider's prompt cache keeps its prefix: additions before the system prompt, the
//! system prompt, what rules add, additions after it. Additions around the user's words join the conversation once, with the
//! input: history never changes behind the model's back. They are messages of their own, hidden and with their origin, so
//! that nobody takes them for the user's words; providers join them with the user's message.
//!
//! The conditions of additions to the system prompt are evaluated when a step begins, so all attempts of a step are asked
//! with the same additions; those of additions around the input are evaluated when it joins the conversation.

use std::sync::Arc;

use flow::{BlockOrigin, Message, Origin, Position, Prompt, PromptAddition, Role, SystemBlock, ToolSpec};
use guard::additions::Facts;

/// The parts of a prompt that are not the conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// The host's own system prompt.
    host: Vec<SystemBlock>,
    /// What the rules add; replaced when they were edited.
    rules: Vec<SystemBlock>,
    /// In the order in which they follow each other within a position.
    additions: Vec<Addition>,
    max_tokens: Option<u32>,
}

/// An addition with what is known of its conditions.
#[derive(Clone, Debug)]
struct Addition {
    own: guard::additions::Addition,
    /// Its conditions passed when they were last evaluated.
    passed: bool,
    /// It was reported in this turn that they cannot be evaluated.
    reported: bool,
}

impl Frame {
    pub(crate) fn new(host: &[SystemBlock], additions: &[PromptAddition], max_tokens: Option<u32>) -> Self {
        let additions = guard::additions::Addition::in_order(additions).into_iter().map(Addition::new).collect();
        Self { host: host.to_vec(), rules: Vec::new(), additions, max_tokens }
    }

    /// What rules add to the system prompt, from the next request on.
    pub(crate) fn set_rules(&mut self, blocks: Vec<SystemBlock>) {
        self.rules = blocks;
    }

    /// Whether a condition looks at the texts of the conversation.
    pub(crate) fn looks_at_texts(&self) -> bool {
        self.additions.iter().any(|one| one.own.looks_at_texts())
    }

    /// A turn begins: what cannot be evaluated is reported once in it.
    pub(crate) fn begin_turn(&mut self) {
        self.additions.iter_mut().for_each(|one| one.reported = false);
    }

    /// Decides which additions the system prompt has, from the next request on. Returns what is to be reported.
    pub(crate) fn choose(&mut self, facts: &Facts<'_>) -> Vec<String> {
        let of_system =
            |one: &&mut Addition| matches!(one.own.position, Position::SystemPrefix | Position::SystemSuffix);
        self.additions.iter_mut().filter(of_system).filter_map(|one| one.evaluate(facts)).collect()
    }

    /// Puts the additions around the user's words: before the first user message of an input, after the last. Returns what
    /// is to be reported.
    pub(crate) fn around_input(&mut self, messages: &mut Vec<Message>, facts: &Facts<'_>) -> Vec<String> {
        let is_user = |message: &Message| message.role == Role::User;
        let Some(last) = messages.iter().rposition(is_user) else { return Vec::new() };
        let first = messages.iter().position(is_user).unwrap_or(last);
        let of_input = |one: &&mut Addition| matches!(one.own.position, Position::UserPrefix | Position::UserSuffix);
        let reported = self.additions.iter_mut().filter(of_input).filter_map(|one| one.evaluate(facts)).collect();
        let after = last + 1;
        messages.splice(after..after, self.passed(Position::UserSuffix).map(Addition::message));
        messages.splice(first..first, self.passed(Position::UserPrefix).map(Addition::message));
        reported
    }

    /// Assembles one request from the conversation and the offered tools.
    pub(crate) fn prompt(&self, messages: Vec<Arc<Message>>, tools: Vec<ToolSpec>) -> Prompt {
        Prompt { system: self.system().collect(), messages, tools, max_tokens: self.max_tokens }
    }

    /// The blocks of the system prompt of the next request.
    fn system(&self) -> impl Iterator<Item = SystemBlock> {
        let prefix = self.passed(Position::SystemPrefix).map(Addition::block);
        let suffix = self.passed(Position::SystemSuffix).map(Addition::block);
        prefix.chain(self.host.iter().chain(&self.rules).cloned()).chain(suffix)
    }

    /// The texts of the system prompt of the next request.
    pub(crate) fn system_texts(&self) -> impl Iterator<Item = &str> {
        let texts = |position| self.passed(position).map(|addition| addition.own.text.as_str());
        let own = self.host.iter().chain(&self.rules).map(|block| &*block.text);
        texts(Position::SystemPrefix).chain(own).chain(texts(Position::SystemSuffix))
    }

    fn passed(&self, position: Position) -> impl Iterator<Item = &Addition> {
        self.additions.iter().filter(move |one| one.passed && one.own.position == position)
    }
}

impl Addition {
    fn new(own: guard::additions::Addition) -> Self {
        let passed = !own.is_conditional();
        Self { own, passed, reported: false }
    }

    /// Evaluates its conditions. Returns why that is not possible, where it was not reported in this turn.
    fn evaluate(&mut self, facts: &Facts<'_>) -> Option<String> {
        let passes = self.own.passes(facts);
        self.passed = passes == Ok(true);
        let why = passes.err()?;
        (!std::mem::replace(&mut self.reported, true)).then_some(why)
    }

    fn block(&self) -> SystemBlock {
        SystemBlock::new(BlockOrigin::Addition(self.own.id.clone()), self.own.text.clone())
    }

    /// Its message, where it goes around the user's input.
    fn message(&self) -> Message {
        let message = Message::text(Role::User, Origin::Addition(self.own.id.clone()), self.own.text.clone());
        Message { hidden: true, ..message }
    }
}

#[cfg(test)]
mod tests;
