//! A rule as typed: the keys of a rule file's front matter and of `[[rule]]` in a plugin's manifest.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::{ContextMode, InterruptMode, RepeatMode};

/// A rule as typed. Unknown keys are refused; [`Rule::from_spec`](crate::Rule::from_spec) makes it usable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RuleSpec {
    /// The rule's name. Required in a manifest; a rule file is named by its file name.
    pub name: Option<String>,
    /// The reminder. Required in a manifest; in a rule file it is what follows the front matter.
    pub body: Option<String>,
    /// Regular expressions; one of them must match. A file glob such as `*.rs` means edits and writes of such files.
    pub condition: Strings,
    /// Old name of `condition`, used where `condition` is absent.
    pub ttsr_trigger: Strings,
    /// Older name of `condition`, used where both others are absent.
    #[serde(rename = "ttsrTrigger")]
    pub ttsr_trigger_old: Strings,
    /// All of these must match too, in the same stream.
    pub all: Strings,
    /// The rule does not fire when one of these has matched in the same stream.
    pub unless: Strings,
    /// Which streams: `text`, `thinking`, `tool`, `tool:NAME`, `tool:NAME(GLOB)`, `tool(GLOB)`, `NAME`, `NAME(GLOB)`.
    pub scope: Strings,
    /// The call must be about a file that matches one of these.
    pub globs: Strings,
    /// For tools: the arguments to look at, such as `content`, `edits[].new_text`, `command`; `commands` is what a call of `shell` runs.
    pub field: Strings,
    /// Names of agents it watches, as globs; none = all.
    pub agents: Strings,
    /// Overrides the setting `interrupt_mode`.
    #[serde(alias = "interruptMode", alias = "interrupt_mode")]
    pub interrupt: Option<InterruptMode>,
    /// Overrides the setting `repeat_mode`.
    #[serde(alias = "repeatMode", alias = "repeat_mode")]
    pub repeat: Option<RepeatMode>,
    /// Overrides the setting `repeat_gap`.
    #[serde(alias = "repeatGap", alias = "repeat_gap")]
    pub gap: Option<u32>,
    /// Overrides the setting `context_mode`.
    #[serde(alias = "contextMode", alias = "context_mode")]
    pub context: Option<ContextMode>,
    /// What a match does; without it, `interrupt` decides between interrupting and reminding.
    pub action: Option<RuleAction>,
    /// The most interrupts of this rule in one turn.
    #[serde(alias = "maxInterrupts")]
    pub max_interrupts: Option<u32>,
    /// One line for people, and for the model where the rule has no condition.
    pub description: Option<String>,
    /// What the model is told instead of the body when the rule fires, at most 1,024 bytes.
    pub reminder: Option<String>,
    /// For a rule without condition: its body joins the system prompt.
    #[serde(alias = "alwaysApply")]
    pub always_apply: bool,
    /// For a rule without condition: it is in the rulebook also without a description, to be read when the user names it. Files
    /// of other hosts say so; it is no key of its own.
    #[serde(skip)]
    pub on_request: bool,
    /// `false` leaves the rule out.
    pub enabled: Option<bool>,
    /// `true`: the host does not run without this rule. It refuses to start, or to begin a turn, where the rule cannot be
    /// used as written.
    pub required: bool,
    /// `true`: what the rule matches is a secret. It is shown nowhere and kept nowhere: every match is acted on (`repeat` is
    /// `always`), none is only reminded of, and after the budget of interrupts a match ends the turn.
    pub secret: bool,
    /// Differences that the conditions do not see: `invisible`, `width`, `compose`, `case`.
    pub fold: Strings,
}

/// What a rule asks for when it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RuleAction {
    /// The model is told afterwards; never an interrupt.
    Remind,
    /// Interrupt, on the streams that the interrupt mode allows; elsewhere remind.
    Interrupt,
    /// The tool call does not run. In prose this is `interrupt`.
    Block,
    /// The turn ends.
    Stop,
}

/// A string or a list of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Strings(pub Vec<String>);

impl Strings {
    /// Whether nothing was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries trimmed, without empty ones and repetitions, in order.
    pub(crate) fn clean(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::with_capacity(self.0.len());
        for entry in self.0.iter().map(|s| s.trim()).filter(|s| !s.is_empty()) {
            if !out.iter().any(|known| known == entry) {
                out.push(entry.to_owned());
            }
        }
        out
    }
}

impl<S: Into<String>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(entries: I) -> Self {
        Self(entries.into_iter().map(Into::into).collect())
    }
}

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Strings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E>(self, one: &str) -> Result<Strings, E> {
                Ok(Strings(vec![one.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut many: A) -> Result<Strings, A::Error> {
                let mut out = Vec::new();
                while let Some(entry) = many.next_element()? {
                    out.push(entry);
                }
                Ok(Strings(out))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Strings {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Strings".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A string or a list of strings.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        })
    }
}
