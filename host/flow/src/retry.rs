//! What failed requests mean, as data: the patterns that give an error its class, and what is done about each class.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{ErrorClass, ErrorMetadata, FailureKind, ModelError, RetryHeader, RetryWait};

/// Which error has which class, and which class is retried how.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryTable {
    patterns: Vec<ErrorPattern>,
    policies: BTreeMap<ErrorClass, RetryPolicy>,
}

/// Errors of one class. An error matches if it fulfils every condition; an empty list is none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorPattern {
    /// Its name in the table.
    pub id: String,
    /// The class of the errors that match.
    pub class: ErrorClass,
    /// Where the request failed.
    pub kinds: Vec<FailureKind>,
    /// The names of providers.
    pub providers: Vec<String>,
    /// The HTTP status.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// The provider's type of the error.
    pub types: Vec<String>,
    /// The provider's code of the error, or its type where it has no code.
    pub codes: Vec<String>,
    /// What [`ModelError::pattern_text`] contains.
    pub message: Option<MessagePattern>,
    /// The provider's own opinion on trying again.
    pub should_retry: Option<bool>,
}

/// What is done about errors of a class.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How the wait before a retry is chosen.
    pub wait: RetryWait,
    /// The first wait.
    pub base: Duration,
    /// The longest wait that is not the provider's.
    pub max: Duration,
    /// By which share, from 0 to 1, a wait can be shorter. A wait that the provider asks for is never changed.
    pub jitter: f64,
    /// Of [`RetryWait::UseHeader`]: the headers, in order of precedence.
    pub headers: Vec<RetryHeader>,
    /// Of [`RetryWait::UseHeader`]: what is done without a header.
    pub fallback: RetryWait,
    /// How often in a row a request is sent again.
    pub max_retries: u32,
}

/// A regular expression that is searched for in linear time.
#[derive(Clone, Debug)]
pub struct MessagePattern(regex::Regex);

/// A string is not a regular expression, or one that is too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidMessagePattern(String);

/// What a table says about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classified<'t> {
    /// The class of the error.
    pub class: ErrorClass,
    /// The pattern that decided; `None`: the class was given with the error, or no pattern matches.
    pub pattern: Option<&'t str>,
    /// Of [`ErrorClass::ContextOverflow`]: the sizes that the message names.
    pub sizes: NamedSizes,
}

/// The sizes that a message about a request that is too large names, in tokens: what the groups `limit` and `tokens` of its pattern match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedSizes {
    /// What the model takes.
    pub limit: Option<u64>,
    /// What the prompt has.
    pub tokens: Option<u64>,
}

impl RetryTable {
    /// The first pattern that matches wins. A class without a policy is not retried.
    pub fn new(patterns: Vec<ErrorPattern>, policies: BTreeMap<ErrorClass, RetryPolicy>) -> Self {
        Self { patterns, policies }
    }

    /// The class of an error: its own, that of the first pattern that matches, or [`ErrorClass::Permanent`].
    pub fn classify(&self, error: &ModelError) -> Classified<'_> {
        if let Some(class) = error.class {
            return Classified { class, pattern: None, sizes: NamedSizes::default() };
        }
        let found = self.patterns.iter().find(|pattern| pattern.matches(error));
        let class = found.map_or(ErrorClass::Permanent, |pattern| pattern.class);
        let sizes = found.filter(|_| class == ErrorClass::ContextOverflow).map(|pattern| pattern.sizes(error));
        Classified { class, pattern: found.map(|pattern| pattern.id.as_str()), sizes: sizes.unwrap_or_default() }
    }

    /// The policy of a class; `None`: its errors are not retried.
    pub fn policy(&self, class: ErrorClass) -> Option<&RetryPolicy> {
        self.policies.get(&class).filter(|policy| policy.wait != RetryWait::None)
    }

    /// The patterns, in order.
    pub fn patterns(&self) -> &[ErrorPattern] {
        &self.patterns
    }

    /// The same, and every class that is retried is retried so often.
    #[must_use]
    pub fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.policies.values_mut().for_each(|policy| policy.max_retries = max_retries);
        self
    }
}

impl Classified<'_> {
    /// What an event reports of an error and of how it got its class.
    pub fn metadata(&self, error: &ModelError) -> ErrorMetadata {
        let facts = &error.facts;
        ErrorMetadata {
            provider: facts.provider.clone(),
            status: error.status,
            kind: facts.kind,
            error_type: facts.error_type.clone(),
            pattern: self.pattern.map(str::to_owned),
        }
    }
}

impl Default for RetryTable {
    /// No patterns, and no jitter: an error has the class that it is reported with.
    fn default() -> Self {
        let classes = [ErrorClass::Transient, ErrorClass::RateLimited];
        Self { patterns: Vec::new(), policies: classes.map(|class| (class, RetryPolicy::default())).into() }
    }
}

impl Default for RetryPolicy {
    /// The wait that the provider asks for, or 1, 2, 4 seconds and so on, up to 30; at most 3 retries.
    fn default() -> Self {
        Self {
            wait: RetryWait::UseHeader,
            base: Duration::from_secs(1),
            max: Duration::from_secs(30),
            jitter: 0.0,
            headers: RetryHeader::ALL.to_vec(),
            fallback: RetryWait::Exponential,
            max_retries: 3,
        }
    }
}

impl ErrorPattern {
    /// A pattern without conditions, which matches every error.
    pub fn new(id: impl Into<String>, class: ErrorClass) -> Self {
        Self {
            id: id.into(),
            class,
            kinds: Vec::new(),
            providers: Vec::new(),
            statuses: Vec::new(),
            types: Vec::new(),
            codes: Vec::new(),
            message: None,
            should_retry: None,
        }
    }

    /// Whether an error fulfils all conditions. What is not known about it fulfils none.
    pub fn matches(&self, error: &ModelError) -> bool {
        let facts = &error.facts;
        let one_of = |wanted: &[String], found: Option<&String>| {
            wanted.is_empty() || found.is_some_and(|found| wanted.contains(found))
        };
        (self.kinds.is_empty() || facts.kind.is_some_and(|kind| self.kinds.contains(&kind)))
            && one_of(&self.providers, facts.provider.as_ref())
            && (self.statuses.is_empty()
                || error.status.is_some_and(|status| self.statuses.iter().any(|range| range.contains(&status))))
            && one_of(&self.types, facts.error_type.as_ref())
            && one_of(&self.codes, error.code.as_ref())
            && self.message.as_ref().is_none_or(|pattern| error.pattern_text().is_some_and(|text| pattern.is_in(text)))
            && self.should_retry.is_none_or(|wanted| facts.should_retry == Some(wanted))
    }

    /// The sizes that the message of an error names, which the pattern matches.
    fn sizes(&self, error: &ModelError) -> NamedSizes {
        let found = self.message.as_ref().zip(error.pattern_text()).map(|(pattern, text)| pattern.sizes(text));
        found.unwrap_or_default()
    }

    /// Whether it matches every error.
    pub fn is_empty(&self) -> bool {
        *self == Self::new(self.id.clone(), self.class)
    }
}

impl MessagePattern {
    /// The bytes that a compiled expression can have.
    const SIZE: usize = 1 << 20;

    /// Compiles a regular expression in the syntax of the crate `regex`.
    ///
    /// # Errors
    /// The expression is invalid, or larger than 1 MiB when it is compiled.
    pub fn new(pattern: &str) -> Result<Self, InvalidMessagePattern> {
        let built = regex::RegexBuilder::new(pattern).size_limit(Self::SIZE).build();
        built.map(Self).map_err(|error| {
            if let regex::Error::CompiledTooBig(_) = error {
                return InvalidMessagePattern("it is larger than 1 MiB when it is compiled".to_owned());
            }
            // The first lines repeat the expression.
            let text = error.to_string();
            let cause = text.lines().last().unwrap_or_default();
            InvalidMessagePattern(cause.trim_start_matches("error: ").to_owned())
        })
    }

    fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The numbers in the groups `limit` and `tokens` of its first match, which can be grouped by commas.
    fn sizes(&self, text: &str) -> NamedSizes {
        let Some(found) = self.0.captures(text) else { return NamedSizes::default() };
        let number = |name: &str| found.name(name)?.as_str().replace([',', '_'], "").parse().ok();
        NamedSizes { limit: number("limit"), tokens: number("tokens") }
    }
}

impl PartialEq for MessagePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(change: impl FnOnce(&mut ModelError)) -> ModelError {
        let mut error = ModelError::of_kind(FailureKind::Http, "the provider answered HTTP 503: too busy");
        (error.status, error.code) = (Some(503), Some("overloaded".into()));
        error.facts.provider = Some("acme".into());
        error.facts.error_type = Some("server".into());
        error.facts.said = Some("too busy".into());
        error.facts.should_retry = Some(true);
        change(&mut error);
        error
    }

    fn pattern(id: &str, class: ErrorClass, change: impl FnOnce(&mut ErrorPattern)) -> ErrorPattern {
        let mut pattern = ErrorPattern::new(id, class);
        change(&mut pattern);
        pattern
    }

    /// Each condition alone: an error that fulfils it, and one that does not.
    #[test]
    fn every_condition_counts() {
        type Change = fn(&mut ErrorPattern);
        type Other = fn(&mut ModelError);
        let cases: [(Change, Other); 8] = [
            (|p| p.kinds = vec![FailureKind::Stream, FailureKind::Http], |e| e.facts.kind = None),
            (|p| p.providers = vec!["acme".into()], |e| e.facts.provider = Some("other".into())),
            (|p| p.statuses = vec![408..=408, 500..=599], |e| e.status = Some(499)),
            (|p| p.types = vec!["server".into()], |e| e.facts.error_type = None),
            (|p| p.codes = vec!["overloaded".into()], |e| e.code = Some("server".into())),
            (|p| p.message = MessagePattern::new("^too .usy$").ok(), |e| e.facts.said = Some("busy".into())),
            (|p| p.message = MessagePattern::new("too busy").ok(), |e| e.facts.said = None),
            (|p| p.should_retry = Some(true), |e| e.facts.should_retry = Some(false)),
        ];
        for (number, (change, other)) in cases.into_iter().enumerate() {
            let pattern = pattern("p", ErrorClass::Transient, change);
            assert!(!pattern.is_empty());
            assert!(pattern.matches(&error(|_| ())), "case {number} does not match");
            assert!(!pattern.matches(&error(other)), "case {number} matches the other error");
        }
        assert!(ErrorPattern::new("p", ErrorClass::Quota).is_empty());
    }

    #[test]
    fn the_first_match_wins_and_without_one_an_error_is_permanent() {
        let server = pattern("server", ErrorClass::Transient, |p| p.statuses = vec![500..=599]);
        let busy = pattern("busy", ErrorClass::RateLimited, |p| p.message = MessagePattern::new("busy").ok());
        let both = [server.clone(), busy.clone()];
        for (patterns, class, id) in [
            (both.to_vec(), ErrorClass::Transient, Some("server")),
            (vec![busy, server], ErrorClass::RateLimited, Some("busy")),
            (vec![], ErrorClass::Permanent, None),
        ] {
            let table = RetryTable::new(patterns, BTreeMap::new());
            assert_eq!(table.classify(&error(|_| ())), Classified { class, pattern: id, sizes: NamedSizes::default() });
        }
        let table = RetryTable::new(both.to_vec(), BTreeMap::new());
        assert_eq!(table.classify(&error(|e| e.class = Some(ErrorClass::Quota))).class, ErrorClass::Quota);
        assert_eq!(table.policy(ErrorClass::Transient), None);
    }

    /// Where the provider says nothing, the message of the host is all there is.
    #[test]
    fn messages_of_the_host_match_where_the_provider_reported_nothing() {
        let refused = pattern("refused", ErrorClass::Permanent, |p| p.message = MessagePattern::new("refused").ok());
        let broken = |kind| ModelError::of_kind(kind, "connection refused");
        assert!(refused.matches(&broken(FailureKind::Transport)));
        assert!(!refused.matches(&broken(FailureKind::Http)));
    }

    #[test]
    fn a_message_names_sizes() {
        let message = MessagePattern::new(r"(?<tokens>[\d,]+) tokens > (?<limit>[\d,]+)").ok();
        let long = pattern("long", ErrorClass::ContextOverflow, |p| p.message = message);
        let table = RetryTable::new(vec![long.clone()], BTreeMap::new());
        let sizes = |said: &str| table.classify(&error(|e| e.facts.said = Some(said.into()))).sizes;
        let both = NamedSizes { limit: Some(200_000), tokens: Some(201_500) };
        assert_eq!(sizes("it has 201,500 tokens > 200000 maximum"), both);
        assert_eq!(sizes("it has 99999999999999999999999 tokens > 7"), NamedSizes { limit: Some(7), tokens: None });
        assert_eq!(sizes("busy"), NamedSizes::default());
        let other = ErrorPattern { class: ErrorClass::Permanent, ..long };
        let table = RetryTable::new(vec![other], BTreeMap::new());
        assert_eq!(table.classify(&error(|e| e.facts.said = Some("2 tokens > 1".into()))).sizes, NamedSizes::default());
    }

    #[test]
    fn an_expression_that_is_none_is_refused_in_one_line() {
        let cause = |text: &str| MessagePattern::new(text).err().map(|error| error.to_string());
        assert_eq!(cause("a(b").as_deref(), Some("unclosed group"));
        assert_eq!(cause(r"\w{1000}{1000}").as_deref(), Some("it is larger than 1 MiB when it is compiled"));
        assert_eq!(cause("a|b"), None);
    }
}
