//! Sentences about rules: what was held back, reminders, and files that were read again.

use super::Sentence;
use crate::figures::{of, took_ms};
use crate::{RuleHeld, RuleHoldReleased, RulesReloaded, TtsrInjection, TtsrRearmed};

impl RuleHeld {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let (stream, rules, outcome) = (&self.stream, self.rules.join(", "), &self.outcome);
        let (bytes, took) = (of(self.bytes_max, "byte", "bytes"), took_ms(self.ms_max));
        let times = of(u64::from(self.holds), "time", "times");
        let text = format!("Output held back: {stream}, for {rules}, {times}, at most {bytes} and {took}; {outcome}");
        Sentence::new(text)
    }
}

impl RuleHoldReleased {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let bytes = of(self.bytes, "byte", "bytes");
        Sentence::new(format!("Held output released: {bytes} of {}, limit {}", self.stream, self.bound))
    }
}

impl TtsrInjection {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let (rules, bytes) = (self.rules.join(", "), of(self.discarded_bytes, "byte", "bytes"));
        Sentence::new(format!("Reminders of {rules} were sent; {bytes} of the answer were discarded"))
    }
}

impl TtsrRearmed {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        Sentence::new(format!("Rules act again: {}", self.rules.join(", ")))
    }
}

impl RulesReloaded {
    /// What a person reads about it.
    pub fn sentence(&self) -> Sentence<'_> {
        let active = of(self.active, "rule is", "rules are");
        Sentence::new(format!("The rule files were read again; {active} in use now")).with(self.notices.join("\n"))
    }
}
