//! The order in which the calls of one message run: a topological sort (Kahn's algorithm) of the calls, in which of all calls that
//! can run next the one that the suggested order has first does.

use flow::text::normal_path;
use flow::{ToolCall, ToolSpec};
use serde_json::Value;

/// The most calls of one message that are sorted: every two of them are compared. More run in their own order.
const MOST: usize = 256;

/// How deep arguments are read; what is deeper makes a call depend on all others.
const MAX_DEPTH: u32 = 64;

/// What is known of a call.
struct Known {
    /// The position of its tool in the suggested order.
    rank: Option<usize>,
    /// `None`: its arguments cannot be read.
    arguments: Option<Arguments>,
}

/// The strings in the arguments of a call, in lower case: file systems differ in whether case counts.
#[derive(Default)]
struct Arguments {
    /// Those that name files, without `.` and `..` where possible.
    paths: Vec<String>,
    /// The strings that name no file.
    strings: Vec<String>,
}

/// Returns the indexes of the calls in the order in which to run them.
pub(super) fn run_order(order: &[String], calls: &[ToolCall], tools: &[ToolSpec]) -> Vec<usize> {
    let rank = |call: &ToolCall| order.iter().position(|name| *name == call.name);
    if calls.len() > MOST || calls.iter().filter_map(rank).count() < 2 {
        return (0..calls.len()).collect();
    }
    let known: Vec<Known> =
        calls.iter().map(|call| Known { rank: rank(call), arguments: Arguments::of(call, tools) }).collect();
    // How many calls that have not run yet must run before each.
    let waits = |(at, one): (usize, &Known)| known.iter().take(at).filter(|before| keep_order(before, one)).count();
    let mut waits: Vec<usize> = known.iter().enumerate().map(waits).collect();
    let mut left: Vec<usize> = (0..known.len()).collect();
    let mut sorted = Vec::with_capacity(known.len());
    // The first call that is left waits for none, so the loop ends with all calls.
    while let Some(at) = left.iter().copied().filter(|&at| waits[at] == 0).min_by_key(|&at| (known[at].rank, at)) {
        left.retain(|&other| other != at);
        for &later in left.iter().filter(|&&later| later > at && keep_order(&known[at], &known[later])) {
            waits[later] -= 1;
        }
        sorted.push(at);
    }
    sorted
}

/// Whether two calls stay in the order of the model.
fn keep_order(a: &Known, b: &Known) -> bool {
    match (a.rank, b.rank) {
        (Some(first), Some(second)) if first != second => depend(a.arguments.as_ref(), b.arguments.as_ref()),
        _ => true,
    }
}

fn depend(a: Option<&Arguments>, b: Option<&Arguments>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return true };
    // A call that names no file, such as a command, can touch any.
    if a.paths.is_empty() || b.paths.is_empty() {
        return true;
    }
    let meet = a.paths.iter().any(|path| b.paths.iter().any(|other| meet(path, other)));
    meet || a.mentions(b) || b.mentions(a)
}

/// Whether two paths are the same, or one can be inside the other.
fn meet(a: &str, b: &str) -> bool {
    // How a relative path relates to an absolute one, or to one that leads up, is decided by the disk.
    let unclear = a.starts_with('/') != b.starts_with('/') || a.starts_with("..") || b.starts_with("..");
    let inside = |path: &str, folder: &str| {
        folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    unclear || inside(a, b.trim_end_matches('/')) || inside(b, a.trim_end_matches('/'))
}

impl Arguments {
    fn of(call: &ToolCall, tools: &[ToolSpec]) -> Option<Self> {
        let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let value: Value = serde_json::from_str(text).ok()?;
        let declared =
            tools.iter().find(|tool| tool.name == call.name).map(ToolSpec::declared_paths).unwrap_or_default();
        let mut found = Self::default();
        found.read(&value, &Place::default(), &declared, 0).then_some(found)
    }

    /// Collects the strings in a value. Returns whether all of it was read.
    fn read(&mut self, value: &Value, place: &Place, declared: &[String], depth: u32) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(text) => {
                let text = text.to_lowercase();
                if place.names_a_file(declared) {
                    self.paths.push(normal_path(&text.replace('\\', "/")));
                } else {
                    self.strings.push(text);
                }
                true
            }
            Value::Array(items) => items.iter().all(|item| self.read(item, &place.item(), declared, depth + 1)),
            Value::Object(fields) => {
                fields.iter().all(|(key, value)| self.read(value, &place.field(key), declared, depth + 1))
            }
        }
    }

    /// Whether the name of a file of the other call occurs in a string of this one, such as a command.
    fn mentions(&self, other: &Self) -> bool {
        let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
        other.paths.iter().map(name).any(|name| self.strings.iter().any(|text| text.contains(&name)))
    }
}

/// Where a value is in the arguments.
#[derive(Default)]
struct Place {
    /// As [`ToolSpec::declared_paths`] writes it: `edits[].file`.
    field: String,
    /// The innermost key, in lower case.
    key: String,
    in_list: bool,
}

impl Place {
    fn field(&self, key: &str) -> Self {
        let field = if self.field.is_empty() { key.to_owned() } else { format!("{}.{key}", self.field) };
        Self { field, key: key.to_lowercase(), in_list: false }
    }

    fn item(&self) -> Self {
        Self { field: format!("{}[]", self.field), key: self.key.clone(), in_list: true }
    }

    /// Whether a string here names a file: by the schema of the tool, else by its key, as for the file scopes of rules.
    fn names_a_file(&self, declared: &[String]) -> bool {
        let ending = if self.in_list { "paths" } else { "path" };
        if declared.is_empty() { self.key.ends_with(ending) } else { declared.contains(&self.field) }
    }
}
