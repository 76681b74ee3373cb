//! Runs the files of `tests/corpus/agents` (its README describes the format) through the reader of agent files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flow::{SourceFile, Spend};
use tidegate_config::Diagnostics;
use tidegate_config::agents::{Agent, AgentLayer, Agents, MAX_AGENT_BYTES, MAX_AGENTS};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/agents").join(folder);
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    found.sort();
    found
}

fn read(file: &Path) -> Result<Agent, Diagnostics> {
    let shown = Path::new("agents").join(file.file_name().unwrap());
    Agent::of_source(&SourceFile::new(shown, fs::read_to_string(file).unwrap()), AgentLayer::User)
}

#[test]
fn valid_files_load() {
    let files = files("valid");
    assert!(files.len() >= 4, "only {} files read", files.len());
    for file in files {
        match read(&file) {
            Ok(agent) => assert_eq!(agent.name, file.file_stem().unwrap().to_str().unwrap()),
            Err(found) => panic!("{} was refused:\n{found}", file.display()),
        }
    }
}

#[test]
fn every_key_has_an_effect() {
    let of = |name: &str| read(files("valid").iter().find(|file| file.ends_with(name)).unwrap()).unwrap();
    let reviewer = of("reviewer.md");
    assert_eq!(reviewer.description, "Reviews a change. Use it before you say that you are done.");
    assert_eq!(
        reviewer.system,
        "You review changes. Read the files; change nothing.\n\n---\nSay what is wrong, most important first."
    );
    assert_eq!(reviewer.model.as_deref(), Some("small-model"));
    let limits = reviewer.limits.clone();
    assert_eq!((limits.steps, limits.tokens, limits.spend), (Some(12), Some(200_000), Some(Spend::of_dollars(0.5))));
    assert_eq!((limits.spawns, limits.depth, limits.duration), (Some(2), Some(1), Some(Duration::from_secs(600))));
    let used = |agent: &Agent| ["read_file", "write_file", "grep", "find", "shell"].map(|tool| agent.may_use(tool));
    assert_eq!(used(&reviewer), [true, false, true, true, false]);
    assert_eq!(used(&of("helper_2.md")), [true, true, false, false, false]);
    assert_eq!(used(&of("thinker.md")), [false; 5]);
    assert_eq!(used(&of("windows.md")), [true; 5]);
}

#[test]
fn invalid_files_are_refused_in_these_words() {
    let files = files("invalid");
    assert!(files.len() >= 15, "only {} files read", files.len());
    let mut wrong = String::new();
    for file in files {
        let Err(found) = read(&file) else {
            wrong.push_str(&format!("== {} was accepted\n", file.display()));
            continue;
        };
        for one in &found.0 {
            let place = one.location().unwrap_or_else(|| panic!("{one} has no place"));
            assert!(place.file.path.starts_with("agents"), "{one} blames {}", place.file.path.display());
            assert!(
                one.help.is_some() || one.code.as_str().starts_with("config-"),
                "{one} says nothing about what to do"
            );
        }
        let expected = file.with_added_extension("stderr");
        let found = format!("{}\n", found.render(false));
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&expected, &found).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if wanted != found {
            wrong.push_str(&format!("== {}\n-- expected\n{wanted}\n-- found\n{found}\n", expected.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Every file of the corpus, cut after each character and without each of its lines: it is read or refused, with places that can be shown.
#[test]
fn files_that_are_cut_are_read_or_refused() {
    let mut read = 0;
    for file in files("valid").into_iter().chain(files("invalid")) {
        let text = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let cut = text.char_indices().map(|(at, _)| text[..at].to_owned());
        let without = (0..lines.len()).map(|at| [&lines[..at], &lines[at + 1..]].concat().concat());
        for text in cut.chain(without) {
            let source = SourceFile::new(file.file_name().unwrap(), text);
            read += 1;
            if let Err(found) = Agent::of_source(&source, AgentLayer::User) {
                assert!(!found.render(false).is_empty());
            }
        }
    }
    assert!(read > 1_000, "only {read} texts were read");
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn agent(&self, path: &str, description: &str) {
        self.write(path, &format!("---\ndescription: {description}\n---\nYou work.\n"));
    }

    fn load(&self) -> Agents {
        Agents::load(Some(&self.0.path().join("user")), &self.0.path().join("work"))
    }
}

#[test]
fn the_user_has_the_last_word_and_a_broken_file_costs_only_its_agent() {
    let place = Place::new();
    assert!(place.load().list.is_empty() && place.load().found.is_empty());
    place.agent("user/agents/reviewer.md", "User.");
    place.agent("user/agents/writer.md", "User.");
    place.agent("work/.tidegate/agents/reviewer.md", "Project.");
    place.agent("work/.tidegate/agents/alone.md", "Project.");
    // A file of the user that cannot be used is not one that is absent.
    place.write("user/agents/broken.md", "no front matter");
    place.agent("work/.tidegate/agents/broken.md", "Project.");
    place.write("work/.tidegate/agents/writer.md", "no front matter");
    place.write("work/.tidegate/agents/README.md", "These are our agents.");
    place.write("work/.tidegate/agents/.lock.md", "hidden");
    place.write("work/.tidegate/agents/notes.txt", "not an agent");
    let agents = place.load();
    let listed: Vec<_> =
        agents.list.iter().map(|one| (one.name.as_str(), one.description.as_str(), one.layer.as_str())).collect();
    assert_eq!(listed, [("alone", "Project.", "project"), ("reviewer", "User.", "user"), ("writer", "User.", "user")]);
    let codes: Vec<&str> = agents.found.iter().map(|one| one.code.as_str()).collect();
    assert_eq!(codes, ["agent-front-matter", "agent-front-matter", "agent-shadowed", "agent-shadowed"]);
    let said = agents.found.last().unwrap().to_string();
    for part in ["work/.tidegate/agents/reviewer.md` is not used", "user/agents/reviewer.md`", "give it another name"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn files_that_are_too_large_too_many_or_elsewhere_are_not_read() {
    let place = Place::new();
    place.write("work/.tidegate/agents/large.md", &"x".repeat(usize::try_from(MAX_AGENT_BYTES).unwrap() + 1));
    place.agent("secret.md", "Elsewhere.");
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.0.path().join("secret.md"), place.0.path().join("work/.tidegate/agents/link.md"))
        .unwrap();
    let agents = place.load();
    assert!(agents.list.is_empty());
    let found: Vec<String> = agents.found.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|one| one.contains("exceeds the limit of 65536 bytes")), "{found:?}");
    #[cfg(unix)]
    assert!(found.iter().any(|one| one.contains("leads out of the workspace")), "{found:?}");

    (0..=MAX_AGENTS).for_each(|at| place.agent(&format!("user/agents/a{at:03}.md"), "One of many."));
    let agents = place.load();
    assert_eq!(agents.list.len(), MAX_AGENTS);
    assert!(agents.found.iter().any(|one| one.message.contains("65 agent files, more than the limit of 64")));
}

#[test]
fn tools_that_are_not_there_are_reported() {
    let text = "---\ndescription: d\ntools: raed_file, grep, \"mcp_*\"\n---\nYou work.\n";
    let text = text.replace("\"mcp_*\"", "mcp_*");
    let agent = Agent::of_source(&SourceFile::new("a.md", text), AgentLayer::Project).unwrap();
    let known = ["read_file", "grep"].map(str::to_owned);
    let found: Vec<_> = agent.unknown_tools(&known).collect();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| one.code.as_str() == "agent-unknown-tool" && !one.is_error()));
    assert_eq!(
        found[0].to_string(),
        "warning[agent-unknown-tool]: the agent `a` has no tool `raed_file`: there is none here; did you mean `read_file`?"
    );
}

/// The page for operators shows a file that loads, and names every key.
#[test]
fn the_page_is_complete_and_its_example_is_valid() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../CHILD_AGENTS.md")).unwrap();
    let examples: Vec<&str> = page.split("```markdown\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [example] = examples[..] else { panic!("{} examples", examples.len()) };
    if let Err(found) = Agent::of_source(&SourceFile::new("reviewer.md", example), AgentLayer::Project) {
        panic!("the example is not valid\n{found}");
    }
    let schema: serde_json::Value = serde_json::from_str(&tidegate_config::agent_schema()).unwrap();
    let tables =
        [&schema, &schema["definitions"]["AgentLimitsFile"]].map(|table| table["properties"].as_object().unwrap());
    for key in tables.into_iter().flat_map(|table| table.keys()) {
        assert!(page.contains(&format!("`{key}`")), "the page does not mention the key `{key}`");
    }
}
