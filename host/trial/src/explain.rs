//! Everything about one rule: its conditions, scopes and action, the origin of each value, and its reminder.

use rules::{Bucket, Rule, RuleOrigin, Scope};

use super::feed::{alone, whole};
use super::{Catalogue, Input, RuleEntry, Subject, changed};

/// Everything about one rule.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The rule and its state.
    pub entry: RuleEntry,
    /// The rules of the same name that are not used because of it.
    pub shadows: Vec<RuleOrigin>,
    /// What it looks for, after look-arounds were taken apart: conditions, then `all`, then `unless`.
    pub parts: Vec<Part>,
    /// Where it looks.
    pub scopes: Vec<ScopeReach>,
    /// What happens on a match, and where each value comes from.
    pub values: Vec<Value>,
    /// The most bytes of text that can wait because of it; none where the settings alone bound it, 0 where none wait.
    pub longest_hold: Option<u64>,
    /// The text for the model.
    pub explained: Explained,
    /// Its examples, and whether each passes.
    pub examples: Vec<ExampleResult>,
}

/// One pattern of a rule.
#[derive(Clone, Debug)]
pub struct Part {
    /// `condition`, `all` or `unless`.
    pub role: &'static str,
    /// The condition as written in the rule.
    pub pattern: String,
    /// The maximum length of a match in bytes; `None` if there is no bound.
    pub longest: Option<u32>,
    /// It matches where there is nothing.
    pub matches_empty: bool,
}

/// One scope of a rule.
#[derive(Clone, Debug)]
pub struct ScopeReach {
    /// The scope, written in full.
    pub scope: String,
    /// The tools that are offered here and that it takes in; none for text and thinking.
    pub tools: Vec<String>,
    /// It takes in nothing here.
    pub empty: bool,
}

/// A value that counts for a rule.
#[derive(Clone, Debug)]
pub struct Value {
    /// The key of a rule file.
    pub key: &'static str,
    /// The value that is used.
    pub value: String,
    /// `None` if the rule sets it; else the name of the operator's setting.
    pub setting: Option<&'static str>,
}

/// The text for the model.
#[derive(Clone, Debug)]
pub enum Explained {
    /// The whole reminder, as it was rendered for the rule's first example that fires.
    Reminder(String),
    /// The body alone: there is no example to render it with.
    Body(String),
    /// The rule is always applied: the text that joins the prompt.
    Prompt(String),
    /// It is a rule of the rulebook: the text that the model reads on demand.
    OnDemand(String),
}

/// An example of a rule file.
#[derive(Clone, Debug)]
pub struct ExampleResult {
    /// Whether the rule is expected to fire on it.
    pub fires: bool,
    /// The stream, as written.
    pub stream: String,
    /// The text of the example.
    pub text: String,
    /// Whether the rule behaves as expected.
    pub holds: bool,
}

/// Explains a rule.
pub fn explain(catalogue: &Catalogue, subject: &Subject) -> Explanation {
    let entry = &subject.entry;
    let rule = &entry.rule;
    let shadows = if subject.from_file { Vec::new() } else { catalogue.shadowed_by(&rule.name) };
    Explanation {
        shadows,
        parts: parts(rule),
        scopes: rule.scopes.iter().map(|scope| reach(scope, catalogue.tools())).collect(),
        values: values(entry, catalogue),
        longest_hold: longest_hold(entry, catalogue),
        explained: explained(rule, catalogue),
        examples: rule.examples.iter().map(|example| result(rule, example)).collect(),
        entry: entry.clone(),
    }
}

fn parts(rule: &Rule) -> Vec<Part> {
    let of = |role, patterns: &[std::sync::Arc<rules::engine::Pattern>]| -> Vec<Part> {
        let part = |pattern: &std::sync::Arc<rules::engine::Pattern>| Part {
            role,
            pattern: pattern.as_str().to_owned(),
            longest: pattern.max_len(),
            matches_empty: pattern.matches_empty(),
        };
        patterns.iter().map(part).collect()
    };
    [of("condition", &rule.conditions), of("all", &rule.all), of("unless", &rule.unless)].concat()
}

fn reach(scope: &Scope, offered: &[String]) -> ScopeReach {
    let tools: Vec<String> = offered.iter().filter(|tool| scope.takes_tool(tool)).cloned().collect();
    let empty = matches!(scope, Scope::Tool { .. }) && tools.is_empty();
    ScopeReach { scope: scope.to_text(), tools, empty }
}

fn values(entry: &RuleEntry, catalogue: &Catalogue) -> Vec<Value> {
    let (rule, settings) = (&entry.rule, catalogue.settings());
    if rule.bucket != Bucket::Stream {
        return Vec::new();
    }
    let value = |key, value: String, setting| Value { key, value, setting };
    let from = |own: bool, name| if own { None } else { Some(name) };
    let context = rule.context.unwrap_or(settings.context_mode);
    let mut values = vec![
        value(
            "action",
            action_word(entry),
            if rule.action.is_some() { None } else { from(rule.interrupt.is_some(), "interrupt_mode") },
        ),
        value("interrupt", entry.interrupt.as_str().to_owned(), from(rule.interrupt.is_some(), "interrupt_mode")),
        value("repeat", entry.repeat.as_str().to_owned(), from(rule.repeat.is_some(), "repeat_mode")),
    ];
    if entry.repeat == rules::RepeatMode::AfterGap {
        values.push(value("gap", format!("{} turns", entry.gap), from(rule.gap.is_some(), "repeat_gap")));
    }
    if entry.interrupts() {
        values.push(value("context", context_word(context).to_owned(), from(rule.context.is_some(), "context_mode")));
        let most = rule.max_interrupts.unwrap_or(settings.max_interrupts_per_turn);
        let from = from(rule.max_interrupts.is_some(), "max_interrupts_per_turn");
        values.push(value("max_interrupts", format!("{most} a turn"), from));
    }
    values
}

/// What a match leads to, and where that is another word than the rule's own, both.
fn action_word(entry: &RuleEntry) -> String {
    match (entry.action(), entry.rule.action) {
        (word, Some(rules::RuleAction::Block)) if word != "block" => {
            format!("{word}: `block` applies to tool calls, and the rule watches none")
        }
        (word, _) => word.to_owned(),
    }
}

fn context_word(mode: rules::ContextMode) -> &'static str {
    match mode {
        rules::ContextMode::Discard => "discard",
        rules::ContextMode::Keep => "keep",
        rules::ContextMode::Rewind => "rewind",
    }
}

/// Bytes of text or thinking wait only for rules that stop the stream.
fn longest_hold(entry: &RuleEntry, catalogue: &Catalogue) -> Option<u64> {
    if !holds_text(entry, catalogue) { Some(0) } else { entry.longest_match.map(u64::from) }
}

/// Whether text or thinking may wait for the rule.
pub(super) fn holds_text(entry: &RuleEntry, catalogue: &Catalogue) -> bool {
    let rule = &entry.rule;
    let stops = matches!(rule.requests(entry.interrupt, false), flow::Action::Interrupt | flow::Action::Stop);
    rule.bucket == Bucket::Stream
        && rule.watches_prose()
        && stops
        && (rule.secret || catalogue.settings().hold != rules::Hold::Off)
}

fn explained(rule: &Rule, catalogue: &Catalogue) -> Explained {
    match rule.bucket {
        Bucket::AlwaysApply => return Explained::Prompt(rule.body.clone()),
        Bucket::Rulebook => return Explained::OnDemand(rule.body.clone()),
        Bucket::Stream => {}
    }
    let set = alone(rule, catalogue.settings(), catalogue.set().workspace());
    let mut session = catalogue.session(&set, "main");
    session.begin_turn();
    let mut firing = rule.examples.iter().filter(|example| example.fires);
    let matches = firing.find_map(|example| {
        Some(whole(&session, &Input::of_example(example)).matches).filter(|matches| !matches.is_empty())
    });
    let Some(matches) = matches else { return Explained::Body(rule.told().to_owned()) };
    let reminder = match session.judge(&matches).action {
        flow::Action::Remind | flow::Action::Pass => session.tool_reminder(&matches),
        _ => session.reminder(&matches),
    };
    Explained::Reminder(reminder)
}

fn result(rule: &Rule, example: &rules::Example) -> ExampleResult {
    let one = changed(rule, |one| one.examples = vec![example.clone()]);
    let holds = rules::check_examples(&one).is_empty();
    ExampleResult { fires: example.fires, stream: example.stream.clone(), text: example.text.clone(), holds }
}
