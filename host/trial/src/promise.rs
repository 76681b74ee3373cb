//! What a rule promises: how often it acts on what it matches, and what becomes of the matches on which it does not.

use rules::{OnBudget, RepeatMode, Rule, RuleSettings};

/// The promise of a stream rule in one sentence. `action` is the word for what it asks for, see [`super::RuleEntry::action`].
pub(super) fn of(rule: &Rule, action: &str, repeat: RepeatMode, gap: u32, settings: &RuleSettings) -> String {
    let (acts, later) = match action {
        "remind" => ("reminds the model of", "only reported"),
        "block" => ("blocks the call of", "not blocked, only reported"),
        "stop" => ("ends the turn at", "shown, and reported"),
        _ => ("stops the answer at", "shown, and reported"),
    };
    let turns = if gap == 1 { "turn is" } else { "turns are" };
    let mut promise = match repeat {
        RepeatMode::Once => format!("{acts} the first match of a session; later matches are {later}"),
        RepeatMode::AfterGap => {
            format!("{acts} a match, then of none until {gap} {turns} completed; matches before are {later}")
        }
        RepeatMode::Always => format!("{acts} every match"),
    };
    if action == "interrupt" {
        let most = rule.max_interrupts.unwrap_or(u32::MAX).min(settings.max_interrupts_per_turn);
        let then = match settings.on_budget {
            OnBudget::Pass => "matches are shown, and reported",
            OnBudget::Stop => "a match ends the turn",
        };
        promise.push_str(&format!("; after {most} interrupts of a turn {then}"));
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

    #[test]
    fn every_mode_says_what_becomes_of_later_matches() {
        let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
        let rule = parse_rule_file("r", &source, "+++\ncondition = 'x'\nmax_interrupts = 2\n+++\nDo not.\n").0.unwrap();
        let stop = RuleSettings { on_budget: OnBudget::Stop, ..RuleSettings::default() };
        for (action, repeat, gap, settings, said) in [
            (
                "block",
                RepeatMode::Once,
                10,
                RuleSettings::default(),
                "blocks the call of the first match of a session; later matches are not blocked, only reported",
            ),
            ("block", RepeatMode::Always, 10, RuleSettings::default(), "blocks the call of every match"),
            (
                "remind",
                RepeatMode::AfterGap,
                1,
                RuleSettings::default(),
                "reminds the model of a match, then of none until 1 turn is completed; matches before are only \
                 reported",
            ),
            (
                "interrupt",
                RepeatMode::Always,
                10,
                RuleSettings::default(),
                "stops the answer at every match; after 2 interrupts of a turn matches are shown, and reported",
            ),
            (
                "interrupt",
                RepeatMode::Once,
                10,
                stop,
                "stops the answer at the first match of a session; later matches are shown, and reported; after 2 \
                 interrupts of a turn a match ends the turn",
            ),
        ] {
            assert_eq!(of(&rule, action, repeat, gap, &settings), said);
        }
    }
}
