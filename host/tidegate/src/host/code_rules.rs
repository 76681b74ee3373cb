//! Rules that the program gives as values, in the place of files.

use config::Diagnostics;
use flow::Diagnostic;
use rules::{Requirement, Rule, RuleLayer, RuleOrigin, RuleSpec};

/// Rules that can be used, and warnings about them.
pub(crate) type CodeRules = (Vec<Rule>, Vec<Diagnostic>);

/// Makes rules of code usable. `whose`: `host` or `session`.
///
/// # Errors
/// Something in one of them is wrong: what its file would have a warning for is left to [`Loaded::warnings`](crate::plugin::Loaded::warnings).
pub(crate) fn compile(specs: &[RuleSpec], whose: &str) -> Result<CodeRules, Diagnostics> {
    let source = RuleOrigin { layer: RuleLayer::Code, path: format!("code of the {whose}") };
    let (mut rules, mut found) = (Vec::new(), Vec::new());
    for spec in specs {
        let (rule, about) = Rule::from_spec(spec.name.as_deref().unwrap_or_default(), &source, spec, None);
        // A name that is given twice is a mistake: the second rule would never be used.
        if let Some(rule) = &rule
            && rules.iter().any(|known: &Rule| known.name == rule.name)
        {
            let twice = flow::DiagnosticCode::RuleDuplicateName;
            let error = Diagnostic::error(twice, "another rule of this code has the same name");
            found.push(error.about_rule(&rule.name, Some(&source)).help("rename one of them"));
        }
        rules.extend(rule);
        found.extend(about);
    }
    let (wrong, found): (Vec<_>, Vec<_>) = found.into_iter().partition(Diagnostic::is_error);
    if !wrong.is_empty() {
        return Err(Diagnostics(wrong));
    }
    let required = rules.iter_mut().filter(|rule| rule.required != Requirement::None);
    required.for_each(|rule| rule.required = Requirement::Operator);
    Ok((rules, found))
}
