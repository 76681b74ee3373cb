//! What a rule promises: how often it acts on what it matches, and what becomes of the matches on which it does not.

use flow::Action;
use rules::{InterruptMode, OnBudget, RepeatMode, Rule, RuleSettings, Scope};

/// How often a rule acts, after the operator's settings.
pub(super) struct Repeats {
    pub(super) mode: RepeatMode,
    pub(super) gap: u32,
}

/// The promise of a stream rule in one sentence. `interrupt` is the interrupt mode in effect for the rule.
pub(super) fn of(rule: &Rule, interrupt: InterruptMode, repeats: &Repeats, settings: &RuleSettings) -> String {
    let promise = |action, is_prose| of_action(rule, (action, is_prose), repeats, settings);
    let (tools, prose) = actions(rule, interrupt);
    match (tools, prose) {
        (Some(tools), Some(prose)) if tools != prose => {
            let streams = match (has(rule, &Scope::Text), has(rule, &Scope::Thinking)) {
                (true, true) => "text and thinking",
                (false, true) => "thinking",
                _ => "text",
            };
            format!("in tool calls {}; in {streams} {}", promise(tools, false), promise(prose, true))
        }
        (Some(action), prose) => promise(action, prose.is_some()),
        (None, Some(action)) => promise(action, true),
        (None, None) => "never fires".to_owned(),
    }
}

/// What a match in a tool call and a match in prose lead to; `None` where the rule watches no such stream.
pub(super) fn actions(rule: &Rule, interrupt: InterruptMode) -> (Option<Action>, Option<Action>) {
    let on = |watches: bool, tool| watches.then(|| rule.requests(interrupt, tool));
    (on(rule.watches_tools(), true), on(rule.watches_prose(), false))
}

fn has(rule: &Rule, wanted: &Scope) -> bool {
    rule.scopes.iter().any(|scope| std::mem::discriminant(scope) == std::mem::discriminant(wanted))
}

fn of_action(rule: &Rule, (action, is_prose): (Action, bool), repeats: &Repeats, settings: &RuleSettings) -> String {
    // What a rule about secrets matches is not let through for want of a budget.
    let on_budget = if rule.secret { OnBudget::Stop } else { settings.on_budget };
    let most = rule.max_interrupts.unwrap_or(u32::MAX).min(settings.max_interrupts_per_turn);
    let stops = action == Action::Interrupt;
    if stops && most == 0 {
        return match on_budget {
            OnBudget::Pass => {
                "stops no answer: 0 interrupts of a turn are allowed; matches are let through, and reported"
            }
            OnBudget::Stop => "ends the turn at a match: 0 interrupts of a turn are allowed",
        }
        .to_owned();
    }
    let (acts, later) = match action {
        Action::Remind | Action::Pass => ("reminds the model of", "only reported"),
        Action::Block => ("blocks the call of", "not blocked, only reported"),
        Action::Stop => ("ends the turn at", "let through, and reported"),
        Action::Interrupt => ("stops the answer at", "let through, and reported"),
    };
    let turns = if repeats.gap == 1 { "turn is" } else { "turns are" };
    let mut promise = match repeats.mode {
        RepeatMode::Once => format!("{acts} the first match of a session; later matches are {later}"),
        RepeatMode::AfterGap => {
            format!("{acts} a match, then of none until {} {turns} completed; matches before are {later}", repeats.gap)
        }
        RepeatMode::Always => format!("{acts} every match"),
    };
    if stops {
        let then = match on_budget {
            OnBudget::Pass => "matches are let through, and reported",
            OnBudget::Stop => "a match ends the turn",
        };
        let interrupts = if most == 1 { "interrupt" } else { "interrupts" };
        promise.push_str(&format!("; after {most} {interrupts} of a turn {then}"));
    }
    if action == Action::Remind && is_prose && repeats.mode == RepeatMode::Always {
        let most = settings.max_interrupts_per_turn.max(1);
        let reminders = if most == 1 { "reminder" } else { "reminders" };
        promise
            .push_str(&format!("; after {most} {reminders} of a turn matches in text and thinking are only reported"));
    }
    promise
}

/// What the modes of `repeat` mean, for a reader of a list of rules.
pub const REPEAT_LEGEND: &str = "once: acts on the first match of a session and reports the others; after N turns: acts \
                                 again when N turns are completed; always: acts on every match";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use rules::{RuleLayer, RuleOrigin, parse_rule_file};

    fn rule(keys: &str) -> Rule {
        let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
        let (rule, findings) = parse_rule_file("r", &source, &format!("+++\ncondition = 'x'\n{keys}\n+++\nDo not.\n"));
        // On which streams a secret is watched for is not what is promised here.
        assert!(findings.iter().all(|one| one.code == flow::DiagnosticCode::RuleSecretShown), "{findings:?}");
        rule.unwrap()
    }

    fn said(keys: &str, mode: RepeatMode, gap: u32, settings: &RuleSettings) -> String {
        let rule = rule(keys);
        let interrupt = rule.interrupt.unwrap_or(settings.interrupt_mode);
        of(&rule, interrupt, &Repeats { mode, gap }, settings)
    }

    #[test]
    fn every_mode_says_what_becomes_of_later_matches() {
        let default = RuleSettings::default();
        let stop = RuleSettings { on_budget: OnBudget::Stop, ..RuleSettings::default() };
        for (keys, repeat, gap, settings, promise) in [
            (
                "action = 'block'\nscope = 'tool'",
                RepeatMode::Once,
                10,
                &default,
                "blocks the call of the first match of a session; later matches are not blocked, only reported",
            ),
            ("action = 'block'\nscope = 'tool'", RepeatMode::Always, 10, &default, "blocks the call of every match"),
            (
                "interrupt = 'never'",
                RepeatMode::AfterGap,
                1,
                &default,
                "reminds the model of a match, then of none until 1 turn is completed; matches before are only \
                 reported",
            ),
            (
                "max_interrupts = 2",
                RepeatMode::Always,
                10,
                &default,
                "stops the answer at every match; after 2 interrupts of a turn matches are let through, and reported",
            ),
            (
                "max_interrupts = 1",
                RepeatMode::Once,
                10,
                &stop,
                "stops the answer at the first match of a session; later matches are let through, and reported; after 1 \
                 interrupt of a turn a match ends the turn",
            ),
        ] {
            assert_eq!(said(keys, repeat, gap, settings), promise);
        }
    }

    #[test]
    fn a_rule_about_secrets_promises_that_none_is_let_through() {
        let pass = RuleSettings::default();
        let never = RuleSettings { interrupt_mode: InterruptMode::Never, ..RuleSettings::default() };
        let none = RuleSettings { max_interrupts_per_turn: 0, ..RuleSettings::default() };
        for (keys, settings, promise) in [
            (
                "secret = true\nscope = 'text'",
                &pass,
                "stops the answer at every match; after 3 interrupts of a turn a match ends the turn",
            ),
            (
                "secret = true",
                &never,
                "in tool calls blocks the call of every match; in text and thinking stops the answer at every match; after 3 interrupts of \
                 a turn a match ends the turn",
            ),
            ("secret = true\nscope = 'text'", &none, "ends the turn at a match: 0 interrupts of a turn are allowed"),
        ] {
            let mode = rule(keys).repeat.unwrap();
            assert_eq!(said(keys, mode, 10, settings), promise, "{keys}");
        }
    }

    #[test]
    fn the_promise_is_that_of_the_streams_that_the_rule_watches() {
        let default = RuleSettings::default();
        let none = RuleSettings { max_interrupts_per_turn: 0, ..RuleSettings::default() };
        let none_stop = RuleSettings { on_budget: OnBudget::Stop, ..none.clone() };
        for (keys, settings, promise) in [
            (
                "action = 'block'\nscope = 'text'",
                &default,
                "stops the answer at every match; after 3 interrupts of a turn matches are let through, and reported",
            ),
            (
                "action = 'block'\nscope = 'text'",
                &none,
                "stops no answer: 0 interrupts of a turn are allowed; matches are let through, and reported",
            ),
            (
                "action = 'block'\nscope = 'text'",
                &none_stop,
                "ends the turn at a match: 0 interrupts of a turn are allowed",
            ),
            (
                "action = 'block'\nscope = 'text'\ninterrupt = 'never'",
                &default,
                "reminds the model of every match; after 3 reminders of a turn matches in text and thinking are only reported",
            ),
            (
                "scope = 'text'\ninterrupt = 'tool-only'",
                &default,
                "reminds the model of every match; after 3 reminders of a turn matches in text and thinking are only reported",
            ),
            (
                "action = 'block'",
                &default,
                "in tool calls blocks the call of every match; in text stops the answer at every match; after 3 \
                 interrupts of a turn matches are let through, and reported",
            ),
            (
                "scope = ['thinking', 'tool']\ninterrupt = 'tool-only'",
                &default,
                "in tool calls stops the answer at every match; after 3 interrupts of a turn matches are let through, and \
                 reported; in thinking reminds the model of every match; after 3 reminders of a turn matches in text and \
                 thinking are only reported",
            ),
        ] {
            assert_eq!(said(keys, RepeatMode::Always, 10, settings), promise, "{keys}");
        }
    }
}
