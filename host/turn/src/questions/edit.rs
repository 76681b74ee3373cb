//! Edited arguments: what a person writes is checked like what the model writes, before it runs.

use std::sync::Arc;

use flow::{Ambiguous, Keeping, Permission, Preview, RuleMatch, ToolCall};
use rules::{RuleSession, RuleSet};

use super::schema;
use flow::ports::Tools;
use guard::attempt::{CallNotes, Effect, Noted};

/// Bytes of edited arguments: more than any tool takes.
const MAX_BYTES: usize = 16 << 20;

/// Why edited arguments cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// They are not a JSON object.
    #[error("the edited arguments are not a JSON object: {problem}")]
    Invalid {
        /// What is wrong with them.
        problem: String,
    },
    /// A key occurs twice in one object.
    #[error("the edited arguments are ambiguous: {0}; write each key once")]
    Ambiguous(Ambiguous),
    /// They are not what the tool takes.
    #[error("the edited arguments do not conform to the schema of `{tool}`: {}", problems.join("; "))]
    Schema {
        /// The tool's name.
        tool: String,
        /// What is wrong, a line each.
        problems: Vec<String>,
    },
    /// Stream rules forbid the call.
    #[error("the edited arguments violate {}", rules(matches))]
    Rules {
        /// What was found.
        matches: Vec<RuleMatch>,
    },
    /// The permissions of the tool forbid the call.
    #[error("the edited call is not permitted: {reason}")]
    Denied {
        /// Why, with the setting.
        reason: String,
    },
}

fn rules(matches: &[RuleMatch]) -> String {
    let one = |found: &RuleMatch| {
        let field = found.evidence.field.as_ref().map(|field| format!(" in `{field}`")).unwrap_or_default();
        format!("the rule `{}` (found{field}: {})", found.rule, found.evidence.text)
    };
    matches.iter().map(one).collect::<Vec<_>>().join(" and ")
}

/// A call with edited arguments that were checked.
#[derive(Debug)]
pub(crate) struct Edit {
    pub(crate) call: ToolCall,
    /// Rules that remind of it, and what they say.
    pub(crate) reminders: Vec<RuleMatch>,
    pub(crate) reminder: Option<String>,
    /// What is to be reported of them.
    pub(crate) found: Vec<Effect>,
    /// Its permission at that moment, and what could have been allowed for the session: both name the place that a path leads to.
    pub(crate) permission: Permission,
    pub(crate) always: Option<String>,
}

/// What edited arguments are checked with.
pub(crate) struct Checks {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) rules: Arc<RuleSet>,
    pub(crate) agent: String,
    /// Of what is found only that is told which was seen.
    pub(crate) keeping: Keeping,
}

impl Edit {
    /// Rules remind of the arguments that extensions have put in the place of these, too.
    pub(crate) fn remind(&mut self, checks: &Checks, more: Vec<RuleMatch>) {
        self.reminders.extend(more);
        self.reminder = (!self.reminders.is_empty()).then(|| checks.session().tool_reminder(&self.reminders));
    }
}

impl Checks {
    /// A rule that was used before forbids what it forbids: whoever writes these arguments has not read its reminder.
    fn session(&self) -> RuleSession {
        let mut rules = RuleSession::of_agent(Arc::clone(&self.rules), &self.agent);
        rules.declare_paths(&self.tools.specs());
        rules
    }

    /// What rules find in arguments that the model did not write. `found` gets what is to be reported.
    pub(crate) fn notes(&self, call: &ToolCall, found: &mut Vec<Effect>) -> CallNotes {
        Noted::of_call(&mut self.session(), self.keeping, call, found).take_call(&call.id)
    }

    /// What the model reads of a call that rules forbid.
    pub(crate) fn reminder(&self, refusals: &[RuleMatch]) -> String {
        self.session().reminder(refusals)
    }

    /// Checks the arguments that a person has written in the place of those of `call`. `found` gets what is to be reported where rules
    /// refuse them.
    pub(super) fn edit(&self, call: &ToolCall, arguments: String, found: &mut Vec<Effect>) -> Result<Edit, EditError> {
        if arguments.len() > MAX_BYTES {
            let problem = format!("they have {} bytes, the limit is {MAX_BYTES}", arguments.len());
            return Err(EditError::Invalid { problem });
        }
        let invalid = |problem: String| EditError::Invalid { problem };
        let value: serde_json::Value = serde_json::from_str(&arguments).map_err(|error| invalid(error.to_string()))?;
        if !value.is_object() {
            return Err(invalid("write an object, with a member for each argument".to_owned()));
        }
        Preview::of_arguments(&arguments).map_err(EditError::Ambiguous)?;
        let call = ToolCall { arguments, ..call.clone() };
        let specs = self.tools.specs();
        if let Some(spec) = specs.iter().find(|spec| spec.name == call.name) {
            let conforms = schema::check(&spec.parameters, &value);
            conforms.map_err(|problems| EditError::Schema { tool: call.name.clone(), problems })?;
        }
        let notes = self.notes(&call, found);
        if !notes.refusals.is_empty() {
            return Err(EditError::Rules { matches: notes.refusals });
        }
        let reminders = notes.reminders;
        let reminder = (!reminders.is_empty()).then(|| self.session().tool_reminder(&reminders));
        let prepared = self.tools.prepare(&call);
        let (permission, always) = (prepared.permission(), prepared.always());
        drop(prepared);
        match permission {
            Permission::Deny { reason } => Err(EditError::Denied { reason }),
            permission => Ok(Edit { call, reminders, reminder, found: std::mem::take(found), permission, always }),
        }
    }
}
