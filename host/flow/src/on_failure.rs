//! What happens to a text or an input when the extension that was to check it did not: the policy, who decided it, and the
//! marker that replaces what is withheld.

use crate::{Callback, CallbackKind, DEFAULT_PRIORITY, KeptText, OutputMode, PluginId};

/// What happens when a callback fails, is skipped, or returns something that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The chain continues with the value that the callback was given.
    #[default]
    Skip,
    /// `on_plain_text`, `on_tag`, `on_llm_output`, `on_tool_result`: the [`withheld`] marker replaces what was given, which is never
    /// shown.
    Withhold,
    /// `on_input_messages`: the turn ends before the model is asked. `on_tool_call`: the call does not run.
    Reject,
}

impl OnFailure {
    /// The policy's name on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Withhold => "withhold",
            Self::Reject => "reject",
        }
    }

    /// The policy under which this callback fails closed. `None` for a callback that can withhold nothing: what an observer
    /// of outputs gets has been shown, and what `ttsr_triggered` gets has happened.
    pub fn closed(callback: &Callback) -> Option<Self> {
        match callback {
            Callback::InputMessages | Callback::ToolCall => Some(Self::Reject),
            Callback::PlainText(_)
            | Callback::Tag(_)
            | Callback::LlmOutput(OutputMode::Rewrite)
            | Callback::ToolResult => Some(Self::Withhold),
            Callback::LlmOutput(OutputMode::Observe) | Callback::TtsrTriggered => None,
        }
    }
}

/// Who decided a callback's [`OnFailure`] or [`KeptText`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// Nobody: it is the default.
    #[default]
    Default,
    /// The plugin's manifest, for all of its callbacks.
    Manifest,
    /// The extension, when it registered the callback.
    Registration,
    /// The operator, for all callbacks of the plugin.
    Operator,
}

impl DecidedBy {
    /// Where the decision is to be found.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Manifest => "plugin.toml",
            Self::Registration => "registered",
            Self::Operator => "tidegate.toml",
        }
    }
}

/// A registered callback with what was decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Which callback, and how it is called.
    pub callback: Callback,
    /// 0 to 100, higher runs first.
    pub priority: u8,
    /// What happens when it fails.
    pub on_failure: OnFailure,
    /// Who decided `on_failure`.
    pub decided_by: DecidedBy,
    /// Which text a session keeps of what it changes.
    pub keep: KeptText,
    /// Who decided `keep`.
    pub keep_by: DecidedBy,
    /// Of `on_input_messages`: in front of an agent that is not ours, it also gets what leaves with the input: instructions, descriptions of
    /// tools, and a history that is new to the host.
    pub whole_requests: bool,
}

impl Registered {
    /// Which of the callbacks.
    pub fn kind(&self) -> CallbackKind {
        self.callback.kind()
    }

    /// Whether nothing of what it gets is to be seen as it was: it fails closed, or what the user saw is kept of what it changes.
    pub fn guards(&self) -> bool {
        self.on_failure != OnFailure::Skip || self.keep == KeptText::Shown
    }

    /// The same, failing closed where the callback can.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.on_failure = OnFailure::closed(&self.callback).unwrap_or(OnFailure::Skip);
        self.decided_by = DecidedBy::Registration;
        self
    }

    /// The same, with what the user saw kept where the callback has a choice.
    #[must_use]
    pub fn keeping_shown(mut self) -> Self {
        if KeptText::is_choice_of(&self.callback) {
            (self.keep, self.keep_by) = (KeptText::Shown, DecidedBy::Registration);
        }
        self
    }
}

impl From<Callback> for Registered {
    fn from(callback: Callback) -> Self {
        (callback, DEFAULT_PRIORITY).into()
    }
}

impl From<(Callback, u8)> for Registered {
    fn from((callback, priority): (Callback, u8)) -> Self {
        let (on_failure, keep) = (OnFailure::Skip, KeptText::Original);
        let (decided_by, keep_by) = (DecidedBy::Default, DecidedBy::Default);
        Self { callback, priority, on_failure, decided_by, keep, keep_by, whole_requests: false }
    }
}

/// The marker that replaces what is withheld because `plugin` did not check it. It is part of the contract: it contains no
/// character that opens a tag or Markdown, and no later extension is called with it.
pub fn withheld(plugin: &PluginId) -> String {
    format!("[withheld: {plugin} did not check this]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextUnit;

    #[test]
    fn what_can_fail_closed() {
        let closed = |callback| OnFailure::closed(&callback);
        assert_eq!(closed(Callback::InputMessages), Some(OnFailure::Reject));
        assert_eq!(closed(Callback::PlainText(TextUnit::Line.into())), Some(OnFailure::Withhold));
        assert_eq!(closed(Callback::Tag(Vec::new())), Some(OnFailure::Withhold));
        assert_eq!(closed(Callback::ToolCall), Some(OnFailure::Reject));
        assert_eq!(closed(Callback::ToolResult), Some(OnFailure::Withhold));
        assert_eq!(closed(Callback::LlmOutput(OutputMode::Rewrite)), Some(OnFailure::Withhold));
        assert_eq!(closed(Callback::LlmOutput(OutputMode::Observe)), None);
        assert_eq!(closed(Callback::TtsrTriggered), None);
        assert_eq!(Registered::from(Callback::TtsrTriggered).closed().on_failure, OnFailure::Skip);
    }

    #[test]
    fn the_marker_opens_nothing() {
        let marker = withheld(&"redact-secrets".parse().expect("a plugin id"));
        assert_eq!(marker, "[withheld: redact-secrets did not check this]");
        assert!(!marker.contains(['<', '>', '`', '*', '_', '\n', '(']));
    }
}
