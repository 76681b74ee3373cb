//! Arguments that a trial or an example names and its tool does not take: a rule does not fire on them in any session.

use std::fmt;

use flow::ToolSpec;
use flow::text::nearest;
use rules::Scope;

use super::{Catalogue, Input};

/// Arguments of a call that its tool does not take. The rule is tested with them anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownArguments {
    /// The tool, as it is offered.
    pub tool: String,
    /// The arguments that it does not take.
    pub unknown: Vec<String>,
    /// Those that it takes.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let word = if self.unknown.len() == 1 { "argument" } else { "arguments" };
        write!(f, "`{}` has no {word} {}", self.tool, list(&self.unknown))?;
        let near = |name: &String| nearest(name, self.known.iter().map(String::as_str));
        match self.unknown.as_slice() {
            [one] if near(one).is_some() => write!(f, "; did you mean `{}`?", near(one).unwrap_or_default()),
            _ if self.known.is_empty() => f.write_str("; it takes none."),
            _ => write!(f, "; its arguments are {}.", list(&self.known)),
        }
    }
}

impl Catalogue {
    /// The arguments of a call that its tool does not take; `None` where it takes all of them, where its schema permits others than it
    /// lists, or where it is not offered here.
    pub fn unknown_arguments(&self, input: &Input) -> Option<UnknownArguments> {
        let Input::Call { tool, arguments } = input else { return None };
        let named = Scope::Tool { name: Some(tool.to_lowercase()), glob: None };
        let spec: &ToolSpec = self.specs().iter().find(|spec| named.takes_tool(&spec.name))?;
        let taken = spec.arguments();
        let mut unknown = Vec::new();
        values("", &serde_json::from_str(arguments).ok()?, &mut |name| {
            if !taken.names.contains(&name) && !unknown.contains(&name) {
                unknown.push(name);
            }
        });
        let wrong = || UnknownArguments { tool: spec.name.clone(), unknown, known: taken.names };
        (taken.are_all).then(wrong).filter(|wrong| !wrong.unknown.is_empty())
    }
}

/// The names of the values in arguments, as `field` has them: `edits[].new_text`. An object or a list without entries has none.
fn values(at: &str, value: &serde_json::Value, out: &mut impl FnMut(String)) {
    match value {
        serde_json::Value::Object(members) => {
            for (key, value) in members {
                let name = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                values(&name, value, out);
            }
        }
        serde_json::Value::Array(entries) => entries.iter().for_each(|entry| values(&format!("{at}[]"), entry, out)),
        _ => out(at.to_owned()),
    }
}
