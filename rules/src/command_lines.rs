//! Rules about commands: of a call of `shell` they watch what its command line runs, in the place of the text of an argument.

use std::sync::OnceLock;

use crate::engine::Pattern;
use crate::reach::Together;
use crate::scope::tool_key;
use crate::{Rule, Scope};

/// The value of `field` that means the commands of a call of `shell`, which [`commands::listed`] lists.
pub(crate) const COMMANDS: &str = "commands";

/// The arguments of `shell` that are command lines: ours, and those of other hosts.
const LINES: [&str; 3] = ["command", "script", COMMANDS];

/// Whether an argument of this tool (in lower case) is a command line.
pub(crate) fn is_line(tool: &str, field: &str) -> bool {
    tool_key(tool) == "shell" && LINES.contains(&field)
}

/// What lists of commands are, in ASCII: a command a line, without white space at its ends, with one blank between words. A word begins
/// with no quote, and has more than operators. What is listed as it is written, because it cannot be read, can be anything else.
fn lists() -> Option<&'static Pattern> {
    static LISTS: OnceLock<Option<Pattern>> = OnceLock::new();
    let word = r#"(?:[!#-%*-:=?-{}~][!-~]*|[&;<>()|]+[!#-%*-:=?-{}~][!-~]*|'')"#;
    let command = format!("{word}(?: {word})*");
    let text = format!(r"\A(?:(?:\| {command} \| )?{command}\n)*\z");
    LISTS.get_or_init(|| Pattern::new(&text).ok()).as_ref()
}

/// Whether no list of commands matches a condition, as far as that can be decided.
pub(crate) fn is_in_no_list(condition: &Pattern) -> bool {
    let Some(lists) = lists().filter(|_| condition.as_str().is_ascii()) else { return false };
    let wanted = [vec![condition.nfa()], vec![lists.nfa()]];
    Together::new(&wanted, &[]).and_then(|both| both.within(BUDGET).can_match()) == Some(false)
}

/// What is visited at most, see [`Together`].
const BUDGET: usize = 400_000;

impl Rule {
    /// Whether it watches commands and nothing else.
    pub(crate) fn watches_only_commands(&self) -> bool {
        let of_shell =
            |scope: &Scope| matches!(scope, Scope::Tool { name: Some(name), .. } if tool_key(name) == "shell");
        self.fold.is_none()
            && self.scopes.iter().all(of_shell)
            && self.fields.iter().all(|field| field == COMMANDS)
            && self.watches_commands()
    }

    /// The list of commands that its conditions see in the place of this argument of a call. `None`: they see no commands of it.
    pub fn commands_in(&self, tool: &str, field: &str, text: &str) -> Option<String> {
        let is_line = self.watches_commands() && is_line(&tool.to_lowercase(), field);
        is_line.then(|| commands::listed(text).text)
    }

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
