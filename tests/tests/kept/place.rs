//! A workspace with compiled guests, sessions whose model says what a case says, and all that is left of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use flow::ports::{BoxFuture, Confirm, Question};
use flow::{Answer, Event, Message, Origin, Part, Role};
use tempfile::TempDir;
use tidegate::plugin::EngineOptions;
use tidegate::{Engine, Host, Operator, Session, SessionId, SessionOptions};
use tidegate_kit::ScriptedModel;

use super::case::{By, Case};

/// The component of a guest.
fn component(guest: &str) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(guest);
    tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes
}

fn hush() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| component("hush"))
}

fn conformance() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| component("conformance"))
}

/// One engine for all places: each sets address space aside, and what is compiled is compiled once.
fn engine() -> &'static Engine {
    static ENGINE: OnceLock<(Engine, TempDir)> = OnceLock::new();
    let (engine, _) = ENGINE.get_or_init(|| {
        let cache = tempfile::tempdir().unwrap();
        let options =
            EngineOptions { cache_dir: Some(cache.path().to_owned()), max_instances: 64, ..EngineOptions::default() };
        (Engine::new(&options).unwrap(), cache)
    });
    engine
}

/// A folder with all that a session reads and writes.
pub(crate) struct Place {
    folder: TempDir,
    operator: String,
    person: Arc<Person>,
}

/// Approves what it is asked, and remembers it.
#[derive(Default)]
struct Person(Mutex<Vec<String>>);

impl Confirm for Person {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.0.lock().unwrap().push(format!("{question:?}"));
        Box::pin(std::future::ready(Answer::Approve))
    }
}

impl Place {
    /// `keep`: which text is kept, according to whom the case says.
    pub(crate) fn new(case: &Case, keep: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &case.file {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let own = Self { folder, operator: String::new(), person: Arc::default() };
        let manifest = own.guest("hush", hush());
        if case.by == By::Manifest {
            let text = fs::read_to_string(&manifest).unwrap();
            fs::write(&manifest, text.replace("on_failure =", &format!("keep = \"{keep}\"\non_failure ="))).unwrap();
        }
        if case.rewrites.is_some() {
            own.guest("conformance", conformance());
        }
        let rules = own.path().join(".tidegate/rules");
        fs::create_dir_all(&rules).unwrap();
        for (name, text) in &case.rule {
            fs::write(rules.join(format!("{name}.md")), text).unwrap();
        }
        let operator = operator(case, keep);
        Self { operator, ..own }
    }

    /// Where sessions work, and where everything of them is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a guest into the workspace, and returns its manifest.
    fn guest(&self, guest: &str, component: &[u8]) -> PathBuf {
        let (source, own) =
            (Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(guest), self.path().join("plugins").join(guest));
        fs::create_dir_all(&own).unwrap();
        fs::copy(source.join("plugin.toml"), own.join("plugin.toml")).unwrap();
        fs::write(own.join("component.wasm"), component).unwrap();
        own.join("plugin.toml")
    }

    /// A process of its own, as far as the session is concerned.
    pub(crate) async fn session(&self, model: &Arc<ScriptedModel>) -> Session {
        let file = self.path().join("tidegate.toml");
        fs::write(&file, &self.operator).unwrap();
        let operator = Operator::load(&file).unwrap_or_else(|wrong| panic!("{wrong}"));
        let host = Host::builder(operator).engine(engine()).user_rules(None).open().await.unwrap();
        let options =
            SessionOptions::new(self.path()).id(SessionId::new("test")).model(Arc::<ScriptedModel>::clone(model));
        let options = options.confirm(Arc::<Person>::clone(&self.person));
        host.session(options).await.unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// What a person was asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.person.0.lock().unwrap().clone()
    }

    /// The files in which one of these words is, each with the first of them: but for those that the case has put there.
    pub(crate) fn files_with(&self, case: &Case, words: &BTreeSet<String>) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let name = entry.file_name().into_string().unwrap();
                if case.file.contains_key(&name) {
                    continue;
                }
                let bytes = fs::read(entry.path()).unwrap();
                let has = |word: &&String| bytes.windows(word.len()).any(|window| window == word.as_bytes());
                found.extend(words.iter().find(has).map(|word| format!("{word} in {}", entry.path().display())));
            }
        }
        found
    }
}

fn operator(case: &Case, keep: &str) -> String {
    let context = case.context.as_deref().unwrap_or("discard");
    let streams = case.streams.clone().unwrap_or_else(|| vec!["answer".to_owned(), "thinking".to_owned()]);
    let (unit, by) = (case.unit.as_deref().unwrap_or("line"), case.by);
    let own = if by == By::Operator { format!("keep = \"{keep}\"\n") } else { String::new() };
    let fail = case.fail.as_deref().unwrap_or_default();
    let registered = if by == By::Registered { keep } else { "" };
    let asks = |tool: &&str| if case.asks.as_deref() == Some(*tool) { "ask" } else { "allow" };
    let permission = |tool: &&str| format!("{tool} = \"{}\"\n", asks(tool));
    let tools: String = ["write_file", "edit_file", "shell"].iter().map(permission).collect();
    let mut text = format!(
        "[tools.permission]\n{tools}[rules]\nbuiltin_rules = false\ncontext_mode = \"{context}\"\nretry_delay_ms = 0\n\
         [transcript]\nenabled = true\nfolder = \"sessions\"\n[state]\nbackend = \"disk\"\nfolder = \"state\"\n\
         [limits]\ncallback_ms = 60000\ntext_ms = 60000\nturn_ms = 600000\n\
         [[plugin]]\npath = \"plugins/hush\"\n{own}settings = {{ unit = \"{unit}\", streams = {streams:?}, keep = \"{registered}\", fail = \"{fail}\" }}\n"
    );
    if let Some(mode) = &case.rewrites {
        text.push_str(&format!(
            "[[plugin]]\npath = \"plugins/conformance\"\ngrants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n\
             settings = {{ mode = \"{mode}\", only = [\"on_llm_output\"], priority = 90 }}\n"
        ));
    }
    text
}

/// Messages as the cases write them.
pub(crate) fn listed(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| one(message)).collect()
}

/// The rules whose reminders these are.
fn rules(text: &str) -> String {
    let names = text.split("rule=\"").skip(1).filter_map(|rest| rest.split('"').next());
    names.collect::<Vec<_>>().join(", ")
}

fn one(message: &Message) -> String {
    if message.origin == Origin::Host && message.role == Role::User {
        return format!("host: {}", rules(&message.plain_text()));
    }
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Thinking { signature, .. } => {
            let seal = signature.as_ref().map(|seal| format!(" {seal}")).unwrap_or_default();
            format!("<{}{seal}>", part.seen_thinking().unwrap_or_default())
        }
        Part::ToolCall(call) => format!("call {} {}", call.name, call.arguments),
        Part::ToolResult(result) if result.content.iter().any(|text| text.contains("rule=\"")) => {
            format!("rules {}", rules(&result.content.concat()))
        }
        Part::ToolResult(result) => format!("result {}", result.content.join("|")),
        Part::Image(image) => image.to_string(),
    };
    let parts: Vec<String> = message.parts.iter().map(part).collect();
    format!("{}: {}", message.role.as_str(), parts.join("|"))
}

/// The events as `--output stream-json` prints them, and what exports and explanations make of them.
pub(crate) fn printed(events: &[Event]) -> String {
    let mut text: String = events.iter().map(|event| record::json(event, "test").to_string() + "\n").collect();
    let report = report::Report::of(events.iter().map(|event| record::Record::of(event, "test")));
    text.push_str(&report::markdown(&report));
    text.push_str(&report::html(&report));
    for turn in &report.turns {
        text.push_str(&report::explain(&report, Some(turn.number)).unwrap().text());
    }
    text
}
