//! Which streams a rule watches: the scope grammar, and file globs.

use std::sync::{Arc, OnceLock};

use flow::text::{check_glob, normal_path};
use globset::{GlobBuilder, GlobMatcher};

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
        glob: Option<Glob>,
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
                let glob = glob.as_ref().map(|g| format!("({})", g.as_str())).unwrap_or_default();
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
    pub fn parse(token: &str) -> Result<Self, String> {
        let (target, glob) = match token.find('(') {
            None if token.contains(')') => return Err(format!("scope `{token}` has a `)` without a matching `(`")),
            None => (token, None),
            Some(at) => {
                let inner =
                    token[at + 1..].strip_suffix(')').ok_or_else(|| format!("scope `{token}` has no closing `)`"))?;
                if inner.trim().is_empty() || inner.contains(')') {
                    return Err(format!("scope `{token}` must contain one glob between `(` and `)`"));
                }
                (token[..at].trim(), Some(Glob::new(inner.trim())?))
            }
        };
        let lower = target.to_ascii_lowercase();
        match (lower.as_str(), &glob) {
            ("text", None) => return Ok(Self::Text),
            ("thinking", None) => return Ok(Self::Thinking),
            ("text" | "thinking", Some(_)) => {
                return Err(format!("scope `{token}`: a glob is allowed for tools only; `{lower}` has no files"));
            }
            ("tool" | "toolcall", _) => return Ok(Self::Tool { name: None, glob }),
            _ => {}
        }
        let name = ["tool:", "toolcall:"].iter().find_map(|p| lower.strip_prefix(p)).unwrap_or(&lower);
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.is_empty() || !name.chars().all(fine) {
            return Err(format!(
                "scope `{token}` does not name a stream: a tool's name consists of letters, digits, `_`, `-`, `.`, `/`"
            ));
        }
        Ok(Self::Tool { name: Some(name.to_owned()), glob })
    }
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
    let (mut out, mut token, mut depth, mut quote) = (Vec::new(), String::new(), 0_usize, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                out.push(std::mem::take(&mut token));
                continue;
            }
            _ => {}
        }
        token.push(c);
    }
    out.push(token);
    out.iter()
        .map(|token| token.trim().trim_matches(|c| c == '"' || c == '\'').trim().to_owned())
        .filter(|token| !token.is_empty())
        .collect()
}

/// A file glob; `*` stops at no `/` only in a pattern without one (then the base name is tried too).
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    glob: globset::Glob,
    /// Compiled on first use: it takes longer than everything else in a rule, and most scopes are never tested.
    matcher: Arc<OnceLock<GlobMatcher>>,
}

impl Glob {
    /// Compiles a glob.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn new(text: &str) -> Result<Self, String> {
        check_glob(text).map_err(|why| format!("glob `{}` is invalid: {why}", start(text)))?;
        let glob = GlobBuilder::new(&text.replace('\\', "/"))
            .literal_separator(true)
            .build()
            .map_err(|error| format!("glob `{text}` is invalid: {}", error.kind()))?;
        Ok(Self { text: text.to_owned(), glob, matcher: Arc::default() })
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tries every way to write `path`: as given, without `./`, absolute, relative to `workspace`, base name alone; `.`,
    /// `..` and doubled separators are resolved by the text alone.
    pub fn matches(&self, path: &str, workspace: &str) -> bool {
        let matcher = self.matcher.get_or_init(|| self.glob.compile_matcher());
        let given = path.replace('\\', "/");
        let relative = relative_path(&given, workspace);
        let base = relative.rsplit('/').next().unwrap_or(&relative);
        let absolute = || {
            let partial = !workspace.is_empty() && !is_absolute(&relative);
            partial.then(|| normal_path(&format!("{}/{relative}", root(workspace))))
        };
        matcher.is_match(&given)
            || matcher.is_match(normal_path(&given))
            || matcher.is_match(&relative)
            || matcher.is_match(base)
            || absolute().is_some_and(|absolute| matcher.is_match(absolute))
    }
}

/// `path` as it is shown: `/` between parts, without `.`, `..` and doubled separators, relative to `workspace` where it
/// lies in it.
pub(crate) fn relative_path(path: &str, workspace: &str) -> String {
    let path = normal_path(&path.replace('\\', "/"));
    let workspace = root(workspace);
    if workspace.is_empty() {
        return path;
    }
    // `../work/a` may lead back into the workspace.
    let full = if path.starts_with("../") { normal_path(&format!("{workspace}/{path}")) } else { path.clone() };
    let inside = full.strip_prefix(&workspace).and_then(|rest| rest.strip_prefix('/'));
    inside.map_or(path, str::to_owned)
}

/// The workspace without a `/` at its end.
fn root(workspace: &str) -> String {
    let root = normal_path(&workspace.replace('\\', "/"));
    root.trim_end_matches('/').to_owned()
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.as_bytes().get(1) == Some(&b':')
}

/// The beginning of a glob, as much of it as belongs into a message.
fn start(glob: &str) -> &str {
    &glob[..glob.floor_char_boundary(200)]
}

/// Whether a condition is really a file glob, by the rule that rule files have always been read with.
pub(crate) fn looks_like_glob(condition: &str) -> bool {
    let none_of = |set: &[char]| !condition.contains(set);
    let name_glob = condition.strip_prefix("*.").is_some_and(|rest| !rest.is_empty());
    none_of(&['\\', '^', '$', '+', '|', '(', ')'])
        && condition.contains(['?', '*', '[', ']', '{', '}'])
        && (condition.contains('/') || name_glob)
}
