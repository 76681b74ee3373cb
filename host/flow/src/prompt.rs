//! What is sent to a model in one attempt, and the origin of each part of it.

use std::fmt;
use std::sync::Arc;

use crate::{Condition, Message, PluginId, Position, ToolSpec};

/// One request to a model, before any provider turns it into its wire format.
///
/// Every part names its origin: a block of the system prompt in [`SystemBlock::origin`], a message in
/// [`Message::origin`]. Providers read the text only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Blocks of the system prompt, stable ones first, so that a provider's prompt cache keeps its prefix.
    pub system: Vec<SystemBlock>,
    /// The conversation, oldest first. Shared: an attempt copies no history.
    pub messages: Vec<Arc<Message>>,
    /// Tools offered to the model, in the order to list them.
    pub tools: Vec<ToolSpec>,
    /// The most tokens the answer may have; none = the provider's own default.
    pub max_tokens: Option<u32>,
}

/// One block of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemBlock {
    /// Whose text it is.
    pub origin: BlockOrigin,
    /// The text, as the model receives it.
    pub text: String,
}

/// The origin of a block of the system prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockOrigin {
    /// The host: the operator's system prompt, or the default.
    Host,
    /// Rules, by name: one whose body always applies, or all that the rulebook lists.
    Rules(Vec<String>),
    /// An addition that a plugin's manifest declares.
    Addition(AdditionId),
    /// The tool guidance of these plugins, which is one block.
    Guidance(Vec<PluginId>),
}

/// Names an addition to the prompt: a plugin, and a position in its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AdditionId {
    /// The plugin that declares it.
    pub plugin: PluginId,
    /// Its index among the additions that the plugin declares, from 0.
    pub index: usize,
}

/// A text that a plugin has the model read, as people are shown it before it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    /// Where it goes and under which conditions, such as `system_suffix when tag_present = "plan"`; of a rule or a tool, which one.
    pub place: String,
    /// The text, as the model receives it.
    pub text: String,
}

impl PromptText {
    /// A text at a place.
    pub fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }
}

/// All that a plugin has the model read, shown because it is new in the workspace or has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionPrompt {
    /// The plugin whose texts these are.
    pub plugin: PluginId,
    /// Another text of the plugin was shown in the workspace before.
    pub changed: bool,
    /// The texts, in the order in which the plugin declares them.
    pub texts: Vec<PromptText>,
    /// Their digest, 64 hexadecimal digits.
    pub digest: String,
}

impl SystemBlock {
    /// Creates a block with this origin.
    pub fn new(origin: BlockOrigin, text: impl Into<String>) -> Self {
        Self { origin, text: text.into() }
    }
}

/// Text of the host.
impl From<&str> for SystemBlock {
    fn from(text: &str) -> Self {
        Self::new(BlockOrigin::Host, text)
    }
}

impl fmt::Display for AdditionId {
    /// Counts from 1, as a reader of the manifest does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "prompt addition {} of plugin `{}`", self.index.saturating_add(1), self.plugin)
    }
}

impl fmt::Display for BlockOrigin {
    /// Names the origin in a few words, such as ``rule `house` ``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Host => f.write_str("host"),
            Self::Rules(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                write!(f, "{} {}", if names.len() == 1 { "rule" } else { "rules" }, quoted(names))
            }
            Self::Addition(id) => id.fmt(f),
            Self::Guidance(plugins) => {
                write!(f, "tool guidance of {}", quoted(plugins.iter().map(PluginId::as_str).collect()))
            }
        }
    }
}

/// Text that a plugin's manifest adds to the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptAddition {
    /// Whose it is.
    pub id: AdditionId,
    /// Where it goes.
    pub position: Position,
    /// The text, as declared.
    pub text: String,
    /// The text is added where all of these pass; without conditions, always.
    pub when: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_names_its_author() {
        let plugin: PluginId = "a".parse().unwrap_or_else(|error| panic!("{error}"));
        for (origin, expected) in [
            (BlockOrigin::Host, "host"),
            (BlockOrigin::Rules(vec!["r".into()]), "rule `r`"),
            (BlockOrigin::Rules(vec!["r".into(), "s".into()]), "rules `r`, `s`"),
            (BlockOrigin::Addition(AdditionId { plugin: plugin.clone(), index: 1 }), "prompt addition 2 of plugin `a`"),
            (BlockOrigin::Guidance(vec![plugin]), "tool guidance of `a`"),
        ] {
            assert_eq!(origin.to_string(), expected);
        }
    }
}
