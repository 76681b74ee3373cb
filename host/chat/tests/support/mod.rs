//! Runs a case of the corpus: its lines through a chat, and the states that follow.

pub(crate) mod random;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flow::{Event, EventKind, RunPosition};
use record::Line;
use serde_json::{Map, Value, json};
use tidegate_chat::{
    Answer, Attachment, Author, Block, BlockKind, Changed, ChatMessage, ChatOptions, ChatSession, ChatState,
    ChildThread, Command, FlushMode, LogOptions, OutgoingId, Policy, QuestionId, Receipt, RenderMode, SavedChat,
    SteeringMode, SteeringOptions,
};

/// The folder of the corpus with this name.
pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(name)
}

/// The files of a folder whose names end so, without the end, each with its text.
pub(crate) fn files(folder: &str, end: &str) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(corpus(folder)).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(end)?.to_owned());
    let files: BTreeMap<_, _> =
        entries.filter_map(|path| Some((name(&path)?, std::fs::read_to_string(&path).unwrap()))).collect();
    assert!(!files.is_empty(), "{folder} has no file that ends in {end}");
    files
}

/// A line of a case.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Event(Event),
    Child(ChildThread, Event),
    /// An action of the user or the driver.
    Do(Value),
    /// The front end is replaced by one that gets the saved state.
    Reconnect,
}

/// A case: its options and its lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) options: Value,
    pub(crate) lines: Vec<(usize, Input)>,
}

impl Case {
    pub(crate) fn read(name: &str, text: &str) -> Self {
        let mut case = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}:{number}: {error}"));
            let event = |value: Value| {
                let event = Line::of(value).and_then(|line| match line {
                    Line::Record(record) => record.event(),
                    _ => Ok(None),
                });
                event.unwrap_or_else(|error| panic!("{name}:{number}: {error}"))
            };
            let input = if value.get("case").is_some() {
                case.options = value["options"].clone();
                None
            } else if value.get("do").is_some() {
                Some(Input::Do(value))
            } else if value.get("reconnect").is_some() {
                Some(Input::Reconnect)
            } else if let Some(child) = value.get("child") {
                let child = serde_json::from_value(child.clone()).unwrap();
                event(value["record"].clone()).map(|event| Input::Child(child, event))
            } else {
                event(value).map(Input::Event)
            };
            case.lines.extend(input.map(|input| (number, input)));
        }
        case
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        let event =
            |(_, input): &(usize, Input)| if let Input::Event(event) = input { Some(event.clone()) } else { None };
        self.lines.iter().filter_map(event).collect()
    }

    pub(crate) fn chat(&self) -> ChatSession {
        chat(&self.options)
    }
}

fn word<T: serde::de::DeserializeOwned + Default>(options: &Value, name: &str) -> T {
    options.get(name).map_or_else(T::default, |word| serde_json::from_value(word.clone()).unwrap())
}

/// Splits an answer at the blank lines of its text. The first part keeps the reasoning, the last one the calls.
fn by_paragraph(message: &ChatMessage) -> Vec<ChatMessage> {
    let text = message.text();
    let parts: Vec<&str> = text.split("\n\n").filter(|part| !part.is_empty()).collect();
    if message.author != Author::Assistant || parts.len() < 2 {
        return vec![message.clone()];
    }
    let last = parts.len() - 1;
    let part = |(at, text): (usize, &&str)| {
        let mut part = message.clone();
        let kept = message.blocks.iter().filter(|block| at == 0 && block.kind == BlockKind::Reasoning).cloned();
        let mut block = Block::new(BlockKind::Text, text);
        block.complete = message.complete || at < last;
        part.blocks = kept.chain([block]).collect();
        if at < last {
            (part.calls, part.notes) = Default::default();
        }
        part
    };
    parts.iter().enumerate().map(part).collect()
}

/// A chat with the options of a case.
pub(crate) fn chat(options: &Value) -> ChatSession {
    let initial: Vec<ChatMessage> = word(options, "initial_messages");
    let mut log =
        LogOptions::default().render_mode(word::<RenderMode>(options, "render_mode")).initial_messages(initial);
    match options.get("transform").and_then(Value::as_str) {
        Some("without_host") => {
            log = log.transform(|message| (message.author != Author::Host).then(|| message.clone()));
        }
        Some("by_paragraph") => log = log.transform(by_paragraph),
        other => assert_eq!(other, None),
    }
    let auto_flush = options.get("auto_flush").is_none_or(|auto| auto == &json!(true));
    let steering = SteeringOptions::default()
        .mode(word::<SteeringMode>(options, "mode"))
        .flush_mode(word::<FlushMode>(options, "flush_mode"))
        .auto_flush(auto_flush);
    let session_queue = options.get("session_queue") == Some(&json!(true));
    let steering = if session_queue { steering.session_queue() } else { steering };
    let policy: BTreeMap<String, Value> = word(options, "policy");
    let decide = move |question: &tidegate_chat::Question| match policy.get(question.tool.as_str()) {
        None => Policy::Prompt,
        Some(answer) if answer == "panic" => panic!("the policy of the case"),
        Some(answer) => Policy::Answer(serde_json::from_value(answer.clone()).unwrap()),
    };
    ChatSession::new(ChatOptions::default().log(log).steering(steering).policy(decide))
}

/// Takes one line. Returns whether it reported a change, and the error of an action.
pub(crate) fn take(chat: &mut ChatSession, options: &Value, input: &Input) -> (Changed, Option<String>) {
    match input {
        Input::Event(event) => (chat.process(event), None),
        Input::Child(child, event) => (chat.process_child(child, event), None),
        Input::Do(action) => {
            let before = state(&chat.snapshot());
            let error = act(chat, action).err();
            (Changed::from(before != state(&chat.snapshot())), error)
        }
        Input::Reconnect => {
            let saved = serde_json::to_string(&chat.save()).unwrap();
            let mut next = self::chat(options);
            let saved: SavedChat = serde_json::from_str(&saved).unwrap();
            let before = state(&chat.snapshot());
            // What changed is seen from the front end that is replaced.
            let _changed = next.restore(saved);
            *chat = next;
            (Changed::from(before != state(&chat.snapshot())), None)
        }
    }
}

fn act(chat: &mut ChatSession, action: &Value) -> Result<(), String> {
    let text = |name: &str| action[name].as_str().unwrap_or_default();
    let id: OutgoingId = serde_json::from_value(json!(text("id"))).unwrap();
    let question: QuestionId = serde_json::from_value(json!(text("question"))).unwrap();
    let why = |error: &dyn std::fmt::Display| error.to_string();
    match text("do") {
        "submit" => drop(chat.submit(text("text"))),
        "steer" => drop(chat.steer(text("text"))),
        "queue" => drop(chat.queue(text("text"))),
        "interrupt" => drop(chat.interrupt(text("text"))),
        "flush" => _ = chat.flush(),
        "edit" => chat.edit(&id, text("text")).map_err(|error| why(&error))?,
        "remove" => chat.remove(&id).map_err(|error| why(&error))?,
        "take_back" => _ = chat.take_back(&id),
        "clear_queue" => _ = chat.clear_queue(),
        "clear" => _ = chat.clear(),
        "set_mode" => _ = chat.set_mode(word(action, "mode")),
        "acknowledge" => {
            let receipt: Receipt = serde_json::from_value(action["as"].clone()).unwrap();
            _ = chat.acknowledge(&id, receipt);
        }
        "respond" => {
            let answer: Answer = serde_json::from_value(action["answer"].clone()).unwrap();
            chat.respond(&question, answer).map_err(|error| why(&error))?;
        }
        "answer_failed" => _ = chat.answer_failed(&question, text("why")),
        "attach" => {
            let attachment = Attachment::new(text("name"), text("media_type"), text("source"));
            chat.attach(attachment).map_err(|error| why(&error))?;
        }
        "detach" => _ = chat.detach(usize::try_from(action["index"].as_u64().unwrap()).unwrap()),
        other => panic!("no action is called {other}"),
    }
    Ok(())
}

/// A state as JSON, with the messages of children.
pub(crate) fn state(state: &ChatState) -> Value {
    let mut value = serde_json::to_value(state).unwrap();
    let children = state.messages.children().map(|child| {
        let messages: Vec<_> = state.messages.child_messages(&child.id).collect();
        json!({"thread": child, "messages": messages})
    });
    value["children"] = children.collect();
    value
}

/// The keys of a state that differ from the state before; of lists of messages the messages that do, and their ids where these do.
/// One that is not there any more is `null`.
pub(crate) fn difference(before: &Value, after: &Value) -> Value {
    let mut keys = Map::new();
    for (key, value) in after.as_object().unwrap() {
        if before.get(key) == Some(value) {
            continue;
        }
        let value = if key == "messages" { messages(&before[key], value) } else { value.clone() };
        keys.insert(key.clone(), value);
    }
    let gone = before.as_object().into_iter().flat_map(Map::keys).filter(|key| after.get(key).is_none());
    keys.extend(gone.map(|key| (key.clone(), Value::Null)));
    Value::Object(keys)
}

fn messages(before: &Value, after: &Value) -> Value {
    let none = Vec::new();
    let (before, after) = (before.as_array().unwrap_or(&none), after.as_array().unwrap_or(&none));
    let changed: Vec<&Value> = after.iter().filter(|message| !before.contains(message)).collect();
    let ids = |all: &[Value]| -> Vec<Value> { all.iter().map(|message| message["id"].clone()).collect() };
    let mut value = json!({ "changed": changed });
    if ids(before) != ids(after) {
        value["ids"] = ids(after).into();
    }
    value
}

/// Every line of a case that changed something, with the commands that it gave.
pub(crate) fn states(name: &str, case: &Case) -> Vec<Value> {
    let mut chat = case.chat();
    let mut before = state(&chat.snapshot());
    let mut all = vec![json!({"line": 0, "state": before})];
    for (number, input) in &case.lines {
        let (changed, error) = take(&mut chat, &case.options, input);
        let after = state(&chat.snapshot());
        // What a transform leaves out can have changed, too.
        let differs = before != after || (changed.is_yes() && case.options.get("transform").is_some());
        assert_eq!(changed.is_yes(), differs, "{name}:{number}: {input:?}\n{before}\n{after}");
        let commands = chat.take_commands();
        let difference = difference(&before, &after);
        if before != after || !commands.is_empty() || error.is_some() {
            let mut line = json!({"line": number});
            if !commands.is_empty() {
                line["commands"] = serde_json::to_value(commands).unwrap();
            }
            if let Some(error) = error {
                line["error"] = error.into();
            }
            if before != after {
                line["state"] = difference;
            }
            all.push(line);
        }
        before = after;
    }
    all.push(json!({"line": "end", "state": before}));
    all
}

/// An event of step 1 of turn 1.
pub(crate) fn event(seq: u64, kind: EventKind) -> Event {
    Event::new(seq, seq * 10, RunPosition { turn: 1, step: 1, attempt: 1 }, kind)
}

/// Compares a text with a file, or writes the file with `TIDEGATE_BLESS=1`.
pub(crate) fn compare(path: &Path, text: &str) {
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    let file = std::fs::read_to_string(path).unwrap_or_default();
    for (number, (wanted, found)) in (1..).zip(file.lines().zip(text.lines())) {
        assert_eq!(found, wanted, "{}:{number}", path.display());
    }
    assert!(file == text, "{} has another number of lines; TIDEGATE_BLESS=1 writes it", path.display());
}

/// The commands that a chat has given, as JSON.
pub(crate) fn commands(chat: &mut ChatSession) -> Value {
    let commands: Vec<Command> = chat.take_commands();
    serde_json::to_value(commands).unwrap()
}

/// The event of a question about a call of `shell`.
pub(crate) fn requested(call: &str) -> EventKind {
    let preview = flow::Preview { notes: vec![format!("about {call}")], ..flow::Preview::default() };
    let (tool, reason) = ("shell".to_owned(), "shell is set to ask".to_owned());
    EventKind::ToolConfirmationRequested {
        question: flow::QuestionId::new(format!("question-{call}")),
        call: flow::CallId::new(call),
        tool,
        arguments: "{}".into(),
        reason,
        preview,
        always: None,
        timeout_ms: None,
    }
}
