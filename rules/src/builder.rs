//! A rule in code: each method sets the key of its name.

use crate::{ContextMode, RepeatMode, RuleAction, RuleSpec};

impl RuleSpec {
    /// A rule by name, with the text that the model reads when it fires.
    ///
    /// ```
    /// use tidegate_rules::{RuleAction, RuleSpec};
    /// let rule = RuleSpec::new("no-todo", "Finish the work.").condition(r"\bTODO\b").scope("tool(*.rs)");
    /// let rule = rule.action(RuleAction::Block).required();
    /// assert_eq!(rule.scope.0, ["tool(*.rs)"]);
    /// ```
    pub fn new(name: impl Into<String>, body: impl Into<String>) -> Self {
        Self { name: Some(name.into()), body: Some(body.into()), ..Self::default() }
    }

    /// Adds a regular expression; one of them must match.
    #[must_use]
    pub fn condition(mut self, pattern: impl Into<String>) -> Self {
        self.condition.0.push(pattern.into());
        self
    }

    /// Adds a regular expression that must match too, in the same stream.
    #[must_use]
    pub fn all(mut self, pattern: impl Into<String>) -> Self {
        self.all.0.push(pattern.into());
        self
    }

    /// Adds a regular expression that keeps the rule from firing where it has matched before in the same stream.
    #[must_use]
    pub fn unless(mut self, pattern: impl Into<String>) -> Self {
        self.unless.0.push(pattern.into());
        self
    }

    /// Adds a stream that it watches: `text`, `thinking`, `tool`, `tool:NAME`, `tool(GLOB)`, `NAME(GLOB)`.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope.0.push(scope.into());
        self
    }

    /// Adds a glob that the file of a call must match.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.globs.0.push(glob.into());
        self
    }

    /// Adds an argument of tools that it looks at, such as `content`.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field.0.push(field.into());
        self
    }

    /// What a match does.
    #[must_use]
    pub fn action(mut self, action: RuleAction) -> Self {
        self.action = Some(action);
        self
    }

    /// When it acts again.
    #[must_use]
    pub fn repeat(mut self, repeat: RepeatMode) -> Self {
        self.repeat = Some(repeat);
        self
    }

    /// What of a stopped answer is kept.
    #[must_use]
    pub fn context(mut self, context: ContextMode) -> Self {
        self.context = Some(context);
        self
    }

    /// One line for people, and for the model where the rule has no condition.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// No turn begins without this rule.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// What it matches is shown nowhere and kept nowhere.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}
