//! What a replay found: every match, every difference to then, and a tally for each rule.

use std::collections::BTreeMap;
use std::fmt;

use flow::{Action, RuleMatch};

use super::Trial;

/// What a replay found.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Recordings and transcripts that were read.
    pub files: usize,
    /// Turns in them.
    pub turns: u64,
    /// Attempts in them: requests to a model.
    pub attempts: u64,
    /// Attempts of which the file does not say what fired: nothing in them is compared.
    pub unknown: u64,
    /// The rules that took part, by name; each that fired now or then.
    pub rules: Vec<RuleTally>,
    /// Rules that took part and did nothing, now or then.
    pub silent: Vec<String>,
    /// What fires now, in order.
    pub fires: Vec<Fire>,
    /// Matches now of rules that were used up, in order: they are only reported, and no tally counts them.
    pub again: Vec<Fire>,
    /// What fired then and not now, in order.
    pub then: Vec<Then>,
    /// What a person should know about the files.
    pub notes: Vec<String>,
    tallies: BTreeMap<String, RuleTally>,
}

/// Where an attempt is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// The file, as it was named.
    pub file: String,
    /// The line on which the attempt begins.
    pub line: usize,
    /// The thread, in a transcript.
    pub thread: Option<String>,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The attempt of the step, from 1.
    pub attempt: u32,
}

/// A match that the replay found, and what happened in the session.
#[derive(Clone, Debug)]
pub struct Fire {
    /// In which attempt.
    pub place: Where,
    /// What was found.
    pub found: RuleMatch,
    /// What would be done about it.
    pub action: Action,
    /// The tokens discarded because of it; of several rules that stop an answer together the first has all.
    pub tokens: Option<Tokens>,
    /// What happened then.
    pub agreement: Agreement,
}

/// A match, or an answer cut short, of then.
#[derive(Clone, Debug)]
pub struct Then {
    /// In which attempt.
    pub place: Where,
    /// The rule; none where the recording does not say which.
    pub rule: Option<String>,
    /// On which stream, `text`, `thinking` or `tool:NAME`; none where the recording does not say.
    pub stream: Option<String>,
    /// What was done.
    pub action: String,
    /// Why it does not fire now.
    pub agreement: Agreement,
}

/// How now and then go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// The same rule at the same place, with the same action.
    Same,
    /// The same rule at the same place, with another action.
    OtherAction,
    /// It did not fire then.
    OnlyNow,
    /// It does not fire now.
    OnlyThen,
    /// It fired in a part of the answer that would not have been written now.
    Unreached,
    /// What it fired on was not written down.
    NotRecorded,
    /// The recording does not say.
    Unknown,
}

impl Agreement {
    /// The word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::OtherAction => "other_action",
            Self::OnlyNow => "only_now",
            Self::OnlyThen => "only_then",
            Self::Unreached => "unreached",
            Self::NotRecorded => "not_recorded",
            Self::Unknown => "unknown",
        }
    }

    /// Whether now differs from then.
    pub fn differs(self) -> bool {
        matches!(self, Self::OtherAction | Self::OnlyNow | Self::OnlyThen | Self::Unreached)
    }
}

/// Tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// The number of tokens.
    pub count: u64,
    /// Not counted by the provider: the answer's share by bytes, or a quarter of the bytes.
    pub estimated: bool,
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.estimated { "~" } else { "" }, self.count)
    }
}

impl Tokens {
    pub(super) fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.estimated |= other.estimated && other.count > 0;
    }
}

/// One rule, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleTally {
    /// Its name; empty for answers that were cut short then by a rule that the recording does not name.
    pub rule: String,
    /// The number of matches of the rule.
    pub fires: u64,
    /// Matches that would stop an answer or end a turn.
    pub interrupts: u64,
    /// Matches that would remind the model or block a call, without stopping an answer.
    pub reminders: u64,
    /// Matches that would be let pass.
    pub passes: u64,
    /// The tokens that would be discarded because of it.
    pub tokens: Tokens,
    /// By agreement: how many matches of now and then.
    pub agreement: BTreeMap<Agreement, u64>,
}

impl Replay {
    pub(super) fn new(trial: &Trial) -> Self {
        let names = trial.set.rules().map(|info| info.rule.name.clone());
        let tally = |name: String| (name.clone(), RuleTally { rule: name, ..RuleTally::default() });
        Self { tallies: names.map(tally).collect(), ..Self::default() }
    }

    pub(super) fn fire(&mut self, fire: Fire) {
        let tally = self.tally(&fire.found.rule);
        tally.fires += 1;
        match fire.action {
            Action::Interrupt | Action::Stop => tally.interrupts += 1,
            Action::Remind | Action::Block => tally.reminders += 1,
            Action::Pass => tally.passes += 1,
        }
        tally.tokens.add(fire.tokens.unwrap_or_default());
        *tally.agreement.entry(fire.agreement).or_default() += 1;
        self.fires.push(fire);
    }

    pub(super) fn missed(&mut self, then: Then) {
        let tally = self.tally(then.rule.as_deref().unwrap_or_default());
        *tally.agreement.entry(then.agreement).or_default() += 1;
        self.then.push(then);
    }

    fn tally(&mut self, rule: &str) -> &mut RuleTally {
        self.tallies
            .entry(rule.to_owned())
            .or_insert_with(|| RuleTally { rule: rule.to_owned(), ..RuleTally::default() })
    }

    pub(super) fn finish(mut self) -> Self {
        let tallies = std::mem::take(&mut self.tallies);
        let (rules, silent): (Vec<_>, Vec<_>) =
            tallies.into_values().partition(|tally| tally.fires > 0 || !tally.agreement.is_empty());
        (self.rules, self.silent) = (rules, silent.into_iter().map(|tally| tally.rule).collect());
        self
    }

    /// Matches of now and then that go together in this way.
    pub fn count(&self, agreement: Agreement) -> u64 {
        self.rules.iter().filter_map(|tally| tally.agreement.get(&agreement)).sum()
    }

    /// Whether now differs from then anywhere.
    pub fn differs(&self) -> bool {
        self.rules.iter().any(|tally| tally.agreement.keys().any(|agreement| agreement.differs()))
    }

    /// Matches that would stop an answer or end a turn.
    pub fn interrupts(&self) -> u64 {
        self.rules.iter().map(|tally| tally.interrupts).sum()
    }

    /// All tokens that would be discarded.
    pub fn tokens(&self) -> Tokens {
        let mut all = Tokens::default();
        self.rules.iter().for_each(|tally| all.add(tally.tokens));
        all
    }
}
