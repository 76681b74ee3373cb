//! Required rules: a host that requires a rule does not run without it.
//!
//! A rule is required by its own key, or by the operator: by name, by its folder, or by its plugin. A required rule cannot
//! be replaced by another file of its name that is trusted less: a project comes from somebody else.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use crate::set::{disabled, layer_rank};
use crate::{Requirement, Rule, RuleLayer, RuleOrigin, RuleSet, RuleSettings, RuleState};

/// A required rule that is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetRule {
    /// The name of the required rule.
    pub rule: String,
    /// Where it comes from; `None` where there is no rule of this name.
    pub source: Option<RuleOrigin>,
    /// What keeps it from being in force.
    pub why: String,
    /// What to do about it.
    pub help: String,
}

/// By name, the position of the rule that is used: of those that are not switched off the one that is most required, then
/// the one of the highest layer, then the first. Of required ones the project's comes last, and one that nobody trusts is
/// behind all others. A rule of the program's code is before each that requires itself.
pub(crate) fn winners(rules: &[Rule], settings: &RuleSettings) -> HashMap<String, u32> {
    let names = required_names(rules.iter(), settings);
    let mut winners: HashMap<String, u32> = HashMap::new();
    for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| disabled(rule, settings).is_none()) {
        let rank = |rule: &Rule| {
            let last = names.contains(rule.name.as_str()) && rule.source.layer == RuleLayer::Project;
            // No key of a file puts it before a rule that the program gives; what the operator requires is no key of a file.
            let of_program = rule.source.layer == RuleLayer::Code && rule.required < Requirement::Operator;
            let required = if of_program { Requirement::Rule } else { rule.required };
            (rule.untrusted, Reverse(required), !of_program, last, layer_rank(&rule.source.layer))
        };
        let known = winners.entry(rule.name.clone()).or_insert(at as u32);
        if rank(rule) < rank(&rules[*known as usize]) {
            *known = at as u32;
        }
    }
    winners
}

fn required_names<'a>(rules: impl Iterator<Item = &'a Rule>, settings: &'a RuleSettings) -> BTreeSet<&'a str> {
    let own = rules.filter(|rule| rule.required != Requirement::None).map(|rule| rule.name.as_str());
    let named = settings.required.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    own.chain(named).collect()
}

impl RuleSet {
    /// Whether this rule is one that the host must not run without.
    pub fn is_required(&self, rule: &Rule) -> bool {
        rule.required != Requirement::None || self.settings().required.iter().any(|name| name.trim() == rule.name)
    }

    /// The required rules that are not in force, by name: there is no such rule, it is disabled, it can never fire,
    /// or a part of it was refused.
    pub fn unmet(&self) -> Vec<UnmetRule> {
        let names = required_names(self.with_states().map(|(rule, _)| rule), self.settings());
        names.into_iter().filter_map(|name| self.unmet_of(name)).collect()
    }

    fn unmet_of(&self, name: &str) -> Option<UnmetRule> {
        let of_name = |(rule, _): &(&Rule, &RuleState)| rule.name == name;
        let used = self.with_states().find(|(rule, state)| rule.name == name && !is_off(state));
        let Some((rule, state)) = used.or_else(|| self.with_states().find(of_name)) else {
            let names = self.with_states().map(|(rule, _)| rule.name.as_str());
            let near =
                flow::text::nearest(name, names).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            let help = format!("{near}`tidegate rules list` prints the names");
            return Some(UnmetRule { rule: name.to_owned(), source: None, why: "there is no such rule".into(), help });
        };
        let (why, help) = match state {
            RuleState::Active if rule.incomplete => {
                ("a part of it was refused".to_owned(), "`tidegate rules check` shows which part, and why")
            }
            RuleState::Active => return None,
            RuleState::Disabled(why) => (why.clone(), "enable it, or stop requiring it"),
            RuleState::Unreachable(why) => (why.clone(), "correct its scope, or stop requiring it"),
            RuleState::Shadowed(by) => (format!("it is shadowed: {by}"), "rename one of them"),
        };
        Some(UnmetRule { rule: name.to_owned(), source: Some(rule.source.clone()), why, help: help.to_owned() })
    }
}

fn is_off(state: &RuleState) -> bool {
    matches!(state, RuleState::Disabled(_) | RuleState::Shadowed(_))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::{asks_to_be_required, parse_rule_file};

    fn rule(name: &str, layer: RuleLayer, path: &str, keys: &str) -> Rule {
        let source = RuleOrigin { layer, path: path.to_owned() };
        parse_rule_file(name, &source, &format!("+++\ncondition = ['x']\n{keys}\n+++\nDo not.\n")).0.unwrap()
    }

    fn plugin() -> RuleLayer {
        RuleLayer::Plugin("p".parse().unwrap())
    }

    /// The file that is used under the name `r`.
    fn used(rules: Vec<Rule>, required: &[&str]) -> Option<String> {
        let required = required.iter().map(|name| (*name).to_owned()).collect();
        let (set, _) = RuleSet::build(rules, RuleSettings { required, ..RuleSettings::default() }, "");
        set.rule("r").map(|rule| rule.source.path.clone())
    }

    #[test]
    fn a_required_rule_is_not_replaced_by_one_that_is_trusted_less() {
        let of = |layer, path: &str, keys| rule("r", layer, path, keys);
        let (project, user) = (of(RuleLayer::Project, "project", ""), of(RuleLayer::User, "user", ""));
        let (theirs, ours) = (of(plugin(), "plugin", ""), of(RuleLayer::Builtin, "builtin", ""));
        let all = || vec![project.clone(), user.clone(), theirs.clone(), ours.clone()];
        assert_eq!(used(all(), &[]).unwrap(), "project");
        // The operator names it: the project's comes last.
        assert_eq!(used(all(), &[" r "]).unwrap(), "user");
        assert_eq!(used(vec![project.clone(), ours.clone()], &["r"]).unwrap(), "builtin");
        assert_eq!(used(vec![project.clone()], &["r"]).unwrap(), "project");
        // The rule requires itself.
        let asks = |layer, path: &str| of(layer, path, "required = true");
        assert_eq!(used(vec![project.clone(), asks(plugin(), "plugin")], &[]).unwrap(), "plugin");
        assert_eq!(used(vec![asks(RuleLayer::Project, "project"), user.clone()], &[]).unwrap(), "project");
        assert_eq!(
            used(vec![asks(RuleLayer::Project, "project"), asks(RuleLayer::User, "user")], &[]).unwrap(),
            "user"
        );
        // The operator's folder is above whatever the project claims.
        let folder = Rule { required: Requirement::Operator, ..of(RuleLayer::Project, "folder", "") };
        assert_eq!(used(vec![asks(RuleLayer::Project, "project"), folder], &[]).unwrap(), "folder");
        // A rule of the program is before what files say of themselves, and behind what the operator requires.
        for keys in ["", "required = true"] {
            let code = || of(RuleLayer::Code, "code", keys);
            for layer in [RuleLayer::Project, RuleLayer::User, plugin()] {
                assert_eq!(used(vec![asks(layer.clone(), "file"), code()], &[]).unwrap(), "code", "{layer:?}");
                assert_eq!(used(vec![asks(layer, "file"), code()], &["r"]).unwrap(), "code");
            }
            let operator = Rule { required: Requirement::Operator, ..of(RuleLayer::Project, "folder", "") };
            assert_eq!(used(vec![operator, code()], &[]).unwrap(), "folder");
        }
        // A disabled rule does not count as a rule of that name.
        assert_eq!(used(vec![project, of(RuleLayer::User, "user", "enabled = false")], &["r"]).unwrap(), "project");
    }

    /// Whatever it says of itself, and whatever the others are.
    #[test]
    fn a_rule_that_nobody_trusts_replaces_none() {
        let of = |layer, path: &str| rule("r", layer, path, "");
        let project = |keys| Rule { untrusted: true, ..rule("r", RuleLayer::Project, "project", keys) };
        for keys in ["", "required = true", "secret = true"] {
            for other in [RuleLayer::Project, RuleLayer::User, plugin(), RuleLayer::Builtin] {
                assert_eq!(used(vec![project(keys), of(other, "other")], &[]).unwrap(), "other", "{keys}");
            }
            assert_eq!(used(vec![project(keys)], &[]).unwrap(), "project");
        }
        let (set, found) = RuleSet::build(vec![project(""), of(RuleLayer::User, "user")], RuleSettings::default(), "");
        assert!(set.unmet().is_empty());
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "warning[rule-shadowed]: rule `r` (user, user): it is used instead of: project, project; a file that comes with the \
              workspace replaces no rule: give it another name, or name its folder under `folders` of `[rules]` in a `tidegate.toml` that \
              `tidegate trust` has trusted"
            ]
        );
    }

    #[test]
    fn each_reason_that_keeps_a_required_rule_from_being_in_force_is_said() {
        let asks = |name: &str, keys: &str| rule(name, RuleLayer::Project, name, &format!("required = true\n{keys}"));
        let rules = || {
            vec![
                asks("fine", ""),
                asks("off", "enabled = false"),
                asks("blind", "scope = 'text'\nglobs = '*.rs'"),
                asks("partial", "scope = ['text', 'tool:(']"),
                rule("plain", RuleLayer::Project, "plain", "enabled = false"),
            ]
        };
        let settings = RuleSettings {
            required: ["fien", "named"].map(str::to_owned).to_vec(),
            disabled_rules: vec!["named".to_owned()],
            ..RuleSettings::default()
        };
        let named = rule("named", RuleLayer::User, "u", "");
        let (set, _) = RuleSet::build(rules().into_iter().chain([named]).collect(), settings, "");
        let said: Vec<String> =
            set.unmet().iter().map(|one| format!("{}: {}; {}", one.rule, one.why, one.help)).collect();
        assert_eq!(
            said,
            [
                "blind: it can never fire on text: `globs` asks for a file; correct its scope, or stop requiring it",
                "fien: there is no such rule; did you mean `fine`? `tidegate rules list` prints the names",
                "named: the setting `disabled_rules` names it; enable it, or stop requiring it",
                "off: the rule says `enabled = false`; enable it, or stop requiring it",
                "partial: a part of it was refused; `tidegate rules check` shows which part, and why",
            ]
        );
        let (set, _) = RuleSet::build(rules(), RuleSettings { enabled: false, ..RuleSettings::default() }, "");
        assert!(set.unmet().iter().any(|one| one.rule == "fine" && one.why.contains("`enabled` of stream rules")));
    }

    #[test]
    fn a_file_that_cannot_be_read_asks_all_the_same() {
        for asks in ["+++\nrequired = true\ncondition = (\n", "---\nrequired: true # why\n", "  required=true\r\n"] {
            assert!(asks_to_be_required(asks), "{asks:?}");
        }
        for not in ["", "required = false", "required = truely", "# required = true", "required", "is required = true"]
        {
            assert!(!asks_to_be_required(not), "{not:?}");
        }
    }
}
