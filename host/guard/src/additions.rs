//! The additions of plugins to a prompt: their order, and whether their conditions pass.
//!
//! A condition that cannot be evaluated does not pass, and the reason is reported: an addition that is silently left out
//! for ever would be a callback that silently does not run.

use std::cell::OnceCell;
use std::sync::Arc;

use flow::{
    AdditionId, Condition, ContextMatch, Message, PluginId, Position, PromptAddition, Role, StateTest, TagPattern,
    TurnRange,
};
use rules::Glob;

use crate::Caller;

/// An addition whose conditions can be evaluated.
#[derive(Clone, Debug)]
pub struct Addition {
    /// The plugin, and the index of the addition in its manifest.
    pub id: AdditionId,
    /// Its position in the prompt.
    pub position: Position,
    /// The text, as declared.
    pub text: String,
    /// The text is added where all of these pass.
    tests: Vec<Test>,
}

impl Addition {
    /// Returns additions in the order in which they follow each other within a position. Those without conditions come first, so that
    /// what can change follows what cannot and a cached prefix stays valid; both groups are ordered by plugin id, then as declared.
    pub fn in_order(additions: &[PromptAddition]) -> Vec<Self> {
        let own = |from: &PromptAddition| Self {
            id: from.id.clone(),
            position: from.position,
            text: from.text.clone(),
            tests: from.when.iter().map(Test::new).collect(),
        };
        let mut additions: Vec<Self> = additions.iter().map(own).collect();
        additions.sort_by(|a, b| (a.is_conditional(), &a.id).cmp(&(b.is_conditional(), &b.id)));
        additions
    }

    /// Returns whether it has conditions.
    pub fn is_conditional(&self) -> bool {
        !self.tests.is_empty()
    }

    /// Returns whether a condition looks at the texts of the conversation.
    pub fn looks_at_texts(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Tag(_)))
    }

    /// Returns whether all conditions pass. The first one that does not pass is the last one that is evaluated.
    ///
    /// # Errors
    /// A condition cannot be evaluated: the addition and the reason, as a sentence for the user.
    pub fn passes(&self, facts: &Facts<'_>) -> Result<bool, String> {
        let mut tests = self.tests.iter().map(|test| test.passes(&self.id.plugin, facts));
        match tests.find(|passed| *passed != Ok(true)) {
            None => Ok(true),
            Some(Ok(_)) => Ok(false),
            Some(Err(why)) => {
                Err(format!("{} is left out, because a condition of it cannot be evaluated: {why}", self.id))
            }
        }
    }
}

/// The input of conditions.
pub struct Facts<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// The name of the agent.
    pub agent: &'a str,
    /// Absolute; empty where the session has none.
    pub workspace: &'a str,
    /// The number of the turn, from 1.
    pub turn: u32,
    /// Empty where no condition is about them.
    pub texts: Texts,
    /// Reads the state of a plugin.
    pub state: &'a dyn State,
}

/// The texts in which tags are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// The messages of the last user input.
    input: Vec<String>,
    /// The last answer that has text.
    answer: Option<String>,
    /// The tags that open in them, found when the first condition asks: the texts are read once, however many ask.
    tags: OnceCell<Vec<String>>,
}

/// Reads the state of plugins, as [`flow::ports::Extensions::state_value`].
pub trait State {
    /// Returns a stored value; `None` if there is none.
    ///
    /// # Errors
    /// The state cannot be read: the cause.
    fn value(&self, plugin: &PluginId, key: &str) -> Result<Option<Vec<u8>>, String>;
}

impl State for Caller {
    fn value(&self, plugin: &PluginId, key: &str) -> Result<Option<Vec<u8>>, String> {
        match self.registrations().iter().position(|one| one.plugin == *plugin) {
            Some(index) => self.extensions().state_value(index, key),
            None => Err("the plugin has no component, and therefore no state".to_owned()),
        }
    }
}

impl std::fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { model, agent, workspace, turn, .. } = self;
        f.debug_struct("Facts")
            .field("model", model)
            .field("agent", agent)
            .field("workspace", workspace)
            .field("turn", turn)
            .finish_non_exhaustive()
    }
}

impl Texts {
    /// Returns the texts of an input and of the answer before it.
    pub fn new(input: Vec<String>, answer: Option<String>) -> Self {
        Self { input, answer, ..Self::default() }
    }

    /// Those of a conversation: the last messages of the user that nothing but hidden messages separates, and the last answer
    /// with text. Hidden messages are not looked at, so an addition cannot be its own condition.
    pub fn of(history: &[Arc<Message>]) -> Self {
        let visible = || history.iter().rev().filter(|message| !message.hidden);
        let before = visible().skip_while(|message| message.role != Role::User);
        let input = before.take_while(|message| message.role == Role::User).map(|message| message.plain_text());
        Self { input: input.collect(), ..Self::answered(history) }
    }

    /// Those of an input that is about to join a conversation.
    pub fn with_input(history: &[Arc<Message>], input: &[Message]) -> Self {
        let own = input.iter().filter(|message| message.role == Role::User && !message.hidden);
        Self { input: own.map(Message::plain_text).collect(), ..Self::answered(history) }
    }

    fn answered(history: &[Arc<Message>]) -> Self {
        let answers = history.iter().rev().filter(|message| message.role == Role::Assistant && !message.hidden);
        let answer = answers.map(|message| message.plain_text()).find(|text| !text.trim().is_empty());
        Self { answer, ..Self::default() }
    }

    fn have(&self, tag: &TagPattern) -> bool {
        let texts = || self.input.iter().chain(&self.answer);
        let tags = self.tags.get_or_init(|| texts().flat_map(|text| crate::opened_tags(text)).collect());
        tags.iter().any(|name| tag.matches(name))
    }
}

/// A condition, ready to be evaluated.
#[derive(Clone, Debug)]
enum Test {
    Tag(TagPattern),
    State { key: String, test: StateTest },
    Context(Box<Context>),
}

/// [`ContextMatch`] with compiled globs.
#[derive(Clone, Debug)]
struct Context {
    model: Option<Wanted>,
    agent: Option<Wanted>,
    workspace: Option<Wanted>,
    turn: Option<TurnRange>,
}

/// A glob, or why it is none. Globs of manifests are checked when they are read; those of an embedder are not.
type Wanted = Result<Glob, String>;

impl Test {
    fn new(condition: &Condition) -> Self {
        match condition {
            Condition::TagPresent(tag) => Self::Tag(tag.clone()),
            Condition::StateValue { key, test } => Self::State { key: key.clone(), test: test.clone() },
            Condition::ContextMatch(wanted) => Self::Context(Box::new(Context::new(wanted))),
        }
    }

    /// Whether it passes for an addition of `plugin`.
    ///
    /// # Errors
    /// It cannot be evaluated; the string says why.
    fn passes(&self, plugin: &PluginId, facts: &Facts<'_>) -> Result<bool, String> {
        match self {
            Self::Tag(tag) => Ok(facts.texts.have(tag)),
            Self::Context(context) => context.passes(facts),
            Self::State { key, test } => {
                let stored = facts.state.value(plugin, key);
                let stored =
                    stored.map_err(|why| format!("its state `{}` cannot be read: {why}", key.escape_debug()))?;
                Ok(test.passes(stored.as_deref()))
            }
        }
    }
}

impl Context {
    fn new(wanted: &ContextMatch) -> Self {
        // As in rules, letter case does not count in names; it does in paths.
        let name = |glob: &Option<String>| glob.as_ref().map(|glob| Glob::new(&glob.to_lowercase()));
        Self {
            model: name(&wanted.model),
            agent: name(&wanted.agent),
            workspace: wanted.workspace.as_ref().map(|glob| Glob::new(glob)),
            turn: wanted.turn,
        }
    }

    fn passes(&self, facts: &Facts<'_>) -> Result<bool, String> {
        let fits = |wanted: &Option<Wanted>, value: &str| match wanted {
            None => Ok(true),
            Some(Ok(glob)) => Ok(!value.is_empty() && glob.matches(value, "")),
            Some(Err(why)) => Err(why.clone()),
        };
        Ok(fits(&self.model, &facts.model.to_lowercase())?
            && fits(&self.agent, &facts.agent.to_lowercase())?
            && fits(&self.workspace, facts.workspace)?
            && self.turn.is_none_or(|turns| turns.contains(facts.turn)))
    }
}

#[cfg(test)]
mod tests {
    use flow::{CallId, Origin, Part, ToolCall};

    use super::*;

    fn texts(input: &[&str], answer: Option<&str>) -> Texts {
        let input = input.iter().map(|text| (*text).to_owned()).collect();
        Texts::new(input, answer.map(str::to_owned))
    }

    fn message(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message::text(role, Origin::Host, text))
    }

    fn hidden(text: &str) -> Arc<Message> {
        Arc::new(Message { hidden: true, ..Message::text(Role::User, Origin::Host, text) })
    }

    #[test]
    fn the_last_input_and_the_last_answer_are_found() {
        let call = Part::ToolCall(ToolCall { id: CallId::new("1"), name: "read".into(), arguments: "{}".into() });
        let calling =
            Arc::new(Message { role: Role::Assistant, origin: Origin::Model, parts: vec![call], hidden: false });
        let user = |text| message(Role::User, text);
        let answer = |text| message(Role::Assistant, text);
        for (history, expected) in [
            (vec![], texts(&[], None)),
            (vec![user("a")], texts(&["a"], None)),
            (vec![user("a"), user("b")], texts(&["b", "a"], None)),
            (vec![user("a"), answer("b"), user("c")], texts(&["c"], Some("b"))),
            (vec![user("a"), answer("b"), hidden("c")], texts(&["a"], Some("b"))),
            (vec![user("a"), hidden("c"), user("b")], texts(&["b", "a"], None)),
            (vec![user("a"), answer("b"), calling, message(Role::Tool, "c")], texts(&["a"], Some("b"))),
            (vec![user("a"), answer("b"), message(Role::Tool, "c"), user("d")], texts(&["d"], Some("b"))),
        ] {
            assert_eq!(Texts::of(&history), expected, "{history:?}");
        }
    }

    #[test]
    fn an_input_is_looked_at_before_it_joins_the_conversation() {
        let history = [message(Role::User, "a"), message(Role::Assistant, "b")];
        let input = [Message::user("c"), Message { hidden: true, ..Message::user("d") }];
        assert_eq!(Texts::with_input(&history, &input), texts(&["c"], Some("b")));
    }
}
