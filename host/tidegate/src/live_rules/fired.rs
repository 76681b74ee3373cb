//! Rules that have fired. Those that cannot read the arguments of the same call are reported together: each rule that guards a stream of calls
//! fires for it, for the same reason.

use flow::{Action, RuleMatch};

/// What a front end reports at once.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FiredRule {
    /// The rule, and what it has found.
    pub found: RuleMatch,
    /// What is done about it.
    pub action: Action,
    /// The rule's repeat mode does not let it act now.
    pub again: bool,
    /// The names of the other rules that fired for the same reason, with the same effect.
    pub others: Vec<String>,
}

/// Collects the rules of adjacent events `rule_fired`, for front ends that report them. Give it each such event, and call
/// [`FiredRules::rest`] before any other event is reported.
#[derive(Debug, Default)]
pub struct FiredRules(Option<FiredRule>);

impl FiredRules {
    /// A rule has fired. Returns what is complete, in order.
    pub fn take(&mut self, found: &RuleMatch, action: Action, again: bool) -> Vec<FiredRule> {
        if let Some(known) = &mut self.0
            && found.evidence.unread
            && (known.action, known.again) == (action, again)
            && (&known.found.stream, &known.found.evidence.text) == (&found.stream, &found.evidence.text)
        {
            known.others.push(found.rule.clone());
            return Vec::new();
        }
        let new = FiredRule { found: found.clone(), action, again, others: Vec::new() };
        let before = self.0.take().into_iter();
        if found.evidence.unread {
            self.0 = Some(new);
            return before.collect();
        }
        before.chain([new]).collect()
    }

    /// What is not reported yet.
    pub fn rest(&mut self) -> Option<FiredRule> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use flow::{CallId, Evidence, StreamKind};

    use super::*;

    fn found(rule: &str, unread: bool) -> RuleMatch {
        let stream = StreamKind::Tool { call: CallId::new("call-1"), name: "edit_file".into() };
        let (pattern, text) = (String::new(), "no JSON".to_owned());
        let evidence = Evidence { pattern, text, start: 0, end: 0, line: 1, field: None, path: None, unread };
        RuleMatch { rule: rule.into(), stream, evidence }
    }

    #[test]
    fn rules_that_cannot_read_the_same_call_are_one_and_all_others_are_each_their_own() {
        let mut rules = FiredRules::default();
        let mut reported: Vec<FiredRule> = Vec::new();
        for (rule, unread, action) in [
            ("a", false, Action::Remind),
            ("b", true, Action::Interrupt),
            ("c", true, Action::Interrupt),
            ("d", true, Action::Block),
            ("e", false, Action::Interrupt),
            ("f", true, Action::Block),
        ] {
            reported.extend(rules.take(&found(rule, unread), action, false));
        }
        reported.extend(rules.rest());
        let names: Vec<String> = reported.iter().map(|one| one.found.rule.clone() + &one.others.concat()).collect();
        assert_eq!((names, rules.rest()), (["a", "bc", "d", "e", "f"].map(str::to_owned).into(), None));
    }
}
