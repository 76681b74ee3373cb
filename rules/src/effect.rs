//! What a rule does on each kind of stream, and which of its keys change nothing about that.

use std::borrow::Cow;

use flow::Action;

use crate::group::{watches_text, watches_thinking};
use crate::{InterruptMode, RepeatMode, Rule, RuleAction, Scope};

impl Rule {
    /// Whether it can fire on text or on reasoning.
    pub fn watches_prose(&self) -> bool {
        watches_text(self) || watches_thinking(self)
    }

    /// Whether it can fire on calls of some tool, offered or not.
    pub fn watches_tools(&self) -> bool {
        self.scopes.iter().any(|scope| matches!(scope, Scope::Tool { .. }))
    }

    /// The action that the rule requests for a match on a tool call (`true`) or in prose (`false`), ignoring budgets and
    /// earlier matches. `mode` is the interrupt mode in effect for the rule. A rule about secrets lets no match pass, whatever
    /// the mode is.
    pub fn requests(&self, mode: InterruptMode, tool: bool) -> Action {
        match self.action {
            Some(RuleAction::Remind) => Action::Remind,
            Some(RuleAction::Stop) => Action::Stop,
            Some(RuleAction::Block) if tool => Action::Block,
            None | Some(RuleAction::Interrupt | RuleAction::Block) if mode.allows(tool) => Action::Interrupt,
            None | Some(RuleAction::Interrupt | RuleAction::Block) if !self.secret => Action::Remind,
            None | Some(RuleAction::Interrupt | RuleAction::Block) if tool => Action::Block,
            None | Some(RuleAction::Interrupt | RuleAction::Block) => Action::Interrupt,
        }
    }

    /// What a rule about secrets implies, whatever it says itself: it acts on every match, and never only reminds.
    pub(crate) fn imply(&mut self) {
        if self.secret {
            self.repeat = Some(RepeatMode::Always);
            self.action = self.action.filter(|action| *action != RuleAction::Remind);
        }
    }
}

/// A key of a stream rule that can never have an effect, whatever the operator's settings are.
pub(crate) struct Unused {
    pub(crate) key: &'static str,
    pub(crate) why: String,
    pub(crate) help: &'static str,
}

const MODES: [InterruptMode; 4] =
    [InterruptMode::Always, InterruptMode::ProseOnly, InterruptMode::ToolOnly, InterruptMode::Never];

/// The keys without effect. They follow from [`Rule::requests`]: a key is unused if no value of it would change an action.
pub(crate) fn unused(rule: &Rule) -> Vec<Unused> {
    let watched = [(false, rule.watches_prose()), (true, rule.watches_tools())];
    let streams: Vec<bool> = watched.into_iter().filter(|(_, watched)| *watched).map(|(tool, _)| tool).collect();
    if streams.is_empty() {
        // It can never fire, which is reported for the whole rule.
        return Vec::new();
    }
    let mut unused = of_secret(rule);
    let mut rule = Cow::Borrowed(rule);
    if rule.secret {
        rule.to_mut().imply();
    }
    if !rule.fields.is_empty() && !rule.watches_tools() {
        let why = "the rule watches no tool calls, and only tool calls have arguments".to_owned();
        unused.push(Unused { key: "field", why, help: "add a tool to `scope`, or remove the key" });
    }
    if let (Some(_), Some(repeat @ (RepeatMode::Once | RepeatMode::Always))) = (rule.gap, rule.repeat) {
        let why = format!("it is for `after-gap`, and `repeat` is `{}`", repeat.as_str());
        let help = if rule.secret { "remove the key" } else { "set `repeat` to `after-gap`, or remove the key" };
        unused.push(Unused { key: "gap", why, help });
    }
    let decided = |tool: &bool| MODES.iter().all(|mode| rule.requests(*mode, *tool) == rule.requests(MODES[0], *tool));
    if rule.interrupt.is_some() && streams.iter().all(decided) {
        let cause = if rule.secret { SECRET.to_owned() } else { action_of(&rule) };
        let why = format!("{cause} decides what a match does");
        unused.push(Unused { key: "interrupt", why, help: "remove the key, or `action`" });
    }
    let modes = rule.interrupt.map_or(MODES.to_vec(), |mode| vec![mode]);
    let interrupts = |tool: &bool| modes.iter().any(|mode| rule.requests(*mode, *tool) == Action::Interrupt);
    if !streams.iter().any(interrupts) {
        let cause = match rule.interrupt.filter(|_| !streams.iter().all(decided)) {
            Some(mode) => format!("`interrupt = \"{}\"`", mode.as_str()),
            None => action_of(&rule),
        };
        let given = [("context", rule.context.is_some()), ("max_interrupts", rule.max_interrupts.is_some())];
        for (key, _) in given.into_iter().filter(|(_, given)| *given) {
            let why = format!("with {cause} no match of the rule stops the answer");
            unused.push(Unused { key, why, help: "remove the key" });
        }
    }
    unused
}

const SECRET: &str = "`secret = true`";

/// Keys of a rule about secrets that ask for less than it does.
fn of_secret(rule: &Rule) -> Vec<Unused> {
    let mut unused = Vec::new();
    if !rule.secret {
        return unused;
    }
    if let Some(repeat @ (RepeatMode::Once | RepeatMode::AfterGap)) = rule.repeat {
        let why =
            format!("with {SECRET} the rule acts on every match, and `{}` would show later ones", repeat.as_str());
        unused.push(Unused { key: "repeat", why, help: "remove the key, or set it to `always`" });
    }
    if rule.action == Some(RuleAction::Remind) {
        let why = format!("with {SECRET} no match is let through: the answer is stopped, or the call is blocked");
        unused.push(Unused { key: "action", why, help: "remove the key, or set it to `interrupt`, `block` or `stop`" });
    }
    unused
}

/// The rule's `action` as it is written, with the streams where it depends on them.
fn action_of(rule: &Rule) -> String {
    match rule.action {
        Some(RuleAction::Remind) => "`action = \"remind\"`".to_owned(),
        Some(RuleAction::Stop) => "`action = \"stop\"`".to_owned(),
        Some(RuleAction::Block) => "`action = \"block\"` on tool calls".to_owned(),
        Some(RuleAction::Interrupt) | None => "`action = \"interrupt\"`".to_owned(),
    }
}
