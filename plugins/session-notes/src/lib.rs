//! Notes that the model writes in `<note>` and `<note-…>` tags: kept for the session, given back with the next input. Its tools let
//! the model write, list and remove them between its steps.

#![forbid(unsafe_code)]

mod tools;

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_sdk::prelude::*;

/// State: the notes, oldest first.
const NOTES: &str = "notes";
/// State: there are notes that the model has not been given back.
const NEWS: &str = "news";
/// The longest note, in bytes; a longer one is cut at a character.
const NOTE_BYTES: usize = 2000;

/// A note as it is kept in the extension's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// What stands behind `note-` in the tag's name, else empty.
    kind: String,
    /// The note itself, on one line.
    text: String,
}

/// The settings are all that an instance has.
#[derive(Deserialize)]
#[serde(default)]
struct SessionNotes {
    confirmation: String,
    max_notes: usize,
    /// This instance has seen an input: the conversation has the notes.
    #[serde(skip)]
    continues: bool,
}

impl Default for SessionNotes {
    fn default() -> Self {
        Self { confirmation: "(noted: {note})".into(), max_notes: 50, continues: false }
    }
}

impl Extension for SessionNotes {
    fn new(settings: &Settings) -> Result<Self> {
        let notes: Self = settings.read()?;
        if !(1..=1000).contains(&notes.max_notes) {
            bail!("setting `max_notes` must be from 1 to 1000, and is {}", notes.max_notes);
        }
        Ok(notes)
    }
}

impl OnTag for SessionNotes {
    fn tag_options(&self) -> TagOptions {
        TagOptions::new(["note", "note-*"])
    }

    fn on_tag(&mut self, tag: &Tag, _place: &TagPlace) -> Result<TagAnswer> {
        let text = one_line(&tag.content);
        if text.is_empty() {
            return Ok(TagAnswer::Keep);
        }
        let kind = tag.name.strip_prefix("note-").unwrap_or_default().to_owned();
        let answer = TagAnswer::Replace(self.confirmation.replace("{note}", &text));
        if self.keep(Note { kind, text })? {
            state::set_with(NEWS, &true, state::Keep::Session)?;
        }
        Ok(answer)
    }
}

impl SessionNotes {
    /// Keeps a note; returns whether it is new.
    fn keep(&self, note: Note) -> Result<bool> {
        let mut notes = kept()?;
        if notes.contains(&note) {
            return Ok(false);
        }
        notes.push(note);
        let too_many = notes.len().saturating_sub(self.max_notes);
        notes.drain(..too_many);
        if too_many > 0 {
            log::warn(format_args!(
                "dropped {too_many} of the oldest notes: setting `max_notes` is {}",
                self.max_notes
            ));
        }
        state::set_with(NOTES, &notes, state::Keep::Session)?;
        Ok(true)
    }
}

/// The notes that are kept, oldest first.
fn kept() -> Result<Vec<Note>> {
    Ok(state::get(NOTES)?.unwrap_or_default())
}

impl OnInputMessages for SessionNotes {
    fn on_input_messages(&mut self, mut messages: Vec<Message>) -> Result<InputAnswer> {
        // A session that is opened again has the notes and an empty conversation.
        let first = !std::mem::replace(&mut self.continues, true);
        let notes = kept()?;
        if notes.is_empty() || !(first || state::get(NEWS)? == Some(true)) {
            return Ok(InputAnswer::Pass);
        }
        let Some(last) = messages.iter_mut().rfind(|message| message.role == Role::User) else {
            return Ok(InputAnswer::Pass);
        };
        last.push_text(listed(&notes));
        state::delete(NEWS)?;
        Ok(InputAnswer::Replace(messages))
    }
}

/// The notes as the model gets them back.
fn listed(notes: &[Note]) -> String {
    let mut text = String::from("\n\nYour notes of this session, oldest first:");
    for note in notes {
        text.push_str(&format!("\n- {note}"));
    }
    text
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.as_str() {
            "" => f.write_str(&self.text),
            kind => write!(f, "[{kind}] {}", self.text),
        }
    }
}

/// The words with single spaces between them, at most [`NOTE_BYTES`].
fn one_line(content: &str) -> String {
    let mut text = content.split_whitespace().collect::<Vec<_>>().join(" ");
    text.truncate(text.floor_char_boundary(NOTE_BYTES));
    text
}

tidegate_sdk::export!(SessionNotes: OnInputMessages, OnTag, ToolProvider);

#[cfg(test)]
mod tests {
    use tidegate_sdk::testing::{Answer, Harness};

    use super::*;

    fn plugin() -> Harness<SessionNotes> {
        Harness::of_plugin(include_str!("../plugin.toml"))
    }

    fn listing(harness: &mut Harness<SessionNotes>) -> Option<String> {
        match harness.input_messages(vec![Message::user("go on")]).expect("lists") {
            InputAnswer::Pass => None,
            InputAnswer::Replace(messages) => {
                let text = messages[0].text();
                Some(text.strip_prefix("go on").expect("the words stay in front").to_owned())
            }
            other => panic!("unexpected answer {other:?}"),
        }
    }

    #[test]
    fn notes_are_taken_confirmed_and_given_back_once() {
        let mut harness = plugin();
        assert_eq!(listing(&mut harness), None);
        let answer = harness.tag(&Tag::new("note", " use\n tabs ")).expect("takes it");
        assert_eq!(answer, TagAnswer::replace("(noted: use tabs)"));
        harness.tag(&Tag::new("note-todo", "write docs")).expect("takes it");
        harness.tag(&Tag::new("note-todo", "write docs")).expect("takes it once");
        harness.restart();
        let expected = "\n\nYour notes of this session, oldest first:\n- use tabs\n- [todo] write docs";
        assert_eq!(listing(&mut harness).as_deref(), Some(expected));
        assert_eq!(listing(&mut harness), None, "nothing is new");
        harness.tag(&Tag::new("note", "third")).expect("takes it");
        assert!(listing(&mut harness).is_some_and(|text| text.ends_with("docs\n- third")));
    }

    #[test]
    fn notes_are_found_in_an_answer_however_it_arrives() {
        let mut harness = plugin();
        let answer =
            "Done.\n<note>use tabs</note>\nIn code, `<note>x</note>` is no note.\n<note-todo>write\ndocs</note-todo>";
        let shown = harness.retried(answer);
        let expected = "Done.\n(noted: use tabs)\nIn code, `<note>x</note>` is no note.\n(noted: write docs)";
        assert_eq!(shown.text, expected);
        assert!(listing(&mut harness).is_some_and(|text| text.ends_with(":\n- use tabs\n- [todo] write docs")));
    }

    #[test]
    fn a_note_of_a_discarded_attempt_is_not_kept() {
        let mut harness = plugin();
        let answer =
            Answer::from("<note>a</note><note>b</note>").after_discarding("<note>a</note><note>c</note><note>d");
        assert_eq!(harness.answer(answer).text, "(noted: a)(noted: b)");
        assert!(listing(&mut harness).is_some_and(|text| text.ends_with(":\n- a\n- b")));
    }

    #[test]
    fn an_input_without_a_user_keeps_the_news() {
        let mut harness = plugin();
        harness.tag(&Tag::new("note", "a")).expect("takes it");
        assert_eq!(harness.input_messages(vec![Message::system("x")]).expect("passes"), InputAnswer::Pass);
        assert!(listing(&mut harness).is_some());
    }

    #[test]
    fn settings_bound_the_notes_and_hide_the_confirmation() {
        let mut harness = plugin().with_setting("max_notes", 2.0).with_setting("confirmation", "");
        for text in ["a", "b", "c"] {
            assert_eq!(harness.tag(&Tag::new("note", text)).expect("takes it"), TagAnswer::replace(""));
        }
        assert!(listing(&mut harness).is_some_and(|text| text.ends_with(":\n- b\n- c")));
        assert!(harness.log().iter().any(|line| line.message.contains("dropped 1")), "{:?}", harness.log());
        let error = plugin().with_setting("max_notes", 0.0).tag(&Tag::new("note", "x"));
        assert!(error.is_err_and(|error| error.message().contains("from 1 to 1000")));
    }

    #[test]
    fn an_empty_note_stays_and_a_long_one_is_cut_at_a_character() {
        let mut harness = plugin();
        assert_eq!(harness.tag(&Tag::new("note", " \n ")).expect("keeps it"), TagAnswer::Keep);
        harness.tag(&Tag::new("note", "ü".repeat(3000))).expect("takes it");
        let notes: Vec<Note> = harness.state(NOTES).expect("kept");
        assert_eq!(notes[0].text, "ü".repeat(1000));
    }
}
