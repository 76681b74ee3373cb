//! Which rules make matching slow: found on ordinary text, before a stream is slow.

use flow::{Diagnostic, DiagnosticCode as Code, Severity};

use crate::BUILTIN_FILES;
use crate::engine::{Automaton, Cursor};
use crate::group::Group;
use crate::{Rule, RuleSet};

/// Bytes of ordinary text, code and prose, that are fed.
const SAMPLE_BYTES: usize = 32 << 10;

/// Rules for which each byte of ordinary text leads to more bytes of new states are slow: their states do not repeat.
const MAX_BYTES_OF_STATES: usize = 100;

impl RuleSet {
    /// Feeds ordinary text to the rules. Where its states do not repeat, so that matching is slow, a warning for the rule
    /// with the largest share of them, and for each that has at least half as large a one.
    pub fn slow(&self) -> Vec<Diagnostic> {
        self.groups().all().iter().flat_map(|group| self.slow_in(group)).collect()
    }

    fn slow_in(&self, group: &Group) -> Vec<Diagnostic> {
        // Of its own, so that the caches of streams that are running do not fill up.
        let automaton = Automaton::new(group.automaton.patterns().to_vec());
        let mut cursor = Cursor::new(&automaton);
        let sample = sample(SAMPLE_BYTES);
        sample.as_bytes().chunks(64).for_each(|chunk| cursor.feed(chunk, |_| false));
        let stats = automaton.stats();
        if stats.bytes / sample.len() < MAX_BYTES_OF_STATES && stats.clears == 0 {
            return Vec::new();
        }
        let mut shares = vec![0; group.rules.len()];
        for (live, (local, _)) in automaton.live_states().into_iter().zip(&group.slots) {
            shares[*local as usize] += live;
        }
        let (all, most): (u64, u64) = (shares.iter().sum(), shares.iter().copied().max().unwrap_or(0));
        let named = shares.into_iter().zip(&group.rules).filter(|(share, _)| share * 2 >= most);
        named.map(|(share, at)| slow_rule(self.at(*at), share * 100 / all.max(1), group.rules.len())).collect()
    }
}

/// Ordinary text, code and prose, of at most this number of bytes.
pub(crate) fn sample(bytes: usize) -> String {
    let all: String = BUILTIN_FILES.iter().map(|(_, text)| *text).collect();
    let end = all.floor_char_boundary(bytes);
    all[..end].to_owned()
}

fn slow_rule(rule: &Rule, share: u64, of: usize) -> Diagnostic {
    let message = match of {
        1 => "matching is slow on ordinary text: the counts in its conditions do not repeat".to_owned(),
        _ => format!("matching is slow on ordinary text, and {share} % of the work of {of} rules is for this one"),
    };
    let found = rule.diagnostic(Severity::Warning, Code::RuleSlow, message).help(HELP);
    match rule.location(&["condition", "ttsr_trigger", "ttsrTrigger", "all"]) {
        Some(location) => found.at(location, ""),
        None => found,
    }
}

const HELP: &str =
    "put a word of three letters or more before the first count `{…}` of a condition, or make the counts smaller";
