//! Inputs to begin with: the corpus of the tests, and inputs that once failed (`corpus/TARGET`).

use std::path::{Path, PathBuf};

use serde::Deserialize;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/rules")
}

/// The contents of a folder's files in the order of their names; empty if there is no such folder.
fn folder(path: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Inputs that once failed.
fn kept(target: &str) -> Vec<Vec<u8>> {
    folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target))
}

pub(crate) fn front_matter() -> Vec<Vec<u8>> {
    let mut seeds = folder(&corpus().join("files"));
    assert!(seeds.len() >= 30, "the corpus of rule files is missing");
    seeds.extend(rules::BUILTIN_FILES.iter().map(|(_, text)| text.as_bytes().to_vec()));
    seeds.extend(kept("front_matter"));
    seeds
}

pub(crate) fn scope() -> Vec<Vec<u8>> {
    let written = [
        "text, tool:edit(*.{ts,tsx})\nsrc/main.ts",
        "THINKING\n./a//b",
        "toolcall(src/**)\n/work/src/a.rs",
        "\"text\",\"thinking\"\n..\\a.rs",
        "tool:files/fs.write(/work/*.rs)\n/work/a.rs",
        "edit([!a]*.rs)\nC:\\work\\b.rs",
    ];
    written.iter().map(|text| text.as_bytes().to_vec()).chain(kept("scope")).collect()
}

pub(crate) fn json() -> Vec<Vec<u8>> {
    let written = [
        r#"{"path":"src/a.rs","content":"fn main() {\n\t\"x\\y\"\n}\n"}"#,
        r#"{"edits":[{"new_text":"a"},{"new_text":"😀"}],"n":-1.5e+9,"t":true}"#,
        r#"[["a",["b"]],{"":""},"\ud83d\ude00","\u00e9"]"#,
        r#" {"a" : {"b" : [ ] , "c" : { } } , "a" : "twice" } "#,
        r#""alone""#,
        "[[[[[[[[[[[[[[[[\"deep\"]]]]]]]]]]]]]]]]",
    ];
    written.iter().map(|text| text.as_bytes().to_vec()).chain(kept("json")).collect()
}

pub(crate) fn event_catalogue() -> Vec<Vec<u8>> {
    let events = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/events");
    let is_file = |text: &Vec<u8>| !text.starts_with(b"error[");
    let mut seeds: Vec<_> = folder(&events.join("invalid")).into_iter().filter(is_file).collect();
    assert!(seeds.len() >= 30, "the corpus of event catalogues is missing");
    seeds.extend(folder(&events.join("valid")));
    seeds.extend(kept("event_catalogue"));
    seeds
}

pub(crate) fn event_condition() -> Vec<Vec<u8>> {
    let written = [
        "provider_config.stream.enabled",
        "not (provider_config.kind == 'anthropic' or turn.max_steps == 5)",
        "true and not false == (turn.max_retries == -0.5)",
        "provider_config.model == \"it's\"",
        "((((((((true))))))))",
    ];
    written.iter().map(|text| text.as_bytes().to_vec()).chain(kept("event_condition")).collect()
}

pub(crate) fn condition() -> Vec<Vec<u8>> {
    #[derive(Deserialize)]
    struct File {
        dialect: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        condition: String,
    }
    let text = std::fs::read_to_string(corpus().join("dialect.toml")).unwrap();
    let file: File = toml::from_str(&text).unwrap();
    file.dialect.into_iter().map(|entry| entry.condition.into_bytes()).chain(kept("condition")).collect()
}

pub(crate) fn engine() -> Vec<Vec<u8>> {
    let mut numbers = crate::mutate::Numbers::new(7);
    let random = (0..24).map(|_| (0..100).map(|_| numbers.below(256) as u8).collect());
    random.collect::<Vec<_>>().into_iter().chain(kept("engine")).collect()
}

pub(crate) fn anthropic() -> Vec<Vec<u8>> {
    streams("anthropic", "anthropic")
}

pub(crate) fn openai_chat() -> Vec<Vec<u8>> {
    streams("openai-chat", "openai_chat")
}

pub(crate) fn openai_responses() -> Vec<Vec<u8>> {
    streams("openai-responses", "openai_responses")
}

/// The streams of the corpus of wire formats.
fn streams(wire: &str, target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/providers/streams").join(wire);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "sse"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).chain(kept(target)).collect()
}
