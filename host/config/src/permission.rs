//! Permissions of tools as the operator writes them: `shell`, `shell(git status*)`, `*`.

use std::fmt;

use flow::{Location, PermissionMode};

use crate::check::suggest;

/// One entry of `[tools.permission]`.
///
/// The key is a tool's name, or a name and a glob in parentheses, or `*` for every tool. The glob is held against the
/// command of `shell` and against the path (relative to the workspace) of every other tool. Which entry decides does not
/// depend on their order: one with a glob that fits beats one without, that beats `*`; of several globs that fit the
/// strictest decides (`deny`, then `ask`, then `allow`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRule {
    /// The tool's name, or `*`.
    pub tool: String,
    /// The glob, where there is one.
    pub pattern: Option<String>,
    /// What it decides.
    pub mode: PermissionMode,
    /// Where it is written; `None` where a flag or an embedder gave it.
    pub place: Option<Location>,
}

impl fmt::Display for PermissionRule {
    /// As it is written in the file: `"shell(git *)" = "allow"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "\"{}({pattern})\" = \"{}\"", self.tool, self.mode.as_str()),
            None if self.tool == "*" => write!(f, "\"*\" = \"{}\"", self.mode.as_str()),
            None => write!(f, "{} = \"{}\"", self.tool, self.mode.as_str()),
        }
    }
}

/// Why a string is not a permission: the error and the correction, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {help}")]
pub struct BadPermission {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

impl PermissionRule {
    /// Reads a flag: `shell=ask`, `shell(git status*)=allow`.
    ///
    /// # Errors
    /// There is no `=`, the word after the last `=` is not one of `allow`, `ask`, `deny`, or the key is malformed.
    pub fn parse(text: &str) -> Result<Self, BadPermission> {
        let Some((key, word)) = text.rsplit_once('=') else {
            return Err(bad(format!("`{text}` has no mode"), "write it as `TOOL=allow`, `TOOL=ask` or `TOOL=deny`"));
        };
        let word = word.trim();
        let Some(mode) = PermissionMode::from_word(word) else {
            let modes: Vec<&str> = PermissionMode::ALL.iter().map(|mode| mode.as_str()).collect();
            return Err(bad(format!("`{word}` is not a mode"), suggest(word, &modes, "modes")));
        };
        Self::of_key(key.trim(), mode)
    }

    /// Reads the key of an entry: a tool, a tool and a glob, or `*`.
    ///
    /// # Errors
    /// The key is malformed; the error says how.
    pub fn of_key(key: &str, mode: PermissionMode) -> Result<Self, BadPermission> {
        let (tool, pattern) = match key.split_once('(') {
            None => (key, None),
            Some((tool, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (tool, Some(pattern.trim())),
                None => return Err(bad(format!("`{key}` has no `)` at its end"), "write it as `TOOL(GLOB)`")),
            },
        };
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if tool.is_empty() || (tool != "*" && !tool.chars().all(named)) {
            let help = "write a tool's name (letters, digits, `_`, `-`, `.`, `/`), `TOOL(GLOB)`, or `*`";
            return Err(bad(format!("`{tool}` is not the name of a tool"), help));
        }
        match pattern {
            Some("") => {
                Err(bad(format!("`{key}` has an empty pattern"), format!("write `{tool}` to match every call")))
            }
            Some(_) if tool == "*" => Err(bad(
                format!("`{key}` combines a pattern with every tool"),
                "a pattern belongs to one tool: `TOOL(GLOB)`",
            )),
            Some(glob) if globset::Glob::new(glob).is_err() => {
                let help =
                    "`*`, `?`, `[…]` and `{a,b}` are special characters; close every bracket, or escape it with `\\`";
                Err(bad(format!("`{glob}` is not a glob"), help))
            }
            _ => Ok(Self { tool: tool.to_owned(), pattern: pattern.map(str::to_owned), mode, place: None }),
        }
    }
}

fn bad(message: impl Into<String>, help: impl Into<String>) -> BadPermission {
    BadPermission { message: message.into(), help: help.into() }
}
