//! The notes about the texts of an answer that a client was shown: when it sends them back, the model gets what it wrote.

use std::collections::HashMap;

use flow::TextStream;

use crate::memory::{About, Memory, Note, place_of};
use crate::requests::canonical;
use crate::stage::{Both, Stage};

/// Adds the notes about the answer with this number.
pub(crate) fn add(stage: &Stage, number: usize, memory: &mut Memory) {
    let keeping = stage.caller().keeping();
    if !keeping.answer {
        add_texts(About::Answer, &attached(stage.repeats().blocks(TextStream::Answer)), number, memory);
    }
    // Reasoning is signed: its provider gets the original.
    let thinking: Vec<Both> = stage.repeats().blocks(TextStream::Thinking).cloned().collect();
    add_texts(About::Thinking, &thinking, number, memory);
    if keeping.calls {
        return;
    }
    for (call, new) in &stage.calls().calls {
        let shown = new.as_ref().unwrap_or(&call.arguments);
        let note = if new.is_some() { Note::Text(call.arguments.clone()) } else { Note::Passes(true) };
        memory.note(About::Call, &[call.id.as_str(), &canonical(shown)], note);
    }
}

/// Attaches blocks of which the client has nothing to the block before them, or else to the next one: the client does not send them back.
fn attached<'b>(blocks: impl Iterator<Item = &'b Both>) -> Vec<Both> {
    let (mut all, mut before) = (Vec::<Both>::new(), String::new());
    for Both { original, shown } in blocks {
        match all.last_mut() {
            _ if !shown.trim().is_empty() => {
                all.push(Both { original: std::mem::take(&mut before) + original, shown: shown.clone() });
            }
            // White space that the client has, it sends back.
            _ if original.trim().is_empty() && !shown.is_empty() => {}
            Some(last) => last.original.push_str(original),
            None => before.push_str(original),
        }
    }
    all
}

fn add_texts(about: About, texts: &[Both], number: usize, memory: &mut Memory) {
    let mut times = HashMap::<&str, u32>::new();
    for Both { original, shown } in texts {
        let (before, after) = (original.trim(), shown.trim());
        if after.is_empty() {
            continue;
        }
        let times = times.entry(after).or_default();
        let place = place_of(number, *times);
        *times += 1;
        if white_space(original) != white_space(shown) {
            memory.note(about, &[&place, shown], Note::Text(original.clone()));
        }
        let note = if before == after { Note::Passes(true) } else { Note::Text(before.to_owned()) };
        memory.note(about, &[&place, after], note);
    }
}

/// Returns the white space before and behind a text.
fn white_space(text: &str) -> (&str, &str) {
    let (start, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
    (&text[..start], text.get(end..).unwrap_or_default())
}

/// Returns the note about a text that the client was shown, as it applies to all of the text. Clients can trim what they send back.
pub(crate) fn of_shown(about: About, place: &str, shown: &str, memory: &mut Memory) -> Option<Note> {
    let known = [shown, shown.trim()].into_iter().find(|known| memory.get(about, &[place, known]).is_some())?;
    Some(match memory.get(about, &[place, known])? {
        Note::Text(original) => Note::Text(shown.replacen(known, original, 1)),
        Note::Passes(passes) => Note::Passes(*passes),
    })
}
