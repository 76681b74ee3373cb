//! Rules about commands: of a call of `shell` they watch what its command line runs, in the place of the text of an argument.

use crate::Rule;
use crate::scope::tool_key;

/// The value of `field` that means the commands of a call of `shell`, which [`commands::listed`] lists.
pub(crate) const COMMANDS: &str = "commands";

/// The arguments of `shell` that are command lines: ours, and those of other hosts.
const LINES: [&str; 3] = ["command", "script", COMMANDS];

/// Whether an argument of this tool (in lower case) is a command line.
pub(crate) fn is_line(tool: &str, field: &str) -> bool {
    tool_key(tool) == "shell" && LINES.contains(&field)
}

impl Rule {
    /// Whether it watches the text of this argument of calls of a tool (in lower case).
    pub(crate) fn watches_text_of(&self, tool: &str, field: &str) -> bool {
        let is_named = || self.fields.iter().any(|own| own == field) && !(field == COMMANDS && is_line(tool, field));
        self.fields.is_empty() || is_named()
    }

    /// Whether it watches the commands of calls of `shell`.
    pub(crate) fn watches_commands(&self) -> bool {
        self.fields.iter().any(|field| field == COMMANDS)
    }

    /// Whether what it watches is in this argument of calls of a tool: its text, or the commands in it.
    pub fn reads(&self, tool: &str, field: &str) -> bool {
        let tool = tool.to_lowercase();
        self.watches_text_of(&tool, field) || (self.watches_commands() && is_line(&tool, field))
    }
}
