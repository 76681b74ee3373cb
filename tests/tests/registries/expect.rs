//! The model: what a turn does according to the contract, computed from the plugins that are active. It shares no code with the host.

use std::collections::{BTreeMap, BTreeSet};

use tidegate::event::Position;
use tidegate::plugin::{CallbackKind, OutputMode};

use super::random::{Addition, Spec, State, When};

/// The user's input of a turn.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    /// The value that the callbacks which act are to keep under the key `mode`.
    pub(crate) mode: Option<&'static str>,
    pub(crate) words: String,
}

/// The model's answer of a turn: `before<tag>inside</tag>after`.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) before: String,
    pub(crate) tag: &'static str,
    pub(crate) inside: String,
    pub(crate) after: String,
}

/// What is known of a session before a turn.
pub(crate) struct Facts<'a> {
    /// In order of registration.
    pub(crate) active: Vec<&'a Spec>,
    /// By plugin: what is kept under `mode`.
    pub(crate) kept: &'a mut BTreeMap<String, &'static str>,
    pub(crate) turn: u32,
    /// The answer of the turn before, after the rewriters.
    pub(crate) last_answer: Option<String>,
    /// The built-in tools, in their order.
    pub(crate) builtin: &'a [String],
    /// The operator's system prompt.
    pub(crate) system: &'a str,
}

/// What a turn does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The reports of the callbacks that ran, as `plugin callback outcome`, by callback.
    pub(crate) reports: BTreeMap<CallbackKind, Vec<String>>,
    /// The blocks of the system prompt.
    pub(crate) system: Vec<String>,
    pub(crate) tools: Vec<String>,
    /// The messages that join the conversation before the request.
    pub(crate) messages: Vec<String>,
    /// The answer after the rewriters, as it joins the conversation.
    pub(crate) answer: String,
    pub(crate) shown: String,
}

impl Input {
    pub(crate) fn text(&self) -> String {
        let script = self.mode.map(|mode| format!("!state-must-set mode {mode}\n")).unwrap_or_default();
        script + &self.words
    }
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        let Self { before, tag, inside, after } = self;
        format!("{before}<{tag}>{inside}</{tag}>{after}")
    }
}

/// Those of `active` that are called for a callback, in order: of those that are left the highest priority, of several the first.
fn chain<'a>(active: &[&'a Spec], kind: CallbackKind) -> Vec<&'a Spec> {
    let mut left = active.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        let highest = left.iter().map(|spec| spec.priorities[&kind]).max().unwrap();
        let first = left.iter().position(|spec| spec.priorities[&kind] == highest).unwrap();
        order.push(left.remove(first));
    }
    order
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

impl Facts<'_> {
    pub(crate) fn expect(&mut self, input: &Input, answer: &Answer) -> Expected {
        let mut reports = BTreeMap::new();
        let said = self.input(input, &mut reports);
        let texts: Vec<String> = self.last_answer.iter().cloned().chain([said.clone()]).collect();
        let at = |position| self.additions(position, &texts);
        let mut system = at(Position::SystemPrefix);
        system.push(self.system.to_owned());
        let (guidance, tools) = self.tools();
        system.extend(guidance);
        system.extend(at(Position::SystemSuffix));
        let mut messages = at(Position::UserPrefix);
        messages.push(said);
        messages.extend(at(Position::UserSuffix));
        let rewritten = self.output(answer, &mut reports);
        let shown = self.segments(&rewritten, &mut reports);
        Expected { reports, system, tools, messages, answer: rewritten.text(), shown }
    }

    fn input(&mut self, input: &Input, reports: &mut BTreeMap<CallbackKind, Vec<String>>) -> String {
        let mut text = input.text();
        for spec in chain(&self.active, CallbackKind::InputMessages) {
            let acts = run(spec, CallbackKind::InputMessages, reports);
            if acts {
                text.push_str(&spec.mark);
                if let Some(mode) = input.mode {
                    self.kept.insert(spec.id.clone(), mode);
                }
            }
        }
        text
    }

    /// The answer after the rewriters: marks are appended to its end.
    fn output(&self, answer: &Answer, reports: &mut BTreeMap<CallbackKind, Vec<String>>) -> Answer {
        let mut answer = answer.clone();
        for spec in chain(&self.active, CallbackKind::LlmOutput) {
            let acts = spec.acts.contains(&CallbackKind::LlmOutput);
            let outcome = match (acts, spec.mode) {
                (false, _) => "passed",
                (true, OutputMode::Rewrite) => "changed",
                (true, OutputMode::Observe) => "ignored",
            };
            report(spec, CallbackKind::LlmOutput, outcome, reports);
            if outcome == "changed" {
                answer.after.push_str(&spec.mark);
            }
        }
        answer
    }

    /// What is shown: each text goes through `on_plain_text`, and a handled section through `on_tag`.
    fn segments(&self, answer: &Answer, reports: &mut BTreeMap<CallbackKind, Vec<String>>) -> String {
        let handlers = self.handlers(answer.tag);
        if handlers.is_empty() {
            // A tag without a handler is text.
            return self.plain(&answer.text(), reports);
        }
        let before = self.plain(&answer.before, reports);
        let mut inside = self.plain(&answer.inside, reports);
        for spec in handlers {
            if run(spec, CallbackKind::Tag, reports) {
                inside.push_str(&spec.mark);
            }
        }
        let after = self.plain(&answer.after, reports);
        format!("{before}<{tag}>{inside}</{tag}>{after}", tag = answer.tag)
    }

    /// The handlers of a tag: those of its exact name, else those of the longest prefix of it that anyone has registered.
    fn handlers(&self, name: &str) -> Vec<&Spec> {
        let of = |wanted: &str| -> Vec<&Spec> {
            let chain = chain(&self.active, CallbackKind::Tag);
            chain.into_iter().filter(|spec| spec.tags.contains(&wanted)).collect()
        };
        let exact = of(name);
        if !exact.is_empty() {
            return exact;
        }
        let prefixes = (1..=name.len()).rev().map(|length| format!("{}*", &name[..length]));
        prefixes.map(|pattern| of(&pattern)).find(|handlers| !handlers.is_empty()).unwrap_or_default()
    }

    fn plain(&self, text: &str, reports: &mut BTreeMap<CallbackKind, Vec<String>>) -> String {
        let mut text = text.to_owned();
        for spec in chain(&self.active, CallbackKind::PlainText) {
            if run(spec, CallbackKind::PlainText, reports) {
                text.push_str(&spec.mark);
            }
        }
        text
    }

    /// The additions of a position: first those without conditions; by id, then as declared.
    fn additions(&self, position: Position, texts: &[String]) -> Vec<String> {
        let mut all: Vec<(bool, &str, usize, &Addition)> = Vec::new();
        for spec in &self.active {
            let own = spec.additions.iter().enumerate().filter(|(_, one)| one.position == position);
            all.extend(own.map(|(index, one)| (one.when.is_some(), spec.id.as_str(), index, one)));
        }
        all.sort_by_key(|(conditional, id, index, _)| (*conditional, *id, *index));
        let passed = all.into_iter().filter(|(_, id, _, one)| {
            one.when.as_ref().is_none_or(|when| self.passes(when, self.kept.get(*id).copied(), texts))
        });
        passed.map(|(_, _, _, one)| one.text.clone()).collect()
    }

    fn passes(&self, when: &When, kept: Option<&str>, texts: &[String]) -> bool {
        let When { tag, state, model, turns } = when;
        let has_tag = |pattern: &str| {
            let opening = |text: &String| -> BTreeSet<String> {
                let parts = text.split('<').skip(1).filter_map(|part| part.split_once('>'));
                parts.map(|(name, _)| name.to_owned()).filter(|name| !name.starts_with('/')).collect()
            };
            texts.iter().flat_map(opening).any(|name| matches(pattern, &name))
        };
        let of_state = |state: &State| match state {
            State::Exists(exists) => kept.is_some() == *exists,
            State::Equals(value) => kept == Some(*value),
        };
        tag.is_none_or(has_tag)
            && state.as_ref().is_none_or(of_state)
            // The model's name is `script-1`.
            && model.is_none_or(|model| model != "other")
            && turns.is_none_or(|(first, last)| (first..=last).contains(&self.turn))
    }

    /// The block of guidance, and the tools in the order in which they are offered.
    fn tools(&self) -> (Option<String>, Vec<String>) {
        let mut said: Vec<&Spec> = self.active.clone();
        said.sort_by_key(|spec| 100 - spec.guidance.priority);
        let (mut preferred, mut avoided): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for spec in &said {
            for name in &spec.guidance.preferred {
                if !avoided.contains(name) && !preferred.contains(name) {
                    preferred.push(name);
                }
            }
            for name in &spec.guidance.avoided {
                if !avoided.contains(name) && !preferred.contains(name) {
                    avoided.push(name);
                }
            }
        }
        // Of plugins that contradict each other the merge is proven in the crate of guidance: here one plugin suggests an order.
        let order = said.iter().map(|spec| &spec.guidance.order).find(|order| !order.is_empty());
        let lines = [
            ("Prefer these tools where they fit", preferred.join(", ")),
            ("Use these tools only where no other tool works", avoided.join(", ")),
            ("Where several calls are needed, this order works best", order.map(|o| o.join(", ")).unwrap_or_default()),
        ];
        let lines: Vec<String> = lines
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what}: {names}."))
            .collect();
        let of_plugins = self.active.iter().map(|spec| format!("run-{}", spec.id));
        let all: Vec<String> = self.builtin.iter().cloned().chain(of_plugins).collect();
        let middle = all.iter().filter(|name| !preferred.contains(&name.as_str()) && !avoided.contains(&name.as_str()));
        let last = all.iter().filter(|name| avoided.contains(&name.as_str()));
        let first = preferred.iter().map(|name| (*name).to_owned());
        let offered = first.chain(middle.cloned()).chain(last.cloned()).collect();
        ((!lines.is_empty()).then(|| lines.join("\n")), offered)
    }
}

/// A callback runs; returns whether it acts.
fn run(spec: &Spec, kind: CallbackKind, reports: &mut BTreeMap<CallbackKind, Vec<String>>) -> bool {
    let acts = spec.acts.contains(&kind);
    report(spec, kind, if acts { "changed" } else { "passed" }, reports);
    acts
}

fn report(spec: &Spec, kind: CallbackKind, outcome: &str, reports: &mut BTreeMap<CallbackKind, Vec<String>>) {
    reports.entry(kind).or_default().push(format!("{} {outcome}", spec.id));
}
