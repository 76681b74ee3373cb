//! Conversations of the corpus: one for each item of `items.json`, and what recorded sessions send when they are continued.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use flow::{Image, Message, Part, Prompt, Role, ToolSpec};
use record::Record;
use serde::Deserialize;
use serde_json::{Value, json};
use turn::rebuild::Rebuild;

use super::{call, message, prompt, result, text, thinking};

/// What `tests/corpus/providers/items.json` contains.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Items {
    pub(crate) texts: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) ids: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) signatures: Vec<String>,
    pub(crate) schemas: Vec<Value>,
    images: Vec<(String, String)>,
    histories: Vec<String>,
}

pub(crate) static ITEMS: LazyLock<Items> = LazyLock::new(|| {
    let text = std::fs::read_to_string(corpus().join("providers/items.json")).unwrap();
    serde_json::from_str(&text).unwrap()
});

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus")
}

impl Items {
    pub(crate) fn images(&self) -> Vec<Image> {
        let image = |(kind, data): &(String, String)| Image::new(kind.as_str(), data.as_str()).unwrap();
        self.images.iter().map(image).collect()
    }
}

/// A conversation for each item, by its kind and its number in the file.
pub(crate) fn of_items() -> Vec<(String, Prompt)> {
    let mut all = Vec::new();
    let mut add = |kind: &str, prompts: Vec<Prompt>| {
        all.extend(prompts.into_iter().enumerate().map(|(number, prompt)| (format!("{kind} {number}"), prompt)));
    };
    add("text", ITEMS.texts.iter().map(|text| of_text(text)).collect());
    add("name", ITEMS.names.iter().map(|name| of_call("call_1", name, "{}")).collect());
    add("id", ITEMS.ids.iter().map(|id| of_call(id, "read_file", "{}")).collect());
    add("arguments", ITEMS.arguments.iter().map(|arguments| of_call("call_1", "read_file", arguments)).collect());
    add("signature", ITEMS.signatures.iter().map(|signature| of_signature(signature)).collect());
    add("schema", ITEMS.schemas.iter().map(|schema| with_tool("read_file", schema, of_text("Hi."))).collect());
    add(
        "image",
        ITEMS.images().into_iter().map(|image| prompt(vec![message(Role::User, vec![Part::Image(image)])])).collect(),
    );
    add("history", ITEMS.histories.iter().map(|history| of_history(history)).collect());
    all
}

/// The text wherever one can be.
fn of_text(words: &str) -> Prompt {
    let conversation = prompt(vec![
        Message::user(words),
        message(Role::Assistant, vec![text(words), call("call_1", "read_file", "{}")]),
        message(Role::Tool, vec![result("call_1", &[words], false)]),
        message(Role::System, vec![text(words)]),
    ]);
    Prompt { system: vec![words.into()], ..conversation }
}

/// A call that was made twice with the same id, of a tool that is offered and of one that is not.
fn of_call(id: &str, name: &str, arguments: &str) -> Prompt {
    let step = || {
        [
            message(Role::Assistant, vec![call(id, name, arguments)]),
            message(Role::Tool, vec![result(id, &["done"], false)]),
        ]
    };
    let conversation = prompt([Message::user("Do it.")].into_iter().chain(step()).chain(step()).collect());
    with_tool(name, &json!({"type": "object", "properties": {}}), conversation)
}

fn of_signature(signature: &str) -> Prompt {
    let answer = |redacted| message(Role::Assistant, vec![thinking("Hm.", Some(signature), redacted), text("Yes.")]);
    prompt(vec![Message::user("One?"), answer(false), Message::user("Two?"), answer(true), Message::user("Three?")])
}

fn with_tool(name: &str, schema: &Value, prompt: Prompt) -> Prompt {
    let tool = ToolSpec { name: name.into(), description: "A tool.".into(), parameters: schema.clone() };
    Prompt { tools: vec![tool], ..prompt }
}

/// A history as the README of the corpus describes it.
fn of_history(history: &str) -> Prompt {
    let messages = history.split("; ").filter(|words| !words.is_empty()).map(|words| {
        let mut words = words.split(' ');
        let role = match words.next().unwrap() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => panic!("no role {other}"),
        };
        message(role, words.map(part).collect())
    });
    with_tool("read_file", &json!({"type": "object"}), prompt(messages.collect()))
}

fn part(word: &str) -> Part {
    match word.split_once(':').unwrap_or((word, "")) {
        ("call", id) => call(id, "read_file", "{}"),
        ("result", id) => result(id, &["done"], false),
        ("text", _) => text("words"),
        ("image", _) => Part::Image(ITEMS.images().swap_remove(0)),
        ("thinking", _) => thinking("Hm.", None, false),
        ("signed", _) => thinking("Hm.", Some("EqQBCgIYAhIM=="), false),
        ("sealed", _) => thinking("Hm.", Some("{\"id\":\"rs_1\",\"encrypted_content\":\"gAAA\"}"), false),
        ("redacted", _) => thinking("", Some("EmwKAhgBEgy3"), true),
        (other, _) => panic!("no part {other}"),
    }
}

/// What each recorded session of the corpus sends when it is continued after any of its records, by file and number of records. A
/// conversation that is the same as after fewer records is left out.
pub(crate) fn of_transcripts() -> Vec<(String, Prompt)> {
    let mut all = Vec::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(corpus().join("transcripts")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    for file in files {
        let (text, name) = (std::fs::read_to_string(&file).unwrap(), file.file_stem().unwrap().to_string_lossy());
        let (mut rebuild, mut before) = (Rebuild::default(), 0);
        for (number, line) in text.lines().enumerate().skip(1) {
            rebuild.take(&Record::read(line.as_bytes()).unwrap()).unwrap();
            let mut messages = rebuild.clone().finish().history;
            if messages.len() != before {
                before = messages.len();
                messages.push(Arc::new(Message::user("Go on.")));
                all.push((format!("{name}, {number} records"), Prompt { messages, ..Prompt::default() }));
            }
        }
    }
    all
}
