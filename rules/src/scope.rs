//! Which streams a rule watches: the scope grammar.

use crate::conditions::shown;
use crate::glob::{self, Globs, InvalidScope};

/// One scope of a rule.
#[derive(Clone, Debug)]
pub enum Scope {
    /// Words for the user.
    Text,
    /// The joined reasoning of an answer.
    Thinking,
    /// The decoded arguments of tool calls.
    Tool {
        /// The tool's name, lower-case; none = any tool.
        name: Option<String>,
        /// The call must be about such a file.
        glob: Option<Globs>,
    },
}

impl Scope {
    /// The scope as it is written in full, such as `tool:edit(*.rs)`.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Thinking => "thinking".into(),
            Self::Tool { name, glob } => {
                let name = name.as_ref().map(|n| format!(":{n}")).unwrap_or_default();
                let glob =
                    glob.as_ref().map(|globs| format!("({})", written(globs, is_command(&name)))).unwrap_or_default();
                format!("tool{name}{glob}")
            }
        }
    }

    /// Whether calls of this tool are within the scope, whatever file they are about.
    pub fn takes_tool(&self, tool: &str) -> bool {
        let same = |name: &String| tool_key(name) == tool_key(&tool.to_lowercase());
        matches!(self, Self::Tool { name, .. } if name.as_ref().is_none_or(same))
    }

    /// Reads one token of the grammar.
    ///
    /// # Errors
    /// What is wrong with the token, in words.
    pub fn parse(token: &str) -> Result<Self, InvalidScope> {
        let refused = |why: &str| Err(InvalidScope::new(format!("scope `{}` {why}", shown(token))).help(SCOPE_HELP));
        let (target, glob) = match token.find('(') {
            None if token.contains(')') => return refused("has a `)` without a matching `(`"),
            None => (token, None),
            Some(at) => {
                let Some(inner) = token[at + 1..].strip_suffix(')') else { return refused("has no closing `)`") };
                // A pattern of commands is one glob, whatever blanks it has: what to write instead is said where the tool is known.
                let globs = if is_command(&token[..at].trim().to_ascii_lowercase()) {
                    Globs::one(inner)?
                } else {
                    Globs::read(inner)?
                };
                if globs.is_empty() || !is_balanced(inner) {
                    return refused("must contain a glob between `(` and `)`");
                }
                (token[..at].trim(), Some(globs))
            }
        };
        let lower = target.to_ascii_lowercase();
        match (lower.as_str(), &glob) {
            ("text", None) => return Ok(Self::Text),
            ("thinking", None) => return Ok(Self::Thinking),
            ("text" | "thinking", Some(_)) => {
                return refused(&format!("has a glob, which is for tools only: `{lower}` has no files"));
            }
            ("tool" | "toolcall", _) => return Ok(Self::Tool { name: None, glob }),
            _ => {}
        }
        let name = bare(&lower);
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.is_empty() || !name.chars().all(fine) {
            return refused("does not name a stream: a tool's name consists of letters, digits, `_`, `-`, `.`, `/`");
        }
        Ok(Self::Tool { name: Some(name.to_owned()), glob })
    }
}

const SCOPE_HELP: &str =
    "scopes are `text`, `thinking`, `tool`, `tool:NAME`, `tool:NAME(GLOB)`, `tool(GLOB)`, `NAME`, `NAME(GLOB)`";

/// The name of a tool without the word for tools.
fn bare(name: &str) -> &str {
    ["tool:", "toolcall:"].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name)
}

/// Globs as a scope contains them.
fn written(globs: &Globs, is_command: bool) -> String {
    let one = |glob: &str| if is_command { glob.to_owned() } else { quoted(glob) };
    globs.iter().map(|glob| one(glob.as_str())).collect::<Vec<_>>().join(", ")
}

/// Whether a target is the tool for commands, for which other hosts write a pattern of commands in the place of a glob.
fn is_command(target: &str) -> bool {
    tool_key(bare(target.trim_start_matches(':'))) == "shell"
}

/// A glob in quotes, where it would be read as a list without them.
fn quoted(glob: &str) -> String {
    let is_one = glob::split(glob).is_ok_and(|globs| globs == [glob]);
    if is_one { glob.to_owned() } else { format!("\"{glob}\"") }
}

/// Whether each `)` has a `(` before it.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0_usize;
    let closed = text.chars().all(|c| match c {
        '(' => {
            depth += 1;
            true
        }
        ')' => {
            let open = depth > 0;
            depth = depth.saturating_sub(1);
            open
        }
        _ => true,
    });
    closed && depth == 0
}

/// One name for tools that do the same: rule files written for other hosts say `edit`, ours is `edit_file`. Takes a
/// name in lower case.
pub(crate) fn tool_key(name: &str) -> &str {
    match name {
        "bash" => "shell",
        "edit" => "edit_file",
        "ls" => "list_dir",
        "read" => "read_file",
        "write" => "write_file",
        other => other,
    }
}

/// Splits at commas outside of `()`, `[]`, `{}` and quotes; trims, and takes quotes around a whole token away.
pub(crate) fn split_tokens(text: &str) -> Vec<String> {
    let tokens = glob::parts(text, |c| c == ',').into_iter();
    // `"text" "thinking"` without a comma are two.
    let words = tokens.flat_map(|token| glob::quoted_words(token.trim()).unwrap_or_else(|| vec![token]));
    let trimmed = words.map(|token| token.trim().trim_matches(['"', '\'']).trim().to_owned());
    trimmed.filter(|token| !token.is_empty()).collect()
}

/// Whether what is read as a glob has what regular expressions have and globs seldom: an address, a count, a repeated class or dot, a blank.
pub(crate) fn may_be_regex(glob: &str) -> bool {
    let counts = glob.split('{').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    counts || ["://", ".*", "]*", "]?", "]{", " "].iter().any(|sign| glob.contains(sign))
}

/// Whether a condition is really a file glob, by the rule that rule files have always been read with; or, with `!` before
/// it, what a glob leaves out.
pub(crate) fn looks_like_glob(condition: &str) -> bool {
    let (condition, excludes) = match glob::exclusion(condition) {
        Some(rest) => (rest, true),
        None => (condition, false),
    };
    let none_of = |set: &[char]| !condition.contains(set);
    let name_glob = condition.strip_prefix("*.").is_some_and(|rest| !rest.is_empty());
    none_of(&['\\', '^', '$', '+', '|', '(', ')'])
        && condition.contains(['?', '*', '[', ']', '{', '}'])
        && (condition.contains('/') || name_glob)
        && (!excludes || condition.starts_with('*') || condition.contains("**"))
}
