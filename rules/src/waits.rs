//! Which conditions make ordinary text wait because the whole match is held back, and what their group `hide` could be.

use flow::{Action, Diagnostic, DiagnosticCode as Code, Severity};

use crate::cost::sample;
use crate::dialect;
use crate::engine::{Automaton, Cursor, Pattern};
use crate::{Rule, RuleSet};

/// Bytes of ordinary text that are fed to each condition.
const SAMPLE_BYTES: usize = 8 << 10;

/// Below this number of bytes that are held back on average nobody notices.
const LEAST_HELD: f64 = 1.0;

/// From here on a rule about secrets without a group that could be named is worth a word.
const MUCH_HELD: f64 = 2.0;

impl RuleSet {
    /// Feeds ordinary text to each condition that holds text back. A warning where a group `hide` would halve what waits, or where much
    /// waits for a secret without one.
    pub fn waits(&self) -> Vec<Diagnostic> {
        let holds = |rule: &&Rule| {
            let mode = rule.interrupt.unwrap_or(self.settings().interrupt_mode);
            rule.watches_prose() && matches!(rule.requests(mode, false), Action::Interrupt | Action::Stop)
        };
        let text = &sample(SAMPLE_BYTES);
        let active = self.active_rules().filter(holds);
        active
            .flat_map(|rule| {
                rule.conditions.iter().chain(&rule.all).filter_map(move |pattern| waits_for(rule, pattern, text))
            })
            .collect()
    }
}

fn waits_for(rule: &Rule, pattern: &Pattern, sample: &str) -> Option<Diagnostic> {
    let condition = pattern.as_str();
    let held = mean_held(rule, condition, sample)?;
    if pattern.has_shown_part() || held < LEAST_HELD {
        return None;
    }
    let named = dialect::first_group(condition)
        .map(|group| format!("{}(?P<hide>{}", &condition[..group.start], &condition[group.end..]));
    let better = named.and_then(|named| mean_held(rule, &named, sample)).filter(|better| better * 2.0 <= held);
    let help = match better {
        Some(better) => format!(
            "begin its first group with `(?P<hide>`: what precedes it is shown then, and {better:.1} bytes are held back"
        ),
        None if rule.secret && held >= MUCH_HELD => "put what must not be shown into a group `(?P<hide>…)`".to_owned(),
        None => return None,
    };
    let message = format!(
        "`{}` holds back {held:.1} bytes of ordinary text on average, because the whole match is hidden",
        crate::shown_condition(condition)
    );
    let found = rule.diagnostic(Severity::Warning, Code::RuleHidesMore, message).help(help.as_str());
    Some(match rule.location_of_value(&["condition", "ttsr_trigger", "ttsrTrigger", "all"], condition) {
        Some(location) => found.at(location, ""),
        None => found,
    })
}

/// How many bytes a condition holds back on average behind each byte of ordinary text.
fn mean_held(rule: &Rule, condition: &str, sample: &str) -> Option<f64> {
    let pattern = Pattern::new(condition).and_then(|pattern| pattern.folded(rule.fold)).ok()?;
    let mut cursor = Cursor::holding(&Automaton::new(vec![pattern.into()]), vec![true]);
    let held = sample.as_bytes().iter().map(|byte| {
        cursor.feed(&[*byte], |_| false);
        cursor.position() - cursor.held_from()
    });
    Some(held.sum::<u64>() as f64 / sample.len() as f64)
}
