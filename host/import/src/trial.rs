//! Loads the text of a rule file as a host does, and tries it on its examples.

use std::path::Path;

use config::RuleFile;
use flow::{Diagnostic, DiagnosticCode as Code, RuleLayer, SourceFile};
use rules::{Rule, RuleSet, RuleSettings, RuleState, check_examples};

/// The first reason not to use a rule file: an error, a condition that is read otherwise than it looks, a rule that can never fire, an
/// example that fails.
pub(crate) fn fault(name: &str, text: &str) -> Option<Box<Diagnostic>> {
    let file = format!("{name}.md");
    let source = SourceFile::new(&file, text);
    let RuleFile { rule, findings } = RuleFile::of_source(&source, &RuleLayer::Project, &file, Path::new(&file));
    let is_reason = |one: &Diagnostic| one.is_error() || one.code == Code::RuleSuspiciousCondition;
    let error = findings.into_iter().find(is_reason);
    if let Some(error) = error {
        return Some(Box::new(error));
    }
    let Some(rule) = rule else {
        return Some(Box::new(Diagnostic::error(Code::RuleNoValidCondition, "it is no rule")));
    };
    let rule = Rule { enabled: true, ..rule };
    let (set, found) = RuleSet::build(vec![rule.clone()], RuleSettings::default(), "");
    let never = set.rules().find_map(|info| match info.state {
        RuleState::Unreachable(why) => {
            Some(Diagnostic::error(Code::RuleUnreachable, format!("it can never fire: {why}")))
        }
        _ => None,
    });
    let error = never.or_else(|| found.into_iter().find(Diagnostic::is_error));
    error.or_else(|| check_examples(&rule).into_iter().find(Diagnostic::is_error)).map(Box::new)
}

/// Whether it is an example that fails, and not the rule.
pub(crate) fn is_of_example(fault: &Diagnostic) -> bool {
    matches!(fault.code, Code::RuleExampleFailed | Code::RuleInvalidExample)
}
