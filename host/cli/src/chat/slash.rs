//! The slash commands: their names, and what a line means.

use std::path::PathBuf;

/// A line that begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    /// Print the commands, or the keys.
    Help {
        keys: bool,
    },
    /// Continue without an input.
    Continue,
    /// Show the model, or continue with another one.
    Model(Option<String>),
    Plugins(Option<Switch>),
    Rules,
    /// Explain a turn, by default the last.
    Why(Option<u32>),
    Queue(Queue),
    /// List the sessions, or continue one.
    Resume(Option<String>),
    /// Continue another session from the end of a turn, by default the last.
    Fork(Option<u32>),
    Export(Option<PathBuf>),
    Cost,
    Quit,
}

/// What is to be done with a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) plugin: String,
    pub(super) on: bool,
}

/// What is to be done with the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Show,
    /// Sends the first message now.
    Send,
    /// Removes a message, counted from 1.
    Drop(usize),
    /// Takes a message back to the input line.
    Edit(usize),
    Clear,
}

/// The commands: name, arguments, and what each does.
pub(super) const COMMANDS: [(&str, &str, &str); 12] = [
    ("help", "[keys]", "Print the commands, or the keys"),
    ("continue", "", "Continue a turn that was cancelled, suspended or cut off"),
    ("model", "[NAME]", "Continue with another model, or choose one from a list"),
    ("plugins", "[on ID | off ID]", "List the plugins, or switch one for this session"),
    ("rules", "", "List the rules that are in force in the session"),
    ("why", "[TURN]", "Print which extension or rule changed what in a turn"),
    ("queue", "[send | drop N | edit N | clear]", "List the messages that wait, send the first now, or change them"),
    ("resume", "[ID]", "Continue another session of this workspace, or choose one from a list"),
    ("fork", "[TURN]", "Continue in a new session from the end of a turn"),
    ("export", "[FILE]", "Write the session as .md, .html or .jsonl"),
    ("cost", "", "Print tokens, cost and the share of the context"),
    ("quit", "", "End the chat"),
];

/// Whether a command takes arguments.
pub(super) fn has_arguments(name: &str) -> bool {
    COMMANDS.iter().any(|(known, arguments, _)| *known == name && !arguments.is_empty())
}

impl Slash {
    /// Reads a line that begins with a slash.
    ///
    /// # Errors
    /// There is no such command, or its arguments are wrong: a sentence for the user.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.trim_start_matches('/').split_whitespace().collect();
        let Some((&name, words)) = words.split_first() else { return Ok(Self::Help { keys: false }) };
        let usage = || {
            let known = COMMANDS.iter().find(|(known, ..)| *known == name);
            let known =
                known.map(|(name, arguments, _)| format!("the command is `{}`", format!("/{name} {arguments}").trim()));
            known.unwrap_or_else(|| format!("no command is named `/{name}`; `/help` lists them"))
        };
        let number = |word: &str| word.parse().ok().filter(|number| *number > 0).ok_or_else(usage);
        Ok(match (name, words) {
            ("help", []) => Self::Help { keys: false },
            ("help", ["keys"]) => Self::Help { keys: true },
            ("continue", []) => Self::Continue,
            ("model", []) => Self::Model(None),
            ("model", [model]) => Self::Model(Some((*model).to_owned())),
            ("plugins", []) => Self::Plugins(None),
            ("plugins", [how @ ("on" | "off"), id]) => {
                Self::Plugins(Some(Switch { plugin: (*id).to_owned(), on: *how == "on" }))
            }
            ("rules", []) => Self::Rules,
            ("why", []) => Self::Why(None),
            ("why", [turn]) => Self::Why(Some(number(turn)?)),
            ("queue", []) => Self::Queue(Queue::Show),
            ("queue", ["send"]) => Self::Queue(Queue::Send),
            ("queue", ["drop", place]) => Self::Queue(Queue::Drop(number(place)? as usize)),
            ("queue", ["edit", place]) => Self::Queue(Queue::Edit(number(place)? as usize)),
            ("queue", ["clear"]) => Self::Queue(Queue::Clear),
            ("resume", []) => Self::Resume(None),
            ("resume", [id]) => Self::Resume(Some((*id).to_owned())),
            ("fork", []) => Self::Fork(None),
            ("fork", [turn]) => Self::Fork(Some(number(turn)?)),
            ("export", []) => Self::Export(None),
            ("export", [file]) => Self::Export(Some(file.into())),
            ("cost", []) => Self::Cost,
            ("quit" | "exit", []) => Self::Quit,
            _ => return Err(usage()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_commands() {
        let page = include_str!("../../../CHAT.md");
        for (name, arguments, what) in COMMANDS {
            let command = format!("/{name} {}", arguments.replace('|', "\\|"));
            let row = format!("| `{}` | {what} |", command.trim());
            assert!(page.contains(&row), "{row}");
        }
    }

    #[test]
    fn every_command_is_read_and_what_is_none_is_explained() {
        for (name, ..) in COMMANDS {
            assert!(Slash::parse(&format!("/{name}")).is_ok(), "{name}");
        }
        for (line, expected) in [
            ("/", Ok(Slash::Help { keys: false })),
            ("/help keys", Ok(Slash::Help { keys: true })),
            ("/model  gpt", Ok(Slash::Model(Some("gpt".into())))),
            ("/plugins off notes", Ok(Slash::Plugins(Some(Switch { plugin: "notes".into(), on: false })))),
            ("/why 3", Ok(Slash::Why(Some(3)))),
            ("/queue drop 2", Ok(Slash::Queue(Queue::Drop(2)))),
            ("/why 0", Err("the command is `/why [TURN]`")),
            ("/rules all", Err("the command is `/rules`")),
            ("/queue drop x", Err("the command is `/queue [send | drop N | edit N | clear]`")),
            ("/modle", Err("no command is named `/modle`; `/help` lists them")),
        ] {
            assert_eq!(Slash::parse(line), expected.map_err(str::to_owned), "{line}");
        }
    }
}
