//! Tries one rule on one input: whether it fires, and what keeps it from firing.
//!
//! Why a rule does not fire is found by taking away what it asks for, one thing after the other, until it does.

use std::fmt;
use std::sync::Arc;

use flow::{Action, Evidence, RuleMatch};
use rules::engine::Pattern;
use rules::{Bucket, Globs, Rule, RuleSession, Scope};

use super::feed::{Fired, alone, by_character, whole};
use super::{Catalogue, Held, Input, RuleStatus, Subject, changed};

/// What became of a trial.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The match, where the rule fires; for a rule that is not in use, see `would_fire`.
    pub fired: Option<RuleMatch>,
    /// The match of a rule that is kept out by its state alone.
    pub would_fire: Option<RuleMatch>,
    /// What is done about the match.
    pub action: Option<Action>,
    /// The reminder for the model.
    pub reminder: Option<String>,
    /// What was held on the way.
    pub held: Held,
    /// The lists of commands that the conditions of a rule about commands saw, by argument.
    pub commands: Vec<(String, String)>,
    /// What keeps it from firing, each reason by itself enough. Empty where it fires.
    pub why: Vec<Why>,
    /// Fed whole and fed character by character, the same match came at the same byte.
    pub same_however_cut: bool,
}

/// What keeps a rule from firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is for something else: it has no condition.
    NoCondition(Bucket),
    /// It is not used; why.
    State(RuleStatus),
    /// It watches other agents.
    Agent {
        /// The agent of the trial.
        agent: String,
        /// The globs of the rule.
        agents: Vec<String>,
    },
    /// The stream is not in its scope.
    Scope {
        /// The stream of the trial.
        stream: String,
        /// The scopes of the rule.
        scopes: Vec<String>,
    },
    /// The call is about no file that the rule asks for; the globs of its scopes and its `globs`.
    File(Vec<String>),
    /// Its condition matches in another argument than those of `field`.
    Field {
        /// The argument that was watched instead, if any.
        found: Option<String>,
        /// The arguments of `field`.
        fields: Vec<String>,
    },
    /// An `unless` had matched.
    Unless(Box<Evidence>),
    /// Some of `all` do not match.
    All {
        /// Those that do not.
        missing: Vec<String>,
        /// How many there are.
        of: usize,
    },
    /// None of the conditions matches.
    Condition(Vec<String>),
    /// Everything it asks for is there, but never in one argument.
    Apart,
    /// The arguments are not valid JSON from some position on.
    Unreadable(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |items: &[String]| items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::NoCondition(Bucket::Rulebook) => {
                f.write_str("it has no condition: it is a rule of the rulebook, which the model reads on demand")
            }
            Self::NoCondition(_) => f.write_str("it has no condition: its body is part of the system prompt"),
            Self::State(status) => write!(f, "it is {status}"),
            Self::Agent { agent, agents } => {
                write!(f, "it watches the agents {}, and this is `{agent}`", list(agents))
            }
            Self::Scope { stream, scopes } => write!(f, "`{stream}` is not in its scope: {}", list(scopes)),
            Self::File(globs) => write!(f, "the call names no file that it asks for: {}", list(globs)),
            Self::Field { found, fields } => {
                let found = found.as_deref().unwrap_or("another argument");
                write!(f, "it matches in `{found}`, and `field` asks for {}", list(fields))
            }
            Self::Unless(evidence) => write!(
                f,
                "`unless` matched first: `{}` at line {}, bytes {}..{}",
                evidence.pattern, evidence.line, evidence.start, evidence.end
            ),
            Self::All { missing, of } => {
                write!(f, "{} of {of} `all` match; these do not: {}", of - missing.len(), list(missing))
            }
            Self::Condition(patterns) => write!(f, "no condition matches: {}", list(patterns)),
            Self::Apart => {
                f.write_str("all its conditions match, but not in one argument: each argument is matched separately")
            }
            Self::Unreadable(error) => write!(f, "the arguments cannot be read completely: {error}"),
        }
    }
}

/// Tries a rule on an input, as the agent of this name. Nothing else that the host has takes part: no other rule, no
/// earlier match, no budget.
pub fn probe(catalogue: &Catalogue, subject: &Subject, agent: &str, input: &Input) -> Probe {
    let bench = Bench { catalogue, agent, input };
    let rule = &subject.entry.rule;
    if rule.bucket != Bucket::Stream {
        return bench.silent(vec![Why::NoCondition(rule.bucket)], &Fired::default());
    }
    let mut session = bench.session(rule);
    session.begin_turn();
    let (at_once, cut) = (whole(&session, input), by_character(&session, input));
    let mut probe = match at_once.matches.first() {
        None => bench.silent(bench.reasons(rule, &at_once), &cut),
        Some(found) => {
            let action = session.judge(&at_once.matches).action;
            let reminder = match action {
                Action::Pass => None,
                Action::Remind => Some(session.tool_reminder(&at_once.matches)),
                Action::Interrupt | Action::Block | Action::Stop => Some(session.reminder(&at_once.matches)),
            };
            Probe { fired: Some(found.clone()), action: Some(action), reminder, ..bench.silent(Vec::new(), &cut) }
        }
    };
    probe.same_however_cut = at_once.matches == cut.matches;
    probe.commands = commands(rule, input);
    if let RuleStatus::Disabled(_) | RuleStatus::Shadowed(_) | RuleStatus::Unreachable(_) = &subject.entry.status {
        probe.would_fire = probe.fired.take();
        probe.why.insert(0, Why::State(subject.entry.status.clone()));
        (probe.action, probe.reminder) = (None, None);
    }
    probe
}

/// What a rule about commands sees of a call.
fn commands(rule: &Rule, input: &Input) -> Vec<(String, String)> {
    let Input::Call { tool, arguments } = input else { return Vec::new() };
    let arguments: serde_json::Map<String, serde_json::Value> = serde_json::from_str(arguments).unwrap_or_default();
    let listed = |(field, value): (&String, &serde_json::Value)| {
        Some((field.clone(), rule.commands_in(tool, field, value.as_str()?)?))
    };
    arguments.iter().filter_map(listed).collect()
}

/// What all trials of one rule share.
struct Bench<'a> {
    catalogue: &'a Catalogue,
    agent: &'a str,
    input: &'a Input,
}

impl Bench<'_> {
    fn silent(&self, why: Vec<Why>, cut: &Fired) -> Probe {
        let (fired, would_fire, action, reminder) = (None, None, None, None);
        let (held, commands) = (cut.held, Vec::new());
        Probe { fired, would_fire, action, reminder, held, commands, why, same_however_cut: true }
    }

    fn session(&self, rule: &Rule) -> RuleSession {
        let set = alone(rule, self.catalogue.settings(), self.catalogue.set().workspace());
        self.catalogue.session(&set, self.agent)
    }

    fn matched(&self, rule: &Rule) -> Option<RuleMatch> {
        whole(&self.session(rule), self.input).matches.into_iter().next()
    }

    /// Why the rule did not fire.
    fn reasons(&self, rule: &Rule, fired: &Fired) -> Vec<Why> {
        let mut why = Vec::new();
        why.extend(fired.unreadable.clone().map(Why::Unreadable));
        if !rule.watches_agent(self.agent) {
            let agents = rule.agents.iter().map(|glob| glob.as_str().to_owned()).collect();
            why.push(Why::Agent { agent: self.agent.to_owned(), agents });
        }
        if !rule.scopes.iter().any(|scope| self.takes(scope)) {
            let scopes = rule.scopes.iter().map(Scope::to_text).collect();
            why.push(Why::Scope { stream: self.input.stream(), scopes });
        }
        // Whoever is watched, whatever stream and file: only what is looked for is left.
        let anywhere = changed(rule, |rule| {
            rule.agents = Globs::default();
            rule.globs = Globs::default();
            rule.never = None;
            rule.scopes = vec![Scope::Text, Scope::Thinking, Scope::Tool { name: None, glob: None }];
        });
        if self.matched(&anywhere).is_some() {
            if why.is_empty() {
                why.push(Why::File(file_globs(rule)));
            }
            return why;
        }
        let everywhere = changed(&anywhere, |rule| rule.fields.clear());
        if let Some(found) = self.matched(&everywhere) {
            why.push(Why::Field { found: found.evidence.field, fields: rule.fields.clone() });
            return why;
        }
        self.patterns(&anywhere, &mut why);
        why
    }

    fn takes(&self, scope: &Scope) -> bool {
        match self.input {
            Input::Text(_) => matches!(scope, Scope::Text),
            Input::Thinking(_) => matches!(scope, Scope::Thinking),
            Input::Call { tool, .. } => scope.takes_tool(tool),
        }
    }

    /// Which of the patterns match by themselves.
    fn patterns(&self, rule: &Rule, why: &mut Vec<Why>) {
        let before = why.len();
        let found = |pattern: &Arc<Pattern>| {
            self.matched(&changed(rule, |rule| {
                rule.conditions = vec![Arc::clone(pattern)];
                rule.all.clear();
                rule.unless.clear();
            }))
        };
        let text = |pattern: &Arc<Pattern>| pattern.as_str().to_owned();
        if !rule.conditions.is_empty() && !rule.conditions.iter().any(|pattern| found(pattern).is_some()) {
            why.push(Why::Condition(rule.conditions.iter().map(text).collect()));
        }
        let missing: Vec<String> = rule.all.iter().filter(|pattern| found(pattern).is_none()).map(text).collect();
        if !missing.is_empty() {
            why.push(Why::All { missing, of: rule.all.len() });
        }
        if why.len() > before {
            return;
        }
        let unless = rule.unless.iter().filter_map(found).min_by_key(|found| found.evidence.end);
        why.push(unless.map_or(Why::Apart, |found| Why::Unless(Box::new(found.evidence))));
    }
}

/// The globs that a call's file has to match: those of the scopes, and `globs`.
fn file_globs(rule: &Rule) -> Vec<String> {
    let scoped = rule.scopes.iter().filter_map(|scope| match scope {
        Scope::Tool { glob, .. } => glob.as_ref(),
        _ => None,
    });
    scoped.chain([&rule.globs]).flat_map(|globs| globs.iter()).map(|glob| glob.as_str().to_owned()).collect()
}
