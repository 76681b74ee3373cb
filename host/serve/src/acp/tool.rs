//! Tool calls as an editor shows them: kind, title, places and content.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tidegate::question::Preview;
use tidegate::text::{exact, normal_path};

use super::diff;
use super::sdk::v1::{Content, ContentBlock, Diff, TextContent, ToolCallContent, ToolCallLocation, ToolKind};

/// The most characters of a title.
const TITLE: usize = 120;

/// The content of a call that ends with its turn.
pub(super) const NO_RESULT: &str = "The turn ended before the call had a result.";

/// A call of a tool, as far as its arguments can be read.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) kind: ToolKind,
    pub(super) title: String,
    pub(super) locations: Vec<ToolCallLocation>,
    /// The arguments; as a string where they are not JSON.
    pub(super) input: Value,
    /// The file that the call is about.
    pub(super) path: Option<PathBuf>,
}

/// Describes a call in a workspace. What the arguments are is up to the model: anything can be missing or of another type.
pub(super) fn describe(workspace: &Path, tool: &str, arguments: &str) -> Described {
    let input = serde_json::from_str(arguments).unwrap_or_else(|_| Value::String(arguments.to_owned()));
    let text = |key: &str| input.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let named = |verb: &str, key: &str, default: &str| format!("{verb} `{}`", flat(text(key).unwrap_or(default)));
    let (kind, title) = match tool {
        "read_file" => (ToolKind::Read, named("Read", "path", "a file")),
        "write_file" => (ToolKind::Edit, named("Write", "path", "a file")),
        "edit_file" => (ToolKind::Edit, named("Edit", "path", "a file")),
        "list_dir" => (ToolKind::Read, named("List", "path", ".")),
        "find" => (ToolKind::Search, named("Find", "pattern", "*")),
        "grep" => (ToolKind::Search, named("Search for", "pattern", "")),
        "shell" => (ToolKind::Execute, command_title(text("command").unwrap_or(tool))),
        "plan" => (ToolKind::Think, "Show the plan".to_owned()),
        "read_rule" => (ToolKind::Read, named("Read the rule", "name", "")),
        "spawn_agent" => (ToolKind::Other, named("Start the agent", "agent", "")),
        _ => (ToolKind::Other, flat(tool)),
    };
    let path = text("path")
        .filter(|_| kind != ToolKind::Other)
        .map(|path| PathBuf::from(normal_path(&workspace.join(path).to_string_lossy()).as_str()));
    let line = input.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    let locations = path.iter().map(|path| ToolCallLocation::new(path).line(line)).collect();
    Described { kind, title, locations, input, path }
}

/// The title of a call that runs a command.
pub(super) fn command_title(command: &str) -> String {
    format!("`{}`", flat(command))
}

/// The arguments of a call in full, as a person has to see them who decides about it: a title is one line of limited length.
pub(super) fn arguments(preview: &Preview) -> Vec<ToolCallContent> {
    let shown = preview.arguments.iter().map(|argument| {
        let value = fenced("", &exact(&argument.value, |_| false).0);
        text(if argument.name.is_empty() { value } else { format!("`{}`\n{value}", flat(&argument.name)) })
    });
    shown.collect()
}

/// Whether an argument contains characters that a reader does not see.
pub(super) fn hides(preview: &Preview) -> bool {
    preview.arguments.iter().any(|argument| exact(&argument.value, |_| false).1)
}

/// One line of at most [`TITLE`] characters, with what is invisible written out.
pub(super) fn flat(text: &str) -> String {
    let mut line = exact(&text.split_whitespace().collect::<Vec<_>>().join(" "), |_| false).0;
    if let Some((end, _)) = line.char_indices().nth(TITLE) {
        line.truncate(end);
        line.push('…');
    }
    line.replace('`', "'")
}

/// A text in a form that hides nothing.
pub(super) fn shown(text: &str) -> String {
    exact(text, |_| false).0
}

/// A text of a tool call's content.
pub(super) fn text(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::Text(TextContent::new(text))))
}

impl Described {
    /// The change that a diff describes, as content.
    pub(super) fn change(&self, diff: &str) -> Vec<ToolCallContent> {
        match &self.path {
            Some(path) => diff::content(path, diff),
            None => vec![text(fenced("diff", diff))],
        }
    }

    /// What a call would change, as a question shows it. Of a new file there is no diff: all of it is an argument.
    pub(super) fn proposed(&self, diff: Option<&str>) -> Vec<ToolCallContent> {
        let content = self.input.get("content").and_then(Value::as_str).filter(|_| self.kind == ToolKind::Edit);
        match (diff, content, &self.path) {
            (Some(diff), _, _) => self.change(diff),
            (None, Some(content), Some(path)) => vec![ToolCallContent::Diff(Diff::new(path, content))],
            _ => Vec::new(),
        }
    }

    /// The output of a tool: human-readable text unchanged, everything else as a code block, which no renderer changes.
    pub(super) fn output(&self, output: &str) -> Option<ToolCallContent> {
        if output.is_empty() {
            return None;
        }
        Some(text(match self.kind {
            ToolKind::Edit | ToolKind::Other => output.to_owned(),
            _ => fenced("", output),
        }))
    }

    /// The places of a change.
    pub(super) fn changed(&self, diff: &str) -> Vec<ToolCallLocation> {
        self.path.as_ref().map(|path| diff::locations(path, diff)).unwrap_or_default()
    }
}

/// A code block of Markdown, with a fence that does not occur in it.
pub(super) fn fenced(language: &str, code: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for byte in code.bytes() {
        run = if byte == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let end = if code.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{code}{end}{fence}")
}
