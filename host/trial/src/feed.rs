//! Feeds one input to one rule, whole and cut into single characters, and returns what fired and what was held back.

use std::sync::Arc;

use flow::RuleMatch;
use rules::{Rule, RuleSession, RuleSet, RuleSettings};

use super::{Input, changed};

/// What was held back on the way, fed character by character. Arguments of tools are never shown, so nothing is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The most bytes that waited at once.
    pub most: u64,
    /// Bytes of the input that had come then.
    pub at: u64,
    /// Bytes that had come and had not been shown when the rule fired: they never would be.
    pub when_fired: u64,
    /// Bytes released because `hold_max_bytes` was reached.
    pub released: u64,
}

/// What came of feeding.
#[derive(Clone, Debug, Default)]
pub(super) struct Fired {
    pub(super) matches: Vec<RuleMatch>,
    pub(super) held: Held,
    /// Why the arguments of a call could not be decoded to their end.
    pub(super) unreadable: Option<String>,
}

/// A rule alone under these settings: nothing shadows it, nothing switches it off.
pub(super) fn alone(rule: &Rule, settings: &RuleSettings, workspace: &str) -> Arc<RuleSet> {
    let rule = changed(rule, |rule| rule.enabled = true);
    let settings = RuleSettings { enabled: true, builtin_rules: true, disabled_rules: Vec::new(), ..settings.clone() };
    RuleSet::build(vec![rule], settings, workspace).0
}

/// Feeds the input as one chunk.
pub(super) fn whole(session: &RuleSession, input: &Input) -> Fired {
    feed(session, input, std::iter::once(input.text()))
}

/// Feeds the input character by character.
pub(super) fn by_character(session: &RuleSession, input: &Input) -> Fired {
    let text = input.text();
    feed(session, input, text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]))
}

fn feed<'a>(session: &RuleSession, input: &Input, pieces: impl Iterator<Item = &'a str>) -> Fired {
    let mut gate = session.gate();
    gate.block_start(0, &input.kind());
    let (mut fired, mut fed_bytes, prose) = (Fired::default(), 0, !input.is_call());
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        fed_bytes += piece.len() as u64;
        let mut fed = Some(gate.piece(0, piece));
        while let Some(one) = fed {
            let held = fed_bytes.saturating_sub(one.safe);
            if prose && !one.matches.is_empty() && fired.matches.is_empty() {
                fired.held.when_fired = held;
            } else if prose && held > fired.held.most && fired.matches.is_empty() {
                (fired.held.most, fired.held.at) = (held, fed_bytes);
            }
            fired.held.released += one.released;
            fired.matches.extend(one.matches);
            fed = gate.more(0);
        }
    }
    fired.unreadable = gate.decode_error(0).map(str::to_owned);
    let end = gate.end(0);
    if prose && !end.matches.is_empty() && fired.matches.is_empty() {
        fired.held.when_fired = fed_bytes.saturating_sub(end.safe);
    }
    fired.matches.extend(end.matches);
    fired
}
