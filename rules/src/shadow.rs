//! Rules of one name: which of them is used, and which are not for that reason.

use flow::{Diagnostic, DiagnosticCode as Code, RuleOrigin};

use crate::{RuleSet, RuleState};

/// Several rules of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadow<'a> {
    /// The name that both rules have.
    pub rule: &'a str,
    /// Where the one that is used comes from.
    pub used: &'a RuleOrigin,
    /// Where the others come from, highest layer first.
    pub unused: Vec<&'a RuleOrigin>,
    /// It is used because it is required, whatever its layer.
    pub required: bool,
    /// One of the others comes with the workspace, and replaces none.
    pub untrusted: bool,
}

impl RuleSet {
    /// The names that several rules have, each once. Rules that are switched off do not count.
    pub fn shadows(&self) -> Vec<Shadow<'_>> {
        let mut shadows: Vec<Shadow<'_>> = Vec::new();
        let hidden = self.with_states().filter(|(_, state)| matches!(state, RuleState::Shadowed(_)));
        for (rule, _) in hidden {
            match shadows.iter_mut().find(|shadow| shadow.rule == rule.name) {
                Some(shadow) => {
                    shadow.unused.push(&rule.source);
                    shadow.untrusted |= rule.untrusted && self.rule(&rule.name).is_some_and(|used| !used.untrusted);
                }
                None => shadows.extend(self.rule(&rule.name).map(|used| Shadow {
                    rule: &used.name,
                    used: &used.source,
                    unused: vec![&rule.source],
                    required: self.is_required(used),
                    untrusted: rule.untrusted && !used.untrusted,
                })),
            }
        }
        shadows
    }
}

const UNTRUSTED: &str = "a file that comes with the workspace replaces no rule: give it another name, or name its folder under `folders` of \
                         `[rules]` in a `tidegate.toml` that `tidegate trust` has trusted";

impl Shadow<'_> {
    /// The report: one warning for the name.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        let unused: Vec<String> = self.unused.iter().map(|source| source.to_string()).collect();
        let why = if self.required { "required, so " } else { "" };
        let message = format!("{why}it is used instead of: {}", unused.join("; "));
        let help = if self.untrusted { UNTRUSTED } else { "rename or delete the files that are not meant" };
        Diagnostic::warning(Code::RuleShadowed, message).about_rule(self.rule, Some(self.used)).help(help)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use crate::{Rule, RuleLayer, RuleOrigin, RuleSet, RuleSettings, parse_rule_file};

    fn rule(name: &str, layer: RuleLayer, path: &str) -> Rule {
        let source = RuleOrigin { layer, path: path.to_owned() };
        parse_rule_file(name, &source, "+++\ncondition = 'x'\n+++\nDo not.\n").0.unwrap()
    }

    #[test]
    fn every_name_is_reported_once_with_who_wins_and_who_loses() {
        let plugin = || RuleLayer::Plugin("p".parse().unwrap());
        let rules = vec![
            rule("twice", RuleLayer::Builtin, "b.md"),
            rule("thrice", plugin(), "plugin.toml"),
            rule("thrice", RuleLayer::Project, "t.mdc"),
            rule("alone", RuleLayer::User, "a.md"),
            rule("twice", RuleLayer::User, "u.md"),
            rule("thrice", RuleLayer::Project, "t.md"),
            Rule { enabled: false, ..rule("alone", RuleLayer::Project, "off.md") },
        ];
        let (set, found) = RuleSet::build(rules, RuleSettings::default(), "");
        let said: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "warning[rule-shadowed]: rule `thrice` (project, t.mdc): it is used instead of: project, t.md; plugin p, \
                 plugin.toml; rename or delete the files that are not meant",
                "warning[rule-shadowed]: rule `twice` (user, u.md): it is used instead of: built-in, b.md; rename or \
                 delete the files that are not meant",
            ]
        );
        assert_eq!(set.shadows().len(), 2);
    }

    #[test]
    fn a_name_that_is_switched_off_shadows_nothing() {
        let rules = vec![rule("a", RuleLayer::Project, "a.md"), rule("a", RuleLayer::Builtin, "b.md")];
        let settings = RuleSettings { disabled_rules: vec![" a ".to_owned()], ..RuleSettings::default() };
        let (set, found) = RuleSet::build(rules, settings, "");
        assert!(found.is_empty() && set.shadows().is_empty());
    }
}
