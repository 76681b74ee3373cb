//! The tool `read_rule`: the rulebook's entries, read on demand. It is offered only while there are any.

use std::sync::Arc;

use flow::ports::{BoxFuture, PreparedCall, Progress, Tools, TtsrEvent};
use flow::{Argument, Permission, Preview, ToolCall, ToolOutput, ToolSpec};
use rules::READ_RULE;

use crate::HostError;
use crate::live_rules::SessionRules;
use crate::session::toolbox::Decisions;

/// The description of the tool for the model.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: READ_RULE.to_owned(),
        description: "Reads a rule of this project by its name. The system prompt lists the available rules."
            .to_owned(),
        parameters: serde_json::json!({
            "type": "object",
            "properties": { "name": { "type": "string", "description": "The name of the rule, as listed." } },
            "required": ["name"],
            "additionalProperties": false,
        }),
    }
}

/// A session's tools with `read_rule` among them.
pub(crate) struct WithRulebook {
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) rules: Arc<SessionRules>,
    pub(crate) permission: Permission,
    /// The agent of the session.
    pub(crate) agent: String,
}

impl Tools for WithRulebook {
    fn specs(&self) -> Vec<ToolSpec> {
        let mut all = self.tools.specs();
        all.extend(self.rules.set().has_rulebook(&self.agent).then(spec));
        all
    }

    fn order(&self, calls: &[ToolCall]) -> Vec<usize> {
        self.tools.order(calls)
    }

    fn ttsr_triggered(&self, event: &TtsrEvent) {
        self.tools.ttsr_triggered(event);
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        if call.name != READ_RULE {
            return self.tools.prepare(call);
        }
        let name = name_in(&call.arguments);
        Box::new(ReadRule { name, call, tools: self })
    }
}

/// A call of `read_rule`.
struct ReadRule<'a> {
    name: Result<String, String>,
    call: &'a ToolCall,
    tools: &'a WithRulebook,
}

impl PreparedCall for ReadRule<'_> {
    fn permission(&self) -> Permission {
        self.tools.permission.clone()
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        let shown = match &self.name {
            Ok(name) => Preview {
                arguments: vec![Argument { name: "name".to_owned(), value: name.clone() }],
                ..Preview::default()
            },
            Err(_) => Preview::of_arguments(&self.call.arguments).unwrap_or_default(),
        };
        Box::pin(std::future::ready(shown))
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let WithRulebook { rules, agent, .. } = self.tools;
        let output = match self.name.clone().and_then(|name| rules.set().read(&name, agent)) {
            Ok(content) => ToolOutput { content, diff: None, is_error: false },
            Err(content) => ToolOutput { content, diff: None, is_error: true },
        };
        Box::pin(std::future::ready(output))
    }
}

fn name_in(arguments: &str) -> Result<String, String> {
    let read = serde_json::from_str::<serde_json::Value>(arguments).ok();
    let name = read.as_ref().and_then(|value| value.get("name")?.as_str());
    name.map(str::to_owned)
        .ok_or_else(|| format!("the arguments of `{READ_RULE}` are not valid: it takes an object with `name` (string)"))
}

/// Takes the permissions that are about `read_rule` out of the tools' settings. It only reads what the operator put
/// there, so it is allowed unless they or one about `*` decide otherwise.
///
/// # Errors
/// One has a pattern, and the tool has nothing to match it with.
pub(crate) fn permission(settings: &mut tools::ToolSettings) -> Result<Permission, HostError> {
    let decisions = Decisions::take(settings, &[READ_RULE.to_owned()], |_| false)?;
    Ok(decisions.decide(READ_RULE, Permission::Allow))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::PermissionMode;
    use tools::PermissionRule;

    use super::*;

    fn decide(rules: &[(&str, PermissionMode)]) -> (Permission, usize) {
        let rule = |(tool, mode): &(&str, PermissionMode)| PermissionRule {
            tool: (*tool).to_owned(),
            pattern: None,
            mode: *mode,
            origin: "tidegate.toml".to_owned(),
        };
        let permissions = rules.iter().map(rule).collect();
        let mut settings = tools::ToolSettings { permissions, ..tools::ToolSettings::default() };
        (permission(&mut settings).unwrap(), settings.permissions.len())
    }

    #[test]
    fn reading_rules_is_allowed_unless_it_is_said_otherwise() {
        use PermissionMode::{Allow, Ask, Deny};
        assert_eq!(decide(&[("shell", Deny)]), (Permission::Allow, 1));
        assert_eq!(decide(&[("*", Deny), (READ_RULE, Allow)]), (Permission::Allow, 1));
        let (asks, left) = decide(&[("*", Ask)]);
        assert_eq!((asks, left), (Permission::Ask { reason: "set by the permission `*` (tidegate.toml)".into() }, 1));
        let (denied, left) = decide(&[(READ_RULE, Deny)]);
        let Permission::Deny { reason } = denied else { panic!("{denied:?}") };
        assert!(reason.contains("denied here by the permission `read_rule` (tidegate.toml)") && left == 0, "{reason}");
    }

    #[test]
    fn a_pattern_and_arguments_that_name_nothing_are_refused_in_words() {
        let rule = PermissionRule {
            tool: READ_RULE.to_owned(),
            pattern: Some("a*".to_owned()),
            mode: PermissionMode::Deny,
            origin: "tidegate.toml".to_owned(),
        };
        let mut settings = tools::ToolSettings { permissions: vec![rule], ..tools::ToolSettings::default() };
        let error = permission(&mut settings).unwrap_err().to_string();
        assert!(error.contains("`read_rule(a*)` has a pattern (tidegate.toml)"), "{error}");
        for arguments in ["", "[]", "{\"name\": 3}", "{\"nam"] {
            assert!(name_in(arguments).unwrap_err().contains("an object with `name`"), "{arguments}");
        }
        assert_eq!(name_in("{\"name\": \"a\"}").unwrap(), "a");
    }
}
