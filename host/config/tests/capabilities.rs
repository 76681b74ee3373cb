//! The page with every power: what it gives, the interface that it stands for, and its limits, from the contract and the schemas.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use flow::Power;
use serde_json::Value;

const HEADING: &str = "# Powers of plugins

Callbacks need no power: they get what they are called with and return what becomes of it. Everything else that a plugin does needs one,
because its component has no files, no network and no processes. It requests a power under `[capabilities]` of
[`plugin.toml`](plugin.toml.md), with the reason, and is loaded only if the operator grants every power that it requests: `grants` at its
`[[plugin]]` in [`tidegate.toml`](tidegate.toml.md). [Plugins in operation](../../OPERATORS.md) says what to look at before granting one.

\"Imported\" means that the component calls the host, \"exported\" that the host calls the component, and \"manifest only\" that no
component is needed. Sentences about limits are those of the [contract](../../../sdk/wit/0.1.0) and of the manifest's schema.
";

const ALWAYS: &str = "
## Always granted

Interfaces that every component is allowed to import, without a request, because they give away nothing and change nothing.
";

/// Words that make a sentence one about a limit.
const LIMITS: [&str; 6] = ["at most ", "longer than ", "cut to ", "1 to 64", "1 byte to ", "1 hour"];

/// What a power stands for.
enum Stands {
    /// An interface that the component imports.
    Import(&'static str),
    /// An interface that the component exports.
    Export(&'static str),
    /// A table of the manifest; there is no interface.
    Manifest(&'static str),
}

/// What a power stands for, and the keys of limits that are about it.
fn stands(power: Power) -> (Stands, &'static [&'static str]) {
    match power {
        Power::State => (
            Stands::Import("state"),
            &[
                "limits.state_mib",
                "limits.state_ttl_s",
                "state.absent_days",
                "state.session_mib",
                "state.session_ttl_h",
            ],
        ),
        Power::Session => (Stands::Import("session"), &[]),
        Power::History => (Stands::Import("history"), &[]),
        Power::Tools => (Stands::Import("tools"), &[]),
        Power::Prompt => (Stands::Manifest("prompt"), &[]),
        Power::ProvideTools => (Stands::Export("tool-provider"), &["limits.tool_ms", "limits.tool_output_kib"]),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sources of the contract.
struct Contract {
    worlds: String,
    interfaces: String,
}

impl Contract {
    fn read() -> Self {
        let read = |name: &str| fs::read_to_string(root().join("sdk/wit/0.1.0").join(name)).unwrap();
        Self { worlds: read("worlds.wit"), interfaces: ["powers.wit", "tools.wit"].map(read).concat() }
    }

    /// The names that worlds import or export, by the word before them.
    fn named(&self, word: &str) -> Vec<&str> {
        let lines = self.worlds.lines().filter_map(|line| line.trim().strip_prefix(word)?.strip_suffix(';'));
        lines.map(str::trim).collect()
    }

    /// The documentation of an interface: its own, then that of everything in it, a string for each comment.
    fn docs(&self, interface: &str) -> Vec<String> {
        let start = format!("interface {interface} {{");
        let lines: Vec<&str> = self.interfaces.lines().collect();
        let at = lines.iter().position(|line| **line == *start).unwrap_or_else(|| panic!("there is no `{start}`"));
        let is_own = |line: &&&str| line.starts_with("///") || line.starts_with("@since");
        let own = lines[..at].iter().rev().take_while(is_own).count();
        let inside = lines[at..].iter().take_while(|line| **line != "}").count();
        let mut docs = vec![String::new()];
        for line in &lines[at - own..at + inside] {
            match line.trim().strip_prefix("///") {
                Some(text) => write!(docs.last_mut().unwrap(), "{text} ").unwrap(),
                None => docs.push(String::new()),
            }
        }
        let words = |doc: String| doc.split_whitespace().collect::<Vec<_>>().join(" ");
        docs.into_iter().map(words).filter(|doc| !doc.is_empty()).collect()
    }
}

/// The sentences about limits.
fn limits<'d>(docs: impl IntoIterator<Item = &'d String>) -> Vec<String> {
    let sentences = docs.into_iter().flat_map(|doc| doc.split_inclusive(". "));
    let limits = sentences.filter(|sentence| LIMITS.iter().any(|word| sentence.contains(word)));
    limits.map(|sentence| sentence.trim().replace('|', "\\|")).collect()
}

/// A description in a schema, in one line.
fn described<'s>(schema: &'s Value, pointer: &str) -> &'s str {
    schema.pointer(pointer).and_then(|about| about["description"].as_str()).unwrap_or_else(|| panic!("no {pointer}"))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// A row of the table.
fn row(power: Power, contract: &Contract, manifest: &Value, operator: &Value) -> String {
    let (stands, keys) = stands(power);
    let (interface, mut limits) = match stands {
        Stands::Import(name) => {
            assert!(contract.named("import").contains(&name), "no world imports `{name}`");
            (format!("`{name}`, imported"), limits(&contract.docs(name)))
        }
        Stands::Export(name) => {
            assert!(contract.named("export").contains(&name), "no world exports `{name}`");
            (format!("`{name}`, exported"), limits(&contract.docs(name)))
        }
        Stands::Manifest(table) => {
            let known = contract.named("import").into_iter().chain(contract.named("export")).any(|name| name == table);
            assert!(!known, "the contract has an interface `{table}`");
            let about = one_line(described(manifest, &format!("/properties/{table}")));
            (format!("`[[{table}]]`, manifest only"), limits([&about]))
        }
    };
    for key in keys {
        let (table, name) = key.split_once('.').unwrap();
        let definition = if table == "limits" { "LimitsFile" } else { "StateFile" };
        let key_path = format!("/definitions/{definition}/properties/{name}");
        let about = one_line(described(operator, &key_path));
        let default = operator.pointer(&key_path).and_then(|about| about.get("default")).unwrap();
        limits.push(format!("`{key}`, default {default}: {about}"));
    }
    let limits = if limits.is_empty() { "none".to_owned() } else { limits.join("<br>") };
    let mut words = operator["definitions"]["Power"]["oneOf"].as_array().unwrap().iter();
    let gives = words.find(|word| word["const"] == power.as_str()).and_then(|word| word["description"].as_str());
    let reason = described(manifest, &format!("/definitions/CapabilitiesFile/properties/{power}"));
    let (gives, reason) = (one_line(gives.unwrap()), one_line(reason));
    format!("| {} | {gives} | {interface} | {reason} | {limits} |", page_of(power.as_str()))
}

/// A power or interface, with a link to its page for authors.
fn page_of(name: &str) -> String {
    let page = format!("sdk/rust/docs/powers/{name}.md");
    assert!(root().join(&page).exists(), "`{name}` has no page {page}");
    format!("[`{name}`](../../../{page})")
}

fn page() -> String {
    let contract = Contract::read();
    let manifest = serde_json::from_str(&tidegate_config::manifest_schema()).unwrap();
    let operator = serde_json::from_str(&tidegate_config::operator_schema()).unwrap();
    let mut page = HEADING.to_owned();
    page.push_str("\n| power | gives | interface | the reason states | limits |\n|---|---|---|---|---|\n");
    for power in Power::ALL {
        writeln!(page, "{}", row(*power, &contract, &manifest, &operator)).unwrap();
    }
    page.push_str(ALWAYS);
    page.push_str("\n| interface | gives | limits |\n|---|---|---|\n");
    let is_power = |name: &str| Power::from_word(name).is_some();
    let mut always: Vec<&str> = contract.named("import").into_iter().filter(|name| !is_power(name)).collect();
    always.sort_unstable();
    for name in always {
        let docs = contract.docs(name);
        let limits = limits(&docs);
        let limits = if limits.is_empty() { "none".to_owned() } else { limits.join("<br>") };
        writeln!(page, "| [`{name}`](../../../sdk/rust/docs/powers/always.md) | {} | {limits} |", docs[0]).unwrap();
    }
    page
}

#[test]
fn the_page_of_powers_is_up_to_date() {
    let (file, page) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/capabilities.md"), page());
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == page,
        "reference/capabilities.md differs from contract and schemas; `TIDEGATE_BLESS=1 cargo test -p tidegate-config --test it \
         capabilities::` rewrites it"
    );
}

#[test]
fn every_power_has_a_row() {
    let page = page();
    for power in Power::ALL {
        let rows = page.lines().filter(|line| line.starts_with(&format!("| [`{power}`]("))).count();
        assert_eq!(rows, 1, "`{power}`");
    }
}

/// A limit that nobody finds would be missing without a trace.
#[test]
fn limits_are_found_in_the_contract() {
    let docs = Contract::read().docs("state");
    assert_eq!(docs[0].split(". ").next(), Some("Power `state`: data that persists between calls"));
    let found = limits(&docs).join(" ");
    for limit in ["512 bytes", "1 MiB", "10 MiB", "1 hour"] {
        assert!(found.contains(limit), "{limit} is not in: {found}");
    }
}
