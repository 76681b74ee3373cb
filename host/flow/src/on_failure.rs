//! What happens to a text or an input when the extension that was to check it did not: the policy, who decided it, and the
//! marker that replaces what is withheld.

use crate::{Callback, CallbackKind, DEFAULT_PRIORITY, KeptText, OutputMode, PluginId};

/// The highest priority of a callback.
const MAX_PRIORITY: u8 = 100;

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
    /// Of `on_input_messages`: in front of an agent that is not Tidegate, it also gets the other texts of requests: instructions,
    /// descriptions of tools, and history that is new to the host.
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

    /// Returns the reason why an extension cannot register it.
    pub fn fault(&self) -> Option<String> {
        let name = self.kind().as_str();
        if self.priority > MAX_PRIORITY {
            return Some(format!("{name} has priority {}; priorities go from 0 to {MAX_PRIORITY}", self.priority));
        }
        let keeps_nothing = self.keep == KeptText::Shown && !KeptText::is_choice_of(&self.callback);
        let kept = keeps_nothing.then(|| format!("{name} changes no text of which `shown` could be kept"));
        self.callback.fault().or_else(|| self.policy_fault(name)).or(kept)
    }

    /// Checks the failure policy: a callback can fail closed in one way, or in none.
    fn policy_fault(&self, name: &str) -> Option<String> {
        let (policy, possible) = (self.on_failure, OnFailure::closed(&self.callback));
        if policy == OnFailure::Skip || possible == Some(policy) {
            return None;
        }
        let word = policy.as_str();
        Some(match possible {
            Some(possible) => {
                format!("{name} cannot have the failure policy `{word}`; use `{}` or `skip`", possible.as_str())
            }
            None => format!(
                "{name} cannot have the failure policy `{word}`: what it gets has been shown, or has happened; use `skip`{}",
                if let Callback::LlmOutput(_) = self.callback { ", or the mode `rewrite`" } else { "" }
            ),
        })
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
    use crate::tag_pattern::MAX_TAG_PATTERNS;
    use crate::{TagPattern, TextOptions, TextUnit};

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
    fn what_cannot_be_registered() {
        let line = || Registered::from(Callback::PlainText(TextUnit::Line.into()));
        let tags = |names: &[&str]| {
            let patterns = names.iter().map(|name| TagPattern::Exact((*name).to_owned())).collect();
            Registered::from(Callback::Tag(patterns))
        };
        let none = TextOptions { answer: false, thinking: false, ..TextUnit::Line.into() };
        let many: Vec<_> = (0..=MAX_TAG_PATTERNS).map(|number| format!("t{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let cases = [
            (Registered { priority: 101, ..line() }, "on_plain_text has priority 101; priorities go from 0 to 100"),
            (Registered { on_failure: OnFailure::Reject, ..line() }, "use `withhold` or `skip`"),
            (
                Registered { on_failure: OnFailure::Reject, ..Callback::TtsrTriggered.into() },
                "or has happened; use `skip`",
            ),
            (Callback::PlainText(none).into(), "on_plain_text is registered for no stream"),
            (
                Registered { keep: KeptText::Shown, ..Callback::InputMessages.into() },
                "on_input_messages changes no text",
            ),
            (tags(&[]), "on_tag is registered for no tag"),
            (tags(&["a", "b", "a"]), "on_tag names the pattern `a` twice"),
            (tags(&["1a"]), "does not begin with an ASCII letter"),
            (Callback::Tag(vec![TagPattern::Prefix("a b".into())]).into(), "contains ' '"),
            (tags(&many), "on_tag has 65 patterns; at most 64 are allowed"),
        ];
        for (registered, why) in cases {
            let fault = registered.fault().unwrap_or_default();
            assert!(fault.contains(why), "{why}: {fault}");
        }
        for fine in [line().closed(), tags(&["a", "b"]), tags(&many[1..]), Callback::InputMessages.into()] {
            assert_eq!(fine.fault(), None);
        }
    }

    #[test]
    fn the_marker_opens_nothing() {
        let marker = withheld(&"redact-secrets".parse().expect("a plugin id"));
        assert_eq!(marker, "[withheld: redact-secrets did not check this]");
        assert!(!marker.contains(['<', '>', '`', '*', '_', '\n', '(']));
    }
}
