//! Commands that a user types as a prompt. They are answered here, and the model does not see them. A message for the running turn cannot be
//! one: its response has no place for an answer, and the client is told to send a prompt.

use std::fmt::Write as _;

use tidegate::plugin::CallbackKind;
use tidegate::{Message, Session};

use super::sdk::v1;

const PLUGINS: &str = "plugins";
const RULES: &str = "rules";
const COST: &str = "cost";
const CONTINUE: &str = "continue";

/// A prompt that is a command.
#[derive(Debug)]
pub(super) enum Command {
    /// It is answered with this text.
    Answer(String),
    /// It is not carried out: why.
    Refused(String),
    /// The conversation continues without an input.
    Continue,
}

const COMMANDS: [(&str, &str); 4] = [
    (PLUGINS, "List the extensions of the session"),
    (RULES, "List the stream rules of the session, and what each has done"),
    (COST, "Show what the session has taken of its limits"),
    (CONTINUE, "Continue a turn that was interrupted, cancelled or suspended"),
];

/// The commands as an update.
pub(super) fn available() -> v1::SessionUpdate {
    let commands = COMMANDS.map(|(name, about)| v1::AvailableCommand::new(name, about));
    v1::SessionUpdate::AvailableCommandsUpdate(v1::AvailableCommandsUpdate::new(commands.to_vec()))
}

/// Reads a message that is a command; `None`: it is for the model. A slash and a word at the very start are a command, also where there is
/// none of the name: who mistypes one pays for no request. A path such as `/etc/hosts` is no word, a space before the slash sends the line
/// as text, and an extension that receives the input may have commands of its own.
pub(super) fn of(session: &Session, message: &Message) -> Option<Command> {
    let text = (message.parts.len() == 1).then(|| message.plain_text())?;
    let line = text.strip_prefix('/')?;
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if name.is_empty() || !name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')) {
        return None;
    }
    let is_known = COMMANDS.iter().any(|(known, _)| *known == name);
    if !is_known && !session.loaded().chain(CallbackKind::InputMessages).is_empty() {
        return None;
    }
    Some(match name {
        _ if !arguments.trim().is_empty() => Command::Refused(refusal(name)),
        PLUGINS => Command::Answer(plugins(session)),
        RULES => Command::Answer(rules(session)),
        COST => Command::Answer(cost(session)),
        CONTINUE => Command::Continue,
        _ => Command::Refused(refusal(name)),
    })
}

/// Why a command is not run.
fn refusal(name: &str) -> String {
    let names: Vec<String> = COMMANDS.iter().map(|(known, _)| format!("`/{known}`")).collect();
    let why = if COMMANDS.iter().any(|(known, _)| *known == name) {
        format!("The command `/{name}` takes no arguments.")
    } else {
        format!("There is no command `/{name}`. The commands are {}.", names.join(", "))
    };
    format!("{why} Nothing was sent to the model. A space before the slash sends the line as text.")
}

fn plugins(session: &Session) -> String {
    let mut text = String::new();
    for plugin in session.loaded().plugins() {
        let _ = writeln!(text, "- `{}` {}: {}", plugin.id, plugin.version, plugin.description);
    }
    if text.is_empty() { "The session has no extensions.".to_owned() } else { text }
}

fn rules(session: &Session) -> String {
    let (loaded, metrics, injected) = (session.loaded(), session.rule_metrics(), session.injected_rules());
    let mut text = String::new();
    for info in loaded.rules().rules() {
        let name = &info.rule.name;
        let fires = metrics.get(name).map_or(0, |metrics| metrics.fires);
        let reminded = injected.iter().find(|record| record.rule == *name);
        let reminded = reminded.map(|record| format!("; its reminder is of turn {}", record.turn + 1));
        let _ = writeln!(text, "- `{name}`: matched {fires} times{}", reminded.unwrap_or_default());
    }
    if text.is_empty() { "The session has no rules.".to_owned() } else { text }
}

fn cost(session: &Session) -> String {
    let spent = session.budget().spent();
    let cost = if spent.spend.dollars() > 0.0 { spent.spend.to_string() } else { "not known".to_owned() };
    format!("- turns: {}\n- steps: {}\n- tokens: {}\n- cost: {cost}\n", spent.turns, spent.steps, spent.tokens)
}
