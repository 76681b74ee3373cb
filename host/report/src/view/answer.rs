//! What a report says about answers.

use std::borrow::Cow;

use record::Author;

use super::{Block, Kind, View};
use crate::diff::diff;
use crate::figures::of;
use crate::report::{Answer, Reasoning};

pub(super) fn view(answer: &Answer) -> View<'_> {
    let record = &answer.record;
    let shown = answer.shown();
    let mut view = View::new(if record.is_partial { Kind::Stopped } else { Kind::Answer }, label(answer));
    let same = shown == record.text;
    if !shown.is_empty() {
        let marks: &[_] = if same { &answer.matches } else { &[] };
        view = view.with(Block { marks, ..Block::new(if same { "" } else { "what the user saw" }, shown) });
    }
    if !same {
        // Of a stopped answer the original is what matters: it has the match.
        let (title, folded) = if record.is_partial { ("received from the model", false) } else { ("original", true) };
        view = view.with(Block { marks: &answer.matches, folded, ..Block::new(title, record.text.as_str()) });
    }
    if record.shown.is_some() {
        view = view
            .with(Block { diff: diff(&record.text, shown), ..Block::new("original and shown, compared", "") }.folded());
    }
    for rewrite in record.rewrites.iter().flatten() {
        let text = format!("{}:\n{}", rewrite.extension_id, rewrite.text);
        view = view.with(Block::new("rewritten by an extension", text).folded());
    }
    for note in record.annotations.iter().flatten() {
        let text = format!("{}: {} = {}", note.extension_id, note.key, note.value);
        view = view.with(Block::new("annotation", text).folded());
    }
    // The calls of a complete answer are entries of their own.
    let calls = record.blocks.iter().flatten().filter(|block| record.is_partial && block.stream == "tool");
    for block in calls {
        let (tool, arguments) =
            (block.tool.as_deref().unwrap_or_default(), block.shown.as_ref().or(block.arguments.as_ref()));
        let text: Cow<'_, str> = format!("{tool} {}", arguments.map_or("", String::as_str)).into();
        view = view.with(Block::new("call that was not made", text));
    }
    view
}

fn label(answer: &Answer) -> String {
    let record = &answer.record;
    let by = match &record.author {
        Author::Extension(id) => format!("Reply of extension {id}"),
        Author::Addition { extension_id, .. } => format!("Reply of {extension_id}"),
        Author::User | Author::Model | Author::Host => "Answer".to_owned(),
    };
    if !record.is_partial {
        return by;
    }
    let error = record.error.as_deref().unwrap_or("it did not come to its end");
    let (received, shown) = (of(record.text.len() as u64, "byte", "bytes"), record.shown_bytes.unwrap_or(0));
    let percent = record.completion_percentage;
    let percent = percent.map(|percent| format!(" (about {percent:.0} % of the limit)")).unwrap_or_default();
    let kept = record.kept_bytes.filter(|bytes| *bytes > 0).map(|bytes| format!(", {bytes} kept")).unwrap_or_default();
    let retained = match record.retained.as_str() {
        "nothing" | "" => String::new(),
        "start" => format!("; its first {} bytes stay in the conversation", record.retained_bytes.unwrap_or(0)),
        _ => "; it stays in the conversation".to_owned(),
    };
    format!("Stopped answer: {error}; {received} received{percent}, {shown} shown{kept}{retained}")
}

pub(super) fn reasoning(reasoning: &Reasoning) -> View<'_> {
    let state = if reasoning.record.was_interrupted { "Reasoning, interrupted" } else { "Reasoning" };
    let (folded, marks) = (reasoning.matches.is_empty(), reasoning.matches.as_slice());
    let text = Block::new(if folded { "reasoning" } else { "" }, reasoning.record.text.as_str());
    View::new(Kind::Note, state).with(Block { folded, marks, ..text })
}
