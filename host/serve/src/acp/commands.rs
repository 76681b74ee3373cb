//! Commands that a user types as a prompt. They are answered here, and the model does not see them.

use std::fmt::Write as _;

use tidegate::Session;

use super::sdk::v1;

const PLUGINS: &str = "plugins";
const RULES: &str = "rules";
const COST: &str = "cost";

/// The commands as an update.
pub(super) fn available() -> v1::SessionUpdate {
    let commands = [
        (PLUGINS, "List the extensions of the session"),
        (RULES, "List the stream rules of the session, and what each has done"),
        (COST, "Show what the session has taken of its limits"),
    ];
    let commands = commands.map(|(name, about)| v1::AvailableCommand::new(name, about));
    v1::SessionUpdate::AvailableCommandsUpdate(v1::AvailableCommandsUpdate::new(commands.to_vec()))
}

/// The answer to a prompt that is a command; `None`: it is for the model.
pub(super) fn answer(session: &Session, prompt: &str) -> Option<String> {
    match prompt.trim().strip_prefix('/')? {
        PLUGINS => Some(plugins(session)),
        RULES => Some(rules(session)),
        COST => Some(cost(session)),
        _ => None,
    }
}

fn plugins(session: &Session) -> String {
    let mut text = String::new();
    for plugin in session.loaded().plugins() {
        let _ = writeln!(text, "- `{}` {}: {}", plugin.id, plugin.version, plugin.description);
    }
    if text.is_empty() { "The session has no extensions.".to_owned() } else { text }
}

fn rules(session: &Session) -> String {
    let (loaded, metrics) = (session.loaded(), session.rule_metrics());
    let mut text = String::new();
    for info in loaded.rules().rules() {
        let name = &info.rule.name;
        let fires = metrics.get(name).map_or(0, |metrics| metrics.fires);
        let _ = writeln!(text, "- `{name}`: matched {fires} times");
    }
    if text.is_empty() { "The session has no rules.".to_owned() } else { text }
}

fn cost(session: &Session) -> String {
    let spent = session.budget().spent();
    format!(
        "- turns: {}\n- steps: {}\n- tokens: {}\n- cost: ${:.4}\n",
        spent.turns,
        spent.steps,
        spent.tokens,
        spent.spend.dollars()
    )
}
