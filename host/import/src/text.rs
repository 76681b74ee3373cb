//! How a rule file is written.

use std::fmt::Write as _;

use toml::Value;

use crate::draft::Draft;

/// The most bytes of a description.
const MAX_DESCRIPTION: usize = 300;

impl Draft<'_> {
    /// The whole file.
    pub(crate) fn text(&self, conditions: &[String], fires: &[String], quiet: Option<&str>) -> String {
        let mut out = format!("+++\n# Imported from {}.\n", self.origin.replace(|c: char| c.is_control(), " "));
        for one in &self.left_out {
            let line = one.to_string().replace(|c: char| c.is_control(), " ");
            let _ = writeln!(out, "# Not carried over: {line}.");
        }
        if let Some(code) = &self.disabled {
            let _ = writeln!(out, "# Disabled, because it fires on ordinary code: {code}\nenabled = false");
        }
        let _ = writeln!(out, "description = {}", Value::from(self.description()));
        let _ = writeln!(out, "condition = {}", strings(conditions));
        if !self.all.is_empty() {
            let _ = writeln!(out, "all = {}", strings(&self.all));
        }
        let _ = writeln!(out, "scope = {}", strings(&self.scopes()));
        let _ = writeln!(out, "action = \"block\"");
        let _ = writeln!(out, "{}", if self.is_about_files() { "repeat = \"always\"" } else { "secret = true" });
        let _ = write!(out, "+++\n{}", self.body(fires, quiet));
        out
    }

    fn description(&self) -> String {
        let text = self.detector.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if text.is_empty() { self.detector.id.clone() } else { text };
        text[..text.floor_char_boundary(MAX_DESCRIPTION)].to_owned()
    }

    fn scopes(&self) -> Vec<String> {
        let globs = self.globs.join(", ");
        match (self.globs.is_empty(), self.is_about_files()) {
            (true, _) => ["text", "thinking", "tool"].map(str::to_owned).to_vec(),
            (false, true) => vec![format!("tool:edit({globs})"), format!("tool:write({globs})")],
            (false, false) => vec![format!("tool({globs})")],
        }
    }

    fn body(&self, fires: &[String], quiet: Option<&str>) -> String {
        let (what, instead) = match self.is_about_files() {
            false => (
                "Do not write keys, tokens or passwords. What was stopped has the form of one.",
                "Use the name of its environment variable, or of its entry in the secret store. In an example write a placeholder, such as \
                 `<your-key>`.",
            ),
            true => (
                "Do not write this file: files of its kind contain keys.",
                "Ask the user to put it in place, outside of the project's version control.",
            ),
        };
        let mut out = format!("## What\n{what}\n\n## Fires\n");
        fires.iter().for_each(|text| out.push_str(&self.fence(text)));
        if let Some(quiet) = quiet {
            let _ = write!(out, "\n## Does not fire\n{}", self.fence(quiet));
        }
        let _ = writeln!(out, "\n## Instead\n{instead}");
        out
    }

    fn fence(&self, text: &str) -> String {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
        let ticks = "`".repeat(longest.max(2) + 1);
        let stream = match self.globs.first() {
            Some(glob) => format!("tool:write_file path={} content", path_for(glob)),
            None => "text".to_owned(),
        };
        format!("{ticks}{stream}\n{text}\n{ticks}\n")
    }
}

/// A path that the glob matches.
fn path_for(glob: &str) -> String {
    let mut out = String::new();
    let mut rest = glob.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => out.push_str(if out.is_empty() { "a" } else { "" }),
            '?' => out.push('a'),
            '[' => {
                out.extend(rest.next());
                rest.by_ref().find(|c| *c == ']');
            }
            c => out.push(c),
        }
    }
    out
}

/// One string, or a list of them, as TOML.
fn strings(all: &[String]) -> String {
    match all {
        [one] => Value::from(one.as_str()).to_string(),
        many => Value::from(many.iter().map(String::as_str).collect::<Vec<_>>()).to_string(),
    }
}
