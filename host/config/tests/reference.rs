//! The pages that explain each key of our files, generated from the schemas' descriptions.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

const OPERATOR: &str = "# `tidegate.toml`\n\nEvery key of the operator's files: that of the user and, on top of it, that of the \
                        workspace or of `--config FILE` ([layers](../../CONFIGURATION.md)). An unknown key is an error that names the nearest known one.\n";

const MANIFEST: &str = "# `plugin.toml`\n\nEvery key of a plugin's manifest. `tidegate plugin show FOLDER` checks a manifest \
                        and prints what it asks for; [plugins](../../../plugins/README.md) shows how the parts work together.\n";

const POLICY: &str = "# `policy.toml`\n\nEvery key of the policy of a machine, `/etc/tidegate/policy.toml`. [Where settings come from](../../CONFIGURATION.md#the-policy-of-a-machine) \
                      says what it is for.\n";

const AGENT: &str = "# Agent files\n\nEvery key of the front matter of an agent file, `.tidegate/agents/NAME.md`; what follows it is the \
                     agent's system prompt. [Child agents](../../CHILD_AGENTS.md) shows how agents are used.\n";

/// A page under construction.
struct Page<'s> {
    definitions: &'s Value,
    text: String,
}

impl<'s> Page<'s> {
    fn render(heading: &str, schema: &'s Value) -> String {
        let mut page = Self { definitions: &schema["definitions"], text: heading.to_owned() };
        page.table(schema, "");
        page.text
    }

    /// Follows the reference of a property, if it has one.
    fn target(&self, property: &'s Value) -> &'s Value {
        let reference = property["$ref"].as_str().or_else(|| property["allOf"][0]["$ref"].as_str());
        reference.and_then(|name| name.rsplit('/').next()).map_or(property, |name| &self.definitions[name])
    }

    /// Writes the keys of a table, then the tables in it, each below its own heading.
    fn table(&mut self, schema: &'s Value, path: &str) {
        let properties = schema["properties"].as_object().unwrap();
        let required = |key: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|one| one == key));
        let (tables, keys): (Vec<_>, Vec<_>) = properties.iter().partition(|(_, about)| self.nested(about).is_some());
        if !keys.is_empty() {
            self.text.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        }
        for (key, about) in keys {
            let default = match &about["default"] {
                Value::Null if required(key) => "required".to_owned(),
                Value::Null => String::new(),
                value => format!("`{value}`"),
            };
            let (kind, meaning) = (self.kind(about), self.meaning(about));
            writeln!(self.text, "| `{key}` | {kind} | {default} | {meaning} |").unwrap();
        }
        let mut shown: Vec<(&'s Value, String)> = Vec::new();
        for (key, about) in tables {
            let (inner, heading) = self.nested(about).unwrap();
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let heading = heading.replace("PATH", &path);
            writeln!(self.text, "\n## `{heading}`\n\n{}", line(about["description"].as_str().unwrap_or_default()))
                .unwrap();
            match shown.iter().find(|(other, _)| std::ptr::eq(*other, inner)) {
                Some((_, other)) => writeln!(self.text, "\nThe keys are those of `{other}`.").unwrap(),
                None => self.table(inner, heading.trim_matches(['[', ']'])),
            }
            shown.push((inner, heading));
        }
    }

    /// The table in a property, and how TOML writes its heading.
    fn nested(&self, about: &'s Value) -> Option<(&'s Value, &'static str)> {
        let is_table = |schema: &'s Value| schema["properties"].is_object().then_some(schema);
        if let Some(table) = is_table(self.target(about)) {
            return Some((table, "[PATH]"));
        }
        if let Some(table) = is_table(self.target(&about["items"])) {
            return Some((table, "[[PATH]]"));
        }
        is_table(self.target(&about["additionalProperties"])).map(|table| (table, "[PATH.NAME]"))
    }

    fn kind(&self, about: &'s Value) -> String {
        let schema = self.target(about);
        if let Some(words) = schema["oneOf"].as_array() {
            let words: Vec<String> = words.iter().map(|word| format!("`{}`", word["const"])).collect();
            return words.join(", ");
        }
        if let Some(kinds) = schema["anyOf"].as_array() {
            let kinds: Vec<String> = kinds.iter().map(|kind| self.kind(kind)).collect();
            return kinds.join(" or ");
        }
        match schema["type"].as_str() {
            Some("array") => format!("list of {}", plural(&self.kind(&schema["items"]))),
            Some("object") if schema["additionalProperties"] == true => "table".to_owned(),
            Some("object") => format!("table: name = {}", self.kind(&schema["additionalProperties"])),
            Some("integer") => match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
                (Some(least), Some(most)) if most < u64::from(u32::MAX) => format!("integer, {least} to {most}"),
                (Some(least), _) => format!("integer, at least {least}"),
                _ => "integer".to_owned(),
            },
            Some(name) => name.to_owned(),
            None => panic!("a kind of value that the page cannot explain: {schema}"),
        }
    }

    fn meaning(&self, about: &'s Value) -> String {
        let mut text = line(about["description"].as_str().unwrap_or_default());
        for word in self.target(about)["oneOf"].as_array().into_iter().flatten() {
            let meaning = line(word["description"].as_str().unwrap_or_default());
            write!(text, "<br>`{}`: {meaning}", word["const"]).unwrap();
        }
        text
    }
}

fn plural(kind: &str) -> String {
    if kind.contains('`') { kind.to_owned() } else { format!("{kind}s") }
}

/// A description on one line of a table.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn up_to_date(name: &str, heading: &str, schema: &str) {
    let page = Page::render(heading, &serde_json::from_str(schema).unwrap());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference").join(name);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        published == page,
        "reference/{name} differs from the schema; `TIDEGATE_BLESS=1 cargo test -p tidegate-config --test it reference::` rewrites it"
    );
}

#[test]
fn the_page_of_the_operators_file_is_up_to_date() {
    up_to_date("tidegate.toml.md", OPERATOR, &tidegate_config::operator_schema());
}

#[test]
fn the_page_of_the_policy_is_up_to_date() {
    up_to_date("policy.toml.md", POLICY, &tidegate_config::policy_schema());
}

#[test]
fn the_page_of_agent_files_is_up_to_date() {
    up_to_date("agent.md", AGENT, &tidegate_config::agent_schema());
}

#[test]
fn the_page_of_the_manifest_is_up_to_date() {
    up_to_date("plugin.toml.md", MANIFEST, &tidegate_config::manifest_schema());
}
