//! The tools: the model writes, lists and removes notes between its steps, without an answer to the user.

use serde::Deserialize;
use tidegate_sdk::prelude::*;

use crate::{NOTES, Note, SessionNotes, kept, one_line};

const ADD: &str = r#"{
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "The note, in one line."},
        "kind": {
            "type": "string",
            "pattern": "^[A-Za-z0-9_-]{1,32}$",
            "description": "The kind of note, such as `todo`. Leave it out for a plain note."
        }
    },
    "required": ["text"],
    "additionalProperties": false
}"#;

const LIST: &str = r#"{
    "type": "object",
    "properties": {
        "kind": {"type": "string", "description": "List the notes of this kind only."}
    },
    "additionalProperties": false
}"#;

const REMOVE: &str = r#"{
    "type": "object",
    "properties": {
        "number": {"type": "integer", "minimum": 1, "description": "The number of the note in the result of `note_list`."}
    },
    "required": ["number"],
    "additionalProperties": false
}"#;

#[derive(Deserialize)]
struct Add {
    text: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct List {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Remove {
    number: usize,
}

impl ToolProvider for SessionNotes {
    fn tools(&self) -> Vec<Tool> {
        vec![
            Tool::new("note_add", "Keeps a note for the rest of this session.", ADD),
            Tool::new("note_list", "Lists the notes of this session with their numbers, oldest first.", LIST)
                .read_only(),
            Tool::new("note_remove", "Removes a note of this session by its number.", REMOVE),
        ]
    }

    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer> {
        match call.name.as_str() {
            "note_add" => self.add(call.read()?),
            "note_list" => list(&call.read()?),
            "note_remove" => remove(&call.read()?),
            other => bail!("there is no tool `{other}`"),
        }
    }
}

impl SessionNotes {
    fn add(&self, Add { text, kind }: Add) -> Result<ToolAnswer> {
        let note = Note { kind, text: one_line(&text) };
        if note.text.is_empty() {
            return Ok(ToolAnswer::rejected("the note is empty; write its text"));
        }
        let said = note.to_string();
        let is_new = self.keep(note)?;
        Ok(ToolAnswer::text(if is_new { format!("noted: {said}") } else { format!("already noted: {said}") }))
    }
}

fn list(List { kind }: &List) -> Result<ToolAnswer> {
    let notes = kept()?;
    let numbered = notes.iter().enumerate().filter(|(_, note)| kind.as_ref().is_none_or(|kind| *kind == note.kind));
    let lines: Vec<String> = numbered.map(|(at, note)| format!("{}. {note}", at + 1)).collect();
    Ok(ToolAnswer::text(if lines.is_empty() { "there are no notes".to_owned() } else { lines.join("\n") }))
}

fn remove(Remove { number }: &Remove) -> Result<ToolAnswer> {
    let mut notes = kept()?;
    let Some(at) = number.checked_sub(1).filter(|at| *at < notes.len()) else {
        let count = notes.len();
        return Ok(ToolAnswer::rejected(format_args!(
            "there is no note {number}, but {count}; `note_list` numbers them"
        )));
    };
    let removed = notes.remove(at);
    state::set_with(NOTES, &notes, state::Keep::Session)?;
    Ok(ToolAnswer::text(format_args!("removed: {removed}")))
}

#[cfg(test)]
mod tests {
    use tidegate_sdk::testing::Harness;

    use super::*;

    fn plugin() -> Harness<SessionNotes> {
        Harness::of_plugin(include_str!("../plugin.toml"))
    }

    fn call(harness: &mut Harness<SessionNotes>, tool: &str, arguments: &str) -> ToolAnswer {
        harness.call_tool(tool, arguments).expect("the tool works").answer
    }

    #[test]
    fn notes_are_written_listed_and_removed() {
        let mut harness = plugin();
        assert_eq!(call(&mut harness, "note_list", "{}"), ToolAnswer::text("there are no notes"));
        let noted = call(&mut harness, "note_add", r#"{"text": " use\n tabs "}"#);
        assert_eq!(noted, ToolAnswer::text("noted: use tabs"));
        let noted = call(&mut harness, "note_add", r#"{"text": "write docs", "kind": "todo"}"#);
        assert_eq!(noted, ToolAnswer::text("noted: [todo] write docs"));
        let again = call(&mut harness, "note_add", r#"{"text": "use tabs"}"#);
        assert_eq!(again, ToolAnswer::text("already noted: use tabs"));
        harness.restart();
        assert_eq!(call(&mut harness, "note_list", "{}"), ToolAnswer::text("1. use tabs\n2. [todo] write docs"));
        assert_eq!(call(&mut harness, "note_list", r#"{"kind": "todo"}"#), ToolAnswer::text("2. [todo] write docs"));
        assert_eq!(call(&mut harness, "note_remove", r#"{"number": 1}"#), ToolAnswer::text("removed: use tabs"));
        assert_eq!(call(&mut harness, "note_list", "{}"), ToolAnswer::text("1. [todo] write docs"));
    }

    #[test]
    fn tools_and_tags_keep_the_same_notes() {
        let mut harness = plugin();
        harness.tag(&Tag::new("note", "from a tag")).expect("takes it");
        assert_eq!(call(&mut harness, "note_list", "{}"), ToolAnswer::text("1. from a tag"));
        call(&mut harness, "note_add", r#"{"text": "from a tool"}"#);
        let InputAnswer::Replace(messages) = harness.input_messages(vec![Message::user("go on")]).expect("lists")
        else {
            panic!("the notes are not given back")
        };
        assert!(messages[0].text().ends_with("\n- from a tag\n- from a tool"), "{messages:?}");
    }

    #[test]
    fn what_the_model_can_correct_is_rejected() {
        let mut harness = plugin();
        for (tool, arguments, expected) in [
            ("note_remove", r#"{"number": 3}"#, "there is no note 3, but 0"),
            ("note_add", r#"{"text": " \n "}"#, "the note is empty"),
            ("note_add", "{}", "missing field `text`"),
        ] {
            let ToolAnswer::Rejected(why) = call(&mut harness, tool, arguments) else { panic!("{tool} {arguments}") };
            assert!(why.contains(expected), "{why}");
        }
    }
}
